"""What attackers reach of a count of any kind, against exact enumeration of the same attackers."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from itertools import combinations_with_replacement, product
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.laws import BITS, exact_exp, lower_end
from oracle.releases import count_losses, larger_loss, table_losses
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.reached import Reached, ReachedBesideOthers, ReachedBetween

SHAPES = st.fixed_dictionaries(
    {
        "k": st.one_of(st.none(), st.integers(1, 5)),
        "k_complement": st.one_of(st.none(), st.integers(1, 5)),
        "noise": st.one_of(st.none(), st.sampled_from([0.3, 1.0])),
        "p_min": st.sampled_from([0.0, 0.1, 0.4]),
        "p_max": st.sampled_from([0.4, 0.7, 1.0]),
        "unknown": st.integers(0, 6),
    }
)


def exact(bound: Reached, low: int, high: int, epsilon: float) -> float:
    """Return the larger divergence of one of the attackers, in ball arithmetic, never above it."""
    shape = {"k": bound.k, "k_complement": bound.k_complement, "noise": bound.noise, "release": bound.release_threshold}
    return float(larger_loss([(low, bound.p_min), (high, bound.p_max)], epsilon, **shape))


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.one_of(st.none(), st.integers(-2, 8)), st.sampled_from([0.05, 0.4, 1.5]))
def test_it_is_what_the_best_of_those_tried_reaches(shape: Any, release: int | None, epsilon: float) -> None:
    release = None if shape["noise"] is None else release
    bound = Reached(theorem="attack", cap=9, release_threshold=release, **shape)
    attained, nothing = bound.bracket(np.array([epsilon]))
    best = most = max((exact(bound, *crowd, epsilon) for crowd in bound.crowds()), default=0.0)
    if bound._boxed() is not None:
        # Those near the worst one of a theorem are tried as well.
        declared = ((low, high) for low, high in product(range(10), repeat=2) if bound.unknown <= low + high <= 9)
        most = max(exact(bound, *crowd, epsilon) for crowd in declared)
    assert best * (1.0 - 1e-9) - 1e-9 <= float(attained[0]) <= most
    assert nothing[0] == 1.0


@thinned(3)
@pytest.mark.parametrize(
    ("mechanism", "attacker", "most"),
    [
        ({"k": 20, "noise": 0.5}, {"p_min": 0.2, "p_max": 0.6, "unknown": 40}, 1.05),
        ({"noise": 0.5, "release_threshold": 20}, {"p_min": 0.2, "p_max": 0.6, "unknown": 40}, 1.01),
        ({"noise": 0.5, "release_threshold": 20}, {"p_min": 0.2, "p_max": 0.6, "unknown": 40, "known": 19}, 2.0),
        ({"k": 20, "k_complement": 20}, {"p_min": 0.05, "p_max": 0.1}, 1.05),
        ({"k": 20, "k_complement": 20}, {"p_min": 0.2, "p_max": 0.6, "unknown": 100}, 1.0081),
        ({"k": 20, "k_complement": 20}, {"p_min": 0.2, "p_max": 0.6, "unknown": 40}, 1.2),
        ({"k_complement": 10, "noise": 1.0, "release_threshold": 3}, {"p_min": 0.3, "p_max": 0.7}, 1.5),
        ({"k": 10, "noise": 1.0, "release_threshold": 20}, {"p_max": 0.2, "known": 9}, 10.0),
    ],
)
def test_every_count_has_an_attained_side(mechanism: dict[str, Any], attacker: dict[str, Any], most: float) -> None:
    if "noise" in mechanism:
        mechanism = mechanism | {"noise": pkdp.GeometricNoise(mechanism["noise"])}
    certificate = pkdp.certify(pkdp.Count(**mechanism), pkdp.AttackerModel(**attacker))
    attained, certified = certificate.delta_bounds(0.3)
    assert 0.0 < attained <= certified <= most * attained


def cells_exact(bound: ReachedBetween, coins: int, epsilon: float) -> list[Any]:
    """Return both divergences of two cells between which so many others toss, in ball arithmetic."""
    with flint.ctx.workprec(BITS):
        people = [[flint.arb(bound.p), 1 - flint.arb(bound.p), 0]] * coins
        shape = {"k": bound.k, "noise": bound.noise, "release": bound.release_threshold}
        sides = table_losses(people, (0, 0), epsilon, exact_exp, cells=2, lives=(0, 1), **shape)
        return [float(lower_end(flint.arb(side))) for side in sides]


@settings(max_examples=25, deadline=None)
@given(
    st.one_of(st.none(), st.integers(2, 4)),
    st.one_of(st.none(), st.integers(0, 6)),
    st.sampled_from([0.5, 0.6, 0.9]),
    st.sampled_from([0.4, 1.0]),
    st.sampled_from([0.05, 0.4, 1.5]),
)
def test_two_cells_tell_what_the_best_of_those_tried_reaches(
    k: int | None, release: int | None, p: float, noise: float, epsilon: float
) -> None:
    bound = ReachedBetween(theorem="attack", p=p, noise=noise, k=k, release_threshold=release, cap=6)
    attained, nothing = bound.bracket(np.array([epsilon]))
    best = max(max(cells_exact(bound, people, epsilon)) for people in bound.crowds())
    assert best * (1.0 - 1e-9) - 1e-9 <= float(attained[0]) <= best
    assert nothing[0] == 1.0


def corners(cells: int, least: float, odds: float) -> list[list[float]]:
    """Return the vertices of all laws over cells and absence with `least` in every cell, at most `odds` of absence."""
    vertices = []
    for up in product((False, True), repeat=cells):
        absent = (1.0 - least * up.count(False)) / (1.0 + odds * up.count(True))
        law = [odds * absent if more else least for more in up]
        if min(law) >= least * (1.0 - 1e-12) and max(law) <= odds * absent * (1.0 + 1e-12):
            vertices.append([*law, absent])
    return vertices


@pytest.mark.parametrize(("least", "people", "noise", "epsilon"), [(0.3, 3, 0.5, 0.1), (0.3, 3, 2.0, 0.1)])
def test_presence_beside_noised_cells_is_told_to_somebody(
    least: float, people: int, noise: float, epsilon: float
) -> None:
    # A third cell does not fit; who is in another cell is not seen exactly, so that theorem F is not reached.
    truth = max(
        max(table_losses(crowd, (0,) * cells, epsilon, np.exp, cells=cells, lives=(0, cells), noise=noise))
        for cells in (1, 2)
        for crowd in combinations_with_replacement(corners(cells, least, 1.0), people)
    )
    attacker = pkdp.AttackerModel(p_min=least, p_max=0.5, unknown=people)
    noised = pkdp.certify(pkdp.Histogram(noise=pkdp.GeometricNoise(noise)), attacker)
    attained, certified = noised.delta_bounds(epsilon)
    assert 0.9 * truth <= attained <= truth * (1.0 + 1e-9)
    assert truth <= certified


@pytest.mark.parametrize("release", [None, 3])
def test_the_value_beside_noised_cells_is_told_to_somebody(release: int | None) -> None:
    least, people = 0.3, 2
    truth = 0.0
    for cells in (2, 3):
        laws = [[least] * (cells + 1) for _ in range(cells + 1)]
        for cell, law in enumerate(laws):
            law[cells] = 0.0
            law[cell] += 1.0 - least * cells
        for crowd in combinations_with_replacement(laws, people):
            sides = table_losses(
                crowd, (0,) * cells, 0.1, np.exp, cells=cells, lives=(0, 1), noise=0.5, release=release
            )
            truth = max(truth, *sides)
    noised = pkdp.Histogram(noise=pkdp.GeometricNoise(0.5), release_threshold=release)
    attacker = pkdp.AttackerModel(p_min=least, unknown=people, unknown_max=people)
    attained, certified = pkdp.certify(noised, attacker, protects="value").delta_bounds(0.1)
    assert 0.9 * truth <= attained <= truth * (1.0 + 1e-9)
    assert truth <= certified


@thinned(2)
@pytest.mark.parametrize(
    ("mechanism", "attacker", "most"),
    [
        ({"noise": 0.5}, {"p_min": 0.1, "unknown": 300}, 3.0),
        ({"noise": 0.5, "release_threshold": 9}, {"p_min": 0.1, "unknown": 300}, 3.0),
        ({"k": 20, "noise": 0.5}, {"p_max_between": 0.6}, 1.1),
        ({"k": 20, "noise": 1.0, "release_threshold": 30}, {"p_max_between": 0.6}, 3.0),
    ],
)
def test_noised_cells_have_an_attained_side(mechanism: dict[str, Any], attacker: dict[str, Any], most: float) -> None:
    noise = pkdp.GeometricNoise(mechanism["noise"])
    certificate = pkdp.certify(
        pkdp.Histogram(**mechanism | {"noise": noise}), pkdp.AttackerModel(**attacker), protects="value"
    )
    attained, certified = certificate.delta_bounds(0.3)
    assert 0.0 < attained <= certified <= most * attained


def test_only_declared_attackers_are_tried() -> None:
    bound = Reached(theorem="attack", p_min=0.2, p_max=0.6, unknown=30, cap=50, k=4)
    assert all(30 <= low + high <= 50 for low, high in bound.crowds())
    assert replace(bound, cap=20).crowds() == []
    attained, _ = replace(bound, unknown=5000, cap=None).bracket(np.array([0.1]))
    assert attained[0] == 0.0


@pytest.mark.slow
def test_whoever_knows_people_is_unsure_of_all_who_are_declared_unknown() -> None:
    attacker = pkdp.AttackerModel(p_min=0.05, p_max=0.05, unknown=36, known=1)
    attained, certified = pkdp.certify(pkdp.Count(k=2), attacker).delta_bounds(1.0)
    # With p_min = p_max and nobody or one known, the best number of unknown people is among these.
    exact = max(
        max(map(float, count_losses([0.05] * people, [0.05] * known, 1.0, math.exp, k=2)))
        for people in range(36, 61)
        for known in (0, 1)
    )
    assert 0.0 < attained <= exact <= certified


@pytest.mark.parametrize(("p", "others", "people"), [(None, 1, 4), (0.5, 2, 3), (0.4, 1, 5)])
def test_other_cells_show_no_more_than_all_cells_do(p: float | None, others: int, people: int) -> None:
    """Their sum is part of what is shown: against all cells of the table, each with its noise."""
    noise, p_min, alpha = 1.0, 0.1, math.exp(-1.0)
    attack = ReachedBesideOthers(theorem="", p_min=p_min, unknown=people, noise=noise, others=others, p=p)
    each = attack.elsewhere / others
    own = [p_min, p_min, each] if p is None else [p_min, *[each] * others]
    cells, values = len(own), np.arange(-22, 22 + people)
    chances = [*own, 1.0 - sum(own)]
    counts = {(0,) * cells: 1.0}
    for _ in range(people):
        grown: dict[tuple[int, ...], float] = {}
        for numbers, weight in counts.items():
            for place, chance in enumerate(chances):
                more = tuple(count + (index == place) for index, count in enumerate(numbers))
                grown[more] = grown.get(more, 0.0) + weight * chance
        counts = grown
    lives = []
    for place in (0, 1 if p is None else cells):
        law = np.zeros((len(values),) * cells)
        for numbers, weight in counts.items():
            looks = [
                (1 - alpha) / (1 + alpha) * alpha ** np.abs(values - count - (index == place))
                for index, count in enumerate(numbers)
            ]
            law += weight * functools.reduce(np.multiply.outer, looks)
        lives.append(law)
    for epsilon in (0.1, 0.6):
        exact = max(np.maximum(0.0, a - math.exp(epsilon) * b).sum() for a, b in (lives, lives[::-1]))
        attained = attack.bracket(np.array([epsilon]))[0][0]
        assert 0.8 * exact <= attained <= exact * (1.0 + 1e-7)
