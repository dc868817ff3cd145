"""Copying: a ledger that says what the real one would say, while that one stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any

from pkdp_pipeline.ledger.database import Database, open_database
from pkdp_pipeline.ledger.ledger import Ledger
from pkdp_pipeline.ledger.records import Records
from pkdp_pipeline.ledger.sqlite_database import SqliteDatabase


@contextmanager
def rehearsal(ledger: Ledger) -> Iterator[Ledger]:
    """Yield a ledger in the same state, under the same terms, whose changes are taken back at the end.

    Several releases that are reserved inside are held to the rules and the budgets together, as if they were
    charged one after the other. The data set is locked meanwhile, so no data may be read inside.

    Raises
    ------
    LedgerError, TemporaryError
        If the ledger cannot be used or is locked.
    """
    database, terms = ledger.records.database, ledger.terms
    try:
        with ledger.records.transaction():
            trial = Ledger(
                _Within(database),
                dataset=ledger.dataset,
                budget=list(terms.budgets),
                evidence=list(terms.evidence),
            )
            trial.target = ledger.target
            yield trial
            raise _TakenBack
    except _TakenBack:
        pass


class _TakenBack(Exception):  # noqa: N818 - it tells of no error
    """Rolls the transaction back."""


class _Within:
    """A database inside a transaction that somebody else began and will end."""

    def __init__(self, database: Database) -> None:
        self.execute, self.check, self.location = database.execute, database.check, database.location

    def transaction(self, dataset: str) -> AbstractContextManager[None]:
        return nullcontext()

    def snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        """Leave it open: it is not ours."""


@contextmanager
def copied(location: str, *, dataset: str, budget: Any = None, evidence: Any = None) -> Iterator[Ledger]:
    """Yield a copy of a ledger, in memory: a new one where there is none.

    An SQLite file is read as it is, page by page, and nothing is created beside it. Of a PostgreSQL database the
    data set's events are read, in one read-only transaction, and the copy is made from them.

    Raises
    ------
    LedgerError, TemporaryError
        If there is a ledger that cannot be read.
    """
    if "://" not in location:
        database = SqliteDatabase(location, copy=True)
    else:
        database = SqliteDatabase(":memory:")
        with closing(Records(open_database(location), dataset)) as source, source.snapshot():
            replay(source, database)
    with Ledger(database, dataset=dataset, budget=budget, evidence=evidence) as ledger:
        yield ledger


def replay(source: Records, database: Database) -> None:
    """Record in an empty ledger what the events of a data set say, held to no budget; its chain is the same."""
    target = Records(database, source.dataset)
    with target.transaction():
        for event in source.events():
            target.register()
            target.copy(event)
