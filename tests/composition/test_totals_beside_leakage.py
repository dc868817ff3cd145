"""Several releases beside what leaks: what adds up, what does not, and the examples that show why."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from oracle.laws import losses

from pkdp_pipeline import (
    AttackerModel,
    BoundedDependence,
    BoundedParticipation,
    BoundedSensitivity,
    Certificate,
    Count,
    DisjointUnits,
    GeometricNoise,
    Histogram,
    IndependentGivenHabits,
    Leakage,
    NoEvidenceError,
    OncePerUnit,
    OneDayProtected,
    SamePeople,
    certify,
    compose,
)
from pkdp_pipeline.certificates.composed import part_of
from pkdp_pipeline.composition.part import hides_presence, what_is_hidden
from pkdp_pipeline.composition.schedule import convolved

TOTAL = Leakage.total()
PRIVATE = Leakage("a noised turnout", epsilon=0.05)
NOISE = GeometricNoise(0.1)


def certified(mechanism, leakage=(), protects="presence", **fields):
    return certify(mechanism, AttackerModel(leakage=leakage, **fields), protects=protects)


NOISED = certified(Histogram(noise=NOISE), TOTAL, "value")
CELLS = certified(Histogram(k=100), TOTAL, "value", p_max_between=0.6)
EXACT_TOTAL = certified(Count(), TOTAL, "value")


def both_ways(total: Certificate) -> Certificate:
    """Return a total that comes back from JSON and verifies."""
    back = Certificate.from_json(total.to_json())
    assert back == total
    assert back.verify()
    return total


# Presence is not hidden given what tells it ---------------------------------------------------------------------------


def test_a_value_guarantee_given_a_total_hides_no_presence():
    part = part_of(NOISED, 1, "presence")
    assert part.worst is None
    assert part.bounds == ()
    plain = certified(Histogram(noise=NOISE), (), "value")
    assert part_of(plain, 1, "presence").worst is not None
    with pytest.raises(NoEvidenceError, match="protect different things"):
        compose([NOISED, certified(Count(noise=NOISE))])
    private = certified(Histogram(noise=NOISE), PRIVATE, "value")
    assert both_ways(compose([private, certified(Count(noise=NOISE))])).protects == "presence"
    nested = compose([NOISED, NOISED])
    assert part_of(nested, 1, "presence").worst is None


def test_what_is_hidden_does_not_claim_presence_beside_a_total():
    beside = (part_of(NOISED, 2, "value"),)
    plain = (part_of(certified(Histogram(noise=NOISE), (), "value"), 2, "value"),)
    assert hides_presence(plain)
    assert not hides_presence(beside)
    assert "not protect whether she is included" in what_is_hidden(beside, "each")
    assert "does not protect in which releases she is included" in compose([(NOISED, 2)]).sentence()
    shared = Leakage("x", shared_by=("presence", "value"))
    assert hides_presence((part_of(certified(Histogram(noise=NOISE), shared, "value"), 2, "value"),))


# The exact total among the releases -----------------------------------------------------------------------------------


def test_an_exact_total_adds_nothing_to_what_is_certified_beside_it():
    total = both_ways(compose([CELLS, EXACT_TOTAL]))
    assert total.delta(0.7) == CELLS.delta(0.7)
    assert total.releases == 2
    assert total.worst_case_bound is None
    assert "Beside this the attacker may know the number of people present" in total.sentence()
    noised = both_ways(compose([(NOISED, 3), EXACT_TOTAL]))
    assert noised.worst_case.parameters == compose([(NOISED, 3)]).worst_case.parameters
    assert "against anyone at all, given the number of people present" in noised.sentence()
    year = compose([(CELLS, 30), (EXACT_TOTAL, 30)], IndependentGivenHabits())
    assert year.delta(3.0) == compose([(CELLS, 30)], IndependentGivenHabits()).delta(3.0)
    alone = both_ways(compose([(EXACT_TOTAL, 12)]))
    assert alone.worst_case.parameters == (0.0, 0.0)
    assert "they do not protect whether she is included" in alone.sentence()
    assert both_ways(compose([EXACT_TOTAL])).sentence() == EXACT_TOTAL.sentence()


def test_an_exact_total_stands_beside_nothing_that_was_certified_without_it():
    without = certified(Histogram(k=100), (), "value", p_max=0.1)
    noised = certified(Histogram(noise=NOISE), (), "value")
    other = certified(Histogram(noise=NOISE), Leakage("a noised total", tells="people_present", epsilon=1.0), "value")
    for part in (without, noised, other, compose([noised, NOISED])):
        with pytest.raises(NoEvidenceError, match="certified without it: certify all of them"):
            compose([part, EXACT_TOTAL], IndependentGivenHabits())
    # Lives that differ in presence are told apart by it.
    with pytest.raises(NoEvidenceError):
        compose([certified(Count(noise=NOISE)), EXACT_TOTAL])


# Once per person ------------------------------------------------------------------------------------------------------


def test_moving_between_periods_changes_both_totals():
    # Everybody is in one of two periods, in cell 0 or 1 of it, all four equally likely: p_max_between = 1/2. No cell
    # reaches k, and the totals are exact counts of a few coins.
    places = [(period, cell) for period in (0, 1) for cell in (0, 1)]
    people, k = 4, 9
    laws = [{}, {}]
    for life, law in enumerate(laws):
        target = (life, 0)
        for records in product(places, repeat=people):
            counts = dict.fromkeys(places, 0)
            for place in (*records, target):
                counts[place] += 1
            shown = tuple(count if count >= k else 0 for count in counts.values())
            totals = tuple(sum(counts[period, cell] for cell in (0, 1)) for period in (0, 1))
            law[shown, totals] = law.get((shown, totals), 0) + Fraction(1, 4**people)
    growth = Fraction(math.exp(0.5))
    beside_total = certified(Histogram(k=k), TOTAL, "value", p_max_between=0.5)
    assert max(losses(*laws, growth)) > Fraction(beside_total.delta(0.5))
    bare = certified(Histogram(k=k), (), "value", p_max_between=0.5)
    assert compose([(bare, 2)], OncePerUnit()).delta(0.5) == bare.delta(0.5)
    for part in (beside_total, NOISED, certified(Histogram(noise=NOISE), PRIVATE, "value")):
        with pytest.raises(NoEvidenceError, match="tells in which release a person is"):
            compose([(part, 2)], OncePerUnit())
    presence = certified(Histogram(noise=NOISE), PRIVATE)
    assert compose([(presence, 2)], OncePerUnit()).worst_case.parameters == presence.worst_case.parameters


# Leakages that do not add up ------------------------------------------------------------------------------------------


def test_a_leakage_on_two_noises_can_tell_what_it_does_not_on_each():
    # Each release is a fair coin added to the target's bit; the sum of both coins leaks. It is independent of either.
    laws = [{}, {}]
    for life, law in enumerate(laws):
        for first, second in product((0, 1), repeat=2):
            outcome = (first ^ life, second, first ^ second)
            law[outcome] = law.get(outcome, 0) + Fraction(1, 4)
    assert max(losses(*laws, Fraction(1))) == 1
    dependent = Leakage("a checksum", shared_by=("presence", "value"), dependence_epsilon=0.1)
    part = certified(Count(noise=NOISE), dependent)
    assert both_ways(compose([part])).worst_case.parameters == part.worst_case.parameters
    for evidence in (None, DisjointUnits(), OneDayProtected(), SamePeople()):
        with pytest.raises(NoEvidenceError, match="may depend on the releases' noise"):
            compose([(part, 2)], evidence)
        with pytest.raises(NoEvidenceError, match="may depend on the releases' noise"):
            compose([part, certified(Count(noise=NOISE))], evidence)


def test_leakages_of_different_parts_are_declared_as_one():
    parts = [certified(Histogram(noise=NOISE), Leakage(name, shared_by=("value",)), "value") for name in ("x", "y")]
    with pytest.raises(NoEvidenceError, match="declare them as one leakage"):
        compose(parts)
    assert compose([(parts[0], 2), NOISED]).leakage == (*parts[0].leakage, TOTAL)
    twice = [certified(Count(noise=NOISE), Leakage("x", epsilon=epsilon)) for epsilon in (0.1, 0.2)]
    with pytest.raises(NoEvidenceError, match="the same name"):
        compose(twice)


def test_changes_of_counts_do_not_bound_what_leaks_beside_them():
    part = certified(Count(noise=NOISE), PRIVATE)
    with pytest.raises(NoEvidenceError, match="may change with every record"):
        compose([(part, 2)], BoundedSensitivity(1))


# What adds up ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 3])
def test_no_noise_beside_private_leakages_exceeds_its_total(times):
    noise, private = 0.5, 0.3
    part = certified(Count(noise=GeometricNoise(noise)), Leakage("an answer", epsilon=private))
    total = compose([(part, times)])
    alpha, share = math.exp(-noise), 1 / (1 + math.exp(-private))
    # Losses of one noisy count: ±ε0; of a randomised answer: ±ε2. All of them are added up.
    law = {0: 1.0}
    for loss, right in ((noise, 1 / (1 + alpha)), (private, share)):
        for _ in range(times):
            grown = {}
            for so_far, weight in law.items():
                for sign, chance in ((1, right), (-1, 1 - right)):
                    after = round(so_far + sign * loss, 9)
                    grown[after] = grown.get(after, 0.0) + weight * chance
            law = grown
    for epsilon in (0.0, 0.4, 1.0, 2.0):
        truth = sum(weight * max(0.0, 1 - math.exp(epsilon - loss)) for loss, weight in law.items())
        assert truth * (1 - 1e-9) <= total.delta(epsilon) <= truth * 1.02 + 1e-3
    assert total.worst_case.parameters == pytest.approx((times * (noise + private), 0.0))


def test_an_exact_count_beside_noise_counts_with_all_that_leaks():
    box = {"p_min": 0.2, "p_max": 0.6, "unknown": 80}
    bare, beside = certified(Count(), **box), certified(Count(), PRIVATE, **box)
    noised, leaking = certified(Count(noise=NOISE)), certified(Count(noise=NOISE), PRIVATE)
    without = compose([bare, noised], SamePeople())
    for parts in ([beside, noised], [bare, leaking], [beside, leaking]):
        total = both_ways(compose(parts, SamePeople()))
        assert total.rule == "same_people"
        assert total.delta(1.0) > without.delta(1.0)
        assert total.delta(1.0) <= bare.delta(1.0 - 2 * (0.1 + 0.05) - 1e-9) * 1.01
    for leak in (Leakage("x", epsilon=0.1, delta=1e-9), Leakage("y", shared_by=("presence",))):
        with pytest.raises(NoEvidenceError):
            compose([bare, certified(Count(noise=NOISE), leak)], SamePeople())


def test_rules_say_what_they_assume_of_leakages():
    named = "A leakage beside one release tells nothing about the records of releases that do not name it."
    counted = "A leakage beside a release counts as part of it where releases depend on earlier ones."
    apart = certified(Histogram(k=100), (), "value", p_max_between=0.6)
    assert named in compose([CELLS, apart], IndependentGivenHabits()).assumptions
    assert named not in compose([(CELLS, 2)], IndependentGivenHabits()).assumptions
    assert counted in compose([(CELLS, 2)], BoundedDependence(0.1)).assumptions
    assert counted not in compose([(apart, 2)], BoundedDependence(0.1)).assumptions
    private = certified(Count(noise=NOISE), PRIVATE)
    for evidence, words in (
        (None, "is so for everything that a person did in the releases, or follows from the records of one release"),
        (IndependentGivenHabits(), "(a noised turnout) follows from the records of one release alone"),
        (SamePeople(), "is one and the same beside all of the releases"),
    ):
        assert any(words in text for text in compose([(private, 2)], evidence).assumptions)
    assert not any("private by itself" in text for text in compose([private]).assumptions)
    for evidence in (None, OneDayProtected(), DisjointUnits(), BoundedParticipation(1)):
        total = both_ways(compose([(NOISED, 3)], evidence))
        assert "given the number of people present" in total.sentence()
        assert sum("may be known exactly" in text for text in total.limits) == 1


def test_theorem_c_beside_totals_convolves_as_it_does_alone():
    bare = certified(Histogram(k=100), (), "value", p_max_between=0.6)
    pairs = [
        convolved("independent_given_habits", (part_of(certificate, 5, "value"),), None)
        for certificate in (bare, CELLS)
    ]
    points = np.array([0.0, 0.5, 2.0])
    np.testing.assert_array_equal(*(pair[0].bound.bracket(points)[1] for pair in pairs))
