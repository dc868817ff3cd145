"""What the macros publish is what the library publishes, under the column's own name and type, once."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import uuid
from contextlib import contextmanager

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb import install
from pkdp_pipeline.model.keys import canonical_key

ATTACKER = pkdp.AttackerModel(p_max=0.1)

#: SQL types of key columns, with literals of which some are equal, missing or awkward.
KEYS = {
    "BOOLEAN": ["true", "false", "NULL"],
    "TINYINT": ["-128", "0", "127"],
    "BIGINT": ["-9223372036854775808", "0", "9223372036854775807"],
    "UBIGINT": ["0", "18446744073709551615", "NULL"],
    "FLOAT": ["0.1", "-0.0", "0", "'nan'", "'inf'", "'-inf'", "NULL"],
    "DOUBLE": ["0.1", "1e300", "-0.0", "0", "'nan'", "'inf'", "NULL"],
    "DECIMAL(9,3)": ["1.500", "-0.001", "0", "123456.789", "NULL"],
    "DECIMAL(38,10)": ["1.5", "1234567890123456789012345678.0123456789"],
    "DATE": ["'2020-02-29'", "'0001-01-01'", "'9999-12-31'", "NULL"],
    "TIMESTAMP": ["'2020-02-29 01:02:03.000004'", "'1969-12-31 23:59:59.999999'", "NULL"],
    "TIMESTAMP_S": ["'2020-02-29 01:02:03'", "'2020-02-29'"],
    "TIMESTAMP_MS": ["'2020-02-29 01:02:03.004'", "NULL"],
    "TIMESTAMP_NS": ["'2020-02-29 01:02:03.000000004'", "'2020-02-29'"],
    "TIMESTAMP WITH TIME ZONE": ["'2020-03-29 01:30:00+00'", "'2020-03-29 02:30:00+02'", "NULL"],
    "UUID": ["'6f9619ff-8b86-d011-b42d-00cf4fc964ff'", "NULL"],
    "VARCHAR": ["''", "'a'", "'it''s \"x\"'", "'é\U0001f600'", "'NULL'", "NULL", "'-1:a'", "chr(10)"],
}


@contextmanager
def installed():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE events AS SELECT i AS uid, ['US', 'NO', 'DE'][1 + i % 3] AS country, "
            '(i % 2 = 0) AS flag, (i % 5)::TINYINT AS "Grp" FROM range(100) t(i)'
        )
        install(connection, attacker=ATTACKER, unit="uid")
        yield connection


def again(connection, **options):
    """Install with an empty ledger, so that another question about the same people may be asked."""
    install(connection, **{"attacker": ATTACKER, "unit": "uid", **options})


def releases(connection) -> int:
    return connection.sql("SELECT count(*) FROM pkdp_releases()").fetchall()[0][0]


def rows_of(connection, query):
    """Return the rows through Arrow, which needs no other package for time zones, as canonical keys."""
    table = connection.sql(query).to_arrow_table()
    return [tuple(map(canonical_key, row.values())) for row in table.to_pylist()]


def rows_published(release):
    columns = [release.table[name].array for name in release.table.columns]
    return [tuple(map(canonical_key, row)) for row in zip(*columns, strict=True)]


def refused(connection, query, match):
    with pytest.raises(duckdb.InvalidInputException, match=match):
        connection.sql(query).fetchall()


def test_a_histogram_has_the_columns_names_and_types(shared):
    result = shared.sql("FROM pkdp_histogram('events', ['country', 'GRP'], k := 3)")
    assert result.columns == ["country", "Grp", "count"]
    assert [str(kind) for kind in result.types] == ["VARCHAR", "TINYINT", "BIGINT"]
    assert rows_of(shared, "FROM pkdp_histogram('events', ['country', 'GRP'], k := 3)") == rows_published(
        pkdp.histogram(shared.table("events"), ["country", "Grp"], unit="uid", attacker=ATTACKER, k=3)
    )


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=2))
    people = st.sampled_from([*map(str, range(8)), "NULL"])
    row = st.tuples(people, *(st.sampled_from(KEYS[kind]) for kind in kinds))
    return kinds, draw(st.lists(row, max_size=20))


@given(
    table=tables(),
    k=st.integers(min_value=2, max_value=3),
    one_cell=st.sampled_from(["error", "most_frequent", "hash", "first"]),
    missing_unit=st.sampled_from(["error", "drop"]),
    zone=st.sampled_from(["UTC", "Asia/Kolkata"]),
)
@settings(max_examples=few(40, 5))
def test_sql_publishes_what_the_library_publishes(table, k, one_cell, missing_unit, zone):
    kinds, rows = table
    names = ['K "1"', "key two"][: len(kinds)]
    declared = ", ".join(
        f'"{name.replace(chr(34), chr(34) * 2)}" {kind}' for name, kind in zip(names, kinds, strict=True)
    )
    order_by = "uid" if one_cell == "first" else None
    with duckdb.connect() as con:
        con.execute(f'CREATE TABLE "My table" (uid INTEGER, {declared})')
        for row in rows:
            con.execute(f'INSERT INTO "My table" VALUES ({", ".join(row)})')
        install(con, attacker=ATTACKER, unit="uid", missing_unit=missing_unit, one_cell=one_cell, order_by=order_by)
        question = f"""FROM pkdp_histogram('"My table"', {names}, k := {k})"""
        # SQL requests mean the same in every session: points in time are those of UTC.
        con.execute("SET TimeZone = 'UTC'")
        try:
            expected = pkdp.histogram(
                con.table('"My table"'),
                names,
                unit="uid",
                attacker=ATTACKER,
                k=k,
                missing_unit=missing_unit,
                one_cell=one_cell,
                order_by=order_by,
            )
        except pkdp.InputCheckError:
            con.execute(f"SET TimeZone = '{zone}'")
            refused(con, question, "InputCheckError: The input is not as declared")
            assert releases(con) == 0
            return
        con.execute(f"SET TimeZone = '{zone}'")
        assert [str(kind) for kind in con.sql(question).types] == [*kinds, "BIGINT"]
        assert con.sql(question).columns == [*names, "count"]
        assert rows_of(con, question) == rows_published(expected)


@thinned(4)
@pytest.mark.parametrize("kind", sorted(KEYS))
def test_every_key_of_every_type_comes_back_as_it_is(shared, kind):
    values = ", ".join(f"({number}, CAST({value} AS {kind}))" for number, value in enumerate(KEYS[kind]))
    shared.execute("SET TimeZone = 'America/New_York'")
    shared.execute(
        "CREATE OR REPLACE TABLE keyed AS "
        f"SELECT 2 * uid + i AS uid, key FROM (VALUES {values}) t(uid, key), range(2) r(i)"
    )
    missing = "isnan(e.key)" if kind in ("FLOAT", "DOUBLE") else "false"
    lost = shared.sql(
        "SELECT count(*) FROM keyed e WHERE NOT EXISTS (FROM pkdp_histogram('keyed', 'key', k := 2) h "
        f"WHERE h.key IS NOT DISTINCT FROM CASE WHEN {missing} THEN NULL ELSE e.key END)"
    )
    assert lost.fetchall() == [(0,)]


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
def test_points_in_time_beyond_the_calendar_are_missing(shared, kind):
    values = "['infinity', '-infinity', '0044-03-15 (BC)']"
    shared.execute(
        f"CREATE OR REPLACE TABLE moments AS SELECT uid, {values}[1 + uid % 3]::{kind} AS moment FROM range(15) t(uid)"
    )
    assert shared.sql("FROM pkdp_histogram('moments', 'moment', k := 2)").fetchall() == [(None, 15)]


def test_an_enum_does_not_list_what_is_withheld(shared):
    shared.execute("CREATE TABLE moods AS SELECT uid, country::ENUM('DE', 'NO', 'US', 'XX') AS country FROM events")
    result = shared.sql("FROM pkdp_histogram('moods', 'country', k := 20)")
    assert [str(kind) for kind in result.types] == ["VARCHAR", "BIGINT"]
    assert result.fetchall() == [("DE", 33), ("NO", 33), ("US", 34)]


@pytest.mark.parametrize("kind", ["HUGEINT", "INTEGER[]", "TIME", "INTERVAL", "BLOB", "STRUCT(a INTEGER)"])
def test_types_that_cannot_name_cells_are_refused_when_bound(refusing, kind):
    con = refusing
    con.execute(f'CREATE OR REPLACE TABLE odd (uid INTEGER, "A key" {kind})')
    with pytest.raises(duckdb.InvalidInputException, match=r"by column 'A key' has type .*cast it in a view"):
        con.sql("EXPLAIN FROM pkdp_histogram('odd', 'a KEY', k := 2)")
    with pytest.raises(pkdp.ArgumentError, match="cannot name cells"):
        pkdp.histogram(con.table("odd"), "A key", unit="uid", attacker=ATTACKER, k=2)


@thinned(4)
@pytest.mark.parametrize(
    ("kind", "domain", "values"),
    [
        ("VARCHAR", "['a', NULL, 'it''s']", ["a", None, "it's"]),
        ("BOOLEAN", "[true, false]", [True, False]),
        ("TINYINT", "[1, 2.0, -3]", [1, 2, -3]),
        ("UBIGINT", "[9223372036854775807]", [2**63 - 1]),
        ("DOUBLE", "[1, 0.1, 'inf'::DOUBLE]", [1.0, 0.1, math.inf]),
        ("FLOAT", "[0.1]", [0.10000000149011612]),
        ("DECIMAL(9,3)", "[1.5, 2]", [decimal.Decimal("1.500"), decimal.Decimal("2.000")]),
        ("DATE", "[DATE '2020-02-29', '2020-03-01']", [datetime.date(2020, 2, 29), datetime.date(2020, 3, 1)]),
        ("TIMESTAMP", "['2020-01-01', '2020-01-01 00:00:00.5']", ["2020-01-01", "2020-01-01T00:00:00.5"]),
        ("TIMESTAMP_NS", "[TIMESTAMP_NS '2020-01-01 00:00:00.000000001']", ["2020-01-01T00:00:00.000000001"]),
        ("TIMESTAMP WITH TIME ZONE", "[TIMESTAMPTZ '2020-03-29 02:30:00+02']", ["2020-03-29T00:30:00Z"]),
        ("UUID", "['6F9619FF-8B86-D011-B42D-00CF4FC964FF']", ["6f9619ff-8b86-d011-b42d-00cf4fc964ff"]),
        ("ENUM('a', 'b')", "['b', 'c']", ["b", "c"]),
    ],
)
def test_a_domain_has_values_of_the_columns_kind(shared, kind, domain, values):
    import pandas as pd

    shared.execute("SET TimeZone = 'Asia/Kolkata'")
    shared.execute(f"CREATE OR REPLACE TABLE typed (uid INTEGER, key {kind})")
    shared.execute(f"INSERT INTO typed SELECT i, {domain}[1]::VARCHAR::{kind} FROM range(5) t(i)")
    if kind.startswith("TIMESTAMP"):
        values = [pd.Timestamp(value) for value in values]
    rows = rows_of(shared, f"FROM pkdp_histogram('typed', 'key', k := 2, domain := {domain})")
    spelled = [(uuid.UUID(value), count) if kind == "UUID" else (value, count) for value, count in rows]
    expected = [uuid.UUID(value) if kind == "UUID" else value for value in values]
    if kind == "FLOAT":
        expected = [pytest.approx(0.1, rel=1e-7)]
    assert spelled == [(value, None if position else 5) for position, value in enumerate(expected)]
    direct = pkdp.histogram(shared.table("typed"), "key", unit="uid", attacker=ATTACKER, k=2, domain=values)
    assert [count for _, count in rows] == [count for _, count in rows_published(direct)]


@pytest.mark.parametrize(
    ("kind", "domain", "rule"),
    [
        ("VARCHAR", "[1, 2]", "cannot hold"),
        ("BOOLEAN", "['true']", "cannot hold"),
        ("TINYINT", "[1.5]", "cannot hold"),
        ("TINYINT", "[128]", "cannot hold"),
        ("UTINYINT", "[-1]", "cannot hold"),
        ("UBIGINT", "[9223372036854775808]", "cannot hold"),
        ("DOUBLE", "['nan'::DOUBLE]", "cannot hold"),
        ("FLOAT", "[1e300]", "cannot hold"),
        ("DECIMAL(4,1)", "[0.25]", "cannot hold"),
        ("DECIMAL(4,1)", "[1000]", "cannot hold"),
        ("DATE", "['yesterday']", "cannot hold"),
        ("DATE", "[TIMESTAMP '2020-01-01 00:00:00']", "cannot hold"),
        ("TIMESTAMP_S", "['2020-01-01 00:00:00.5']", "cannot hold"),
        ("TIMESTAMP", "['2020-01-01 00:00:00+00']", "cannot hold"),
        ("TIMESTAMP WITH TIME ZONE", "['2020-01-01 00:00:00']", "cannot hold"),
        ("UUID", "['me']", "cannot hold"),
        ("VARCHAR", "'US'", "domain must be a list"),
        ("VARCHAR", "{country: ['US']}", "domain must be a list"),
        ("VARCHAR", "[]", "domain must have at least one cell"),
        ("VARCHAR", "[('US', 'NO')]", "domain must be a list"),
    ],
)
def test_a_domain_that_the_column_cannot_hold_is_refused(refusing, kind, domain, rule):
    refusing.execute(f"CREATE OR REPLACE TABLE typed (uid INTEGER, key {kind})")
    refused(refusing, f"FROM pkdp_histogram('typed', 'key', k := 2, domain := {domain})", rule)


@pytest.mark.parametrize(
    "domain",
    [
        "[('US', true), ('NO', false)]",
        "[{country: 'US', flag: true}, {country: 'NO', flag: false}]",
        "[{FLAG: true, country: 'US'}, {FLAG: false, country: 'NO'}]",
    ],
)
def test_a_domain_of_several_columns(shared, domain):
    question = "FROM pkdp_histogram('events', ['country', 'flag'], k := 2, undeclared := 'absent', domain := "
    assert shared.sql(f"{question}{domain})").fetchall() == [("US", True, 17), ("NO", False, 17)]


def test_a_domain_of_all_combinations(shared):
    question = "FROM pkdp_histogram('events', ['country', 'flag'], k := 17, undeclared := 'absent', domain := "
    struct = "{flag: [true, false], country: ['US', 'SE']}"
    assert shared.sql(f"{question}{struct})").fetchall() == [
        ("US", True, 17),
        ("US", False, 17),
        ("SE", True, None),
        ("SE", False, None),
    ]
    refused(shared, f"{question}{{flag: [true]}})", "a list of rows")


def test_a_count_is_a_scalar_and_a_table(shared):
    assert shared.sql("SELECT pkdp_count('events', filter := 'flag', k := 20)").fetchall() == [(50,)]
    table = shared.sql("FROM pkdp_count('events', filter := 'FLAG = true', k := 20)")
    assert (table.columns, [str(kind) for kind in table.types]) == (["count"], ["BIGINT"])
    assert table.fetchall() == [(50,)]
    assert releases(shared) == 1


def test_what_is_suppressed_is_null(shared):
    assert shared.sql("SELECT pkdp_count('events', filter := 'flag', k := 51)").fetchall() == [(None,)]
    again(shared)
    assert shared.sql("SELECT pkdp_count('events', filter := 'flag', k := 5, k_complement := 51)").fetchall() == [
        (None,)
    ]


def test_small_counts_are_noised_and_a_column_says_which_are_exact(shared):
    cells = "FROM pkdp_histogram('events', 'country', k := 34, noise := 1.0, below := 'noise', domain := ['NO', 'US'],"
    cells += " undeclared := 'absent')"
    result = shared.sql(cells)
    assert (result.columns, list(map(str, result.types))) == (
        ["country", "count", "exact"],
        ["VARCHAR", "BIGINT", "BOOLEAN"],
    )
    rows = result.fetchall()
    assert [(country, exact) for country, _, exact in rows] == [("NO", False), ("US", True)]
    assert rows[1][1] == 34
    assert shared.sql(cells).fetchall() == rows
    assert releases(shared) == 1
    again(shared)
    hidden = (
        "FROM pkdp_histogram('events', 'country', k := 34, noise := 1.0, below := 'noise', release_threshold := 999)"
    )
    assert shared.sql(hidden).fetchall() == [("US", 34, True)]
    again(shared)
    count = "pkdp_count('events', filter := 'flag', k := 60, noise := 1.0, below := 'noise')"
    ((number, exact),) = shared.sql(f"FROM {count}").fetchall()
    assert (shared.sql(f"SELECT {count}").fetchall(), exact) == ([(number,)], False)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ("'country', domain := ['US'], below := 'noise', k := 20", "give k and noise"),
        ("'country', domain := ['US'], below := 'noise', noise := 1.0", "give k and noise"),
        ("'country', domain := ['US'], below := 'hide', k := 20, noise := 1.0", "below must be one of"),
        ("'country', domain := ['US'], below := 1, k := 20, noise := 1.0", "below must be one of"),
        ("'country', below := 'noise', k := 20, noise := 1.0", "needs release_threshold"),
        ("'exact', domain := [true], below := 'noise', k := 20, noise := 1.0", "rename the column"),
        (
            "'country', domain := ['US'], below := 'noise', k := 20, noise := 1.0, cells_per_unit := 2",
            "Leave below out",
        ),
    ],
)
def test_small_counts_are_noised_only_where_that_is_whole(shared, arguments, match):
    shared.execute("CREATE OR REPLACE VIEW marked AS SELECT uid, country, flag AS exact FROM events")
    refused(shared, f"FROM pkdp_histogram('marked', {arguments})", f"ArgumentError: .*{match}")
    assert releases(shared) == 0


@pytest.mark.slow
def test_counts_are_shown_as_a_rule_of_display_says(shared):
    rounded = "FROM pkdp_histogram('events', 'country', k := 20, display := {'rounding': 10})"
    assert shared.sql(rounded).fetchall() == [("DE", 30), ("NO", 30), ("US", 30)]
    # The same rule as JSON text is the same question, and another rule another one, about the same people.
    assert shared.sql(rounded.replace("{'rounding': 10}", "'{\"rounding\": 10}'")).fetchall() == [
        ("DE", 30),
        ("NO", 30),
        ("US", 30),
    ]
    assert releases(shared) == 1
    refused(shared, rounded.replace("10", "11"), "DifferencingError")
    again(shared)
    bands = "FROM pkdp_histogram('events', 'country', display := {'bands': [0, 20, 34]}, domain := ['NO', 'US'], "
    assert shared.sql(f"{bands} undeclared := 'absent')").fetchall() == [("NO", 20), ("US", 34)]
    again(shared)
    assert shared.sql(
        "SELECT pkdp_count('events', k := 20, display := {'rounding': 40, 'mode': 'down'})"
    ).fetchall() == [(80,)]


@pytest.mark.parametrize(
    ("display", "match"),
    [
        ("{'rounding': 1}", "at least 2"),
        ("{'rounding': 5, 'bands': [0, 5]}", "display must be one rule"),
        ("'rounding=5'", "display must be one rule"),
        ("{'bands': [0, 5, 5]}", "overlap"),
        ("{'random_rounding': 3}", "needs k"),
    ],
)
def test_a_rule_of_display_that_means_nothing_is_refused(shared, display, match):
    refused(shared, f"FROM pkdp_histogram('events', 'country', display := {display})", match)
    assert releases(shared) == 0


@thinned(3)
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("flag", 50),
        ("NOT flag", 50),
        ("country = 'US' OR country IN ('NO')", 67),
        ("COUNTRY <> 'US' AND grp BETWEEN 1 AND 2", 27),
        ("maybe <> 'x'", 50),
        ("NOT maybe = 'x'", 50),
        ("maybe IS NULL", 25),
        ("NOT (maybe = 'x' AND flag)", 75),
    ],
)
def test_a_filter_means_what_it_means_in_sql(shared, condition, expected):
    shared.execute(
        "CREATE OR REPLACE VIEW wide AS "
        "SELECT *, CASE uid % 4 WHEN 0 THEN 'x' WHEN 1 THEN 'y' WHEN 2 THEN 'z' END maybe FROM events"
    )
    assert shared.sql(f"SELECT count(*) FROM wide WHERE {condition}").fetchall() == [(expected,)]
    text = condition.replace("'", "''")
    assert shared.sql(f"SELECT pkdp_count('wide', filter := '{text}', k := 2)").fetchall() == [(expected,)]


@pytest.mark.parametrize(
    "condition", ["flag = 1 +", "uid IN (SELECT 1)", "random() < 0.5", "flag; DROP TABLE events", "nope"]
)
def test_other_filters_are_our_error(refusing, condition):
    refused(refusing, f"SELECT pkdp_count('events', filter := '{condition}', k := 20)", "ArgumentError")
    assert releases(refusing) == 0


def test_the_same_request_is_published_once(shared):
    noisy = "'events', 'country', k := 2, noise := 0.01, release_threshold := 5"
    first = shared.sql(f"FROM pkdp_histogram({noisy})").fetchall()
    twice = f"WITH h AS (FROM pkdp_histogram({noisy})) SELECT a.*, b.count FROM h a JOIN h b USING (country)"
    assert sorted(shared.sql(twice).fetchall()) == sorted((country, count, count) for country, count in first)
    union = f"FROM pkdp_histogram({noisy}) UNION ALL FROM pkdp_histogram({noisy})"
    assert sorted(shared.sql(union).fetchall()) == sorted(first * 2)
    shared.execute(f"CREATE TABLE kept AS FROM pkdp_histogram({noisy})")
    assert shared.sql("FROM kept").fetchall() == first
    spelled = (
        "'EVENTS', ['COUNTRY'], k := 2, noise := 1e-2, release_threshold := 5, period := 'all', one_cell := 'error'"
    )
    assert shared.sql(f"FROM pkdp_histogram({spelled})").fetchall() == first
    shared.execute(f"CREATE VIEW seen AS FROM pkdp_histogram({noisy})")
    assert shared.sql("FROM seen").fetchall() == shared.sql("FROM seen").fetchall() == first
    assert releases(shared) == 1


def test_a_first_request_of_many_rows_and_threads_is_published_once(con):
    con.execute("SET threads = 4")
    con.execute("CREATE TABLE many AS FROM range(500_000)")
    question = "pkdp_count('events', filter := 'flag', noise := 0.01)"
    ((least, most),) = con.sql(f"SELECT min(c), max(c) FROM (SELECT {question} AS c FROM many)").fetchall()
    assert least == most == con.sql(f"SELECT {question}").fetchall()[0][0]
    assert releases(con) == 1


def test_no_argument_comes_from_data(shared):
    """A certificate names the filter: one computed from a person's value would publish that value."""
    for statement in (
        "SELECT pkdp_count('events', filter := 'uid >= ' || (SELECT max(uid) FROM events), k := 2)",
        "SELECT pkdp_count('events', filter := 'uid >= ' || max(uid), k := 2) FROM events",
        "SELECT pkdp_count('events', filter := 'uid = ' || uid, k := 2) FROM events",
        "SELECT pkdp_count('events', k := uid) FROM events",
        "WITH t AS (SELECT 'events' AS name) SELECT pkdp_count(name, k := 2) FROM t",
        "FROM pkdp_count('events', filter := (SELECT 'uid >= ' || max(uid) FROM events), k := 2)",
        "FROM events, pkdp_count('events', filter := 'uid = ' || uid, k := 2)",
        "FROM pkdp_histogram('events', 'country', filter := (SELECT 'uid >= ' || max(uid) FROM events), k := 2)",
    ):
        with pytest.raises(duckdb.Error):
            shared.execute(statement)
        assert releases(shared) == 0, statement
    assert shared.sql("SELECT pkdp_count('events', filter := 'fl' || 'ag', k := 20 + 1)").fetchall() == [(50,)]


def test_equal_filters_are_one_request(shared):
    first = shared.sql("SELECT pkdp_count('events', filter := 'flag AND country IN (''US'', ''NO'')', noise := 0.01)")
    other = shared.sql(
        "SELECT pkdp_count('events', filter := '(Country in (''NO'',''US'')) and (FLAG)', noise := 0.01)"
    )
    assert first.fetchall() == other.fetchall()
    assert releases(shared) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "EXPLAIN FROM pkdp_histogram('events', 'country', k := 20)",
        "EXPLAIN SELECT pkdp_count('events', k := 20)",
        "PREPARE later AS FROM pkdp_histogram('events', 'country', k := 20)",
        "DESCRIBE FROM pkdp_histogram('events', 'country', k := 20)",
        "CREATE VIEW later AS FROM pkdp_histogram('events', 'country', k := 20)",
        "SELECT pkdp_count('events', k := 20) WHERE false",
        "FROM pkdp_histogram('events', 'country', k := 20) LIMIT 0",
    ],
)
def test_looking_at_a_statement_publishes_nothing(shared, statement):
    shared.execute(statement).fetchall()
    shared.sql("FROM pkdp_histogram('events', 'country', k := 20)")  # a relation that nobody reads
    assert releases(shared) == 0


def test_a_prepared_statement_publishes_when_it_runs(con):
    con.execute("PREPARE later AS FROM pkdp_histogram('events', 'country', k := 20)")
    assert con.execute("EXECUTE later").fetchall() == [("DE", 33), ("NO", 33), ("US", 34)]
    assert releases(con) == 1


def test_parameters_of_a_statement_are_arguments(shared):
    rows = shared.execute("FROM pkdp_histogram('events', $by, k := $k)", {"by": "country", "k": 34}).fetchall()
    assert rows == [("US", 34)]


def test_releases_lists_what_was_published(shared):
    shared.sql("FROM pkdp_histogram('events', 'country', k := 34)").fetchall()
    (entry,) = shared.sql("FROM pkdp_releases()").fetchall()
    identity, table, label, period, rows, sentence, text, epsilon, cells = entry
    assert epsilon == pkdp.certify(pkdp.Histogram(k=34), ATTACKER).epsilon(1e-6)
    assert json.loads(cells) == [{"keys": ["US"], "count": 34, "exact": None}]
    assert (table, label, period, rows) == ("events", "histogram by country of events", "all", 1)
    assert len(identity) == 64
    assert sentence.startswith("Private at ε = ")
    assert json.loads(text)["attacker"]["p_max"] == 0.1
    assert pkdp.Certificate.from_json(text).verify()
    path = "SELECT certificate ->> '$.attacker.p_max' FROM pkdp_releases()"
    assert shared.sql(path).fetchall() == [("0.1",)]


def test_the_ledger_is_the_one_given_and_wants_a_period(con, tmp_path):
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        again(con, ledger=ledger)
        refused(con, "SELECT pkdp_count('events', k := 20)", "ArgumentError: period is needed with a ledger")
        expected = [(100,)]
        assert con.sql("SELECT pkdp_count('events', k := 20, period := DATE '2013-01-02')").fetchall() == expected
        assert con.sql("SELECT pkdp_count('events', k := 20, period := '20130102')").fetchall() == expected
        again(con, ledger=ledger, period=datetime.date(2013, 1, 2))
        assert con.sql("SELECT pkdp_count('events', k := 20)").fetchall() == expected
        (entry,) = ledger.entries()
        assert (entry.period, entry.label) == ("2013-01-02", "count of events")
    refused(con, "SELECT pkdp_count('events', k := 20)", "LedgerError: .*closed")
    refused(con, "FROM pkdp_releases()", "LedgerError: .*closed")


def test_a_release_that_undoes_another_is_refused(shared):
    shared.sql("FROM pkdp_histogram('events', 'country', k := 20)").fetchall()
    refused(shared, "SELECT pkdp_count('events', k := 20)", "DifferencingError")
    shared.execute("CREATE OR REPLACE TABLE others AS FROM events")
    refused(shared, "FROM pkdp_histogram('others', 'country', k := 20)", "DifferencingError")
    assert releases(shared) == 1


def test_rules_of_a_call_come_before_those_of_install(con):
    con.execute("CREATE TABLE visits AS SELECT i % 100 AS uid, i % 3 AS place, -i AS at FROM range(300) t(i)")
    con.execute("INSERT INTO visits VALUES (NULL, 1, 1)")
    question = "FROM pkdp_histogram('visits', 'place', k := 2"
    refused(con, f"{question})", "InputCheckError: .*missing_unit := 'drop'")
    refused(con, f"{question}, missing_unit := 'drop')", "InputCheckError: .*several cells")
    first = con.sql(f"{question}, missing_unit := 'drop', one_cell := 'first', order_by := 'AT')").fetchall()
    again(con, missing_unit="drop", one_cell="first", order_by="at")
    assert con.sql(f"{question})").fetchall() == first
    again(con, missing_unit="drop", one_cell="first", order_by="at")
    assert sum(n for _, n in con.sql(f"{question}, one_cell := 'most_frequent')").fetchall()) == 100


@thinned(4)
@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (
            "pkdp_histogram('events', 'country')",
            r"ArgumentError: without a declared domain, the cells .* as in domain := \['A', 'B'\]",
        ),
        ("pkdp_histogram('events', 'country', k := '20')", "k must be a whole number"),
        ("pkdp_histogram('events', 'country', k := 20.5)", "k must be a whole number"),
        ("pkdp_histogram('events', 'country', k := -1)", "k must be at least"),
        (
            "pkdp_histogram('events', 'country', noise := 'much')",
            "noise must be a number above 0, not str",
        ),
        ("pkdp_histogram('events', 'country', k := 2, protects := 'all')", "protects must be one of"),
        ("pkdp_histogram('events', 'country', k := 2, period := 2013)", "period must be a text or a DATE"),
        (
            "pkdp_histogram('events', 'country', k := 2, filter := true)",
            "filter must be a text .* filter := 'age >= 18'",
        ),
        ("pkdp_count('events', k := 2, filter := '')", "filter must be a text .* filter := 'age >= 18'"),
        ("pkdp_count('events', noise := -1)", "noise must be finite and above 0, got -1.0"),
        ("pkdp_histogram('events', 'contry', k := 2)", "by names column 'contry', .*'uid'.* Did you mean 'country'"),
        ("pkdp_count('events', k := 2, filter := 'nothing')", "filter names column 'nothing', .* it has .*'country'"),
        ("pkdp_histogram('events', 7, k := 2)", "histogram must be a column's name"),
        ("pkdp_histogram('events', [], k := 2)", "histogram must be a column's name"),
        ("pkdp_histogram('events', NULL, k := 2)", "a question has one of: histogram"),
        (
            "pkdp_histogram('events', ['flag', 'FLAG'], k := 2)",
            r"histogram names a column twice.* \['country', 'flag'\]",
        ),
        ("pkdp_histogram('events', 'country', k := 2, order_by := 'uid')", "belong together"),
        ("pkdp_histogram(NULL, 'country', k := 2)", "table is needed"),
        ("pkdp_count('events', k := 2, missing_unit := 'maybe')", "missing_unit must be one of"),
        ("pkdp_count('events')", "NotCertifiableError|ArgumentError"),
    ],
)
def test_malformed_arguments_are_our_errors(refusing, call, rule):
    refused(refusing, f"FROM {call}", rule)
    assert releases(refusing) == 0


@pytest.mark.default_target
def test_a_way_out_is_written_in_sql_or_is_of_install(con):
    again(con, attacker=None)
    refused(con, "FROM pkdp_histogram('events', 'country', k := 2)", r"noise := [\d.]+ with release_threshold := \d+,")
    again(con)
    refused(con, "FROM pkdp_histogram('events', 'country', k := 2)", "k := .* say target=None at install")
    again(con, attacker=None, ledger=pkdp.Ledger.open(":memory:", dataset="d", budget=pkdp.Budget(1, 1e-6)))
    noised = "SELECT pkdp_count('events', filter := 'flag', noise := 0.5, period := '2024-01-0{}')"
    con.execute(noised.format(1)).fetchall()
    refused(con, noised.format(1).replace("0.5", "0.9"), "open the ledger that install is given with a larger budget")
    noiseless = "SELECT pkdp_count('events', filter := 'flag', k := 40, period := '2024-01-02')"
    again(con, ledger=pkdp.Ledger.open(":memory:", dataset="d"))
    con.execute(noised.format(1)).fetchall()
    refused(con, noiseless, "in Python, the ledger that install is given: evidence=pkdp")


def test_a_unit_that_the_table_lacks_is_named(shared):
    shared.execute('CREATE OR REPLACE TABLE others AS SELECT uid AS "UID", flag FROM events')
    refused(shared, "SELECT pkdp_count('others', k := 2)", "unit names column 'uid'")
    shared.execute("CREATE TABLE nobody AS SELECT flag FROM events")
    refused(shared, "SELECT pkdp_count('nobody', k := 2)", "unit names column 'uid', which the table does not have")


def test_a_search_path_of_several_schemas_never_gives_another_table(con):
    """DuckDB would read a.events; the table in main must not be taken for it."""
    con.execute("CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.events AS SELECT uid, 'XX' AS country FROM events")
    con.execute("SET search_path = 'b,a'")
    for query in ("FROM pkdp_histogram('events', 'country', k := 3)", "SELECT pkdp_count('events', k := 3)"):
        refused(con, query, "table 'events' is not in 'b', the first schema of the search path")
    con.execute("SET search_path = 'a,b'")
    assert con.sql("FROM pkdp_histogram('events', 'country', k := 3)").fetchall() == [("XX", 100)]
    con.execute("SET search_path = 'b,a'")
    assert con.sql("FROM pkdp_histogram('a.events', 'country', k := 3)").fetchall() == [("XX", 100)]


def test_a_views_columns_are_those_it_has_now(con):
    """The catalog keeps the types that a view had when it was made."""
    con.execute("CREATE VIEW seen AS SELECT * FROM events")
    con.execute("ALTER TABLE events ALTER flag TYPE VARCHAR USING CASE WHEN flag THEN 'yes' ELSE 'no' END")
    result = con.sql("FROM pkdp_histogram('seen', 'flag', k := 3, filter := 'flag IS NOT NULL')")
    assert [str(kind) for kind in result.types] == ["VARCHAR", "BIGINT"]
    assert result.fetchall() == [("no", 50), ("yes", 50)]


def test_a_view_whose_table_is_gone_is_named(shared):
    shared.execute("CREATE TABLE base AS FROM events; CREATE VIEW lost AS FROM base; DROP TABLE base")
    refused(shared, "FROM pkdp_histogram('lost', 'country', k := 3)", "'lost' is a view that cannot be read")


def test_an_error_about_a_type_does_not_list_the_values_of_an_enum(shared):
    shared.execute("CREATE TABLE lists AS SELECT uid, [country::ENUM('US', 'NO', 'DE', 'secret')] AS tags FROM events")
    for query in (
        "FROM pkdp_histogram('lists', 'tags', k := 3)",
        "SELECT pkdp_count('lists', filter := 'tags = ''US'' AND true', k := 3)",
    ):
        with pytest.raises(duckdb.InvalidInputException, match=r"'tags'.* has type ENUM\[\]") as caught:
            shared.execute(query).fetchall()
        assert "secret" not in str(caught.value)
