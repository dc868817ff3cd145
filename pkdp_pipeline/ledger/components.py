"""Components: releases whose periods overlap, each leading to the next, kept up to date in the database."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pkdp_pipeline.ledger.bundle import Bundle, company_for
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.spelling import folded

__all__ = [
    "Component",
    "Holding",
    "Reach",
    "bundles",
    "insert_component",
    "members",
    "split",
    "standing_text",
    "unit_text",
]


def unit_text(unit: Sequence[str]) -> str:
    """Return a privacy unit as it is compared: its columns in order, as JSON."""
    return json.dumps(sorted(unit), ensure_ascii=False, separators=(",", ":"))


def standing_text(standing: Standing) -> str:
    """Return a standing as canonical JSON."""
    return json.dumps(standing.to_dict(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One charged release, as far as adding up looks at it.

    Parameters
    ----------
    entry : int
    unit : str
        See `unit_text`.
    part : str
        The sha256 of its part.
    first, last : int or None
        Its days as ordinals; None for a label.
    label : str or None
        The folded label where there are no days.
    """

    entry: int
    unit: str
    part: str
    first: int | None
    last: int | None
    label: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The days or the label of a period, and the components it meets.

    Two calendar periods meet when they share a day; a label meets itself and every calendar period.
    """

    first: int | None
    last: int | None
    label: str | None

    @classmethod
    def of(cls, standing: Standing) -> Reach:
        """Return the reach of a release's period."""
        period = Period.parse(standing.period)
        days = period.days()
        if days is None:
            return cls(first=None, last=None, label=folded(period.text))
        return cls(first=days[0], last=days[1], label=None)

    def met(self, db: Database, dataset: str) -> list[int]:
        """Return the ids of the components that the period meets."""
        if self.label is not None:
            rows = db.execute(
                "SELECT id FROM component WHERE dataset = :dataset AND (dated > 0 OR label = :label) ORDER BY id",
                dataset=dataset,
                label=self.label,
            )
        else:
            # The stretches of dated components are disjoint, so the index on their last days finds the few.
            rows = db.execute(
                "SELECT id FROM component WHERE dataset = :dataset AND last_day >= :first AND first_day <= :last "
                "UNION SELECT id FROM component WHERE dataset = :dataset AND undated > 0 ORDER BY id",
                dataset=dataset,
                first=self.first,
                last=self.last,
            )
        return [int(row[0]) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Releases whose periods overlap, each leading to the next; `id` is the smallest entry."""

    id: int
    first: int | None
    last: int | None
    label: str | None
    dated: int
    undated: int
    units: int

    @classmethod
    def of(cls, holdings: Sequence[Holding]) -> Component:
        """Return the component that these releases make."""
        firsts = [one.first for one in holdings if one.first is not None]
        lasts = [one.last for one in holdings if one.last is not None]
        return cls(
            id=min(one.entry for one in holdings),
            first=min(firsts, default=None),
            last=max(lasts, default=None),
            label=None if firsts else holdings[0].label,
            dated=len(firsts),
            undated=len(holdings) - len(firsts),
            units=len({one.unit for one in holdings}),
        )


def split(holdings: Iterable[Holding]) -> list[list[Holding]]:
    """Return the components that these releases fall into, each a list of releases."""
    dated, undated = [], defaultdict(list)
    for one in holdings:
        if one.first is None:
            undated[one.label].append(one)
        else:
            dated.append(one)
    if dated and undated:
        return [dated + [one for group in undated.values() for one in group]]
    if undated:
        return list(undated.values())
    groups: list[list[Holding]] = []
    until = 0
    for one in sorted(dated, key=lambda one: (one.first or 0, one.entry)):
        if groups and (one.first or 0) <= until:
            groups[-1].append(one)
        else:
            groups.append([one])
            until = 0
        until = max(until, one.last or 0)
    return groups


def bundles(db: Database, component: int) -> dict[str, Bundle]:
    """Return what the component holds for each unit."""
    rows = db.execute(
        "SELECT unit, part, COUNT(*) FROM holding WHERE component = :component GROUP BY unit, part",
        component=component,
    )
    parts: dict[str, Counter[str]] = defaultdict(Counter)
    for unit, part, times in rows:
        parts[unit][part] += int(times)
    releases = sum(counted.total() for counted in parts.values())
    company = company_for(releases=releases, units=len(parts))
    return {unit: Bundle.of(company, counted) for unit, counted in parts.items()}


def members(db: Database, component: int) -> list[Holding]:
    """Return the releases of a component."""
    rows = db.execute(
        "SELECT entry, unit, part, first_day, last_day, label FROM holding WHERE component = :component ORDER BY entry",
        component=component,
    )
    return [
        Holding(entry=int(entry), unit=unit, part=part, first=first, last=last, label=label)
        for entry, unit, part, first, last, label in rows
    ]


def insert_component(db: Database, dataset: str, component: Component) -> None:
    """Store a component."""
    db.execute(
        "INSERT INTO component (id, dataset, first_day, last_day, label, dated, undated, units) "
        "VALUES (:id, :dataset, :first, :last, :label, :dated, :undated, :units)",
        id=component.id,
        dataset=dataset,
        first=component.first,
        last=component.last,
        label=component.label,
        dated=component.dated,
        undated=component.undated,
        units=component.units,
    )
