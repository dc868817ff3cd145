"""The enumeration agrees with the oracle of the tests, which shares no line with it."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from oracle.laws import BITS, exact_exp
from oracle.releases import count_losses, table_losses

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.extras.assurance.attacks.enumeration import LARGEST, enumerated, size


def _noise(epsilon: float | None) -> pkdp.GeometricNoise | None:
    return None if epsilon is None else pkdp.GeometricNoise(epsilon)


def _compare(mechanism: object, crowd: Crowd, epsilon: float, losses: tuple[object, object]) -> None:
    for each, wanted in zip((crowd, crowd.reversed()), losses, strict=True):
        bounds = enumerated(mechanism, each, epsilon)
        assert bounds is not None
        assert bounds.lower <= bounds.upper
        assert float(bounds.upper - bounds.lower) < 1e-80
        assert float(bounds.lower) == pytest.approx(float(flint.arb(wanted).mid()), rel=1e-12, abs=1e-18)


@pytest.mark.parametrize("seed", range(60))
def test_counts_agree_with_the_oracle(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    epsilon, noise = float(rng.uniform(0, 2)), float(rng.uniform(0.2, 3)) if rng.random() < 0.5 else None
    release = int(rng.integers(0, 7)) if noise is not None and rng.random() < 0.6 else None
    k = int(rng.integers(1, 5)) if rng.random() < 0.7 else None
    above = int(rng.integers(1, 4)) if noise is None and rng.random() < 0.4 else None
    m, b = int(rng.integers(0, 6)), int(rng.integers(0, 3))
    chances = rng.random(m + b).tolist()
    controlled = 0 if b else int(rng.integers(0, 3))
    people = [Group(people=1, chances=(p,)) for p in chances]
    crowd = Crowd(cells=1, unknown=tuple(people[:m]), known=tuple(people[m:]), controlled=(controlled,))
    with flint.ctx.workprec(BITS):
        numbers = [flint.arb(p) for p in chances]
        losses = count_losses(
            numbers[:m],
            numbers[m:] if b else controlled,
            epsilon,
            exact_exp,
            k=k,
            k_complement=above,
            release=release,
            noise=noise,
            population=crowd.population,
        )
    _compare(
        pkdp.Count(k=k, k_complement=above, noise=_noise(noise), release_threshold=release), crowd, epsilon, losses
    )


@pytest.mark.parametrize("seed", range(60))
def test_tables_agree_with_the_oracle(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    epsilon, noise = float(rng.uniform(0, 2)), float(rng.uniform(0.2, 3)) if rng.random() < 0.5 else None
    release = int(rng.integers(0, 6)) if noise is not None and rng.random() < 0.6 else None
    k = int(rng.integers(1, 4)) if rng.random() < 0.8 else None
    cells = 2 if noise is not None else 3
    m, b = int(rng.integers(0, 3)), int(rng.integers(0, 2))
    chances = rng.dirichlet([1] * (cells + 1), m + b)[:, :cells].tolist()
    controlled = (0,) * cells if b else tuple(rng.integers(0, 2, cells).tolist())
    value = rng.random() < 0.5
    # Two equal people are one group.
    people = [Group(people=2 if number == 0 and m else 1, chances=tuple(row)) for number, row in enumerate(chances)]
    crowd = Crowd(
        cells=cells,
        unknown=tuple(people[:m]),
        known=tuple(people[m:]),
        controlled=controlled,
        first=0,
        second=1 if value else None,
    )
    with flint.ctx.workprec(BITS):
        rows = [[*map(flint.arb, row), 1 - sum(map(flint.arb, row))] for row in chances]
        losses = table_losses(
            [*rows[:1], *rows[:m]] if m else [],
            rows[m:] if b else controlled,
            epsilon,
            exact_exp,
            cells=cells,
            lives=(0, 1 if value else cells),
            k=k,
            release=release,
            noise=noise,
        )
    _compare(pkdp.Histogram(k=k, noise=_noise(noise), release_threshold=release), crowd, epsilon, losses)


def test_balls_enclose_what_rationals_give() -> None:
    k, people, p = 5, 40, Fraction(0.1)
    law = [math.comb(people, count) * p**count * (1 - p) ** (people - count) for count in range(people + 1)]
    first, second = [Fraction(0), *law], [*law, Fraction(0)]
    shown = sum(
        max(Fraction(0), first_chance - second_chance)
        for first_chance, second_chance in zip(first[k:], second[k:], strict=True)
    )
    exact = shown + max(Fraction(0), sum(first[:k]) - sum(second[:k]))
    # Ten who are surely absent change nothing.
    for absent in (0, 10):
        groups = (Group(people=people, chances=(0.1,)), Group(people=absent, chances=(0.0,)))
        bounds = enumerated(pkdp.Count(k=k), Crowd(cells=1, unknown=groups), 0.0)
        assert bounds is not None
        assert bounds.lower <= exact <= bounds.upper
        assert bounds.upper - bounds.lower < Fraction(1, 10**80)


def test_thousands_of_people_are_enumerated_and_too_many_are_not() -> None:
    crowd = Crowd(cells=1, unknown=(Group(people=6_000, chances=(0.1,)), Group(people=500, chances=(0.3,))))
    bounds = enumerated(pkdp.Count(k=800), crowd, 0.2)
    assert bounds is not None
    assert 0 < bounds.lower <= bounds.upper < bounds.lower * (1 + Fraction(1, 10**60))
    huge = Crowd(cells=1, unknown=(Group(people=10**7, chances=(0.1,)),))
    assert size(pkdp.Count(k=800), huge) > LARGEST
    assert enumerated(pkdp.Count(k=800), huge, 0.2) is None


def test_other_cells_where_nobody_can_be_say_nothing() -> None:
    alone = Crowd(cells=1, unknown=(Group(people=9, chances=(0.3,)),))
    wide = Crowd(cells=4, unknown=(Group(people=9, chances=(0.3, 0.0, 0.0, 0.0)),))
    narrow_bounds, wide_bounds = (enumerated(pkdp.Histogram(k=3), crowd, 0.4) for crowd in (alone, wide))
    assert narrow_bounds is not None
    assert wide_bounds is not None
    assert narrow_bounds.lower == wide_bounds.lower
