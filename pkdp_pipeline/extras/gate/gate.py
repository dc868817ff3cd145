"""Gate: answers the questions of people who may not see the data, each with one release."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pkdp_pipeline.errors import (
    ArgumentError,
    ConfigError,
    LedgerError,
    NotCertifiableError,
    PkdpError,
    TemporaryError,
)
from pkdp_pipeline.extras.gate.client import REFUSALS, connected
from pkdp_pipeline.extras.gate.permitted import permitted
from pkdp_pipeline.extras.gate.policy import PermittedTable, Policy, find_tables
from pkdp_pipeline.extras.gate.worker import (
    Job,
    TableFailedError,
    UnfinishedError,
    Worker,
    Workers,
    open_vault,
)
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.mechanisms import GeometricNoise
from pkdp_pipeline.model.wording import ANALYST, worded_for
from pkdp_pipeline.releases.publish import Counted, Publication, failures_logged, publish
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.sql.spec import Spec
from pkdp_pipeline.sql.tables import type_name

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.model.question import Question

#: What is added to a refusal where a threshold is what gives a noised release no worst case.
_THRESHOLD = (
    " (Which counts reach k or k_complement is decided by the exact ones, so the noise does not count there: leave "
    "them out, which a histogram can by columns with public values, or add a release_threshold well above k.)"
)
_EXACT = " (With below = 'noise' counts from k on are exact, so the noise does not count for them: leave below out.)"
_UNCERTIFIED = (
    "Not certifiable in time: the promise of the answer was not computed within the seconds that the policy allows. "
    "Nothing was read or charged. Ask for other thresholds, or ask the curator for more time."
)
#: So many questions are remembered that can be asked.
_MAX_REHEARSED = 4096
#: This many questions are counted at once.
MAX_WORKERS = 4


class Gate:
    """Answers questions about a database that it alone reads, and executes no SQL of those who ask.

    A question is a JSON object. It has to pass the policy, and is answered through `publish`: charged to the
    ledger, and replayed when it is repeated. It is certified and counted in a process of its own, which is ended when
    the time of the policy is over; meanwhile nobody waits for the ledger.

    Opening a gate reads every permitted column of every row once, before any question: a table that cannot be read is
    refused as a whole, and the ledger remembers it, because failures of single questions would tell about single rows.

    Parameters
    ----------
    database_path : path-like
        A DuckDB file that its owner alone can read.
    policy : dict or path-like
        The questions that may be asked; see `Policy`.
    ledger : Ledger, optional
        Instead of one that the policy names: budgets, evidence and data set are the ledger's then. It stays open.

    Attributes
    ----------
    policy : Policy
    tables : dict of str to PermittedTable
        The policy's tables, as the database has them.

    Raises
    ------
    ConfigError
        If the policy cannot be used or does not fit the database, or the database cannot be opened.
    LedgerError, TemporaryError
        If the ledger cannot be used, or the database is being written.

    Notes
    -----
    It does not protect from:

    - Python. An analyst who runs code in the same process can open the database, or reach into this object. Give
      analysts a process of their own, and the gate another one: ``pkdp gate serve``.
    - Time. How long a release takes depends on the data, and is not hidden.
    - Memory. Without a ledger, a gate that is opened again knows of no earlier release, and two gates do not
      know of each other: each answers a question of its own about the same people.

    It may be used from several threads.
    """

    def __init__(
        self,
        database_path: str | os.PathLike[str],
        *,
        policy: Policy | Mapping[str, Any] | str | os.PathLike[str],
        ledger: Ledger | None = None,
    ) -> None:
        self.policy = Policy.read(policy)
        # Held while an answer is stored, or a table refused: nothing is answered about a table that is refused.
        self._lock = threading.RLock()
        self._failed: set[str] = set()
        self._totals: dict[tuple[object, ...], Certificate] = {}
        self._rehearsed = set[tuple[str, str]]()
        with ExitStack() as opened:
            # It stays open: nobody can write to the file meanwhile.
            vault = opened.enter_context(closing(open_vault(database_path)))
            self.tables = find_tables(self.policy, vault)
            if ledger is None:
                self._ledger = opened.enter_context(self.policy.opened(self.policy.ledger or ":memory:"))
                self._budgets = self.policy.budgets()
            else:
                self._ledger = _given(ledger, self.policy)
                self._budgets = tuple(ledger.terms.budgets)
            limits = self.policy.limits
            self._workers = opened.enter_context(
                closing(Workers(database_path, memory=limits.memory, most=MAX_WORKERS))
            )
            self._read_tables()
            # Also when nobody closes the gate: no process is left behind.
            self._end = weakref.finalize(self, opened.pop_all().close)

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The policy's tables that answer no new question, because a row could not be read when somebody tried."""
        self._check_open()
        refused = self._refused()
        return tuple(table.name for table in self.tables.values() if table.in_catalog.name in refused)

    def ask(self, question: Mapping[str, Any] | str | Spec, *, before: Callable[[], None] | None = None) -> Release:
        """Answer one question.

        Parameters
        ----------
        question : dict or JSON text
            ``{"table": "events", "histogram": "country", "k": 20}``, with a column or a list of columns, or
            ``{"table": "events", "count": true, "k": 20}``, or ``{"table": "events", "sum": "visits", "by": "country",
            "noise": 1.0}``. Further keys are filter, noise, release_threshold, below and, of a count, k_complement and
            protects; unknown keys are errors.
        before : callable, optional
            Called once, before anything is charged or a row is read, unless the answer is public already; what it
            raises stops the question.

        Returns
        -------
        Release

        Raises
        ------
        ArgumentError
            If the question is malformed, or the policy does not allow it.
        BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError
            If what it asks for may not be published.
        TemporaryError
            If the ledger or the gate is busy.
        PkdpError
            If it was not answered, for a reason that is for the curator.
        """
        problem: BaseException
        try:
            return self._answer(question, before)
        except REFUSALS as error:
            raise type(error)(worded_for(error, ANALYST)) from None
        except ArgumentError as error:
            raise error.with_traceback(None) from None
        except TemporaryError:
            raise TemporaryError("the gate is busy; ask the same again later.") from None
        except Exception as error:
            problem = error
        raise _not_answered(problem)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB connection of an analyst's own, in memory, on which ``pkdp_histogram`` asks this gate."""
        columns = {
            table.name: {column: type_name(kind) for column, kind in table.columns.items()}
            for table in self.tables.values()
        }
        return connected(self.ask, columns)

    def total(self, unit: object = None) -> Certificate:
        """Return what everything in the ledger adds up to, for one privacy unit; see `Ledger.total`.

        It is computed as a question is, in a worker. Raises `TemporaryError` if the time of the policy is too short.
        """
        self._check_open()
        head, work = self._ledger.head(), self._ledger.total_at_hand(unit)
        key = (head, *work.args)
        total = self._totals.get(key)
        if total is None:
            with ExitStack() as ending:
                try:
                    total = cast("Certificate", _Turn(self._workers, self.policy.limits.seconds, ending).do(work))
                except UnfinishedError:
                    raise TemporaryError(
                        "the total was not computed within limits.seconds; try again, or write a larger one."
                    ) from None
            # One for each unit: the totals of an earlier time are not asked for again.
            self._totals = {old: kept for old, kept in self._totals.items() if old[0] == head} | {key: total}
        return total

    def close(self) -> None:
        """Close the database and the ledger, and end what is being counted; a closed gate answers nothing."""
        self._workers.close()
        with self._lock:
            self._end()

    def _check_open(self) -> None:
        if not self._end.alive:
            raise ArgumentError("the gate is closed; open it again.")

    def _check_readable(self, table: PermittedTable) -> None:
        if table.in_catalog.name in self._refused():
            raise ArgumentError(
                f"table {table.name!r} cannot be read in full, so no new question about it is answered: ask the "
                "curator for one that can."
            )

    def _answer(self, question: object, before: Callable[[], None] | None) -> Release:
        self._check_open()
        with failures_logged("a question to the gate"):
            table, spec, permitted_request = permitted(question, self.policy, self.tables, self._budgets)
        with ExitStack() as ending:
            turn = _Turn(self._workers, self.policy.limits.seconds, ending, before)

            def certified(work: Callable[[], Any]) -> Any:
                try:
                    return turn.do(work)
                except UnfinishedError:
                    raise NotCertifiableError(_UNCERTIFIED) from None
                except TableFailedError as error:  # a defect, which no row has to do with
                    raise UnfinishedError(str(error)) from None

            # What an attacker knows besides decides about columns, before anything is read.
            publication = Publication(
                question=permitted_request, attacker=self.policy.attacker.value, ledger=self._ledger, run=certified
            )
            request = publication.question
            job = Job(task="count", table=table.in_catalog.sql, requests=(request,))
            # What is public goes on being replayed, also where the table cannot be read any more.
            with failures_logged(publication.title):
                published = publication.published()
                if published is None:
                    self._check_readable(table)
                    # Asked of no rows first, so that what is wrong with a question is told before any data are read.
                    rehearsed = _rehearsed(request), table.in_catalog.sql
                    if rehearsed not in self._rehearsed:
                        turn.do(replace(job, task="rehearse"))
                        if len(self._rehearsed) >= _MAX_REHEARSED:
                            self._rehearsed.clear()
                        self._rehearsed.add(rehearsed)

            def counted() -> Counted:
                counts = cast("Counted", turn.do(job))
                ending.enter_context(self._lock)  # until it is stored
                # Another question may have failed meanwhile: then this one does, too.
                if table.in_catalog.name in self._refused():
                    raise TableFailedError("refused meanwhile")
                return replace(counts, question=request)

            try:
                return publish(counted, publication, trusted=False, reserved=published)
            except REFUSALS as error:
                exact = spec.noise is not None and spec.release_threshold is None and (spec.k or spec.k_complement)
                hint = _THRESHOLD if exact else ""
                if spec.below == "noise":
                    hint = _EXACT if any("worst_case" in budget.measures for budget in self._budgets) else ""
                raise type(error)(worded_for(error, ANALYST) + hint) from None
            except (TemporaryError, LedgerError, UnfinishedError, MemoryError):
                raise  # says nothing about the table
            except Exception as error:
                if not turn.counts:
                    raise
                with suppress(PkdpError):  # refused here, also where the ledger cannot tell others
                    self._refuse(table)
                kind = str(error) if isinstance(error, TableFailedError) else type(error).__name__
            raise TableFailedError(kind)

    def _read_tables(self) -> None:
        """Read what may be asked of each table, without any question; refuse from now on what cannot be read."""
        refused = self._refused()
        for table in self.tables.values():
            if table.in_catalog.name in refused:
                continue
            with self._workers.taken(wait=None) as worker:
                try:
                    worker.do(table.reading(), seconds=None)
                except UnfinishedError:
                    raise ConfigError(
                        f"table {table.name!r} cannot be read with limits.memory = {self.policy.limits.memory!r}: "
                        "write a larger one."
                    ) from None
                except (TableFailedError, ArgumentError):
                    self._refuse(table)

    def _refused(self) -> frozenset[str]:
        """Return the tables that could not be read: here, or by another gate of the same ledger."""
        return self._ledger.unreadable() | self._failed

    def _refuse(self, table: PermittedTable) -> None:
        with self._lock:
            self._failed.add(table.in_catalog.name)
            self._ledger.mark_unreadable(table.in_catalog.name)


class _Turn:
    """The worker of one question, taken when it is first needed, and the time that the question has with it.

    `ending`: gives the worker back. `before`: called while the first job is done, which reads no row; a charge follows.
    """

    def __init__(
        self, workers: Workers, seconds: float, ending: ExitStack, before: Callable[[], None] | None = None
    ) -> None:
        self._workers, self._seconds, self._ending, self._before = workers, seconds, ending, before
        self._worker: Worker | None = None
        self._ends = 0.0
        self.counts = False

    def do(self, job: Job | Callable[[], Any]) -> Any:
        """See `Worker.do`; `counts` says whether rows were read."""
        self.counts |= isinstance(job, Job) and job.task == "count"
        if self._worker is None:
            self._worker = self._ending.enter_context(self._workers.taken(wait=2 * self._seconds))
            self._ends = time.monotonic() + self._seconds
        before, self._before = self._before, None
        meanwhile = {} if before is None else {"meanwhile": before}
        return self._worker.do(job, seconds=max(0.0, self._ends - time.monotonic()), **meanwhile)


def _rehearsed(question: Question) -> str:
    """Return what the rehearsal of a question depends on: all of it but how large the noise is.

    The file stays open and unchanged, so a question that could be asked of no rows can be asked so again.
    """
    mechanism = question.mechanism
    if mechanism.noise is not None:
        mechanism = replace(mechanism, noise=GeometricNoise(1.0))
    return replace(question, mechanism=mechanism).key("")


def _given(ledger: Ledger, policy: Policy) -> Ledger:
    if not isinstance(ledger, Ledger):
        raise ArgumentError(
            f"ledger must be a Ledger, not {type(ledger).__name__}: open one with pkdp.Ledger.open(path)."
        )
    for key in ("ledger", "dataset", "budget", "evidence"):
        if key in policy.model_fields_set:
            raise ConfigError(f"the policy's {key} and the argument ledger say the same twice; leave one of them out.")
    return ledger


def _not_answered(error: BaseException) -> PkdpError:
    """Return the error for a failure that may owe itself to the data; a note for the curator has its type alone."""
    unanswered = PkdpError("the question was not answered; ask the curator.")
    reason = isinstance(error, TableFailedError | UnfinishedError) and str(error)
    kind = reason or f"{type(error).__module__}.{type(error).__name__}"
    unanswered.add_note(f"For the curator: {kind}.")
    return unanswered
