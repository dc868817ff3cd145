"""The choices reach their target, are minimal, and their costs move as they should."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few, thinned

from pkdp_pipeline import (
    ArgumentError,
    AttackerModel,
    BoundedParticipation,
    Count,
    GeometricNoise,
    Histogram,
    IndependentGivenHabits,
    certify,
    compose,
    smallest_k,
    smallest_release_threshold,
)
from pkdp_pipeline.extras.plan.planning import Choice, PublicCounts, choices

ATTACKER = AttackerModel(p_max=0.1)
UNSURE = AttackerModel(p_min=0.5, p_max=0.5, unknown=8)
TOWNS = PublicCounts.assumed(cells=50, people=5000, shape="zipf")


def by_way(offered):
    return {choice.way: choice for choice in offered}


@given(
    st.floats(0.01, 0.6),
    st.floats(0.3, 3.0),
    st.floats(1e-10, 1e-2),
    st.sampled_from(["presence", "value"]),
    st.sampled_from([1, 1, 1, 7]),
    st.booleans(),
)
@settings(max_examples=few(16, 2), deadline=None)
def test_every_choice_reaches_the_target(p_max, epsilon, delta, protects, days, declared):
    attacker, evidence = AttackerModel(p_max=p_max), IndependentGivenHabits()
    offered = choices(
        attacker,
        epsilon=epsilon,
        delta=delta,
        protects=protects,
        days=days,
        evidence=evidence,
        counts=TOWNS,
        declared_cells=declared,
    )
    ways = by_way(offered)
    once = {"noise_below_k"} if days == 1 else set()
    assert set(ways) == {"k", "noise_and_k"} | once | ({"noise"} if declared else set())
    for choice in offered:
        certificate = certify(choice.mechanism, attacker, protects=protects)
        whole = certificate if days == 1 else compose([(certificate, days)], evidence)
        assert whole.delta(epsilon) == choice.together.delta(epsilon) <= delta
        assert choice.against_anyone == (choice.way not in ("k", "noise_below_k"))
        assert 0.0 <= choice.outcome.suppressed_people <= choice.outcome.suppressed_cells <= 1.0
        assert choice.outcome.basis == TOWNS.basis
        # Noticeably less noise fails, and what is shown is what is certified.
        if choice.way == "noise_below_k":
            fewer = replace(choice.mechanism, k=choice.mechanism.k - 1)
            assert certify(fewer, attacker, protects=protects).delta(epsilon) > delta
            assert choice.mechanism.k >= ways["k"].mechanism.k
            if protects == "presence" and declared:
                assert choice.mechanism.k <= ways["k"].mechanism.k + 1
                assert choice.mechanism.noise.epsilon == pytest.approx(epsilon, rel=1e-3)
        elif choice.mechanism.noise is not None:
            shown = re.search(r"noise of epsilon ([^, ;]+)", choice.words)[1]
            assert float(shown) == choice.mechanism.noise.epsilon
            less = GeometricNoise(1.001 * choice.mechanism.noise.epsilon)
            again = certify(replace(choice.mechanism, noise=less), AttackerModel(), protects=protects)
            fewer = again if days == 1 else compose([(again, days)], evidence)
            assert fewer.delta(epsilon) > delta
    errors = [
        float(f"{choice.outcome.mean_absolute_error:.3g}")
        for choice in offered
        if choice.outcome.suppressed_people != 1.0
    ]
    assert errors == sorted(errors)


def test_k_is_that_of_smallest_k():
    k = smallest_k(ATTACKER, epsilon=1.0, delta=1e-6)
    assert by_way(choices(ATTACKER, epsilon=1.0, delta=1e-6))["k"].mechanism == Histogram(k=k)


def test_an_easier_target_costs_less():
    costs = [by_way(choices(ATTACKER, epsilon=epsilon, delta=1e-6, counts=TOWNS)) for epsilon in (0.3, 1.0, 2.0)]
    for way in ("k", "noise", "noise_and_k"):
        assert [cost[way].outcome.suppressed_people for cost in costs] == sorted(
            (cost[way].outcome.suppressed_people for cost in costs), reverse=True
        )
    errors = [cost["noise"].outcome.mean_absolute_error for cost in costs]
    assert errors == sorted(errors, reverse=True)


def test_shares_are_not_known_without_counts():
    for choice in choices(ATTACKER, epsilon=1.0, delta=1e-6):
        assert choice.outcome.basis == "Nothing was said about the counts."
        if choice.way in ("noise", "noise_below_k"):
            assert choice.outcome.suppressed_people == 0.0
        else:
            assert choice.outcome.suppressed_cells is None
            assert "not known" in choice.words


def test_the_words_of_each():
    offered = by_way(choices(ATTACKER, epsilon=1.0, delta=1e-6, counts=TOWNS))
    assert offered["k"].words == (
        "exact counts from k = 30 on, 26 % of cells with 6.62 % of people suppressed; "
        "against the declared attacker only."
    )
    assert offered["noise"].words == (
        "counts with noise of epsilon 1, off by 0.851 on average, nothing suppressed; against anyone at all."
    )
    assert offered["noise_below_k"].words == (
        "exact counts from k = 30 on, smaller ones with noise of epsilon 1, off by 0.221 on average, "
        "nothing suppressed; against the declared attacker only."
    )
    assert offered["noise_and_k"].words.startswith(
        "counts with noise of epsilon 1, off by 0.851 on average, published from"
    )


@thinned(2)
@pytest.mark.parametrize("declared", [True, False])
def test_noise_below_k_costs_nothing_for_one_release(declared):
    offered = by_way(choices(ATTACKER, epsilon=1.0, delta=1e-6, counts=TOWNS, declared_cells=declared))
    hidden, noised = offered["k"], offered["noise_below_k"]
    assert noised.mechanism.k == hidden.mechanism.k == 30
    assert noised.mechanism.noise == GeometricNoise(1.0)
    assert noised.mechanism.below == ("noise" if declared else "noise_from_1")
    assert (noised.mechanism.release_threshold is None) == declared
    assert noised.together.delta(1.0) <= 1e-6
    assert noised.outcome.suppressed_people < hidden.outcome.suppressed_people
    assert noised.outcome.mean_absolute_error < offered["noise_and_k"].outcome.mean_absolute_error
    # Several releases, and several cells of one person, are not offered it.
    week = choices(ATTACKER, epsilon=1.0, delta=1e-6, days=7, evidence=IndependentGivenHabits())
    assert "noise_below_k" not in by_way(week)


def test_noise_is_shown_so_that_it_can_be_typed():
    for epsilon in (0.3, 1.0, 1.7):
        choice = by_way(choices(ATTACKER, epsilon=epsilon, delta=1e-4))["noise"]
        shown = float(choice.words.split("epsilon ")[1].split(",")[0])
        assert 0.999 * choice.mechanism.noise.epsilon < shown <= choice.mechanism.noise.epsilon


def test_a_count_that_needs_nothing():
    sure = AttackerModel(p_min=0.2, p_max=0.8, unknown=5000)
    offered = choices(sure, epsilon=1.0, delta=1e-6, kind="count")
    assert [choice.way for choice in offered] == ["exact", "noise_against_anyone"]
    assert offered[0].mechanism == Count()
    assert offered[0].words.startswith("exact count, nothing suppressed")


def test_uncertainty_takes_the_place_of_some_noise():
    ways = by_way(choices(UNSURE, epsilon=3.0, delta=1e-3, kind="count"))
    assert ways["noise"].mechanism.noise.epsilon > ways["noise_against_anyone"].mechanism.noise.epsilon
    assert not ways["noise"].against_anyone
    assert ways["noise_against_anyone"].against_anyone


def test_what_holds_against_anyone_rests_on_nothing_declared():
    choice = by_way(choices(UNSURE, epsilon=3.0, delta=1e-3, kind="count"))["noise_against_anyone"]
    assert choice.certificate.attacker == AttackerModel()
    assert choice.together.delta(3.0) == choice.together.worst_case.delta(3.0)
    assert choice.together.delta(0.5) > certify(choice.mechanism, UNSURE).delta(0.5)


def test_uncertainty_that_saves_no_noise_gives_no_second_choice():
    unsure = AttackerModel(p_min=1e-9, p_max=0.2, unknown=0)
    offered = choices(unsure, epsilon=1.0, delta=0.1, days=7, evidence=IndependentGivenHabits(), kind="count")
    assert sum(choice.mechanism.noise is not None for choice in offered) == 1


def test_the_threshold_is_the_least_for_the_noise_beside_it():
    # The least noise leaves no δ to a threshold here: the noise is found for a threshold, then the threshold for it.
    evidence = [BoundedParticipation(times=5), IndependentGivenHabits()]
    goal = {"epsilon": 20.0, "delta": 1e-3, "days": 365, "evidence": evidence}
    mechanism = by_way(choices(None, **goal, declared_cells=False))["noise_and_k"].mechanism
    assert smallest_release_threshold(mechanism, **goal) == mechanism.release_threshold
    assert mechanism.noise.epsilon == pytest.approx(2.0)


def test_without_evidence_only_noise_adds_up():
    offered = choices(ATTACKER, epsilon=1.0, delta=1e-6, days=30)
    assert {choice.way for choice in offered} == {"noise", "noise_and_k"}
    assert all(isinstance(choice, Choice) for choice in offered)


def test_nothing_declared_leaves_noise():
    assert {choice.way for choice in choices(None, epsilon=1.0, delta=1e-6)} == {"noise", "noise_and_k"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "table"}, "kind must be one of"),
        ({"counts": {"a": 3}}, "PublicCounts"),
        ({"delta": 0.0}, "delta"),
        ({"protects": "both"}, "protects"),
        ({"days": 0}, "days"),
        ({"kind": "count", "protects": "value"}, "a Count has one number"),
    ],
)
def test_arguments_are_checked(changed, words):
    goal = {"epsilon": 1.0, "delta": 1e-6} | changed
    with pytest.raises(ArgumentError, match=words):
        choices(ATTACKER, **goal)


def test_cells_that_leave_no_room_for_p_min_are_refused():
    with pytest.raises(ArgumentError, match="p_min"):
        choices(AttackerModel(p_min=0.3, p_max=0.5, unknown=9), epsilon=1.0, delta=1e-6, counts=TOWNS)


def test_cells_from_the_data_leave_out_p_min_as_their_releases_do():
    shares = {"p_max": 0.5, "unknown": 2000}
    with_and_without = (AttackerModel(p_min=0.2, **shares), AttackerModel(**shares))
    first, second = (choices(attacker, epsilon=1.0, delta=1e-6, declared_cells=False) for attacker in with_and_without)
    assert [choice.mechanism for choice in first] == [choice.mechanism for choice in second]
    assert by_way(first).keys() >= {"k", "noise_and_k"}
    assert "exact" in by_way(choices(with_and_without[0], epsilon=1.0, delta=1e-6))
