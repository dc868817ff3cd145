from __future__ import annotations

from datetime import date

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline import Ledger
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.checks import check_output
from pkdp_pipeline.jobs.job import ReleaseTable
from pkdp_pipeline.releases.release import Release

DAY = date(2020, 1, 1)


def declared(**keys) -> ReleaseTable:
    return ReleaseTable.model_validate({"name": "people", **keys})


def sealed(table: pd.DataFrame, mechanism) -> Release:
    """A release of this very table, whatever it holds."""
    frame = pd.DataFrame({"u": range(9), "town": ["Ås"] * 9})
    counted = pkdp.count(frame, unit="u", attacker=pkdp.AttackerModel(p_max=0.5), k=5)
    if mechanism != counted.certificate.mechanism:
        from pkdp_pipeline.certificates.release_certificate import certify

        return Release.seal(table, certify(mechanism, pkdp.AttackerModel(p_max=0.5)))
    return Release.seal(table, counted.certificate)


def cells(towns, counts, exact=None) -> pd.DataFrame:
    table = pd.DataFrame({"town": pd.array(towns, dtype="string"), "count": pd.array(counts, dtype="Int64")})
    return table if exact is None else table.assign(exact=pd.array(exact, dtype="boolean"))


TOWNS = {"by": "town", "k": 5}
NOISY = {"by": "town", "k": 5, "noise": {"epsilon": 0.5}, "release_threshold": 8}
DECLARED = {**TOWNS, "domain": ["Ås", "Bø"]}
MARKED = {**DECLARED, "noise": {"epsilon": 0.5}, "below": "noise"}
ROUNDED = {**TOWNS, "display": {"rounding": 10}}
HIDING = {**TOWNS, "noise": {"epsilon": 0.5}, "below": "noise", "release_threshold": 3}


@thinned(3)
@pytest.mark.parametrize(
    ("keys", "table", "rows"),
    [
        (TOWNS, cells(["Bø", "Ås", None], [5, 6, 7]), 18),
        (TOWNS, cells([], []), 0),
        (DECLARED, cells(["Ås", "Bø"], [None, 5]), 5),
        (NOISY, cells(["Bø"], [8]), 1),
        (MARKED, cells(["Ås", "Bø"], [-2, 5], [False, True]), 5),
        (HIDING, cells(["Bø", "Ås"], [3, 6], [False, True]), 6),
        (ROUNDED, cells(["Bø", "Ås"], [10, 10]), 10),  # as 5 and 5 people are
        ({**TOWNS, "k": 4, "display": {"rounding": 10}}, cells(["Ås"], [0]), 4),
        ({**MARKED, "release_threshold": 3}, cells(["Ås", "Bø"], [None, 5], [None, True]), 5),
        ({"k": 5}, pd.DataFrame({"count": pd.array([5], dtype="Int64")}), 5),
        ({"k": 5}, pd.DataFrame({"count": pd.array([None], dtype="Int64")}), 0),
    ],
)
def test_what_is_as_asked_for_passes(keys, table, rows):
    release = declared(**keys)
    check_output(sealed(table, release.mechanism), release, rows=rows)


@thinned(6)
@pytest.mark.parametrize(
    ("keys", "table", "rows", "words"),
    [
        (TOWNS, cells(["Bø"], [4]), None, "no cell may be under k"),
        (DECLARED, cells(["Ås", "Bø"], [None, 4]), None, "no cell may be under k"),
        ({"k": 5}, pd.DataFrame({"count": pd.array([4], dtype="Int64")}), None, "no cell may be under k"),
        (NOISY, cells(["Bø"], [7]), None, "no cell may be under the release threshold"),
        (TOWNS, cells(["Bø"], [None]), None, "must be left out"),
        (MARKED, cells(["Ås", "Bø"], [-2, 4], [False, True]), None, "no cell may be under k"),
        (MARKED, cells(["Ås", "Bø"], [9, 7], [False, True]), 6, "not add up to more than the rows"),
        (MARKED, cells(["Ås", "Bø"], [9, 7]), None, "by-columns and count and exact"),
        (MARKED, cells(["Ås", "Bø"], [9, 7], [None, True]), None, "marked as exact or noised"),
        (MARKED, cells(["Ås", "Bø"], [None, 7], [False, True]), None, "marked as exact or noised"),
        (HIDING, cells(["Bø"], [2], [False]), None, "no cell may be under the release threshold"),
        (HIDING, cells(["Bø"], [None], [None]), None, "must be left out"),
        (TOWNS, cells(["Bø"], [5], [True]), None, "by-columns and count"),
        (TOWNS, cells(["Bø", "Ås"], [5, 6]), 10, "not add up to more than the rows"),
        (TOWNS, cells(["Ås", "Bø"], [5, 6]), None, "sorted by the by-columns"),
        (TOWNS, cells([None, "Bø"], [5, 6]), None, "sorted by the by-columns"),
        (TOWNS, cells(["Bø", "Bø"], [5, 6]), None, "no cell may be in it twice"),
        (DECLARED, cells(["Bø", "Ås"], [5, 6]), None, "those of the domain, in its order"),
        (DECLARED, cells(["Ås"], [5]), None, "those of the domain, in its order"),
        (TOWNS, cells(["Bø"], [5]).rename(columns={"town": "city"}), None, "by-columns and count"),
        (TOWNS, cells(["Bø"], [5]).assign(more=1), None, "by-columns and count"),
        (TOWNS, cells(["Bø"], [5])[["count", "town"]], None, "by-columns and count"),
        (TOWNS, cells(["Bø"], [5]).astype({"count": "int64"}), None, "whole numbers"),
        ({"k": 6}, pd.DataFrame({"count": pd.array([6, 7], dtype="Int64")}), None, "one number"),
    ],
)
def test_each_defect_is_found_and_told_without_numbers(keys, table, rows, words):
    release = declared(**keys)
    with pytest.raises(RuntimeError, match=words) as caught:
        check_output(sealed(table, release.mechanism), release, rows=rows)
    message = str(caught.value)
    assert "'people'" in message
    assert "Bø" not in message
    assert not any(sign.isdigit() for sign in message)


def test_a_certificate_about_another_mechanism_is_found():
    with pytest.raises(RuntimeError, match="mechanism"):
        check_output(sealed(cells(["Bø"], [9]), declared(by="town", k=5).mechanism), declared(by="town", k=6))


def test_metadata_beside_the_certificate_are_found():
    release = sealed(cells(["Bø"], [5]), declared(**TOWNS).mechanism)
    file = pq.ParquetFile(pa.BufferReader(release.to_bytes()))
    table, metadata = file.read(), file.metadata.metadata
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({**metadata, b"note": b"x"})
    altered = Release.from_bytes(bytes(sink.getvalue()))
    with pytest.raises(RuntimeError, match="no metadata but the certificate"):
        check_output(altered, declared(**TOWNS))


@thinned(3)
@pytest.mark.parametrize(
    ("column", "domain"),
    [
        ([DAY] * 6, "[2020-01-01, 2020-01-02]"),
        ([7] * 6, "[7, 9, 0]"),
        ([True] * 6, "[true, false]"),
        (["a"] * 6, '["b", "a"]'),
        (pd.to_datetime(["2020-01-01T10"] * 6), "[2020-01-01T10:00:00]"),
        (pd.to_datetime(["2020-01-01T10"] * 6, utc=True), "[2020-01-01T10:00:00Z]"),
    ],
)
def test_declared_cells_of_every_kind_pass(job_file, basic, column, domain):
    frame = pd.DataFrame({"day": [DAY] * 6, "person": range(6), "town": column})
    job = load_job(job_file(basic.replace("k = 5", f"k = 5\ndomain = {domain}"), frame))
    (release,) = run_job(job, DAY).releases
    assert release.release.table["count"].sum() == 6


@thinned(2)
@pytest.mark.parametrize(
    "change",
    [
        "",
        'domain = ["Ås", "Bø", "Secretville", "nowhere"]',
        "noise = { epsilon = 2.0 }\nrelease_threshold = 6",
        'noise = { epsilon = 2.0 }\nrelease_threshold = 6\nbelow = "noise"',
    ],
)
def test_releases_of_jobs_pass(job_file, basic, change):
    job = load_job(job_file(basic.replace("k = 5", f"k = 5\n{change}")))
    (release,) = run_job(job, DAY).releases
    check_output(release.release, release.declared)


def test_a_defect_charges_nothing_and_writes_nothing(job_file, basic, monkeypatch):
    """The table is made wrong where it is made; everything that follows is real."""
    from pkdp_pipeline.releases import public_table

    job = load_job(job_file(basic))
    sound = public_table._public

    def lowered(*arguments, **names):
        return {name: values - 4 for name, values in sound(*arguments, **names).items()}

    monkeypatch.setattr(public_table, "_public", lowered)
    with pytest.raises(RuntimeError, match="no cell may be under k"):
        run_job(job, DAY)
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert list(ledger.entries()) == []
    monkeypatch.undo()
    assert not run_job(job, DAY).replayed
