"""Different days: one cover of all choices of directions against each choice; tables of laws against single laws."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.losses import enumerated, reversed_pair, waiting_times
from thorough import few, one_in, thinned

from pkdp_pipeline.composition import convolution
from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import Directions, GridLaw, directions, loss_tables, transforms
from pkdp_pipeline.composition.tilted_transform import Ladder, cover
from pkdp_pipeline.theorems.bound import NoiseLosses
from pkdp_pipeline.theorems.thresholding import Thresholding


def presence(k, p, cap=None):
    return directions((Thresholding(theorem="histogram_presence", k=k, p=p, cap=cap),), "presence")


def total(*parts):
    return Convolved(theorem="independent_given_habits", parts=parts)


def delta_at(convolved, epsilon):
    return float(convolved.certified(np.array([epsilon]))[0])


@pytest.fixture
def nothing_enumerated(monkeypatch):
    monkeypatch.setattr(convolution, "_MAX_CHOICES", 1)
    monkeypatch.setattr(convolution, "_MAX_COVER_EXCESS", math.inf)


days_of_release = st.lists(
    st.tuples(st.integers(2, 5), st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.895]), st.integers(0, 3)),
    min_size=2,
    max_size=4,
)


@settings(max_examples=few(60), deadline=None)
@given(days=days_of_release, epsilon=st.sampled_from([0.0, 0.03, 0.4, 1.1, 2.3]))
def test_covered_choices_are_never_below_any_one_of_them(days, epsilon):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(convolution, "_MAX_CHOICES", 1)
        released = total(*((presence(k, p, k - 1 + more), 1) for k, p, more in days))
        assert all(factor.covered for factor in released._ladder().factors)
        value = delta_at(released, epsilon)
    pairs = [waiting_times(k - 1, p, k - 1 + more) for k, p, more in days]
    choices = itertools.product(*((pair, reversed_pair(pair)) for pair in pairs))
    for choice in choices:
        assert not flint.arb(value) < enumerated(choice, epsilon)


def with_every_choice(released):
    """Return the same total of the same laws with each choice of directions looked at."""
    ladder = released._ladder()
    other = total(*released.parts)
    factors = [replace(factor, covered=False, most=factor.times if factor.covered else 0) for factor in ladder.factors]
    other._cache["_ladder",] = Ladder(
        step=ladder.step, factors=tuple(sorted(factors, key=lambda factor: factor.ways > 1))
    )
    return other


DIFFERENT = {
    "thresholds": [(20 + 7 * day, 0.1, 1) for day in range(9)],
    "shares": [(50, 0.02 + 0.03 * day, 1) for day in range(9)],
    "laws of a few atoms": [(10, 0.895, 2), (400, 0.5, 1), (30, 0.1, 7), (25, 0.3, 3), (60, 0.05, 2)],
}


@pytest.mark.usefixtures("nothing_enumerated")
@pytest.mark.parametrize("name", DIFFERENT)
def test_the_cover_is_as_good_as_the_best_choice(name):
    kinds = DIFFERENT[name]
    covered = total(*((presence(k, p), times) for k, p, times in kinds))
    every = with_every_choice(covered)
    width = math.sqrt(sum(times / ((k - 1) * (1 - p)) for k, p, times in kinds))
    for epsilon in width * np.array([0.0, 0.3, 1.0, 3.0, 7.0, 12.0]):
        of_cover, of_choices = delta_at(covered, float(epsilon)), delta_at(every, float(epsilon))
        assert of_cover >= of_choices * (1 - 1e-9)
        if name != "laws of a few atoms" and of_choices > 1e-10:
            assert of_cover <= of_choices * 1.01


def test_envelopes_help_out_where_a_cover_says_too_little(monkeypatch):
    monkeypatch.setattr(convolution, "_MAX_CHOICES", 1)
    kinds = DIFFERENT["laws of a few atoms"]
    released = total(*((presence(k, p), times) for k, p, times in kinds))
    enveloped = released._enveloped()
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        assert delta_at(released, epsilon) <= delta_at(enveloped, epsilon) * 1.0201
    monkeypatch.setattr(convolution, "_MAX_COVER_EXCESS", math.inf)
    assert delta_at(total(*released.parts), 0.0) > 1.2 * delta_at(enveloped, 0.0)


@pytest.mark.usefixtures("nothing_enumerated")
def test_noise_beside_different_days_is_one_more_factor():
    days = [(presence(20 + 9 * day, 0.1), 1) for day in range(6)]
    covered = total(*days, (Directions(right=NoiseLosses(noise=0.2, cells=1)), 3))
    every = with_every_choice(covered)
    for epsilon in (0.0, 0.5, 2.0, 4.0):
        assert delta_at(covered, epsilon) >= delta_at(every, epsilon) * (1 - 1e-9)
        assert delta_at(covered, epsilon) <= delta_at(every, epsilon) * 1.02 or epsilon > 2.0


@pytest.mark.parametrize("days", [90, pytest.param(365, marks=pytest.mark.slow)])
def test_a_year_of_different_days_is_within_a_tenth_of_a_percent(days):
    kinds = [(20 + day, 0.1, 1) for day in range(days)]
    year = total(*((presence(*kind[:2]), 1) for kind in kinds))
    right = total(*((Directions(right=part.right), times) for part, times in year.parts))
    epsilon = year.smallest_epsilon(1e-9)
    assert delta_at(year, epsilon) <= 1e-9
    # The right order on every day, on a finer grid, is one choice, and about the best one.
    assert right.smallest_epsilon(1e-9) * (1 - 1e-4) <= epsilon <= right.smallest_epsilon(1e-9) * 1.001


@settings(max_examples=few(200), deadline=None)
@given(data=st.data(), days=st.integers(1, 6), frequencies=st.integers(1, 5), alike=st.booleans())
def test_a_cover_holds_for_all_weights(data, days, frequencies, alike):
    size = days * frequencies
    parts = st.lists(st.floats(-1, 1), min_size=size, max_size=size)
    right, left = (
        (np.array(data.draw(parts)) + 1j * np.array(data.draw(parts))).reshape(days, frequencies) for _ in range(2)
    )
    if alike:
        left = right * np.exp(0.1 * left)
    times = np.array(data.draw(st.lists(st.integers(1, 3), min_size=days, max_size=days)), dtype=float)
    sizes = np.prod(np.maximum(np.abs(right), np.abs(left)) ** times[:, None], axis=0) * (1 + 1e-9)
    rows, apart = cover(right, left, times, np.ones(frequencies, dtype=complex), sizes)
    chosen = np.array([data.draw(st.integers(0, int(most))) for most in times])
    product = np.prod(right ** chosen[:, None] * left ** (times - chosen)[:, None], axis=0)
    weights = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=frequencies, max_size=frequencies)))
    weights = weights * np.exp(1j * np.arange(frequencies))
    sums, doubt = (rows * weights).real.sum(axis=1), (apart * np.abs(weights)).sum(axis=1)
    best = (np.maximum(sums[1:], sums[:-1]) + doubt).max()
    assert (product * weights).real.sum() <= best + 1e-12 * float(sizes.max() + 1)


def law(draw, seed):
    width = int(draw.integers(1, 40))
    masses = draw.random(width) ** (1 + 8 * seed % 3) * 10.0 ** -draw.integers(0, 30, width)
    return GridLaw(start=int(draw.integers(-60, 60)), masses=masses / masses.sum(), infinite=0.0)


@thinned(2)
@pytest.mark.parametrize("seed", one_in(3, range(3)))
@pytest.mark.parametrize(("period", "most"), [(64, None), (1024, None), (32, None), (4096, 700)])
def test_a_table_of_laws_has_their_moments_and_transforms(seed, period, most):
    draw = np.random.default_rng(seed)
    pairs = [((law(draw, seed), law(draw, seed)), int(draw.integers(1, 4))) for _ in range(70)]
    rate = float(draw.choice([0.0, 0.01, 0.3]))
    tables = loss_tables(pairs)
    assert sum(len(table.times) for table in tables) == len(pairs)
    ordered = sorted(pairs, key=lambda pair: max(len(loss_law.masses) for loss_law in pair[0]))
    kept = np.arange(period // 2 + 1)[:most]
    at_row = 0
    for table in tables:
        moments, means, variances = table.tilted(rate)
        spectrum = table.spectrum(rate, period)
        values, few = transforms([spectrum], kept), transforms([spectrum], kept[:5])
        log_sizes = spectrum.log_sizes[kept] + 1e-9
        for row in range(len(table.times)):
            laws, times = ordered[at_row]
            at_row += 1
            assert table.times[row] == times
            scale, largest = max(loss_law.tilted(rate).log_moment for loss_law in laws), np.zeros(len(kept))
            for order, loss_law in enumerate(laws):
                tilt = loss_law.tilted(rate)
                assert moments[order, row] == pytest.approx(tilt.log_moment, rel=1e-12, abs=1e-11)
                assert means[order, row] == pytest.approx(tilt.mean, rel=1e-9, abs=1e-9)
                assert variances[order, row] == pytest.approx(tilt.variance, rel=1e-6, abs=1e-6)
                cells = loss_law.start + np.arange(len(loss_law.masses))
                exact = np.exp(np.log(loss_law.masses) + rate * cells - scale) @ np.exp(
                    -2j * np.pi * (np.multiply.outer(cells, kept) % period) / period
                )
                assert np.all(np.abs(values[order, row] - exact) <= spectrum.doubt[row] + 1e-12)
                assert np.all(np.abs(few[order, row] - exact[:5]) <= spectrum.doubt[row] + 1e-12)
                largest = np.maximum(largest, np.abs(exact) * (1.0 - 1e-12))
            log_sizes -= times * np.log(np.maximum(largest, 1e-12))
        # No choice of orders is larger anywhere than what bounds them all.
        assert (log_sizes >= 0.0).all()
