"""How values travel: nothing is lost, nothing is ambiguous, JSON stays JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb.gate.wire import arrow_stream, json_document
from pkdp_pipeline.errors import ArgumentError


@dataclass
class Told:
    """An answer, as any query gives it."""

    query: str
    releases: tuple[Any, ...] = ()

    def __post_init__(self):
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'Europe/Oslo'")
            relation = connection.sql(self.query)
            self.columns, self.types = relation.columns, relation.types
            self.table = relation.to_arrow_table()

    def arrow(self):
        return self.table


def value(sql):
    """Return what a column with one value and a missing one reads as."""
    answer = Told(f"SELECT {sql} AS x UNION ALL BY NAME SELECT NULL AS x")
    document = json.loads(json_document(answer), parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))
    assert document["columns"] == [{"name": "x", "type": str(answer.types[0])}]
    given, missing = sorted(document["rows"], key=lambda row: row[0] is None)
    assert missing == [None]
    return given[0]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("true", True),
        ("'é\"\\\n\x01'", 'é"\\\n\x01'),
        ("''", ""),
        ("(-128)::TINYINT", -128),
        ("9007199254740993", 9007199254740993),
        ("18446744073709551615::UBIGINT", 18446744073709551615),
        ("170141183460469231731::HUGEINT", 170141183460469231731),
        ("sum(1)", 1),
        ("1.50::DECIMAL(9, 2)", "1.50"),
        ("123456789012345678901234567890.12::DECIMAL(38, 2)", "123456789012345678901234567890.12"),
        ("0.1::DOUBLE", 0.1),
        ("'nan'::DOUBLE", "NaN"),
        ("'inf'::DOUBLE", "Infinity"),
        ("'-inf'::FLOAT", "-Infinity"),
        ("DATE '2013-01-02'", "2013-01-02"),
        ("TIMESTAMP '2013-01-02 03:04:05'", "2013-01-02T03:04:05"),
        ("TIMESTAMP '2013-01-02 03:04:05.06'", "2013-01-02T03:04:05.060000"),
        ("TIMESTAMP_NS '2013-01-02 03:04:05.000000001'", "2013-01-02T03:04:05.000000001"),
        ("TIMESTAMP_S '2013-01-02 03:04:05'", "2013-01-02T03:04:05"),
        ("TIMESTAMPTZ '2013-01-02 03:04:05+02'", "2013-01-02T01:04:05+00:00"),
        ("TIME '03:04:05'", "03:04:05"),
        ("'b'::ENUM ('a', 'b')", "b"),
        ("'00000000-0000-0000-0000-00000000000a'::UUID", "00000000-0000-0000-0000-00000000000a"),
        ("[1, NULL, 3]", [1, None, 3]),
        ("[[1.5::DOUBLE], NULL, ['inf'::DOUBLE]]", [[1.5], None, ["Infinity"]]),
        ("[]::INTEGER[]", []),
        ("array_value(1, 2)", [1, 2]),
        ("{'day': DATE '2013-01-02', 'n': 1}", {"day": "2013-01-02", "n": 1}),
        ("[{'a': 1}, NULL]", [{"a": 1}, None]),
    ],
)
def test_a_value_keeps_what_it_is(sql, expected):
    found = value(sql)
    assert found == expected
    assert type(found) is type(expected)


def test_columns_with_one_name_and_missing_columns():
    document = json.loads(json_document(Told("SELECT 1 AS a, NULL AS a, 2 AS b FROM range(2)")))
    assert [column["name"] for column in document["columns"]] == ["a", "a", "b"]
    assert document["rows"] == [[1, None, 2]] * 2
    assert json.loads(json_document(Told("SELECT 1 AS a WHERE false")))["rows"] == []


@pytest.mark.parametrize("sql", ["'x'::BLOB", "INTERVAL 1 DAY", "MAP {'a': 1}", "'101'::BIT", "TIMETZ '03:04:05+02'"])
def test_what_json_cannot_hold_is_refused_with_a_way_out(sql):
    with pytest.raises(ArgumentError, match=r"'x'.*cast it to VARCHAR") as refused:
        value(sql)
    assert "vnd.apache.arrow.stream" in str(refused.value)


@pytest.mark.parametrize("sql", ["'infinity'::DATE", "'-infinity'::TIMESTAMP"])
def test_dates_without_end_are_refused(sql):
    with pytest.raises(ArgumentError, match="infinite"):
        value(sql)


@pytest.mark.parametrize(
    "query", ["SELECT true AS a, true AS b FROM range(500_001)", "SELECT repeat('x', 1048576) AS a FROM range(65)"]
)
def test_an_answer_that_is_too_large_for_json_travels_as_arrow(query):
    answer = Told(query)
    with pytest.raises(ArgumentError, match="too many for JSON"):
        json_document(answer)
    assert pa.ipc.open_stream(arrow_stream(answer)).read_all().num_rows == answer.table.num_rows


def test_an_answer_that_is_just_small_enough():
    assert len(json.loads(json_document(Told("SELECT true AS a, true AS b FROM range(500_000)")))["rows"]) == 500_000


def test_an_arrow_stream_holds_the_table_and_the_releases():
    release = pkdp.count(pd.DataFrame({"u": range(100)}), unit="u", attacker=pkdp.AttackerModel(p_max=0.1), k=20)
    answer = Told("SELECT 7::HUGEINT AS n, 'a'::ENUM ('a', 'b') AS e", (release,))
    table = pa.ipc.open_stream(arrow_stream(answer)).read_all()
    assert table.replace_schema_metadata(None).equals(answer.table.replace_schema_metadata(None))
    (told,) = json.loads(table.schema.metadata[b"pkdp.releases"])
    assert told == json.loads(json_document(answer))["releases"][0]
    assert told["id"] == release.id
    assert told["replayed"] is False
    assert told["sentence"] == release.certificate.sentence()
    assert pkdp.Certificate.from_json(json.dumps(told["certificate"])) == release.certificate
