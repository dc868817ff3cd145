"""Sums of clamped contributions: the curve against neighbouring inputs that are enumerated in rational numbers."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkdp_pipeline import AttackerModel, GeometricNoise, Histogram, Leakage, OncePerUnit, Sum, certify, compose
from pkdp_pipeline.theorems.theorems import bounds_of
from pkdp_pipeline.theorems.worst_case import NoiseCurve, SumCurve

ABSENT = None
RATIOS = [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10), Fraction(1), Fraction(3, 2), Fraction(4), Fraction(33)]
"""Values of e^ε."""


@lru_cache(maxsize=4096)
def outcomes(alpha, first, second, others, threshold, found_cells):
    """Return the chances of all that one cell shows of two contributions, outcomes of one likelihood ratio together.

    `others`: the sum of the other people in the cell; None: nobody else is in it.
    """
    alone = found_cells and others is None
    sums = [None if alone and own is ABSENT else (others or 0) + (own or 0) for own in (first, second)]
    values = [value for value in sums if value is not None]
    if not values:
        return ((Fraction(1), Fraction(1)),)
    low, high = min(values) - 1, max(values)
    if threshold is not None:
        low, high = min(low, threshold - 1), max(high, threshold)

    def chance(total, value):
        if total is None:
            return Fraction(int(value is None))
        if value is None:
            return Fraction(0) if threshold is None else 1 - at_least(total, threshold)
        if threshold is not None and value < threshold:
            return Fraction(0)
        if value == low:
            return 1 - at_least(total, low + 1)
        return at_least(total, value) - (0 if value == high else at_least(total, value + 1))

    def at_least(total, value):
        away = value - total
        return alpha**away / (1 + alpha) if away > 0 else 1 - alpha ** (1 - away) / (1 + alpha)

    pairs = [tuple(chance(total, value) for total in sums) for value in [None, *range(low, high + 1)]]
    merged = {}
    for p, q in pairs:
        if p or q:
            key = None if q == 0 else p / q
            merged[key] = tuple(map(sum, zip(merged.get(key, (0, 0)), (p, q), strict=True)))
    assert sum(p for p, _ in merged.values()) == sum(q for _, q in merged.values()) == 1
    return tuple(merged.values())


def divergence(cells, ratio):
    """Return the hockey-stick divergence of a product of cells at ``e^ε``."""
    total = Fraction(0)
    for picked in itertools.product(*cells):
        p, q = (math.prod((pair[side] for pair in picked), start=Fraction(1)) for side in (0, 1))
        total += max(Fraction(0), p - ratio * q)
    return total


def lives(bounds, cells, table):
    """Yield every life: what it adds to each cell of the table, in at most so many of them."""
    for life in itertools.product([ABSENT, *range(bounds[0], bounds[1] + 1)], repeat=table):
        if sum(own is not ABSENT for own in life) <= cells:
            yield life


def neighbours(bounds, cells, table, protects):
    nowhere = (ABSENT,) * table
    for first, second in itertools.product(lives(bounds, cells, table), repeat=2):
        if first != second and (protects == "value" or nowhere in (first, second)):
            yield first, second


def curve_of(alpha, bounds, *, cells=1, table=None, protects="presence", threshold=None):
    # The float is at most half a unit away from the noise in rational numbers: compared with that much room.
    noise = -math.log(alpha) * max(map(abs, bounds))
    mechanism = Sum(bounds, GeometricNoise(noise), release_threshold=threshold, cells_per_unit=cells)
    mechanism = mechanism if threshold is None else mechanism.of_found_cells()
    return bounds_of(mechanism, AttackerModel(), protects, table).worst


def delta_at(curve, ratio, side=1):
    """Return the attained or certified δ at ``e^ε``, of either sign: δ(-x) = 1 - e^{-x}(1 - δ(x))."""
    values = curve.bracket(np.array([abs(math.log(ratio))]))[side]
    return float(values[0]) if ratio >= 1 else 1.0 - float(ratio) * (1.0 - float(values[0]))


EXAMPLES = [
    # bounds, cells, table, protects, threshold, what the others of a cell may add
    ((0, 1), 1, 2, "value", None, [None]),
    ((0, 3), 1, 1, "presence", None, [None]),
    ((0, 3), 1, 1, "presence", 4, [None, 0, 30]),
    ((-2, 1), 1, 1, "value", None, [None]),
    ((-2, 2), 1, 2, "value", None, [None]),
    ((-2, 1), 1, 2, "value", 3, [None, 25]),
    ((1, 2), 1, 2, "value", 2, [None, 25]),
    ((-1, 2), 2, 2, "presence", 3, [None, 25]),
    ((-1, 1), 2, 2, "value", None, [None]),
    ((0, 2), 2, 3, "value", None, [None]),
    ((-2, -1), 1, 2, "value", 1, [None, 25]),
]


@pytest.mark.parametrize(("bounds", "cells", "table", "protects", "threshold", "beside"), EXAMPLES)
@pytest.mark.parametrize("alpha", [Fraction(1, 3), Fraction(4, 5)])
def test_every_neighbouring_input_is_below_the_curve_and_one_reaches_it(
    alpha, bounds, cells, table, protects, threshold, beside
):
    curve = curve_of(alpha, bounds, cells=cells, table=table, protects=protects, threshold=threshold)
    worst = dict.fromkeys(RATIOS, Fraction(0))
    products = set()
    for first, second in neighbours(bounds, cells, table, protects):
        changed = [place for place in range(table) if first[place] != second[place]]
        for others in itertools.product(beside, repeat=len(changed)):
            products.add(
                tuple(
                    sorted(
                        outcomes(alpha, first[place], second[place], other, threshold, threshold is not None)
                        for place, other in zip(changed, others, strict=True)
                    )
                )
            )
    for cells_shown in products:
        for ratio in RATIOS:
            worst[ratio] = max(worst[ratio], divergence(cells_shown, ratio))
    for ratio, exact in worst.items():
        assert delta_at(curve, ratio) >= float(exact) * (1 - 1e-11)
        # Where cells are found, the others' sum is far above the threshold, and not beyond it.
        room = 1e-8 if threshold is None else 2e-2 if alpha > 0.5 else 1e-8
        assert delta_at(curve, ratio) <= float(exact) * (1 + room) + 1e-12
        assert delta_at(curve, ratio, 0) <= delta_at(curve, ratio)
        assert delta_at(curve, ratio, 0) >= delta_at(curve, ratio) * (1 - 1e-8) - 1e-12


ONCE = [
    # bounds, cells, cells of both tables, threshold, what the others of a cell may add
    ((0, 2), 1, (1, 1), None, [None]),
    ((-2, 2), 1, (1, 2), None, [None]),
    ((-2, 1), 1, (2, 2), None, [None]),
    ((-2, 1), 1, (1, 1), 3, [None, 25]),
    ((0, 1), 2, (3, 2), None, [None]),
]


@pytest.mark.parametrize(("bounds", "cells", "tables", "threshold", "beside"), ONCE)
@pytest.mark.parametrize("alpha", [Fraction(1, 3), Fraction(4, 5)])
def test_whoever_appears_in_one_of_two_releases_is_below_their_total_and_one_reaches_it(
    alpha, bounds, cells, tables, threshold, beside
):
    noise = GeometricNoise(-math.log(alpha) * max(map(abs, bounds)))
    mechanism = Sum(bounds, noise, release_threshold=threshold, cells_per_unit=cells)
    mechanism = mechanism if threshold is None else mechanism.of_found_cells()
    total = compose([certify(mechanism, protects="value", cells=table) for table in tables], OncePerUnit()).worst_case
    absent_first, absent_second = ((ABSENT,) * table for table in tables)
    everybody = {life + absent_second for life in lives(bounds, cells, tables[0])}
    everybody |= {absent_first + life for life in lives(bounds, cells, tables[1])}
    products = set()
    for first, second in itertools.product(everybody, repeat=2):
        changed = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
        for others in itertools.product(beside, repeat=len(changed)):
            shown = zip(changed, others, strict=True)
            products.add(
                tuple(sorted(outcomes(alpha, *pair, other, threshold, threshold is not None) for pair, other in shown))
            )
    for ratio in RATIOS[3:]:
        exact = float(max(divergence(cells_shown, ratio) for cells_shown in products))
        certified = float(total.delta(math.log(ratio)))
        assert exact * (1 - 1e-11) <= certified <= exact * (1 + 0.02) + 1e-9


@st.composite
def attackers(draw):
    lower = draw(st.integers(-3, 2))
    bounds = (lower, draw(st.integers(max(lower, -2), 3).filter(lambda upper: (lower, upper) != (0, 0))))
    cells = draw(st.integers(1, 3))
    table = draw(st.integers(cells, 4))
    protects = draw(st.sampled_from(["presence", "value"]))
    threshold = draw(st.none() | st.integers(0, 6))
    contribution = st.none() | st.integers(*bounds)
    life = st.lists(contribution, min_size=table, max_size=table).filter(
        lambda own: sum(entry is not None for entry in own) <= cells
    )
    first = draw(life)
    second = [ABSENT] * table if protects == "presence" else draw(life)
    pair = (first, second) if draw(st.booleans()) else (second, first)
    others = draw(st.lists(st.none() | st.integers(-9, 9), min_size=table, max_size=table))
    alpha = draw(st.fractions(Fraction(1, 10), Fraction(19, 20), max_denominator=20))
    return alpha, bounds, cells, table, protects, threshold, *pair, others


@given(attackers(), st.fractions(Fraction(1, 30), 30, max_denominator=60))
def test_no_attacker_is_above_the_curve(attacker, ratio):
    alpha, bounds, cells, table, protects, threshold, first, second, others = attacker
    curve = curve_of(alpha, bounds, cells=cells, table=table, protects=protects, threshold=threshold)
    anywhere = curve_of(alpha, bounds, cells=cells, protects=protects, threshold=threshold)
    shown = [
        outcomes(alpha, *own, other, threshold, threshold is not None)
        for own, other in zip(zip(first, second, strict=True), others, strict=True)
        if own[0] != own[1]
    ]
    exact = float(divergence(shown, ratio))
    assert exact * (1 - 1e-11) - 1e-13 <= delta_at(curve, ratio) <= delta_at(anywhere, ratio) + 1e-12


@pytest.mark.parametrize("arguments", [{}, {"moves": True}, {"cells": 3, "moves": True, "appears_at": 4}])
def test_a_sum_of_zeros_and_ones_is_a_count(arguments):
    epsilons = np.array([0.0, 0.2, 0.9, 1.0, 1.3, 2.5, 8.0])
    count = NoiseCurve(theorem="noise", noise=1.0, **arguments)
    curve = SumCurve(theorem="sums", noise=1.0, bounds=(0, 1), **arguments)
    assert curve.parameters == count.parameters
    for own, other in zip(curve.bracket(epsilons), count.bracket(epsilons), strict=True):
        np.testing.assert_allclose(own, other, rtol=3e-10)


@pytest.mark.parametrize(("cells", "bounds"), [(3, (0, 3001)), (2, (-2500, 1700)), (12, (0, 211))])
def test_a_coarse_lattice_is_above_the_fine_one_and_close(cells, bounds, monkeypatch):
    moves = bounds[0] < 0
    coarse = SumCurve(theorem="sums", noise=1.0, bounds=bounds, cells=cells, moves=moves)
    epsilons = np.linspace(0.0, 1.01 * coarse.parameters[0], 37)
    attained, certified = coarse.bracket(epsilons)
    monkeypatch.setattr("pkdp_pipeline.theorems.worst_case._MAX_POINTS", 10**6)
    exact, above = coarse.bracket(epsilons)
    assert (attained <= exact).all()
    assert (exact <= above).all()
    assert (above <= certified * (1 + 1e-9)).all()
    np.testing.assert_allclose(certified[:-3], above[:-3], rtol=0.05, atol=1e-6)
    np.testing.assert_allclose(attained, exact, atol=0.02)


def test_the_end_and_parameters_beyond_use():
    curve = SumCurve(theorem="sums", noise=0.1, bounds=(-3, 7), moves=True, table=1)
    assert curve.parameters[0] == pytest.approx(1.0 / 7.0)
    assert curve.bracket(np.array([curve.parameters[0]]))[1] == 0.0
    strong = SumCurve(theorem="sums", noise=50.0, bounds=(0, 5), cells=100)
    assert strong.bracket(np.array([3.0, 5000.0]))[1].tolist() == [1.0, 0.0]
    # Bounds that one person's lives can hardly change still hide whether she is there.
    assert certify(Sum((4, 5), GeometricNoise(1.0)), protects="value", cells=1).worst_case.parameters == (1.0, 0.0)


def test_what_a_certificate_of_a_sum_says():
    mechanism = Sum((0, 5), GeometricNoise(1.0), release_threshold=40, cells_per_unit=2)
    certificate = certify(mechanism.of_found_cells(), AttackerModel(p_max=0.1))
    assert certificate.partial_bounds == ()
    assert certificate.worst_case.parameters[0] == 2.0
    assert "Each person adds at least 0 and at most 5 to a cell" in certificate.sentence()
    assert type(certificate).from_json(certificate.to_json()) == certificate
    given_total = certify(mechanism, AttackerModel(leakage=(Leakage.total(),)), protects="value")
    assert given_total.worst_case.parameters == (4.0, 0.0)
    # One more cell, or wider noise for the same ε0, is never better.
    wider = certify(Sum((0, 50), GeometricNoise(1.0)), protects="value")
    for epsilon in (0.0, 0.5, 1.5):
        assert wider.delta(epsilon) <= certify(Histogram(noise=GeometricNoise(1.0)), protects="value").delta(epsilon)


@pytest.mark.parametrize(
    ("mechanism", "most"),
    [(Sum((0, 5), GeometricNoise(0.9)), 0.005), (Sum((0, 100), GeometricNoise(0.9), cells_per_unit=10), 0.05)],
)
def test_a_curve_is_quick(mechanism, most):
    certify(mechanism).delta(0.1)
    times = []
    for step in range(3):
        fresh = Sum(mechanism.bounds, GeometricNoise(0.8 - 0.01 * step), cells_per_unit=mechanism.cells_per_unit)
        start = time.process_time()
        certify(fresh).delta(0.3)
        times.append(time.process_time() - start)
    assert min(times) < most
