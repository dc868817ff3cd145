"""What a gate answers, how it behaves with threads, other processes and failures, and what it says when it cannot."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from analyst import count, database, histogram, policy, rows
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    ConfigError,
    NotCertifiableError,
    PkdpError,
    TemporaryError,
)
from pkdp_pipeline.extras.gate import gate as module
from pkdp_pipeline.extras.gate import worker
from pkdp_pipeline.extras.gate.gate import Gate
from pkdp_pipeline.extras.gate.worker import Job, Worker
from pkdp_pipeline.ledger import Ledger

pytestmark = pytest.mark.usefixtures("workers_inside")

COUNTRIES = [("US", 100), ("NO", 100), ("DE", 100)]
REFUSED = "table 'events' cannot be read in full, so no new question about it is answered"
WORST = {"epsilon": 2.0, "delta": 1e-6, "part": "worst_case"}
PARTIAL = {"epsilon": 2.0, "delta": 1e-6, "part": "partial_knowledge"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that no test changes."""
    return database(tmp_path_factory.mktemp("people"))


@pytest.fixture(scope="module")
def gate(path: Path) -> Iterator[Gate]:
    """A gate that has answered one question."""
    with Gate(path, policy=policy()) as opened:
        opened.ask(histogram())
        yield opened


def test_an_answer_is_what_the_curators_own_code_publishes(path: Path) -> None:
    with Gate(path, policy=policy()) as gate:
        release = gate.ask(histogram("country", k=20, filter="flag"))
        total = gate.total()
    with duckdb.connect(str(path), read_only=True) as connection:
        people = connection.sql("FROM events").df()
    published = people.query("flag").pkdp.histogram(
        "country",
        k=20,
        unit="uid",
        domain=["US", "NO", "DE"],
        undeclared="absent",
        attacker=pkdp.AttackerModel(p_max=0.1),
    )
    assert rows(release) == rows(published)
    assert release.verify()
    assert release.certificate.delta(1.0) == published.certificate.delta(1.0) == total.delta(1.0)


def test_an_analysts_own_duckdb_fetches_releases_and_computes_with_them(path: Path) -> None:
    with Gate(path, policy=policy()) as gate, gate.connect() as con:
        mine = "CREATE TABLE names AS FROM (VALUES ('US', 'States'), ('NO', 'Norway')) t(country, name)"
        con.execute(mine)
        joined = con.sql(
            "SELECT name, count FROM pkdp_histogram('EVENTS', 'Country', k := 20) JOIN names USING (country) ORDER BY 1"
        )
        assert joined.fetchall() == [("Norway", 100), ("States", 100)]
        assert [str(kind) for kind in joined.types] == ["VARCHAR", "BIGINT"]
        ((label, table),) = con.sql("SELECT label, table_name FROM pkdp_releases()").fetchall()
        assert (label, table) == ('{"histogram":["Country"],"k":20,"table":"EVENTS"}', "events")
        with pytest.raises(duckdb.Error, match="DifferencingError"):
            con.sql("SELECT pkdp_count('events', k := 20)").fetchall()
        for by in ("uid", "note", "nope"):
            with pytest.raises(duckdb.Error, match="which this gate does not offer"):
                con.sql(f"FROM pkdp_histogram('events', '{by}')").fetchall()
        with pytest.raises(duckdb.Error, match="domain is not for analysts to choose"):
            con.sql("FROM pkdp_histogram('events', 'country', domain := ['US'])").fetchall()
        with pytest.raises(duckdb.CatalogException):
            con.sql("FROM events")


def test_a_count_through_an_analysts_own_duckdb(path: Path) -> None:
    with Gate(path, policy=policy()) as gate, gate.connect() as con:
        assert con.sql("SELECT pkdp_count('events', filter := 'flag', k := 20)").fetchall() == [(134,)]
        assert con.sql("FROM pkdp_count('events', filter := 'flag', k := 20)").fetchall() == [(134,)]
        assert len(con.sql("FROM pkdp_releases()")) == 1


def test_suppressed_and_absent_cells_cannot_be_told_apart_beyond_the_domain(path: Path) -> None:
    table = {"unit": "uid", "columns": ["country", "age"], "k": 58, "domains": {"country": ["US", "XX"]}}
    with Gate(path, policy=policy(tables={"events": table})) as gate:
        assert rows(gate.ask(histogram())) == [("US", 100), ("XX", None)]
    with Gate(path, policy=policy(tables={"events": table})) as gate, gate.connect() as con:
        answer = con.sql("FROM pkdp_histogram('events', 'age')")
        assert answer.fetchall() == [(0, 58)]
        assert [str(kind) for kind in answer.types] == ["TINYINT", "BIGINT"]


def test_a_domain_is_used_for_several_columns(path: Path) -> None:
    with Gate(path, policy=policy()) as gate:
        cells = [row[:2] for row in rows(gate.ask(histogram(["country", "flag"])))]
    assert cells == [(country, flag) for country in ("US", "NO", "DE") for flag in (False, True)]
    table = {"unit": "uid", "columns": ["country", "age"], "k": 20, "domains": {"country": ["US"]}}
    with Gate(path, policy=policy(tables={"events": table})) as gate, pytest.raises(ArgumentError, match="'age'"):
        gate.ask(histogram(["country", "age"]))


@pytest.mark.slow
def test_a_collation_makes_no_two_people_one_and_chooses_none(tmp_path: Path) -> None:
    path = tmp_path / "collated.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE events (uid VARCHAR COLLATE NOCASE, country VARCHAR COLLATE NOCASE); INSERT INTO events "
            "SELECT CASE WHEN i < 60 THEN 'p' || i ELSE 'P' || (i - 60) END, "
            "CASE WHEN i < 60 THEN 'Oslo' ELSE 'OSLO' END FROM range(100) t(i)"
        )
        pkdp.duckdb.install(connection, unit="uid", attacker=pkdp.AttackerModel(p_max=0.1))
        published = connection.sql("FROM pkdp_histogram('events', 'country', k := 20)").fetchall()
    path.chmod(0o600)
    tables = {"events": {"unit": "uid", "columns": ["country"], "k": 20}}
    with Gate(path, policy=policy(tables=tables)) as gate:
        assert rows(gate.ask(histogram())) == [("OSLO", 40), ("Oslo", 60)]
    with Gate(path, policy=policy(tables=tables)) as gate:
        assert rows(gate.ask(count(filter="country = 'OSLO' OR country LIKE 'os%'"))) == [(40,)]
    assert published == [("OSLO", 40), ("Oslo", 60)]


def test_a_view_may_be_asked(path: Path) -> None:
    with Gate(path, policy=policy(tables={"adults": {"unit": "uid", "columns": ["flag"], "k": 20}})) as gate:
        assert gate.ask({"table": "ADULTS", "count": True}).value == 228


def test_what_cannot_be_certified_says_so(path: Path) -> None:
    with Gate(path, policy=policy(attacker={"unknown": 5})) as gate, pytest.raises(NotCertifiableError):
        gate.ask(histogram())


def test_noise_spends_a_budget_and_stops_at_it(path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rules = policy(
        budget={"epsilon": 2.0, "delta": 1e-5, "part": "worst_case"}, ledger=tmp_path / "noise.sqlite", period="2020"
    )

    def ask(gate: Gate, threshold: int) -> list[tuple[Any, ...]]:
        return rows(gate.ask(histogram(noise=0.9, release_threshold=threshold)))

    with Gate(path, policy=rules) as gate:
        first = [ask(gate, 40) for _ in range(5)]
        assert all(answer == first[0] for answer in first)
        ask(gate, 41)
        before = gate.total().worst_case.epsilon(1e-5)
        caplog.set_level("INFO", logger="pkdp_pipeline")
        with pytest.raises(BudgetExceededError):
            ask(gate, 42)
        (line,) = caplog.messages
        assert line.startswith("refused: 'histogram by country of")
        assert line.endswith("(BudgetExceededError)")
        assert gate.total().worst_case.epsilon(1e-5) == before <= 2.0
    # The budget is the ledger's, not the process's.
    with Gate(path, policy=rules) as gate:
        assert ask(gate, 40) == first[0]
        with pytest.raises(BudgetExceededError):
            ask(gate, 43)


@pytest.fixture(scope="module", params=[WORST, PARTIAL])
def public(path: Path, request: pytest.FixtureRequest) -> Iterator[Gate]:
    """A gate all of whose cells are public."""
    rules = policy(budget=request.param | {"epsilon": 5.0})
    rules["tables"]["events"]["domains"] = {"country": ["US", "NO", "DE", "XX"]}
    with Gate(path, policy=rules) as gate:
        yield gate


@thinned(3)
@pytest.mark.parametrize(
    "question",
    [
        count(noise=0.5),
        count(filter="country IS NULL", noise=0.5),
        histogram(noise=0.5),
        histogram(["flag", "country"], noise=0.5),
    ],
)
def test_noise_needs_no_k_where_every_cell_is_public(public: Gate, question: dict[str, Any]) -> None:
    """A cell nobody is in gets a noised count, too: nothing about it is decided by the exact one."""
    release = public.ask(question)
    assert release.certificate.sentence().startswith("Private at ε = 0.5, δ = 0 against anyone at all")
    assert all(row[-1] is not None for row in rows(release))


@pytest.fixture(scope="module")
def refusing(path: Path) -> Iterator[tuple[Gate, Gate]]:
    """Two gates that answer no question: with a budget for the worst case, and for partial knowledge."""
    with Gate(path, policy=policy(budget=WORST)) as worst, Gate(path, policy=policy(budget=PARTIAL)) as partial:
        yield worst, partial
        assert [list(gate._ledger.entries()) for gate in (worst, partial)] == [[], []]


@pytest.mark.parametrize("budget", [WORST, PARTIAL])
def test_found_cells_keep_the_k_of_the_policy_beside_noise(path: Path, budget: dict[str, Any]) -> None:
    with Gate(path, policy=policy(budget=budget)) as gate:
        with pytest.raises(ArgumentError, match="release_threshold"):
            gate.ask(histogram("flag", noise=0.5))
        release = gate.ask(histogram("flag", noise=0.5, release_threshold=60))
    assert release.certificate.mechanism.k == 20


def test_without_k_noise_is_as_large_as_the_budgets_say(refusing: tuple[Gate, Gate]) -> None:
    """Otherwise counts below the policy's k could be read through noise that is hardly there."""
    worst, partial = refusing
    with pytest.raises(BudgetExceededError, match="or ask the curator for a larger budget"):
        worst.ask(count(noise=2.5))
    with pytest.raises(ArgumentError, match=r"noise without k must be at most 2, .* or k = 20 as well"):
        partial.ask(count(noise=2.5))
    with pytest.raises(ArgumentError, match="at least 20"):
        partial.ask(count(noise=0.5, k=19))


@pytest.mark.parametrize(
    "question", [count(noise=0.5, k=20), histogram(noise=0.5, k=20), count(noise=0.5, k_complement=20)]
)
def test_a_threshold_that_undoes_the_worst_case_of_noise_is_explained(
    refusing: tuple[Gate, Gate], question: dict[str, Any]
) -> None:
    with pytest.raises(BudgetExceededError, match="leave them out"):
        refusing[0].ask(question)


BELOW = {"below": "noise", "noise": 1.0, "filter": "country = 'US' OR flag"}


def test_analysts_choose_how_counts_are_shown_but_not_from_which_on(path: Path, tmp_path: Path) -> None:
    with Gate(path, policy=policy(ledger=tmp_path / "ledger.sqlite", period="2020")) as gate, gate.connect() as con:
        release = gate.ask(histogram(display={"rounding": 30}))
        assert release.certificate.mechanism == pkdp.Histogram(k=20, display=pkdp.Rounding(30))
        assert all(number % 30 == 0 for _, number in rows(release) if number is not None)
        query = "FROM pkdp_histogram('events', 'country', display := {'rounding': 30})"
        assert con.sql(query).fetchall() == rows(release)
        with pytest.raises(pkdp.DifferencingError):
            gate.ask(histogram(display={"rounding": 31}))
        with pytest.raises(ArgumentError, match="display must be one rule"):
            gate.ask(histogram(display={"round": 30}))


@pytest.mark.slow
def test_small_counts_are_noised_and_the_analyst_sees_which(path: Path, tmp_path: Path) -> None:
    rules = policy(budget=PARTIAL, ledger=tmp_path / "ledger.sqlite", period="2020")
    with Gate(path, policy=rules) as gate, gate.connect() as con:
        release = gate.ask(histogram(k=60, **BELOW))
        assert [(row[0], row[-1]) for row in rows(release)] == [("US", True), ("NO", False), ("DE", False)]
        query = "FROM pkdp_histogram('events', 'country', k := 60, below := 'noise', noise := 1.0, filter := $filter)"
        answer = con.sql(query, params={"filter": BELOW["filter"]})
        assert (answer.columns, answer.fetchall()) == (["country", "count", "exact"], rows(release))
    with Gate(path, policy=rules) as gate:
        again = gate.ask(histogram(k=60, **BELOW))
        assert (again.replayed, again.to_bytes()) == (True, release.to_bytes())
        with pytest.raises(pkdp.DifferencingError):
            gate.ask(histogram(**BELOW))  # with the policy's k


@pytest.mark.parametrize(
    ("budget", "question", "match"),
    [
        (PARTIAL, histogram(k=20, below="noise"), "give k and noise"),
        (PARTIAL, histogram(k=19, **BELOW), "at least 20"),
        (PARTIAL, histogram(**{**BELOW, "below": "hide"}), "below must be one of"),
        (PARTIAL, histogram(**{**BELOW, "noise": 2.5}), "noise below k must be at most 2, .*leave below out"),
        (PARTIAL, histogram("flag", **BELOW), "release_threshold"),
        (PARTIAL, count(k_complement=20, **BELOW), "k_complement"),
        (WORST, histogram(**BELOW), "leave below out"),
    ],
)
def test_small_counts_are_noised_only_where_the_policy_lets_them_be(
    refusing: tuple[Gate, Gate], budget: dict[str, Any], question: dict[str, Any], match: str
) -> None:
    with pytest.raises(BudgetExceededError if budget is WORST else ArgumentError, match=match):
        refusing[budget is PARTIAL].ask(question)


def test_a_ledger_remembers_when_the_gate_is_opened_again(path: Path, tmp_path: Path) -> None:
    rules = policy(ledger=tmp_path / "ledger.sqlite", period="2020")
    with Gate(path, policy=rules) as gate:
        first = gate.ask(histogram())
    with Gate(path, policy=rules) as gate:
        again = gate.ask(histogram())
        assert again.replayed
        assert again.to_bytes() == first.to_bytes()
        with pytest.raises(pkdp.DifferencingError):
            gate.ask(histogram("flag"))
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.verify()
        assert len(list(ledger.entries(given_back=True))) == 1


def test_a_ledger_may_be_the_curators(path: Path) -> None:
    with Ledger.open(":memory:", dataset="people", budget=pkdp.Budget(1.0, 1e-6)) as ledger:
        with Gate(path, policy=policy(), ledger=ledger) as gate:
            gate.ask(count(noise=0.5))
            with pytest.raises(BudgetExceededError):
                gate.ask(count(noise=0.75))
        assert [entry.state for entry in ledger.entries()] == ["published"]  # it was not closed
        for key, value in {"budget": WORST, "dataset": "others"}.items():
            with pytest.raises(ConfigError, match=key):
                Gate(path, policy=policy(**{key: value}), ledger=ledger)
    with pytest.raises(ArgumentError, match="must be a Ledger"):
        Gate(path, policy=policy(), ledger="ledger.sqlite")  # type: ignore[arg-type]


def test_a_refusal_does_not_name_what_else_the_ledger_holds(path: Path, tmp_path: Path) -> None:
    shared, people = tmp_path / "ledger.sqlite", pd.DataFrame({"uid": range(30), "country": "x"})
    options: dict[str, Any] = {"unit": "uid", "attacker": pkdp.AttackerModel(p_max=0.1), "k": 20}
    for period, others in (("2020", "2020"), ("secret wave", "2020"), ("2019", "2020")):
        shared.unlink(missing_ok=True)
        with Ledger.open(shared) as ledger:
            people.pkdp.histogram("country", label="staff with HIV", period=period, ledger=ledger, **options)
        rules = policy(ledger=shared, period=others)
        with Gate(path, policy=rules) as gate, pytest.raises(pkdp.DifferencingError) as caught:
            gate.ask(histogram("flag"))
        text = str(caught.value)
        assert "HIV" not in text
        assert "secret" not in text
        assert "2019" not in text
        assert "'histogram by flag" in text
        assert "ask the curator" in text


def test_many_threads_that_ask_the_same_get_one_release(path: Path) -> None:
    answers: list[bytes] = []
    with Gate(path, policy=policy()) as gate:
        threads = [threading.Thread(target=lambda: answers.append(gate.ask(histogram()).to_bytes())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list(gate._ledger.entries(given_back=True))) == 1
        gate._ledger.verify()
    assert len(answers) == 8
    assert len(set(answers)) == 1


def broken(folder: Path, secret: str = "secret") -> Path:
    """Make a view whose age cannot be computed for one person, where that person's age is `secret`."""
    path = folder / "broken.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE OR REPLACE TABLE raw AS SELECT i AS uid, i % 2 = 0 AS flag, "
            f"CASE i WHEN 7 THEN '{secret}' ELSE '5' END AS age FROM range(200) t(i); "
            "CREATE OR REPLACE VIEW events AS SELECT uid, flag, CAST(age AS INT) AS age FROM raw"
        )
    path.chmod(0o600)
    return path


def cast_rules(folder: Path, **further: Any) -> dict[str, Any]:
    """Return a policy for that view, whose ledger is kept, and which lets noise be asked for."""
    tables = {"events": {"unit": "uid", "columns": ["flag", "age"], "k": 20}}
    return policy(tables=tables, budget=WORST, ledger=folder / "cast.sqlite", period="2020", **further)


def test_a_table_that_cannot_be_read_is_refused_as_a_whole_and_for_good(tmp_path: Path) -> None:
    """A value that cannot be computed for one row is no oracle about that row: no question gets as far as the rows."""
    rules = cast_rules(tmp_path)
    for mended in (False, True, True):
        path = broken(tmp_path, "6" if mended else "secret")
        with Gate(path, policy=rules) as gate:
            assert gate.unreadable == ("events",)
            for about in ("age = 5 AND NOT flag", "age = 5 AND flag", "flag"):
                with pytest.raises(ArgumentError, match=REFUSED):
                    gate.ask(count(filter=about, noise=1e-9))
    with Ledger.open(tmp_path / "cast.sqlite") as ledger:
        ledger.verify()
        assert list(ledger.entries(given_back=True)) == []
    # Another name offers the corrected data.
    tables = {"mended": {"unit": "uid", "columns": ["flag", "age"], "k": 20}}
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE VIEW mended AS FROM events")
    with Gate(path, policy={**rules, "tables": tables}) as gate:
        assert gate.unreadable == ()
        gate.ask({"table": "mended", "count": True, "noise": 0.5})


def test_what_is_public_is_replayed_when_its_table_cannot_be_read_any_more(tmp_path: Path) -> None:
    rules = policy(
        tables={"events": {"unit": "uid", "columns": ["flag", "age"], "k": 20}},
        ledger=tmp_path / "ledger.sqlite",
        period="2020",
    )
    with Gate(broken(tmp_path, "6"), policy=rules) as gate:
        published = gate.ask(histogram("flag"))
    with Gate(broken(tmp_path), policy=rules) as gate:
        again = gate.ask(histogram("flag"))
        assert (again.to_bytes(), again.replayed) == (published.to_bytes(), True)
        with pytest.raises(ArgumentError, match=REFUSED):
            gate.ask(count(filter="flag"))


def test_a_unit_that_cannot_be_one_is_an_error_of_the_policy_and_condemns_no_table(tmp_path: Path) -> None:
    path, rules = broken(tmp_path), cast_rules(tmp_path)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW events AS SELECT i::JSON AS uid, true AS flag, 5 AS age FROM range(200) t(i)"
        )
    with pytest.raises(ConfigError, match=r"tables\.events does not fit the database: unit column 'uid' has type JSON"):
        Gate(path, policy=rules)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW events AS SELECT i AS uid, true AS flag, 5 AS age FROM range(200) t(i)"
        )
    with Gate(path, policy=rules) as gate:
        assert gate.unreadable == ()


@thinned(2)
@pytest.mark.parametrize(
    ("text", "again", "people"),
    [
        ("country LIKE '_O' OR country NOT LIKE '%E'", "NOT Country LIKE '%%E' OR country like '_O'", 200),
        ("year(day) = 2020 AND isodow(day) = 4", "date_part('isodow', day) = 4 AND 2020 = extract(year FROM day)", 200),
        ("month(day) <> 1", "NOT month(day) = 1", None),
    ],
)
def test_patterns_and_parts_of_dates_choose_rows(path: Path, text: str, again: str, people: int | None) -> None:
    rules = policy()
    rules["tables"]["events"]["columns"] += ["day"]
    with Gate(path, policy=rules) as gate:
        assert gate.ask(count(filter=text)).value == people
        # In other words it is the same question, and not a second one about the same people.
        assert gate.ask(count(filter=again)).replayed


def test_a_filter_is_not_asked_of_rows_that_a_view_leaves_out(tmp_path: Path) -> None:
    """The view may not be computable for these: the failure would tell about the ones that the filter chooses."""
    path = broken(tmp_path)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE members AS SELECT uid FROM raw WHERE uid <> 7; "
            "CREATE OR REPLACE VIEW events AS SELECT uid, flag, age::INT AS age FROM raw JOIN members USING (uid)"
        )
    with Gate(path, policy=cast_rules(tmp_path)) as gate:
        for about in ("age = 5 AND NOT flag", "age = 5 AND flag", "age >= 4"):
            gate.ask(count(filter=about, noise=0.5))
        gate.ask(histogram("flag", filter="age = 5", noise=0.5, release_threshold=60))
        assert gate.unreadable == ()


@thinned(2)
@pytest.mark.parametrize("further", [{}, {"units": "exact"}])
def test_people_who_would_be_counted_twice_are_looked_for_when_a_gate_opens(
    tmp_path: Path, further: dict[str, str]
) -> None:
    """No question may fail because of them: the table does, unless the policy says that they are different people."""
    path = broken(tmp_path)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW events AS SELECT 'p' || (i // 2) || CASE i % 2 WHEN 1 THEN ' ' ELSE '' END AS uid, "
            "true AS flag FROM range(200) t(i)"
        )
    tables = {"events": {"unit": "uid", "columns": ["flag"], "k": 20, **further}}
    with Gate(path, policy=policy(tables=tables)) as gate:
        if not further:
            assert gate.unreadable == ("events",)
            with pytest.raises(ArgumentError, match=REFUSED):
                gate.ask(histogram("flag"))
        else:
            assert rows(gate.ask(histogram("flag"))) == [(True, 200)]


def test_data_that_change_can_fail_once_and_that_is_charged(tmp_path: Path) -> None:
    """The asker chose the question that failed, and so learned something: it costs what an answer costs."""
    csv, path, rules = tmp_path / "rows.csv", broken(tmp_path), cast_rules(tmp_path)

    def write(age: str) -> None:
        lines = [f"{i},{i % 2 == 0},{age if i == 7 else 5}" for i in range(200)]
        csv.write_text("\n".join(["uid,flag,age", *lines]), encoding="utf-8")

    write("6")
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW events AS SELECT uid::INT AS uid, flag::BOOL AS flag, age::INT AS age "
            f"FROM read_csv('{csv}', all_varchar = true)"
        )
    with Gate(path, policy=rules) as gate, Gate(path, policy=rules) as other:
        write("secret")
        with pytest.raises(PkdpError, match="was not answered") as failure:
            gate.ask(count(filter="age = 5", noise=0.5))
        assert type(failure.value) is PkdpError
        assert "secret" not in str(failure.value) + "".join(failure.value.__notes__)
        assert gate.total().worst_case.epsilon(0) == pytest.approx(0.5)
        write("6")
        for open_gate in (gate, other):
            with pytest.raises(ArgumentError, match=REFUSED):
                open_gate.ask(count(filter="flag", noise=0.5))
    with Gate(path, policy=rules) as gate:
        assert gate.unreadable == ("events",)
    with Ledger.open(tmp_path / "cast.sqlite") as ledger:
        ledger.verify()
        assert [entry.state for entry in ledger.entries(given_back=True)] == ["reserved"]


def test_a_question_that_is_counted_while_another_fails_is_not_answered(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its table is refused by then: of the questions that run at once no more is told than of one after the other."""
    do = Worker.do

    def condemned(worker: Worker, job: Job, **limits: Any) -> Any:
        if isinstance(job, Job) and job.task == "count":
            gate._failed.add("events")
        return do(worker, job, **limits)

    with Gate(path, policy=policy()) as gate:
        monkeypatch.setattr(Worker, "do", condemned)
        with pytest.raises(PkdpError, match="was not answered"):
            gate.ask(histogram())
        assert [entry.state for entry in gate._ledger.entries()] == ["reserved"]


def test_a_question_is_rehearsed_once_however_large_its_noise_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    do, tasks = Worker.do, list[str]()

    def noted(worker: Worker, job: Job, **limits: Any) -> Any:
        tasks.extend([job.task] if isinstance(job, Job) else [])
        return do(worker, job, **limits)

    with Gate(path, policy=policy(budget=WORST)) as gate:
        monkeypatch.setattr(Worker, "do", noted)
        for noise, further in ((0.1, {}), (0.2, {}), (0.2, {"filter": "flag"}), (0.1, {})):
            gate.ask(count(noise=noise, **further))
    assert tasks == ["rehearse", "count", "count", "rehearse", "count"]


def test_a_gate_that_is_stopped_while_it_opens_refuses_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    rules = policy(ledger=tmp_path / "ledger.sqlite", period="2020")
    with monkeypatch.context() as patched:
        patched.setattr(Worker, "do", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Gate(path, policy=rules)
    with Gate(path, policy=rules) as gate:
        assert gate.unreadable == ()


@pytest.mark.default_target
def test_advice_to_analysts_is_nothing_that_only_a_curator_can_do(path: Path) -> None:
    tables = {"events": {"unit": "uid", "columns": ["flag"], "k": 2}}
    with Gate(path, policy=policy(tables=tables)) as gate, pytest.raises(NotCertifiableError) as refusal:
        gate.ask(histogram("flag", k=3))
    assert str(refusal.value).startswith("The release promises too little")
    assert "pkdp." not in str(refusal.value)
    assert "target=" not in str(refusal.value)


@pytest.mark.parametrize("column", ["note", "uid", "nope"])
def test_what_the_policy_leaves_out_is_not_said_to_be_missing(gate: Gate, column: str) -> None:
    for question in (histogram(column), count(filter=f"{column} IS NULL")):
        with pytest.raises(ArgumentError, match=f"names column '{column}', which this gate does not offer"):
            gate.ask(question)


def test_errors_do_not_depend_on_the_data(tmp_path: Path) -> None:
    """People without a unit, in several cells or in cells that are not public make no difference to what fails."""
    questions = [histogram(), histogram("flag"), count(filter="country = 'XX'"), count(k=1), histogram("nothing")]
    odd = (
        "INSERT INTO events VALUES (NULL, 'US', true, 1, NULL, NULL), (7, 'XX', NULL, 1, NULL, NULL); "
        "INSERT INTO events SELECT 8, 'NO', false, 1, NULL, NULL FROM range(5)"
    )
    by_data = []
    for name, further in {"plain": "SELECT 1", "odd": odd}.items():
        (tmp_path / name).mkdir()
        path = database(tmp_path / name)
        with duckdb.connect(str(path)) as connection:
            connection.execute(further)
        with Gate(path, policy=policy()) as gate:
            outcomes = []
            for question in questions:
                try:
                    outcomes.append(f"{len(gate.ask(question).table)} rows")
                except PkdpError as error:
                    outcomes.append(str(error))
            by_data.append(outcomes)
    assert by_data[0] == by_data[1]
    assert by_data[0][0] == "3 rows"


def test_what_is_wrong_with_a_question_is_found_without_data(gate: Gate) -> None:
    """It is told with its reason, and the table goes on answering."""
    for _ in range(2):
        with pytest.raises(ArgumentError, match="compares column 'country'"):
            gate.ask(count(filter="country > 5"))
    assert gate.unreadable == ()


@pytest.mark.parametrize("defect", [RuntimeError, AttributeError, RecursionError])
def test_a_defect_is_not_told_and_leaves_a_gate_that_answers(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, defect: type[Exception]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise defect("secret7")

    with monkeypatch.context() as patched:
        patched.setattr(module, "permitted", fail)
        with pytest.raises(PkdpError, match="was not answered; ask the curator") as failure:
            gate.ask(count())
        assert "secret" not in str(failure.value) + "".join(failure.value.__notes__)
        assert failure.value.__cause__ is failure.value.__context__ is None
    assert rows(gate.ask(histogram())) == COUNTRIES


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A gate with a process of its own."""
    monkeypatch.setattr(worker, "Worker", Worker)
    return Gate(database(tmp_path), policy=policy())


def test_a_closed_gate_answers_nothing_and_leaves_nothing_open(opened: Gate, tmp_path: Path) -> None:
    gate = opened
    processes = [worker._process for worker in gate._workers._all]
    assert processes
    gate.close()
    gate.close()
    assert all(process.poll() is not None for process in processes)
    with pytest.raises(ArgumentError, match="closed"):
        gate.ask(count())
    with pytest.raises(ArgumentError, match="closed"):
        gate.total()
    duckdb.connect(str(tmp_path / "people.duckdb")).close()  # for writing


@pytest.fixture(params=one_in(2, ["raise SystemExit(0)", ""]))
def session(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> subprocess.CompletedProcess[str]:
    """An analyst's process, which has ended without closing its gate."""
    script = tmp_path / "analyst_session.py"
    script.write_text(
        "import pkdp_pipeline as pkdp, pkdp_pipeline.duckdb\n"
        f"gate = pkdp.duckdb.Gate({str(path)!r}, policy={policy()!r})\n"
        "print(gate.connect().sql(\"FROM pkdp_histogram('events', 'country')\").fetchall())\n"
        f"{request.param}\n",
        encoding="utf-8",
    )
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)


@pytest.mark.slow
def test_a_process_ends_without_complaints(session: subprocess.CompletedProcess[str]) -> None:
    assert session.stdout.splitlines() == [str(COUNTRIES)]
    assert session.stderr == ""


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Path]:
    """A database that another process writes."""
    path = database(tmp_path)
    script = f"import duckdb; c = duckdb.connect({str(path)!r}); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        yield path
        writer.kill()


def test_a_database_that_is_being_written_is_busy(written: Path) -> None:
    with pytest.raises(TemporaryError, match="another process"):
        Gate(written, policy=policy())


def test_a_database_that_this_process_has_open_is_a_matter_of_configuration(tmp_path: Path) -> None:
    path = database(tmp_path)
    with duckdb.connect(str(path)), pytest.raises(ConfigError, match="pkdp gate serve"):
        Gate(path, policy=policy())


@pytest.mark.parametrize("kind", ["absent", "folder", "text", "number"])
def test_a_path_that_is_no_database_is_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("not a database " * 100, encoding="utf-8")
    (tmp_path / "text").chmod(0o600)
    with pytest.raises(ConfigError, match="database"):
        Gate(5 if kind == "number" else tmp_path / kind, policy=policy())  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [0o640, 0o602])
def test_a_database_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = database(tmp_path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=r"other than its owner can read or write .* chmod 600"):
        Gate(path, policy=policy())


def test_a_database_that_was_replaced_is_not_counted_under_the_old_reading(tmp_path: Path) -> None:
    path = database(tmp_path)
    with Gate(path, policy=policy()) as gate:
        for worker in gate._workers._all:
            worker.end()
        shutil.copy(path, tmp_path / "new.duckdb")
        (tmp_path / "new.duckdb").replace(path)
        with pytest.raises(TemporaryError):
            gate.ask(histogram())


def test_the_write_ahead_log_of_a_linked_database_is_its_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = database(tmp_path / "real")
    with duckdb.connect(str(path)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("INSERT INTO hidden FROM events")
    log = path.with_name(f"{path.name}.wal")
    log.chmod(0o644)
    link = tmp_path / "link.duckdb"
    link.symlink_to(path)
    with pytest.raises(ConfigError, match=r"other than its owner can read or write .*\.wal"):
        Gate(link, policy=policy())


def test_the_database_is_never_written(path: Path) -> None:
    before = path.read_bytes()
    with Gate(path, policy=policy()) as gate:
        gate.ask(histogram())
    assert path.read_bytes() == before
    assert not path.with_suffix(".duckdb.wal").exists()
