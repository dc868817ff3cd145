"""Attackers who look at several releases, on independent days, and add up what each of them says.

Schedules are one attacker for every release, in both directions, as the rule of a total allows. The cells of a person
who is in several of one release are days of their own: given her habits they are as independent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement, product

from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.extras.assurance.attacks.crowd import MAX_CROWDS, Crowd, vertices
from pkdp_pipeline.extras.assurance.attacks.days import Day, Schedule
from pkdp_pipeline.extras.assurance.attacks.enumeration import LARGEST, enumerated, size
from pkdp_pipeline.extras.assurance.attacks.matching import knowing_all, matching
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import BoundedParticipation, BoundedSensitivity, OncePerUnit
from pkdp_pipeline.model.mechanisms import Mechanism, Sum, cells_per_unit, single_cell, without_display

EPSILONS = (0.1, 0.5, 1.0, 2.0)
"""At these ε the strongest attackers are looked for, unless told otherwise."""

_LEANS = (0.0, 0.5, 1.0)
"""How many deviations below the mean a loss is for which people are chosen."""

_COMPARED = 8
"""This many crowds are compared when the strongest for a day is chosen."""

_LARGEST = frozenset({"disjoint_units", OncePerUnit.key, "one_day_protected", "same_table", "single"})
"""Rules by which a total is the largest of its parts."""

_Part = tuple[ReleaseCertificate, int]


def undisplayed(release: ReleaseCertificate) -> ReleaseCertificate:
    """Return what is certified of the table that is shown: what is made of it tells no more, and promises as much."""
    if release.mechanism.display is None:
        return release
    return certify(without_display(release.mechanism), release.attacker, protects=release.protects, cells=release.cells)


def attackers(release: ReleaseCertificate, epsilon: float) -> tuple[Schedule, ...]:
    """Return the attackers who should tell most about one release at `epsilon`, on all cells of a person.

    See `matching`. Where a person may be in several cells, they are equal:
    the target is in as many as she can be or absent, or in as many others.
    """
    if cells_per_unit(release.mechanism) == 1:
        return tuple((Day(mechanism=release.mechanism, crowd=crowd),) for crowd in matching(release, epsilon))
    candidates = (schedule for lean in _LEANS for schedule in _in_all_cells(release, epsilon, lean))
    return tuple(filter(None, dict.fromkeys(candidates)))


def small_attackers(release: ReleaseCertificate) -> tuple[Schedule, ...]:
    """Return all extreme attackers of small instances; see `crowd.vertices`."""
    several = cells_per_unit(release.mechanism)
    if several == 1:
        return tuple((Day(mechanism=release.mechanism, crowd=crowd),) for crowd in vertices(release))
    for most in (40, 24, 16, 8, 4):
        crowds = vertices(_one_cell(release), most=most)
        present, absent = (
            list(combinations_with_replacement([crowd for crowd in crowds if crowd.first == life], several))
            for life in (0, None)
        )
        choices = [*present, *absent]
        if release.protects == "value":
            both = ((*first, *second) for first, second in product(present, absent))
            choices = [cells for cells in both if _fit(cells, release.attacker)]
        if len(choices) <= MAX_CROWDS:
            return tuple(_cells(release.mechanism, cells) for cells in choices)
    return ()


def all_knowing(release: ReleaseCertificate, most: float = math.inf) -> tuple[Schedule, ...]:
    """Return attackers who know everybody, on at most this many cells of a person, or as many left and entered."""
    cells = int(min(cells_per_unit(release.mechanism), most))
    if cells_per_unit(release.mechanism) == 1:
        return tuple((Day(mechanism=release.mechanism, crowd=crowd),) for crowd in knowing_all(release))
    mechanism = single_cell(release.mechanism)
    known = knowing_all(certify(mechanism, AttackerModel()))
    # In a small table two lives, both of them in some cell, have no more cells than there are.
    table = 2 * cells if release.cells is None else release.cells
    apart = min(cells, table - 1)
    collected: dict[Schedule, None] = {}
    for two in combinations_with_replacement([crowd for crowd in known if crowd.first == 0], 2):
        if release.protects == "value":
            entered = [tuple(map(Crowd.reversed, split)) for split in _splits(two, min(apart, table - apart))]
            lives = [(*first, *second) for first, second in product(_splits(two, apart), entered)]
        else:
            splits = _splits(two, cells)
            lives = [*splits, *(tuple(map(Crowd.reversed, split)) for split in splits)]
        collected |= dict.fromkeys(_cells(mechanism, crowds) for crowds in lives)
    if isinstance(mechanism, Sum) and release.protects == "value":
        wide = knowing_all(certify(mechanism, AttackerModel(), protects="value", cells=1))
        collected |= dict.fromkeys(_cells(mechanism, (crowd,) * min(cells, table)) for crowd in wide)
    return tuple(collected)


def _splits(two: tuple[Crowd, Crowd], number: int) -> list[tuple[Crowd, ...]]:
    """Return ways to face this many cells with two crowds."""
    changes = sorted({0, *(changed for changed in (1, number // 2, number - 1) if 0 < changed <= number)})
    return [(two[0],) * (number - changed) + (two[1],) * changed for changed in changes]


def _one_cell(release: ReleaseCertificate, *, known: bool = True) -> ReleaseCertificate:
    """Return what is certified of one of the cells in which a person may be; what leaks beside it is left aside."""
    plain = replace(release.attacker, independent_cells=False, leakage=())
    return certify(single_cell(release.mechanism), plain if known else replace(plain, known=0), protects="presence")


def _cells(mechanism: Mechanism, crowds: Iterable[Crowd]) -> Schedule:
    """Return the attacker on this many cells of a person, with a crowd for each of them."""
    single = single_cell(mechanism)
    return tuple(Day(mechanism=single, crowd=crowd, times=times) for crowd, times in Counter(crowds).items())


def _fit(cells: Iterable[Crowd], attacker: AttackerModel) -> bool:
    """Return whether different people are in the cells that the target leaves, and in those that she enters.

    Nobody can be in all of them.
    """
    most: Counter[tuple[str, bool]] = Counter()
    for crowd in cells:
        uncertain = sum(group.people for group in crowd.unknown if not group.is_certain)
        known_people = sum(crowd.controlled) + sum(group.people for group in crowd.known if max(group.chances) > 0.0)
        for name, people in (("unknown", uncertain), ("known", known_people)):
            place = name, crowd.first == 0
            most[place] = max(most[place], people)
    unknown, known = (most[name, True] + most[name, False] for name in ("unknown", "known"))
    return known <= attacker.known and (attacker.unknown_max is None or unknown <= attacker.unknown_max)


def _in_all_cells(release: ReleaseCertificate, epsilon: float, lean: float) -> tuple[Schedule, Schedule]:
    """Return the strongest attackers on all cells of a person in both directions; `()` where there is none."""
    several, moves = cells_per_unit(release.mechanism), release.protects == "value"
    share = epsilon / (2 * several if moves else several)
    right, left = _strongest(_one_cell(release), share, lean)
    if moves and right and left:
        other = _strongest(_one_cell(release, known=False), share, lean)[1]
        both = [right] * several + [other or left] * several
        if _fit(both, release.attacker):
            return _cells(release.mechanism, both), ()
    sides = ([] if crowd is None else [crowd] * several for crowd in (right, left))
    present, absent = (_cells(release.mechanism, side) for side in sides)
    return present, absent


def schedules(certificate: ComposedCertificate, *, epsilons: Sequence[float] = EPSILONS) -> tuple[Schedule, ...]:
    """Return the schedules by which a total is tried; none where no attack is known.

    `epsilons`: where the strongest attackers are looked for.

    Returns
    -------
    tuple of Schedule
        *Independent given habits*: the strongest attacker of every release, in one direction, in the other, and mixed;
        with bounded participation on as many days as a life has. *Once per unit*, *one day protected*, *disjoint
        units*, *bounded dependence*, *same people*, *same table* and a total of one: the strongest attacker of any one
        release.
        Guarantees that rest on noise alone: `worst_schedules`. Releases that are totals themselves, or protect
        something else than the total, are ignored by the attacker. All of it can be enumerated day by day, but for
        the releases of the last group.
    """
    if not certificate.has_partial_knowledge:
        return worst_schedules(certificate)
    parts = _attacked(certificate)
    collected: dict[Schedule, None] = {}
    for epsilon in epsilons:
        collected |= dict.fromkeys(_singles(parts, partial(attackers, epsilon=epsilon)))
        if certificate.rule == "independent_given_habits":
            collected |= dict.fromkeys(_independent(certificate, parts, epsilon))
    return tuple(filter(None, collected))


def worst_schedules(certificate: ComposedCertificate) -> tuple[Schedule, ...]:
    """Return schedules of attackers to whom nobody is unknown, for what noise promises against anybody."""
    parts = [part for part in _attacked(certificate, unsure=False) if part[0].worst_case_bound is not None]
    if not parts or certificate.worst_case_bound is None:
        return ()
    if certificate.rule in _LARGEST:
        return tuple(dict.fromkeys(_singles(parts, all_knowing)))
    most, stop = math.inf, 2 * _participation(certificate)
    for item in certificate.evidence:
        if isinstance(item, BoundedSensitivity):  # in this many releases two lives differ: a move changes two numbers
            most = item.changes // (2 if certificate.protects == "value" else 1)
            stop = most // min(most, max(cells_per_unit(part.mechanism) for part, _ in parts)) if most else 0
            break
    if most < 1:
        return ()
    kinds = [all_knowing(part, most) for part, _ in parts]
    # The same place of every list: all towards one life, or all towards the other.
    chosen = ([each[index % len(each)] for each in kinds] for index in range(max(map(len, kinds))))
    return tuple(filter(None, dict.fromkeys(_schedule(parts, each, stop=stop) for each in chosen)))


def _attacked(certificate: ComposedCertificate, *, unsure: bool = True) -> list[_Part]:
    """Return the releases that an attacker on the total looks at."""
    return [
        (undisplayed(part), times)
        for part, times in certificate.parts
        if isinstance(part, ReleaseCertificate)
        and part.protects == certificate.protects
        and (part.has_partial_knowledge or not unsure)
    ]


def _participation(certificate: ComposedCertificate) -> float:
    """Return in how many releases a person may be."""
    return next((item.times for item in certificate.evidence if isinstance(item, BoundedParticipation)), math.inf)


def _schedule(
    parts: Iterable[_Part], attacks: Iterable[Schedule], start: float = 0, stop: float = math.inf
) -> Schedule:
    """Return the days of the releases from `start` to `stop`, counted through all of them, that have an attacker."""
    days: list[Day] = []
    before = 0
    for (_, times), attack in zip(parts, attacks, strict=True):
        number = min(before + times, stop) - max(before, start)
        before += times
        if number > 0:
            days += [replace(day, times=int(number) * day.times) for day in attack]
    return tuple(days)


def _singles(parts: Iterable[_Part], attacks: Callable[[ReleaseCertificate], Iterable[Schedule]]) -> Iterator[Schedule]:
    """Yield the attackers on any one release."""
    for part, _ in parts:
        yield from attacks(part)


def _independent(certificate: ComposedCertificate, parts: Sequence[_Part], epsilon: float) -> Iterator[Schedule]:
    most, total = _participation(certificate), sum(times for _, times in parts)
    days = max(1, min(2 * most, total))
    for lean in _LEANS:
        sides = [_directions(part, epsilon / days, lean) for part, _ in parts]
        right, left = ([both[direction] for both in sides] for direction in (0, 1))
        # Each life takes part in `most` releases, of which the other life is in none.
        yield _schedule(parts, right, stop=most)
        yield _schedule(parts, left, stop=most)
        if math.isinf(most):
            more, fewer = ([(part, (times + extra) // 2) for part, times in parts] for extra in (1, 0))
            yield (*_schedule(more, right), *_schedule(fewer, left))
        elif certificate.protects == "presence":
            yield (*_schedule(parts, right, stop=most), *_schedule(parts, left, most, 2 * most))


def _directions(part: ReleaseCertificate, epsilon: float, lean: float) -> tuple[Schedule, Schedule]:
    """Return the strongest attackers on one release in both directions."""
    if cells_per_unit(part.mechanism) > 1:
        return _in_all_cells(part, epsilon, lean)
    sides = ([] if crowd is None else [crowd] for crowd in _strongest(part, epsilon, lean))
    right, left = (_cells(part.mechanism, side) for side in sides)
    return right, left


def _strongest(part: ReleaseCertificate, epsilon: float, lean: float) -> tuple[Crowd | None, Crowd | None]:
    """Return the strongest attackers on one day in both directions, at an ε that is a share of the total.

    On most days the loss is below the mean: people are chosen as for an ε that lies `lean` deviations lower.
    """
    k = part.mechanism.k or 0
    point = epsilon - lean / math.sqrt(k) if k > 1 else epsilon
    crowds = [crowd for crowd in matching(part, point) if size(part.mechanism, crowd) <= LARGEST]

    def attained(crowd: Crowd) -> float:
        result = enumerated(part.mechanism, crowd, max(0.0, epsilon))
        return -1.0 if result is None else float(result.lower)

    right, left = (
        max([crowd for crowd in crowds if (crowd.first == 0) == first][:_COMPARED], key=attained, default=None)
        for first in (True, False)
    )
    return right, left
