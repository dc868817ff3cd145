"""`explain` says what publishing then does, with any request and any ledger, and neither ledger nor data notice."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.report.statement import Statement, what_if
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.accessor import PkdpAccessor
from pkdp_pipeline.releases.publish import Publication

KNOWS_LITTLE = pkdp.AttackerModel(p_max=0.1)
KNOWS_MORE = pkdp.AttackerModel(p_max=0.2, known=3, influence="active")
UNCERTAIN = pkdp.AttackerModel(p_min=0.2, p_max=0.6, unknown=60)
ANYONE = pkdp.AttackerModel()
NOISE = pkdp.GeometricNoise(0.5)
UNIT = {"unit": "u"}


def frame() -> pd.DataFrame:
    cells = ["x"] * 40 + ["y"] * 9
    return pd.DataFrame(
        {"u": range(len(cells)), "c": pd.Series(cells, dtype="str"), "adult": [n % 3 > 0 for n in range(len(cells))]}
    )


def adults(table: pd.DataFrame) -> pd.Series:
    return table["adult"]


def published(by: object = None, **terms: object) -> pkdp.Release:
    """Publish what is asked for, as one who does not explain first."""
    return pkdp.count(frame(), **terms) if by is None else pkdp.histogram(frame(), by, **terms)


def _attempt(act, terms: dict):
    """Return what it returns, and what it raises."""
    try:
        return act(**terms), None
    except pkdp.PkdpError as error:
        return None, error


@contextlib.contextmanager
def quick():
    """Leave the table of stronger attackers out, which takes most of the time."""
    with patch("pkdp_pipeline.extras.report.statement.what_if", lambda certificate, delta: ()):
        yield


def check(terms: dict, ledger: pkdp.Ledger | None = None) -> str:
    """Explain, publish, and compare; return what became of it."""
    explained, malformed = _attempt(pkdp.explain, terms | {"ledger": ledger})
    total = None if ledger is None else _total(ledger)
    release, error = _attempt(published, terms | {"ledger": ledger})
    if malformed is not None:
        assert isinstance(malformed, pkdp.ArgumentError)
        assert (type(malformed), str(malformed)) == (type(error), str(error))
        return "malformed"
    assert _nonempty(explained.before) == total
    assert _nonempty(explained.after) == (None if ledger is None else _total(ledger))
    if error is not None:
        assert explained.outcome == "refused"
        assert (type(explained.refused), str(explained.refused)) == (type(error), str(error))
        return "refused"
    assert explained.refused is None
    assert explained.outcome == ("replay" if release.replayed else "publish")
    assert explained.certificate.to_json() == release.certificate.to_json()
    assert explained.error == release.error
    return explained.outcome


def _total(ledger: pkdp.Ledger) -> pkdp.Certificate | None:
    with contextlib.suppress(pkdp.NoEvidenceError):
        return _nonempty(ledger.total("u"))
    return None


def _nonempty(total: pkdp.Certificate | None) -> pkdp.Certificate | None:
    """Return a total; None where there is nothing in it."""
    return total if total is not None and total.parts else None


WHERE = [None, "adult", "adult and c == 'x'", adults]
COUNTS = st.fixed_dictionaries(
    {
        "k": st.sampled_from([None, 5, 20]),
        "k_complement": st.sampled_from([None, None, 4]),
        "noise": st.sampled_from([None, NOISE]),
        "release_threshold": st.sampled_from([None, None, 9]),
    }
)
HISTOGRAMS = st.fixed_dictionaries(
    {
        "by": st.just("c"),
        "k": st.sampled_from([None, 5, 20]),
        "noise": st.sampled_from([None, NOISE]),
        "release_threshold": st.sampled_from([None, 9, 30]),
        "domain": st.sampled_from([None, ["x", "y"], ["x", "y", "z"]]),
        "protects": st.sampled_from(["presence", "value"]),
    }
)
RULES = st.fixed_dictionaries(
    {
        "attacker": st.sampled_from([KNOWS_LITTLE, KNOWS_LITTLE, KNOWS_MORE, UNCERTAIN, ANYONE]),
        "where": st.sampled_from(WHERE),
        "missing_unit": st.sampled_from(["error", "drop"]),
        "label": st.sampled_from([None, "adults", "adults"]),
        "period": st.sampled_from(["2020-01-01", "2020-01-02", "2020-01"]),
    }
)


@st.composite
def requests(draw):
    return UNIT | draw(st.one_of(COUNTS, HISTOGRAMS)) | draw(RULES)


@settings(max_examples=few(30, 3), deadline=None)
@given(terms=requests())
def test_without_a_ledger_it_says_what_publishing_does(terms):
    with quick():
        check(terms)


@settings(max_examples=few(20, 3), deadline=None)
@given(
    requests=st.lists(st.tuples(requests(), st.booleans()), min_size=1, max_size=4),
    budget=st.sampled_from(
        [None, pkdp.Budget(1.2, 1e-6), pkdp.Budget(2.0, 1e-5, part="worst_case", window_days=2), pkdp.Budget(9.0, 0.2)]
    ),
    evidence=st.sampled_from([None, pkdp.IndependentGivenHabits(), pkdp.BoundedDependence(0.1, 0.0)]),
)
def test_with_a_ledger_it_says_what_publishing_does(requests, budget, evidence):
    with pkdp.Ledger.open(":memory:", dataset="people", budget=budget, evidence=evidence) as ledger, quick():
        for terms, revise in requests:
            check(terms | ({"revise": True} if revise else {}), ledger)
        ledger.verify()


def test_each_outcome_comes_about():
    terms = UNIT | {"by": "c", "k": 20, "attacker": KNOWS_LITTLE, "period": "2020-01-01"}
    with pkdp.Ledger.open(":memory:", budget=pkdp.Budget(9.0, 0.2, part="partial_knowledge")) as ledger:
        assert check(terms, ledger) == "publish"
        assert check(terms, ledger) == "replay"
        assert check(terms | {"attacker": KNOWS_MORE}, ledger) == "replay"  # and certified again
        assert check(terms | {"k": 5}, ledger) == "refused"  # it would undo the first
        assert check(terms | {"attacker": ANYONE, "k": 30}, ledger) == "refused"  # not certifiable
        assert check(terms | {"period": None}, ledger) == "malformed"
        assert check(terms | {"where": adults}, ledger) == "malformed"
        assert check(terms | {"attacker": 0.1, "k": 30}, ledger) == "malformed"
        assert check(terms | {"attacker": 0.1}) == "malformed"
    assert check(terms | {"revise": True}) == "malformed"
    assert check(terms) == "publish"


@pytest.mark.parametrize("attacker", [KNOWS_LITTLE, KNOWS_MORE])
def test_the_table_of_stronger_attackers_is_that_of_its_certificate(attacker):
    explained = pkdp.explain(**UNIT, by="c", k=20, attacker=attacker)
    assert explained.scenarios == what_if(explained.certificate)
    assert explained.statement == Statement.of(explained.certificate)
    assert len(explained.scenarios) > 5


def test_a_request_refused_for_its_budget_keeps_the_certificate_it_was_refused_with():
    terms = UNIT | {"by": "c", "domain": ["x", "y"], "noise": NOISE, "attacker": ANYONE, "period": "2020-01-01"}
    with pkdp.Ledger.open(":memory:", budget=pkdp.Budget(0.6, 0.0)) as ledger:
        assert check(terms, ledger) == "publish"
        explained = pkdp.explain(**terms | {"period": "2020-01-02"}, ledger=ledger)
    assert isinstance(explained.refused, pkdp.BudgetExceededError)
    assert explained.certificate.worst_case.parameters == (0.5, 0.0)
    assert explained.before is explained.after
    assert [(budget.part, budget.before, budget.after) for budget in explained.budgets] == [
        ("partial_knowledge", 0.5, 0.5),
        ("worst_case", 0.5, 0.5),
    ]


def test_budgets_are_shown_as_they_would_be_used():
    terms = UNIT | {"by": "c", "domain": ["x", "y"], "noise": NOISE, "attacker": ANYONE, "period": "2020-01-01"}
    budgets = [pkdp.Budget(2.0, 0.0, part="worst_case"), pkdp.Budget(1.0, 0.0, part="worst_case", window_days=1)]
    with pkdp.Ledger.open(":memory:", budget=budgets) as ledger:
        published(**terms, ledger=ledger)
        explained = pkdp.explain(**terms | {"period": "2020-01-02"}, ledger=ledger)
    assert [(budget.budget, budget.before, budget.after, budget.complete) for budget in explained.budgets] == [
        (budgets[0], 0.5, 1.0, True),
        (budgets[1], 0.5, 0.5, True),
    ]


def test_a_refusal_holds_on_to_nothing():
    explained = pkdp.explain(**UNIT, by="c", k=20, attacker=ANYONE)
    error = explained.refused
    assert isinstance(error, pkdp.NotCertifiableError)
    assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)
    with pytest.raises(pkdp.NotCertifiableError, match="Not certifiable"):
        explained.plot()


def test_it_draws_what_would_be_guaranteed():
    axes = pkdp.explain(**UNIT, by="c", k=20, attacker=KNOWS_LITTLE).plot(delta=1e-4)
    assert axes.get_xlabel()


class Untouchable:
    """A frame of which nothing may be read."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(f"{name} was read")


def never(_: object) -> object:
    raise AssertionError("the predicate was asked")


@pytest.mark.parametrize("by", ["c", None])
def test_no_data_are_read(by):
    terms = UNIT | {"by": by, "where": never, "k": 20, "attacker": KNOWS_LITTLE}
    accessor = PkdpAccessor(Untouchable())
    assert accessor.explain(**terms).outcome == "publish"
    with pkdp.Ledger.open(":memory:") as ledger:
        more = {"ledger": ledger, "period": "2020", "label": "some of them"}
        assert accessor.explain(**terms | more) == pkdp.explain(**terms | more)
        assert list(ledger.entries()) == []


def test_the_accessor_passes_every_argument_on():
    terms = UNIT | {
        "by": ["c", "d"],
        "k": 3,
        "noise": NOISE,
        "release_threshold": 20,
        "domain": {"c": ["x"], "d": ["z", "w"]},
        "protects": "value",
        "missing_unit": "drop",
        "one_cell": "first",
        "order_by": "e",
        "undeclared": "absent",
        "attacker": pkdp.AttackerModel(p_max_between=0.6),
    }
    assert frame().pkdp.explain(**terms) == pkdp.explain(**terms)
    context = pkdp.explain(**terms).context
    assert (context.missing_unit, context.one_cell, context.undeclared) == ("drop", "first", "absent")
    counted = pkdp.explain(**UNIT, k_complement=4, attacker=pkdp.AttackerModel(p_min=0.2), where="adult")
    assert counted == frame().pkdp.explain(
        None, "adult", unit="u", k_complement=4, attacker=pkdp.AttackerModel(p_min=0.2)
    )
    assert counted.mechanism == pkdp.Count(k_complement=4)


def test_a_histogram_has_no_complement():
    with pytest.raises(pkdp.ArgumentError, match="k_complement is about a count"):
        pkdp.explain("c", **UNIT, k=5, k_complement=4, attacker=KNOWS_LITTLE)


def fingerprints(folder: Path) -> dict[str, str]:
    """Return a hash of every file but SQLite's index of its log, which says who reads it at the moment."""
    files = (path for path in folder.iterdir() if not path.name.endswith("-shm"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_ledger_s_file_stays_as_it_is(tmp_path):
    path = tmp_path / "ledger.sqlite"
    terms = UNIT | {"by": "c", "domain": ["x", "y"], "noise": NOISE, "attacker": ANYONE, "period": "2020-01-01"}
    with pkdp.Ledger.open(path, dataset="people", budget=pkdp.Budget(1.2, 0.0)) as ledger:
        before = fingerprints(tmp_path)
        assert pkdp.explain(**terms, ledger=ledger).outcome == "publish"
        assert fingerprints(tmp_path) == before
        published(**terms, ledger=ledger)
        before, head = fingerprints(tmp_path), ledger.head()
        outcomes = [
            pkdp.explain(**terms | other, ledger=ledger).outcome
            for other in (
                {},
                {"attacker": KNOWS_LITTLE},
                {"revise": True},
                {"period": "2020-02"},
                {"noise": None, "k": 5},
            )
        ]
        assert outcomes == ["replay", "replay", "publish", "publish", "refused"]
        assert fingerprints(tmp_path) == before
        assert ledger.head() == head
        ledger.verify()
    with pkdp.Ledger.open(path, dataset="people") as ledger:
        assert len(list(ledger.entries(given_back=True))) == 1
        assert ledger.head() == head


def test_another_run_s_reservation_is_explained_as_it_would_be_taken_over(tmp_path):
    terms = UNIT | {"by": "c", "k": 20, "attacker": KNOWS_LITTLE, "period": "2020-01-01"}
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite", evidence=pkdp.IndependentGivenHabits()) as ledger:
        question = Question(mechanism=pkdp.Histogram(k=20), unit="u", by="c", period="2020-01-01")
        left = Publication(question=question, attacker=KNOWS_LITTLE, ledger=ledger).reserve()
        published(**terms | {"ledger": ledger, "period": "2021-01-01"})
        explained = pkdp.explain(**terms, ledger=ledger)
        assert explained.certificate.context.head == left.charged.head
        assert check(terms, ledger) == "publish"


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_a_postgresql_ledger_stays_as_it_is(postgres_url):
    import psycopg

    def content() -> dict[str, list]:
        with psycopg.connect(postgres_url, options="-c search_path=pkdp") as connection:
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'pkdp'").fetchall()
            return {name: sorted(map(repr, connection.execute(f"TABLE {name}").fetchall())) for (name,) in tables}

    terms = UNIT | {"by": "c", "domain": ["x", "y"], "noise": NOISE, "attacker": ANYONE, "period": "2020-01-01"}
    with pkdp.Ledger.open(postgres_url, dataset="people", budget=pkdp.Budget(0.7, 0.0)) as ledger:
        assert pkdp.explain(**terms, ledger=ledger).outcome == "publish"
        published(**terms, ledger=ledger)
        before = content()
        assert any(before.values())
        others = (
            {},
            {"attacker": KNOWS_LITTLE},
            {"period": "2020-02"},
            {"noise": pkdp.GeometricNoise(0.1), "period": "2021"},
        )
        outcomes = [pkdp.explain(**terms | other, ledger=ledger).outcome for other in others]
        assert outcomes == ["replay", "replay", "refused", "publish"]
        assert content() == before
        assert check(terms | others[3], ledger) == "publish"
