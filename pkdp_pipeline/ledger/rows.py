"""Rows: what became of every reservation, derived from the chain's events alone, one event after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger.account import Holding
from pkdp_pipeline.ledger.chain import Event
from pkdp_pipeline.ledger.parts import certificate_of, counted, describe, sha256
from pkdp_pipeline.model.facts import Facts
from pkdp_pipeline.model.mechanisms import Kind

State = Literal["reserved", "published", "given_back"]


class Row(NamedTuple):
    """A row of the table ``entry``: what the events say of one reservation; see ``sql/ledger``."""

    id: int
    dataset: str
    key: str
    revision: int
    state: State
    published: int | None
    certificate: int
    content: int | None
    counts: int
    part: str
    unit: str
    kind: Kind
    first_day: int | None
    last_day: int | None
    label: str | None
    source: str | None
    time_zone: str | None
    told: int
    leaks: int

    @property
    def holding(self) -> Holding:
        """The release as adding up looks at it."""
        days = self.first_day, self.last_day, self.label
        return Holding(self.id, self.unit, self.kind, self.part, *days, self.source, bool(self.told))


def after(row: Row | None, event: Event, certificate: Callable[[int], str]) -> Row:
    """Return what an event makes of its reservation; the one rule for charging, copying and verifying.

    Parameters
    ----------
    row : Row or None
        What the events before say of the same key and revision; None where nothing is charged.
    event : Event
    certificate : callable
        Returns the certificate's text that an event holds; see `Journal.certificate`.

    Raises
    ------
    LedgerError
        If the event cannot follow those before, or its certificate is not that of the release.
    """
    number = event.sequence
    if event.kind == "reserved" and row is None:
        return _reserved(event)
    if event.kind == "published" and row is not None and row.state == "reserved":
        return row._replace(state="published", published=number, content=number)
    if event.kind == "given_back" and row is not None and row.state == "reserved":
        return row._replace(state="given_back")
    if event.kind == "recertified" and row is not None and row.state == "published":
        new, former = describe(str(event.certificate)), describe(certificate(row.counts))
        told = row.told and int(certificate_of(new).attacker.total_is_known)
        row = row._replace(certificate=number, content=number, told=told)
        # Totals count a release with the boldest certificate that it had.
        return row if counted((former, new)) == former else row._replace(counts=number, **_part(new))
    raise LedgerError(
        f"the ledger was altered: event {number} ({event.kind}) cannot follow the events before it. Restore it from a "
        "backup, with a head that a release names."
    )


def _reserved(event: Event) -> Row:
    standing = Facts.from_dict(json.loads(str(event.standing)))
    description = describe(str(event.certificate))
    certified = certificate_of(description)
    if certified.mechanism != standing.mechanism or certified.protects != standing.protects:
        raise LedgerError("the certificate to be charged is not that of the release: certify what is published.")
    holding = Holding.of(standing)
    return Row(
        id=event.sequence,
        dataset=event.dataset,
        key=event.key,
        revision=event.revision,
        state="reserved",
        published=None,
        certificate=event.sequence,
        content=None,
        counts=event.sequence,
        unit=holding.unit,
        kind=holding.kind,
        first_day=holding.first,
        last_day=holding.last,
        label=holding.label,
        source=standing.table,
        time_zone=standing.time_zone,
        told=int(certified.attacker.total_is_known),
        **_part(description),
    )


def _part(description: str) -> dict[str, Any]:
    return {"part": sha256(description), "leaks": int(bool(certificate_of(description).attacker.leakage))}


def replayed(events: Iterable[Event], certificate: Callable[[int], str]) -> dict[int, Row]:
    """Return the rows, by id, that the events of one data set give; raises a `LedgerError` as `after` does."""
    rows: dict[int, Row] = {}
    charged: dict[tuple[str, int], Row] = {}
    unreadable: set[str] = set()
    for event in events:
        what = (event.key, event.revision)
        if event.kind == "unreadable" and event.key not in unreadable:
            unreadable.add(event.key)
            continue
        row = charged[what] = after(charged.get(what), event, certificate)
        rows[row.id] = row
        if row.state == "given_back":
            del charged[what]
    return rows
