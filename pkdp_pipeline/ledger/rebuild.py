"""Rebuild: the running state computed anew from the releases themselves, to compare with the stored one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger.bundle import Bundle, company_for
from pkdp_pipeline.ledger.components import Component, Holding, Reach, split, standing_text, unit_text
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.parts import counted, describe, sha256
from pkdp_pipeline.ledger.standing import Standing

__all__ = ["Charged", "rebuild_and_compare"]


class Charged(Protocol):
    """A release that is charged and not given back, as the chain tells it."""

    @property
    def sequence(self) -> int:
        """Its entry."""

    @property
    def standing(self) -> Standing:
        """What it is about."""

    @property
    def certificates(self) -> tuple[str, ...]:
        """The JSON texts of all its certificates, the first one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    holdings: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    components: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    tally: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)


def rebuild_and_compare(db: Database, dataset: str, entries: Iterable[Charged]) -> None:
    """Compare the stored running state with the one that the data set's releases give.

    Parameters
    ----------
    db : Database
        Only read.
    dataset : str
    entries : iterable of Charged
        All releases of the data set that are charged and not given back.

    Raises
    ------
    LedgerError
        If they differ: a total read from the stored state would be another one.
    """
    expected, stored = _rebuilt(entries), _stored(db, dataset)
    named = (
        ("which releases are charged", expected.holdings, stored.holdings),
        ("which releases stand together", expected.components, stored.components),
        ("what they add up to", expected.tally, stored.tally),
        ("the certificates they add up from", expected.parts, stored.parts),
    )
    for what, mine, theirs in named:
        if mine != theirs:
            raise LedgerError(
                f"the ledger's running state of data set {dataset!r} is not what its entries give ({what}): it was "
                "altered. Its totals cannot be used; its entries and their bytes are checked by their chain."
            )


def _rebuilt(entries: Iterable[Charged]) -> _State:
    state = _State()
    holdings = []
    for entry in entries:
        standing, reach = entry.standing, Reach.of(entry.standing)
        description = counted(map(describe, entry.certificates))
        part, unit = sha256(description), unit_text(standing.unit)
        state.parts[part] = description
        holdings.append(
            Holding(entry=entry.sequence, unit=unit, part=part, first=reach.first, last=reach.last, label=reach.label)
        )
        days = None if reach.first is None or reach.last is None else reach.last - reach.first + 1
        row = (unit, standing.stored_kind, part, reach.first, reach.last, days, reach.label, standing_text(standing))
        state.holdings[entry.sequence] = row
    tally: Counter[tuple[str, Bundle]] = Counter()
    for group in split(holdings):
        made = Component.of(group)
        state.components[made.id] = (made.first, made.last, made.label, made.dated, made.undated, made.units)
        company = company_for(releases=len(group), units=made.units)
        parts: dict[str, Counter[str]] = defaultdict(Counter)
        for one in group:
            parts[one.unit][one.part] += 1
            state.holdings[one.entry] = (*state.holdings[one.entry], made.id)
        for unit, often in parts.items():
            tally[unit, Bundle.of(company, often)] += 1
    for (unit, bundle), times in tally.items():
        text = bundle.to_json()
        state.tally[unit, sha256(text)] = (text, times)
    return state


def _stored(db: Database, dataset: str) -> _State:
    holdings = db.execute(
        "SELECT entry, unit, kind, part, first_day, last_day, days, label, standing, component FROM holding "
        "WHERE dataset = :dataset",
        dataset=dataset,
    )
    components = db.execute(
        "SELECT id, first_day, last_day, label, dated, undated, units FROM component WHERE dataset = :dataset",
        dataset=dataset,
    )
    tally = db.execute("SELECT unit, sha256, bundle, times FROM tally WHERE dataset = :dataset", dataset=dataset)
    parts = db.execute(
        "SELECT sha256, description FROM part WHERE sha256 IN (SELECT part FROM holding WHERE dataset = :dataset)",
        dataset=dataset,
    )
    return _State(
        holdings={row[0]: tuple(row[1:]) for row in holdings},
        components={row[0]: tuple(row[1:]) for row in components},
        tally={(unit, key): (bundle, times) for unit, key, bundle, times in tally},
        parts={row[0]: row[1] for row in parts},
    )
