"""What a gate answers, how it behaves with threads, other processes and failures, and what it says when it cannot."""

from __future__ import annotations

import datetime
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from analyst import database, policy

import pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb.gate.gate import Gate
from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    ConfigError,
    NotCertifiableError,
    PkdpError,
    TemporaryError,
)
from pkdp_pipeline.ledger import Ledger

COUNTRIES = [("US", 100), ("NO", 100), ("DE", 100)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that no test changes."""
    return database(tmp_path_factory.mktemp("people"))


@pytest.fixture(scope="module")
def gate(path: Path) -> Iterator[Gate]:
    """A gate whose one release the welcome statements share."""
    with Gate(path, policy=policy()) as opened:
        yield opened


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("FROM pkdp_histogram('events', 'country')", COUNTRIES),
        ("SELECT * FROM pkdp_histogram('events', 'country', k := 20) ORDER BY country LIMIT 1", [("DE", 100)]),
        (
            "SELECT country FROM pkdp_histogram('events', 'country') h(country, n) WHERE n > 5 ORDER BY ALL LIMIT 1",
            [("DE",)],
        ),
        ("WITH h AS (FROM pkdp_histogram('events', 'country')) SELECT sum(count) FROM h", [(300,)]),
        ("SELECT count(*), avg(count), median(count) FROM pkdp_histogram('events', 'country')", [(3, 100.0, 100.0)]),
        (
            "SELECT a.country, a.count - b.count FROM pkdp_histogram('events', 'country') a "
            "JOIN pkdp_histogram('events', 'country') b USING (country) ORDER BY 1",
            [("DE", 0), ("NO", 0), ("US", 0)],
        ),
        (
            "SELECT country, count / sum(count) OVER () < 0.5, rank() OVER (ORDER BY country DESC) "
            "FROM pkdp_histogram('events', 'country') ORDER BY 1 LIMIT 1",
            [("DE", True, 3)],
        ),
        (
            "SELECT CASE WHEN country = 'US' THEN 'here' ELSE lower(country) || '!' END x "
            "FROM pkdp_histogram('events', 'country') ORDER BY x",
            [("de!",), ("here",), ("no!",)],
        ),
        (
            "SELECT country FROM pkdp_histogram('events', 'country') UNION ALL SELECT 'all' EXCEPT SELECT 'US' "
            "ORDER BY 1",
            [("DE",), ("NO",), ("all",)],
        ),
        ("SELECT (SELECT max(count) FROM pkdp_histogram('events', 'country')) + 1", [(101,)]),
        ("SELECT EXISTS (FROM pkdp_histogram('events', 'country') WHERE count IS NULL)", [(False,)]),
        ("SELECT * EXCLUDE (count) FROM pkdp_histogram('events', 'country') WHERE country IN ('US', 'SE')", [("US",)]),
        ("SELECT count * 2 AS c FROM pkdp_histogram('events', 'country') LIMIT 0", []),
        (
            "SELECT x, coalesce(count, 0) FROM (VALUES ('US'), ('SE')) v(x) "
            "LEFT JOIN pkdp_histogram('events', 'country') ON country = x ORDER BY x",
            [("SE", 0), ("US", 100)],
        ),
        (
            "SELECT count, count(*) FILTER (WHERE country LIKE 'U%') FROM pkdp_histogram('events', 'country') "
            "GROUP BY count HAVING count(*) > 1 QUALIFY row_number() OVER () = 1",
            [(100, 1)],
        ),
        (
            "SELECT CAST(1.5 AS DECIMAL(3, 1)), DATE '2020-01-31' + INTERVAL 1 DAY > DATE '2020-01-31'",
            [(Decimal("1.5"), True)],
        ),
        (
            "SELECT year(DATE '2020-01-31'), date_trunc('month', DATE '2020-01-31')::DATE",
            [(2020, datetime.date(2020, 1, 1))],
        ),
        ("SELECT concat('a', upper('b'), 1), if(1 < 2, 'yes', 'no')", [("aB1", "yes")]),
        ("SELECT x FROM unnest([3, 1]) u(x) ORDER BY x", [(1,), (3,)]),
        ("SELECT sum(i) FROM range(1, 11) t(i)", [(55,)]),
        ("SELECT -1 - i FROM range(-2, 0) t(i) ORDER BY 1", [(0,), (1,)]),
        ("SELECT TRY_CAST('x' AS INT), abs(-3), round(2.5), 7 // 2, 7 % 2, 2 ** 3", [(None, 3, Decimal(3), 3, 1, 8.0)]),
        (
            "SELECT position('b' IN 'abc'), substring('abc' FROM 2 FOR 1), trim(' x '), 'a' IS DISTINCT FROM 'b'",
            [(2, "b", "x", True)],
        ),
        ("SELECT pkdp_delta('histogram', k := 20, p_max := 0.1, epsilon := 1) < 1e-3", [(True,)]),
        (
            "SELECT count(DISTINCT pkdp_epsilon('histogram', k := k, p_max := 0.1, delta := 1e-6)) "
            "FROM range(10, 40) t(k)",
            [(30,)],
        ),
    ],
)
def test_what_is_computed_with_releases_is_welcome(gate: Gate, statement: str, rows: list[Any]) -> None:
    assert gate.sql(statement).fetchall() == rows


@pytest.mark.parametrize("groups", ["GROUP BY country", "GROUP BY ALL", "GROUP BY ROLLUP (country)"])
def test_a_count_of_every_group_is_refused_where_it_would_be_that_of_the_whole(gate: Gate, groups: str) -> None:
    head = gate._ledger.head()
    with pytest.raises(ArgumentError, match=r"FROM pkdp_histogram\('table', 'column', k := 20\)"):
        gate.sql(f"SELECT country, 1 + pkdp_count('events', k := 20) FROM (VALUES ('US')) t(country) {groups}")
    assert gate._ledger.head() == head


def test_a_statement_knows_its_releases(gate: Gate) -> None:
    answer = gate.sql(
        "SELECT 1 FROM pkdp_histogram('events', 'country') a, pkdp_histogram('events', 'country', k := 20) b LIMIT 1"
    )
    (release,) = answer.releases
    assert release.verify()
    assert release.certificate.mechanism == pkdp.Histogram(k=20)
    assert gate.total().delta(1.0) == release.certificate.delta(1.0)
    assert gate.sql("SELECT 1").releases == ()


def test_answers_come_in_the_forms_that_duckdb_has(gate: Gate) -> None:
    answer = gate.sql("SELECT country, count, sum(count) OVER () AS total FROM pkdp_histogram('events', 'country')")
    assert answer.columns == ("country", "count", "total")
    assert answer.types == ("VARCHAR", "BIGINT", "HUGEINT")
    assert answer.fetchone() == ("US", 100, 300)
    assert answer.fetchall() == [("NO", 100, 300), ("DE", 100, 300)]
    assert answer.fetchone() is None
    assert answer.fetchall() == []
    frame = pd.DataFrame({"country": ["US", "NO", "DE"], "count": [100] * 3, "total": [300.0] * 3})
    pd.testing.assert_frame_equal(answer.df(), frame)
    assert answer.arrow().column("country").to_pylist() == ["US", "NO", "DE"]
    assert len(answer) == 3
    assert "3 rows from 1 release" in repr(answer)


def test_suppressed_and_absent_cells_cannot_be_told_apart_beyond_the_domain(path: Path) -> None:
    table = {"unit": "uid", "columns": ["country", "age"], "k": 58, "domains": {"country": ["US", "XX"]}}
    with Gate(path, policy=policy(tables={"events": table})) as gate:
        assert gate.sql("FROM pkdp_histogram('events', 'country')").fetchall() == [("US", 100), ("XX", None)]
    with Gate(path, policy=policy(tables={"events": table})) as gate:
        answer = gate.sql("FROM pkdp_histogram('events', 'age')")
        assert answer.fetchall() == [(0, 58)]
        assert answer.types == ("TINYINT", "BIGINT")


def test_a_domain_is_used_for_several_columns(path: Path) -> None:
    with Gate(path, policy=policy()) as gate:
        rows = gate.sql("SELECT country, flag FROM pkdp_histogram('events', ['country', 'flag'])").fetchall()
    assert rows == [(country, flag) for country in ("US", "NO", "DE") for flag in (False, True)]
    table = {"unit": "uid", "columns": ["country", "age"], "k": 20, "domains": {"country": ["US"]}}
    with (
        Gate(path, policy=policy(tables={"events": table})) as gate,
        pytest.raises(ArgumentError, match="'age'"),
    ):
        gate.sql("FROM pkdp_histogram('events', ['country', 'age'])")


def test_a_view_may_be_asked(path: Path) -> None:
    with Gate(path, policy=policy(tables={"adults": {"unit": "uid", "columns": ["flag"], "k": 20}})) as gate:
        assert gate.sql("SELECT pkdp_count('ADULTS')").fetchall() == [(228,)]


def test_what_cannot_be_certified_says_so(path: Path) -> None:
    with Gate(path, policy=policy(attacker={"unknown": 5})) as gate, pytest.raises(NotCertifiableError):
        gate.sql("FROM pkdp_histogram('events', 'country')")


def test_noise_spends_a_budget_and_stops_at_it(path: Path, tmp_path: Path) -> None:
    rules = policy(
        budget={"epsilon": 2.0, "delta": 1e-5, "part": "worst_case"}, ledger=tmp_path / "noise.sqlite", period="2020"
    )
    ask = "FROM pkdp_histogram('events', 'country', noise := 0.9, release_threshold := {})"
    with Gate(path, policy=rules) as gate:
        first = [gate.sql(ask.format(40)).fetchall() for _ in range(5)]
        assert all(rows == first[0] for rows in first)
        gate.sql(ask.format(41))
        before = gate.total().worst_case.epsilon(1e-5)
        with pytest.raises(BudgetExceededError):
            gate.sql(ask.format(42))
        assert gate.total().worst_case.epsilon(1e-5) == before <= 2.0
    # The budget is the ledger's, not the process's.
    with Gate(path, policy=rules) as gate:
        assert gate.sql(ask.format(40)).fetchall() == first[0]
        with pytest.raises(BudgetExceededError):
            gate.sql(ask.format(43))


WORST = {"epsilon": 2.0, "delta": 1e-6, "part": "worst_case"}
PARTIAL = {"epsilon": 2.0, "delta": 1e-6, "part": "partial_knowledge"}


@pytest.mark.parametrize("budget", [WORST, PARTIAL])
@pytest.mark.parametrize(
    "question",
    [
        "FROM pkdp_count('events', noise := 0.5)",
        "FROM pkdp_count('events', filter := 'country IS NULL', noise := 0.5)",
        "FROM pkdp_histogram('events', 'country', noise := 0.5)",
        "FROM pkdp_histogram('events', ['flag', 'country'], noise := 0.5)",
    ],
)
def test_noise_needs_no_k_where_every_cell_is_public(path: Path, budget: dict[str, Any], question: str) -> None:
    """A cell nobody is in gets a noised count, too: nothing about it is decided by the exact one."""
    rules = policy(budget=budget)
    rules["tables"]["events"]["domains"] = {"country": ["US", "NO", "DE", "XX"]}
    with Gate(path, policy=rules) as gate:
        answer = gate.sql(question)
    (release,) = answer.releases
    assert release.certificate.sentence().startswith("Private at ε = 0.5, δ = 0 against anyone at all")
    assert all(row[-1] is not None for row in answer.fetchall())


@pytest.mark.parametrize("budget", [WORST, PARTIAL])
def test_found_cells_keep_the_k_of_the_policy_beside_noise(path: Path, budget: dict[str, Any]) -> None:
    with Gate(path, policy=policy(budget=budget)) as gate:
        with pytest.raises(ArgumentError, match="release_threshold"):
            gate.sql("FROM pkdp_histogram('events', 'flag', noise := 0.5)")
        (release,) = gate.sql("FROM pkdp_histogram('events', 'flag', noise := 0.5, release_threshold := 60)").releases
    assert release.certificate.mechanism.k == 20


def test_without_k_noise_is_as_large_as_the_budgets_say(path: Path) -> None:
    """Otherwise counts below the policy's k could be read through noise that is hardly there."""
    question = "FROM pkdp_count('events', noise := 2.5)"
    with (
        Gate(path, policy=policy(budget=WORST)) as gate,
        pytest.raises(BudgetExceededError, match="or ask the curator for a larger budget"),
    ):
        gate.sql(question)
    with Gate(path, policy=policy(budget=PARTIAL)) as gate:
        with pytest.raises(ArgumentError, match=r"noise without k must be at most 2, .* or k := 20 as well"):
            gate.sql(question)
        with pytest.raises(ArgumentError, match="at least 20"):
            gate.sql("FROM pkdp_count('events', noise := 0.5, k := 19)")


@pytest.mark.parametrize(
    ("question", "advice"),
    [
        ("FROM pkdp_count('events', noise := 0.5, k := 20)", "leave k out, or add a release_threshold"),
        ("FROM pkdp_histogram('events', 'country', noise := 0.5, k := 20)", "leave k out"),
        ("FROM pkdp_count('events', noise := 0.5, k_complement := 20)", "leave k_complement out"),
    ],
)
def test_a_threshold_that_undoes_the_worst_case_of_noise_is_explained(path: Path, question: str, advice: str) -> None:
    with Gate(path, policy=policy(budget=WORST)) as gate, pytest.raises(BudgetExceededError, match=advice):
        gate.sql(question)


def test_a_ledger_remembers_when_the_gate_is_opened_again(path: Path, tmp_path: Path) -> None:
    rules = policy(ledger=tmp_path / "ledger.sqlite", period="2020")
    with Gate(path, policy=rules) as gate:
        (made,) = gate.sql("FROM pkdp_histogram('events', 'country')").releases
    with Gate(path, policy=rules) as gate:
        (again,) = gate.sql("FROM pkdp_histogram('events', 'country')").releases
        assert again.replayed
        assert again.to_bytes() == made.to_bytes()
        with pytest.raises(pkdp.DifferencingError):
            gate.sql("FROM pkdp_histogram('events', 'flag')")
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.verify()
        assert len(list(ledger.entries(given_back=True))) == 1


def test_a_refusal_does_not_name_what_else_the_ledger_holds(path: Path, tmp_path: Path) -> None:
    shared, people = tmp_path / "ledger.sqlite", pd.DataFrame({"uid": range(30), "country": "x"})
    asked: dict[str, Any] = {"unit": "uid", "attacker": pkdp.AttackerModel(p_max=0.1), "k": 20}
    for period, others in (("2020", "2020"), ("secret wave", "2020"), ("2019", "2020")):
        shared.unlink(missing_ok=True)
        with Ledger.open(shared) as ledger:
            people.pkdp.histogram("country", label="staff with HIV", period=period, ledger=ledger, **asked)
        rules = policy(ledger=shared, period=others)
        with Gate(path, policy=rules) as gate, pytest.raises(pkdp.DifferencingError) as caught:
            gate.sql("FROM pkdp_histogram('events', 'flag')")
        text = str(caught.value)
        assert "HIV" not in text
        assert "secret" not in text
        assert "2019" not in text
        assert "'histogram by flag" in text
        assert "ask the curator" in text


def test_threads_are_answered_one_after_the_other(path: Path) -> None:
    answers: list[list[tuple[Any, ...]]] = []
    with Gate(path, policy=policy()) as gate:
        threads = [
            threading.Thread(
                target=lambda: answers.append(gate.sql("FROM pkdp_histogram('events', 'country')").fetchall())
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(gate.sql("FROM pkdp_releases()")) == 1
    assert answers == [COUNTRIES] * 8


REFUSED = "table 'events' cannot be read in full, so no new question about it is answered"


def broken(folder: Path, secret: str = "secret") -> Path:
    """Make a view whose age cannot be computed for one person, where that person's age is `secret`."""
    path = folder / "broken.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE OR REPLACE TABLE raw AS SELECT i AS uid, i % 2 = 0 AS flag, "
            f"CASE i WHEN 7 THEN '{secret}' ELSE '5' END AS age FROM range(200) t(i); "
            "CREATE OR REPLACE VIEW events AS SELECT uid, flag, CAST(age AS INT) AS age FROM raw"
        )
    return path


def cast_rules(folder: Path, **further: Any) -> dict[str, Any]:
    """Return a policy for that view, whose ledger is kept, and which lets noise be asked for."""
    tables = {"events": {"unit": "uid", "columns": ["flag", "age"], "k": 20}}
    budget = {"epsilon": 2.0, "delta": 1e-6, "part": "worst_case"}
    return policy(tables=tables, budget=budget, ledger=folder / "cast.sqlite", period="2020", **further)


def test_a_table_that_cannot_be_read_is_refused_as_a_whole_and_for_good(tmp_path: Path) -> None:
    """A value that cannot be computed for one row is no oracle about that row: no question gets as far as the rows."""
    rules = cast_rules(tmp_path)
    questions = [
        f"SELECT pkdp_count('events', filter := '{about}', noise := 1e-9)"
        for about in ("age = 5 AND NOT flag", "age = 5 AND flag", "flag")
    ]
    for mended in (False, True, True):
        path = broken(tmp_path, "6" if mended else "secret")
        with Gate(path, policy=rules) as gate:
            assert gate.unreadable == ("events",)
            for question in questions:
                with pytest.raises(ArgumentError, match=REFUSED):
                    gate.sql(question)
            assert gate.sql("SELECT 1").fetchall() == [(1,)]
    with Ledger.open(tmp_path / "cast.sqlite") as ledger:
        ledger.verify()
        assert list(ledger.entries(given_back=True)) == []
    # Another name offers the corrected data.
    tables = {"mended": {"unit": "uid", "columns": ["flag", "age"], "k": 20}}
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE VIEW mended AS FROM events")
    with Gate(path, policy={**rules, "tables": tables}) as gate:
        assert gate.unreadable == ()
        gate.sql("SELECT pkdp_count('mended', noise := 0.5)")


def test_what_is_public_is_replayed_when_its_table_cannot_be_read_any_more(tmp_path: Path) -> None:
    rules = policy(
        tables={"events": {"unit": "uid", "columns": ["flag", "age"], "k": 20}},
        ledger=tmp_path / "ledger.sqlite",
        period="2020",
    )
    with Gate(broken(tmp_path, "6"), policy=rules) as gate:
        published = gate.sql("FROM pkdp_histogram('events', 'flag')").fetchall()
    with Gate(broken(tmp_path), policy=rules) as gate:
        answer = gate.sql("FROM pkdp_histogram('events', 'flag')")
        assert (answer.fetchall(), answer.releases[0].replayed) == (published, True)
        with pytest.raises(ArgumentError, match=REFUSED):
            gate.sql("SELECT pkdp_count('events', filter := 'flag')")


def test_a_unit_that_cannot_be_one_is_an_error_of_the_policy_and_condemns_no_table(tmp_path: Path) -> None:
    path, rules = tmp_path / "typed.duckdb", cast_rules(tmp_path)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE VIEW events AS SELECT i::JSON AS uid, true AS flag, 5 AS age FROM range(200) t(i)")
    with pytest.raises(ConfigError, match=r"tables\.events does not fit the database: unit column 'uid' has type JSON"):
        Gate(path, policy=rules)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW events AS SELECT i AS uid, true AS flag, 5 AS age FROM range(200) t(i)"
        )
    with Gate(path, policy=rules) as gate:
        assert gate.unreadable == ()


def test_a_filter_is_not_asked_of_rows_that_a_view_leaves_out(tmp_path: Path) -> None:
    """The view may not be computable for these: the failure would tell about the ones that the filter chooses."""
    path = tmp_path / "joined.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE raw AS SELECT i AS uid, i % 2 = 0 AS flag, CASE i WHEN 7 THEN 'secret' ELSE '5' END AS age "
            "FROM range(200) t(i); CREATE TABLE members AS SELECT uid FROM raw WHERE uid <> 7; "
            "CREATE VIEW events AS SELECT uid, flag, age::INT AS age FROM raw JOIN members USING (uid)"
        )
    with Gate(path, policy=cast_rules(tmp_path)) as gate:
        for about in ("age = 5 AND NOT flag", "age = 5 AND flag", "age >= 4"):
            gate.sql(f"SELECT pkdp_count('events', filter := '{about}', noise := 0.5)")
        gate.sql("FROM pkdp_histogram('events', 'flag', filter := 'age = 5', noise := 0.5, release_threshold := 60)")
        assert gate.unreadable == ()


@pytest.mark.parametrize("further", [{}, {"units": "exact"}])
def test_people_who_would_be_counted_twice_are_looked_for_when_a_gate_opens(
    tmp_path: Path, further: dict[str, str]
) -> None:
    """No question may fail because of them: the table does, unless the policy says that they are different people."""
    path = tmp_path / "spaced.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE events AS SELECT 'p' || (i // 2) || CASE i % 2 WHEN 1 THEN ' ' ELSE '' END AS uid, "
            "true AS flag FROM range(200) t(i)"
        )
    tables = {"events": {"unit": "uid", "columns": ["flag"], "k": 20, **further}}
    with Gate(path, policy=policy(tables=tables)) as gate:
        if not further:
            assert gate.unreadable == ("events",)
            with pytest.raises(ArgumentError, match=REFUSED):
                gate.sql("FROM pkdp_histogram('events', 'flag')")
        else:
            assert gate.sql("FROM pkdp_histogram('events', 'flag')").fetchall() == [(True, 200)]


def test_data_that_change_can_fail_once_and_that_is_charged(tmp_path: Path) -> None:
    """The asker chose the question that failed, and so learned something: it costs what an answer costs."""
    rows, path, rules = tmp_path / "rows.csv", tmp_path / "outside.duckdb", cast_rules(tmp_path)

    def write(age: str) -> None:
        lines = [f"{i},{i % 2 == 0},{age if i == 7 else 5}" for i in range(200)]
        rows.write_text("\n".join(["uid,flag,age", *lines]), encoding="utf-8")

    write("6")
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE VIEW events AS SELECT uid::INT AS uid, flag::BOOL AS flag, age::INT AS age "
            f"FROM read_csv('{rows}', all_varchar = true)"
        )
    with Gate(path, policy=rules) as gate, Gate(path, policy=rules) as other:
        write("secret")
        with pytest.raises(PkdpError, match="could not be answered") as told:
            gate.sql("SELECT pkdp_count('events', filter := 'age = 5', noise := 0.5)")
        assert "secret" not in str(told.value) + "".join(told.value.__notes__)
        assert gate.total().worst_case.epsilon(0) == pytest.approx(0.5)
        write("6")
        for one in (gate, other):
            with pytest.raises(ArgumentError, match=REFUSED):
                one.sql("SELECT pkdp_count('events', filter := 'flag', noise := 0.5)")
    with Gate(path, policy=rules) as gate:
        assert gate.unreadable == ("events",)
    with Ledger.open(tmp_path / "cast.sqlite") as ledger:
        ledger.verify()
        assert [entry.state for entry in ledger.entries(given_back=True)] == ["reserved"]


def test_a_gate_that_is_stopped_while_it_opens_refuses_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise RuntimeError("Query interrupted")  # what DuckDB makes of Ctrl-C

    rules = policy(ledger=tmp_path / "ledger.sqlite", period="2020")
    with monkeypatch.context() as patched:
        patched.setattr("pkdp_pipeline.duckdb.releases.read_through", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Gate(path, policy=rules)
    with Gate(path, policy=rules) as gate:
        assert gate.unreadable == ()


@pytest.mark.parametrize("error", [MemoryError, duckdb.OutOfMemoryException])
def test_too_little_memory_is_temporary_and_stays_charged(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    """The table can be read all the same; and who asked for much may have learned something by the failure."""

    def too_little(*_: object) -> None:
        raise error

    rules = policy(ledger=tmp_path / "ledger.sqlite", period="2020", budget=WORST)
    question = "SELECT pkdp_count('events', noise := 0.5)"
    with monkeypatch.context() as patched:
        patched.setattr("pkdp_pipeline.duckdb.releases.CuratorReleases._rows", too_little)
        with pytest.raises(pkdp.TemporaryError, match="memory"):
            Gate(path, policy=rules)
    with Gate(path, policy=rules) as gate:
        with monkeypatch.context() as patched:
            patched.setattr("pkdp_pipeline.duckdb.releases.CuratorReleases._rows", too_little)
            with pytest.raises(pkdp.TemporaryError, match="ask the same again later"):
                gate.sql(question)
        assert gate.unreadable == ()
        assert gate.total().worst_case.epsilon(0) == pytest.approx(0.5)
        gate.sql(question)
        assert gate.total().worst_case.epsilon(0) == pytest.approx(0.5)


@pytest.mark.default_target
def test_advice_to_analysts_is_sql_and_nothing_that_only_a_curator_can_do(path: Path) -> None:
    tables = {"events": {"unit": "uid", "columns": ["flag"], "k": 2}}
    with Gate(path, policy=policy(tables=tables)) as gate, pytest.raises(NotCertifiableError) as told:
        gate.sql("FROM pkdp_histogram('events', 'flag', k := 3)")
    assert str(told.value).startswith("The release promises too little")
    assert "noise := 1 with release_threshold := " in str(told.value)
    assert "pkdp." not in str(told.value)
    assert "target=" not in str(told.value)


@pytest.mark.parametrize("column", ["note", "uid", "nope"])
def test_what_the_policy_leaves_out_is_not_said_to_be_missing(gate: Gate, column: str) -> None:
    for question in (
        f"FROM pkdp_histogram('events', '{column}')",
        f"SELECT pkdp_count('events', filter := '{column} IS NULL')",
    ):
        with pytest.raises(ArgumentError, match=f"names column '{column}', which this gate does not offer"):
            gate.sql(question)


def test_errors_do_not_depend_on_the_data(tmp_path: Path) -> None:
    """People without a unit, in several cells or in cells that are not public make no difference to what fails."""
    statements = [
        "FROM pkdp_histogram('events', 'country')",
        "FROM pkdp_histogram('events', 'flag')",
        "SELECT pkdp_count('events', filter := 'country = ''XX''')",
        "SELECT pkdp_count('events', k := 1)",
        "SELECT nothing FROM pkdp_histogram('events', 'country')",
    ]
    odd = (
        "INSERT INTO events VALUES (NULL, 'US', true, 1, NULL, NULL), (7, 'XX', NULL, 1, NULL, NULL); "
        "INSERT INTO events SELECT 8, 'NO', false, 1, NULL, NULL FROM range(5)"
    )
    told = []
    for name, further in {"plain": "SELECT 1", "odd": odd}.items():
        (tmp_path / name).mkdir()
        path = database(tmp_path / name)
        with duckdb.connect(str(path)) as connection:
            connection.execute(further)
        with Gate(path, policy=policy()) as gate:
            outcomes = []
            for statement in statements:
                try:
                    outcomes.append(f"{len(gate.sql(statement))} rows")
                except PkdpError as error:
                    outcomes.append(str(error))
            told.append(outcomes)
    assert told[0] == told[1]
    assert told[0][0] == "3 rows"


def test_what_is_wrong_with_a_question_is_found_without_data(path: Path) -> None:
    """It is told with its reason, and the table goes on answering."""
    with Gate(path, policy=policy()) as gate:
        for _ in range(2):
            with pytest.raises(ArgumentError, match="compares column 'country'"):
                gate.sql("SELECT pkdp_count('events', filter := 'country > 5')")
        assert gate.sql("FROM pkdp_histogram('events', 'country')").fetchall() == COUNTRIES


@pytest.mark.parametrize("defect", [duckdb.InternalException, duckdb.FatalException, RuntimeError, AttributeError])
def test_a_defect_is_not_told_and_leaves_a_gate_that_answers(
    path: Path, monkeypatch: pytest.MonkeyPatch, defect: type[Exception]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise defect("INTERNAL Error: secret7")

    with Gate(path, policy=policy()) as gate:
        with monkeypatch.context() as patched:
            patched.setattr("pkdp_pipeline.duckdb.gate.front.read_statement", broken)
            with pytest.raises(PkdpError, match="could not be answered; ask the curator") as told:
                gate.sql("SELECT 1")
            assert "secret" not in str(told.value) + "".join(told.value.__notes__)
            assert told.value.__cause__ is None
        assert gate.sql("FROM pkdp_histogram('events', 'country')").fetchall() == COUNTRIES


def test_a_closed_gate_answers_nothing_and_leaves_nothing_open(tmp_path: Path) -> None:
    path = database(tmp_path)
    gate = Gate(path, policy=policy())
    gate.close()
    gate.close()
    with pytest.raises(ArgumentError, match="closed"):
        gate.sql("SELECT 1")
    with pytest.raises(ArgumentError, match="closed"):
        gate.total()
    duckdb.connect(str(path)).close()  # for writing


@pytest.mark.parametrize("ending", ["gate.close()", "", "raise SystemExit(0)"])
def test_a_process_ends_without_complaints(path: Path, tmp_path: Path, ending: str) -> None:
    script = tmp_path / "analyst_session.py"
    script.write_text(
        "import pkdp_pipeline as pkdp, pkdp_pipeline.duckdb\n"
        f"gate = pkdp.duckdb.Gate({str(path)!r}, policy={policy()!r})\n"
        "print(gate.sql(\"FROM pkdp_histogram('events', 'country')\").fetchall())\n"
        "try:\n    gate.sql('FROM events')\nexcept pkdp.ArgumentError:\n    print('refused')\n"
        f"{ending}\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(COUNTRIES), "refused"]
    assert done.stderr == ""


def test_a_database_that_is_being_written_is_busy(tmp_path: Path) -> None:
    path = database(tmp_path)
    script = f"import duckdb; c = duckdb.connect({str(path)!r}); print('open', flush=True); input(); c.close()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert writer.stdout.readline() == "open\n"
        with pytest.raises(TemporaryError, match="another process"):
            Gate(path, policy=policy())
        writer.stdin.write("\n")
        writer.stdin.flush()
    with Gate(path, policy=policy()) as gate:
        assert len(gate.sql("SELECT 1")) == 1


def test_a_database_that_this_process_has_open_is_a_matter_of_configuration(tmp_path: Path) -> None:
    path = database(tmp_path)
    with duckdb.connect(str(path)), pytest.raises(ConfigError, match="pkdp gate serve"):
        Gate(path, policy=policy())


@pytest.mark.parametrize("kind", ["absent", "folder", "text", "number"])
def test_a_path_that_is_no_database_is_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("not a database " * 100, encoding="utf-8")
    with pytest.raises(ConfigError, match="database"):
        Gate(5 if kind == "number" else tmp_path / kind, policy=policy())  # type: ignore[arg-type]


def test_the_database_is_never_written(path: Path) -> None:
    before = path.read_bytes()
    with Gate(path, policy=policy()) as gate:
        gate.sql("FROM pkdp_histogram('events', 'country')")
    assert path.read_bytes() == before
    assert not path.with_suffix(".duckdb.wal").exists()
