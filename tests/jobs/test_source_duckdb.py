from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import date
from pathlib import Path

import duckdb
import pytest
from source_jobs import job_of
from thorough import thinned

from pkdp_pipeline.errors import ConfigError, TemporaryError
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.tables import PeriodTable

DAY = date(2013, 1, 2)
AT = PeriodTable(column="at")
DUCKDB1 = Path(__file__).parents[2] / ".venv-duckdb1" / "bin" / "python"


@pytest.fixture
def warehouse(tmp_path):
    """A DuckDB file with a schema, tables of odd names and a view."""
    path = tmp_path / "warehouse.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA stats")
        connection.execute(
            "CREATE TABLE stats.visits AS SELECT * FROM (VALUES (DATE '2013-01-02', 1, 'x'), (DATE '2013-01-02', 2, "
            "NULL), (DATE '2013-01-03', 3, 'Secretville')) AS v(\"at\", n, t)"
        )
        connection.execute("CREATE VIEW stats.recent AS SELECT * FROM stats.visits WHERE n > 1")
        for name in ("a'; DROP TABLE visits; --", "Odd Name", "SELECT"):
            connection.execute(f'CREATE TABLE "{name}" AS SELECT DATE \'2013-01-02\' AS "at", 7 AS n')
    return path


def numbers(source, day=DAY):
    fetched = source.day(AT, day).project("n").fetchall()
    assert source.counts(AT, day, ()) == (len(fetched), 0)
    return sorted(n for (n,) in fetched)


@thinned(3)
@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ({"table": "stats.visits"}, [1, 2]),
        ({"table": "stats.recent"}, [2]),
        ({"table": "a'; DROP TABLE visits; --"}, [7]),
        ({"table": "Odd Name"}, [7]),
        ({"table": "main.SELECT"}, [7]),
        ({"query": 'SELECT "at", n FROM stats.visits WHERE n < 2'}, [1]),
        ({"query": "WITH a AS (FROM stats.visits) SELECT * FROM a -- all of them"}, [1, 2]),
    ],
)
def test_a_table_a_view_and_a_query_are_read(warehouse, what, expected):
    source = open_source(job_of({"duckdb": str(warehouse), **what}))
    try:
        assert numbers(source) == expected
    finally:
        source.close()
    with duckdb.connect(str(warehouse)) as connection:
        assert connection.execute("SELECT count(*) FROM stats.visits").fetchone() == (3,)


def test_a_table_says_its_newest_day_and_gives_frames_beside_macros_of_its_file(warehouse):
    with duckdb.connect(str(warehouse)) as connection:
        for name in ("max", "count", "count_star"):
            connection.execute(f"CREATE MACRO {name}(x := 0) AS 7")
    source = open_source(job_of({"duckdb": str(warehouse), "table": "stats.visits"}))
    try:
        assert source.columns == {"at": "date", "n": "number", "t": "text"}
        assert source.newest(AT, "at") == date(2013, 1, 3)
        assert source.pandas(AT, DAY, ["t"])["t"].isna().tolist() == [False, True]
        assert source.counts(AT, DAY, ("t",)) == (2, 1)
    finally:
        source.close()


@thinned(3)
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"table": "stats.nowhere"}, "table 'stats.nowhere' cannot be read"),
        ({"query": "SELECT nothing FROM stats.visits"}, "the query cannot be read"),
        ({"query": "SELECT FROM"}, "one SELECT"),
        ({"query": "SELECT 1; SELECT 2"}, "one SELECT"),
        ({"query": "WITH a AS (SELECT 1) INSERT INTO stats.visits SELECT NULL, 1, NULL FROM a"}, "one SELECT"),
        ({"query": 'SELECT "at", n, n FROM stats.visits'}, "two columns 'n'"),
    ],
)
def test_what_cannot_be_read_is_a_config_error_without_the_words_of_duckdb(warehouse, what, words):
    with pytest.raises(ConfigError, match=words) as caught:
        open_source(job_of({"duckdb": str(warehouse), **what}))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    for word in ("Binder", "Catalog", "Candidate", "LINE"):
        assert word not in str(caught.value)


def test_a_query_that_fails_on_its_rows_says_nothing_of_them(warehouse):
    query = "SELECT \"at\", CAST(coalesce(t, 'Secretville') AS INTEGER) AS n FROM stats.visits"
    source = open_source(job_of({"duckdb": str(warehouse), "query": query}))
    try:
        with pytest.raises(ConfigError, match="the query cannot be read to its end") as caught:
            source.counts(AT, DAY, ("n",))
    finally:
        source.close()
    assert "Secretville" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_file_that_is_missing_or_no_database_is_a_config_error(tmp_path):
    for name, content in (("none.duckdb", None), ("text.duckdb", b"at,n\n"), ("short.duckdb", b"12345678DUCK")):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ConfigError, match=name) as caught:
            open_source(job_of({"duckdb": str(path), "table": "t"}))
        assert caught.value.__context__ is None
    assert not (tmp_path / "none.duckdb").exists()


def test_a_file_that_another_process_writes_to_is_a_temporary_error(warehouse):
    program = "import duckdb, sys; file = duckdb.connect(sys.argv[1]); print('ready', flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program, str(warehouse)], **pipes) as other:
        assert other.stdout.readline() == b"ready\n"
        with pytest.raises(TemporaryError, match="in use"):
            open_source(job_of({"duckdb": str(warehouse), "table": "stats.visits"}))
        other.stdin.close()
    with duckdb.connect(str(warehouse)), pytest.raises(TemporaryError, match="in use"):
        open_source(job_of({"duckdb": str(warehouse), "table": "stats.visits"}))


def test_two_jobs_may_read_one_file(warehouse):
    first, second = (open_source(job_of({"duckdb": str(warehouse), "table": "stats.visits"})) for _ in range(2))
    assert numbers(first) == numbers(second) == [1, 2]
    first.close()
    assert numbers(second) == [1, 2]
    second.close()


@pytest.mark.dbt
def test_a_file_of_a_newer_duckdb_is_a_config_error_that_says_so(tmp_path):
    if duckdb.__version__.startswith("1."):
        pytest.skip("this is the older one.")
    path = tmp_path / "new.duckdb"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS newest (STORAGE_VERSION 'latest')")
        connection.execute("CREATE TABLE newest.t AS SELECT DATE '2013-01-02' AS at, 1 AS n")
    program = """
        import sys
        from pkdp_pipeline.errors import ConfigError
        from pkdp_pipeline.jobs.job import open_source
        from source_jobs import job_of
        try:
            open_source(job_of({"duckdb": sys.argv[1], "table": "t"}))
        except ConfigError as error:
            print(error)
    """
    ran = subprocess.run(
        [str(DUCKDB1), "-c", textwrap.dedent(program), str(path)],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": f"{Path(__file__).parent}:{Path(__file__).parents[2]}"},
    )
    assert "another version of DuckDB" in ran.stdout
    assert str(path) in ran.stdout


@thinned(2)
@pytest.mark.parametrize(
    ("what", "named"),
    [
        ({"table": "stats.recent"}, None),
        ({"table": "stats.few"}, "table 'stats.few' uses LIMIT: "),
        ({"query": "FROM stats.visits -- all"}, None),
        ({"query": "SELECT *, random() AS r FROM stats.few"}, "the query uses random(), LIMIT: "),
    ],
)
def test_a_source_whose_rows_are_linked_warns(warehouse, capsys, what, named):
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("CREATE VIEW stats.few AS FROM stats.recent LIMIT 5")
    open_source(job_of({"duckdb": str(warehouse), **what})).close()
    warning = capsys.readouterr().err
    assert warning == "" if named is None else f"warning: source {str(warehouse)!r}: {named}" in warning
