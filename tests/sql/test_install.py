"""install: any kind of database, again and again, from cursors and threads, and nothing left behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from contextlib import contextmanager

import duckdb
import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb import install
from pkdp_pipeline.sql import curator
from pkdp_pipeline.sql.curator import INTERNAL, MACROS, register

ATTACKER = pkdp.AttackerModel(p_max=0.1)
COUNT = "SELECT pkdp_count('events', k := 20)"
HISTOGRAM = "FROM pkdp_histogram('events', 'grp', k := 20)"
GROUPS = [(0, 34), (1, 33), (2, 33)]


def events(connection, name="events", people=100):
    connection.execute(f"CREATE TABLE {name} AS SELECT i AS uid, (i % 3)::TINYINT AS grp FROM range({people}) t(i)")


def p_max(connection):
    query = "SELECT certificate ->> '$.attacker.p_max' FROM pkdp_releases()"
    return [float(value) for (value,) in connection.execute(query).fetchall()]


@contextmanager
def installed():
    with duckdb.connect() as connection:
        events(connection)
        install(connection, attacker=ATTACKER, unit="uid")
        yield connection


@pytest.fixture
def file(tmp_path):
    path = str(tmp_path / "events.duckdb")
    with duckdb.connect(path) as connection:
        events(connection)
    return path


def test_installing_again_replaces_the_attacker(con):
    assert con.sql(HISTOGRAM).fetchall() == GROUPS
    for value in (0.2, 0.3):
        install(con, attacker=pkdp.AttackerModel(p_max=value), unit="uid")
        assert con.execute("FROM pkdp_releases()").fetchall() == []
        assert con.sql(HISTOGRAM).fetchall() == GROUPS
        assert p_max(con) == [value]


def test_installing_again_certifies_what_a_ledger_holds_for_the_new_attacker(con):
    with pkdp.Ledger.open(":memory:") as ledger:
        for value in (0.2, 0.3):
            install(con, attacker=pkdp.AttackerModel(p_max=value), unit="uid", ledger=ledger, period="2020")
            assert con.sql(HISTOGRAM).fetchall() == GROUPS
            assert p_max(con) == [value]
        assert len(list(ledger.entries())) == 1


def test_people_whose_names_differ_by_spaces_are_refused_unless_they_are_said_to_differ():
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE events AS SELECT i || repeat(' ', j) AS uid, 'NO' AS grp FROM range(30) a(i), range(2) b(j)"
        )
        install(con, attacker=ATTACKER, unit="uid")
        with pytest.raises(duckdb.Error, match="only by spaces"):
            con.sql(HISTOGRAM).fetchall()
        install(con, attacker=ATTACKER, unit="uid", units="exact")
        assert con.sql(HISTOGRAM).fetchall() == [("NO", 60)]


def test_no_macro_stands_for_a_function_of_the_macros(con):
    con.execute("CREATE SCHEMA other; CREATE TABLE other.events AS SELECT uid, 3 AS grp FROM events")
    con.execute("CREATE MACRO current_schema() AS 'other'; CREATE MACRO current_schemas(x) AS ['other']")
    con.execute("CREATE MACRO query(text) AS TABLE SELECT 3 AS grp, 100 AS count")
    assert con.sql(HISTOGRAM).fetchall() == GROUPS
    con.execute("CREATE MACRO current_database() AS 7")
    install(con, attacker=ATTACKER, unit="uid")
    assert con.sql(HISTOGRAM).fetchall() == GROUPS


def test_a_file_is_reopened(file):
    with duckdb.connect(file) as con:
        install(con, attacker=ATTACKER, unit="uid")
        assert con.sql(HISTOGRAM).fetchall() == GROUPS
    with duckdb.connect(file) as con:
        with pytest.raises(duckdb.CatalogException, match="does not exist"):
            con.sql(HISTOGRAM)
        install(con, attacker=pkdp.AttackerModel(p_max=0.2), unit="uid")
        assert con.sql(HISTOGRAM).fetchall() == GROUPS
        assert p_max(con) == [0.2]


@pytest.mark.parametrize("before", [False, True])
def test_a_database_that_cannot_be_written(file, before):
    if before:
        with duckdb.connect(file) as con:
            install(con, attacker=ATTACKER, unit="uid")
            # What an older version may have left behind.
            con.execute("CREATE OR REPLACE MACRO pkdp_histogram(a, b, k := NULL) AS TABLE SELECT 'old' AS answer")
    with duckdb.connect(file, read_only=True) as con:
        install(con, attacker=ATTACKER, unit="uid")
        assert con.sql(HISTOGRAM).fetchall() == GROUPS
        left = con.sql("SELECT DISTINCT database_name FROM duckdb_functions() WHERE function_name = 'pkdp_histogram'")
        assert sorted(left.fetchall()) == sorted([("temp",), *([("events",)] if before else [])])


def test_cursors_have_what_was_installed(shared):
    with shared.cursor() as cursor:
        assert cursor.execute(HISTOGRAM).fetchall() == GROUPS
        assert p_max(cursor) == [0.1]
    assert shared.sql(HISTOGRAM).fetchall() == GROUPS


def test_installing_on_a_cursor_that_is_closed_later(collector, con):
    cursor = con.cursor()
    install(cursor, attacker=pkdp.AttackerModel(p_max=0.2), unit="uid")
    assert cursor.execute(HISTOGRAM).fetchall() == GROUPS
    assert p_max(cursor) == [0.2]
    # The connection keeps its own.
    assert con.sql(HISTOGRAM).fetchall() == GROUPS
    assert p_max(con) == [0.1]
    cursor.close()
    del cursor
    gc.collect()
    other = con.cursor()
    with pytest.raises(duckdb.Error, match=r"ConfigError: .*install"):
        other.execute(HISTOGRAM)
    other.close()
    assert con.sql(HISTOGRAM).fetchall() == GROUPS


def test_two_connections_of_one_file_have_attackers_of_their_own(file):
    with duckdb.connect(file) as first, duckdb.connect(file) as second:
        for connection, value in ((first, 0.1), (second, 0.2)):
            install(connection, attacker=pkdp.AttackerModel(p_max=value), unit="uid")
        for connection, value in ((first, 0.1), (second, 0.2)):
            assert connection.sql(HISTOGRAM).fetchall() == GROUPS
            assert p_max(connection) == [value]


def test_wherever_the_connection_stands(con):
    con.execute("ATTACH ':memory:' AS other; CREATE SCHEMA other.deep; CREATE SCHEMA side")
    events(con, "other.deep.events", people=60)
    events(con, "side.events", people=80)
    installed_for = "events"
    for place, table, people, name in (
        ("memory.main", "events", 100, "events"),
        ("other", "memory.main.events", 100, "events"),
        ("other", "memory.events", 100, "events"),
        ("side", "events", 80, "side.events"),
        ("memory.main", "SIDE.Events", 80, "side.events"),
        ("other.deep", "events", 60, "other.deep.events"),
        ("memory.main", "other.deep.events", 60, "other.deep.events"),
        ("other", '"other"."deep"."EVENTS"', 60, "other.deep.events"),
    ):
        if name != installed_for:
            con.execute("USE memory.main")
            install(con, attacker=ATTACKER, unit="uid")
            installed_for = name
        con.execute(f"USE {place}")
        assert con.execute(f"SELECT pkdp_count('{table}', k := 20)").fetchall() == [(people,)]
        assert con.execute("SELECT table_name FROM pkdp_releases()").fetchall() == [(name,)]


def test_a_schema_without_the_table_leaves_that_of_main(con):
    con.execute("CREATE SCHEMA side; USE side")
    assert con.execute(COUNT).fetchall() == [(100,)]


def test_names_with_dots_and_quotes(shared):
    shared.execute('CREATE SCHEMA "a.b"; CREATE TABLE "a.b"."x""y" AS FROM events')
    assert shared.execute("""SELECT pkdp_count('"a.b"."X""Y"', k := 20)""").fetchall() == [(100,)]
    assert shared.execute("SELECT table_name FROM pkdp_releases()").fetchall() == [('"a.b"."x""y"',)]


def test_names_differ_where_duckdb_tells_them_apart(shared):
    """Letter case is that of ASCII letters: the Kelvin sign is no k, and an umlaut no other umlaut."""
    shared.execute('CREATE TABLE "\u00c4rzte" AS SELECT uid, grp AS "\u212a" FROM events')
    assert shared.execute("SELECT pkdp_count('\u00c4RZTE', k := 20)").fetchall() == [(100,)]
    for question in ("SELECT pkdp_count('\u00e4rzte', k := 20)", "FROM pkdp_histogram('\u00c4rzte', 'k', k := 20)"):
        with pytest.raises(duckdb.InvalidInputException, match=r"ArgumentError: (table|by names column 'k'),? "):
            shared.execute(question)


@pytest.mark.parametrize(
    "name", ["", " ", ".", "a.", ".a", "a..b", "a.b.c.d", '"a', 'a"b', '""', "a.b; DROP TABLE events"]
)
def test_what_is_no_name_is_refused(refusing, name):
    with pytest.raises(duckdb.InvalidInputException, match="ArgumentError: table"):
        refusing.execute(f"SELECT pkdp_count('{name}', k := 20)")


def test_views_are_read(shared):
    shared.execute("CREATE VIEW half AS FROM events WHERE uid < 50")
    assert shared.execute("SELECT pkdp_count('half', k := 20)").fetchall() == [(50,)]


def test_only_the_catalog_is_read(con, tmp_path):
    frame = pd.DataFrame({"uid": range(50), "grp": 1})
    frame.to_parquet(tmp_path / "file.parquet")
    con.register("registered", frame)
    con.execute("CREATE TEMP TABLE passing AS FROM events")
    con.execute("CREATE TEMP TABLE events AS SELECT 1 AS uid, 1 AS grp")  # hides the table from the session only
    for name in ("frame", "registered", "passing", "temp.main.passing", "duckdb_columns", "eventz"):
        with pytest.raises(duckdb.InvalidInputException, match=r"is not in the catalog.*CREATE TABLE"):
            con.execute(f"SELECT pkdp_count('{name}', k := 20)")
    with pytest.raises(duckdb.InvalidInputException, match="Did you mean 'events'"):
        con.execute("SELECT pkdp_count('eventz', k := 20)")
    for name in (tmp_path / "file.parquet", "information_schema.tables", "system.information_schema.tables"):
        with pytest.raises(duckdb.InvalidInputException, match="ArgumentError: table"):
            con.execute(f"SELECT pkdp_count('{name}', k := 20)")
    assert con.execute(COUNT).fetchall() == [(100,)]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("raws", "raw.raws"),
        ("raw.rawz", "raw.raws"),
        ("raw.events", "events"),
    ],
)
def test_a_table_is_suggested_under_a_name_that_finds_it(shared, name, meant):
    shared.execute("CREATE SCHEMA IF NOT EXISTS raw; CREATE TABLE IF NOT EXISTS raw.raws AS FROM events")
    with pytest.raises(duckdb.InvalidInputException, match=f"Did you mean '{meant}'"):
        shared.execute(f"SELECT pkdp_count('{name}', k := 20)")
    shared.execute(f"SELECT pkdp_count('{meant}', k := 20)")


def test_what_is_not_committed_is_not_published(con):
    con.execute("BEGIN")
    con.execute("INSERT INTO events SELECT i, 1 FROM range(1000, 1100) t(i)")
    con.execute("CREATE TABLE later AS FROM events")
    with pytest.raises(duckdb.InvalidInputException, match="not committed"):
        con.execute("SELECT pkdp_count('later', k := 20)")
    con.execute("ROLLBACK")
    con.execute("BEGIN")
    con.execute("INSERT INTO events SELECT i, 1 FROM range(1000, 1100) t(i)")
    assert con.execute(COUNT).fetchall() == [(100,)]
    con.execute("ROLLBACK")


def test_other_threads(con):
    con.execute("SET threads = 4")
    con.execute("CREATE TABLE many AS FROM range(300_000)")
    assert con.execute(f"SELECT DISTINCT ({COUNT}) + 0 * max(range) FROM many GROUP BY range % 7").fetchall() == [
        (100,)
    ]
    answers, cursors = [], [con.cursor() for _ in range(4)]
    threads = [
        threading.Thread(target=lambda c=cursor: answers.append(c.execute(COUNT).fetchall())) for cursor in cursors
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for cursor in cursors:
        cursor.close()
    assert answers == [[(100,)]] * 4
    assert con.execute("SELECT count(*) FROM pkdp_releases()").fetchall() == [(1,)]


def test_a_transaction_would_take_the_macros_away(con):
    con.execute("BEGIN")
    with pytest.raises(pkdp.ConfigError, match="commit first"):
        install(con, attacker=ATTACKER, unit="uid")
    con.execute("ROLLBACK")
    assert con.sql(HISTOGRAM).fetchall() == GROUPS


def test_nothing_changes_when_installing_fails(con, monkeypatch):
    def script(name):
        if name == MACROS[-1]:
            return "CREATE OR REPLACE MACRO broken("
        return "CREATE OR REPLACE MACRO pkdp_histogram(a, b, k := NULL) AS TABLE SELECT 1 AS broken;"

    monkeypatch.setattr(curator, "_script", script)
    with pytest.raises(pkdp.ConfigError, match="ParserException"):
        install(con, attacker=pkdp.AttackerModel(p_max=0.2), unit="uid")
    monkeypatch.undo()
    names = con.sql("SELECT parameters FROM duckdb_functions() WHERE function_name = 'pkdp_histogram'").fetchall()
    assert all("filter" in parameters for (parameters,) in names)
    assert con.sql(HISTOGRAM).fetchall() == GROUPS
    assert p_max(con) == [0.1]
    install(con, attacker=ATTACKER, unit="uid")
    assert con.sql(HISTOGRAM).fetchall() == GROUPS


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"attacker": {"p_max": 0.1}}, "attacker must be an AttackerModel"),
        ({"ledger": "ledger.sqlite"}, "ledger must be a Ledger"),
        ({"unit": []}, "unit must be"),
        ({"unit": None}, "unit must be"),
        ({"period": "2013-02-30"}, "period"),
        ({"missing_unit": "maybe"}, "missing_unit must be one of"),
        ({"one_cell": "first"}, "order_by"),
        ({"order_by": "at"}, "order_by"),
    ],
)
def test_malformed_arguments_are_refused(refusing, arguments, rule):
    with pytest.raises(pkdp.ArgumentError, match=rule):
        install(refusing, **{"attacker": ATTACKER, "unit": "uid", **arguments})


def test_only_a_connection_takes_macros():
    with pytest.raises(pkdp.ArgumentError, match="con must be a DuckDB connection, not str"):
        install("events.duckdb", attacker=ATTACKER, unit="uid")
    closed = duckdb.connect()
    closed.close()
    with pytest.raises(pkdp.ConfigError, match="is it open"):
        install(closed, attacker=ATTACKER, unit="uid")


def test_each_row_and_several_columns_name_a_person(con):
    install(con, attacker=ATTACKER, unit=pkdp.EACH_ROW)
    assert con.sql(HISTOGRAM).fetchall() == GROUPS
    install(con, attacker=ATTACKER, unit=["uid", "grp"])
    assert con.sql(HISTOGRAM).fetchall() == GROUPS


def test_the_default_connection(collector):
    with duckdb.connect(":default:") as con:
        events(con, "default_events")
        install(con, attacker=ATTACKER, unit="uid")
        del con
        gc.collect()
        question = HISTOGRAM.replace("events", "default_events")
        assert duckdb.sql(question).fetchall() == GROUPS
        duckdb.default_connection().execute("DROP TABLE default_events")


def test_neither_the_connection_nor_its_ledger_is_kept(collector):
    connection = duckdb.connect()
    events(connection)
    install(connection, attacker=ATTACKER, unit="uid")
    assert connection.sql(HISTOGRAM).fetchall() == GROUPS
    registration = weakref.ref(curator._registrations[connection])
    watched = weakref.ref(connection)
    connection.close()
    del connection
    gc.collect()
    assert watched() is None
    assert registration() is None


def test_installing_again_lets_the_former_ledger_go(collector, con):
    registration = weakref.ref(curator._registrations[con])
    install(con, attacker=ATTACKER, unit="uid")
    gc.collect()
    assert registration() is None


def test_nothing_is_said_at_exit(file):
    # The file is free again when a connection is closed: another process opens it.
    con = duckdb.connect(file)
    install(con, attacker=ATTACKER, unit="uid")
    assert con.sql(HISTOGRAM).fetchall() == GROUPS
    con.close()
    script = f"""
import duckdb, pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb import install
con = duckdb.connect({file!r})
for value in (0.1, 0.2):
    install(con, attacker=pkdp.AttackerModel(p_max=value), unit="uid")
    print(con.sql({HISTOGRAM!r}).fetchall())
con.close()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{GROUPS}\n" * 2
    assert "leak" not in done.stderr
    assert "ResourceWarning" not in done.stderr


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        ("NULL", "must be a JSON object"),
        ("''", "must be a JSON object"),
        ("'[1]'", "must be a JSON object"),
        ("'{\"count\": '", "must be a JSON object"),
        ("repeat('[', 100000)", "must be a JSON object"),
        ("'{}'", "table is needed"),
        ('\'{"histogram": "grp"}\'', "table is needed"),
        ('\'{"table": "events"}\'', "a question has one of"),
        ('\'{"table": "events", "count": false}\'', "count must be true"),
        ('\'{"table": "events", "count": 1, "histogram": "grp"}\'', "count must be true"),
        ('\'{"count": true, "histogram": "grp", "table": "events"}\'', "a question has one of"),
        ('\'{"count": true, "count": true, "table": "events"}\'', "must be a JSON object"),
        ('\'{"count": true, "table": 7}\'', "table must be"),
        ('\'{"count": true, "table": "events", "kk": 7}\'', "unknown key 'kk'; did you mean 'k'"),
        ('\'{"count": true, "table": "events", "k": true}\'', "k must be a whole number"),
        ('\'{"count": true, "table": "events", "k": 20.0}\'', "k must be a whole number"),
        ('\'{"count": true, "table": "events", "k": "20"}\'', "k must be a whole number"),
        ('\'{"count": true, "table": "events", "domain": "[1]"}\'', "domain is about the cells"),
        ('\'{"count": true, "table": "events", "noise": true}\'', "noise must be a number"),
        ('\'{"count": true, "table": "events", "noise": Infinity}\'', "noise must be finite"),
        ('\'{"count": true, "table": "events", "filter": ["a"]}\'', "filter must be a text"),
        ('\'{"histogram": {"grp": 1}, "table": "events"}\'', "histogram must be"),
        ('\'{"histogram": ["grp", 1], "table": "events"}\'', "histogram must be"),
        ('\'{"histogram": "grp", "table": "events", "domain": [1]}\'', "domain must be a text"),
        ('\'{"histogram": "grp", "table": "events", "k_complement": 1}\'', "k_complement is about a count"),
    ],
)
@pytest.mark.parametrize("function", ["pkdp_plan", "pkdp_release"])
def test_the_functions_behind_the_macros_check_what_they_are_given(refusing, function, question, rule):
    with pytest.raises(duckdb.InvalidInputException, match=f"ArgumentError: .*{rule}"):
        refusing.execute(f"SELECT {function}({question})")
    assert refusing.execute("FROM pkdp_releases()").fetchall() == []


def test_errors_of_others_do_not_show_their_text(con):
    class Broken:
        def plan(self, spec):
            return (("grp", "TINYINT"),) if spec.histogram else ()

        def release(self, spec):
            raise RuntimeError("person 17")

        def published(self):
            raise RuntimeError("person 17")

    register(con, Broken())
    for query in (HISTOGRAM, COUNT, "FROM pkdp_releases()"):
        with pytest.raises(duckdb.InvalidInputException, match=r"could not be answered \(RuntimeError\)") as caught:
            con.execute(query).fetchall()
        assert "person" not in str(caught.value)


def test_a_view_that_cannot_be_read_does_not_quote_data(shared):
    shared.execute("CREATE VIEW odd AS SELECT uid, CAST('secret' || grp AS INTEGER) AS grp FROM events")
    with pytest.raises(duckdb.InvalidInputException, match=r"ConfigError: .* could not be counted") as caught:
        shared.execute("FROM pkdp_histogram('odd', 'grp', k := 20)").fetchall()
    assert "secret" not in str(caught.value)
    assert shared.execute("FROM pkdp_releases()").fetchall() == []


def test_the_names_are_these(shared):
    rows = shared.sql(
        "SELECT DISTINCT function_name, function_type FROM duckdb_functions() WHERE function_name LIKE 'pkdp%'"
    ).fetchall()
    assert {name for name, kind in rows if kind == "scalar"} == set(INTERNAL)
    assert {name for name, kind in rows if kind != "scalar"} == set(MACROS)
    assert ("pkdp_count", "macro") in rows
    assert ("pkdp_count", "table_macro") in rows
