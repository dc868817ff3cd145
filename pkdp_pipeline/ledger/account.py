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
from typing import Literal, NamedTuple

from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.parts import sha256
from pkdp_pipeline.model.facts import Facts
from pkdp_pipeline.model.mechanisms import Kind
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.spelling import folded

Beside = Literal["alone", "same unit", "other units"]


def unit_text(unit: Sequence[str]) -> str:
    """Return a privacy unit as it is compared: its columns in order, as JSON."""
    return json.dumps(sorted(unit), ensure_ascii=False, separators=(",", ":"))


class Span(NamedTuple):
    """The days of a period as ordinals, or its folded label. A label meets itself and every dated period."""

    first: int | None
    last: int | None
    label: str | None

    @classmethod
    def of(cls, standing: Facts) -> Span:
        """Return the span of a release's period."""
        period = Period.parse(standing.period)
        days = period.days()
        return cls(None, None, folded(period.text)) if days is None else cls(*days, None)


EVERYTHING = Span(None, None, "")
"""What meets every window."""


class Holding(NamedTuple):
    """One charged release, as far as other releases and adding up look at it.

    Attributes
    ----------
    entry : int
    unit : str
        See `unit_text`.
    kind : str
        See `pkdp_pipeline.model.mechanisms.kind_of`.
    part : str
        The sha256 of what it counts with; see `pkdp_pipeline.ledger.parts`.
    first, last : int or None
        Its days as ordinals; None for a label.
    label : str or None
        The folded label where there are no days.
    source : str or None
        The table of the data set, where it has several.
    told : bool
        Whether all its certificates are about attackers to whom `AttackerModel.total_is_known`.
    """

    entry: int
    unit: str
    kind: Kind
    part: str
    first: int | None
    last: int | None
    label: str | None
    source: str | None
    told: bool

    @classmethod
    def of(cls, standing: Facts, *, entry: int = 0, part: str = "", told: bool = False) -> Holding:
        """Return a release as it is charged, or would be."""
        span = Span.of(standing)
        return cls(entry, unit_text(standing.unit), standing.kind, part, *span, standing.table, told)

    @property
    def span(self) -> Span:
        """When it is about."""
        return Span(self.first, self.last, self.label)

    def meets(self, span: Span) -> bool:
        """Return whether its period and another one overlap."""
        if span.first is None or span.last is None or self.first is None or self.last is None:
            return span.label != self.label if None in (span.label, self.label) else span.label == self.label
        return span.first <= self.last and self.first <= span.last


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
    def of(cls, beside: Beside, parts: Mapping[str, int] | Iterable[tuple[str, int]]) -> Bundle:
        """Return the bundle of these parts, sorted."""
        return cls(beside, tuple(sorted(dict(parts).items())))


class Account:
    """What charged releases add up from; it is never changed.

    Parameters
    ----------
    holdings : iterable of Holding
        Every release of the data set that is charged and not given back.
    """

    def __init__(self, holdings: Iterable[Holding]) -> None:
        self.holdings = tuple(holdings)

    def plus(self, holding: Holding) -> Account:
        """Return the account with one release more."""
        return Account((*self.holdings, holding))

    def without(self, entry: int | None) -> Account:
        """Return the account as it would be had a release not been charged."""
        return Account(one for one in self.holdings if one.entry != entry)

    @cached_property
    def units(self) -> list[str]:
        """The privacy units, as `unit_text`."""
        return sorted({one.unit for one in self.holdings})

    @cached_property
    def components(self) -> list[list[Holding]]:
        """The releases whose periods overlap, each leading to the next, as one list each."""
        dated = sorted((one for one in self.holdings if one.first is not None), key=lambda one: (one.first, one.entry))
        labelled: dict[str | None, list[Holding]] = defaultdict(list)
        for one in self.holdings:
            if one.first is None:
                labelled[one.label].append(one)
        if dated and labelled:
            return [list(self.holdings)]
        groups = list(labelled.values())
        until = 0
        for one in dated:
            first, last = one.first or 0, one.last or 0
            if first <= until:
                groups[-1].append(one)
                until = max(until, last)
            else:
                groups.append([one])
                until = last
        return groups

    def component(self, entry: int) -> list[Holding]:
        """Return the component of a release that is charged."""
        return next(group for group in self.components if any(one.entry == entry for one in group))

    def met(self, span: Span) -> list[list[Holding]]:
        """Return the components that a period meets."""
        return [group for group in self.components if any(one.meets(span) for one in group)]

    def bundles(self, unit: str, only: Container[int] | None = None) -> Counter[Bundle]:
        """Return what a unit's releases add up from, and how often; `only` leaves out all entries but these."""
        found: Counter[Bundle] = Counter()
        single: Counter[str] = Counter()
        for group in self.components:
            own = [one.part for one in group if one.unit == unit and (only is None or one.entry in only)]
            if len(group) == 1:
                single.update(own)
            elif own:
                found[Bundle.of(_beside(group), Counter(own))] += 1
        found.update({Bundle("alone", ((part, 1),)): times for part, times in single.items()})
        # In one order, so that a total is the same to its last bit however its releases came.
        return Counter({bundle: found[bundle] for bundle in sorted(found, key=_digest)})

    def window(self, unit: str, days: int, start: int | None) -> Counter[Bundle]:
        """Return what counts in the window of `days` days from `start` (None: what counts in every window)."""
        return _bundled(row for row in self._rows(unit) if row.first is None or row.meets(start, days))

    def windows(
        self, unit: str, days: int, changed: Sequence[Span] = (EVERYTHING,)
    ) -> Iterator[tuple[int | None, Counter[Bundle]]]:
        """Yield the first day of every window of consecutive days that meets a changed release, and what counts in it.

        Windows that hold no more than another one, and windows that add up from the same, are left out. A release
        counts in a window that its period meets, with what stands beside it in the whole ledger; a label without
        dates counts in every window; where there is nothing else, the first day is None.

        Parameters
        ----------
        unit : str
        days : int
        changed : sequence of Span
            The periods of the releases that are new, or count for more than before.

        Notes
        -----
        A window is known by its first day s. The release of the days a to b counts where a - days < s <= b. Of all
        windows that hold some releases together, the one that ends on the latest of their first days,
        ``s = max a - days + 1``, is the first, and holds all that later ones hold of them; so only windows that end
        on some release's first day need to be looked at.
        """
        rows = self._rows(unit)
        undated = [row for row in rows if row.first is None]
        coming = sorted((row for row in rows if row.first is not None), key=lambda row: row.first or 0)
        starts = sorted({(row.first or 0) - days + 1 for row in coming})
        near = [(span.first - days, span.last) for span in changed if span.first is not None and span.last is not None]
        if len(near) == len(changed):
            starts = [start for start in starts if any(low < start <= high for low, high in near)]
        seen: set[frozenset[tuple[Bundle, int]]] = set()
        held: list[_Row] = []
        position = 0
        for start in starts:
            while position < len(coming) and (coming[position].first or 0) < start + days:
                held.append(coming[position])
                position += 1
            held = [row for row in held if (row.last or 0) >= start]
            found = _bundled([*held, *undated])
            key = frozenset(found.items())
            if key not in seen:
                seen.add(key)
                yield start, found
        if not starts and undated:
            yield None, _bundled(undated)

    def _rows(self, unit: str) -> list[_Row]:
        rows = []
        for number, group in enumerate(self.components):
            often = Counter((one.first, one.last, one.part) for one in group if one.unit == unit)
            beside = _beside(group)
            rows += [_Row(first, last, number, beside, part, n) for (first, last, part), n in often.items()]
        return rows


class _Row(NamedTuple):
    """Equal releases of one component."""

    first: int | None
    last: int | None
    component: int
    beside: Beside
    part: str
    times: int

    def meets(self, start: int | None, days: int) -> bool:
        return start is not None and (self.first or 0) < start + days and (self.last or 0) >= start


def _bundled(rows: Iterable[_Row]) -> Counter[Bundle]:
    parts: dict[tuple[int, Beside], Counter[str]] = defaultdict(Counter)
    for row in rows:
        parts[row.component, row.beside][row.part] += row.times
    return Counter(Bundle.of(beside, often) for (_, beside), often in parts.items())


def _digest(bundle: Bundle) -> str:
    return sha256(json.dumps([bundle.beside, [list(part) for part in bundle.parts]], separators=(",", ":")))


def _beside(group: Sequence[Holding]) -> Beside:
    return "alone" if len(group) == 1 else "same unit" if len({one.unit for one in group}) == 1 else "other units"


_STEPS = 4
"""Where periods lead further than so many steps, everything is read."""

_CHARGED = (
    "SELECT id, unit, kind, part, first_day, last_day, label, source, told FROM entry "
    "WHERE dataset = :dataset AND state <> 'given_back'"
)


def read_account(db: Database, dataset: str, near: Span | None = None) -> Account:
    """Return the account of a data set as it is charged now; with `near` what that period meets is enough.

    Nothing of it is stored. At 20,000 entries reading and adding up takes some tenths of a second on a busy machine of
    two cores; a charge without a budget, and a check, read only what is near, and do not grow with the ledger.
    """
    first, last = (None, None) if near is None else (near.first, near.last)
    if (
        first is not None
        and last is not None
        and not db.execute(f"{_CHARGED} AND label IS NOT NULL LIMIT 1", dataset=dataset)
    ):
        for _ in range(_STEPS):
            query = f"{_CHARGED} AND last_day >= :first AND first_day <= :last ORDER BY id"
            account = Account(map(Holding._make, db.execute(query, dataset=dataset, first=first, last=last)))
            reached = first, last
            first = min([first, *(one.first or 0 for one in account.holdings)])
            last = max([last, *(one.last or 0 for one in account.holdings)])
            if reached == (first, last):
                return account
    return Account(map(Holding._make, db.execute(f"{_CHARGED} ORDER BY id", dataset=dataset)))


def units_of(db: Database, dataset: str) -> list[str]:
    """Return the units the data set's releases are about, as `unit_text`."""
    rows = db.execute(
        "SELECT DISTINCT unit FROM entry WHERE dataset = :dataset AND state <> 'given_back' ORDER BY unit",
        dataset=dataset,
    )
    return [row[0] for row in rows]
