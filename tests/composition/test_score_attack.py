"""Score attacks against enumeration: real attacks, never above the exact divergence, equal to their own event."""

from __future__ import annotations

import dataclasses
import itertools
import math

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.losses import BITS, ball, enumerated, reversed_pair, shown_count, waiting_times
from oracle.scores import scores_of_pair

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import directions
from pkdp_pipeline.composition.score_attack import (
    attained_by_scores,
    score_tail,
    score_test,
    scores_of_atoms,
    scores_of_count,
)
from pkdp_pipeline.composition.tilted_transform import Factor
from pkdp_pipeline.theorems.numerics import smallest_epsilon
from pkdp_pipeline.theorems.thresholding import Thresholding
from pkdp_pipeline.theorems.waiting_pair import waiting_pair


def attacked(k, p, **more):
    bound = Thresholding(theorem="histogram_presence", k=k, p=p, **more)
    return dataclasses.replace(directions((bound,), "presence"), attack=bound)


def cells_of(k, p, people, step):
    """Return the score of every outcome, in cells, as the attack rounds it."""
    shown = np.arange(k, people + 1)
    ratios = np.log(shown * (1.0 - p) / ((people - shown + 1.0) * p))
    exact = shown_count(k, p, people)
    hidden = math.log(float(exact[0][0]) / float(exact[0][1])) if exact[0][0] else None
    return exact, [hidden, *ratios.tolist(), math.inf]


@settings(max_examples=40, deadline=None)
@given(k=st.integers(2, 8), p=st.floats(0.05, 0.9), more=st.integers(0, 12), step=st.floats(0.01, 0.3))
def test_scores_of_a_count_stay_on_their_side_of_the_exact_law(k, p, more, step):
    people = k - 1 + more
    scores = scores_of_count(k, p, people, step)
    exact = shown_count(k, p, people)
    with flint.ctx.workprec(BITS):
        for law, side, sign in ((scores.first, 0, 1), (scores.second, 1, -1)):
            # Above any level, the first measure is nowhere above the exact one, the second nowhere below it.
            whole = sum((ball(atom[side]) for atom in exact), flint.arb(0))
            total = sum(map(flint.arb, [*law.masses.tolist(), law.infinite]), flint.arb(0))
            assert not sign * total > sign * whole
            assert abs(float((total - whole).mid())) < 1e-12


@settings(max_examples=25, deadline=None)
@given(
    days=st.lists(
        st.tuples(st.integers(2, 4), st.sampled_from([0.2, 0.5, 0.7]), st.integers(0, 4)), min_size=1, max_size=3
    ),
    epsilon=st.floats(0.0, 1.5),
)
def test_a_test_equals_its_own_event_enumerated(days, epsilon):
    step = 0.05
    laws = [cells_of(k, p, k - 1 + more, step) for k, p, more in days]
    level = math.ceil(epsilon / step)
    with flint.ctx.workprec(BITS):
        exact, ties = flint.arb(0), 0
        growth = flint.arb(epsilon).exp()
        for combination in itertools.product(*(zip(*law, strict=True) for law in laws)):
            first, second = flint.arb(1), flint.arb(1)
            cells = 0
            for atom, score in combination:
                first, second = first * ball(atom[0]), second * ball(atom[1])
                if score is None or math.isinf(score):
                    cells += -(10**5) if score is None else 10**9
                else:
                    cells += round(score / step)
                    ties += abs(score / step % 1.0 - 0.5) < 1e-9
            if cells >= level:
                exact += first - growth * second
        truth = max(
            enumerated([law[0] for law in laws], epsilon),
            enumerated([reversed_pair(law[0]) for law in laws], epsilon),
            key=lambda each: float(each.mid()),
        )
    scores = [(scores_of_count(k, p, k - 1 + more, step), 1) for k, p, more in days]
    value, _ = score_test(scores, epsilon, step, 0.5 * step)
    assert not flint.arb(value) > truth
    if not ties:
        assert value <= max(0.0, float(exact.mid())) + 1e-15
        assert value >= float(exact.mid()) * (1 - 1e-9) - 1e-11


def test_a_tail_is_bracketed_narrowly():
    masses = np.array([0.05, 0.2, 0.4, 0.25, 0.1])
    scores = scores_of_atoms(np.arange(-2.0, 3.0), masses, masses, 1.0)
    for times in (1, 3, 40, 400):
        mean, deviation = 0.15 * times, math.sqrt(1.0275 * times)
        with flint.ctx.workprec(400):
            power = (flint.arb_poly([flint.arb(m) for m in masses]) ** times).coeffs()
        for number in (-3.0, 0.0, 2.0, 6.0, 12.0):
            level = math.ceil(mean + number * deviation)
            if not -2 * times <= level <= 2 * times:
                continue
            with flint.ctx.workprec(400):
                exact = sum(power[level + 2 * times :], flint.arb(0))
            rate = max(0.0, number) / deviation
            lower, _ = score_tail([Factor(laws=(scores.first,), times=times)], level, rate)
            _, upper = score_tail([Factor(laws=(scores.second,), times=times)], level, rate)
            assert not flint.arb(lower) > exact
            assert not flint.arb(upper) < exact
            assert upper - lower <= 1e-7 * float(exact.mid())
    assert score_tail([Factor(laws=(scores.first,), times=3)], 7, 0.1) == (0.0, 0.0)


@pytest.mark.parametrize(("k", "p", "times"), [(50, 0.1, 365), (50, 0.1, 30), (20, 0.5, 60)])
def test_the_dominating_pair_is_met_within_a_tenth_of_a_percent(k, p, times):
    certified = Convolved(theorem="independent_given_habits", parts=((attacked(k, p), times),))
    pair = waiting_pair(k - 1, p, None, 1e-90)
    step = 1.0 / math.sqrt((k - 1) * (1 - p)) / 64
    scores = scores_of_pair(pair, "right", step)

    def reached(epsilon):
        rate, position = 0.1 * step, epsilon / step
        while times * scores.first.tilted(rate).mean < position and rate < 4.0:
            rate *= 1.3
        return score_test([(scores, times)], epsilon, step, rate)[0]

    for target in (1e-3, 1e-9):
        above = certified.smallest_epsilon(target)
        below = smallest_epsilon(reached, target, 1e-3)
        if math.isinf(above):
            # A day in 2^19 discloses everything, which the test sees as well.
            assert math.isinf(below)
            continue
        assert above * (1 - 1e-3) <= below <= above * (1 + 1e-4)
        assert reached(above) <= certified.certified(np.array([above]))[0]


def test_the_left_pair_is_met_as_well():
    pair = waiting_pair(9, 0.4, 30, 1e-90)
    scores = scores_of_pair(pair, "left", 0.01)
    exact = reversed_pair(waiting_times(9, 0.4, 30))
    for epsilon in (0.0, 0.3, 0.7):
        value, _ = score_test([(scores, 1)], epsilon, 0.01, 0.02)
        truth = enumerated([exact], epsilon)
        assert not flint.arb(value) > truth
        assert value >= 0.99 * float(truth.mid())


@settings(max_examples=15, deadline=None)
@given(k=st.integers(2, 5), p=st.sampled_from([0.2, 0.5, 0.8]), times=st.integers(1, 3), epsilon=st.floats(0.0, 2.0))
def test_an_attack_is_never_above_what_its_attacker_can_reach(k, p, times, epsilon):
    cap = k + 4
    part = attacked(k, p, cap=cap)
    value, _ = attained_by_scores(((part, times),), None, epsilon)
    reachable = max(
        float(enumerated([shown_count(k, p, people)] * times, epsilon).upper()) for people in range(k - 1, cap + 1)
    )
    assert value <= reachable
    pair = waiting_times(k - 1, p, cap)
    assert not flint.arb(value) > enumerated([pair] * times, epsilon)


def test_an_attack_on_a_year_comes_near_the_certified_side():
    year = Convolved(theorem="independent_given_habits", parts=((attacked(50, 0.1), 365),))
    lower, upper = year.bracket(np.array([0.0, 4.0, 12.0, 19.0]))
    assert (lower <= upper).all()
    assert (lower >= np.array([0.85, 0.5, 0.15, 0.01]) * upper).all()


def test_releases_without_an_attack_are_ignored():
    without = directions((Thresholding(theorem="histogram_presence", k=50, p=0.1),), "presence")
    for epsilon in (0.0, 0.7):
        alone = attained_by_scores(((attacked(20, 0.2), 3),), None, epsilon)
        assert alone == attained_by_scores(((attacked(20, 0.2), 3), (without, 4)), None, epsilon)
        assert alone[0] > 0.0
        assert attained_by_scores(((without, 4),), None, epsilon) == (0.0, 0.0)


def test_bounded_participation_bounds_the_attack():
    for epsilon in (0.0, 0.7):
        two = attained_by_scores(((attacked(20, 0.2), 2),), None, epsilon)
        assert two == attained_by_scores(((attacked(20, 0.2), 9),), 2, epsilon)


def test_an_attacker_with_many_unknown_people_only():
    few, _ = attained_by_scores(((attacked(20, 0.2), 3),), None, 0.0)
    many, _ = attained_by_scores(((attacked(20, 0.2, least_unknown=160), 3),), None, 0.0)
    assert 0.0 < many < few
