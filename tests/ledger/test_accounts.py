"""What the ledger's accounts hold: components, bundles, totals; whatever the order of events."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from accounts_book import ATTACKER, Book, standing
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import ALL, few, thinned

from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError, DifferencingError, LedgerError, NoEvidenceError
from pkdp_pipeline.ledger import Period, check_differencing
from pkdp_pipeline.ledger.admission import Admission
from pkdp_pipeline.ledger.admission import admit as admit_to
from pkdp_pipeline.ledger.chain import GENESIS, Budget, Terms
from pkdp_pipeline.ledger.records import Records
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    DisjointUnits,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
    SamePeople,
)
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram

NOISE = GeometricNoise(0.5)
TABLE, COUNT = Histogram(k=50), Count()
NOISED, NOISED_COUNT = Histogram(noise=NOISE), Count(noise=NOISE)
THRESHOLDED = Count(k=20, noise=NOISE, release_threshold=60)


def same(total, expected):
    """Totals are the same statement: parts, evidence and numbers."""
    assert total.protects == expected.protects
    assert set(total.parts) == set(expected.parts)
    assert total.evidence == expected.evidence
    assert total.rule == expected.rule
    for epsilon in (0.05, 1.0):
        assert total.delta(epsilon) == expected.delta(epsilon)
        assert total.worst_case.delta(epsilon) == expected.worst_case.delta(epsilon)


# Totals -----------------------------------------------------------------------------------------------------


def test_the_total_of_nothing_is_nothing():
    same(Book().total(), compose([]))
    same(Book().total("tailnum"), compose([]))


@pytest.mark.parametrize("mechanism", [TABLE, NOISED_COUNT, COUNT])
def test_a_single_release_counts_with_its_whole_certificate(mechanism):
    book = Book()
    book.add(mechanism, "2013-01-01")
    same(book.total(), compose([certify(mechanism, ATTACKER)]))
    assert book.total().has_partial_knowledge


def test_noised_releases_about_one_period_add_up_in_the_worst_case():
    book = Book()
    for mechanism in (NOISED, NOISED_COUNT, NOISED_COUNT, THRESHOLDED):
        book.add(mechanism, "2013-01-01")
    parts = [
        (certify(mechanism, AttackerModel()), n) for mechanism, n in ((NOISED, 1), (NOISED_COUNT, 2), (THRESHOLDED, 1))
    ]
    same(book.total(), compose(parts))
    assert not book.total().has_partial_knowledge


def test_noised_releases_of_different_days_without_evidence_add_up_in_the_worst_case():
    book = Book()
    for day in (1, 2, 3):
        book.add(NOISED_COUNT, f"2013-01-0{day}")
    same(book.total(), compose([(certify(NOISED_COUNT, ATTACKER), 3)]))
    assert not book.total().has_partial_knowledge
    assert book.total().worst_case.parameters[0] == pytest.approx(1.5)


@pytest.mark.parametrize(
    "evidence", [OneDayProtected(), DisjointUnits(), pytest.param(IndependentGivenHabits(), marks=pytest.mark.slow)]
)
def test_days_add_up_by_the_evidence_declared(evidence):
    book = Book(Terms(evidence=(evidence,)))
    for day in (1, 2):
        book.add(Histogram(k=20), f"2013-01-0{day}")
    book.add(Histogram(k=30), "2013-01-04")
    parts = [(certify(Histogram(k=20), ATTACKER), 2), certify(Histogram(k=30), ATTACKER)]
    same(book.total(), compose(parts, evidence))
    with pytest.raises(NoEvidenceError):
        book.total(evidence=())


def test_under_habits_company_counts_flat_and_in_the_worst_case():
    book = Book(Terms(evidence=(IndependentGivenHabits(),)))
    book.add(NOISED_COUNT, "2013-01-01")
    book.add(NOISED_COUNT, "2013-01-02")
    book.add(NOISED, "2013-01-02")
    worst = [certify(NOISED_COUNT, AttackerModel()), certify(NOISED, AttackerModel())]
    same(book.total(), compose([certify(NOISED_COUNT, ATTACKER), *worst], IndependentGivenHabits()))


def test_under_one_day_protected_a_component_counts_as_a_whole():
    book = Book(Terms(evidence=(OneDayProtected(),)))
    book.add(NOISED_COUNT, "2013-01-01")
    for day in (2, 3):
        book.add(NOISED_COUNT, f"2013-01-0{day}")
        book.add(NOISED, f"2013-01-0{day}")
    together = compose([certify(NOISED_COUNT, AttackerModel()), certify(NOISED, AttackerModel())])
    same(book.total(), compose([certify(NOISED_COUNT, ATTACKER), (together, 2)], OneDayProtected()))
    assert book.total().worst_case.parameters[0] == pytest.approx(1.0)


def test_bounded_dependence_counts_every_release_with_its_own_certificate():
    evidence = BoundedDependence(0.1, 1e-9)
    book = Book(Terms(evidence=(evidence,)))
    book.add(TABLE, "2013-01-01")
    book.add(TABLE, "2013-01-01/2013-01-07", where="delay > 5")
    book.add(Histogram(k=60), "2013-01-02")
    same(book.total(), compose([(certify(TABLE, ATTACKER), 2), certify(Histogram(k=60), ATTACKER)], evidence))
    for other in ((), (OneDayProtected(),), (IndependentGivenHabits(),)):
        with pytest.raises(NoEvidenceError, match="BoundedDependence"):
            book.total(evidence=other)


@thinned(2)
@pytest.mark.parametrize("order", list(itertools.permutations([COUNT, NOISED, NOISED_COUNT])))
def test_one_exact_count_beside_pure_noise_counts_by_the_exception(order):
    book = Book()
    for mechanism in order:
        book.add(mechanism, "2013-01-01")
    worst = [certify(NOISED, AttackerModel()), certify(NOISED_COUNT, AttackerModel())]
    same(book.total(), compose([certify(COUNT, ATTACKER), *worst], SamePeople()))
    assert book.total().rule == "same_people"


def test_the_exception_on_one_day_adds_up_with_other_days():
    evidence = IndependentGivenHabits()
    book = Book(Terms(evidence=(evidence,)))
    book.add(COUNT, "2013-01-01")
    book.add(NOISED_COUNT, "2013-01-01")
    book.add(TABLE, "2013-01-02")
    beside = compose([certify(COUNT, ATTACKER), certify(NOISED_COUNT, AttackerModel())], SamePeople())
    same(book.total(), compose([beside, certify(TABLE, ATTACKER)], evidence))


def test_once_per_unit_costs_one_release():
    book = Book(Terms(evidence=(OncePerUnit(),)))
    for day in (1, 2, 3):
        book.add(TABLE, f"2013-01-0{day}")
    assert book.total().delta(1.0) == certify(TABLE, ATTACKER).delta(1.0)


def test_a_release_that_no_total_could_hold_is_refused():
    book = Book(Terms(evidence=(OncePerUnit(),)))
    before = book.state()
    with pytest.raises(NoEvidenceError, match="OncePerUnit adds up histograms"):
        book.add(COUNT, "2013-01-01")
    assert book.state() == before


def test_noised_releases_of_one_period_count_together_where_everybody_is_in_one_period():
    book = Book(Terms(evidence=(OncePerUnit(),)))
    for day in (1, 2, 3):
        book.add(NOISED, f"2013-01-0{day}")
        book.add(NOISED_COUNT, f"2013-01-0{day}")
    assert book.total().worst_case.parameters == (1.0, 0.0)


def test_a_single_noiseless_release_is_what_it_is_where_few_periods_matter():
    book = Book(Terms(evidence=(BoundedParticipation(2),)))
    book.add(TABLE, "2013-01-01")
    assert book.total().delta(1.0) == certify(TABLE, ATTACKER).delta(1.0)


def test_releases_of_one_period_count_as_one_participation_at_their_joint_cost():
    book = Book(Terms(evidence=(BoundedParticipation(1),)))
    for day in range(1, 10):
        book.add(NOISED_COUNT, f"2013-01-0{day}")
        book.add(NOISED, f"2013-01-0{day}")
    assert book.total().worst_case.parameters == (2.0, 0.0)
    # A week that overlaps some days is one period with them; of others no more than a day's cost is known.
    book = Book(Terms(evidence=(BoundedParticipation(1),)))
    for day in range(1, 10):
        book.add(NOISED_COUNT, f"2013-01-0{day}")
    assert book.total().worst_case.parameters == (1.0, 0.0)
    book.add(NOISED, "2013-01-01/2013-01-02")
    assert book.total().worst_case.parameters == (2.0, 0.0)
    book.verify()


def test_a_ledger_does_not_offer_what_it_refuses():
    book = Book(Terms(evidence=(IndependentGivenHabits(),)))
    book.add(COUNT, "2013-01-01")
    book.add(NOISED_COUNT, "2013-01-02")
    with pytest.raises(NoEvidenceError) as refused:
        book.total(evidence=())
    assert "IndependentGivenHabits" in str(refused.value)
    assert "SamePeople" not in str(refused.value)


def test_a_given_back_release_vanishes_and_its_neighbour_stands_alone_again():
    book = Book()
    book.add(NOISED_COUNT, "2013-01-01")
    second = book.add(NOISED, "2013-01-01")
    book.remove(second)
    same(book.total(), compose([certify(NOISED_COUNT, ATTACKER)]))


def test_a_release_certified_again_counts_with_its_newest_certificate():
    book = Book()
    entry = book.add(TABLE, "2013-01-01")
    stronger = AttackerModel(p_max=0.2)
    book.recertify(entry, stronger)
    same(book.total(), compose([certify(TABLE, stronger)]))
    book.verify()


def test_of_a_kind_that_is_there_a_release_certified_again_asks_nothing_of_the_others():
    book = Book(Terms(evidence=(OneDayProtected(),)))
    first, second = (book.add(Histogram(k=50), day) for day in ("2013-01-01", "2013-01-02"))
    stronger = AttackerModel(p_max=0.2, p_min=0.2, unknown=2000)
    book.recertify(first, stronger)
    assert None in book.records.accounts
    book.records = Records(book.database, book.dataset)
    book.recertify(second, stronger)
    assert None not in book.records.accounts


def test_several_units_are_never_added_up():
    book = Book()
    book.add(NOISED_COUNT, "2013-01-01")
    book.add(NOISED_COUNT, "2013-01-02", unit=("owner", "airline"))
    book.add(NOISED_COUNT, "2013-01-03", unit=())
    with pytest.raises(NoEvidenceError, match=r"'airline', 'owner'; 'tailnum'; each row|each row.*'tailnum'") as caught:
        book.total()
    assert "total(unit=" in str(caught.value)
    from pkdp_pipeline.model.columns import EACH_ROW

    for unit in ("tailnum", ["tailnum"], ("airline", "owner"), ("owner", "airline"), (), EACH_ROW):
        total = book.total(unit)
        same(total, compose([certify(NOISED_COUNT, AttackerModel())]))
        assert any("other privacy units" in caveat for caveat in total.caveats)
    with pytest.raises(ArgumentError, match="tailnum"):
        book.total("pilot")
    with pytest.raises(ArgumentError, match="unit"):
        book.total(3)


def test_without_evidence_other_units_take_what_is_not_known_away():
    book = Book()
    book.add(NOISED_COUNT, "2013-01-01")
    assert book.total("tailnum").has_partial_knowledge
    assert book.total().caveats == ("A person is one value of 'tailnum'.",)
    book.add(NOISED_COUNT, "2013-01-02", unit=())
    assert not book.total("tailnum").has_partial_knowledge
    assert book.total("tailnum", evidence=(IndependentGivenHabits(),)).has_partial_knowledge


def test_a_neighbour_of_another_unit_is_company():
    book = Book(Terms(evidence=(IndependentGivenHabits(),)))
    book.add(NOISED_COUNT, "2013-01-01")
    book.add(NOISED_COUNT, "2013-01-01", unit=("owner",))
    assert not book.total("tailnum").has_partial_knowledge


def test_data_sets_do_not_see_each_other():
    book = Book()
    book.add(TABLE, "2013-01-01")
    other = Book(database=book.database, dataset="ships")
    other.add(Histogram(k=60), "2013-01-01")
    same(book.total(), compose([certify(TABLE, ATTACKER)]))
    same(other.total(), compose([certify(Histogram(k=60), ATTACKER)]))
    book.verify()
    other.verify()


def test_equal_releases_make_one_bundle():
    book = Book(Terms(evidence=(OneDayProtected(),)))
    for day in range(1, 10):
        book.add(TABLE, f"2013-01-0{day}")
    assert len(book.bundles()['["tailnum"]']) == 1


def test_only_the_certificate_of_the_release_can_be_charged():
    ledger, new_standing = Book().ledger, standing(TABLE, "2013-01-01")
    for wrong in (certify(Histogram(k=51), ATTACKER), certify(TABLE, ATTACKER, protects="value"), compose([])):
        with pytest.raises(LedgerError):
            ledger.reserve("key", new_standing, lambda admission, head, wrong=wrong: wrong)
    assert ledger.head() == GENESIS


# What may stand together ------------------------------------------------------------------------------------


def test_admit_says_what_stands_beside_and_whether_more_than_the_worst_case_may_be_claimed():
    book = Book(Terms(evidence=(IndependentGivenHabits(),)))

    def admit(mechanism, period, terms=book.terms):
        return admit_to(book.records, standing(mechanism, period, where="a"), terms)

    everything, nothing = Admission(alone=True, claims=True), Admission(alone=False, claims=False)
    excepted = Admission(alone=False, claims=True)
    assert admit(NOISED, "2013-01-01") == everything
    book.add(NOISED_COUNT, "2013-01-01")
    assert admit(NOISED, "2013-01-02") == everything
    assert admit(NOISED, "2013-01-01") == nothing
    assert admit(NOISED, "wave 1") == nothing
    assert admit(COUNT, "2013-01-01") == excepted
    bounded = Terms(evidence=(BoundedDependence(0.1),))
    assert admit(TABLE, "2013-01-01", bounded) == replace(excepted, covered=True)
    assert admit(TABLE, "2013-01-02", bounded) == replace(everything, covered=True)
    with pytest.raises(DifferencingError):
        admit(TABLE, "2013-01-01")


MECHANISMS = st.sampled_from([COUNT, TABLE, NOISED, NOISED_COUNT, THRESHOLDED])
NOISY = st.sampled_from([NOISED, NOISED_COUNT, THRESHOLDED])
LABELS = st.sampled_from(["wave 1", "Wave  1", "wave 2"])


@st.composite
def dated(draw):
    first = draw(st.integers(1, 14))
    last = min(28, first + draw(st.sampled_from([0, 0, 0, 1, 6])))
    return f"2013-01-{first:02d}" if first == last else f"2013-01-{first:02d}/2013-01-{last:02d}"


PERIODS = st.one_of(dated(), dated(), dated(), LABELS)
UNITS = st.sampled_from([("tailnum",), ("tailnum",), ("owner",)])
EVIDENCE = st.sampled_from([(), (IndependentGivenHabits(),), (OneDayProtected(),), (BoundedDependence(0.1),)])


@given(st.lists(st.tuples(MECHANISMS, PERIODS, UNITS), max_size=12), EVIDENCE)
@settings(max_examples=few(60, 3), deadline=None)
def test_the_database_admits_what_the_rule_admits(requests, evidence):
    book, standing_by = Book(Terms(evidence=evidence)), []
    for mechanism, period, unit in requests:
        new = standing(mechanism, period, unit=unit)
        try:
            check_differencing(new, standing_by, dataset="flights", evidence=evidence)
        except DifferencingError as error:
            expected = str(error)
        else:
            expected = None
        if expected is None:
            book.add(mechanism, period, unit=unit)
            standing_by.append(new)
        else:
            with pytest.raises(DifferencingError) as caught:
                book.add(mechanism, period, unit=unit)
            assert ("one after the other" in str(caught.value)) is ("one after the other" in expected)
    book.verify()
    for unit in {admitted.unit for admitted in standing_by}:
        book.total(unit)  # what is admitted adds up


# Components and bundles ----------------------------------------------------------------------------------------


def connected(standings):
    """Group by overlap, pair by pair, without any order or interval."""
    groups = []
    for number, facts in standings.items():
        overlapping = [group for group in groups if any(overlaps(facts, standings[other]) for other in group)]
        groups = [group for group in groups if group not in overlapping]
        groups.append({number}.union(*overlapping))
    return sorted(map(sorted, groups))


def overlaps(first, second):
    return Period.parse(first.period).overlaps(Period.parse(second.period))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), MECHANISMS, PERIODS, UNITS),
        st.tuples(st.just("add"), MECHANISMS, PERIODS, UNITS),
        st.tuples(st.sampled_from(["remove", "recertify"]), st.integers(0, 30)),
    ),
    max_size=25 if ALL else 12,
)


@given(STEPS)
@settings(max_examples=few(100, 2), deadline=None)
def test_any_sequence_leaves_the_state_that_a_rebuild_gives(steps):
    book = Book()
    for kind, *rest in steps:
        if kind == "add":
            book.add(rest[0], rest[1], unit=rest[2], check=False)
        elif book.kept:
            entry = sorted(book.kept)[rest[0] % len(book.kept)]
            if kind == "remove":
                book.remove(entry)
            else:
                book.recertify(entry, AttackerModel(p_max=0.3, p_min=0.3, unknown=100 + rest[0] % 3))
        for beside in (None, *map(book.records.row, sorted(book.kept)[-1:])):
            anew = Records(book.database, book.dataset).account(beside)
            assert set(book.records.account(beside).rows) == set(anew.rows)
    book.verify()
    groups = sorted(sorted(entry.id for entry in group) for group in book.components())
    assert groups == connected({number: kept.standing for number, kept in book.kept.items()})


@given(st.lists(st.tuples(NOISY, PERIODS, UNITS), min_size=1, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=few(30, 3), deadline=None)
def test_the_order_of_releases_does_not_change_the_total(requests, random):
    in_order, shuffled = Book(), Book()
    for mechanism, period, unit in requests:
        in_order.add(mechanism, period, unit=unit, check=False)
    for mechanism, period, unit in random.sample(requests, len(requests)):
        shuffled.add(mechanism, period, unit=unit, check=False)
    assert in_order.bundles() == shuffled.bundles()


def test_a_period_that_connects_two_makes_them_one_until_it_is_given_back():
    book = Book()
    book.add(NOISED_COUNT, "2013-01-01")
    book.add(NOISED_COUNT, "2013-01-05")
    before = book.state()
    bridge = book.add(NOISED, "2013-01-01/2013-01-05")
    assert len(book.components()) == 1
    book.remove(bridge)
    assert book.state() == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET part = (SELECT MIN(part) FROM entry)",
        "UPDATE entry SET counts = 1",
        "UPDATE entry SET first_day = first_day + 1, last_day = last_day + 1",
        "UPDATE entry SET kind = 'noised'",
        "UPDATE entry SET unit = '[]'",
        "UPDATE entry SET told = 1",
        "UPDATE entry SET leaks = 1",
        "UPDATE entry SET source = 'other'",
        "UPDATE entry SET time_zone = 'UTC'",
        "DELETE FROM entry WHERE id = 2",
    ],
)
def test_a_changed_running_state_is_found(change):
    book = Book(Terms(evidence=(OneDayProtected(),)))
    for day, mechanism in ((1, TABLE), (2, Histogram(k=70)), (3, TABLE)):
        book.add(mechanism, f"2013-01-0{day}")
    book.verify()
    book.database.execute(change)
    with pytest.raises(LedgerError, match="altered"):
        book.verify()


def test_a_total_is_not_made_from_a_state_that_contradicts_itself():
    book = Book()
    book.add(TABLE, "2013-01-01")
    book.database.execute(f"UPDATE entry SET part = '{'0' * 64}'")
    with pytest.raises(LedgerError, match="altered"):
        book.total()


def test_a_budget_of_another_data_set_is_not_asked():
    book = Book()
    book.add(NOISED_COUNT, "2013-01-01")
    other = Book(Terms(budgets=(Budget(0.5, 0),)), database=book.database, dataset="ships")
    other.add(NOISED_COUNT, "2013-01-01")


BETWEEN = AttackerModel(p_max_between=0.6)


@pytest.mark.parametrize("value_first", [False, True])
def test_a_release_that_takes_the_total_away_is_refused(value_first):
    book = Book(Terms(evidence=(OneDayProtected(),)))
    presence, value = {"attacker": ATTACKER}, {"attacker": BETWEEN, "protects": "value"}
    first, second = (value, presence) if value_first else (presence, value)
    book.add(TABLE, "2013-01-01", **first)
    before = book.total()
    state = book.state()
    with pytest.raises(NoEvidenceError, match="different things"):
        book.add(TABLE, "2013-01-02", **second)
    assert (book.total(), book.state()) == (before, state)
    book.add(TABLE, "2013-01-02", **first)
    book.add(TABLE, "2013-01-03", unit=("owner",), **second)
    book.verify()


def test_where_there_was_no_total_nothing_is_lost():
    book = Book()
    book.add(TABLE, "2013-01-01", check=False)
    book.terms = Terms(evidence=(OneDayProtected(),))
    book.add(TABLE, "2013-01-05", attacker=BETWEEN, protects="value", check=False)
    with pytest.raises(NoEvidenceError):
        book.total()
    book.add(TABLE, "2013-01-03", attacker=AttackerModel(p_max=0.2))


def test_a_total_over_days_counts_every_release_of_a_day():
    book = Book(Terms(evidence=(OneDayProtected(),)))
    for day in ("2013-01-01", "2013-01-02"):
        for mechanism in (NOISED, NOISED_COUNT, NOISED_COUNT):
            book.add(mechanism, day)
    total = book.total()
    assert total.releases == 6
    assert total.sentence().startswith("Any one period of 6 releases: private at")
    book.terms = Terms(evidence=(DisjointUnits(),))
    assert book.total().sentence().startswith("6 releases together: private at")
