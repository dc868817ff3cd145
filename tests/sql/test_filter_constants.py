"""Constants in SQL filters: compared exactly with columns of every type that DuckDB has."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest
from filter_cases import to_where
from thorough import ALL, one_in, thinned

from pkdp_pipeline.engines.pandas_engine import selected_rows
from pkdp_pipeline.engines.relation_engine import predicate_sql
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import from_query


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


_WHOLE = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
    "UHUGEINT": (0, 2**128 - 1),
}
_EXACT = {
    kind: [low, low + 1, 0, 1, 2, high - 1, high, high // 2, high // 2 + 1] for kind, (low, high) in _WHOLE.items()
}
_EXACT |= {
    "DECIMAL(4,2)": ["-99.99", "-0.01", "0", "0.1", "0.11", "99.99"],
    "DECIMAL(18,3)": [
        "-999999999999999.999",
        "-0.001",
        "0",
        "2.499",
        "2.5",
        "2.501",
        "999999999999.998",
        "999999999999.999",
    ],
    "DECIMAL(38,10)": [
        "9999999999999999999999999999.9999999999",
        "-0.0000000001",
        "0",
        "0.3",
        "0.3000000001",
        "90071992547409.93",
    ],
    "DECIMAL(38,0)": ["9" * 38, "-" + "9" * 38, "9007199254740993", "9007199254740992", "1"],
    "DECIMAL(9,9)": ["0.1", "0.100000001", "-0.999999999", "0"],
}
_SIGNS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _selected(connection: duckdb.DuckDBPyConnection, kind: str, values: list[str], sql: str) -> list[int]:
    """Return the positions of the values of a column of this type that a filter selects."""
    try:
        where = to_where(sql, {"v": kind})
    except ArgumentError as error:
        if "true of no row" not in str(error):
            raise
        return []
    rows = ", ".join(f"({i}, '{value}'::{kind})" for i, value in enumerate(values))
    selected = connection.execute(
        f"SELECT id FROM (VALUES {rows}, (-1, NULL)) AS t(id, v) "
        f"WHERE {'true' if where is None else predicate_sql(from_query(where), {'v': kind})} ORDER BY id"
    )
    return [row[0] for row in selected.fetchall()]


@thinned(2)
@pytest.mark.parametrize("kind", one_in(4, _EXACT))
def test_numbers_are_compared_exactly_up_to_the_ends_of_each_type(connection, kind):
    values = [str(value) for value in _EXACT[kind]]
    exact = [Fraction(value) for value in values]
    scale = int(kind.rstrip(")").partition(",")[2] or 0)
    constants = {*values, "0.5", "-0.5", "1e40", "-1e40", "2.00000000000000000001"}
    constants |= {str(int(value) + step) for value in values for step in (-1, 1) if "." not in value}
    for text in constants:
        constant = Fraction(text)
        if constant.denominator != 1 and abs(constant) * 10**scale > 10**15:
            continue
        for sign, compares in _SIGNS.items():
            # One sign shows in the quick run that negations are those of SQL.
            for sql in (f"v {sign} {text}", f"NOT (NOT v {sign} {text})")[: 2 if ALL or sign == "<" else 1]:
                wanted = [i for i, value in enumerate(exact) if compares(value, constant)]
                assert _selected(connection, kind, values, sql) == wanted, sql
    listed = [text for text in values if Fraction(text).denominator == 1 or abs(Fraction(text)) * 10**scale <= 10**15]
    inside = [i for i, text in enumerate(values) if text in listed]
    assert _selected(connection, kind, values, f"v IN ({', '.join(listed)}, 0.123456789123)") == inside
    assert _selected(connection, kind, values, f"v NOT IN ({', '.join(listed)})") == sorted(
        set(range(len(values))) - set(inside)
    )
    assert _selected(
        connection, kind, values, f"v IN ({values[-1]}, {values[-1]})" if values[-1] in listed else "v IS NOT NULL"
    )


_MOMENTS = {
    "DATE": ["0001-01-01", "1969-12-31", "1970-01-01", "2020-02-29", "9999-12-31"],
    "TIMESTAMP_S": ["0001-01-01 00:00:00", "1969-12-31 23:59:59", "2020-02-29 12:00:00", "2020-02-29 12:00:01"],
    "TIMESTAMP_MS": ["1969-12-31 23:59:59.999", "2020-02-29 12:00:00.500", "2020-02-29 12:00:00.501"],
    "TIMESTAMP": ["1969-12-31 23:59:59.999999", "2020-02-29 12:00:00.500001", "2020-02-29 12:00:00.500002"],
    "TIMESTAMP_NS": ["1969-12-31 23:59:59.999999999", "2020-02-29 12:00:00.500001001", "2020-02-29 12:00:00.500001002"],
    "TIMESTAMP WITH TIME ZONE": ["1969-12-31 23:59:59.999999+00:00", "2020-02-29 12:00:00+00:00"],
}


@thinned(3)
@pytest.mark.parametrize("kind", _MOMENTS)
def test_dates_and_times_are_compared_to_the_last_digit(connection, kind):
    values = _MOMENTS[kind]
    zoned = "ZONE" in kind
    literal = "" if zoned else "TIMESTAMP "
    between = [
        "1969-12-31 23:59:59.9",
        "2020-02-29 12:00:00.500001",
        "2020-02-29 11:59:59.999999999",
        "1970-01-01 00:00:00",
    ]
    constants = [*values, *(text + "+00:00" * zoned for text in between)]
    for text in constants:
        # ISO texts sort as the moments do once their fractions are equally long.
        moment = _padded(text)
        for sign, compares in _SIGNS.items():
            wanted = [i for i, value in enumerate(values) if compares(_padded(value), moment)]
            assert _selected(connection, kind, values, f"v {sign} {literal}'{text}'") == wanted, (sign, text)
    assert _selected(connection, kind, values, f"v IN ({', '.join(repr(value) for value in values[1:])})") == list(
        range(1, len(values))
    )
    assert _selected(connection, kind, values, f"v NOT IN ('{values[0]}')") == list(range(1, len(values)))


def _padded(text: str) -> str:
    text = text.removesuffix("+00:00")
    text += " 00:00:00" * (len(text) == 10)
    return text + "." * ("." not in text) + "0" * (9 - len(text.partition(".")[2]))


def test_an_offset_moves_an_instant_whatever_the_session_says(connection):
    values = ["2020-01-01 00:00:00+00"]
    cursor = connection.cursor()
    cursor.execute("SET TimeZone = 'Asia/Tokyo'")
    for text in (
        "2020-01-01 02:30:00+02:30",
        "2019-12-31T19:00:00-05",
        "2020-01-01 00:00:00Z",
        "2020-01-01 00:00+0000",
    ):
        assert _selected(cursor, "TIMESTAMP WITH TIME ZONE", values, f"v = '{text}'") == [0]
        assert _selected(cursor, "TIMESTAMP WITH TIME ZONE", values, f"v > '{text}'") == []
    cursor.close()


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_a_constant_is_the_nearest_number_of_the_type(connection, kind):
    values = ["0.1", "0.3", "-0.0", "16777216", "1e30", "1e-40", "inf", "-inf"]
    for i, value in enumerate(values[:6]):
        assert _selected(connection, kind, values, f"v = {value}") == [i]
        assert i not in _selected(connection, kind, values, f"v <> {value} OR v < {value}")
        assert i in _selected(connection, kind, values, f"v IN ({value}, 7)")
    frame = pd.DataFrame({"v": np.array(values, dtype=np.float32 if kind == "FLOAT" else np.float64)})
    for i, value in enumerate(values[:6]):
        assert list(np.flatnonzero(selected_rows(frame, from_query(to_where(f"v = {value}", {"v": kind}))))) == [i]


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_nan_is_missing(connection, kind):
    frame = pd.DataFrame({"v": np.array([1, np.nan, 3], dtype=np.float32 if kind == "FLOAT" else np.float64)})
    for sql, wanted in {
        "v > 2": [2],
        "NOT v <= 2": [2],
        "v <> 1": [2],
        "v NOT IN (3)": [0],
        "v IS NULL": [1],
        "v IS DISTINCT FROM 1": [1, 2],
    }.items():
        selected = [i for i in _selected(connection, kind, ["1", "nan", "3"], sql) if i >= 0]
        assert selected == wanted == list(np.flatnonzero(selected_rows(frame, from_query(to_where(sql, {"v": kind})))))


def test_texts_of_an_enum_and_a_uuid(connection):
    kind = "ENUM('b', 'a')"
    assert _selected(connection, kind, ["a", "b"], "v = 'a'") == [0]
    assert _selected(connection, kind, ["a", "b"], "v NOT IN ('a', 'no member')") == [1]
    uuids = ["00000000-0000-0000-0000-00000000000a", "f0000000-0000-0000-0000-000000000000"]
    assert _selected(connection, "UUID", uuids, "v IN ('F0000000-0000-0000-0000-000000000000')") == [1]
    assert _selected(connection, "UUID", uuids, "v <> '{F0000000-0000-0000-0000-000000000000}'") == [0]


@pytest.mark.parametrize("kind", ["INTEGER[]", "STRUCT(a INTEGER)", "TIME", "BLOB", "INTERVAL"])
def test_every_column_can_be_asked_for_null(connection, kind):
    connection.execute("CREATE OR REPLACE TABLE other (id INTEGER, v " + kind + ")")
    connection.execute("INSERT INTO other VALUES (1, NULL)")
    assert connection.execute(
        f"SELECT id FROM other WHERE {predicate_sql(from_query(to_where('v IS NULL', {'v': kind})), {'v': kind})}"
    ).fetchall()
    assert not connection.execute(
        f"SELECT id FROM other WHERE {predicate_sql(from_query(to_where('v IS NOT NULL', {'v': kind})), {'v': kind})}"
    ).fetchall()
