"""The account: what a data set's charged releases add up from, as one pure function of them.

Releases whose periods overlap, each leading to the next, form a component. What a component holds for one privacy
unit is a `Bundle`; totals are added up from bundles and how often each occurs. A charge, a total, a budget's window,
a report and a verification all ask the same `Account`, made anew from one row for every charged release.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Literal, NamedTuple

from pkdp_pipeline.ledger.rows import Row, sha256

Beside = Literal["alone", "same unit", "other units"]


class Bundle(NamedTuple):
    """What a component's releases for one unit add up from.

    Attributes
    ----------
    beside : {"alone", "same unit", "other units"}
        Whether the component is one release, releases about one unit, or about several.
    parts : tuple of (str, int)
        The sha256 of every different part and how often it occurs, sorted.
    """

    beside: Beside
    parts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, beside: Beside, parts: Mapping[str, int]) -> Bundle:
        """Return the bundle of these parts, sorted."""
        return cls(beside, tuple(sorted(parts.items())))


Held = Mapping[Bundle, int]
"""Bundles of one unit, and how often each occurs."""


class Account:
    """What charged releases add up from; it is never changed.

    Parameters
    ----------
    rows : iterable of Row
        Every release of the data set that is charged and not given back.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)

    def plus(self, row: Row) -> Account:
        """Return the account with one release more."""
        return Account((*self.rows, row))

    def without(self, entry: int | None) -> Account:
        """Return the account as it would be had a release not been charged."""
        return Account(row for row in self.rows if row.id != entry)

    @cached_property
    def units(self) -> list[str]:
        """The privacy units, as `unit_text`."""
        return sorted({row.unit for row in self.rows})

    @cached_property
    def components(self) -> list[list[Row]]:
        """The releases whose periods overlap, each leading to the next, as one list each."""
        dated = sorted((row for row in self.rows if row.first_day is not None), key=attrgetter("first_day"))
        labelled: dict[str | None, list[Row]] = defaultdict(list)
        for row in self.rows:
            if row.first_day is None:
                labelled[row.label].append(row)
        if dated and labelled:
            return [list(self.rows)]
        groups = list(labelled.values())
        until = 0
        for row in dated:
            if (row.first_day or 0) <= until:
                groups[-1].append(row)
            else:
                groups.append([row])
            until = max(until, row.last_day or 0)
        return groups

    def component(self, entry: int) -> list[Row]:
        """Return the component of a release that is charged."""
        return next(group for group in self.components if any(row.id == entry for row in group))

    def met(self, asked: Row) -> list[list[Row]]:
        """Return the components that the period of a release meets."""
        return [group for group in self.components if any(row.meets(asked) for row in group)]

    def bundles(self, unit: str, only: Container[int] | None = None) -> Counter[Bundle]:
        """Return what a unit's releases add up from, and how often; `only` leaves out all entries but these."""
        found = _bundled(self._alike(unit, only))
        # In one order, so that a total is the same to its last bit however its releases came.
        return Counter({bundle: found[bundle] for bundle in sorted(found, key=_digest)})

    def window(self, unit: str, days: int, start: int | None) -> Counter[Bundle]:
        """Return what counts in the window of `days` days from `start` (None: what counts in every window)."""
        return _bundled(one for one in self._alike(unit) if one.first is None or one.meets(start, days))

    def windows(
        self, unit: str, days: int, changed: Sequence[Row] | None = None
    ) -> Iterator[tuple[int | None, Counter[Bundle]]]:
        """Yield the first day of every window of consecutive days that meets a changed release, and what counts in it.

        Windows that hold no more than another one, and windows that add up from the same, are left out. A release
        counts in a window that its period meets, with what stands beside it in the whole ledger; a label without
        dates counts in every window; where there is nothing else, the first day is None.

        Parameters
        ----------
        unit : str
        days : int
        changed : sequence of Row, optional
            The releases that are new, or count for more than before. None: any.

        Notes
        -----
        A window is known by its first day s. The release of the days a to b counts where a - days < s <= b. Of all
        windows that hold some releases together, the one that ends on the latest of their first days,
        ``s = max a - days + 1``, is the first, and holds all that later ones hold of them; so only windows that end
        on some release's first day need to be looked at.
        """
        alike = self._alike(unit)
        undated = [one for one in alike if one.first is None]
        coming = sorted((one for one in alike if one.first is not None), key=lambda one: one.first or 0)
        starts = sorted({(one.first or 0) - days + 1 for one in coming})
        if changed is not None and all(row.first_day is not None for row in changed):
            near = [((row.first_day or 0) - days, row.last_day or 0) for row in changed]
            starts = [start for start in starts if any(low < start <= high for low, high in near)]
        seen: set[frozenset[tuple[Bundle, int]]] = set()
        held: list[_Alike] = []
        position = 0
        for start in starts:
            while position < len(coming) and (coming[position].first or 0) < start + days:
                held.append(coming[position])
                position += 1
            held = [one for one in held if (one.last or 0) >= start]
            found = _bundled([*held, *undated])
            key = frozenset(found.items())
            if key not in seen:
                seen.add(key)
                yield start, found
        if not starts and undated:
            yield None, _bundled(undated)

    def _alike(self, unit: str, only: Container[int] | None = None) -> list[_Alike]:
        often = Counter(
            (row.first_day, row.last_day, number, beside, row.part)
            for number, group in enumerate(self.components)
            for beside in [_beside(group)]
            for row in group
            if row.unit == unit and (only is None or row.id in only)
        )
        return [_Alike(*what, times) for what, times in often.items()]


class _Alike(NamedTuple):
    """Equal releases of one component."""

    first: int | None
    last: int | None
    component: int
    beside: Beside
    part: str
    times: int

    def meets(self, start: int | None, days: int) -> bool:
        return start is not None and (self.first or 0) < start + days and (self.last or 0) >= start


def _bundled(several: Iterable[_Alike]) -> Counter[Bundle]:
    parts: dict[tuple[int, Beside], Counter[str]] = defaultdict(Counter)
    alone: Counter[str] = Counter()
    for _, _, component, beside, part, times in several:
        often = alone if beside == "alone" else parts[component, beside]
        often[part] += times
    found = Counter(Bundle.of(beside, often) for (_, beside), often in parts.items())
    return found + Counter({Bundle("alone", ((part, 1),)): times for part, times in alone.items()})


def _digest(bundle: Bundle) -> str:
    return sha256(json.dumps([bundle.beside, [list(part) for part in bundle.parts]], separators=(",", ":")))


def _beside(group: Sequence[Row]) -> Beside:
    return "alone" if len(group) == 1 else "same unit" if len({row.unit for row in group}) == 1 else "other units"
