"""The database with the data, which its owner alone can read, and the processes that answer and can be ended."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.engines.rows import quoted
from pkdp_pipeline.errors import ArgumentError, ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.extras.gate.records import check_mode
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.model.wording import ANALYST, Worded, worded_for
from pkdp_pipeline.releases.publish import Counted, count_units, read_through

if TYPE_CHECKING:
    import duckdb

_CONFIG = {
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}
_START_SECONDS = 60.0
#: What a worker may answer at most: more cells than that are an answer that nobody can hold in memory.
_MAX_ANSWER_BYTES = 2**28
_SERVE = "import sys; from pkdp_pipeline.extras.gate.worker import serve; serve(*sys.argv[1:])"


def open_vault(path: str | os.PathLike[str]) -> duckdb.DuckDBPyConnection:
    """Open the DuckDB file with the data, read-only.

    Raises `ConfigError` if it is no DuckDB file, other users can read or write it, or this process has it open
    otherwise; `TemporaryError` if another process is writing to it.
    """
    import duckdb

    if not isinstance(path, (str, os.PathLike)):
        raise ConfigError(f"database_path must be the path of a DuckDB file, not {type(path).__name__}.")
    name = f"the database {str(path)!r}"
    if not Path(path).is_file():
        raise ConfigError(f"{name} does not exist or is not a file; give the path of a DuckDB file.")
    file = Path(path).resolve()  # DuckDB keeps the write-ahead log beside the file that a link names
    for part in (file, file.with_name(f"{file.name}.wal")):
        if part.exists():
            check_mode(part, part.stat().st_mode, 0o077, "read or write the database, past the gate")
    problem: Exception = ConfigError(f"{name} cannot be opened as a DuckDB database of this version.")
    try:
        return duckdb.connect(str(file), read_only=True, config=dict(_CONFIG))
    except duckdb.ConnectionException:
        problem = ConfigError(
            f"{name} is open in this process already, with another configuration: close that connection, or run the "
            "gate in a process of its own, with pkdp gate serve."
        )
    except duckdb.IOException as error:
        # DuckDB has one error for files that are locked and files that cannot be read.
        if "lock" in str(error).lower():
            problem = TemporaryError(f"{name} is being written by another process; try again when that is done.")
    except duckdb.Error:
        pass
    raise problem


class UnfinishedError(Exception):
    """A worker ran out of time or memory: that says nothing about any row."""


class TableFailedError(Exception):
    """A worker failed otherwise: perhaps because of what is in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The task of a worker with a table.

    Attributes
    ----------
    task : {"read", "rehearse", "count"}
        Read all that the requests need, ask them of no rows at all, or count the first of them.
    table : str
        As SQL.
    columns : tuple of str
        Further columns to be read.
    """

    task: Literal["read", "rehearse", "count"]
    table: str
    requests: tuple[Question, ...]
    columns: tuple[str, ...] = ()


class Workers:
    """The processes of one gate: started when they are needed, and used again.

    A statement that DuckDB runs cannot always be interrupted, such as one with LIKE; a process can be ended. `memory`:
    the memory that DuckDB may use in each of them. `most`: how many there are at once.
    """

    def __init__(self, database: str | os.PathLike[str], *, memory: str, most: int) -> None:
        self._database, self._memory = Path(database).resolve(), memory
        self._file = _identity(self._database)
        self._places = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._closed = False

    @contextmanager
    def taken(self, *, wait: float | None) -> Iterator[Worker]:
        """Give a worker, after waiting for this many seconds at most.

        Raises `TemporaryError` if all are busy for so long, or none can be started.
        """
        if not self._places.acquire(timeout=wait):
            raise TemporaryError("the gate is busy; ask the same again later.")
        try:
            with self._lock:
                self._all = {worker for worker in self._all if worker.alive}
                self._idle = [worker for worker in self._idle if worker.alive]
                worker = self._idle.pop() if self._idle else None
            worker = worker or self._started()
            try:
                yield worker
            finally:
                with self._lock:
                    if self._closed:
                        worker.end()
                    self._idle.append(worker)
        finally:
            self._places.release()

    def close(self) -> None:
        """End all of them, also those that are counting."""
        with self._lock:
            self._closed = True
            for worker in self._all:
                worker.end()

    def _started(self) -> Worker:
        if _identity(self._database) != self._file:
            raise TemporaryError("the database file was replaced; open the gate again.")
        worker = Worker(self._database, self._memory)
        with self._lock:
            self._all.add(worker)
        return worker


class Worker:
    """One process, which does one job at a time."""

    def __init__(self, database: Path, memory: str) -> None:
        own_end, worker_end = multiprocessing.Pipe()
        with worker_end:
            # A new session: Ctrl-C is for the gate, which ends its workers. Nothing they print is shown: it could
            # quote the data.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _SERVE, str(worker_end.fileno()), str(database), memory],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[worker_end.fileno()],
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
            )
        self._connection: Connection[Any, Any] = own_end
        try:
            self._received(_START_SECONDS)
        except (UnfinishedError, TableFailedError):
            raise TemporaryError("no process could be started that reads the database; try again later.") from None

    def do(
        self, job: Job | Callable[[], Any], *, seconds: float | None, meanwhile: Callable[[], None] | None = None
    ) -> Any:
        """Do a job, or call what needs no data, within this many seconds, without limit if None; call `meanwhile` too.

        Raises `ArgumentError` if the question cannot be asked of this table, whatever its rows are; `UnfinishedError`
        or `TableFailedError` where there is no answer; the `PkdpError` that was called for no data.
        """
        try:
            self._connection.send(job)
        except OSError:
            self.end()
            raise UnfinishedError from None
        if meanwhile is not None:
            try:
                meanwhile()
            except BaseException:
                self.end()  # its answer is not for the next job
                raise
        return self._received(seconds)

    @property
    def alive(self) -> bool:
        """Whether the process can do jobs."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _received(self, seconds: float | None) -> Any:
        try:
            if not self._connection.poll(seconds):
                self._process.kill()  # nothing more comes then
            outcome, answer = pickle.loads(self._connection.recv_bytes(_MAX_ANSWER_BYTES))
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):  # how it ended by itself is what counts
                self._process.wait(timeout=1.0)
            self.end()
            killed = self._process.returncode == -9  # also by the kernel, for want of memory
            raise (UnfinishedError if killed else TableFailedError)("the process ended") from None
        except BaseException:
            self.end()
            raise
        if outcome == "done":
            return answer
        if outcome == "told":
            kind, *texts = answer
            raise kind(Worded(lambda say: texts[say is ANALYST]))
        raise {"refused": ArgumentError, "memory": UnfinishedError}.get(outcome, TableFailedError)(answer)


def serve(descriptor: str, database: str, memory: str) -> None:
    """Do jobs until the gate is gone; what a process of `Workers` runs."""
    connection: Connection[Any, Any] = Connection(int(descriptor))
    with suppress(OSError):  # where memory is short, the kernel ends this process and not the gate
        Path("/proc/self/oom_score_adj").write_text("1000")
    jobs: queue.SimpleQueue[Job | Callable[[], Any]] = queue.SimpleQueue()

    def receive() -> None:
        while True:
            try:
                jobs.put(connection.recv())
            except (EOFError, OSError):
                os._exit(0)  # the gate is gone, perhaps while this process counts

    vault = open_vault(database)
    vault.execute("SET memory_limit = ?", [memory])
    connection.send_bytes(pickle.dumps(("done", None)))
    threading.Thread(target=receive, daemon=True).start()
    while True:
        connection.send_bytes(_outcome(vault, jobs.get()))


def _outcome(vault: duckdb.DuckDBPyConnection, job: Job | Callable[[], Any]) -> bytes:
    import duckdb

    try:
        if not isinstance(job, Job):
            return pickle.dumps(_computed(job))
        with closing(vault.cursor()) as cursor:
            # The same request means the same on every machine: points in time without an offset are of UTC.
            cursor.execute("SET TimeZone = 'UTC'")
            return pickle.dumps(("done", _done(cursor, job)))
    except (MemoryError, TemporaryError, duckdb.OutOfMemoryException) as error:
        return pickle.dumps(("memory", type(error).__name__))
    except Exception as error:
        if isinstance(job, Job) and job.task == "rehearse" and isinstance(error, ArgumentError):  # no row was read
            return pickle.dumps(("refused", str(error)))
        return pickle.dumps(("failed", f"{type(error).__module__}.{type(error).__name__}"))


def _computed(work: Callable[[], Any]) -> tuple[str, Any]:
    """Return what some work gives, a certificate with its numbers; an error with its texts, for curators and analysts.

    It has seen no row.
    """
    try:
        answer = work()
        return "done", answer.written() if isinstance(answer, Certificate) else answer
    except TemporaryError:
        raise
    except PkdpError as error:
        return "told", (type(error), str(error), worded_for(error, ANALYST))


def _done(cursor: duckdb.DuckDBPyConnection, job: Job) -> Counted | None:
    if job.task == "rehearse":
        for request in job.requests:
            read_through(cursor.sql(f"SELECT * FROM {job.table} LIMIT 0"), request)
        return None
    # DuckDB asks a filter as early as it can, also of rows that a view leaves out, for which its columns may not be
    # computable. It asks none below a LIMIT: no asker chooses the rows for which a view is computed.
    rows = f"SELECT * FROM {job.table} LIMIT {2**63 - 1}"
    if job.task == "count":
        return count_units(cursor.sql(rows), job.requests[0])
    # Of what nothing is made DuckDB computes nothing: a hash needs the value of every column.
    further = [name for request in job.requests for name in (*request.unit, *request.order_by)]
    columns = ", ".join(map(quoted, dict.fromkeys((*job.columns, *further))))
    cursor.execute(f"SELECT bit_xor(hash({columns})) FROM {job.table}").fetchall()
    for request in job.requests:
        read_through(cursor.sql(rows), request)
    return None


def _identity(database: Path) -> tuple[int, int]:
    status = database.stat()
    return status.st_dev, status.st_ino
