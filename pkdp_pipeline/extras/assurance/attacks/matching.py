"""The attackers at which each theorem is attained, or whom it is worst about, for one ε."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from types import MappingProxyType

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.stronger import threshold_of
from pkdp_pipeline.extras.assurance.attacks.crowd import (
    Crowd,
    Group,
    Shape,
    counted_shapes,
    histogram_shapes,
    is_admitted,
    knows_total,
)
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Sum
from pkdp_pipeline.theorems.boxed_threshold import BoxedThreshold
from pkdp_pipeline.theorems.noisy_threshold import NoisyBesideKnown, NoisyThreshold
from pkdp_pipeline.theorems.thresholding import Thresholding

MAX_PEOPLE = 10**9
"""Attackers with more unknown people than this are not tried."""

_LARGE_MULTIPLE = 30.0
"""A count this many multiples of ``1/ε0`` above the release threshold is as good as never suppressed by it."""

_MAX_COUNT = 20_000


def matching(certificate: ReleaseCertificate, epsilon: float) -> tuple[Crowd, ...]:
    """Return the attackers who should tell most about `certificate` at `epsilon`; all are admitted.

    For every theorem the certificate rests on. Where it rests on noise alone: attackers who know everybody.
    """
    if not certificate.has_partial_knowledge:
        return knowing_all(certificate)
    crowds: dict[Crowd, None] = {}
    for theorem in certificate.partial_theorems:
        for crowd in _MATCHES[theorem](certificate, epsilon):
            if sum(group.people for group in crowd.unknown) <= MAX_PEOPLE and is_admitted(crowd, certificate):
                crowds[knows_total(crowd, certificate.attacker)] = None
    return tuple(crowds)


def worst_numbers(k: int, p: float, epsilon: float) -> tuple[int, int]:
    """Return how many unknown p-coins tell most about one person in a count that is published from `k` on.

    Returns
    -------
    (right, left) : where the person's presence, and where the absence, looks likelier; theorem A's ``m*`` and ``m°``
    """
    t = k - 1
    if t <= 0 or not 0.0 < p < 1.0:
        return max(t, 0), max(t, 0)
    against, growth = t * (1.0 - p) / p, math.exp(min(epsilon, 700.0))
    right = t + int(min(against / growth, 10.0 * MAX_PEOPLE))
    left = t + max(0, math.ceil(min(against * growth, 10.0 * MAX_PEOPLE)) - 1)
    return right, left


def _capped(attacker: AttackerModel, people: int) -> int:
    return people if attacker.unknown_max is None else min(people, attacker.unknown_max)


def _thresholding(certificate: ReleaseCertificate, epsilon: float, counted: bool = True) -> Iterator[Crowd]:
    """Yield who tells most where few people are published, or where few are not `counted`."""
    mechanism, attacker = certificate.mechanism, certificate.attacker
    complement = mechanism.k_complement if isinstance(mechanism, Count) else None
    ends, limits = counted_shapes(attacker), (mechanism.k, complement)
    order = 1 if counted else -1
    (worst, other), (limit, further) = (ends[0], ends[-1])[::order], limits[::order]
    assert limit is not None
    # People who are surely on the other side keep the count away from the other threshold.
    side = 0.0 if counted else 1.0
    padding = () if further is None or other[0] != side else (Group(people=further + 1, chances=(side,)),)
    for known, controlled, k in _knowing(attacker, limit, worst, counted):
        beside = _beside_known(certificate, epsilon, counted)
        for people, first in (*_sides(k, abs(worst[0] - side), epsilon), *beside):
            for unknown in _filled(attacker, worst, other, _capped(attacker, people)):
                crowd = Crowd(cells=1, unknown=(*unknown, *padding), known=known, controlled=controlled)
                # Those who are not counted are counted here: their presence is the target's absence.
                yield crowd if first == counted else crowd.reversed()


_IN_BOX = "noisy_thresholding_in_box"


def _behind_noise(certificate: ReleaseCertificate, epsilon: float) -> Iterator[Crowd]:
    """Yield who tells most of a threshold with noise after it."""
    k, attacker, ends = certificate.mechanism.k, certificate.attacker, counted_shapes(certificate.attacker)
    assert k is not None
    bounds = (applied.bound for applied in certificate.partial_bounds if applied.bound.theorem != _IN_BOX)
    _, people = next(bound.worst_numbers(epsilon) for bound in bounds if isinstance(bound, NoisyThreshold))
    for known, controlled, _ in _knowing(attacker, k, ends[0]):
        for unknown in _filled(attacker, ends[0], ends[-1], people):
            yield from _both(Crowd(cells=1, unknown=unknown, known=known, controlled=controlled))


def _in_box(certificate: ReleaseCertificate, epsilon: float, key: str, counted: bool = True) -> Iterator[Crowd]:
    """Yield who tells most of a threshold in a box, where few people are published, or where few are not `counted`."""
    mechanism, ends = certificate.mechanism, counted_shapes(certificate.attacker)[:: 1 if counted else -1]
    assert isinstance(mechanism, Count)
    k = threshold_of(certificate) if counted else mechanism.k_complement
    assert k is not None
    for bound in (applied.bound for applied in certificate.partial_bounds):
        if bound.theorem != key or not isinstance(bound, BoxedThreshold | NoisyThreshold | NoisyBesideKnown):
            continue
        others, likely = bound.worst_numbers(epsilon)[:: -1 if isinstance(bound, BoxedThreshold) else 1]
        for known, controlled, _ in _knowing(certificate.attacker, k, ends[0], counted):
            yield from _both(
                Crowd(cells=1, unknown=_two(likely, ends[0], others, ends[-1]), known=known, controlled=controlled)
            )


def _beside_known(certificate: ReleaseCertificate, epsilon: float, counted: bool) -> Iterator[tuple[int, bool]]:
    """Yield the number of unknown people that is worst beside people merely known, as `_sides` does."""
    for bound in (applied.bound for applied in certificate.partial_bounds):
        of_the_rest = bound.theorem == "thresholding_complement"
        if isinstance(bound, Thresholding) and bound.averages and of_the_rest != counted:
            people = bound.worst_number(epsilon)
            yield from ((people, True), (people, False))


def _sides(k: int, p: float, epsilon: float) -> Iterator[tuple[int, bool]]:
    """Yield (number of unknown people, whether presence looks likelier), around the worst numbers."""
    right, left = worst_numbers(k, p, epsilon)
    for people, first in ((right, True), (left, False)):
        for number in (people, people + 1, people - 1):
            if number >= 0:
                yield number, first


def _knowing(
    attacker: AttackerModel, k: int, shape: Shape, counted: bool = True
) -> Iterator[tuple[tuple[Group, ...], tuple[int, ...], int]]:
    """Yield (known people, controlled people, the threshold that is left) for a threshold `k`."""
    people = attacker.known
    if not people:
        yield (), (), k
    elif attacker.influence == "active":
        # A controlled person is on the side that brings the threshold closer.
        if counted:
            yield (), (people,), k - people
        else:
            yield (Group(people=people, chances=(0.0,)),), (), k - people
    else:
        share = shape[0] if counted else 1.0 - shape[0]
        typical = min(round(people * share), k - 2)
        for number in sorted({0, max(0, typical), max(0, min(people, k - 2, 2 * typical))}):
            yield (Group(people=people, chances=shape),), (), k - number


def _filled(attacker: AttackerModel, worst: Shape, other: Shape, people: int) -> Iterator[tuple[Group, ...]]:
    """Yield unknown people of the shape `worst`, filled up with `other` to as many as are unknown at least."""
    least = attacker.unknown or 0
    if people >= least:
        yield (Group(people=people, chances=worst),)
        return
    yield _two(people, worst, least - people, other)
    sure = 0.0 if worst[0] >= other[0] else 1.0
    if other[0] == sure:
        return
    yield (Group(people=least, chances=worst),)
    # The others help to reach the threshold: so many that about as many are expected.
    gap, share = worst[0] - other[0], abs(worst[0] - sure)
    level = (people * share - least * abs(other[0] - sure)) / abs(gap) if gap else 0.0
    moved = min(least, max(0, round(level)))
    yield _two(moved, worst, least - moved, other)


def _two(people: int, shape: Shape, others: int, other: Shape) -> tuple[Group, ...]:
    groups = (Group(people=people, chances=shape), Group(people=others, chances=other))
    return tuple(group for group in groups if group.people)


def _counting(certificate: ReleaseCertificate, epsilon: float) -> Iterator[Crowd]:
    del epsilon
    attacker = certificate.attacker
    assert attacker.unknown is not None
    ends, people = counted_shapes(attacker), attacker.unknown
    eighths = () if people > 5_000 else tuple(round(people * part / 8) for part in range(9))
    numbers = sorted({0, 1, 2, people - 2, people - 1, people, *eighths}) if len(ends) > 1 else [people]
    for at_high in numbers:
        if 0 <= at_high <= people:
            yield from _both(Crowd(cells=1, unknown=_two(at_high, ends[0], people - at_high, ends[-1])))


def _both(crowd: Crowd) -> tuple[Crowd, Crowd]:
    """Return the crowd with the target's lives in both orders."""
    return crowd, crowd.reversed()


def _value(certificate: ReleaseCertificate, epsilon: float) -> Iterator[Crowd]:
    k, attacker = certificate.mechanism.k, certificate.attacker
    assert k is not None
    shapes = histogram_shapes(attacker, "value", 2)
    singles = [shape for shape in shapes if shape[1] == 0.0 < shape[0]]
    for known, controlled, k_first, k_second in _in_two_cells(attacker, k, shapes):
        # Everybody the same; about as many as would be worst for either cell alone.
        unknown: list[tuple[Group, ...]] = [
            (Group(people=_capped(attacker, people), chances=shape),)
            for shape in shapes
            for people in _numbers(shape, k_first, k_second, epsilon)
        ]
        for shape, part in product(singles, (0.0, 0.25, 0.5, 0.75, 1.0)):
            # The two cells share ε: one is left, the other entered.
            leaving, _ = worst_numbers(k_first, shape[0], part * epsilon)
            _, entering = worst_numbers(k_second, shape[0], (1.0 - part) * epsilon)
            most = _capped(attacker, leaving + entering)
            first = min(leaving, most * leaving // max(1, leaving + entering))
            unknown.append(_two(first, shape, min(entering, most - first), (0.0, shape[0])))
        for groups in unknown:
            yield from _both(Crowd(cells=2, unknown=groups, known=known, controlled=controlled, second=1))


def _numbers(shape: Shape, k_first: int, k_second: int, epsilon: float) -> list[int]:
    numbers: set[int] = set()
    for k, p in ((k_first, shape[0]), (k_second, shape[1])):
        if 0.0 < p < 1.0:
            numbers |= {*worst_numbers(k, p, epsilon), *worst_numbers(k, p, epsilon / 2.0)}
    return sorted(numbers)


def _in_two_cells(
    attacker: AttackerModel, k: int, shapes: Iterable[Shape]
) -> Iterator[tuple[tuple[Group, ...], tuple[int, ...], int, int]]:
    """Yield (known, controlled, threshold left in the first cell, in the second)."""
    people = attacker.known
    if not people:
        yield (), (), k, k
    elif attacker.influence == "active":
        for in_cell in sorted({0, people // 2, people}):
            yield (), (in_cell, people - in_cell), k - in_cell, k - people + in_cell
    else:
        for shape in shapes:
            if max(shape) > 0.0:
                in_first, in_second = (min(round(people * chance), k - 2) for chance in shape)
                yield (Group(people=people, chances=shape),), (), k - in_first, k - in_second


def _noised_below(certificate: ReleaseCertificate, epsilon: float) -> Iterator[Crowd]:
    """Yield who tells most of a threshold alone, and few people, or as many as noised values show, for what is below.

    From the noise's ε on noised values tell nothing.
    """
    mechanism, attacker = certificate.mechanism, certificate.attacker
    assert mechanism.k is not None
    assert mechanism.noise is not None
    exact_only = replace(mechanism, noise=None, release_threshold=None, below="suppress")
    yield from matching(replace(certificate, mechanism=exact_only), epsilon)
    release = mechanism.release_threshold or 0
    means = (0,) if epsilon >= mechanism.noise.epsilon else (0, release, (release + mechanism.k) // 2)
    if certificate.protects == "value":
        for known, controlled, *_ in _in_two_cells(attacker, mechanism.k, histogram_shapes(attacker, "value", 2)):
            yield from _both(Crowd(cells=2, known=known, controlled=controlled, second=1))
        return
    ends = counted_shapes(attacker)
    for known, controlled, _ in _knowing(attacker, mechanism.k, ends[0]):
        for mean in dict.fromkeys(means):
            people = _capped(attacker, math.ceil(max(0, mean - sum(controlled)) / ends[0][0])) if ends[0][0] else 0
            for unknown in _filled(attacker, ends[0], ends[-1], people):
                yield from _both(Crowd(cells=1, unknown=unknown, known=known, controlled=controlled))


def _anywhere(certificate: ReleaseCertificate, epsilon: float) -> Iterator[Crowd]:
    """Yield who tells most of a table in which people may be in every cell."""
    del epsilon
    attacker, value = certificate.attacker, certificate.protects == "value"
    assert attacker.unknown is not None
    for cells in (2, 3) if value else (1, 2, 3):
        for shape in histogram_shapes(attacker, certificate.protects, cells):
            unknown = (Group(people=attacker.unknown, chances=shape),)
            yield from _both(Crowd(cells=cells, unknown=unknown, second=1 if value else None))


def knowing_all(certificate: ReleaseCertificate) -> tuple[Crowd, ...]:
    """Return attackers to whom nobody is unknown, against whom noise alone protects; for `Certificate.worst_case`.

    The others' counts are where a threshold is just reached, just missed, or far away.
    """
    mechanism = certificate.mechanism
    if isinstance(mechanism, Sum):
        return _adding(mechanism, certificate)
    if certificate.protects == "value" and certificate.cells == 1:
        return ()  # there are no two cells to tell apart
    cells = 2 if certificate.protects == "value" else 1
    counts = {0}
    if mechanism.k is not None:
        counts |= {mechanism.k - 1, mechanism.k}
    if mechanism.noise is not None and mechanism.release_threshold is not None:
        beyond = math.ceil(_LARGE_MULTIPLE / mechanism.noise.epsilon)
        counts.add(min(max(mechanism.k or 0, mechanism.release_threshold) + beyond, _MAX_COUNT))
    crowds: list[Crowd] = []
    for first in sorted(counts):
        for second in sorted(counts) if cells == 2 else (0,):
            controlled = (first, second)[:cells]
            alone = Crowd(cells=cells, controlled=controlled, second=1 if cells == 2 else None)
            crowds += _both(knows_total(alone, certificate.attacker))
    return tuple(crowds)


def _adding(mechanism: Sum, certificate: ReleaseCertificate) -> tuple[Crowd, ...]:
    """Return those who know everybody and see a cell of a sum shifted as far as the bounds allow, or appear."""
    (lower, upper), most = mechanism.bounds, max(mechanism.bounds, key=abs)
    others = [0]
    if mechanism.cells_found and mechanism.release_threshold is not None:
        beyond = math.ceil(_LARGE_MULTIPLE * abs(most) / mechanism.noise.epsilon)
        others = [mechanism.release_threshold + abs(most) + beyond, *([0] if upper > 0 else [])]
    if certificate.protects == "presence":
        crowds = [Crowd(cells=1, controlled=(number,), adds=upper if number < others[0] else most) for number in others]
    else:
        # In a cell of both lives the one adds the most and the other the least, which stands among the others' sum.
        crowds = [Crowd(cells=1, controlled=(others[0],), adds=upper - lower)] if upper > lower else []
        for pair in product(others, repeat=2) if certificate.cells != 1 else ():
            crowds.append(Crowd(cells=2, controlled=pair, second=1, adds=upper if min(pair) < others[0] else most))
    return tuple(crowd for each in map(_both, crowds) for crowd in each)


_MATCHES: Mapping[str, Callable[[ReleaseCertificate, float], Iterable[Crowd]]] = MappingProxyType(
    {
        "thresholding": _thresholding,
        "thresholding_complement": partial(_thresholding, counted=False),
        "thresholding_in_box": partial(_in_box, key="thresholding_in_box"),
        "complement_in_box": partial(_in_box, key="complement_in_box", counted=False),
        "two_thresholds_in_box": partial(_in_box, key="two_thresholds_in_box"),
        _IN_BOX: partial(_in_box, key=_IN_BOX),
        "counting": _counting,
        # An attacker who leaves the leakage aside learns what the count alone tells.
        "counting_beside_leakage": _counting,
        "noisy_counting": _counting,
        "histogram_presence": _thresholding,
        "noisy_thresholding": _behind_noise,
        "noisy_presence": _behind_noise,
        "histogram_value": _value,
        "noisy_value": _value,
        "histogram_between": _value,
        "noisy_between": _value,
        "noised_below": _noised_below,
        "noised_below_presence": _noised_below,
        "noised_below_value": _noised_below,
        "noised_below_between": _noised_below,
        "cell_counting": _anywhere,
        "noisy_cell_counting": _anywhere,
        "options": _anywhere,
        "noisy_options": _anywhere,
    }
)
