"""People in several cells, from every door: what is counted, what is refused, and what is said of it."""

from __future__ import annotations

import datetime as dt
import textwrap

import duckdb
import numpy as np
import pandas as pd
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb import install
from pkdp_pipeline.jobs import load_job, run_job

APART = pkdp.AttackerModel(p_max=0.1, independent_cells=True)
NOISE = pkdp.GeometricNoise(50.0)
"""Changes no count in a lifetime."""


@pytest.fixture(scope="module")
def visits():
    """Two hundred patients in one, two or three clinics, often more than once."""
    rows = [
        (f"p{person}", clinic, dt.date(2026, 1, 5))
        for person in range(200)
        for clinic in ("east", "north", "west")[: 1 + person % 3]
        for _ in range(1 + person % 2)
    ]
    return pd.DataFrame(rows, columns=["patient", "clinic", "date"])


def test_everybody_counts_in_each_of_her_cells(visits):
    release = visits.pkdp.histogram("clinic", unit="patient", k=50, cells_per_unit=3, attacker=APART)
    assert release.table.to_dict("list") == {"clinic": ["east", "north", "west"], "count": [200, 133, 66]}
    sentence = release.certificate.sentence()
    assert "A person with rows in several cells counts in each of them." in sentence
    assert "nobody is in more than 3 cells" in sentence
    back = pkdp.Certificate.from_json(release.certificate.to_json())
    assert back == release.certificate
    assert back.verify()


def test_with_noise_a_hash_leaves_some_out(visits):
    terms = {"unit": "patient", "noise": NOISE, "release_threshold": 2}
    sums = [visits.pkdp.histogram("clinic", cells_per_unit=most, **terms).table["count"].sum() for most in (2, 3, 4)]
    assert sums == [67 + 67 * 2 + 66 * 2, 200 + 133 + 66, 200 + 133 + 66]
    release = visits.pkdp.histogram("clinic", cells_per_unit=2, **terms)
    assert "A person with rows in more than 2 cells counts in 2 of them, drawn by a hash." in (
        release.certificate.sentence()
    )
    assert not release.certificate.has_partial_knowledge


def test_more_cells_than_declared_stop_it_and_tell_no_value(visits):
    with pytest.raises(pkdp.InputCheckError) as caught:
        visits.pkdp.histogram("clinic", unit="patient", k=50, cells_per_unit=2, attacker=APART)
    assert "units 'patient' have rows in more than cells_per_unit cells of 'clinic'" in str(caught.value)
    assert "west" not in str(caught.value)


def test_one_cell_as_before_is_the_same_release(visits):
    terms = {"unit": "patient", "k": 50, "attacker": pkdp.AttackerModel(p_max=0.1), "one_cell": "hash"}
    plain = visits.pkdp.histogram("clinic", **terms)
    assert visits.pkdp.histogram("clinic", cells_per_unit=1, **terms).to_bytes() == plain.to_bytes()
    assert "cells_per_unit" not in plain.certificate.to_json()


def test_a_ledger_knows_them_apart_and_adds_them_up(visits):
    terms = {"unit": "patient", "k": 60, "attacker": APART, "cells_per_unit": 3}
    with pkdp.Ledger.open(":memory:", evidence=pkdp.IndependentGivenHabits()) as ledger:
        first = visits.pkdp.histogram("clinic", ledger=ledger, period="2026-01-05", **terms)
        again = visits.pkdp.histogram("clinic", ledger=ledger, period="2026-01-05", **terms)
        assert (again.replayed, again.id) == (True, first.id)
        visits.pkdp.histogram("clinic", ledger=ledger, period="2026-01-06", **terms)
        single = pkdp.certify(pkdp.Histogram(k=60), pkdp.AttackerModel(p_max=0.1))
        six = pkdp.compose([(single, 6)], pkdp.IndependentGivenHabits())
        assert ledger.total().epsilon(1e-6) == six.epsilon(1e-6)
        with pytest.raises(pkdp.DifferencingError):
            visits.pkdp.histogram("clinic", ledger=ledger, period="2026-01-06", **terms | {"cells_per_unit": 4})
        ledger.verify()


def test_its_counts_do_not_add_up_to_people(visits):
    release = visits.pkdp.histogram("clinic", unit="patient", k=50, cells_per_unit=3, attacker=APART)
    for derive in (lambda: release.rollup([]), lambda: release.shares(), lambda: release.rounded(5, [])):
        with pytest.raises(pkdp.ArgumentError, match="do not add up to people"):
            derive()
    assert release.rounded(10)["count"].tolist() == [200, 130, 70]


def test_sql_says_it_too(visits):
    with duckdb.connect() as connection:
        connection.register("frame", visits)
        connection.execute("CREATE TABLE visits AS FROM frame")
        install(connection, attacker=APART, unit="patient", one_cell="most_frequent")
        query = "FROM pkdp_histogram('visits', 'clinic', k := 50, cells_per_unit := {})"
        assert connection.sql(query.format(3)).fetchall() == [("east", 200), ("north", 133), ("west", 66)]
        with pytest.raises(duckdb.Error, match="cells_per_unit must be a whole number"):
            connection.sql(query.format("'many'"))
        (epsilon,) = connection.sql(
            "SELECT pkdp_epsilon('histogram', k := 50, p_max := 0.1, delta := 1e-6, cells_per_unit := 3, "
            "independent_cells := true)"
        ).fetchall()[0]
    assert epsilon == pkdp.certify(pkdp.Histogram(k=50, cells_per_unit=3), APART).epsilon(1e-6)


JOB = """
dataset = "clinics"
source = "visits.parquet"
period = { column = "date" }
unit = "patient"
one_cell = "hash"
ledger = "ledger.sqlite"
[attacker]
p_max = 0.1
independent_cells = true
[[release]]
name = "by_clinic"
by = "clinic"
k = 50
cells_per_unit = 3
[output]
directory = "out"
"""


def job_of(folder, visits, text=JOB):
    visits.to_parquet(folder / "visits.parquet")
    (folder / "job.toml").write_text(text)
    return load_job(folder / "job.toml")


def test_a_job_says_it_too(tmp_path, visits):
    result = run_job(job_of(tmp_path, visits), dt.date(2026, 1, 5))
    assert result.error is None
    table = pd.read_parquet(tmp_path / "out" / "2026-01-05" / "by_clinic.parquet")
    assert table["count"].tolist() == [200, 133, 66]


WRONG = {
    "cells_per_unit = 0": "cells_per_unit must be at least 1",
    "cells_per_unit = 101": "cells_per_unit must be at most 100",
    "cells_per_unit = 2.5": "cells_per_unit",
    'cells_per_unit = "all"': "cells_per_unit",
    'cells_per_unit = 3\none_cell = "hash"': "without noise nothing may be left out",
    'cells_per_unit = 3\none_cell = "first"\norder_by = "date"': "Leave one_cell out",
    "cell_per_unit = 3": "did you mean 'cells_per_unit'",
}


@pytest.mark.parametrize(("written", "said"), WRONG.items())
def test_wrong_job_files_are_refused_before_anything(tmp_path, visits, written, said):
    with pytest.raises(pkdp.PkdpError, match=said):
        run_job(job_of(tmp_path, visits, JOB.replace("cells_per_unit = 3", written)), dt.date(2026, 1, 5))
    assert not (tmp_path / "ledger.sqlite").exists()
    assert not (tmp_path / "out").exists()


OTHERWISE = {
    ("independent_cells = true", ""): "declare independent_cells in the attacker, and p_max",
    ("independent_cells = true", 'independent_cells = "yes"'): "independent_cells",
    ('by = "clinic"\n', ""): "cells_per_unit is about the cells of a histogram",
    ("p_max = 0.1\n", ""): "p_max",
}


@thinned(2)
@pytest.mark.parametrize(("old", "new"), OTHERWISE)
def test_so_are_others(tmp_path, visits, old, new):
    with pytest.raises(pkdp.PkdpError) as caught:
        run_job(job_of(tmp_path, visits, JOB.replace(old, new)), dt.date(2026, 1, 5))
    assert OTHERWISE[old, new] in str(caught.value)
    assert not list(tmp_path.rglob("by_clinic*"))


def test_a_job_stops_where_somebody_is_in_more_cells(tmp_path, visits):
    text = JOB.replace("cells_per_unit = 3", "cells_per_unit = 2")
    with pytest.raises(pkdp.InputCheckError, match="more than 2 cells") as caught:
        run_job(job_of(tmp_path, visits, text), dt.date(2026, 1, 5))
    assert not list(tmp_path.rglob("by_clinic*"))
    assert "west" not in str(caught.value)


def test_the_error_of_drawing_is_told_by_explain(visits):
    explained = visits.pkdp.explain(
        "clinic", unit="patient", noise=pkdp.GeometricNoise(0.1), release_threshold=150, cells_per_unit=4
    )
    assert explained.certificate.worst_case.parameters[0] == pytest.approx(0.4)
    assert "4 of them, drawn by a hash" in textwrap.fill(str(explained), 10_000)


def test_the_worst_case_of_drawing_is_kept_by_any_table():
    """With every person in all cells, one more person changes exactly as many counts as declared."""
    rng = np.random.default_rng(7)
    cells = [f"c{number}" for number in range(6)]
    frame = pd.DataFrame(
        [(person, cell) for person in range(30) for cell in rng.permutation(cells)], columns=["u", "c"]
    )
    terms = {"unit": "u", "noise": NOISE, "domain": cells, "cells_per_unit": 2}
    without = frame[frame["u"] != 7].pkdp.histogram("c", **terms).table["count"]
    changed = frame.pkdp.histogram("c", **terms).table["count"] - without
    assert sorted(changed.tolist()) == [0, 0, 0, 0, 1, 1]
