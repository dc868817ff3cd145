"""Gate: an analyst's connection, which answers statements over releases and owns no data."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from contextlib import ExitStack, closing
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.duckdb.gate.answer import Answer
from pkdp_pipeline.duckdb.gate.front import Front
from pkdp_pipeline.duckdb.gate.permitted import PermittedReleases
from pkdp_pipeline.duckdb.gate.policy import Policy
from pkdp_pipeline.duckdb.gate.vault import open_vault
from pkdp_pipeline.errors import ArgumentError, TemporaryError
from pkdp_pipeline.ledger import Ledger

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate

__all__ = ["Gate"]


class Gate:
    """Answers analysts' SELECTs over ``pkdp_histogram`` and ``pkdp_count``, and refuses everything else.

    The database is opened read-only and is never reachable from the connection that runs statements: that one
    holds the macros alone, in memory, without access to files, extensions, settings or Python variables. A
    statement is one SELECT, of which every part of the syntax tree is on a list; what its macros ask has to pass
    the policy, whoever sends it; and everything goes out through `publish`, charged to the ledger and replayed
    when asked again. With the releases, which are public, a statement may compute what it likes.

    Opening it reads every permitted column of every row once, before any question: a table that cannot be read is
    refused as a whole, and the ledger remembers it, because failures of single questions would tell about single rows.

    Parameters
    ----------
    database_path : path-like
        A DuckDB file.
    policy : dict or path-like
        What may be asked; see `Policy`.

    Raises
    ------
    ConfigError
        If the policy cannot be used or does not fit the database, or the database cannot be opened.
    LedgerError, TemporaryError
        If the ledger cannot be used, or the database is being written.

    Notes
    -----
    What it does not protect from:

    - Python. An analyst who runs code in the same process can open the database, or reach into this object. Give
      analysts a process of their own, and the gate another one: ``pkdp gate serve``.
    - Time. How long a release takes depends on the data, and is not hidden.
    - What is forgotten. Without `ledger` in the policy, a gate that is opened again knows of no earlier release, and
      two gates do not know of each other: each answers a question of its own about the same people.

    It may be used from several threads; statements run one after the other.
    """

    def __init__(
        self, database_path: str | os.PathLike[str], *, policy: Policy | Mapping[str, Any] | str | os.PathLike[str]
    ) -> None:
        self._policy = Policy.read(policy)
        self._lock = threading.Lock()
        with ExitStack() as opened:
            vault = opened.enter_context(closing(open_vault(database_path)))
            self._ledger = opened.enter_context(
                Ledger.open(
                    self._policy.ledger or ":memory:",
                    dataset=self._policy.dataset,
                    budget=self._policy.budgets() or None,
                    evidence=self._policy.declared() or None,
                )
            )
            self._releases = releases = PermittedReleases(self._policy, vault.cursor, self._ledger)
            releases.read_tables()
            self._front = opened.enter_context(closing(Front(releases, self._policy.limits)))
            # Also when nobody closes the gate: DuckDB complains at exit about what is open.
            self._end = weakref.finalize(self, opened.pop_all().close)

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def policy(self) -> Policy:
        """What may be asked."""
        return self._policy

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The policy's tables that answer no new question, because a row could not be read when somebody tried."""
        with self._lock:
            self._check_open()
            return self._releases.unreadable

    def sql(self, text: str) -> Answer:
        """Answer one statement.

        Parameters
        ----------
        text : str
            One SELECT, such as ``FROM pkdp_histogram('events', 'country', k := 20) ORDER BY count DESC``.

        Returns
        -------
        Answer

        Raises
        ------
        ArgumentError
            If the statement is malformed, not allowed, or exceeds a limit.
        BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError
            If what it asks for may not be published.
        TemporaryError
            If the ledger or the gate is busy.
        PkdpError
            If it fails for a reason that is for the curator.
        """
        # Whoever has waited this long waits behind statements that all took their full time.
        if not self._lock.acquire(timeout=2 * self._policy.limits.seconds):
            raise TemporaryError("the gate is busy; ask the same again later.")
        try:
            self._check_open()
            return self._front.run(text)
        finally:
            self._lock.release()

    def total(self, unit: object = None) -> Certificate:
        """Return what everything in the ledger adds up to, for one privacy unit; see `Ledger.total`."""
        with self._lock:
            self._check_open()
            return self._ledger.total(unit)

    def close(self) -> None:
        """Close the database, the ledger and the connection; a closed gate answers nothing."""
        with self._lock:
            self._end()

    def _check_open(self) -> None:
        if not self._end.alive:
            raise ArgumentError("the gate is closed; open it again.")
