"""Windows: which releases count in which stretch of consecutive days, as far as a new release matters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pkdp_pipeline.ledger.bundle import Bundle, company_for
from pkdp_pipeline.ledger.components import Reach
from pkdp_pipeline.ledger.database import Database

__all__ = ["window", "windows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    first: int
    last: int
    component: int
    part: str
    releases: int
    units: int
    times: int


def windows(
    db: Database, dataset: str, unit: str, days: int, changed: Iterable[Reach]
) -> Iterator[tuple[int | None, Counter[Bundle]]]:
    """Yield the first day of, and what counts in, every window of `days` consecutive days that meets a changed release.

    Windows that hold no more than another one, and windows that add up from the same, are left out. A release
    counts in a window that its period meets, in the company it has in the whole ledger; a label without dates
    counts in every window; where there is nothing else, the first day is None.

    Parameters
    ----------
    db : Database
    dataset, unit : str
    days : int
    changed : iterable of Reach
        The periods of the releases that are new, or count for more than before.

    Notes
    -----
    A window is known by its first day s. The release of the days a to b counts where a - days < s <= b. Of all
    windows that hold some releases together, the one that ends on the latest of their first days,
    ``s = max a - days + 1``, is the first, and holds all that later ones hold of them; so only windows that end
    on some release's first day need to be looked at.
    """
    undated = _undated(db, dataset, unit)
    stretches = [(one.first, one.last) for one in changed]
    rows = _dated(db, dataset, unit, days, stretches)
    starts = sorted({row.first - days + 1 for row in rows})
    if (None, None) not in stretches:
        ends = [(first - days, last) for first, last in stretches if first is not None and last is not None]
        starts = [start for start in starts if any(low < start <= high for low, high in ends)]
    seen: set[frozenset[tuple[Bundle, int]]] = set()
    coming = sorted(rows, key=lambda row: row.first)
    held: list[_Row] = []
    position = 0
    for start in starts:
        while position < len(coming) and coming[position].first < start + days:
            held.append(coming[position])
            position += 1
        held = [row for row in held if row.last >= start]
        found = _bundled([*held, *undated])
        key = frozenset(found.items())
        if key not in seen:
            seen.add(key)
            yield start, found
    if not starts and undated:
        yield None, _bundled(undated)


def window(db: Database, dataset: str, unit: str, days: int, start: int | None) -> Counter[Bundle]:
    """Return what counts in the window of `days` days from `start` (None: what counts in every window)."""
    undated = _undated(db, dataset, unit)
    if start is None:
        return _bundled(undated)
    rows = _dated(db, dataset, unit, 1, [(start, start + days - 1)])
    return _bundled([*rows, *undated])


def _bundled(rows: list[_Row]) -> Counter[Bundle]:
    parts: dict[tuple[int, int, int], Counter[str]] = defaultdict(Counter)
    for row in rows:
        parts[row.component, row.releases, row.units][row.part] += row.times
    return Counter(
        Bundle.of(company_for(releases=releases, units=units), counted)
        for (_, releases, units), counted in parts.items()
    )


_COLUMNS = (
    "SELECT COALESCE(h.first_day, 0), COALESCE(h.last_day, 0), h.component, h.part, c.dated + c.undated, c.units, "
    "COUNT(*) FROM holding h JOIN component c ON c.id = h.component WHERE h.dataset = :dataset AND h.unit = :unit "
)
_GROUPS = " GROUP BY h.first_day, h.last_day, h.component, h.part, c.dated, c.undated, c.units"


def _undated(db: Database, dataset: str, unit: str) -> list[_Row]:
    rows = db.execute(f"{_COLUMNS} AND h.label IS NOT NULL {_GROUPS}", dataset=dataset, unit=unit)
    return [_row(*row) for row in rows]


def _dated(
    db: Database, dataset: str, unit: str, days: int, stretches: list[tuple[int | None, int | None]]
) -> list[_Row]:
    """Return the dated releases of all windows that meet one of the stretches; of all, where one has no dates."""
    firsts = [first for first, _ in stretches]
    lasts = [last for _, last in stretches]
    if None in firsts or None in lasts:
        rows = db.execute(f"{_COLUMNS} AND h.first_day IS NOT NULL {_GROUPS}", dataset=dataset, unit=unit)
        return [_row(*row) for row in rows]
    low = min(first for first in firsts if first is not None) - days + 1
    high = max(last for last in lasts if last is not None) + days - 1
    # No period is longer than this, so those that begin earlier end before the first window.
    ((longest,),) = db.execute("SELECT MAX(days) FROM holding WHERE dataset = :dataset", dataset=dataset)
    rows = db.execute(
        f"{_COLUMNS} AND h.first_day > :earliest AND h.first_day <= :high AND h.last_day >= :low {_GROUPS}",
        dataset=dataset,
        unit=unit,
        earliest=low - int(longest or 1),
        low=low,
        high=high,
    )
    return [_row(*row) for row in rows]


def _row(first: int, last: int, component: int, part: str, releases: int, units: int, times: int) -> _Row:
    return _Row(
        first=int(first),
        last=int(last),
        component=int(component),
        part=part,
        releases=int(releases),
        units=int(units),
        times=int(times),
    )
