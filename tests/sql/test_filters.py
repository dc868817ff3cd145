"""SQL filters: the rows they select, the one text that equal filters share, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress

import duckdb
import numpy as np
import pandas as pd
import pytest
from filter_cases import COLUMNS, Speller, filled, frame, to_where, trees
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

from pkdp_pipeline.engines.pandas_engine import selected_rows
from pkdp_pipeline.engines.relation_engine import predicate_sql
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import from_query

TYPES = {
    "age": "TINYINT",
    "big": "BIGINT",
    "Flag": "BOOLEAN",
    "other flag": "BOOLEAN",
    "x": "DOUBLE",
    "f": "FLOAT",
    "name": "VARCHAR",
    "kind": "ENUM('secret one', 'two')",
    "u": "UUID",
    "d": "DATE",
    "t": "TIMESTAMP",
    "ts": "TIMESTAMP_S",
    "ns": "TIMESTAMP_NS",
    "tz": "TIMESTAMP WITH TIME ZONE",
    "clock": "TIME",
    "price": "DECIMAL(18,3)",
    "wide": "DECIMAL(38,10)",
    "huge": "UHUGEINT",
    "list": "INTEGER[]",
    "bytes": "BLOB",
    "class": "INTEGER",
    "pkdp_backtick_1": "INTEGER",
    "a == 1": "BOOLEAN",
    "a": "INTEGER",
}


@pytest.fixture(scope="module")
def people() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        filled(connection)
        yield connection


FRAME = frame()


def _ids(connection: duckdb.DuckDBPyConnection, condition: str) -> list[int]:
    return [row[0] for row in connection.execute(f"SELECT id FROM people WHERE {condition} ORDER BY id").fetchall()]


def _where(sql: str) -> str | bool | None:
    """Return what `to_where` gives, and False where it says that no row can be meant."""
    try:
        return to_where(sql, COLUMNS)
    except ArgumentError as error:
        if "true of no row" in str(error):
            return False
        raise


@settings(max_examples=few(100, 12))
@given(tree=trees(), seed=st.integers(0, 2**32))
def test_a_filter_selects_what_sql_selects_however_it_is_spelled(people, tree, seed):
    speller = Speller(random.Random(seed))
    first, second = speller.spelled(tree), speller.spelled(tree)
    wanted = _ids(people, first)

    where = _where(first)

    assert _where(second) == where
    if where is False:
        assert wanted == []
        return
    assert _ids(people, "true" if where is None else predicate_sql(from_query(where), COLUMNS)) == wanted
    selected = selected_rows(FRAME, where and from_query(where))
    assert wanted == list(range(len(FRAME)) if selected is None else np.flatnonzero(selected))


@settings(max_examples=few(100, 12))
@given(text=st.text(max_size=60) | st.text(alphabet="nsb'\"(),=<>!-.1e \n", max_size=40))
def test_what_is_no_filter_gives_our_error(text):
    with suppress(ArgumentError):
        assert to_where(text, COLUMNS) is None or predicate_sql(from_query(to_where(text, COLUMNS)), COLUMNS)


@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20))
def test_any_text_is_found_again(people, text):
    literal = "'" + text.replace("'", "''") + "'"
    where = to_where(f"name = {literal}", TYPES)

    texts = "(SELECT unnest([?, 'no' || ?]::VARCHAR[]) AS name)"
    rows = people.execute(
        f"SELECT name FROM {texts} WHERE {predicate_sql(from_query(where), TYPES)}", [text, text]
    ).fetchall()
    assert rows == [(text,)]
    assert list(selected_rows(pd.DataFrame({"name": [text, "no" + text]}), from_query(where))) == [True, False]


EQUAL = [
    ("age > 18", ["AGE>18", "18 < age", "NOT age <= 18", "((age) > (18.0))", "age > 1.8e1", "age > 18 AND age > 18"]),
    ("age > 18", ["age > 18.5", "age >= 18.01", "NOT (age < 18.4)", "age > 18 OR FALSE", "TRUE AND age > 18"]),
    (
        "Flag",
        [
            "flag = TRUE",
            "NOT flag = FALSE",
            "flag IS TRUE",
            "FLAG <> false",
            "not not flag",
            '"flag"',
            "flag in (true)",
        ],
    ),
    ("Flag == False", ["NOT flag", "flag = false", "flag is false", "NOT (flag OR flag)", "flag NOT IN (TRUE)"]),
    ("Flag == False or Flag.isna()", ["flag IS NOT TRUE", "flag IS DISTINCT FROM true", "NOT flag IS TRUE"]),
    ("age in [1, 2, 3]", ["age IN (3, 1, 2, 1.0)", "age = 1 OR 2 = age OR age IN (3)", "NOT age NOT IN (1,2,3)"]),
    ("age == 1", ["age IN (1)", "age = 1 AND age IS NOT NULL", "age IS NOT DISTINCT FROM 1", "age IN (1, 1000, 1.5)"]),
    ("age != 1 and age.notna()", ["age <> 1", "NOT age = 1", "1 != age", "age NOT IN (1)"]),
    ("age <= 5 and age >= 1", ["age BETWEEN 1 AND 5", "age >= 1 AND age <= 5", "NOT (age < 1 OR age > 5)"]),
    ("age < 1 or age > 5", ["age NOT BETWEEN 1 AND 5", "NOT age BETWEEN 1 AND 5", "age > 5 OR age < 1"]),
    ("age.notna()", ["age < 1000", "age IS NOT NULL", "age <> 1.5", "age >= -128", "age = 1 OR age IS NOT NULL"]),
    ("age.isna()", ["age IS NULL", "NOT age IS NOT NULL", "age IS NULL OR age > 1000"]),
    ("f > 0.10000000149011612", ["f > 0.1", "f > 1e-1", "f > 0.100000001"]),
    ("x in [0, 2.5]", ["x = -0.0 OR x = 2.50", "x IN (25e-1, 0)"]),
    ("price in [1, 2.5]", ["price IN (1, 2.5, 2.5001)", "price = 2.5 OR price = 1"]),
    ("d >= '2020-01-31'", ["d >= '2020-01-31'", "DATE '2020-01-31' <= d", "d >= TIMESTAMP '2020-01-31 00:00:00'"]),
    ("d > '2020-01-31'", ["d > date'2020-01-31'", "d > TIMESTAMP '2020-01-31 12:00:00'"]),
    ("d == '2020-01-31'", ["d = '2020-01-31'", "d IN (DATE '2020-01-31')"]),
    ("t < '2020-01-31 12:00:00.5'", ["t < '2020-01-31T12:00:00.500'", "NOT t >= TIMESTAMP '2020-01-31 12:00:00.5'"]),
    ("ts <= '2020-01-31 12:00:00'", ["ts < '2020-01-31 12:00:00.5'", "ts <= '2020-01-31 12:00'"]),
    ("tz >= '2019-12-31 22:00:00+00:00'", ["tz >= '2020-01-01 00:00:00+02'", "tz >= TIMESTAMPTZ '2019-12-31 22:00Z'"]),
    ('name == "it\'s `@"', ["name = 'it''s `@'"]),
    ("u == '00000000-0000-0000-0000-00000000000a'", ["u = '00000000-0000-0000-0000-00000000000A'"]),
    ("`other flag`", ['"OTHER flag"', '"other flag" = TRUE']),
    ("`class` == 1", ["class = 1"]),
    ("pkdp_backtick_1 == 1", ["pkdp_backtick_1 = 1"]),
    ("a == 1", ["a = 1"]),
    ("`a == 1`", ['"a == 1"']),
    (
        "name.str.like('A%')",
        ["name LIKE 'A%'", "NAME like 'A%%'", "name LIKE '!A%' ESCAPE '!'", "NOT name NOT LIKE 'A%'"],
    ),
    ("name.notna() and not name.str.like('A%')", ["name NOT LIKE 'A%'", "NOT name LIKE 'A%'"]),
    ("name.str.like('a_%b')", ["name LIKE 'a_%b'", "name LIKE 'a%_%b'", "name LIKE 'a%%_b'"]),
    ("name.str.like('%50\\\\%')", ["name LIKE '%50!%' ESCAPE '!'", "name LIKE '%50\\%' ESCAPE '\\'"]),
    ("name.str.like('\\\\\\\\%')", ["name LIKE '\\%'"]),
    ("name == 'A'", ["name LIKE 'A'", "name LIKE 'A' ESCAPE '!'", "name = 'A'"]),
    ("name.notna()", ["name LIKE '%'", "name LIKE '%%'", "name IS NOT NULL"]),
    ("kind.str.like('%o')", ["kind LIKE '%o'"]),
    ("d.dt.year == 2020", ["year(d) = 2020", "2020.0 = extract(year FROM d)", "date_part('YEAR', D) = 2020"]),
    ("t.dt.month in [1, 2]", ["month(t) IN (2, 1)", "datepart('month', t) = 1 OR month(t) = 2"]),
    ("d.dt.isocalendar().day > 5", ["isodow(d) > 5", "NOT isodow(d) <= 5.5"]),
    ("d.dt.day != 1 and d.dt.day.notna()", ["day(d) <> 1", "NOT dayofmonth(d) = 1"]),
    (
        "d.dt.year <= 2021 and d.dt.year >= 2020",
        ["year(d) BETWEEN 2020 AND 2021", "NOT (year(d) > 2021 OR 2020 > year(d))"],
    ),
    (None, ["TRUE", "flag OR TRUE", "NOT FALSE", "age IS NULL OR age IS NOT NULL", "age IS NULL OR age < 200"]),
]


@pytest.mark.parametrize(
    ("where", "sql"), [(where, sql) for where, filters in EQUAL for sql in filters], ids=lambda value: str(value)
)
def test_equal_filters_give_one_text(where, sql):
    assert to_where(sql, TYPES) == where


@pytest.mark.parametrize(
    "sql", ["FALSE", "flag AND FALSE", "age = 1.5", "age > 127", "flag AND NOT flag", "age = 1 AND age IS NULL"]
)
def test_a_filter_that_is_never_true_is_refused(sql):
    with pytest.raises(ArgumentError, match="true of no row"):
        to_where(sql, TYPES)


REFUSED = {
    # Other statements, and text that would end one.
    "age > 1; DROP TABLE people": "outside quotes",
    "age > 1 -- AND flag": "outside quotes",
    "age > 1 /* x */": "outside quotes",
    "age > 1 --": "outside quotes",
    "1=1) OR (1=1": "cannot be read",
    "flag) OR (flag": "cannot be read",
    "name = '' OR ''=''": "a column must stand",
    "name = 'a' 'b'": "cannot be read",
    "name = 'a": "cannot be read",
    'name = "b"': "a constant must stand",
    "flag UNION SELECT 1": "cannot be read",
    "flag LIMIT 1": "cannot be read",
    "flag ORDER BY age": "cannot be read",
    "flag GROUP BY 1": "cannot be read",
    # What would read other data or run code.
    "age IN (SELECT 1)": "a subquery",
    "EXISTS (SELECT 1)": "a subquery",
    "age = (SELECT max(age) FROM people)": "a subquery",
    "length(name) = 1": "a function or operator, length",
    "getenv('HOME') = 'x'": "a function or operator, getenv",
    "age = random()": "a function or operator|cannot be read",
    "error(name)": "a function or operator, error",
    "age = CAST('1' AS INTEGER)": "a constant must stand",
    "CASE WHEN flag THEN TRUE END": "a constant must stand",
    "age = ANY(list)": "a subquery",
    "list[1] = 1": "outside quotes",
    "list = [1]": "outside quotes",
    "name = {'a': 1}": "outside quotes",
    "people.age = 1": "a dot",
    "rowid = 1": "names column 'rowid'",
    "current_user = 'x'": "names column 'current_user'",
    # Other operators and constants.
    "age::INTEGER = 1": "outside quotes",
    "age + 1 = 2": r"a function or operator, \+",
    "age = 1 + 1": r"a function or operator, \+",
    "age = 2 - 1": "a function or operator, \\-",
    "age = -age": "a function or operator, \\-",
    "age * 2 = 2": "outside quotes",
    "name || 'x' = 'x'": "outside quotes",
    "name ~ 'x'": "outside quotes",
    "~age = 1": "outside quotes",
    "name NOT LIKE '%'": "true of no row",
    "NOT (name LIKE '%%')": "true of no row",
    "name ILIKE 'x%'": "a function or operator, \\~\\~\\*",
    "name GLOB 'x*'": "a function or operator, \\~\\~\\~",
    "'x' LIKE name": "a column must stand",
    "name LIKE name": "a constant must stand",
    "name LIKE 5": "something other than a text",
    "name LIKE NULL": "IS NULL",
    "age LIKE '1%'": "TINYINT: only text",
    "u LIKE '0%'": "UUID: only text",
    "name LIKE 'x!' ESCAPE '!'": "ends with its escape",
    "name LIKE 'x' ESCAPE 'ab'": "not one character",
    "name LIKE 'x' ESCAPE '%'": "not one character",
    f"name LIKE '{'_' * 201}'": "more than 200 characters",
    # Parts of dates.
    "year(tz) = 2020": "in every time zone",
    "year(clock) = 1": "TIME: only dates and timestamps",
    "year(name) = 2020": "VARCHAR: only dates and timestamps",
    "year(d) = '2020'": "the year of column 'd' with a text",
    "year(d) = TRUE": "with a boolean",
    "year(d) = year(t)": "a constant must stand",
    "year(d) = age": "a constant must stand",
    "year(d)": "a constant must stand",
    "year(d + 1) = 2020": "a column must stand",
    "year(DATE '2020-01-01') = 2020": "a column must stand",
    "d.year() = 2020": "a function or operator, year",
    "year(d, d) = 2020": "a function or operator, year",
    "date_part('hour', t) = 3": "a function or operator, date_part",
    "date_part(name, t) = 3": "a function or operator, date_part",
    "dayofweek(d) = 0": "write isodow",
    "extract(dow FROM d) = 0": "write isodow",
    "month(d) = 1.5": "true of no row",
    "name SIMILAR TO 'x'": "a function or operator, regexp_full_match",
    "name COLLATE NOCASE = 'x'": "a column must stand",
    "age = $1": "outside quotes",
    "age = ?": "outside quotes",
    "age = :age": "outside quotes",
    "age = @age": "outside quotes",
    "name = E'a'": "outside quotes",
    "name = x'00'": "outside quotes",
    "name = $$a$$": "outside quotes",
    "name = U&'a'": "outside quotes",
    "age = 0x10": "cannot be read",
    "age = 1e9999": "too large or too small",
    "age = 1e-999999999999999999999999999": "too large or too small",
    "age = 1.2.3": "cannot be read",
    "d > CURRENT_DATE": "a constant must stand",
    "d > INTERVAL '1' DAY": "a function or operator, to_days",
    "clock > '12:00'": "IS NULL and IS NOT NULL",
    "bytes = 'x'": "IS NULL and IS NOT NULL",
    "list = 1": "IS NULL and IS NOT NULL",
    # Columns and constants where they cannot stand.
    "age": "as a condition, but it has type TINYINT",
    "NOT name": "as a condition",
    "age AND flag": "as a condition",
    "1": "where a condition must stand",
    "'TRUE'": "where a condition must stand",
    "flag AND 1": "where a condition must stand",
    "age = big": "a constant must stand",
    "age IN (big)": "where a constant must stand",
    "age BETWEEN 1 AND big": "where a constant must stand",
    "5 BETWEEN age AND big": "a column must stand",
    "1 IN (1)": "a column must stand",
    "1 = 1": "a column must stand",
    "(age = 1) = TRUE": "a column must stand",
    "(age = 1) IS NULL": "a column must stand",
    "age = 1 = TRUE": "cannot be read",
    "1 < age < 5": "cannot be read",
    "age = 1 IS TRUE": "a column must stand",
    "age IS NULL IS NULL": "a column must stand",
    "age IS 1": "cannot be read",
    "age IS TRUE": "as a condition",
    "age IN ()": "a function or operator|cannot be read",
    "age IN 1": "a function or operator|cannot be read",
    "age BETWEEN 1": "cannot be read",
    "age =": "cannot be read",
    "age = AND": "cannot be read",
    "(age = 1": "cannot be read",
    "age = 1)": "cannot be read",
    "": "empty",
    " \n": "empty",
    # NULL anywhere but in IS NULL.
    "NULL": "IS NULL",
    "age = NULL": "IS NULL",
    "NULL <> age": "IS NULL",
    "age IN (1, NULL)": "IS NULL",
    "age NOT IN (NULL)": "IS NULL",
    "age BETWEEN NULL AND 1": "IS NULL",
    "age IS DISTINCT FROM NULL": "IS NULL",
    "flag AND NULL": "IS NULL",
    # Constants of another type than the column.
    "age = '1'": "TINYINT, with a text: write a number",
    "name = 1": "VARCHAR, with a number: write a text",
    "flag = 1": "BOOLEAN, with a number: write TRUE or FALSE",
    "flag = 't'": "write TRUE or FALSE",
    "flag < TRUE": "with = or IN",
    "name = DATE '2020-01-01'": "with a date",
    "d > 20200101": "with a number",
    "d > '2020'": "write a date",
    "d > '2020-13-01'": "write a date",
    "d > '2020-02-30'": "write a date",
    "d > 'today'": "write a date",
    "d > 'infinity'": "write a date",
    "d > '2020-01-01 12:00:00'": "write a date",
    "d > DATE '2020-01-01 12:00:00'": "write a date",
    "t > '2020-01-01 25:00:00'": "write a date",
    "t > '2020-01-01 12:00:00+02'": "write a date",
    "t > TIMESTAMPTZ '2020-01-01 12:00:00+02'": "with a instant|with an instant",
    "tz > '2020-01-01 12:00:00'": "its offset",
    "tz > '2020-01-01'": "its offset",
    "tz > DATE '2020-01-01'": "its offset",
    "kind = 1": "type ENUM, with a number",
    "u < '00000000-0000-0000-0000-00000000000a'": "with = or IN",
    "u = 'x'": "a UUID",
    "f > 1e39": "beyond the range",
    "x > 1e309": "beyond the range",
    "wide > 12345678901.5": "more than 15 digits",
    # Letters that look like others.
    "name = ‘a’": "outside quotes",
    "name = ＇a＇": "outside quotes",
    "“name” = 'a'": "outside quotes",
    "ｎame = 'a'": "outside quotes",
    "age\u00a0= 1": "outside quotes",
    "age ＝ 1": "outside quotes",
    "age = １": "outside quotes",
    "age = 1\u037e DROP TABLE people": "outside quotes",
    "age = 1\0": "no text may hold",
    "name = '\ud800'": "no text may hold",
    "name = '\0'": "no text may hold",
    "`age` = 1": "outside quotes",
    "nmae = 'a'": "Did you mean 'name'",
}


@pytest.mark.parametrize(("sql", "reason"), REFUSED.items(), ids=[repr(sql) for sql in REFUSED])
def test_everything_else_is_refused(sql, reason):
    with pytest.raises(ArgumentError, match=reason) as refused:
        to_where(sql, TYPES)
    assert str(refused.value).startswith("filter ")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "(" * 2_000 + "flag" + ")" * 2_000,
        "(" * 51 + "flag" + ")" * 51,
        "NOT (" * 51 + "flag" + ")" * 51,
        "(" * 3_999,
        "flag AND " * 1_000 + "flag",
        "age IN (" + "1," * 3_000 + "1)",
        "NOT " * 900 + "flag",
        "NOT " * 998 + "flag",
    ],
)
def test_long_and_deep_filters_are_refused_by_name(sql):
    with pytest.raises(ArgumentError, match=r"longer than 4000|more than 50|too deeply|cannot be read"):
        to_where(sql, TYPES)


def test_what_is_just_within_the_limits_is_read_by_both_engines(people):
    deep = "n = 7"
    for level in range(50):
        deep = f"({deep} {'AND' if level % 2 else 'OR'} n <> {level % 5})"
    flat = "NOT " * 100 + " AND ".join(f"n <> {number}" for number in range(2, 90))
    for sql in (deep, flat):
        where = to_where(sql, COLUMNS)
        wanted = _ids(people, sql)
        assert 0 < len(wanted) < len(FRAME)
        assert _ids(people, predicate_sql(from_query(where), COLUMNS)) == wanted
        assert list(np.flatnonzero(selected_rows(FRAME, from_query(where)))) == wanted


def test_names_are_resolved_as_duckdb_does():
    assert to_where("NAME = 'a'", {"Name": "VARCHAR"}) == "Name == 'a'"
    assert to_where('"GRÖSSE" = 1', {"GRÖSSE": "INTEGER", "grösse": "INTEGER"}) == "`GRÖSSE` == 1"
    with pytest.raises(ArgumentError, match="nAme"):
        to_where("nAme = 'a'", {"Name": "VARCHAR", "NAME": "VARCHAR"})
    # Neither ß nor ı is another column's letter.
    for name in ("STRASSE", "ID"):
        with pytest.raises(ArgumentError, match="does not have"):
            to_where(f"{name} = 1", {"straße": "INTEGER", "ıd": "INTEGER"})


@pytest.mark.parametrize("name", ["a`b", "a@b", "ﬁ", "a\nb", "a\u200bb", "class", "é0", "`", "'", "a == 1"])
def test_every_name_can_be_written(name):
    assert from_query(to_where(f'"{name}" = 1', {name: "INTEGER"})).columns == {name}


def test_duckdb_is_asked_no_pattern_that_takes_it_long():
    """DuckDB 1 tries every way to match a % before a _, and nothing can interrupt it."""
    assert '"~~"(' in predicate_sql(from_query(to_where("name LIKE '%a%b'", TYPES)), TYPES)
    sql = predicate_sql(from_query(to_where("name LIKE '%a_%a_%a_%a_%z'", TYPES)), TYPES)
    assert "~~" not in sql
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE texts AS SELECT repeat('ab', 100_000) || ? AS name", ["z"])
        assert connection.execute(f"SELECT count(*) FROM texts WHERE {sql}").fetchall() == [(1,)]
