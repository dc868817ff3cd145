"""Attempts to get more out of a gate than its policy allows: all are refused, and data and ledger stay as they were."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pytest
from analyst import Scene

from pkdp_pipeline.errors import ArgumentError, DifferencingError, PkdpError

#: Scans of tables, views, files, addresses and variables.
SCANS = [
    "SELECT * FROM events",
    "FROM events",
    "TABLE events",
    'SELECT * FROM "events"',
    'SELECT * FROM "EVENTS"',
    "SELECT * FROM people.main.events",
    "SELECT * FROM main.events",
    "SELECT * FROM adults",
    "SELECT * FROM hidden",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM 'people.csv'",
    "SELECT * FROM 'x.parquet'",
    "SELECT * FROM 'https://example.org/x.parquet'",
    "SELECT * FROM read_csv('people.csv')",
    "SELECT * FROM read_csv_auto('/etc/passwd', delim := ':')",
    "SELECT * FROM read_text('people.csv')",
    "SELECT * FROM read_blob('people.csv')",
    "SELECT * FROM read_parquet('x.parquet')",
    "SELECT * FROM read_json('x.json')",
    "SELECT * FROM read_duckdb('people.duckdb')",
    "SELECT * FROM glob('*')",
    "SELECT * FROM sniff_csv('people.csv')",
    "SELECT * FROM parquet_metadata('x.parquet')",
    "SELECT * FROM frame_of_the_analyst",
    "SELECT 1 FROM events, range(2)",
    "SELECT (SELECT max(note) FROM events)",
    "SELECT 1 WHERE EXISTS (FROM events WHERE uid = 1)",
    "SELECT 1 UNION ALL SELECT uid FROM events",
    "SELECT 1 WHERE 1 IN (SELECT uid FROM events)",
    "SELECT * FROM range(3) t(i) JOIN events ON events.uid = i",
    "SELECT * FROM range(3) t(i), LATERAL (SELECT * FROM events WHERE uid = i)",
    "SELECT * FROM (VALUES ((SELECT count(*) FROM events)))",
    "SELECT 1 ORDER BY (SELECT count(*) FROM events)",
    "SELECT 1 LIMIT (SELECT count(*) FROM events)",
    "SELECT sum(1) FILTER ((SELECT true FROM events LIMIT 1))",
    "SELECT CASE WHEN (SELECT count(*) FROM events) > 5 THEN 1 END",
    "FROM events AT (VERSION => 1)",
    # Two names for DuckDB; one for str.lower, which makes a plain k of the Kelvin sign.
    'WITH "duc\u212adb_tables" AS (SELECT 1) FROM duckdb_tables',
    "FROM events TABLESAMPLE 10%",
    "FROM (PIVOT events ON country USING count(*))",
    "FROM (UNPIVOT events ON uid, age)",
]

#: Names of the catalog, of settings and of the system.
CATALOG = [
    "FROM duckdb_tables()",
    "FROM duckdb_columns()",
    "FROM duckdb_settings()",
    "FROM duckdb_secrets()",
    "FROM duckdb_functions()",
    "FROM duckdb_databases()",
    "FROM duckdb_logs()",
    "FROM duckdb_temporary_files()",
    "FROM duckdb_tables",
    "FROM information_schema.tables",
    "FROM pg_catalog.pg_class",
    "FROM pg_class",
    "FROM sqlite_master",
    "FROM pragma_database_list",
    "FROM pragma_table_info('events')",
    "FROM pragma_storage_info('events')",
    "FROM pragma_version()",
    "SELECT getenv('HOME')",
    "SELECT current_setting('memory_limit')",
    "SELECT getvariable('x')",
    "SELECT current_query()",
    "SELECT current_database()",
    "SELECT version()",
    "SELECT nextval('s')",
    "SELECT txid_current()",
    "SELECT pg_size_pretty(1)",
    "SELECT in_search_path('memory', 'main')",
    "SELECT error('x')",
    "SELECT write_log('x')",
    "SELECT stats(1)",
]

#: Statements that are not a SELECT, several of them, and what hides them.
STATEMENTS = [
    "",
    "   ",
    ";",
    "-- nothing",
    "ATTACH 'people.duckdb' AS stolen",
    "ATTACH ':memory:' AS other",
    "DETACH memory",
    "USE memory",
    "COPY events TO 'stolen.csv'",
    "COPY (SELECT 1) TO 'stolen.csv'",
    "COPY t FROM 'people.csv'",
    "EXPORT DATABASE 'stolen'",
    "IMPORT DATABASE 'stolen'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD './x.duckdb_extension'",
    "FORCE CHECKPOINT",
    "CHECKPOINT",
    "VACUUM",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "PRAGMA table_info('events')",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET VARIABLE x = 1",
    "RESET memory_limit",
    "CALL pragma_version()",
    "CALL duckdb_tables()",
    "CREATE TABLE t AS SELECT 1",
    "CREATE TEMP TABLE t AS SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "CREATE OR REPLACE MACRO pkdp_count(t) AS 1",
    "CREATE SECRET s (TYPE s3)",
    "CREATE TYPE mood AS ENUM ('ok')",
    "DROP MACRO pkdp_count",
    "ALTER TABLE events RENAME TO e",
    "INSERT INTO events VALUES (1)",
    "UPDATE events SET uid = 1",
    "DELETE FROM events",
    "TRUNCATE events",
    "MERGE INTO events USING events e ON true WHEN MATCHED THEN DELETE",
    "WITH t AS (INSERT INTO events VALUES (1) RETURNING *) FROM t",
    "WITH t AS (DELETE FROM events RETURNING *) FROM t",
    "WITH t AS (SELECT 1) INSERT INTO events FROM t",
    "PREPARE p AS SELECT pkdp_count('events', k := 25)",
    "EXECUTE p",
    "DEALLOCATE p",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT pkdp_count('events', k := 25)",
    "DESCRIBE SELECT 1",
    "DESCRIBE events",
    "SUMMARIZE events",
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "FROM (SHOW TABLES)",
    "FROM (DESCRIBE SELECT 1)",
    "BEGIN",
    "COMMIT",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP MACRO pkdp_count",
    "SELECT 1 --\n; SELECT pkdp_count('events', k := 25)",
    "/* SELECT 1 */ SET threads = 4",
    "SELECT 1 /* ; */ ; ATTACH 'x'",
    "PIVOT events ON country",
    "SELECT $1",
    "SELECT pkdp_count(?, k := 25)",
    "SELECT pkdp_count('events', k := $k)",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('events')",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "SELECT json_serialize_sql('SELECT 1')",
    "SELECT 'a\x00b'",
    "SELECT '\ud800'",
]

#: The functions behind the macros, called by hand.
_SPEC = '{"kind":"count","table":"events","k":25}'
INTERNALS = [
    f"SELECT pkdp_release('{_SPEC}')",
    f"SELECT unnest(pkdp_release('{_SPEC}'))",
    f"SELECT \"PKDP_RELEASE\"('{_SPEC}')",
    f"SELECT pkdp_plan('{_SPEC}')",
    f"SELECT main.pkdp_release('{_SPEC}')",
    f"SELECT memory.main.pkdp_release('{_SPEC}')",
    f"SELECT '{_SPEC}'.pkdp_release()",
    f"FROM query(pkdp_plan('{_SPEC}'))",
    "SELECT pkdp_published(0)",
    "SELECT pkdp_certified('delta', 1, 'count', 1, 1, 1, 1, '', 1, 1, 1, 1, 1, 1, '')",
    "SELECT memory.main.pkdp_count('events', k := 25)",
    "FROM temp.main.pkdp_count('events', k := 25)",
]

#: Arguments of the macros: computed, nested, renamed, shadowed, smuggled.
ARGUMENTS = [
    "SELECT pkdp_count('ev' || 'ents', k := 25)",
    "SELECT pkdp_count(t, k := 25) FROM (VALUES ('events')) v(t)",
    "SELECT pkdp_count((SELECT 'events'), k := 25)",
    "SELECT pkdp_count('events', k := i) FROM range(25, 40) t(i)",
    "SELECT pkdp_count('events', k := 20 + 5)",
    "SELECT pkdp_count('events', k := (SELECT 25))",
    "SELECT pkdp_count('events', k := pkdp_count('events', k := 25))",
    "SELECT pkdp_count('events', filter := 'fl' || 'ag')",
    "SELECT pkdp_count('events', filter := concat('fl', 'ag'))",
    "SELECT pkdp_count('events', k := CASE WHEN true THEN 25 END)",
    "FROM pkdp_histogram('events', (SELECT 'country'))",
    "FROM pkdp_histogram('events', [x FOR x IN ['flag']])",
    "FROM pkdp_histogram('events', ['flag'] || ['country'])",
    "FROM range(3) t(i), pkdp_histogram('events', i)",
    "FROM (VALUES ('flag')) v(c), LATERAL (FROM pkdp_histogram('events', c))",
    "FROM (VALUES (25)) v(c), pkdp_count('events', k := c)",
    "SELECT pkdp_count()",
    "SELECT pkdp_count('events', 'flag', 25)",
    "SELECT pkdp_count(table_name := 'events')",
    "FROM pkdp_histogram('events')",
    "FROM pkdp_histogram('events', 'flag', 25)",
    "FROM pkdp_histogram('events', by_columns := 'flag')",
    "SELECT pkdp_count('events', k := 25, k := 30)",
    "SELECT pkdp_count('events', database := 'x')",
    "SELECT pkdp_count('events', kind := 'histogram')",
    "SELECT pkdp_count('events', unit := 'flag')",
    "SELECT pkdp_count('events', attacker := 'none')",
    "SELECT pkdp_count(NULL, k := 25)",
    "SELECT pkdp_count(5, k := 25)",
    "SELECT pkdp_count(['events'], k := 25)",
    "SELECT pkdp_count({'table': 'events'}, k := 25)",
    "FROM pkdp_histogram('events', NULL)",
    "FROM pkdp_histogram('events', [])",
    "FROM pkdp_histogram('events', ['flag', 'flag'])",
    "FROM pkdp_histogram('events', ['flag', 'FLAG'])",
    "WITH pkdp_histogram AS (SELECT 1) FROM pkdp_histogram",
    "WITH pkdp_release AS (SELECT 1) FROM pkdp_release",
    "WITH \"PKDP_count\" AS (SELECT 1) FROM pkdp_histogram('events', 'flag')",
    "WITH sqlite_master AS (FROM sqlite_master) FROM sqlite_master",
    "WITH a AS (FROM b), b AS (SELECT 1) FROM a",
    "SELECT * FROM (WITH t AS (SELECT 1) FROM t), t",
    "WITH RECURSIVE t AS (SELECT 1 UNION ALL FROM t) FROM t",
    "WITH RECURSIVE t AS (SELECT 1 x UNION SELECT pkdp_count('events', k := 25) FROM t) FROM t",
]

#: Tables and columns outside the policy, also in disguise.
OUTSIDE = [
    "SELECT pkdp_count('hidden', k := 25)",
    "SELECT pkdp_count('adults', k := 25)",
    "SELECT pkdp_count('people.main.hidden', k := 25)",
    "SELECT pkdp_count('events; DROP TABLE events', k := 25)",
    "SELECT pkdp_count('events\" UNION FROM \"hidden', k := 25)",
    "SELECT pkdp_count('(SELECT * FROM events)', k := 25)",
    "SELECT pkdp_count('people.csv', k := 25)",
    "SELECT pkdp_count('duckdb_tables', k := 25)",
    "SELECT pkdp_count('', k := 25)",
    "FROM pkdp_histogram('events', 'uid')",
    "FROM pkdp_histogram('events', 'UID')",
    "FROM pkdp_histogram('events', '\"uid\"')",
    "FROM pkdp_histogram('events', 'note')",
    "FROM pkdp_histogram('events', 'rowid')",
    "FROM pkdp_histogram('events', ['flag', 'age'])",
    "FROM pkdp_histogram('events', 'flag, uid')",
    "FROM pkdp_histogram('events', 'uid % 2')",
    "FROM pkdp_histogram('events', '*')",
    "FROM pkdp_histogram('events', 'substr(note, 7)')",
    "SELECT pkdp_count('events', filter := 'uid = 7')",
    "SELECT pkdp_count('events', filter := '\"uid\" < 100')",
    "SELECT pkdp_count('events', filter := '\"UID\" < 100')",
    "SELECT pkdp_count('events', filter := 'events.uid < 100')",
    "SELECT pkdp_count('events', filter := 'note = ''secret7''')",
    "SELECT pkdp_count('events', filter := 'flag AND age = 3')",
    "SELECT pkdp_count('events', filter := 'rowid = 3')",
    "SELECT pkdp_count('events', filter := 'true) OR (true')",
    "SELECT pkdp_count('events', filter := 'flag; DROP TABLE events')",
    "SELECT pkdp_count('events', filter := 'flag -- AND country')",
    "SELECT pkdp_count('events', filter := 'flag AND (SELECT true FROM hidden)')",
    "SELECT pkdp_count('events', filter := 'uid IN (SELECT uid FROM hidden)')",
    "SELECT pkdp_count('events', filter := 'length(country) = 2')",
    "SELECT pkdp_count('events', filter := 'country LIKE ''U%''')",
    "SELECT pkdp_count('events', filter := 'CAST(country AS INT) = 1')",
    "SELECT pkdp_count('events', filter := 'country = 1')",
    "SELECT pkdp_count('events', filter := 'flag = country')",
    "SELECT pkdp_count('events', filter := 'flag = ''yes''')",
    "SELECT pkdp_count('events', filter := '1 / 0 = 1')",
    "SELECT pkdp_count('events', filter := 'flag AND error(''x'')')",
    "SELECT pkdp_count('events', filter := 'getenv(''HOME'') = ''x''')",
    "SELECT pkdp_count('events', filter := '@flag')",
    "SELECT pkdp_count('events', filter := '`uid` == 7')",
    "SELECT pkdp_count('events', filter := '')",
]

#: Numbers and rules that are the policy's.
RULES = [
    "SELECT pkdp_count('events', k := 19)",
    "SELECT pkdp_count('events', k := 0)",
    "SELECT pkdp_count('events', k := -20)",
    "SELECT pkdp_count('events', k := 20.5)",
    "SELECT pkdp_count('events', k := 1e300)",
    "SELECT pkdp_count('events', k := 'NaN'::DOUBLE)",
    "SELECT pkdp_count('events', k := true)",
    "SELECT pkdp_count('events', k := '25')",
    "SELECT pkdp_count('events', k := [25])",
    "SELECT pkdp_count('events', k := 99999999999999999999)",
    "SELECT pkdp_count('events', k := 25, k_complement := 1)",
    "SELECT pkdp_count('events', k := 25, k_complement := -5)",
    "SELECT pkdp_count('events', k := 25, release_threshold := 1)",
    "FROM pkdp_histogram('events', 'flag', k := 1)",
    "FROM pkdp_histogram('events', 'flag', k_complement := 25)",
    "SELECT pkdp_count('events', noise := 1.0)",
    "SELECT pkdp_count('events', noise := 'NaN'::DOUBLE)",
    "SELECT pkdp_count('events', noise := 'inf'::DOUBLE)",
    "SELECT pkdp_count('events', noise := 1e-300)",
    "SELECT pkdp_count('events', noise := 1e300)",
    "SELECT pkdp_count('events', noise := -1)",
    "SELECT pkdp_count('events', noise := 0)",
    "SELECT pkdp_count('events', noise := true)",
    "FROM pkdp_histogram('events', 'flag', noise := 1.0, release_threshold := 40)",
    "SELECT pkdp_count('events', period := '2021')",
    "SELECT pkdp_count('events', period := NULL)",
    "FROM pkdp_histogram('events', 'flag', period := DATE '2021-01-01')",
    "FROM pkdp_histogram('events', 'country', domain := ['US', 'SE'])",
    "FROM pkdp_histogram('events', 'flag', domain := [true])",
    "FROM pkdp_histogram('events', 'flag', protects := 'value')",
    "FROM pkdp_histogram('events', 'flag', missing_unit := 'error')",
    "SELECT pkdp_count('events', missing_unit := 'error')",
    "FROM pkdp_histogram('events', 'flag', one_cell := 'error')",
    "FROM pkdp_histogram('events', 'flag', one_cell := 'hash')",
    "FROM pkdp_histogram('events', 'flag', order_by := 'uid')",
    "FROM pkdp_histogram('events', 'country', undeclared := 'error')",
]

#: Expressions that compute more than with numbers, text and time.
EXPRESSIONS = [
    "SELECT lambda x: x + 1",
    "SELECT list_transform([1], lambda x: x)",
    "SELECT [1, 2]",
    "SELECT {'a': 1}",
    "SELECT MAP {'a': 1}",
    "SELECT COLUMNS('.*') FROM pkdp_histogram('events', 'country')",
    "SELECT * LIKE 'c%' FROM pkdp_histogram('events', 'country')",
    "SELECT repeat('x', 1000000000)",
    "SELECT lpad('x', 1000000000, 'y')",
    "SELECT string_agg('x', '') FROM range(10)",
    "SELECT list(i) FROM range(10) t(i)",
    "SELECT replace('aaaa', 'a', 'bbbbbbbb')",
    "SELECT format('{:1000000000}', 1)",
    "SELECT printf('%1000000000d', 1)",
    "SELECT 'x'::BLOB",
    "SELECT 'x'::mood",
    "SELECT '{}'::JSON",
    "SELECT json('{}')",
    "SELECT 1::VARCHAR[]",
    "SELECT random()",
    "SELECT gen_random_uuid()",
    "SELECT now()",
    "SELECT max(i, 1000000) FROM range(10) t(i)",
    "SELECT sleep_ms(100000)",
    "SELECT system('id')",
    "SELECT main.upper('x')",
    "FROM repeat('x', 1000000000)",
    "FROM range(1000000000000)",
    "FROM range(0, 100000000, 1)",
    "FROM range(10, 0, 0)",
    "FROM range((SELECT 10))",
    "FROM generate_series(1, 100000000)",
    "FROM range(TIMESTAMP '2020-01-01', TIMESTAMP '2021-01-01', INTERVAL 1 DAY)",
    "FROM unnest((SELECT [1]))",
    "FROM pkdp_releases('x')",
    "FROM test_all_types()",
    "FROM summary((SELECT 1))",
    "FROM checkpoint()",
    "FROM force_checkpoint()",
    "FROM pandas_scan(0)",
    "FROM arrow_scan(0, 0, 0)",
    "FROM python_map_function(0)",
    "FROM seq_scan('events')",
    "FROM from_substrait('x')",
    "FROM postgres_scan('', '', '')",
    "FROM sqlite_scan('people.duckdb', 'events')",
]

ATTEMPTS = [*SCANS, *CATALOG, *STATEMENTS, *INTERNALS, *ARGUMENTS, *OUTSIDE, *RULES, *EXPRESSIONS]

#: Nothing of this may be in what an analyst reads: values, paths, code.
PRIVATE = re.compile(r"secret\d+\b(?!')|/usr|/home|site-packages|Traceback|\.py\b|people\.duckdb'? (is|was)")

frame_of_the_analyst = [1]


def test_there_are_enough_different_attempts() -> None:
    assert len(set(ATTEMPTS)) == len(ATTEMPTS) >= 60


@pytest.fixture
def unchanged(scene: Scene) -> Iterator[Scene]:
    """A gate whose data and ledger must be, after the attempt, as they were before."""
    before = scene.state()
    yield scene
    assert scene.state() == before


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_an_attempt_is_refused_and_changes_nothing(unchanged: Scene, attempt: str) -> None:
    with pytest.raises(ArgumentError) as refusal:
        unchanged.gate.sql(attempt)
    assert not PRIVATE.search(str(refusal.value).replace(attempt, ""))


@pytest.mark.parametrize("attempt", [None, 1, b"SELECT 1", ["SELECT 1"], duckdb.StatementType.SELECT])
def test_a_statement_is_a_text(unchanged: Scene, attempt: object) -> None:
    with pytest.raises(ArgumentError, match="must be a text"):
        unchanged.gate.sql(attempt)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "question",
    [
        "SELECT pkdp_count('events')",
        "SELECT pkdp_count('events', filter := 'flag')",
        "FROM pkdp_histogram('events', 'flag')",
        "FROM pkdp_histogram('events', ['country', 'flag'])",
        "FROM pkdp_histogram('events', 'country', k := 21)",
        "FROM pkdp_histogram('events', 'country', filter := 'country <> ''US''')",
        "FROM pkdp_histogram('events', 'country') JOIN pkdp_histogram('events', 'country', k := 22) USING (country)",
        "SELECT CASE WHEN count > 30 THEN pkdp_count('events') END FROM pkdp_histogram('events', 'country')",
        "SELECT sum(pkdp_count('events', k := 30)) FROM range(5000)",
    ],
)
def test_a_second_noiseless_question_is_refused_by_the_ledger(unchanged: Scene, question: str) -> None:
    with pytest.raises(DifferencingError):
        unchanged.gate.sql(question)


def test_a_question_that_was_answered_is_replayed(unchanged: Scene) -> None:
    spellings = [
        "FROM pkdp_histogram('events', 'country')",
        "SELECT * FROM PKDP_HISTOGRAM('EVENTS', ['COUNTRY'], k := 20)",
        "SELECT * FROM pkdp_histogram('\"events\"', 'Country', filter := NULL, K := 20)",
    ]
    answers = [unchanged.gate.sql(text) for text in spellings * 3]
    assert {tuple(answer.fetchall()) for answer in answers} == {(("US", 100), ("NO", 100), ("DE", 100))}
    assert {release.to_bytes() for answer in answers for release in answer.releases} == {
        answers[0].releases[0].to_bytes()
    }


@pytest.mark.parametrize(
    "spec",
    [
        '{"kind":"count","table":"hidden","k":25}',
        '{"kind":"count","table":"events","k":1}',
        '{"kind":"count","table":"events","noise":1.0}',
        '{"kind":"count","table":"events","k":25,"period":"2021"}',
        '{"kind":"count","table":"events","k":25,"filter":"uid = 1"}',
        '{"kind":"count","table":"events","k":25,"missing_unit":"error"}',
        '{"kind":"histogram","table":"events","by":["uid"],"k":25}',
        '{"kind":"histogram","table":"events","by":["flag"],"k":25,"domain":"[true]"}',
        '{"kind":"histogram","table":"events","by":["flag"],"k":25,"one_cell":"error"}',
        '{"kind":"histogram","table":"\\"people\\".\\"main\\".\\"events\\"","by":["flag"],"k":25}',
        '{"kind":"count","table":"events","k":25,"database":"people","unit":"flag"}',
        "{}",
        "[]",
        "x",
        "",
    ],
)
def test_the_policy_holds_where_a_statement_was_not_read_first(unchanged: Scene, spec: str) -> None:
    """Whoever gets past the list of what statements may use finds the policy behind it."""
    front = unchanged.gate._front._connection
    with pytest.raises(duckdb.Error) as refusal:
        front.execute("SELECT pkdp_release(?)", [spec]).fetchall()
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    "statement",
    [
        "SET enable_external_access = true",
        "SET threads = 8",
        "RESET memory_limit",
        "SET lock_configuration = false",
        "ATTACH '{folder}/people.duckdb' AS stolen",
        "COPY (SELECT 1) TO '{folder}/stolen.csv'",
        "EXPORT DATABASE '{folder}/stolen'",
        "FROM read_csv('{folder}/people.csv')",
        "FROM '{folder}/people.csv'",
        "FROM glob('{folder}/*')",
        "FROM read_text('{folder}/people.csv')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "FROM events",
        "FROM people.main.events",
        "FROM frame_of_the_analyst",
    ],
)
def test_the_connection_reaches_nothing_where_a_statement_was_not_read_first(unchanged: Scene, statement: str) -> None:
    front = unchanged.gate._front._connection
    with pytest.raises(duckdb.Error):
        front.execute(statement.format(folder=unchanged.folder)).fetchall()


def test_what_the_gate_lists_is_what_it_has_shown(unchanged: Scene) -> None:
    rows = unchanged.gate.sql("SELECT label, table_name FROM pkdp_releases()").fetchall()
    assert [row[1] for row in rows] == ["events"]


def test_binding_publishes_nothing(unchanged: Scene) -> None:
    """A statement that cannot be bound is refused before its releases are made."""
    with pytest.raises(PkdpError):
        unchanged.gate.sql("SELECT nothing FROM pkdp_histogram('events', 'flag')")


def test_a_name_does_not_tell_whether_a_table_exists(unchanged: Scene) -> None:
    told = []
    for table in ("hidden", "absent"):
        with pytest.raises(ArgumentError) as refusal:
            unchanged.gate.sql(f"SELECT pkdp_count('{table}')")
        told.append(str(refusal.value).replace(table, "…"))
    assert told[0] == told[1]


def test_a_name_does_not_tell_whether_a_column_exists(unchanged: Scene) -> None:
    told = []
    for column in ("note", "nope"):
        with pytest.raises(ArgumentError) as refusal:
            unchanged.gate.sql(f"SELECT pkdp_count('events', filter := '{column} = ''a''')")
        told.append(str(refusal.value).replace(column, "…"))
    assert told[0] == told[1]
