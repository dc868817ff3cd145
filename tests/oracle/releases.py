"""What each mechanism publishes, and how much it tells: the target's two lives compared, known people included."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import Any

import flint

from oracle.laws import BITS, Law, coin_sum, exact_exp, losses, lower_end, one_more, pushed, table_law

__all__ = ["count_losses", "larger_loss", "noisy_cell", "table_losses"]

Exp = Callable[[float], Any]
Kernel = Callable[[Any], Law]


def noisy_cell(count: int, alpha: Any, top: int, k: int | None, release: int | None) -> Law:
    """Return the law of one noisy cell whose true count is in ``0 … top``.

    Noisy values above `top`, and below 0, are one outcome each: there every likelihood ratio is constant, so
    merging them loses nothing.
    """
    if k is not None and count < k:
        return {None: 1}
    start = 0 if release is None else release
    peak = (1 - alpha) / (1 + alpha)
    law: Law = {o: alpha ** abs(o - count) * peak for o in range(start, top + 1)}
    law["above"] = alpha ** (max(start, top + 1) - count) / (1 + alpha)
    if release is None:
        law["below"] = alpha ** (count + 1) / (1 + alpha)
    else:
        law[None] = 1 - sum(law.values())
    return law


def _averaged(known: Law, compare: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any]:
    """Average both divergences over what a passive attacker happens to know."""
    first: Any = 0
    second: Any = 0
    for state, weight in known.items():
        forwards, backwards = compare(state)
        first, second = first + weight * forwards, second + weight * backwards
    return first, second


def count_losses(
    unknown: Sequence[Any],
    known: Sequence[Any] | int,
    epsilon: float,
    exp: Exp,
    **shape: Any,
) -> tuple[Any, Any]:
    """Return `_of_sum` of a count; `known` is a list of chances (passive) or how many count (active)."""
    known_law: Law = {known: 1} if isinstance(known, int) else dict(enumerate(coin_sum(known)))
    return _of_sum(dict(enumerate(coin_sum(unknown))), known_law, epsilon, exp, **shape)


def _of_sum(
    sum_law: Law,
    known_law: Law,
    epsilon: float,
    exp: Exp,
    *,
    k: int | None = None,
    k_complement: int | None = None,
    release: int | None = None,
    noise: float | None = None,
    population: int = 0,
) -> tuple[Any, Any]:
    """Return `count_losses` for these laws of how many unknown, and how many known people count."""
    top = len(sum_law) + max(known_law)

    @cache
    def kernel(x: int) -> Law:
        hidden = k_complement is not None and population - x < k_complement
        if hidden or (k is not None and x < k):
            return {None: 1}
        return {x: 1} if noise is None else _noisy_count(x, exp, noise, top, release)

    @cache
    def life(ones: int) -> Law:
        return pushed({s + ones: weight for s, weight in sum_law.items()}, kernel)

    def compare(b: int) -> tuple[Any, Any]:
        return losses(life(b + 1), life(b), exp(epsilon))

    return _averaged(known_law, compare)


@lru_cache(maxsize=4096)
def _noisy_count(count: int, exp: Exp, noise: float, top: int, release: int | None) -> Law:
    """Return `noisy_cell`, which many attackers and ε share."""
    return noisy_cell(count, exp(-noise), top, None, release)


@lru_cache(maxsize=256)
def _growing(crowd: tuple[tuple[int, float], ...], chance: float) -> list[list[Any]]:
    """Return a list, to be continued, of the laws of a crowd with 0, 1, 2, ... more people of one chance."""
    return [crowd_law(crowd)]


def crowd_law(crowd: tuple[tuple[int, float], ...]) -> list[Any]:
    """Return the exact law of how many of a crowd count; what crowds have in common is added up once."""
    if not crowd:
        return [flint.arb(1)]
    *others, (people, chance) = crowd
    laws, success = _growing(tuple(others), chance), flint.arb(chance)
    while len(laws) <= people:
        laws.append(one_more(laws[-1], success))
    return laws[people]


def larger_loss(
    crowd: Sequence[tuple[int, float]], epsilon: float, *, known: Sequence[float] | int = 0, **shape: Any
) -> Fraction:
    """Return the larger divergence of a count beside a crowd, given as (people, chance of each), never above it."""
    with flint.ctx.workprec(BITS):
        others: Law = {known: 1} if isinstance(known, int) else dict(enumerate(crowd_law(tuple((1, p) for p in known))))
        people = sum(people for people, _ in crowd) + (known if isinstance(known, int) else len(known)) + 1
        sum_law: Law = dict(enumerate(crowd_law(tuple(crowd))))
        sides = _of_sum(sum_law, others, epsilon, exact_exp, population=people, **shape)
        return max(lower_end(flint.arb(side)) for side in sides)


def table_losses(
    unknown: Sequence[Sequence[Any]],
    known: Sequence[Sequence[Any]] | tuple[int, ...],
    epsilon: float,
    exp: Exp,
    *,
    cells: int,
    lives: tuple[int, int],
    k: int | None = None,
    release: int | None = None,
    noise: float | None = None,
    total: bool = False,
) -> tuple[Any, Any]:
    """Return both divergences of a whole published table.

    People are lists of cell chances, absence last; an active attacker's people are given by their counts per
    cell (a tuple). `lives` are the two cells of the target; the number `cells` stands for absence. With
    `total`, the number of people present is published too.
    """
    law: Law = table_law(unknown) or {(0,) * cells: 1}
    active = isinstance(known, tuple)
    known_law: Law = {known: 1} if active else (table_law(known) or {(0,) * cells: 1})
    top = len(unknown) + 1 + max(max(b) for b in known_law)
    alpha = None if noise is None else exp(-noise)

    @cache
    def cell(count: int) -> Law:
        if noise is not None:
            return noisy_cell(count, alpha, top, k, release)
        return {count if k is None or count >= k else None: 1}

    @cache
    def kernel(counts: tuple[int, ...]) -> Law:
        if noise is None:
            shown: tuple[Hashable, ...] = tuple(x if k is None or x >= k else None for x in counts)
            return {(*shown, sum(counts)) if total else shown: 1}
        joint: Law = {}
        for choice in product(*(cell(x).items() for x in counts)):
            weight: Any = 1
            for _, chance in choice:
                weight = weight * chance
            joint[tuple(output for output, _ in choice)] = weight
        return joint

    @cache
    def life(added: tuple[int, ...]) -> Law:
        moved = {tuple(x + y for x, y in zip(counts, added, strict=True)): w for counts, w in law.items()}
        return pushed(moved, kernel)

    def compare(b: tuple[int, ...]) -> tuple[Any, Any]:
        first, second = (life(tuple(x + (place == v) for v, x in enumerate(b))) for place in lives)
        return losses(first, second, exp(epsilon))

    return _averaged(known_law, compare)
