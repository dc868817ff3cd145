from __future__ import annotations

import decimal
import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from public_releases import plain, release, releases, rows, seal
from thorough import few, thinned

from pkdp_pipeline.errors import ConfigError, TemporaryError
from pkdp_pipeline.extras.connect.databases import in_duckdb
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.outputs import check_outputs, replace_period, write_outputs

DAY = date(2020, 1, 1)
NEXT = date(2020, 1, 2)
TOWNS = {"town": ["Ås", "Bø", None]}


@pytest.fixture
def job(job_file, basic):
    return load_job(job_file(basic + '    duckdb = "public.duckdb"\n'.lstrip()))


@pytest.fixture
def ask(job):
    """Ask the job's DuckDB file."""

    def run(sql, *values):
        with duckdb.connect(job.output.duckdb) as connection:
            return connection.execute(sql, list(values)).fetchall()

    return run


def write(job, day, released):
    write_outputs(job, day, [(job.release[0], released)])


def test_a_day_is_a_set_of_rows_with_its_release_and_its_sentence(job, ask):
    released = release(TOWNS, [7, None, 5])
    write(job, DAY, released)
    write(job, NEXT, release(TOWNS, [6, 6, 6]))
    assert ask("SELECT period, town, count, release_id FROM people_by_town WHERE period = $1 ORDER BY town", DAY) == [
        (DAY, "Bø", None, released.id),
        (DAY, "Ås", 7, released.id),
        (DAY, None, 5, released.id),
    ]
    kinds = dict(ask("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'people_by_town'"))
    assert kinds == {"period": "DATE", "town": "VARCHAR", "count": "BIGINT", "release_id": "VARCHAR"}
    assert ask("SELECT dataset, name, release_id, sentence, certificate FROM pkdp_releases WHERE period = $1", DAY) == [
        ("visits", "people_by_town", released.id, released.certificate.sentence(), released.certificate.to_json())
    ]
    check_outputs(job)


def test_writing_again_restores_the_rows_and_a_revision_replaces_them(job, ask):
    released, revised = release(TOWNS, [7, None, 5]), release(TOWNS, [8, None, 5])
    write(job, DAY, released)
    ask("DELETE FROM people_by_town WHERE town = 'Ås'")
    for again in (released, released, revised):
        write(job, DAY, again)
        assert sorted(ask("SELECT count, release_id FROM people_by_town"), key=str) == sorted(
            [(count, again.id) for count in ([7, None, 5] if again is released else [8, None, 5])], key=str
        )
        assert ask("SELECT release_id FROM pkdp_releases") == [(again.id,)]


@pytest.mark.slow
def test_a_replay_without_its_source_restores_rows_and_files(job, ask):
    released = run_job(job, DAY).releases[0].release
    written_rows = ask("FROM people_by_town")
    assert written_rows == [(DAY, town, count, released.id) for town, count in rows(released)]
    ask("DELETE FROM people_by_town")
    ask("DROP TABLE pkdp_releases")
    (Path(job.output.directory) / "2020-01-01" / "people_by_town.parquet").unlink()
    Path(job.source.files[0]).unlink()
    assert run_job(job, DAY).replayed
    assert ask("FROM people_by_town") == written_rows
    assert ask("SELECT release_id FROM pkdp_releases") == [(released.id,)]
    assert (Path(job.output.directory) / "2020-01-01" / "people_by_town.parquet").exists()


def test_a_table_of_something_else_stops_a_run_before_it_charges(job, ask):
    ask("CREATE TABLE people_by_town (a INTEGER)")
    with pytest.raises(ConfigError, match="lacks the columns"):
        run_job(job, DAY)
    assert not Path(job.ledger).exists()


NOISED = 'k = 5\nbelow = "noise"\nnoise = { epsilon = 0.5 }\ndomain = ["Ås", "Bø", "Secretville"]'


def test_which_counts_are_exact_is_a_column_of_booleans(job_file, basic, ask):
    text = basic + 'duckdb = "public.duckdb"\n'
    job = load_job(job_file(text.replace("k = 5", NOISED)))
    table = run_job(job, DAY).releases[0].release.table
    assert ask("SELECT town, count, exact FROM people_by_town") == list(table.itertuples(index=False, name=None))
    assert table["exact"].tolist() == [True, True, False]
    kinds = ask("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'people_by_town'")
    assert kinds[2:] == [("count", "BIGINT"), ("exact", "BOOLEAN"), ("release_id", "VARCHAR")]
    check_outputs(job)
    for other in (text, text.replace("k = 5", NOISED.replace('below = "noise"', "release_threshold = 9"))):
        with pytest.raises(ConfigError, match="drop it, so that pkdp backfill"):
            check_outputs(load_job(job_file(other)))
    ask("DROP TABLE people_by_town")
    assert run_job(job, DAY).replayed
    assert ask("SELECT count, exact FROM people_by_town")[2] == (table["count"].iloc[2], False)


def test_a_release_without_rows_leaves_only_its_entry(job, ask):
    write(job, DAY, release({"town": ["Ås"]}, [7]))
    nothing = seal(pd.DataFrame({"town": pd.Series([], dtype="str"), "count": pd.array([], dtype="Int64")}))
    write(job, DAY, nothing)
    assert ask("SELECT count(*) FROM people_by_town") == [(0,)]
    assert ask("SELECT release_id FROM pkdp_releases") == [(nothing.id,)]
    check_outputs(job)


@given(released=releases())
@settings(max_examples=few(25))
def test_every_kind_of_key_comes_back_as_it_is_in_the_release(tmp_path_factory, released):
    folder = tmp_path_factory.mktemp("table")
    (folder / "job.toml").write_text(
        'dataset = "visits"\nsource = "x.parquet"\nperiod = { column = "day" }\nunit = "person"\n'
        'ledger = "ledger.sqlite"\n[attacker]\np_max = 0.5\n[[release]]\nname = "select"\nby = "town"\nk = 5\n'
        '[output]\ndirectory = "out"\nduckdb = "public.duckdb"\nschema = "Order"\n',
        encoding="utf-8",
    )
    job = load_job(folder / "job.toml")
    in_duckdb(job, lambda store: replace_period(store, job, DAY, [("select", released)]), writing=True)
    with duckdb.connect(job.output.duckdb) as connection:
        read = connection.sql('SELECT * EXCLUDE (period, release_id) FROM "Order"."select"').to_arrow_table()
    written_rows = [tuple(map(plain, row.values())) for row in read.to_pylist()]
    assert list(map(_naive, written_rows)) == list(map(_naive, rows(released)))


def _naive(row):
    return tuple(pd.Timestamp(value) if hasattr(value, "hour") else value for value in row)


@thinned(4)
@pytest.mark.parametrize(
    ("first", "then", "kind", "expected"),
    [
        ([1, None], [2**63 + 1, 4], "HUGEINT", [1, 2**63 + 1, 4]),
        ([1, 2], [0.5, None], "DOUBLE", [1.0, 2.0, 0.5]),
        ([0.5, 1.5], [3, 4], "DOUBLE", [0.5, 1.5, 3.0, 4.0]),
        ([1, 2], [decimal.Decimal("0.25")], "DECIMAL(21,2)", [1, 2, decimal.Decimal("0.25")]),
        (
            [decimal.Decimal("12.5")],
            [decimal.Decimal("0.125")],
            "DECIMAL(5,3)",
            [decimal.Decimal("12.5"), decimal.Decimal("0.125")],
        ),
        (
            [pd.Timestamp("2020-01-01 10:00:00.000001")],
            [pd.Timestamp("2020-01-01 10:00:00.000000001")],
            "TIMESTAMP_NS",
            None,
        ),
    ],
)
def test_a_column_becomes_wider_where_another_days_keys_need_it(job, ask, first, then, kind, expected):
    write(job, DAY, release({"town": first}, [5] * len(first)))
    write(job, NEXT, release({"town": then}, [6] * len(then)))
    assert ask("SELECT data_type FROM duckdb_columns() WHERE column_name = 'town'") == [(kind,)]
    if expected is not None:
        assert sorted(value for (value,) in ask("SELECT town FROM people_by_town WHERE town IS NOT NULL")) == sorted(
            expected
        )
    assert ask("SELECT count(*) FROM people_by_town") == [(len(first) + len(then),)]
    check_outputs(job)


@thinned(3)
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (["Ås"], [1]),
        ([2**60 + 1], [0.5]),
        ([True], [1]),
        ([decimal.Decimal("0.1")], [0.5]),
        ([DAY], ["2020"]),
        ([decimal.Decimal("1" * 30)], [decimal.Decimal("0." + "1" * 20)]),
    ],
)
def test_keys_that_would_not_stay_what_they_are_are_refused_and_the_old_day_stays(job, ask, first, then):
    write(job, DAY, release({"town": first}, [5]))
    before = ask("FROM people_by_town")
    with pytest.raises(ConfigError, match="has the column changed in the source"):
        write(job, NEXT, release({"town": then}, [6]))
    assert ask("FROM people_by_town") == before


def test_a_table_of_something_else_is_refused_before_anything_is_charged(job, ask):
    ask("CREATE TABLE people_by_town (a INTEGER)")
    with pytest.raises(ConfigError, match="lacks the columns"):
        check_outputs(job)
    ask("DROP TABLE people_by_town")
    ask("CREATE VIEW people_by_town AS SELECT 1 AS period")
    with pytest.raises(ConfigError, match="lacks the columns"):
        check_outputs(job)
    ask("DROP VIEW people_by_town")
    ask("CREATE TABLE people_by_town (period DATE, town VARCHAR, count BIGINT, release_id VARCHAR)")
    check_outputs(job)  # made by the curator, who may want to grant rights on it
    ask("INSERT INTO people_by_town VALUES ('2020-01-01', 'Ås', 1, 'mine')")
    with pytest.raises(ConfigError, match="rows that 'pkdp_releases' does not know"):
        check_outputs(job)
    ask("DELETE FROM people_by_town")
    ask("CREATE TABLE pkdp_releases (a INTEGER)")
    with pytest.raises(ConfigError, match="of something else"):
        check_outputs(job)


def test_rows_of_another_data_set_are_refused(job, job_file, basic, ask):
    write(job, DAY, release(TOWNS, [7, None, 5]))
    text = basic.replace('dataset = "visits"', 'dataset = "trips"').replace('directory = "out"', 'directory = "trips"')
    other = load_job(job_file(text + 'duckdb = "public.duckdb"\n'))
    with pytest.raises(ConfigError, match="releases of the data set 'visits'"):
        check_outputs(other)
    with pytest.raises(ConfigError, match="releases of the data set 'visits'"):
        write(other, DAY, release(TOWNS, [1, 2, 3]))
    same = load_job(job_file(text.replace('"trips"\nsource', '"VISITS"\nsource') + 'duckdb = "public.duckdb"\n'))
    check_outputs(same)


@pytest.mark.parametrize(
    ("by", "message"), [('"Release_ID"', "name of the table's own"), ('["a", "A"]', "letter case"), ('"rowid"', "own")]
)
def test_columns_that_a_table_cannot_have_are_refused(job_file, basic, by, message):
    job = load_job(job_file(basic.replace('by = "town"', f"by = {by}") + 'duckdb = "public.duckdb"\n'))
    with pytest.raises(ConfigError, match=message):
        check_outputs(job)


def test_a_file_that_another_program_holds_is_temporary(job):
    write(job, DAY, release(TOWNS, [7, None, 5]))
    code = f"import duckdb, sys; c = duckdb.connect({job.output.duckdb!r}); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(TemporaryError, match="another program") as caught:
            check_outputs(job)
        assert caught.value.__context__ is None
        with pytest.raises(TemporaryError):
            write(job, NEXT, release(TOWNS, [7, None, 5]))
        holder.stdin.close()
    check_outputs(job)


def test_what_is_no_duckdb_file_is_refused(job):
    with open(job.output.duckdb, "w", encoding="utf-8") as file:
        file.write("town,count\n" * 1000)
    with pytest.raises(ConfigError, match="not a DuckDB file") as caught:
        check_outputs(job)
    assert caught.value.__context__ is None


def test_keys_that_duckdb_cannot_hold_are_refused_with_the_way_out(job):
    import pyarrow as pa

    wide = pd.DataFrame({"town": pd.Series([decimal.Decimal("1" * 40)], dtype=pd.ArrowDtype(pa.decimal256(40, 0)))})
    wide["count"] = pd.array([5], dtype="Int64")
    with pytest.raises(ConfigError, match=r"remove output\.duckdb"):
        write(job, DAY, seal(wide))
    fine = release({"town": [pd.Timestamp("2020-01-01 10:00:00.000000001", tz="UTC")]}, [5])
    with pytest.raises(ConfigError, match="nanoseconds"):
        write(job, DAY, fine)


def test_moments_that_nanoseconds_cannot_reach_are_refused_without_being_quoted(job, ask):
    write(job, DAY, release({"town": [pd.Timestamp("2020-01-01 10:00:00.000000001")]}, [5]))
    with pytest.raises(ConfigError, match="has the column changed") as caught:
        write(job, NEXT, release({"town": [pd.Timestamp("1500-01-01")]}, [5]))
    assert "1500" not in str(caught.value)
    assert caught.value.__context__ is None
    assert ask("SELECT count(*) FROM people_by_town") == [(1,)]
    ask("DROP TABLE people_by_town")
    write(job, DAY, release({"town": [pd.Timestamp("1500-01-01")]}, [5]))
    with pytest.raises(ConfigError) as caught:
        write(job, NEXT, release({"town": [pd.Timestamp("2020-01-01 10:00:00.000000001")]}, [5]))
    assert "1500" not in str(caught.value)
    assert caught.value.__context__ is None


def test_texts_with_odd_characters_come_back(job, ask):
    odd = ["a\x00b", "\u202e", "💶", "'; DROP TABLE pkdp_releases; --"]
    write(job, DAY, release({"town": odd}, [5, 6, 7, 8]))
    assert [town for (town,) in ask("SELECT town FROM people_by_town")] == odd
