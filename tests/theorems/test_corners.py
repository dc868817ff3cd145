"""Numbers at the ends of the floats: δ is a probability that does not increase with ε, or a refusal says why."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.theorems import boxed_threshold, counting, merely_known, noisy_search, noisy_threshold
from pkdp_pipeline.theorems.theorems import bounds_of

LEAST, LARGEST = 5e-324, 1.0 - 2.0**-53
EPSILONS = [0.0, LEAST, 1e-9, 1.0, 350.0, 700.0, 710.0, 745.0, 1e308]
CHANCES = [LEAST, 1e-12, 1e-7, 1e-5, 1e-3, 0.1, 0.3, 0.5, 0.9, 1.0 - 1e-6, LARGEST]
NOISES = [LEAST, 1e-9, 0.1, 1.0, 350.0, 700.0, 710.0, 745.0, 1e300]
PEOPLE = [1, 9, 60, 1000, 10**5, 10**6]

UNEVEN = 1e-300
"""A δ below this may rise by as much."""


def drawn(seed):
    """Return a mechanism's and an attacker's arguments, and what is protected."""
    dice = random.Random(seed)

    def often(share, *values):
        return dice.choice(values) if dice.random() < share else None

    kind = dice.choice([pkdp.Count, pkdp.Histogram])
    steps = {"k": often(0.6, 2, 3, 30, 1000, 2**31), "noise": often(0.6, *NOISES)}
    if steps["noise"] is not None:
        steps["release_threshold"] = often(0.5, -5, 1, 4, 40, 2000, 2**31)
    if kind is pkdp.Count:
        steps["k_complement"] = often(0.25, 2, 3, 40, 2**31)
    else:
        steps["cells_per_unit"] = often(0.2, 2, 3, 100) or 1
    attacker = {"p_max": often(0.85, *CHANCES), "unknown": often(0.6, *PEOPLE)}
    attacker["p_min"] = often(0.5, *(p for p in CHANCES if p <= (attacker["p_max"] or 1.0)))
    most = [people for people in (*PEOPLE, 10**9) if people >= (attacker["unknown"] or 0)]
    attacker |= {"unknown_max": often(0.2, *most), "known": often(0.3, 1, 5, 10**6) or 0}
    attacker["influence"] = dice.choice(["passive", "active"])
    if kind is pkdp.Histogram:
        attacker |= {"p_max_between": often(0.3, 0.5, 0.6, 0.9, LARGEST), "independent_cells": dice.random() < 0.3}
    return kind, steps, attacker, "value" if kind is pkdp.Histogram and dice.random() < 0.5 else "presence"


def check(kind, steps, attacker, protects="presence"):
    """Certify, and hold the numbers against each other; a refusal is an answer, too."""
    noise = steps.get("noise")
    steps = {**steps, "noise": None if noise is None else pkdp.GeometricNoise(noise)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            certificate = pkdp.certify(kind(**steps), pkdp.AttackerModel(**attacker), protects=protects)
        except PkdpError:
            return
        attained, certified = certificate.delta_bounds(EPSILONS)
        epsilon = certificate.epsilon(1e-6)
    for side in (attained, certified):
        assert np.isfinite(side).all()
        assert ((side >= 0.0) & (side <= 1.0)).all()
    assert (attained <= certified).all()
    assert (certified[1:] <= certified[:-1] * 1.01 + UNEVEN).all()
    assert (attained[1:] <= certified[:-1] + UNEVEN).all()
    assert epsilon >= 0.0


SLOW = {0, 4, 6, 10, 15, 16, 18, 22, 29, 39, 52, 56, 59, 60, 61, 62, 64, 76}
"""Cases that take more than half a second; they are in the campaign."""

FOUND = [
    (pkdp.Count, {"k": 30, "k_complement": 3}, {"p_max": 0.9, "p_min": 0.3, "unknown": 1}),
    (pkdp.Count, {"k": 30, "k_complement": 2**31}, {"p_max": 0.3, "p_min": 1e-5, "unknown": 60}),
    pytest.param((pkdp.Count, {"k": 2**31}, {"p_max": 0.9, "p_min": 1e-7, "unknown": 9}), marks=pytest.mark.slow),
    (
        pkdp.Count,
        {"noise": 700.0, "release_threshold": 2**31},
        {"p_max": 0.001, "p_min": 1e-5, "unknown": 9, "unknown_max": 60, "known": 5, "influence": "active"},
    ),
    (pkdp.Count, {"k": 2**31}, {"p_max": LARGEST, "p_min": 0.1, "unknown": 1}),
    pytest.param((pkdp.Count, {"k": 1000, "noise": 0.1}, {"p_max": 0.9, "known": 1}), marks=pytest.mark.slow),
    pytest.param((pkdp.Histogram, {"k": 30, "noise": 1e-9}, {"p_max": 1e-12}), marks=pytest.mark.slow),
    (pkdp.Histogram, {"k": 2, "noise": 710.0}, {"p_max": LEAST, "p_min": LEAST, "unknown": 9, "known": 10**6}),
    (pkdp.Histogram, {"k": 2, "cells_per_unit": 3}, {"p_max": 1e-3, "independent_cells": True}),
    (pkdp.Histogram, {"k": 30, "cells_per_unit": 100}, {"p_max": 1.0 - 1e-6}),
    (pkdp.Histogram, {"k": 1000, "cells_per_unit": 2}, {"p_max": 0.5, "unknown": 9, "independent_cells": True}),
]
"""Numbers that overflowed, or were no integers."""


@thinned(4)
@pytest.mark.parametrize("seed", one_in(4, sorted(set(range(80)) - SLOW)))
def test_every_float_has_a_number_or_a_refusal(seed):
    check(*drawn(seed))


@thinned(3)
@pytest.mark.parametrize("case", FOUND)
def test_what_overflowed_has_one(case):
    check(*case)


@pytest.mark.slow
def test_campaign():
    for seed in [*sorted(SLOW), *range(80, 500)]:
        try:
            check(*drawn(seed))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {drawn(seed)}") from error


BUDGETED = [
    (counting, pkdp.Count(), {"p_min": 0.05, "p_max": 0.95, "unknown": 100}),
    (counting, pkdp.Count(noise=pkdp.GeometricNoise(2.0)), {"p_min": 0.05, "p_max": 0.95, "unknown": 100}),
    (boxed_threshold, pkdp.Count(k=20), {"p_min": 0.2, "p_max": 0.6, "unknown": 40}),
    (boxed_threshold, pkdp.Count(k=5, k_complement=4), {"p_min": 0.2, "p_max": 0.6, "unknown": 30}),
    (noisy_search, pkdp.Count(k=10, noise=pkdp.GeometricNoise(0.5), release_threshold=30), {"p_max": 0.1}),
    (noisy_search, pkdp.Histogram(k=20, noise=pkdp.GeometricNoise(0.5), release_threshold=40), {"p_max": 0.3}),
    (
        noisy_search,
        pkdp.Count(k=10, noise=pkdp.GeometricNoise(0.5)),
        {"p_min": 0.2, "p_max": 0.6, "unknown": 20},
    ),
]


def brackets(mechanism, attacker, epsilons):
    """Return the sides of every bound that holds, made anew."""
    for module in (counting, boxed_threshold, noisy_search, noisy_threshold, merely_known):
        for member in vars(module).values():
            if hasattr(member, "cache_clear"):
                member.cache_clear()
    bounds = bounds_of.__wrapped__(mechanism, pkdp.AttackerModel(**attacker), "presence").partial
    return [(applied.bound.slack, *applied.bound.bracket(epsilons)) for applied in bounds]


@thinned(3)
@pytest.mark.parametrize("case", BUDGETED, ids=lambda case: f"{case[1]}-{case[2]}")
def test_a_search_that_stops_early_certifies_no_less(case, monkeypatch):
    module, mechanism, attacker = case
    epsilons = np.array([0.05, 0.3, 1.0])
    whole = brackets(mechanism, attacker, epsilons)
    for name in (name for name in vars(module) if name.startswith("_MAX_EVALUATED")):
        monkeypatch.setattr(module, name, 3)
    few = brackets(mechanism, attacker, epsilons)
    for (slack, lower, upper), (_, least, most) in zip(whole, few, strict=True):
        assert (least <= upper).all()
        assert (most >= lower).all()
        assert (most >= upper * (1.0 - slack - 1e-9)).all()
        assert ((least >= 0.0) & (most <= 1.0)).all()
    # The budget is what stops it.
    assert any((most > 1.001 * upper).any() for (*_, upper), (*_, most) in zip(whole, few, strict=True))
