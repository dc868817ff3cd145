"""By which schedules a total is tried: one attacker for every release, in both directions, as its rule allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from pkdp_pipeline.assurance.attacks.crowd import Crowd
from pkdp_pipeline.assurance.attacks.enumeration import LARGEST, enumerated, size
from pkdp_pipeline.assurance.attacks.matching import knowing_all, matching
from pkdp_pipeline.assurance.attacks.schedules import Day, Schedule
from pkdp_pipeline.assurance.attacks.trials import EPSILONS
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.model.evidence import BoundedParticipation, BoundedSensitivity

__all__ = ["schedules", "worst_schedules"]

_COMPARED = 8
"""So many crowds are compared when the strongest for a day is chosen."""

Part = tuple[ReleaseCertificate, int]


def schedules(certificate: ComposedCertificate, *, epsilons: Sequence[float] = EPSILONS) -> tuple[Schedule, ...]:
    """Return the schedules by which a total is tried; none where no attack is known.

    Parameters
    ----------
    certificate : ComposedCertificate
    epsilons : sequence of float
        Where the strongest attackers are looked for.

    Returns
    -------
    tuple of Schedule
        *Independent given habits*: the strongest attacker of every release, in one direction, in the other, and mixed;
        with bounded participation on as many days as a life has. *Once per unit*, *one day protected*, *disjoint
        units*, *bounded dependence*, *same people* and a total of one: the strongest attacker of any one release.
        Guarantees that rest on noise alone: `worst_schedules`. Releases that are totals themselves, or protect
        something else than the total, are ignored by the attacker. All of it can be enumerated day by day, but for
        the releases of the last group.
    """
    if not certificate.has_partial_knowledge:
        return worst_schedules(certificate)
    parts = _attacked(certificate)
    make = _RULES.get(certificate.rule, _one_release)
    found: dict[Schedule, None] = {}
    for epsilon in epsilons:
        found |= dict.fromkeys(schedule for schedule in make(certificate, parts, epsilon) if schedule.days)
    return tuple(found)


def worst_schedules(certificate: ComposedCertificate) -> tuple[Schedule, ...]:
    """Return schedules of attackers to whom nobody is unknown, for what noise promises against anybody."""
    parts = [part for part in _attacked(certificate, partial=False) if part[0].worst_case_bound is not None]
    if not parts or certificate.worst_case_bound is None:
        return ()
    if certificate.rule in _LARGEST:
        singles = (Schedule(days=(_day(part, crowd),)) for part, _ in parts for crowd in knowing_all(part))
        return tuple(dict.fromkeys(singles))
    found: dict[Schedule, None] = {}
    kinds = [knowing_all(part) for part, _ in parts]
    for at in range(max(map(len, kinds))):
        # The same place of every list: all towards one life, or all towards the other.
        chosen = [crowds[at % len(crowds)] for crowds in kinds]
        found[_limited(zip(parts, chosen, strict=True), _differing(certificate), _changes(certificate))] = None
    return tuple(schedule for schedule in found if schedule.days)


def _attacked(certificate: ComposedCertificate, *, partial: bool = True) -> list[Part]:
    """Return the releases that an attacker on the total looks at."""
    return [
        (part, times)
        for part, times in certificate.parts
        if isinstance(part, ReleaseCertificate)
        and part.protects == certificate.protects
        and (part.has_partial_knowledge or not partial)
    ]


def _participation(certificate: ComposedCertificate) -> int | None:
    return next((one.times for one in certificate.evidence if isinstance(one, BoundedParticipation)), None)


def _differing(certificate: ComposedCertificate) -> int | None:
    """Return in how many releases two lives may differ; None for all of them."""
    for one in certificate.evidence:
        if isinstance(one, BoundedSensitivity):
            return one.changes
    most = _participation(certificate)
    return None if most is None else 2 * most


def _changes(certificate: ComposedCertificate) -> int:
    """Return how much of what `_differing` counts one release uses up: who moves in a table changes two numbers."""
    counted = any(isinstance(one, BoundedSensitivity) for one in certificate.evidence)
    return 2 if counted and certificate.protects == "value" else 1


def _day(part: ReleaseCertificate, crowd: Crowd, times: int = 1) -> Day:
    return Day(mechanism=part.mechanism, crowd=crowd, times=times)


def _limited(days: Iterable[tuple[Part, Crowd]], most: int | None, each: int = 1) -> Schedule:
    """Return a schedule of releases that use up at most `most`, `each` of them so much."""
    found: list[Day] = []
    left = math.inf if most is None else most // each
    for (part, times), crowd in days:
        number = int(min(times, left))
        if number > 0:
            found.append(_day(part, crowd, number))
            left -= number
    return Schedule(days=tuple(found))


def _one_release(certificate: ComposedCertificate, parts: Sequence[Part], epsilon: float) -> Iterator[Schedule]:
    del certificate
    for part, _ in parts:
        for crowd in matching(part, epsilon):
            yield Schedule(days=(_day(part, crowd),))


def _independent(certificate: ComposedCertificate, parts: Sequence[Part], epsilon: float) -> Iterator[Schedule]:
    most = _participation(certificate)
    total = sum(times for _, times in parts)
    days = total if most is None else min(2 * most, total)
    yield from _one_release(certificate, parts, epsilon)
    for lean in (0.0, 0.5, 1.0):
        sides = [_strongest(part, epsilon / max(1, days), lean) for part, _ in parts]
        right = [(part, one) for part, (one, _) in zip(parts, sides, strict=True) if one is not None]
        left = [(part, other) for part, (_, other) in zip(parts, sides, strict=True) if other is not None]
        if most is None:
            yield _limited(right, None)
            yield _limited(left, None)
            halves = [((part, times - times // 2), crowd) for (part, times), crowd in right]
            halves += [((part, times // 2), crowd) for (part, times), crowd in left]
            yield _limited(halves, None)
        else:
            # Each life takes part in `most` releases, of which the other life is in none.
            first = _limited(right, most)
            yield first
            yield _limited(left, most)
            if certificate.protects == "presence":
                yield Schedule(days=(*first.days, *_others(left, first, min(most, total - first.releases)).days))


def _others(days: Sequence[tuple[Part, Crowd]], taken: Schedule, most: int) -> Schedule:
    """Return a schedule of releases that `taken` leaves over."""
    used: dict[object, int] = {}
    for day in taken.days:
        used[day.mechanism] = used.get(day.mechanism, 0) + day.times
    rest: list[tuple[Part, Crowd]] = []
    for (part, times), crowd in days:
        gone = min(times, used.get(part.mechanism, 0))
        used[part.mechanism] = used.get(part.mechanism, 0) - gone
        rest.append(((part, times - gone), crowd))
    return _limited(rest, most)


def _strongest(part: ReleaseCertificate, epsilon: float, lean: float) -> tuple[Crowd | None, Crowd | None]:
    """Return the strongest attackers on one day in both directions, at an ε that is a share of the total.

    On most days the loss is below the mean: people are chosen as for an ε that lies `lean` deviations lower.
    """
    k = part.mechanism.k or 0
    at = epsilon - lean / math.sqrt(k) if k > 1 else epsilon
    found: list[Crowd | None] = []
    crowds = matching(part, at)
    for direction in (True, False):
        options = [crowd for crowd in crowds if (crowd.first == 0) == direction]
        options = [crowd for crowd in options if size(part.mechanism, crowd) <= LARGEST][:_COMPARED]
        best, most = None, -1.0
        for crowd in options:
            attained = enumerated(part.mechanism, crowd, max(0.0, epsilon))
            if attained is not None and float(attained.lower) > most:
                best, most = crowd, float(attained.lower)
        found.append(best)
    return found[0], found[1]


_LARGEST = frozenset({"disjoint_units", "once_per_unit", "one_day_protected", "single"})
"""Rules by which a total is the largest of its parts."""

_RULES: Mapping[str, Callable[[ComposedCertificate, Sequence[Part], float], Iterator[Schedule]]] = MappingProxyType(
    {"independent_given_habits": _independent}
)
