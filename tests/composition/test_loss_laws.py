"""Laws on the grid against the pairs they stand for: nowhere below, in either order, and close."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.losses import ball, noise_pair, profile, reversed_pair, waiting_times
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.composition.loss_laws import directions, envelope, on_grid, product, profile_at, split, split_pairs
from pkdp_pipeline.theorems.bound import EnvelopeLosses, NoiseLosses, PairLosses, ProductLosses
from pkdp_pipeline.theorems.counting import Counting
from pkdp_pipeline.theorems.hull import ProfileLosses
from pkdp_pipeline.theorems.numerics import binomial_weights, left_tails, right_tails
from pkdp_pipeline.theorems.thresholding import Thresholding, ValueThroughAbsence
from pkdp_pipeline.theorems.waiting_pair import waiting_pair
from pkdp_pipeline.theorems.worst_case import NoiseCurve

EPSILONS = (0.0, 0.03, 0.3, 1.0, 2.5)


def presence(k, p, **more):
    return Thresholding(theorem="histogram_presence", k=k, p=p, **more)


def grid_pair(law, step):
    """Return the atoms of a law as balls, infinite losses included."""
    with flint.ctx.workprec(320):
        losses = [flint.arb(step) * index for index in range(law.start, law.last + 1)]
        atoms = [(flint.arb(m), flint.arb(m) * (-x).exp()) for m, x in zip(law.masses.tolist(), losses, strict=True)]
        return [*atoms, (flint.arb(law.infinite), flint.arb(0))]


def at_growth(pair, growth):
    """Return the ball of ``Σ (P - z Q)_+`` for any z ≥ 0."""
    with flint.ctx.workprec(320):
        total = flint.arb(0)
        for first, second in pair:
            excess = ball(first) - growth * ball(second)
            total += excess.nonnegative_part() if not excess < 0 else 0
        return total


@settings(max_examples=60, deadline=None)
@given(
    k=st.integers(2, 9),
    p=st.floats(0.05, 0.95),
    more=st.integers(0, 12),
    step=st.floats(0.004, 0.5),
    order=st.sampled_from(["right", "left"]),
)
def test_a_pair_on_the_grid_is_nowhere_below_the_pair(k, p, more, step, order):
    cap = k - 1 + more
    exact = waiting_times(k - 1, p, cap)
    if order == "left":
        exact = reversed_pair(exact)
    law = on_grid(PairLosses(k=k, p=p, cap=cap, order=order), step)
    pairs = grid_pair(law, step)
    with flint.ctx.workprec(320):
        for growth in (flint.arb(x).exp() for x in (-3.0, -0.4, -0.01, *EPSILONS)):
            assert not at_growth(pairs, growth) < at_growth(exact, growth)
        assert at_growth(pairs, flint.arb(0)) > 1


@pytest.mark.parametrize("order", ["right", "left"])
@pytest.mark.parametrize("k", [4, 7])
def test_atoms_at_the_ends_of_cells_are_dominated(k, order):
    """With p = 1/2 and k - 1 = t the atom of t failures has loss 0, those of 2t and 4t one or two whole steps."""
    step, exact = math.log(2.0), waiting_times(k - 1, 0.5, 6 * (k - 1))
    exact = exact if order == "right" else reversed_pair(exact)
    pairs = grid_pair(on_grid(PairLosses(k=k, p=0.5, cap=6 * (k - 1), order=order), step), step)
    with flint.ctx.workprec(320):
        for growth in (flint.arb(2) ** power for power in (-3, -2, -1, 0, 1, 2)):
            assert not at_growth(pairs, growth) < at_growth(exact, growth)
            assert not at_growth(pairs, growth * 1.01) < at_growth(exact, growth * 1.01)


def test_pairs_go_onto_the_grid_together_as_alone():
    pairs = [waiting_pair(t, p, cap, 1e-90) for t, p, cap in ((19, 0.1, None), (0, 0.3, None), (9, 0.5, 30), (4, 0, 9))]
    for laws, alone in zip(split_pairs(pairs, 0.01), (split_pairs([pair], 0.01)[0] for pair in pairs), strict=True):
        for law, other in zip(laws, alone, strict=True):
            assert (law.start, law.infinite) == (other.start, other.infinite)
            assert np.array_equal(law.masses, other.masses)
    disjoint, _ = split_pairs(pairs, 0.01)[1]
    assert disjoint.infinite == 1.0


@pytest.mark.parametrize("order", ["right", "left"])
def test_a_fine_grid_is_close(order):
    exact = waiting_times(7, 0.3, 40)
    exact = exact if order == "right" else reversed_pair(exact)
    step = 0.002
    law = on_grid(PairLosses(k=8, p=0.3, cap=40, order=order), step)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        true = profile(exact, epsilon)
        assert true < profile_at(law, step, epsilon) < true * 1.0001 + 1e-12


@settings(max_examples=60, deadline=None)
@given(
    losses=st.lists(st.floats(-5, 5), min_size=1, max_size=8),
    step=st.floats(0.01, 1.0),
    data=st.data(),
)
def test_splitting_keeps_both_masses_but_for_roundoff(losses, step, data):
    weights = np.array(data.draw(st.lists(st.floats(1e-6, 1.0), min_size=len(losses), max_size=len(losses))))
    law = split(np.array(losses), weights, 0.0, step)
    with flint.ctx.workprec(320):
        pair = grid_pair(law, step)[:-1]
        exact = [(flint.arb(w), flint.arb(w) * (-flint.arb(x)).exp()) for w, x in zip(weights, losses, strict=True)]
        for side in range(2):
            gridded, given_mass = (sum((atom[side] for atom in atoms), flint.arb(0)) for atoms in (pair, exact))
            assert abs(float((gridded / given_mass - 1).mid())) < 1e-12
        # Neither end is farther out than the next point of the grid.
        assert (law.start + 1) * step > min(losses) - 1e-12
        assert law.last * step < max(losses) + 1.001 * step


def test_tiny_masses_are_moved_up_only():
    losses = np.linspace(-8.0, 8.0, 4001)
    weights = np.exp(-0.5 * (losses / 0.3) ** 2)
    weights /= weights.sum()
    step = 0.01
    law = split(losses, weights, 0.0, step)
    whole = split(losses, weights, 0.0, step, trim=False)
    assert law.start > whole.start + 100
    assert law.last < whole.last - 50
    assert law.infinite < 1e-99
    for epsilon in (0.0, 0.5, 2.0, 3.0):
        assert whole_profile(whole, step, epsilon) <= profile_at(law, step, epsilon)
        assert profile_at(law, step, epsilon) <= whole_profile(whole, step, epsilon) * (1 + 1e-9) + 1e-99


def whole_profile(law, step, epsilon):
    losses = step * np.arange(law.start, law.last + 1)
    return math.fsum((law.masses * -np.expm1(np.minimum(0.0, epsilon - losses))).tolist()) * (1 - 1e-12)


@settings(max_examples=few(40), deadline=None)
@given(
    first=st.tuples(st.integers(2, 9), st.floats(0.05, 0.95)),
    second=st.tuples(st.integers(2, 9), st.floats(0.05, 0.95)),
    step=st.floats(0.01, 0.4),
)
def test_the_envelope_is_its_own_mirror_image_and_dominates_all_in_both_orders(first, second, step):
    cap = 14
    members = [PairLosses(k=k, p=p, cap=cap, order=order) for k, p in (first, second) for order in ("right", "left")]
    laws = [on_grid(member, step) for member in members]
    both = envelope(laws, step)
    pairs = grid_pair(both, step)
    assert both.start == -both.last
    with flint.ctx.workprec(320):
        for x in (-2.0, -0.5, -0.02, *EPSILONS, 0.5 * step, step, 3.7 * step):
            growth = flint.arb(x).exp()
            value = at_growth(pairs, growth)
            for k, p in (first, second):
                exact = waiting_times(k - 1, p, cap)
                assert not value < at_growth(exact, growth)
                assert not value < at_growth(reversed_pair(exact), growth)
    # It is no larger than the larger of the members' profiles where the grid has points.
    for index in range(0, both.last, max(1, both.last // 7)):
        epsilon = index * step
        largest = max(profile_at(law, step, epsilon) for law in laws)
        assert profile_at(both, step, epsilon) <= largest * (1 + 1e-9) + 1e-90


def test_a_product_of_laws_is_the_product_of_pairs():
    step = 0.02
    right, left = (PairLosses(k=4, p=0.4, cap=8, order=order) for order in ("right", "left"))
    both = on_grid(ProductLosses(members=(right, left)), step)
    again = product(on_grid(right, step), on_grid(left, step))
    assert np.array_equal(both.masses, again.masses)
    exact = waiting_times(3, 0.4, 8)
    pairs = [(a[0] * b[1], a[1] * b[0]) for a in exact for b in exact]
    for epsilon in EPSILONS:
        true = profile(pairs, epsilon)
        assert true < profile_at(both, step, epsilon) < true * 1.003 + 1e-12


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("step", [0.75, 0.375, 0.11])
def test_noise_is_dominated_and_exact_on_its_lattice(cells, step):
    law = on_grid(NoiseLosses(noise=0.75, cells=cells), step)
    exact = noise_pair(0.75, cells)
    for epsilon in (0.0, 0.2, 0.7, 0.75, 1.0, 1.49, 1.5, 2.0):
        true = profile(exact, epsilon)
        value = profile_at(law, step, epsilon)
        assert not flint.arb(value) < true
        if step != 0.11:
            assert value <= float(true.mid()) * (1 + 1e-12) + (1e-15 if epsilon < cells * 0.75 else 0.0)
    assert law.infinite == 0.0
    assert law.last * step == cells * 0.75 or step == 0.11


def hull_of(points, values, epsilon):
    """Return the largest convex function of e^ε below the points, by trying all chords."""
    growth = np.exp(points)
    growth_at = math.exp(epsilon)
    best = math.inf
    for i in range(len(points)):
        for j in range(i, len(points)):
            if points[i] <= epsilon <= points[j]:
                share = 0.0 if i == j else (growth_at - growth[i]) / (growth[j] - growth[i])
                best = min(best, (1 - share) * values[i] + share * values[j])
    return best


def test_several_bounds_give_the_hull_of_their_minimum():
    threshold, noise = presence(20, 0.3), NoiseCurve(theorem="noise", noise=0.4, cells=1, appears_at=30)
    losses = directions((threshold, noise), "presence").right
    assert losses == ProfileLosses(bounds=(threshold, noise))
    step = 0.0005
    law = on_grid(losses, step)
    assert law.total == pytest.approx(1.0, abs=1e-9)
    points = np.concatenate([np.linspace(0.0, 1.2, 121), np.linspace(1.25, 5.0, 76)])
    values = np.minimum(threshold.bracket(points)[1], noise.bracket(points)[1])
    for epsilon in (0.0, 0.05, 0.2, 0.38, 0.4, 0.41, 0.6, 1.0):
        hull = hull_of(points, values, epsilon)
        value = profile_at(law, step, epsilon)
        # Both are hulls of samples, at different points.
        assert hull * 0.99 <= value <= hull * 1.01 + 1e-12
    # The corner of the noise's curve is met exactly: beyond it the least of both remains.
    assert profile_at(law, step, 0.4) <= min(values[40], float(threshold.bracket(np.array([0.4]))[1][0])) * (1 + 1e-6)


@thinned(2)
@pytest.mark.parametrize(
    "bound",
    [
        Counting(theorem="counting", unknown=400, p_min=0.2, p_max=0.7),
        ValueThroughAbsence(theorem="histogram_value", k=15, p=0.3, known=3),
        NoiseCurve(theorem="noise", noise=1.0, moves=True, appears_at=6),
        presence(12, 0.5, known=4),
    ],
    ids=lambda bound: type(bound).__name__,
)
def test_a_profile_becomes_a_pair_that_is_its_own_mirror_image(bound):
    losses = ProfileLosses(bounds=(bound,))
    step = losses.spread() / 100
    law = on_grid(losses, step)
    points = losses.spread() * np.array([0.0, 0.11, 0.5, 1.3, 2.9, 4.4])
    certified = bound.bracket(points)[1]
    for epsilon, value in zip(points.tolist(), certified.tolist(), strict=True):
        # The samples are within the bound's own slack of a convex function.
        assert profile_at(law, step, epsilon) >= value * (1 - 1.2 * bound.slack - 1e-9)
        assert profile_at(law, step, epsilon) <= value * 1.02 + 1e-12
    with flint.ctx.workprec(320):
        pairs = grid_pair(law, step)
        for x in (0.3, 1.0, 2.0):
            up, down = (at_growth(pairs, (flint.arb(sign * x)).exp()) for sign in (1, -1))
            shrunk = (-flint.arb(x)).exp()
            assert down > 1 - shrunk + shrunk * up - flint.arb(1e-9)


def test_known_people_are_averaged_over():
    step = 0.01
    bound = presence(20, 0.3, known=10)
    part = directions((bound,), "presence")
    chances = binomial_weights(10, 0.3, 0, 10)
    for epsilon in (0.0, 0.3, 0.8, 1.5):
        # Of each number of them who count, the worst number of unknown people: one release tells no more.
        each = (tails(list(range(19, 8, -1)), 0.3, np.full(11, epsilon))[1] for tails in (right_tails, left_tails))
        value = max(float(chances @ side) for side in each)
        assert bound.certified(np.array([epsilon]))[0] <= value
        both = max(profile_at(on_grid(losses, step), step, epsilon) for losses in (part.right, part.left))
        assert value * (1 - 1e-9) <= both <= value * 1.01


def test_controlled_people_are_taken_off_the_threshold():
    part = directions((presence(20, 0.3, known=5, active=True),), "presence")
    assert part.right == PairLosses(k=15, p=0.3, order="right")
    assert part.left == PairLosses(k=15, p=0.3, order="left")


def test_each_bound_gets_its_own_kind_of_law():
    between = Thresholding(theorem="histogram_between", k=9, p=0.6)
    value = ValueThroughAbsence(theorem="histogram_value", k=9, p=0.2)
    noise = NoiseCurve(theorem="noise", noise=0.5, moves=True)
    right, left = (PairLosses(k=9, p=0.2, order=order) for order in ("right", "left"))
    assert directions((value,), "value").right == ProductLosses(members=(right, left))
    assert isinstance(directions((between,), "value").right, EnvelopeLosses)
    assert directions((noise,), "value").right == NoiseLosses(noise=0.5, cells=2)
    assert all(directions((bound,), "value").left is None for bound in (value, between, noise))
    assert directions((presence(9, 0.2),), "presence").left == left


def test_a_bound_that_is_never_the_smallest_is_left_out():
    better, worse = presence(40, 0.2), presence(30, 0.2)
    assert directions((worse, better), "presence").right == PairLosses(k=40, p=0.2)
    assert directions((better, better), "presence").right == PairLosses(k=40, p=0.2)


def test_no_bound_discloses_everything():
    law = on_grid(directions((), "presence").right, 0.1)
    assert law.infinite == 1.0


@pytest.mark.parametrize(("known", "kept"), [(0, True), (3, False)])
def test_an_attack_is_kept_where_it_can_be_repeated(known, kept):
    day = pkdp.certify(pkdp.Histogram(k=10), pkdp.AttackerModel(p_max=0.2, known=known))
    total, *_ = pkdp.compose([(day, 2)], pkdp.IndependentGivenHabits()).partial_bounds
    assert [part.attack is not None for part, _ in total.bound.parts] == [kept]


def test_fractions_of_one_half_stay_exact():
    exact = waiting_times(1, 0.5, 3)
    assert exact == [
        (Fraction(1, 2), Fraction(0)),
        (Fraction(1, 4), Fraction(1, 4)),
        (Fraction(1, 8), Fraction(1, 4)),
        (Fraction(1, 8), Fraction(1, 2)),
    ]
