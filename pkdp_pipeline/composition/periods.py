"""Periods: which parts are, or may be, about one period; where few periods matter, they count together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from pkdp_pipeline.composition.part import Part

__all__ = ["Series", "at_once", "rests_on_own_periods", "series_of"]

Series = list[tuple[tuple[Part, ...], int]]
"""The parts about one period, and how many such periods there are; all of them different ones."""

_CALENDAR = frozenset({"0000-00-00", "0000-W00", "0000-00", "0000-Q0", "0000-H0", "0000"})
"""Forms of periods of which two that differ share no day."""


def series_of(parts: Iterable[Part]) -> tuple[Series, list[Series]]:
    """Return parts in series of different periods: those of known periods and totals; every other release by itself.

    A period of one series may be any of another. So of every series as many periods concern a life as the life takes
    part in.
    """
    dated: list[tuple[frozenset[str], tuple[Part, ...]]] = []
    totals: Series = []
    loose: list[Series] = []
    for part in parts:
        periods, complete = _periods(part)
        if complete:
            dated.append((periods, (part,)))
        elif periods or part.mechanism is not None:
            loose.append([((replace(part, times=1),), part.times)])
        else:
            totals.append(((replace(part, times=1),), part.times))
    return [*((group, 1) for group in _overlapping(dated)), *totals], loose


def at_once(parts: tuple[Part, ...]) -> int:
    """Return how many releases one period may hold, where those that rest on an attacker model are of different ones.

    That is what evidence says by which they add up; only their own contexts can say otherwise.
    """
    known, loose = series_of(parts)
    alone = [bool(group[0].partial) for series in loose for group, _ in series]
    most = uncertain = int(any(alone))
    for group, _ in known:
        noised = sum(part.times for part in group if not part.partial)
        # A release without a period may be about the one of noised releases that have it.
        most = max(most, noised + max(sum(part.times for part in group) - noised, uncertain))
    return most + alone.count(False)


def rests_on_own_periods(parts: Iterable[Part]) -> bool:
    """Return whether parts are taken for parts about periods of their own, of which nothing else says so."""
    known, loose = series_of(parts)
    undated = [group for group, _ in known if not _periods(group[0])[1]]
    return bool(undated) or any(times > 1 for series in loose for _, times in series)


def _periods(part: Part) -> tuple[frozenset[str], bool]:
    """Return the periods that a part is known to be about, and whether there are no others."""
    if part.mechanism is not None:
        period = None if part.context is None else part.context.period
        return (frozenset(), False) if period is None else (frozenset({period}), True)
    inside = [_periods(one) for one in part.inside]
    found = frozenset().union(*(periods for periods, _ in inside))
    return found, bool(found) and all(complete for _, complete in inside)


def _overlapping(dated: list[tuple[frozenset[str], tuple[Part, ...]]]) -> list[tuple[Part, ...]]:
    """Return the parts whose periods may overlap, each leading to the next, as one group each."""
    shapes = {re.sub("[0-9]", "0", period) for periods, _ in dated for period in periods}
    if len(shapes) > 1 or not shapes <= _CALENDAR:
        return [tuple(part for _, group in dated for part in group)]
    groups: list[tuple[frozenset[str], tuple[Part, ...]]] = []
    for periods, group in dated:
        near = [other for other in groups if other[0] & periods]
        groups = [other for other in groups if not other[0] & periods]
        near.append((periods, group))
        groups.append((frozenset().union(*(one for one, _ in near)), tuple(part for _, some in near for part in some)))
    return [group for _, group in groups]
