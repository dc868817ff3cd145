"""Unreadable tables: those of a data set that once could not be read, recorded in its chain."""

from __future__ import annotations

from pkdp_pipeline.ledger.entries import Entries
from pkdp_pipeline.ledger.journal import Journal
from pkdp_pipeline.ledger.ledger import Ledger

__all__ = ["mark_unreadable", "unreadable_tables"]


def unreadable_tables(ledger: Ledger) -> frozenset[str]:
    """Return the tables of the ledger's data set that were found to be unreadable."""
    rows = ledger._database.execute(
        "SELECT key FROM event WHERE dataset = :dataset AND kind = 'unreadable'", dataset=ledger.dataset
    )
    return frozenset(str(row[0]) for row in rows)


def mark_unreadable(ledger: Ledger, table: str) -> None:
    """Record, once, that a table could not be read.

    That somebody's data cannot be read is told once, of the table as a whole, and never again: answers that came back
    after a failure, or failed for one question and not for another, would spell the data out.

    Raises
    ------
    LedgerError, TemporaryError
        If the ledger cannot be used or is locked.
    """
    dataset = ledger.dataset
    with ledger._database.transaction(dataset):
        Entries(ledger._database).register(dataset)
        if table not in unreadable_tables(ledger):
            Journal(ledger._database).append(dataset=dataset, kind="unreadable", key=table, revision=1)
