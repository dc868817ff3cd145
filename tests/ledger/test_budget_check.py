"""Budgets are never exceeded: not in any window, for any unit, in any order; and nothing else is refused."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from datetime import date
from fractions import Fraction

import pytest
from accounts_book import ATTACKER, Book, certified, standing
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few, thinned

from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.errors import BudgetExceededError, DifferencingError, LedgerError
from pkdp_pipeline.ledger import Period, charging, totals
from pkdp_pipeline.ledger.chain import Budget, Terms
from pkdp_pipeline.ledger.records import open_database
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import BoundedDependence, IndependentGivenHabits, OneDayProtected
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram

TABLE = Histogram(k=50)


def noised(epsilon):
    return Count(noise=GeometricNoise(epsilon))


def opened(*budgets, evidence=()):
    return Book(Terms(budgets=budgets, evidence=evidence))


def day(number):
    return date(2013, 1, 1).replace(day=number).isoformat()


def refusal(book, *arguments, **fields):
    before = book.state()
    with pytest.raises(BudgetExceededError) as caught:
        book.add(*arguments, **fields)
    assert book.state() == before
    book.verify()
    return str(caught.value)


# Messages ---------------------------------------------------------------------------------------------------------


def test_the_message_says_prior_requested_and_allowed():
    book = opened(Budget(1.0, 0))
    for number in range(1, 10):
        book.add(noised(0.1), day(number))
    message = refusal(book, noised(0.2), day(10), label="by carrier")
    assert "prior: epsilon = 0.9, requested: 0.2, together: 1.1, allowed: 1.0 (all at delta = 0.0)" in message
    for words in ("'by carrier' (period 2013-01-10)", "'flights'", "unit 'tailnum'", "worst-case total", "Nothing was"):
        assert words in message


def test_a_total_equal_to_the_budget_is_within_it_in_decimals():
    book = opened(Budget(1.0, 0))
    for number in range(1, 11):
        book.add(noised(0.1), day(number))
    assert 10 * Fraction(0.1) > 1
    assert "prior: epsilon = 1, requested: 0.05," in refusal(book, noised(0.05), day(11))


def test_a_hair_above_the_budget_is_named():
    book = opened(Budget(0.7, 0))
    for number in range(1, 10):
        book.add(noised(0.07), day(number))
    drawn = totals.drawn([(certified(noised(0.07), AttackerModel(), "presence"), 10)])
    if drawn[0] <= Fraction(7, 10):
        book.add(noised(0.07), day(10))
    else:
        assert "above the budget by" in refusal(book, noised(0.07), day(10))


def test_a_release_without_a_worst_case_needs_a_budget_for_one_part():
    book = opened(Budget(1.0, 1e-6), evidence=(OneDayProtected(),))
    message = refusal(book, TABLE, day(1))
    assert 'part="partial_knowledge"' in message
    message = refusal(opened(Budget(1.0, 1e-6, part="worst_case")), TABLE, day(1))
    assert "put noise with a finite worst case on it" in message
    assert "partial_knowledge" not in message
    book = opened(Budget(1.0, 1e-6, part="partial_knowledge"), evidence=(OneDayProtected(),))
    book.add(TABLE, day(1))
    book.add(TABLE, day(2))
    unsure = AttackerModel(p_max=0.1)
    message = refusal(book, Histogram(k=3), day(3), attacker=unsure)
    least = charging.rounded_up(certified(Histogram(k=3), unsure, "presence").delta(1.0))
    assert f"requested: none (its delta is {least} at epsilon = 1.0)" in message
    assert "together: none" in message
    assert "infinity" not in message


def test_a_window_is_named_by_its_first_day():
    book = opened(Budget(0.3, 0, window_days=7))
    for number in (1, 3, 12):
        book.add(noised(0.15), day(number))
    assert "7 days from 2013-01-01" in refusal(book, noised(0.1), day(7))
    book.add(noised(0.1), day(8))
    message = refusal(book, noised(0.1), "2013-01-09/2013-01-10")
    assert "7 days from 2013-01-03" in message
    assert "prior: epsilon = 0.25, requested: 0.1, together: 0.35, allowed: 0.3" in message


def test_a_long_period_that_began_before_the_window_counts_in_it():
    book = opened(Budget(0.3, 0, window_days=1))
    book.add(noised(0.2), "2013-01-01/2013-01-20")
    assert "prior: epsilon = 0.2, requested: 0.2" in refusal(book, noised(0.2), day(15))
    book.add(noised(0.2), day(21))


# Company ------------------------------------------------------------------------------------------------------------


def best(mechanism, attacker=ATTACKER):
    return certified(mechanism, attacker, "presence").epsilon(1e-6)


def test_company_makes_an_earlier_release_dearer_and_that_is_held_to_the_budget():
    wide = noised(2.0)
    assert best(wide) < 1.5
    book = opened(Budget(1.9, 1e-6, part="partial_knowledge"))
    book.add(wide, day(1))
    message = refusal(book, noised(0.01), day(1))
    assert f"prior: epsilon = {charging.rounded_up(best(wide))}, requested: 0.01" in message


def test_the_company_of_another_unit_is_held_to_the_budget_too():
    book = opened(Budget(1.9, 1e-6, part="partial_knowledge"), evidence=(IndependentGivenHabits(),))
    book.add(noised(2.0), day(1))
    assert "unit 'tailnum'" in refusal(book, noised(0.01), day(1), unit=("owner",))
    book.add(noised(0.01), day(2), unit=("owner",))


def test_without_evidence_the_first_release_of_another_unit_counts_wherever_it_is():
    book = opened(Budget(1.9, 1e-6, part="partial_knowledge"))
    book.add(noised(2.0), day(1))
    assert "unit 'tailnum'" in refusal(book, noised(0.01), day(2), unit=("owner",))


def test_a_window_that_only_the_earlier_release_meets_is_looked_at():
    # The week stood alone; a release on its last day turns it into worst case in windows that miss that day.
    book = opened(Budget(1.9, 1e-6, part="partial_knowledge", window_days=2), evidence=(IndependentGivenHabits(),))
    book.add(noised(1.8), "2013-01-01/2013-01-07")
    book.add(noised(0.15), day(9), unit=("owner",))
    assert book.total("tailnum").epsilon(1e-6) < 1.8
    book.add(noised(0.01), day(7), unit=("owner",))
    assert book.total("tailnum").epsilon(1e-6) == pytest.approx(1.8)
    book = opened(Budget(1.7, 1e-6, part="partial_knowledge", window_days=2))
    book.add(noised(1.8), "2013-01-01/2013-01-07")
    assert "'tailnum'" in refusal(book, noised(0.01), day(7), unit=("owner",))


def test_units_are_held_to_the_budget_one_by_one():
    book = opened(Budget(0.5, 0))
    for unit in (("tailnum",), ("owner",), ()):
        book.add(noised(0.5), day(1), unit=unit)
        assert "prior: epsilon = 0.5" in refusal(book, noised(0.1), day(2), unit=unit)


def test_every_budget_is_asked():
    book = opened(Budget(1.0, 0), Budget(0.2, 0, window_days=3), Budget(5.0, 1e-6, part="partial_knowledge"))
    for number in (1, 5, 9, 13):
        book.add(noised(0.2), day(number))
    assert "3 days" in refusal(book, noised(0.05), day(3))
    book.add(noised(0.2), day(17))
    assert "3 days" not in refusal(book, noised(0.2), day(25))


# Never exceeded -------------------------------------------------------------------------------------------------------

EPSILONS = st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.5])  # whose scales are exact: what is drawn is the decimal
UNITS = st.sampled_from([("tailnum",), ("tailnum",), ("owner",)])


@st.composite
def periods(draw):
    if draw(st.integers(0, 7)) == 0:
        return draw(st.sampled_from(["wave 1", "wave 2"]))
    first = draw(st.integers(1, 20))
    last = first + draw(st.sampled_from([0, 0, 0, 1, 4]))
    return day(first) if first == last else f"{day(first)}/{day(last)}"


def meets(facts, start, days):
    period = Period.parse(facts.period)
    first = date(2013, 1, 1).toordinal() + start
    return period.days() is None or (period.days()[0] < first + days and period.days()[1] >= first)


def all_windows(standings, days):
    """Every window that can hold anything, as sets of releases; and the whole history."""
    if days is None:
        return [list(standings)]
    starts = range(-days - 1, 32)
    return [[number for number, facts in standings.items() if meets(facts, start, days)] for start in starts]


@given(
    st.lists(
        st.tuples(st.just("add"), EPSILONS, periods(), UNITS) | st.tuples(st.just("remove"), st.integers(0, 9)),
        max_size=16,
    ),
    st.lists(st.tuples(st.sampled_from([0.3, 0.5, 1.0]), st.sampled_from([None, 1, 2, 3, 7])), min_size=1, max_size=2),
)
@settings(max_examples=few(60, 6))
def test_noise_is_refused_exactly_when_some_window_would_hold_too_much(steps, limits):
    book = opened(*(Budget(epsilon, 0, window_days=days) for epsilon, days in limits))
    for kind, *rest in steps:
        if kind == "remove":
            if book.kept:
                book.remove(sorted(book.kept)[rest[0] % len(book.kept)])
            continue
        epsilon, period, unit = rest
        new = standing(noised(epsilon), period, unit=unit)
        there = {number: kept.standing for number, kept in book.kept.items() if kept.standing.unit == unit} | {0: new}
        exceeded = any(
            sum(Fraction(repr(there[number].mechanism.noise.epsilon)) for number in all_window)
            > Fraction(repr(allowed))
            for allowed, days in limits
            for all_window in all_windows(there, days)
        )
        if exceeded:
            refusal(book, noised(epsilon), period, unit=unit)
        else:
            book.add(noised(epsilon), period, unit=unit)
    book.verify()


def connected(standings):
    groups = []
    for number, facts in standings.items():
        overlapping = [
            group
            for group in groups
            if any(Period.parse(facts.period).overlaps(Period.parse(standings[other].period)) for other in group)
        ]
        groups = [group for group in groups if group not in overlapping]
        groups.append({number}.union(*overlapping))
    return groups


def measured(standings, in_window, unit, evidence):
    """What a window's releases for one unit add up to, group by group, from nothing but the rules."""
    parts = []
    for group in connected(standings):
        mine = sorted(number for number in group & set(in_window) if standings[number].unit == unit)
        attacker = ATTACKER if len(group) == 1 else AttackerModel()
        certificates = [certified(standings[number].mechanism, attacker, "presence") for number in mine]
        if len(certificates) == 1:
            parts += certificates
        elif certificates:
            parts.append(compose(certificates))
    return compose(parts, evidence)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.2, 1.0, 2.0, "k"]), periods(), UNITS),
        max_size=9,
    ),
    st.sampled_from([None, 1, 3, 7]),
    st.sampled_from([0.35, 1.0, 1.6, 2.1]),
    st.sampled_from(["partial_knowledge", "worst_case", None]),
)
@settings(max_examples=few(40, 4))
def test_no_window_of_any_unit_ever_holds_more_than_is_allowed(requests, days, allowed, part):
    budget = Budget(allowed, 1e-6, part=part, window_days=days)
    book = opened(budget, evidence=(OneDayProtected(),))
    for epsilon, period, unit in requests:
        mechanism = TABLE if epsilon == "k" else noised(epsilon)
        new = standing(mechanism, period, unit=unit)
        there = {number: kept.standing for number, kept in book.kept.items()} | {0: new}
        if TABLE in [present.mechanism for present in there.values()] and any(
            len(group) > 1 and TABLE in [there[number].mechanism for number in group] for group in connected(there)
        ):
            continue  # refused for differencing
        exceeded = False
        for in_window, charged_unit in itertools.product(
            all_windows(there, days), {present.unit for present in there.values()}
        ):
            total = measured(there, in_window, charged_unit, OneDayProtected())
            for measure in budget.measures:
                guarantee = total if measure == "partial_knowledge" else total.worst_case
                exceeded |= bool(total.parts) and not guarantee.delta(allowed) <= 1e-6
        if exceeded:
            refusal(book, mechanism, period, unit=unit)
        else:
            book.add(mechanism, period, unit=unit)


def test_bounded_dependence_is_held_to_the_budget():
    book = opened(Budget(2.0, 1e-5, part="partial_knowledge"), evidence=(BoundedDependence(0.1),))
    alone = best(TABLE)
    charged = 0
    while charged < 10:
        try:
            book.add(TABLE, day(1), where=f"a == {charged}")
        except BudgetExceededError:
            break
        charged += 1
    assert charged >= 1
    assert book.total().delta(2.0) <= 1e-5
    more = compose([(certified(TABLE, ATTACKER, "presence"), charged + 1)], BoundedDependence(0.1))
    assert more.delta(2.0) > 1e-5
    assert alone < 2.0


# Work -----------------------------------------------------------------------------------------------------------------


@thinned(2)
@pytest.mark.parametrize("order", [list(range(26)), list(range(26))[::-1], sorted(range(26), key=lambda n: n % 7)])
def test_windows_that_add_up_from_the_same_are_added_up_once(order, monkeypatch):
    counted, nothing = [], compose([certified(noised(1e-9), AttackerModel(), "presence")])
    monkeypatch.setattr(totals, "add_up", lambda *_, **__: counted.append(1) or nothing)
    monkeypatch.setattr(totals, "_known_totals", OrderedDict())
    book = opened(Budget(1.0, 1e-6, part="partial_knowledge", window_days=12), evidence=(OneDayProtected(),))
    for number in order:
        counted.clear()
        book.add(TABLE, date.fromordinal(date(2013, 1, 1).toordinal() + number).isoformat())
        assert len(counted) <= 2
    counted.clear()
    # One more of equal days, each window full: that was added up before.
    book.add(TABLE, "2013-01-27")
    assert not counted


@pytest.mark.postgres
def test_postgresql_keeps_the_same_state_and_refuses_the_same(postgres_url):
    terms = Terms(budgets=(Budget(1.0, 0), Budget(0.6, 0, window_days=3)))
    database = open_database(postgres_url)
    books = [Book(terms), Book(terms, database=database)]
    requests = [
        (0.2, day(1)),
        (0.2, f"{day(3)}/{day(5)}"),
        (0.1, day(3)),
        (0.3, day(4)),
        (0.1, "wave 1"),
        (0.2, day(28)),
    ]
    outcomes = []
    for book in books:
        heard = []
        for epsilon, period in requests:
            try:
                book.add(noised(epsilon), period)
            except BudgetExceededError as error:
                heard.append(str(error))
        book.remove(sorted(book.kept)[1])
        book.recertify(sorted(book.kept)[0], AttackerModel(p_max=0.3, p_min=0.3, unknown=100))
        book.add(noised(0.1), f"{day(2)}/{day(4)}", unit=("owner",))
        book.verify()
        outcomes.append((heard, book.state(), book.total("tailnum").sentence()))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0]
    database.execute("UPDATE entry SET kind = 'noised'")
    with pytest.raises(LedgerError, match="altered"):
        books[1].verify()
    with pytest.raises(DifferencingError, match="label without dates"):
        books[1].add(TABLE, "wave 2")
    database.close()
