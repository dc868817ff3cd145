"""The running state: how many components add up to the same, for each data set and unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger.bundle import Bundle
from pkdp_pipeline.ledger.components import (
    Component,
    Reach,
    bundles,
    insert_component,
    members,
    split,
    standing_text,
    unit_text,
)
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.parts import sha256
from pkdp_pipeline.ledger.standing import Standing

__all__ = ["exchange", "join", "leave", "read_tally", "units_of"]


def read_tally(db: Database, dataset: str, unit: str) -> Counter[Bundle]:
    """Return how often each bundle occurs."""
    rows = db.execute(
        "SELECT sha256, bundle, times FROM tally WHERE dataset = :dataset AND unit = :unit ORDER BY sha256",
        dataset=dataset,
        unit=unit,
    )
    found: Counter[Bundle] = Counter()
    for key, text, times in rows:
        if sha256(text) != key:
            raise LedgerError("the ledger's running state is not what its keys say: it was altered.")
        found[Bundle.from_json(text)] += int(times)
    return found


def units_of(db: Database, dataset: str) -> list[str]:
    """Return the units the data set's releases are about, as `unit_text`."""
    return [
        row[0]
        for row in db.execute("SELECT DISTINCT unit FROM tally WHERE dataset = :dataset ORDER BY unit", dataset=dataset)
    ]


def join(db: Database, dataset: str, standing: Standing, part: str, entry: int) -> None:
    """Add a release: it joins, or connects, the components its period meets."""
    reach = Reach.of(standing)
    met = reach.met(db, dataset)
    for component in met:
        _count(db, dataset, bundles(db, component), -1)
    identity = min([*met, entry])
    grown = _grown(db, met, identity, reach)
    for component in met:
        if component != identity:
            db.execute("UPDATE holding SET component = :new WHERE component = :old", new=identity, old=component)
        db.execute("DELETE FROM component WHERE id = :id", id=component)
    db.execute(
        "INSERT INTO holding (entry, dataset, unit, kind, part, first_day, last_day, days, label, component, standing) "
        "VALUES (:entry, :dataset, :unit, :kind, :part, :first, :last, :days, :label, :component, :standing)",
        entry=entry,
        dataset=dataset,
        unit=unit_text(standing.unit),
        kind=standing.stored_kind,
        part=part,
        first=reach.first,
        last=reach.last,
        days=None if reach.first is None or reach.last is None else reach.last - reach.first + 1,
        label=reach.label,
        component=identity,
        standing=standing_text(standing),
    )
    held = bundles(db, identity)
    _count(db, dataset, held, 1)
    insert_component(db, dataset, replace(grown, units=len(held)))


def leave(db: Database, dataset: str, entry: int) -> bool:
    """Take a release out, and split what it connected; False when it is not there."""
    rows = db.execute(
        "SELECT component FROM holding WHERE entry = :entry AND dataset = :dataset", entry=entry, dataset=dataset
    )
    if not rows:
        return False
    component = int(rows[0][0])
    _count(db, dataset, bundles(db, component), -1)
    db.execute("DELETE FROM holding WHERE entry = :entry", entry=entry)
    db.execute("DELETE FROM component WHERE id = :id", id=component)
    groups = split(members(db, component))
    found = [Component.of(group) for group in groups]
    for made, group in zip(found, groups, strict=True):
        for one in group if made.id != component else ():
            db.execute("UPDATE holding SET component = :new WHERE entry = :entry", new=made.id, entry=one.entry)
    for made in found:
        insert_component(db, dataset, made)
        _count(db, dataset, bundles(db, made.id), 1)
    return True


def exchange(db: Database, dataset: str, entry: int, part: str) -> bool:
    """Give a release another certificate; False when it is not there."""
    rows = db.execute(
        "SELECT component FROM holding WHERE entry = :entry AND dataset = :dataset", entry=entry, dataset=dataset
    )
    if not rows:
        return False
    component = int(rows[0][0])
    _count(db, dataset, bundles(db, component), -1)
    db.execute("UPDATE holding SET part = :part WHERE entry = :entry", part=part, entry=entry)
    _count(db, dataset, bundles(db, component), 1)
    return True


def _grown(db: Database, met: list[int], identity: int, reach: Reach) -> Component:
    """Return the component that these and a release of this reach make; its units are counted later."""
    firsts, lasts = [reach.first], [reach.last]
    dated, undated = int(reach.label is None), int(reach.label is not None)
    for component in met:
        ((first, last, had_dated, had_undated),) = db.execute(
            "SELECT first_day, last_day, dated, undated FROM component WHERE id = :id", id=component
        )
        firsts.append(first)
        lasts.append(last)
        dated, undated = dated + int(had_dated), undated + int(had_undated)
    return Component(
        id=identity,
        first=min((day for day in firsts if day is not None), default=None),
        last=max((day for day in lasts if day is not None), default=None),
        label=None if dated else reach.label,
        dated=dated,
        undated=undated,
        units=0,
    )


def _count(db: Database, dataset: str, held: Mapping[str, Bundle], step: int) -> None:
    """Count the bundles of one component in (step 1) or out (step -1)."""
    for unit, bundle in held.items():
        text = bundle.to_json()
        key = sha256(text)
        rows = db.execute(
            "SELECT times FROM tally WHERE dataset = :dataset AND unit = :unit AND sha256 = :key",
            dataset=dataset,
            unit=unit,
            key=key,
        )
        times = (int(rows[0][0]) if rows else 0) + step
        if times < 0:
            raise LedgerError("the ledger's running state is not that of its releases: run pkdp ledger verify.")
        if not times:
            db.execute(
                "DELETE FROM tally WHERE dataset = :dataset AND unit = :unit AND sha256 = :key",
                dataset=dataset,
                unit=unit,
                key=key,
            )
        elif rows:
            db.execute(
                "UPDATE tally SET times = :times WHERE dataset = :dataset AND unit = :unit AND sha256 = :key",
                times=times,
                dataset=dataset,
                unit=unit,
                key=key,
            )
        else:
            db.execute(
                "INSERT INTO tally (dataset, unit, sha256, bundle, times) "
                "VALUES (:dataset, :unit, :key, :bundle, :times)",
                dataset=dataset,
                unit=unit,
                key=key,
                bundle=text,
                times=times,
            )
