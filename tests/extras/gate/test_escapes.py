"""Attempts to get more out of a gate than its policy allows: all are refused, and data and ledger stay as they were."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from analyst import Scene, count, histogram

from pkdp_pipeline.errors import ArgumentError, DifferencingError

#: What is no question.
SHAPES: list[object] = [
    None,
    1,
    b"\xff",
    "",
    "   ",
    "null",
    "[]",
    "[" * 60_000,
    "1" * 60_000,
    '"SELECT 1"',
    "SELECT 1",
    "{}",
    '{"table": "events"}',
    '{"table": "events", "count": true, "count": true}',
    '{"table": "events", "count": true, "k": 25, "k": 1}',
    '{"table": "events", "count": true, "noise": NaN}',
    '{"table": "events", "count": true, "noise": Infinity}',
    ["events"],
    {"sql": "SELECT * FROM events"},
    {"histogram": "flag"},
    {"table": None, "count": True},
    {"table": 5, "count": True},
    {"table": ["events"], "count": True},
    {"table": {"name": "events"}, "count": True},
    count(count=False),
    count(count=1),
    count(count="true"),
    count(count=None),
    histogram(None),
    histogram([]),
    histogram({}),
    histogram(5),
    histogram([["flag"]]),
    histogram([None]),
    histogram(["flag", "flag"]),
    histogram(["flag", "FLAG"]),
    histogram("flag", count=True),
    count(kind="histogram"),
    count(by=["flag"]),
    count(unit="flag"),
    count(attacker="none"),
    count(K=25),
    count(K=25),  # the Kelvin sign, which str.lower makes a k
    count(query="SELECT 1"),
    count(where="flag"),
]

#: Tables and columns outside the policy, also in disguise.
OUTSIDE: list[object] = [
    *(
        {"table": name, "count": True, "k": 25}
        for name in (
            "hidden",
            "adults",
            "people.main.events",
            "people.main.hidden",
            "main.events",
            "temp.events",
            '"people"."main"."events"',
            "events; DROP TABLE events",
            'events" UNION FROM "hidden',
            "(SELECT * FROM events)",
            "people.csv",
            "/etc/passwd",
            "read_csv('people.csv')",
            "duckdb_tables",
            "information_schema.tables",
            "pg_catalog.pg_class",
            "sqlite_master",
            "event\u017f",  # the long s, which str.casefold makes an s
            "events\x00",
            "events\ud800",
            "",
            " ",
        )
    ),
    *(
        histogram(by, k=25)
        for by in (
            "uid",
            "UID",
            '"uid"',
            "note",
            "rowid",
            ["flag", "age"],
            "flag, uid",
            "uid % 2",
            "*",
            "COLUMNS(*)",
            "substr(note, 7)",
            "flag\x00",
            "flag\ud800",
            "(SELECT note FROM events)",
            "country AS c, note",
        )
    ),
    *(
        count(k=25, filter=text)
        for text in (
            "uid = 7",
            '"uid" < 100',
            '"UID" < 100',
            "events.uid < 100",
            "note = 'secret7'",
            "flag AND age = 3",
            "rowid = 3",
            "true) OR (true",
            "flag; DROP TABLE events",
            "flag -- AND country",
            "flag /* AND country */",
            "flag AND (SELECT true FROM hidden)",
            "uid IN (SELECT uid FROM hidden)",
            "country IN (SELECT note FROM events)",
            "EXISTS (FROM events WHERE uid = 1)",
            "length(country) = 2",
            "note LIKE 'secret%'",
            "country LIKE note",
            "country ILIKE 'u%'",
            "upper(country) LIKE 'U%'",
            "year(day) = 2020",
            "extract(year FROM day) = 2020",
            f"country LIKE '{'_%' * 150}'",
            "country SIMILAR TO 'U.*'",
            "regexp_matches(country, 'U')",
            "CAST(country AS INT) = 1",
            "country::INT = 1",
            "country = 1",
            "flag = country",
            "flag = 'yes'",
            "1 / 0 = 1",
            "flag AND error('x')",
            "getenv('HOME') = 'x'",
            "current_setting('memory_limit') = 'x'",
            "read_text('people.csv') = 'x'",
            "random() < 0.5",
            "row_number() OVER () < 7",
            "count(*) > 5",
            "CASE WHEN flag THEN error('x') END",
            "lambda x: x",
            "$1",
            "?",
            "@flag",
            "@frame",
            "`uid` == 7",
            "__import__('os').system('id')",
            "country.str.len() == 2",
            "index == 7",
            "flag COLLATE nocase",
            "country = E'\\x41'",
            "country = $$US$$",
            "flag LIMIT 1",
            "flag UNION SELECT 1",
            "",
            "   ",
            5,
            True,
            ["flag"],
            {"sql": "flag"},
        )
    ),
]

#: Numbers and rules that are the policy's.
RULES: list[object] = [
    *(
        count(**further)
        for further in (
            {"k": 19},
            {"k": 0},
            {"k": -20},
            {"k": 20.5},
            {"k": 25.0},
            {"k": 1e300},
            {"k": True},
            {"k": "25"},
            {"k": [25]},
            {"k": 99999999999999999999},
            {"k": 25, "k_complement": 1},
            {"k": 25, "k_complement": -5},
            {"k": 25, "release_threshold": 1},
            {"k": 25, "release_threshold": "40"},
            {"k": 25, "below": "noise"},
            {"k": 25, "below": ["noise"]},
            {"k": 25, "below": "noise_from_1"},
            {"noise": 1.0},
            {"noise": 1e-300},
            {"noise": 1e300},
            {"noise": -1},
            {"noise": 0},
            {"noise": True},
            {"noise": "1"},
            {"noise": {"epsilon": 1.0}},
            {"period": "2021"},
            {"missing_unit": "error"},
            {"domain": "[true]"},
            {"protects": "value"},
            {"one_cell": "error"},
            {"ledger": ":memory:"},
            {"revise": True},
            {"label": "mine"},
        )
    ),
    *(
        histogram("flag", **further)
        for further in (
            {"k": 1},
            {"k_complement": 25},
            {"noise": 1.0, "release_threshold": 40},
            {"period": "2021-01-01"},
            {"domain": "[true]"},
            {"domain": ["US", "SE"]},
            {"protects": "value"},
            {"missing_unit": "error"},
            {"one_cell": "error"},
            {"one_cell": "hash"},
            {"order_by": "uid"},
            {"undeclared": "error"},
            {"attacker": {"p_max": 1e-9}},
        )
    ),
]

ATTEMPTS = [*SHAPES, *OUTSIDE, *RULES]

#: Nothing of this may be in what an analyst reads: values, paths, code.
PRIVATE = re.compile(r"secret\d+\b(?!')|/usr|/home|site-packages|Traceback|\.py\b|people\.duckdb'? (is|was)")

#: Scans of what is in the gate's database, by the SQL of an analyst's own connection.
SCANS = [
    "FROM events",
    "FROM people.main.events",
    "FROM hidden",
    "SELECT (SELECT max(note) FROM events)",
    "SELECT * FROM query_table('events')",
    "SELECT pkdp_count('hidden', k := 25)",
    "SELECT pkdp_count('events', k := 1)",
    "SELECT pkdp_count('events', filter := 'note = ''secret7''', k := 25)",
    "FROM pkdp_histogram('events', 'note')",
    "FROM pkdp_histogram('events', ['flag', 'uid'])",
    "FROM pkdp_histogram('events', 'flag', period := DATE '2021-01-01')",
    "FROM pkdp_histogram('events', 'flag', domain := [true])",
    'SELECT pkdp_release(\'{"table":"hidden","count":true,"k":25}\')',
    'SELECT pkdp_release(\'{"table":"events","count":true,"k":1}\')',
    'SELECT pkdp_release(\'{"table":"events","count":true,"k":25,"missing_unit":"error"}\')',
    'FROM query(pkdp_plan(\'{"table":"events","histogram":["note"],"k":25}\'))',
    "SELECT pkdp_release('x')",
]


@pytest.fixture
def unchanged(scene: Scene) -> Iterator[Scene]:
    """A gate whose data and ledger must be, after the attempt, as they were before."""
    before = scene.state()
    yield scene
    assert scene.state() == before


def without_question(text: str, attempt: object) -> str:
    """Return what is told beside what was asked."""
    written = [repr(part)[1:-1] for part in attempt.values() if isinstance(part, str)] if _table(attempt) else []
    for part in (str(attempt), *written):
        text = text.replace(part, "")
    return text


def _table(attempt: object) -> bool:
    return isinstance(attempt, dict)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: ascii(attempt)[:80])
def test_an_attempt_is_refused_and_changes_nothing(unchanged: Scene, attempt: Any) -> None:
    with pytest.raises(ArgumentError) as refusal:
        unchanged.gate.ask(attempt)
    assert not PRIVATE.search(without_question(str(refusal.value), attempt))


@pytest.mark.parametrize("statement", SCANS)
def test_an_analysts_own_sql_reaches_nothing_else(unchanged: Scene, statement: str) -> None:
    with unchanged.gate.connect() as con, pytest.raises(duckdb.Error) as refusal:
        con.execute(statement).fetchall()
    # DuckDB 1.5 adds where in her own process a function of hers was called.
    said = re.sub(r"\n\nAt:\n(  .*\n?)*", "", str(refusal.value))
    assert not PRIVATE.search(said.replace(statement, ""))


@pytest.mark.parametrize(
    "question",
    [
        count(),
        count(filter="flag"),
        histogram("flag"),
        histogram(["country", "flag"]),
        histogram(k=21),
        histogram(filter="country <> 'US'"),
    ],
)
def test_a_second_noiseless_question_is_refused_by_the_ledger(unchanged: Scene, question: dict[str, Any]) -> None:
    with pytest.raises(DifferencingError):
        unchanged.gate.ask(question)


def test_a_question_that_was_answered_is_replayed(unchanged: Scene) -> None:
    spellings: list[Any] = [
        histogram(),
        {"table": "EVENTS", "histogram": ["COUNTRY"], "k": 20},
        {"table": ' "events" ', "histogram": "Country", "filter": None, "k": 20},
        json.dumps(histogram()),
    ]
    answers = [unchanged.gate.ask(question) for question in spellings * 3]
    assert len({answer.to_bytes() for answer in answers}) == 1
    assert all(answer.replayed for answer in answers)


def test_binding_publishes_nothing(unchanged: Scene) -> None:
    """A statement that cannot be bound is refused before its releases are fetched; EXPLAIN fetches none."""
    with unchanged.gate.connect() as con:
        with pytest.raises(duckdb.BinderException):
            con.execute("SELECT nothing FROM pkdp_histogram('events', 'flag')")
        con.execute("EXPLAIN FROM pkdp_histogram('events', 'flag')").fetchall()
        assert con.execute("FROM pkdp_releases()").fetchall() == []


@pytest.mark.parametrize(
    ("question", "absent"),
    [
        ({"table": "hidden", "count": True}, {"table": "absent", "count": True}),
        (count(filter="note = 'a'"), count(filter="nope = 'a'")),
        (histogram("note"), histogram("nope")),
    ],
)
def test_a_name_does_not_tell_whether_there_is_such_a_thing(
    unchanged: Scene, question: dict[str, Any], absent: dict[str, Any]
) -> None:
    texts = []
    for named in (question, absent):
        with pytest.raises(ArgumentError) as refusal:
            unchanged.gate.ask(named)
        texts.append(re.sub("hidden|absent|note|nope", "…", str(refusal.value)))
    assert texts[0] == texts[1]
