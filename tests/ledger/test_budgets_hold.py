"""Budgets hold what `total` says: for every kind of release, and for every certificate that a release ever had."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from accounts_book import Book, certified
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.errors import (
    BudgetExceededError,
    DifferencingError,
    NoEvidenceError,
    NotCertifiableError,
    TemporaryError,
)
from pkdp_pipeline.ledger import totals
from pkdp_pipeline.ledger.chain import Budget, Terms
from pkdp_pipeline.model.attacker import AttackerModel, Leakage
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    DisjointUnits,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
)
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram

TABLE = Histogram(k=50)
PRIVATE = AttackerModel(leakage=Leakage("a survey", epsilon=0.09))
PARTIAL = Budget(1.2, 1e-6, part="partial_knowledge")


def noised(epsilon, kind=Count, **more):
    return kind(noise=GeometricNoise(epsilon), **more)


def day(number):
    return f"2013-01-{number:02d}"


def charged(book, mechanism, **more):
    """Charge as many days as are let in, and return how many."""
    for number in range(1, 32):
        try:
            book.add(mechanism, day(number), **more)
        except BudgetExceededError as error:
            return number - 1, str(error)
    raise AssertionError("never refused")


# What leaks beside noise ------------------------------------------------------------------------------------------


def test_what_leaks_beside_noise_is_counted():
    days, message = charged(Book(Terms(budgets=(Budget(1.0, 0),))), noised(0.2), attacker=PRIVATE)
    assert days == 3
    assert "prior: epsilon = 0.87, requested: 0.29, together: 1.16, allowed: 1.0" in message


def test_what_may_depend_on_noise_is_counted():
    leaky = AttackerModel(leakage=Leakage("a log", shared_by=("presence",), dependence_epsilon=0.2))
    book = Book(Terms(budgets=(Budget(0.55, 0),)))
    with pytest.raises(BudgetExceededError, match=r"requested: 0\.6"):
        book.add(noised(0.2), day(1), attacker=leaky)
    book.add(noised(0.1), day(1), attacker=leaky)


def test_decimals_add_up_as_written_with_what_leaks():
    few = AttackerModel(leakage=Leakage("a survey", epsilon=0.05))
    assert charged(Book(Terms(budgets=(Budget(1.0, 0),))), noised(0.1))[0] == 10
    assert charged(Book(Terms(budgets=(Budget(1.5, 0),))), noised(0.1), attacker=few)[0] == 10


def test_the_exact_sum_is_that_of_the_bound():
    for attacker, added in ((PRIVATE, Fraction(9, 100)), (AttackerModel(), 0)):
        for mechanism, protects, cells in (
            (noised(0.1), "presence", 1),
            (noised(0.1, Histogram), "presence", 1),
            (noised(0.1, Histogram), "value", 2),
        ):
            part = certified(mechanism, attacker, protects)
            exact, delta = totals.drawn([(part, 7)])
            assert exact == 7 * (Fraction(cells, 10) + added)
            assert delta == 0
            assert float(exact) == pytest.approx(compose([(part, 7)]).worst_case.parameters[0])
    assert totals.drawn([(certified(TABLE, AttackerModel(p_max=0.1), "presence"), 1)]) is None


LEAKS = [
    AttackerModel(),
    AttackerModel(p_max=0.2, p_min=0.2, unknown=2000),
    PRIVATE,
    AttackerModel(leakage=Leakage("a log", shared_by=("presence", "value"), dependence_epsilon=0.05)),
    AttackerModel(p_max_between=0.6, leakage=Leakage.total()),
]
MECHANISMS = [
    noised(0.1),
    noised(0.3, Histogram),
    noised(0.2, Histogram, k=5, release_threshold=40),
    TABLE,
    Count(),
    Count(k=30),
]
PERIODS = [day(1), day(2), day(3), "2013-01-02/2013-01-04", "2013-01", "wave 1"]
EVIDENCE = [
    (),
    (DisjointUnits(),),
    (IndependentGivenHabits(),),
    (OneDayProtected(),),
    (BoundedDependence(0.05),),
    (BoundedParticipation(1),),
    (BoundedParticipation(2), IndependentGivenHabits()),
    (BoundedParticipation(1), OneDayProtected()),
    (OncePerUnit(),),
]
REFUSED = (BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError, TemporaryError)
HAIR = 1e-12


@given(
    st.lists(
        st.tuples(
            st.sampled_from(MECHANISMS),
            st.sampled_from(LEAKS),
            st.sampled_from(PERIODS),
            st.sampled_from(["presence", "value"]),
            st.sampled_from([("tailnum",), ("tailnum",), ("owner",)]),
            st.integers(0, 5),
        ),
        max_size=10,
    ),
    st.sampled_from(EVIDENCE),
    st.lists(
        st.tuples(
            st.sampled_from([0.3, 0.6, 1.0]),
            st.sampled_from([0.0, 1e-6]),
            st.sampled_from([None, "partial_knowledge", "worst_case"]),
        ),
        min_size=1,
        max_size=2,
    ),
)
@settings(max_examples=few(35), deadline=None)
def test_no_total_is_above_a_budget(requests, evidence, limits):
    budgets = tuple(Budget(epsilon, delta, part=part) for epsilon, delta, part in limits)
    book = Book(Terms(evidence=evidence, budgets=budgets))
    for mechanism, attacker, period, protects, unit, again in requests:
        with suppress(*REFUSED, ValueError):
            book.add(mechanism, period, attacker=attacker, protects=protects, unit=unit)
        if again == 0 and book.kept:
            with suppress(*REFUSED, ValueError):
                book.recertify(max(book.kept), LEAKS[1])
        for charged_unit in {kept.standing.unit for kept in book.kept.values()}:
            total = book.total(charged_unit)
            for budget in budgets:
                for measure in budget.measures:
                    guarantee = total if measure == "partial_knowledge" else total.worst_case
                    assert guarantee.delta(budget.epsilon * (1 + HAIR)) <= budget.delta
    book.verify()


# Certified again ------------------------------------------------------------------------------------------------------

KNOWING = AttackerModel(p_max=0.5)
MILDER, BOLDER = AttackerModel(p_max=0.4), AttackerModel(p_max=0.6)


def opened(epsilon=PARTIAL.epsilon):
    return Book(Terms(evidence=(IndependentGivenHabits(),), budgets=(Budget(epsilon, 1e-6, part="partial_knowledge"),)))


def test_a_milder_certificate_frees_nothing():
    book = opened(1.3)
    entry = book.add(TABLE, day(1), attacker=KNOWING)
    spent, state = book.total().epsilon(1e-6), book.state()
    book.recertify(entry, MILDER)
    assert book.total().epsilon(1e-6) == spent
    assert book.state() == state
    book.verify()
    with pytest.raises(BudgetExceededError):
        book.add(TABLE, day(2), attacker=MILDER)


def test_a_bolder_certificate_is_held_to_the_budgets():
    book = opened(1.2)
    entry = book.add(TABLE, day(1), attacker=KNOWING)
    state = book.state()
    with pytest.raises(BudgetExceededError) as refused:
        book.recertify(entry, BOLDER)
    assert "The table keeps the certificate it has" in str(refused.value)
    assert "larger budget" in str(refused.value)
    assert book.state() == state
    book.verify()
    book = opened(9.0)
    entry = book.add(TABLE, day(1), attacker=KNOWING)
    before = book.total().epsilon(1e-6)
    book.recertify(entry, BOLDER)
    assert book.total().epsilon(1e-6) > before
    book.recertify(entry, MILDER)
    book.recertify(entry, KNOWING)
    assert book.total().epsilon(1e-6) == pytest.approx(certified(TABLE, BOLDER, "presence").epsilon(1e-6))
    book.verify()


def test_of_crossing_certificates_the_largest_is_held_to_the_budgets():
    passive = AttackerModel(p_max=0.5)
    active = AttackerModel(p_max=0.3, known=20, influence="active")
    first, second = (certified(TABLE, attacker, "presence") for attacker in (passive, active))
    crossing = [first.delta(epsilon) - second.delta(epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0)]
    assert min(crossing) < 0 < max(crossing)
    book = opened(max(first.epsilon(1e-6), second.epsilon(1e-6)) + 0.01)
    entry = book.add(TABLE, day(1), attacker=passive)
    book.recertify(entry, active)
    assert book.total().epsilon(1e-6) == max(first.epsilon(1e-6), second.epsilon(1e-6))
    state = book.state()
    with pytest.raises(BudgetExceededError, match="The table keeps the certificate"):
        book.recertify(entry, AttackerModel(p_max=0.5, known=20, influence="active"))
    with pytest.raises(BudgetExceededError):
        book.add(TABLE, day(2), attacker=AttackerModel(p_max=0.01))
    assert book.state() == state
    book.verify()


def test_what_fits_into_a_budget_is_not_shown_above_it():
    within = totals.LedgerTotals.least
    assert within(1.0, (3 * Fraction("0.1"), Fraction(0)), 0.0) == 0.3
    for exact in (3 * Fraction("0.1") + Fraction(1, 10**18), Fraction(1, 3), Fraction(0.3)):
        spent = within(1.0, (exact, Fraction(0)), 0.0)
        assert exact <= Fraction(repr(spent)) <= exact * Fraction("1.000000000000001")
