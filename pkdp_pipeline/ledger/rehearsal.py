"""Rehearsal: what a ledger would say to releases, asked of the ledger itself and taken back at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.ledger import Ledger

__all__ = ["rehearsal"]


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
    database, terms = ledger._database, ledger.terms
    try:
        with database.transaction(ledger.dataset):
            trial = Ledger(
                _Within(database), dataset=ledger.dataset, budget=list(terms.budgets), evidence=list(terms.evidence)
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
        self._database = database

    @property
    def location(self) -> str:
        return self._database.location

    def execute(self, sql: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._database.execute(sql, **parameters)

    def transaction(self, dataset: str) -> AbstractContextManager[None]:
        return nullcontext()

    def snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def check(self) -> None:
        self._database.check()

    def close(self) -> None:
        """Leave it open: it is not ours."""
