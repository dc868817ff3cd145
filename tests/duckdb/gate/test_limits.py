"""What one statement may use: time, memory, rows, and what cannot be interrupted is refused before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from analyst import database, policy

from pkdp_pipeline.duckdb.gate.gate import Gate
from pkdp_pipeline.errors import ArgumentError

COUNTRIES = [("US", 100), ("NO", 100), ("DE", 100)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that no test changes."""
    return database(tmp_path_factory.mktemp("people"))


def _chain(query: str) -> str:
    """Return table expressions that would double, one after the other."""
    names = [f"a{number} AS ({query.format(number - 1)})" for number in range(1, 30)]
    return f"WITH a0 AS (SELECT 1 x), {', '.join(names)} FROM a29"


@pytest.mark.parametrize(
    ("statement", "limit"),
    [
        ("SELECT sum(a.i * b.i * c.i) FROM range(100000) a(i), range(100000) b(i), range(100000) c(i)", "seconds"),
        ("SELECT sum((SELECT count(*) FROM range(100000) b(j) WHERE j < i)) FROM range(100000) a(i)", "MB|seconds"),
        (
            "SELECT sum(pkdp_epsilon('count', k := i, p_max := 0.1, p_min := 0.01, unknown := 1000 * i, "
            "delta := 1e-9)) FROM range(20, 9000) t(i)",
            "seconds",
        ),
        ("SELECT sum(a.i) OVER (), b.i FROM range(100000) a(i), range(1000) b(i)", "MB|seconds"),
        ("SELECT count(DISTINCT a.i * b.i) FROM range(100000) a(i), range(1000) b(i)", "MB|seconds"),
        ("FROM range(3000)", "2000 rows"),
        ("SELECT 1 FROM range(100) a, range(100) b", "2000 rows"),
        ("SELECT 1 FROM pkdp_histogram('events', 'country'), range(1000)", "2000 rows"),
        ("SELECT '" + "x" * 5000 + "'", "longer than 5000"),
        ("SELECT " + "(" * 100 + "1" + ")" * 100, "nested"),
        ("SELECT " + "NOT " * 1000 + "true", "nested|depth"),
        ("SELECT 1" + " + 1" * 900, "nested"),
        ("SELECT " + "(SELECT " * 20 + "1" + ")" * 20, "planned"),
        ("SELECT a" + ".a" * 2000, "so many parts"),
        (_chain("FROM a{0} UNION ALL FROM a{0}"), "planned"),
        (_chain("FROM a{0} p, a{0} q"), "planned"),
        (_chain("SELECT (SELECT x FROM a{0}) x"), "planned"),
        ("SELECT * FROM " + "(SELECT *, * FROM " * 20 + "(SELECT 1)" + ")" * 20, "planned"),
        ("SELECT length(x) FROM " + "(SELECT x || x AS x FROM " * 25 + "(SELECT 'abc' x)" + ")" * 25, "concatenations"),
        (
            "SELECT length(x) FROM " + "(SELECT concat(x, x, x) AS x FROM " * 20 + "(SELECT 'a' x)" + ")" * 20,
            "concatenations",
        ),
        ("SELECT median(a.i) FROM range(100000) a(i), range(100000) b(i)", "Aggregate first"),
        (
            "SELECT mode(i) OVER (ORDER BY i ROWS BETWEEN 500000 PRECEDING AND 500000 FOLLOWING) "
            "FROM (SELECT a.i * 10 + b.i AS i FROM range(100000) a(i), range(10) b(i))",
            "mode over a window",
        ),
        (
            "SELECT sum(DISTINCT i) OVER (ORDER BY i ROWS BETWEEN 500000 PRECEDING AND 500000 FOLLOWING EXCLUDE TIES) "
            "FROM (SELECT a.i * 10 + b.i AS i FROM range(100000) a(i), range(10) b(i))",
            "DISTINCT sum over a window",
        ),
        ("SELECT 1 FROM range(9) t(a) GROUP BY CUBE (a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6)", "grouping sets"),
        ("SELECT " + ", ".join(f"pkdp_count('events', k := {k})" for k in range(20, 50)), "so many releases"),
        ("SELECT pkdp_epsilon('histogram', k := 1000000000, p_max := 0.1, delta := 1e-6)", "at most 100000000"),
        ("SELECT pkdp_count('events', k := 1000000000)", "at most 100000000"),
    ],
)
def test_limits_hold_and_the_gate_goes_on(path: Path, statement: str, limit: str) -> None:
    limits = {"seconds": 3.0, "rows": 2_000, "memory": "64MB", "statement_characters": 5_000}
    with Gate(path, policy=policy(limits=limits)) as gate:
        with pytest.raises(ArgumentError, match=limit):
            gate.sql(statement)
        assert gate.sql("FROM pkdp_histogram('events', 'country')").fetchall() == COUNTRIES


def test_combinations_of_public_values_are_counted_before_they_are_made(path: Path) -> None:
    """A few columns with many public values each have more combinations than memory has room for."""
    many = [str(value) for value in range(3_000)]
    table = {"unit": "uid", "columns": ["country", "note"], "k": 20, "domains": {"country": many, "note": many}}
    with Gate(path, policy=policy(tables={"events": table})) as gate:
        with pytest.raises(ArgumentError, match="more cells than the 100000 rows"):
            gate.sql("FROM pkdp_histogram('events', ['country', 'note'])")
        assert len(gate.sql("FROM pkdp_histogram('events', 'country')")) == 3_000


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("SELECT CASE WHEN i > 5000 THEN ('x' || i)::INT END FROM range(9000) t(i)", "Conversion Error: .*'x5001'"),
        ("SELECT a.i FROM range(5000) a(i), range(100000) b(i) WHERE a.i * b.i = -1 OR b.i = 1", "seconds|rows"),
    ],
)
def test_errors_after_the_first_rows_are_told_as_those_before(path: Path, statement: str, told: str) -> None:
    """Arrow's reader gives them as an OSError."""
    with (
        Gate(path, policy=policy(limits={"seconds": 2.0})) as gate,
        pytest.raises(ArgumentError, match=told),
    ):
        gate.sql(statement)
