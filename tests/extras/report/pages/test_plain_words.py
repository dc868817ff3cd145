"""Numbers in plain words never make a promise sound better than it is."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.report.content import BudgetLine, LedgerAccount
from pkdp_pipeline.extras.report.pages import document_of
from pkdp_pipeline.extras.report.pages.plain_words import (
    PLAIN,
    anyone,
    budget_lines,
    chance,
    factor,
    meaning,
    named,
    protected,
    sureness,
    whom,
    worst_meaning,
)
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.model.wording import PYTHON, rounded_up

epsilons = st.floats(0.0, 600.0) | st.floats(0.0, 5.0)


def statement(*, noise=None, p_max=0.5, known=0):
    mechanism = pkdp.Histogram(k=50, noise=noise, release_threshold=None if noise is None else 90)
    return Statement.of(pkdp.certify(mechanism, pkdp.AttackerModel(p_max=p_max, known=known)))


@given(epsilon=epsilons)
def test_a_factor_is_never_below_e_to_the_epsilon(epsilon):
    assert float(factor(epsilon)) >= math.exp(epsilon) * (1.0 - 1e-12)
    assert float(factor(epsilon)) <= max(1.0, math.exp(epsilon) * 1.2 * math.exp(epsilon * 0.01))


@given(epsilon=epsilons)
def test_sureness_is_never_below_what_fifty_fifty_becomes(epsilon):
    said = sureness(epsilon)
    true = 1.0 / (1.0 + math.exp(-epsilon))
    if said is None:
        assert true > 0.97
    else:
        assert 100.0 * true - 1e-9 <= int(said.removesuffix(" %")) <= 100.0 * true + 2.5


@given(delta=st.floats(1e-15, 0.1))
def test_one_in_so_many_is_never_rarer_than_delta(delta):
    number = int(re.sub(r"\D", "", chance(delta)))
    assert Fraction(1, number) >= Fraction(repr(delta))
    assert Fraction(1, number) <= Fraction(repr(delta)) * Fraction(12, 10)


@pytest.mark.parametrize(
    ("epsilon", "said"), [(0.0, "1"), (1.0, "2.8"), (1.1517, "3.2"), (math.log(2.0), "2.1"), (800.0, "infinity")]
)
def test_factors(epsilon, said):
    assert factor(epsilon) == said


@pytest.mark.parametrize(
    ("epsilon", "said"), [(0.0, "50 %"), (1.0, "74 %"), (4.5, "99 %"), (4.7, None), (math.inf, None)]
)
def test_surenesses(epsilon, said):
    assert sureness(epsilon) == said


@pytest.mark.parametrize(("delta", "said"), [(1e-6, "one in 1,000,000"), (1.91e-7, "one in 5,200,000"), (0.5, "")])
def test_chances(delta, said):
    assert chance(delta) == said


def test_against_a_declared_attacker_only():
    shown = statement()
    assert not anyone(shown)
    text = meaning(shown)
    assert "Nobody who fits the assumptions" in text
    assert "at most 3.2 (e to the power 1.16, rounded up)" in text
    assert "at most 77 % sure" in text
    assert "δ = 1e-6 (one in 1,000,000)" in text
    assert "nothing is certified" in worst_meaning(shown)


def test_against_anyone():
    shown = statement(noise=pkdp.GeometricNoise(0.5), p_max=0.9, known=30)
    assert anyone(shown)
    assert "Nobody, even knowing everybody else's records," in meaning(shown)
    assert "It is about one privacy unit" in meaning(shown)
    assert "Even somebody who already knows everybody else" in worst_meaning(shown)


def test_no_epsilon_no_factor():
    nothing = replace(statement(), epsilon=math.inf, numbers=((1.0, 1.0), (2.0, 0.9)))
    text = meaning(nothing)
    assert "no ε is certified" in text
    assert "at other δ" in text
    assert "factor of at most" not in text
    assert "curve" not in meaning(nothing, PLAIN)  # the officer's pages have none


def test_a_weak_promise_is_named_at_one():
    weak = Statement.of(pkdp.certify(pkdp.Histogram(k=5), pkdp.AttackerModel(p_max=0.1)))
    assert weak.epsilon == math.inf
    assert named(weak) == (1.0, dict(weak.numbers)[1.0])
    for say in (PYTHON, PLAIN):
        assert rounded_up(named(weak)[1]) in meaning(weak, say)
        assert "2.8" in meaning(weak, say)
        assert f"At {say.delta} = 1e-6 no {say.epsilon} is certified." in meaning(weak, say)


def test_a_budget_of_both_totals_is_one_where_they_hold_alike():
    free, bound = statement(noise=pkdp.GeometricNoise(0.5), p_max=0.9, known=30), statement()
    lines = [BudgetLine.of(Budget(1.0, 1e-6), part, 0.5) for part in ("partial_knowledge", "worst_case")]
    empty = dict.fromkeys(("unit", "reason", "head", "verify"), "")
    account = LedgerAccount(
        **empty, releases=2, waiting=0, total=free, declared=(), budgets=tuple(lines), delta=1e-6, points=()
    )
    anybody = "against anyone at all"
    assert list(budget_lines(account)) == [(anybody, lines[1])]
    less = (replace(lines[0], spent=0.4), lines[1])
    assert list(budget_lines(replace(account, budgets=less))) == [
        ("for all that is promised", less[0]),
        (anybody, less[1]),
    ]
    for total in (bound, None):
        named_budgets = [against for against, _ in budget_lines(replace(account, total=total))]
        assert named_budgets == ["against the declared attacker", anybody]


def test_where_no_epsilon_reaches_delta_the_noise_leads():
    shown = statement(noise=pkdp.GeometricNoise(0.5))
    shown = replace(shown, epsilon=math.inf, worst_case=(0.5, 2e-5))
    assert named(shown) == (0.5, 2e-5)
    assert anyone(shown)
    assert "Nobody, even knowing everybody else's records," in meaning(shown)
    assert "It is about one privacy unit" in meaning(shown)
    assert "δ = 2e-5 (one in 50,000)" in meaning(shown)
    assert named(replace(shown, worst_case=None, numbers=((1.0, 1.0),))) is None


def test_what_is_protected_is_said_as_the_sentence_says_it():
    assert protected(statement()) == "whether a person is included in this release"
    certificate = pkdp.certify(pkdp.Histogram(k=50), pkdp.AttackerModel(p_max=0.5))
    day = Statement.of(pkdp.compose([(certificate, 365)], pkdp.OneDayProtected()))
    assert protected(day) == "whether a person is included in any one of these releases, whatever her other records are"
    assert protected(day) in day.sentence
    assert protected(replace(statement(), hides="", protects="value")) == "which of two published cells a person is in"


def test_a_large_epsilon_is_called_what_it_is():
    assert "hardly a limit" in meaning(replace(statement(), named=(12.0, 1e-6)))
    assert "no limit in practice" in meaning(replace(statement(), named=(900.0, 1e-6)))
    assert "exception" not in meaning(replace(statement(), delta=0.0))
    assert "than before." in meaning(replace(statement(), named=(0.0, 0.0)))


def test_what_is_known_besides_is_named_wherever_noise_holds_against_anyone():
    total = pkdp.Leakage.total("the number of voters")
    noisy = pkdp.Histogram(noise=pkdp.GeometricNoise(0.25))
    beside_total = Statement.of(pkdp.certify(noisy, pkdp.AttackerModel(leakage=total), protects="value"))
    assert anyone(beside_total)
    assert whom(beside_total) == "anyone at all, given the number of voters"
    assert "even knowing everybody else's records and the number of voters, learns" in meaning(beside_total)
    assert meaning(beside_total).endswith(
        "It does not protect what the number of voters and everybody else's records tell by themselves."
    )
    assert "knows everybody else's records and the number of voters learns" in worst_meaning(beside_total)
    alone = Statement.of(pkdp.certify(noisy, pkdp.AttackerModel(), protects="value"))
    assert whom(alone) == whom(None) == "anyone at all"
    assert document_of(beside_total)["anyone"] == whom(beside_total)
    assert "anyone" not in document_of(alone)
    assert "themselves" not in meaning(alone) + worst_meaning(alone)
    private = pkdp.AttackerModel(leakage=pkdp.Leakage("a noisy total", epsilon=0.1))
    assert whom(Statement.of(pkdp.certify(noisy, private))) == "anyone at all"


def test_a_total_says_that_it_tells_nothing_about_cells():
    about_total = Statement.of(
        pkdp.certify(pkdp.Count(), pkdp.AttackerModel(leakage=pkdp.Leakage.total()), protects="value")
    )
    assert named(about_total) == (0.0, 0.0)
    assert protected(about_total) == "in which cell a person is"
    assert "learns more about it than before. It is about one privacy unit" in meaning(about_total)
