"""Totals against enumeration, exact binomials and ball arithmetic: never below, and close."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.losses import enumerated, noise_pair, reversed_pair, waiting_times
from thorough import few

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import Directions, GridLaw, directions, on_grid
from pkdp_pipeline.theorems.bound import NoiseLosses, PairLosses
from pkdp_pipeline.theorems.counting import Counting
from pkdp_pipeline.theorems.hull import ProfileLosses
from pkdp_pipeline.theorems.thresholding import Thresholding, ValueThroughAbsence
from pkdp_pipeline.theorems.worst_case import NoiseCurve


def presence(k, p, cap=None):
    return directions((Thresholding(theorem="histogram_presence", k=k, p=p, cap=cap),), "presence")


def total(*parts, participation=None):
    return Convolved(theorem="independent_given_habits", parts=parts, participation=participation)


def delta_at(convolved, epsilon):
    return float(convolved.certified(np.array([epsilon]))[0])


def both_orders(k, p, cap):
    pair = waiting_times(k - 1, p, cap)
    return pair, reversed_pair(pair)


def worst(days, epsilon):
    """Return the largest exact divergence over all directions of all days."""
    return max((enumerated(choice, epsilon) for choice in itertools.product(*days)), key=lambda ball: float(ball.mid()))


days_of_release = st.lists(
    st.tuples(st.integers(2, 5), st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.895]), st.integers(0, 3)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=few(40), deadline=None)
@given(days=days_of_release, epsilon=st.sampled_from([0.0, 0.03, 0.4, 1.1, 2.3]))
def test_a_total_is_never_below_any_choice_of_directions(days, epsilon):
    released = total(*((presence(k, p, k - 1 + more), 1) for k, p, more in days))
    exact = worst([both_orders(k, p, k - 1 + more) for k, p, more in days], epsilon)
    value = delta_at(released, epsilon)
    assert not flint.arb(value) < exact
    assert value <= float(exact.mid()) * 1.01 + 1e-9


@settings(max_examples=15, deadline=None)
@given(
    k=st.integers(2, 5),
    p=st.sampled_from([0.15, 0.5, 0.8]),
    times=st.integers(2, 4),
    epsilon=st.sampled_from([0.0, 0.2, 1.0]),
)
def test_equal_days_are_powers(k, p, times, epsilon):
    cap = k + 1
    released = total((presence(k, p, cap), times))
    right, left = both_orders(k, p, cap)
    exact = max(
        (enumerated([right] * n + [left] * (times - n), epsilon) for n in range(times + 1)),
        key=lambda ball: float(ball.mid()),
    )
    value = delta_at(released, epsilon)
    assert not flint.arb(value) < exact
    assert value <= float(exact.mid()) * 1.01 + 1e-9
    assert value == delta_at(total((presence(k, p, cap), times - 1), (presence(k, p, cap), 1)), epsilon)


def test_mixed_directions_can_be_the_worst():
    parts = ((presence(10, 0.895), 1), (presence(400, 0.5), 1))
    both = delta_at(total(*parts), 0.03)
    rights = delta_at(total(*((Directions(right=part.right), times) for part, times in parts)), 0.03)
    mixed = delta_at(total((Directions(right=parts[0][0].right), 1), (Directions(right=parts[1][0].left), 1)), 0.03)
    other = delta_at(total((Directions(right=parts[0][0].left), 1), (Directions(right=parts[1][0].right), 1)), 0.03)
    assert rights == pytest.approx(0.38289, abs=2e-5)
    assert both == pytest.approx(0.38300, abs=2e-5)
    assert both == pytest.approx(max(mixed, other), rel=1e-9)


def test_one_release_agrees_with_its_own_profile():
    for k, p in ((50, 0.1), (20, 0.5), (400, 0.02), (10, 0.9)):
        bound = Thresholding(theorem="histogram_presence", k=k, p=p)
        scale = 1.0 / math.sqrt((k - 1) * (1 - p))
        points = scale * np.array([0.0, 0.3, 1.0, 2.2, 4.0, 6.0])
        certified = bound.bracket(points)[1]
        values = total((presence(k, p), 1)).certified(points)
        assert (values >= certified * (1 - 1e-12)).all()
        assert (values <= certified * (1 + 1e-3)).all()


def test_the_value_of_a_histogram_composes_the_pair_of_pairs():
    cap = 5
    bound = ValueThroughAbsence(theorem="histogram_value", k=4, p=0.3, cap=cap)
    part = directions((bound,), "value")
    right, left = both_orders(4, 0.3, cap)
    for epsilon in (0.0, 0.3, 1.5):
        exact = enumerated([right, left, right, left], epsilon)
        value = delta_at(total((part, 2)), epsilon)
        assert not flint.arb(value) < exact
        assert value <= float(exact.mid()) * 1.01 + 1e-9
    # It hides presence in both directions as well.
    for epsilon in (0.0, 0.5, 1.5):
        assert delta_at(total((part, 2)), epsilon) >= delta_at(total((presence(4, 0.3, cap), 2)), epsilon) * (1 - 1e-3)


def binomial(noise, losses, epsilon):
    """Return the exact divergence of `losses` steps of ±noise."""
    with flint.ctx.workprec(400):
        alpha = (-flint.arb(noise)).exp()
        result = flint.arb(0)
        for down in range(losses + 1):
            mass = flint.arb(math.comb(losses, down)) * alpha**down / (1 + alpha) ** losses
            gain = -(flint.arb(epsilon) - (losses - 2 * down) * flint.arb(noise)).expm1()
            if not gain < 0:
                result += mass * gain.nonnegative_part()
        return result


@pytest.mark.parametrize(("noise", "cells", "times"), [(0.5, 1, 365), (0.1, 1, 30), (1.0, 2, 7), (0.3, 2, 100)])
def test_noise_is_exactly_binomial(noise, cells, times):
    curve = NoiseCurve(theorem="noise", noise=noise, moves=cells == 2)
    released = total((directions((curve,), "presence"), times))
    whole = cells * times * noise
    for epsilon in (0.0, 0.1, 0.05 * whole, 0.3 * whole, 0.7 * whole, 0.95 * whole):
        exact = binomial(noise, cells * times, epsilon)
        value = delta_at(released, epsilon)
        assert not flint.arb(value) < exact
        assert value <= float(exact.mid()) * (1 + 1e-8) + 1e-250
    # The exact product may be a little above its float.
    assert delta_at(released, whole * (1 + 1e-15)) == 0.0
    assert released.smallest_epsilon(0.0) == pytest.approx(whole, rel=1e-12)


def test_different_noises_share_a_lattice():
    parts = [(NoiseLosses(noise=noise, cells=1), times) for noise, times in ((0.1, 2), (0.3, 1), (0.25, 2))]
    released = total(*((Directions(right=losses), times) for losses, times in parts))
    pairs = [noise_pair(losses.noise, 1) for losses, times in parts for _ in range(times)]
    for epsilon in (0.0, 0.12, 0.5, 0.9, 0.99):
        exact = enumerated(pairs, epsilon)
        value = delta_at(released, epsilon)
        assert not flint.arb(value) < exact
        assert value <= float(exact.mid()) * (1 + 1e-9) + 1e-13
    assert delta_at(released, 1.01) < 1e-12


def test_noise_beside_a_threshold():
    released = total((presence(4, 0.4, 6), 1), (Directions(right=NoiseLosses(noise=0.5, cells=1)), 2))
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        exact = worst([both_orders(4, 0.4, 6), [noise_pair(0.5, 1)], [noise_pair(0.5, 1)]], epsilon)
        value = delta_at(released, epsilon)
        assert not flint.arb(value) < exact
        assert value <= float(exact.mid()) * 1.01 + 1e-9


def test_bounded_participation_counts_both_lives():
    k, p, cap = 3, 0.4, 4
    part = presence(k, p, cap)
    right, left = both_orders(k, p, cap)
    for epsilon in (0.0, 0.4, 1.2):
        # At most 1 of 5: one day in each direction. At most 2 of 3: two and one, or one and two.
        exact = enumerated([right, left], epsilon)
        value = delta_at(total((part, 5), participation=1), epsilon)
        assert not flint.arb(value) < exact
        assert value <= float(exact.mid()) * 1.01 + 1e-9
        exact = max(
            enumerated([right, right, left], epsilon),
            enumerated([right, left, left], epsilon),
            key=lambda b: float(b.mid()),
        )
        value = delta_at(total((part, 3), participation=2), epsilon)
        assert not flint.arb(value) < exact
        assert value <= float(exact.mid()) * 1.01 + 1e-9
        # Whoever may take part in all releases is not bounded at all.
        assert delta_at(total((part, 3), participation=3), epsilon) == delta_at(total((part, 3)), epsilon)


def test_bounded_participation_in_different_releases_takes_the_worst_of_each():
    kinds = ((3, 0.4, 4), (4, 0.7, 5), (2, 0.1, 3))
    released = total(*((presence(*kind), 1) for kind in kinds), participation=1)
    pairs = [both_orders(*kind) for kind in kinds]
    for epsilon in (0.0, 0.4, 1.2):
        exact = [enumerated([pair[0], other[1]], epsilon) for pair in pairs for other in pairs if pair is not other]
        value = delta_at(released, epsilon)
        assert not any(flint.arb(value) < each for each in exact)


def test_bounded_participation_with_values_uses_one_of_each_direction():
    cap = 5
    part = directions((ValueThroughAbsence(theorem="histogram_value", k=4, p=0.3, cap=cap),), "value")
    right, left = both_orders(4, 0.3, cap)
    for epsilon in (0.0, 0.8):
        exact = enumerated([right, right, left, left], epsilon)
        value = delta_at(total((part, 9), participation=2), epsilon)
        assert not flint.arb(value) < exact
        assert value <= float(exact.mid()) * 1.01 + 1e-9
    other = directions((ValueThroughAbsence(theorem="histogram_value", k=3, p=0.3, cap=cap),), "value")
    mixed = delta_at(total((part, 4), (other, 5), participation=2), 0.8)
    assert mixed >= max(delta_at(total((each, 9), participation=2), 0.8) for each in (part, other)) * (1 - 1e-6)


@dataclass(frozen=True)
class Fixed:
    """A law given on the grid."""

    start: int
    masses: tuple[float, ...]
    infinite: float = 0.0
    deviation: float = 1.0

    def spread(self):
        return self.deviation


@on_grid.register
def _(losses: Fixed, step):
    return GridLaw(start=losses.start, masses=np.array(losses.masses), infinite=losses.infinite)


def in_balls(law, times, step, epsilon):
    """Return the divergence of a law's power by multiplying polynomials of balls."""
    with flint.ctx.workprec(600):
        power = flint.arb_poly([flint.arb(mass) for mass in law.masses]) ** times
        result = flint.arb(0)
        first = law.start * times
        for index, mass in enumerate(power.coeffs()):
            loss = flint.arb(step) * (first + index)
            if loss > epsilon:
                result -= mass * (flint.arb(epsilon) - loss).expm1()
        return result + 1 - (1 - flint.arb(law.infinite)) ** times


@pytest.mark.parametrize(
    "times", [2, 5, 30, pytest.param(64, marks=pytest.mark.slow), pytest.param(365, marks=pytest.mark.slow)]
)
def test_rounding_stays_within_its_budget(times):
    losses = np.arange(-60, 90)
    masses = np.exp(-0.5 * ((losses - 3.0) / 11.0) ** 2) * (1.0 + 0.5 * np.cos(losses))
    masses /= masses.sum()
    law = Fixed(start=-60, masses=tuple(masses.tolist()), deviation=0.35)
    released = total((Directions(right=law), times))
    step = released._ladder().step
    mean, deviation = 3.0 * step * times, 11.0 * step * math.sqrt(times)
    for number in (-2.0, 0.0, 1.3, 5.1, 9.0, 13.7, 15.9):
        epsilon = mean + number * deviation
        if not 0.0 <= epsilon < 89 * step * times * 0.98:
            continue
        exact = in_balls(law, times, step, epsilon)
        value = delta_at(released, epsilon)
        assert not flint.arb(value) < exact
        assert value <= float(exact.mid()) * (1 + 1e-7)
    assert times < 64 or value < 1e-55


def test_one_rare_large_loss_keeps_its_accuracy():
    law = Fixed(start=-60, masses=(1e-12 * math.exp(-4.0), *(0.0,) * 59, 1 - 1e-12, *(0.0,) * 59, 1e-12), deviation=6.0)
    released = total((Directions(right=law), 30))
    step = released._ladder().step
    for share in (0.0, 0.5, 0.97, 1.3):
        epsilon = share * 60 * step
        exact = in_balls(law, 30, step, epsilon)
        assert not flint.arb(delta_at(released, epsilon)) < exact
        assert delta_at(released, epsilon) <= float(exact.mid()) * (1 + 1e-2)


def test_releases_that_hardly_ever_show_anything_add_next_to_nothing():
    # Counts of at least 50 out of at most 60 people who count with probability 0.05.
    assert delta_at(total((presence(50, 0.05, 60), 30)), 0.0) < 1e-10
    exact = worst([both_orders(4, 1e-5, 5)] * 2, 0.0)
    value = delta_at(total((presence(4, 1e-5, 5), 2)), 0.0)
    assert not flint.arb(value) < exact
    assert value < 1e-11


def test_infinite_losses_are_added_once_each():
    law = Fixed(start=0, masses=(0.5, 0.499), infinite=0.001)
    released = total((Directions(right=law), 20))
    step = released._ladder().step
    for epsilon in (0.0, 0.5 * step, 3 * step, 30 * step):
        exact = in_balls(law, 20, step, epsilon)
        assert not flint.arb(delta_at(released, epsilon)) < exact
        assert delta_at(released, epsilon) <= float(exact.mid()) * (1 + 1e-9)


def test_a_year_of_equal_releases():
    year = total((presence(50, 0.1), 365))
    epsilon = year.smallest_epsilon(1e-9)
    # 21.1404 is the supremum over the number of days in each direction.
    assert 21.1404 <= epsilon <= 21.16
    assert delta_at(year, epsilon) <= 1e-9
    one_way = total((Directions(right=presence(50, 0.1).right), 365))
    other_way = total((Directions(right=presence(50, 0.1).left), 365))
    assert delta_at(one_way, epsilon) == pytest.approx(delta_at(year, epsilon), rel=1e-6)
    assert delta_at(other_way, epsilon) < 0.4 * delta_at(year, epsilon)
    for target in (0.3, 1e-3, 1e-20, 1e-40):
        smallest = year.smallest_epsilon(target)
        assert delta_at(year, smallest) <= target
        assert delta_at(year, smallest * (1 - 1e-5)) > target


def test_two_kinds_of_days():
    parts = ((presence(50, 0.1), 26), (presence(30, 0.1), 10))
    both = total(*parts)
    epsilon = both.smallest_epsilon(1e-9)
    one_way = total(*((Directions(right=part.right), times) for part, times in parts)).smallest_epsilon(1e-9)
    assert one_way * (1 - 1e-6) <= epsilon <= one_way * 1.002


def test_many_different_days():
    parts = tuple((presence(60 + 3 * day, 0.1), 1) for day in range(40))
    year = total(*parts)
    epsilon = year.smallest_epsilon(1e-9)
    one_way = total(*((Directions(right=part.right), 1) for part, _ in parts)).smallest_epsilon(1e-9)
    assert one_way * (1 - 1e-6) <= epsilon <= one_way * 1.02
    assert total(*parts, (presence(77, 0.15), 1)).smallest_epsilon(1e-9) > epsilon


def test_a_total_of_profiles():
    bound = Counting(theorem="counting", unknown=500, p_min=0.3, p_max=0.6)
    released = total((directions((bound,), "presence"), 30))
    # Between that of the least and that of the most spread of two normal laws with δ(0) as certified.
    spread = ProfileLosses(bounds=(bound,)).spread()
    normal = 0.5 * 30 * spread**2
    epsilon = released.smallest_epsilon(1e-6)
    assert normal + 4.0 * spread * math.sqrt(30) < epsilon < normal + 5.2 * spread * math.sqrt(30)
    nested = total((Directions(right=ProfileLosses(bounds=(released,))), 1))
    assert delta_at(nested, epsilon) == pytest.approx(delta_at(released, epsilon), rel=0.05)
    assert delta_at(nested, epsilon) >= delta_at(released, epsilon) * (1 - 1e-9)


def test_nothing_and_everything():
    nothing = total()
    assert nothing.certified(np.array([0.0, 1.0])).tolist() == [0.0, 0.0]
    assert nothing.smallest_epsilon(0.0) == 0.0
    disclosed = total((presence(50, 0.1), 5), (presence(1, 0.1), 1))
    assert disclosed.certified(np.array([0.0, 50.0])).tolist() == [1.0, 1.0]
    assert disclosed.smallest_epsilon(0.5) == math.inf
    unseen = total((presence(50, 0.0), 5))
    assert unseen.certified(np.array([0.0, 1.0])).max() < 1e-12


def test_a_floor_that_no_epsilon_goes_below():
    released = total((presence(5, 0.5), 3))
    floor = 1 - (1 - 0.5**4) ** 3
    assert delta_at(released, 200.0) == pytest.approx(floor, rel=1e-9)
    assert delta_at(released, 200.0) >= floor
    assert released.smallest_epsilon(0.9 * floor) == math.inf
    assert released.smallest_epsilon(1.1 * floor) < 10.0


def test_the_result_does_not_depend_on_the_order_of_questions():
    points = np.array([0.0, 25.0, 3.0, 14.0, 9.0])
    forward = total((presence(50, 0.1), 90)).certified(points)
    backward = total((presence(50, 0.1), 90)).certified(points[::-1])[::-1]
    assert np.array_equal(forward, backward)


def test_a_bracket_has_two_sides():
    released = total((presence(50, 0.1), 4))
    lower, upper = released.bracket(np.array([0.0, 1.0]))
    assert lower.tolist() == [0.0, 0.0]
    assert np.array_equal(upper, released.certified(np.array([0.0, 1.0])))
    assert 0.0 < released.slack < 1e-4
    assert PairLosses(k=50, p=0.1) == presence(50, 0.1).right


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(
    days=st.lists(st.tuples(st.integers(2, 6), st.floats(0.02, 0.98), st.integers(0, 5)), min_size=1, max_size=4),
    epsilon=st.floats(0.0, 4.0),
    participation=st.none() | st.integers(1, 3),
)
def test_campaign_of_totals(days, epsilon, participation):
    released = total(*((presence(k, p, k - 1 + more), 1) for k, p, more in days), participation=participation)
    pairs = [both_orders(k, p, k - 1 + more) for k, p, more in days]
    value = flint.arb(delta_at(released, epsilon))
    limit = len(days) if participation is None else participation
    for signs in itertools.product((0, 1, None), repeat=len(days)):
        if signs.count(0) <= limit and signs.count(1) <= limit:
            chosen = [pair[sign] for pair, sign in zip(pairs, signs, strict=True) if sign is not None]
            if math.prod((len(pair) for pair in chosen), start=1) <= 700:
                assert not value < enumerated(chosen, epsilon)


def test_what_a_search_is_steered_by_below_the_mean_is_no_more_than_the_certified_value():
    for parts in ([(presence(50, 0.1), 30)], [(presence(20 + day, 0.1 + 0.01 * day), 1) for day in range(24)]):
        released = total(*parts)
        ladder = released._ladder()
        for epsilon in (0.0, 0.3 * ladder.step * ladder.moments(0).low, ladder.step * ladder.moments(0).low):
            below = math.exp(ladder.log_below_mean(epsilon))
            assert 1e-6 < below <= delta_at(released, epsilon)


@pytest.mark.parametrize("target", [1e-6, 1e-20])
def test_a_search_ends_where_the_profile_reaches_its_target(target):
    for parts in (
        [(presence(353, 0.8253), 1)],
        [(presence(90, 0.3), 2)],
        [(presence(200, 0.5), 1), (presence(90, 0.1), 1)],
    ):
        released = total(*parts)
        assert 0.98 * target <= delta_at(released, released.smallest_epsilon(target)) <= target
