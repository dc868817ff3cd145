"""A release is its table, its certificate and the hash that binds them; whoever reads it back checks it."""

from __future__ import annotations

import json
import re
from importlib import import_module
from importlib.util import find_spec

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli.job_views import print_release
from pkdp_pipeline.jobs.outputs import markdown_table
from pkdp_pipeline.ledger.sealed import release_id
from pkdp_pipeline.releases.release import Release

ATTACKER = pkdp.AttackerModel(p_max=0.1)

pytestmark = pytest.mark.whole_curves


@pytest.fixture
def release() -> pkdp.Release:
    frame = pd.DataFrame({"u": range(42), "c": pd.Series(["a"] * 12 + ["b"] * 30, dtype="str")})
    return frame.pkdp.histogram("c", unit="u", attacker=ATTACKER, k=10, domain=["b", "a", "<z>"])


def written(path, release, *, table=None, certificate=None, identity=None, schema="pkdp-release/1"):
    """Write a release's file with one thing changed and, unless told otherwise, an id that fits."""
    table = release.table if table is None else table
    certificate = release.certificate.to_json() if certificate is None else certificate
    identity = release_id(table, certificate) if identity is None else identity
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    stated = json.dumps({"id": identity, "schema": schema})
    arrow = arrow.replace_schema_metadata(
        {**arrow.schema.metadata, b"pkdp.certificate": certificate.encode(), b"pkdp.release": stated.encode()}
    )
    pq.write_table(arrow, path)
    return path


def test_a_file_is_read_back_as_it_was(release, tmp_path):
    path = tmp_path / "release.parquet"
    release.to_parquet(path)
    assert path.read_bytes() == release.to_bytes()
    again = pkdp.read_release(path)
    assert (again.id, again.replayed) == (release.id, False)
    assert again.certificate == release.certificate
    assert again.certificate.to_json() == release.certificate.to_json()
    assert again.to_bytes() == release.to_bytes()
    pd.testing.assert_frame_equal(again.table, release.table)
    assert again.error == release.error


def test_other_tools_read_the_table_and_the_certificate(release, tmp_path):
    path = tmp_path / "release.parquet"
    release.to_parquet(path)
    read = pd.read_parquet(path).astype(release.table.dtypes)  # before pandas 3, text is read as objects
    pd.testing.assert_frame_equal(read, release.table, check_flags=False)
    with duckdb.connect() as connection:
        stored = dict(connection.execute("SELECT key, value FROM parquet_kv_metadata(?)", [str(path)]).fetchall())
    assert stored[b"pkdp.certificate"].decode() == release.certificate.to_json()
    assert json.loads(stored[b"pkdp.release"])["id"] == release.id
    assert set(stored) == {b"pandas", b"pkdp.certificate", b"pkdp.release"}


def test_readers_of_arrow_take_a_release_as_it_is(release, tmp_path):
    expected = release.table.astype(object).where(release.table.notna(), None).to_dict("list")
    arrow = pa.table(release)
    assert arrow.to_pydict() == expected
    assert arrow.schema.metadata[b"pkdp.certificate"].decode() == release.certificate.to_json()
    with duckdb.connect() as connection:
        relation = connection.sql("FROM release")
        assert (
            relation.fetchall()
            == connection.sql("FROM release").fetchall()
            == list(zip(*expected.values(), strict=True))
        )
    if find_spec("polars"):
        assert import_module("polars").DataFrame(release).to_dict(as_series=False) == expected
    if find_spec("nanoarrow"):
        assert import_module("nanoarrow").Array(release).to_pylist()[0]["count"] == 30
    pq.write_table(arrow, tmp_path / "again.parquet")
    assert pkdp.read_release(tmp_path / "again.parquet").id == release.id


def test_the_id_is_of_the_public_content(release):
    assert len(release.id) == 64
    assert release.id == release_id(release.table, release.certificate.to_json())
    table = release.table
    table.attrs = {"anything": 1}
    table.index = [3, 4, 5]
    assert release_id(table, release.certificate.to_json()) == release.id
    different = [
        table.iloc[::-1],
        table.rename(columns={"c": "d"}),
        table.assign(count=table["count"] + 1),
        table.assign(c=["b", "a", "z"]),
        table.assign(c=pd.array([1, 2, 3], dtype="Int64")),
    ]
    assert release.id not in {release_id(other, release.certificate.to_json()) for other in different}
    assert release_id(table, release.certificate.with_caveats("Other.").to_json()) != release.id


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"identity": "0" * 64}, "not the one its id was made from"),
        ({"certificate": "{}", "identity": "as it was"}, "not the one its id was made from"),
        ({"certificate": "{}"}, "certificate"),
        ({"schema": "pkdp-release/2"}, "schema"),
        ({"table": lambda table: table.assign(count=pd.array([30, 9, None], dtype="Int64"))}, "below"),
        ({"table": lambda table: table.assign(count=[30.0, 12.0, None])}, "'count'"),
        ({"table": lambda table: table.drop(columns="count")}, "'count'"),
        ({"table": lambda table: table.assign(c=["a", "a", "b"])}, "twice"),
    ],
)
def test_an_altered_file_is_refused(release, tmp_path, change, words):
    if "table" in change:
        change = {"table": change["table"](release.table)}
    if change.get("identity") == "as it was":
        change = {**change, "identity": release.id}
    with pytest.raises(pkdp.ArgumentError, match=words):
        pkdp.read_release(written(tmp_path / "altered.parquet", release, **change))


def test_a_certificate_that_claims_more_is_refused(release, tmp_path):
    document = json.loads(release.certificate.to_json())
    document["grid"][5]["delta"] /= 2
    path = written(tmp_path / "altered.parquet", release, certificate=json.dumps(document))
    with pytest.raises(pkdp.ArgumentError, match="altered"):
        pkdp.read_release(path)


def test_a_count_must_hold_one_number(tmp_path):
    release = pd.DataFrame({"u": range(12)}).pkdp.count(unit="u", attacker=ATTACKER, k=10)
    assert pkdp.read_release(written(tmp_path / "same.parquet", release)).value == 12
    two = pd.DataFrame({"count": pd.array([12, 13], dtype="Int64")})
    with pytest.raises(pkdp.ArgumentError, match="one number"):
        pkdp.read_release(written(tmp_path / "altered.parquet", release, table=two))


def test_noisy_counts_obey_the_second_threshold_only(tmp_path):
    frame = pd.DataFrame({"u": range(500)})
    noisy = frame.pkdp.count(unit="u", attacker=ATTACKER, k=10, noise=pkdp.GeometricNoise(1.0), release_threshold=100)
    for value, fine in ((99, False), (100, True)):
        table = pd.DataFrame({"count": pd.array([value], dtype="Int64")})
        path = written(tmp_path / "release.parquet", noisy, table=table)
        if fine:
            assert pkdp.read_release(path).value == value
        else:
            with pytest.raises(pkdp.ArgumentError, match="below"):
                pkdp.read_release(path)


def test_files_that_are_no_releases_are_named_so(tmp_path):
    path = tmp_path / "plain.parquet"
    with pytest.raises(pkdp.ConfigError, match="cannot be read"):
        pkdp.read_release(path)
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(pkdp.ArgumentError, match="not a Parquet file"):
        pkdp.read_release(path)
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.raises(pkdp.ArgumentError, match="carries no certificate"):
        pkdp.read_release(path)


def test_a_file_that_cannot_be_written_is_an_error_that_names_it(release, tmp_path):
    with pytest.raises(pkdp.ConfigError, match="nowhere"):
        release.to_parquet(tmp_path / "nowhere" / "release.parquet")


def test_a_release_cannot_be_changed_through_its_table(release):
    table = release.table
    table.loc[0, "count"] = 999
    table.attrs["note"] = "mine"
    assert release.table["count"].iloc[0] == 30
    assert release.table.attrs == {"release_id": release.id}
    with pytest.raises(AttributeError):
        release.id = "other"


def test_value_is_of_a_count_only(release):
    with pytest.raises(pkdp.ArgumentError, match="table"):
        _ = release.value
    count = pd.DataFrame({"u": range(12)}).pkdp.count(unit="u", attacker=ATTACKER, k=13)
    assert count.value is None
    assert list(count.table.columns) == ["count"]


def test_the_error_is_known_from_the_mechanism():
    release = pd.DataFrame({"u": range(12)}).pkdp.count(
        unit="u", attacker=pkdp.AttackerModel(), noise=pkdp.GeometricNoise(0.5)
    )
    assert release.error.standard_deviation == pytest.approx(2.8, abs=0.1)
    assert release.error.suppression == "The count is given two-sided geometric noise with epsilon 0.5."


def test_a_notebook_shows_table_and_sentence(release):
    shown = release._repr_html_()
    assert "suppressed" in shown
    assert "&lt;z&gt;" in shown
    assert "<z>" not in shown
    assert release.id in shown
    assert "at most 10 % sure" in shown
    assert release.id in repr(release)


def test_a_missing_category_and_a_suppressed_count_are_told_apart_as_everywhere(capsys):
    frame = pd.DataFrame({"level": ["low"] * 30 + ["high"] * 5 + [None] * 25, "u": range(60)})
    terms = {"unit": "u", "k": 20, "attacker": pkdp.AttackerModel(p_max=0.1)}
    shown = frame.pkdp.histogram("level", domain=["low", "high", None], **terms)
    print_release(shown)
    texts = [repr(shown), shown._repr_html_(), capsys.readouterr().out, "\n".join(markdown_table(shown))]
    for text in texts:
        assert re.search(r"low\W.*30.*high\W.*suppressed.*\(missing\)\W.*25", text, re.DOTALL), text
        assert not re.search(r"NaN|NA\b|None", text.partition("ε =")[0]), text


def test_a_notebook_on_a_telephone_breaks_the_id(release):
    (around,) = re.findall(rf"<p style=\"([^\"]*)\"><small>Release {release.id}", release._repr_html_())
    assert "overflow-wrap:anywhere" in around


@pytest.mark.parametrize(
    "domain",
    [
        [1, 2],
        [1, None],
        [True, False],
        [True, None],
        [1.5, None],
        ["x", None],
        pd.to_datetime(["2020-01-01", "2020-01-02"]),
        pd.to_datetime(["2020-01-01", "2020-01-02"]).tz_localize("Europe/Oslo"),
        pd.Series(pd.to_datetime(["2020-01-01"])).dt.date,
    ],
    ids=str,
)
def test_every_kind_of_key_survives_the_file(domain):
    domain = list(domain)
    values = [value for value in domain if value is not None]
    frame = pd.DataFrame({"u": range(12), "c": pd.Series([values[0]] * 12)})
    if not isinstance(values[0], (str, bool, int, float, pd.Timestamp)):
        frame["c"] = frame["c"].astype("date32[pyarrow]")
    release = frame.pkdp.histogram("c", unit="u", attacker=ATTACKER, k=10, domain=domain)
    again = Release.from_bytes(release.to_bytes())
    pd.testing.assert_frame_equal(again.table, release.table)
    assert release.table["count"].tolist()[0] == 12
    assert again.verify()


@pytest.mark.parametrize("year", [1600, 2999])
def test_instants_of_a_zone_beyond_nanoseconds_are_published_and_read_back(year):
    instants = pd.DatetimeIndex(np.array([f"{year}-06-01T12:00"] * 40, dtype="datetime64[us]")).tz_localize("UTC")
    frame = pd.DataFrame({"u": range(40), "at": instants.tz_convert("Asia/Tokyo")})
    release = pkdp.histogram(frame, "at", unit="u", k=30, attacker=pkdp.AttackerModel(p_max=0.05))
    assert release.table["at"].tolist() == [frame["at"][0]]
    assert pkdp.Release.from_bytes(release.to_bytes()).to_bytes() == release.to_bytes()
