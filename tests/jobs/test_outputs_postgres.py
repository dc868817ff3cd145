from __future__ import annotations

import itertools
from datetime import date
from urllib.parse import quote

import pandas as pd
import psycopg
import pytest
from hypothesis import given, settings
from public_releases import plain, release, releases, rows

from pkdp_pipeline.errors import ConfigError, TemporaryError
from pkdp_pipeline.extras.connect import databases
from pkdp_pipeline.extras.connect.databases import in_postgres
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.outputs import check_outputs, replace_period, write_outputs

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("postgres")]

DAY = date(2020, 1, 1)
NEXT = date(2020, 1, 2)
TOWNS = {"town": ["Ås", "Bø", None]}
OUTPUT = 'postgres = "${PKDP_PUBLIC}"\nschema = "Stats"\n'


@pytest.fixture
def job(job_file, basic, postgres_url, monkeypatch):
    monkeypatch.setenv("PKDP_PUBLIC", postgres_url)
    return load_job(job_file(basic + OUTPUT))


@pytest.fixture
def ask(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute('DROP SCHEMA IF EXISTS "Stats" CASCADE')

        def run(sql, *values):
            cursor = connection.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []

        yield run


def write(job, day, released):
    write_outputs(job, day, [(job.release[0], released)])


def test_a_day_is_replaced_as_a_whole_and_restored_by_writing_again(ask, job):
    released, revised = release(TOWNS, [7, None, 5]), release(TOWNS, [8, None, 5])
    check_outputs(job)
    assert ask("SELECT 1 FROM pg_namespace WHERE nspname = 'Stats'") == []  # a check writes nothing
    write(job, DAY, released)
    write(job, NEXT, released)
    ask('DELETE FROM "Stats".people_by_town WHERE town = %s', "Ås")
    for again in (released, revised):
        write(job, DAY, again)
        written_rows = ask('SELECT town, count, release_id FROM "Stats".people_by_town WHERE period = %s', DAY)
        assert written_rows == [(town, count, again.id) for town, count in rows(again)]
    assert len(ask('SELECT * FROM "Stats".people_by_town')) == 5  # the other day lost a row, and was not written
    assert ask('SELECT dataset, name, release_id, sentence FROM "Stats".pkdp_releases WHERE period = %s', DAY) == [
        ("visits", "people_by_town", revised.id, revised.certificate.sentence())
    ]
    check_outputs(job)


def test_no_schema_before_that_of_the_server_stands_for_it(ask, job_file, basic, postgres_url, monkeypatch):
    ask('CREATE SCHEMA own; CREATE TABLE own.pg_class (oid oid, relkind "char", relnamespace oid, relname name)')
    ask("CREATE FUNCTION own.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'")
    monkeypatch.setenv("PKDP_PUBLIC", f"{postgres_url}&options=-csearch_path%3Down,pg_catalog,public")
    text = (basic + OUTPUT).replace('"out/ledger.sqlite"', '"${PKDP_PUBLIC}"')
    for _ in range(2):
        run_job(load_job(job_file(text)), DAY)
    assert len(ask('SELECT * FROM "Stats".people_by_town')) == 2


def test_which_counts_are_exact_is_a_column_of_booleans(ask, job_file, basic, postgres_url, monkeypatch):
    monkeypatch.setenv("PKDP_PUBLIC", postgres_url)
    noised = 'k = 5\nbelow = "noise"\nnoise = { epsilon = 0.5 }\ndomain = ["Ås", "Bø", "Secretville"]'
    job = load_job(job_file(basic.replace("k = 5", noised) + OUTPUT))
    table = run_job(job, DAY).releases[0].release.table
    written_rows = ask('SELECT town, count, exact, pg_typeof(exact)::text FROM "Stats".people_by_town')
    assert written_rows == [(*row, "boolean") for row in table.itertuples(index=False, name=None)]
    check_outputs(job)
    with pytest.raises(ConfigError, match="drop it, so that pkdp backfill"):
        check_outputs(load_job(job_file(basic + OUTPUT)))


def test_a_reader_sees_the_old_day_until_the_new_one_is_whole(ask, job, postgres_url, monkeypatch):
    write(job, DAY, release(TOWNS, [7, None, 5]))
    counts = []
    insert = databases._PostgresStore.insert

    def look(*arguments):
        insert(*arguments)
        counts.append(sorted(ask('SELECT count FROM "Stats".people_by_town'), key=str))

    with monkeypatch.context() as patch:
        patch.setattr(databases._PostgresStore, "insert", look)
        write(job, DAY, release(TOWNS, [8, 8, 8]))
    assert counts == [[(5,), (7,), (None,)]]
    assert ask('SELECT count FROM "Stats".people_by_town') == [(8,), (8,), (8,)]


def test_every_kind_of_key_comes_back_as_it_is_in_the_release(ask, job):
    numbers = itertools.count()

    @given(released=releases())
    @settings(max_examples=60)
    def comes_back(released):
        name = f"Table {next(numbers)}"
        in_postgres(job, lambda store: replace_period(store, job, DAY, [(name, released)]), writing=True)
        columns = ", ".join('"{}"'.format(str(column).replace('"', '""')) for column in released.table)
        written_rows = ask(f'SELECT {columns} FROM "Stats"."{name}"')
        assert [tuple(map(_read, row)) for row in written_rows] == [tuple(map(_read, row)) for row in rows(released)]

    comes_back()


def _read(value):
    return plain(pd.Timestamp(value) if hasattr(value, "hour") else value)


@pytest.mark.parametrize(
    ("first", "then", "kind"),
    [([1, None], [2**63 + 1, 4], "numeric"), ([1, 2], [0.5], "double precision"), ([0.5], [3], "double precision")],
)
def test_a_column_becomes_wider_where_another_days_keys_need_it(ask, job, first, then, kind):
    write(job, DAY, release({"town": first}, [5] * len(first)))
    write(job, NEXT, release({"town": then}, [6] * len(then)))
    ((column_type,),) = ask("SELECT data_type FROM information_schema.columns WHERE column_name = 'town'")
    assert column_type == kind
    assert {value for (value,) in ask('SELECT town FROM "Stats".people_by_town')} == {*first, *then}


def test_keys_that_would_not_stay_what_they_are_are_refused_and_the_old_day_stays(ask, job):
    write(job, DAY, release({"town": [2**60 + 1]}, [5]))
    for key in (0.5, "Ås", DAY):
        with pytest.raises(ConfigError, match="has the column changed in the source"):
            write(job, NEXT, release({"town": [key]}, [6]))
    with pytest.raises(ConfigError, match="nanoseconds"):
        write(job, NEXT, release({"town": [pd.Timestamp("2020-01-01 10:00:00.000000001")]}, [6]))
    with pytest.raises(ConfigError, match=r"U\+0000"):
        write(job, NEXT, release({"town": ["a\x00"]}, [6]))
    assert ask('SELECT town, count FROM "Stats".people_by_town') == [(2**60 + 1, 5)]


def test_tables_of_something_else_are_refused_before_anything_is_charged(ask, job, job_file, basic):
    ask('CREATE SCHEMA "Stats"')
    ask('CREATE TABLE "Stats".people_by_town (period date, town varchar(9), count bigint, release_id text)')
    with pytest.raises(ConfigError, match="lacks the columns"):
        check_outputs(job)
    ask('ALTER TABLE "Stats".people_by_town ALTER COLUMN town TYPE text')
    check_outputs(job)
    ask("INSERT INTO \"Stats\".people_by_town VALUES ('2020-01-01', 'Ås', 1, 'mine')")
    with pytest.raises(ConfigError, match="rows that 'pkdp_releases' does not know"):
        check_outputs(job)
    ask('DROP TABLE "Stats".people_by_town')
    write(job, DAY, release(TOWNS, [7, None, 5]))
    text = basic.replace('dataset = "visits"', 'dataset = "trips"').replace('directory = "out"', 'directory = "trips"')
    with pytest.raises(ConfigError, match="releases of the data set 'visits'"):
        check_outputs(load_job(job_file(text + OUTPUT)))


def test_names_that_postgresql_cannot_have_are_refused(ask, job, job_file, basic):
    long = load_job(job_file(basic.replace('name = "people_by_town"', f'name = "{"a" * 64}"') + OUTPUT))
    with pytest.raises(ConfigError, match="longer than 63 bytes"):
        check_outputs(long)
    with pytest.raises(ConfigError, match="table's own"):
        check_outputs(load_job(job_file(basic.replace('by = "town"', 'by = "ctid"') + OUTPUT)))
    with pytest.raises(ConfigError, match="ledgers"):
        check_outputs(load_job(job_file(basic + OUTPUT.replace("Stats", "pkdp"))))


def test_errors_name_neither_the_password_nor_the_servers_words(cluster, ask, job_file, basic, monkeypatch):
    secret = "se same"
    places = {
        cluster.url("ledger", secret): ConfigError,
        cluster.url("nowhere"): ConfigError,
        f"postgresql://pkdp:{quote(secret)}@/ledger?host=/nowhere": TemporaryError,
        f"postgresql://pkdp:{quote(secret)}@localhost:1/ledger": TemporaryError,
    }
    for address, kind in places.items():
        monkeypatch.setenv("PKDP_PUBLIC", address)
        with pytest.raises(kind, match=r"output\.postgres, the database") as caught:
            check_outputs(load_job(job_file(basic + OUTPUT)))
        assert "sesame" not in str(caught.value)
        assert secret not in str(caught.value)
        assert "FATAL" not in str(caught.value)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None


def test_a_locked_table_is_temporary_and_missing_rights_are_not(ask, job, postgres_url, monkeypatch):
    write(job, DAY, release(TOWNS, [7, None, 5]))
    monkeypatch.setattr(databases, "_LOCK_SECONDS", 1)
    with psycopg.connect(postgres_url) as blocker:
        blocker.execute('LOCK TABLE "Stats".people_by_town')
        with pytest.raises(TemporaryError):
            write(job, DAY, release(TOWNS, [8, None, 5]))
    ask("DROP ROLE IF EXISTS stranger")
    ask("CREATE ROLE stranger LOGIN PASSWORD 'abc'")
    try:
        monkeypatch.setenv(
            "PKDP_PUBLIC", postgres_url.replace("pkdp:", "stranger:").replace(quote("sesame & thyme"), "abc")
        )
        with pytest.raises(ConfigError, match="grant"):
            check_outputs(job_of := load_job(job.file))
        assert "abc" not in repr(job_of)
    finally:
        ask("DROP ROLE stranger")
    assert [count for (count,) in ask('SELECT count FROM "Stats".people_by_town')] == [7, None, 5]
