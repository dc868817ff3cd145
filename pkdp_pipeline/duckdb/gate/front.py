"""Front: the connection that runs analysts' statements; it holds the pkdp macros and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.duckdb import certificates
from pkdp_pipeline.duckdb.functions import INTERNAL, register
from pkdp_pipeline.duckdb.gate.answer import Answer
from pkdp_pipeline.duckdb.gate.deadline import Deadline
from pkdp_pipeline.duckdb.gate.permitted import PermittedReleases, unanswered
from pkdp_pipeline.duckdb.gate.policy import Limits
from pkdp_pipeline.duckdb.gate.statement import read_statement
from pkdp_pipeline.errors import ArgumentError, PkdpError

if TYPE_CHECKING:
    import duckdb

__all__ = ["Front"]

_CONFIG = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "threads": "1",
}
#: In this order: nothing can be changed back.
_SETTINGS = (
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL temp_directory = ''",
    "SET GLOBAL enable_external_access = false",
)
_BATCH = 1_000
_UNITS = {"MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}
_OURS = re.compile(r"\bArgumentError: (.*)")
_INTERNAL = re.compile("|".join(INTERNAL))
#: How DuckDB begins what it says, for example "Conversion Error: ".
_DUCKDB = re.compile(r"[A-Za-z ]{1,40} Error: ")
_DEFECTS = ("INTERNAL Error", "FATAL Error")
#: Certificates of larger numbers take many seconds.
_MOST = 10**8


class Front:
    """A DuckDB instance in memory, without access to anything outside it, whose settings are locked.

    Parameters
    ----------
    releases : PermittedReleases
    limits : Limits
    """

    def __init__(self, releases: PermittedReleases, limits: Limits) -> None:
        self._releases, self._limits = releases, limits
        self._bytes = _bytes(limits.memory)
        self._broken = False
        self._functions: list[Callable[..., Any]] = []
        self._connection = self._opened()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def run(self, text: str) -> Answer:
        """Answer one statement.

        Raises
        ------
        PkdpError
            If it is refused, cannot be answered, or exceeds a limit; the text is one that an analyst may read.
        """
        import duckdb

        # A cursor for each statement: one that was given up leaves nothing unfinished to the next.
        cursor = self._connection.cursor()
        try:
            with Deadline(cursor, self._limits.seconds) as deadline:
                self._releases.begin(deadline.check)
                try:
                    return self._answer(cursor, text)
                except PkdpError:
                    raise
                except (duckdb.Error, OSError) as error:
                    # After the first rows, Arrow's reader puts DuckDB's errors into an OSError.
                    told: PkdpError = self._told(error, deadline)
                except MemoryError:
                    told = self._too_large("memory")
                except Exception as error:
                    told = unanswered(error)
        finally:
            cursor.close()
        if self._broken:  # an instance with a defect answers nothing more
            self._connection.close()
            self._connection = self._opened()
        raise told from None

    def _answer(self, cursor: duckdb.DuckDBPyConnection, text: str) -> Answer:
        statement = read_statement(cursor, text, characters=self._limits.statement_characters)
        result = cursor.sql(statement)
        types = tuple(str(kind).replace('"', "") for kind in result.types)
        reader = result.to_arrow_reader(_BATCH)
        batches, rows, size = [], 0, 0
        for batch in reader:
            batches.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows > self._limits.rows:
                raise self._too_large("rows")
            if size > self._bytes:
                raise self._too_large("memory")
        import pyarrow as pa

        table = pa.Table.from_batches(batches, schema=reader.schema)
        return Answer.of(table, types, self._releases.made)

    def _too_large(self, what: str) -> ArgumentError:
        most = f"{self._limits.rows} rows" if what == "rows" else self._limits.memory
        return ArgumentError(
            f"the statement needs more than the {most} that the policy allows; aggregate, or ask for less at once."
        )

    def _told(self, error: Exception, deadline: Deadline) -> PkdpError:
        """Return what an analyst is told: this connection sees public values alone, and so do its errors."""
        import duckdb

        if deadline.passed:
            try:
                deadline.check()
            except ArgumentError as late:
                return late
        if self._releases.problem is not None:
            return self._releases.problem
        line = str(error).partition("\n")[0][:300]
        if isinstance(error, duckdb.OutOfMemoryException) or line.startswith("Out of Memory Error"):
            return self._too_large("memory")
        if isinstance(error, (duckdb.InternalException, duckdb.FatalException)) or line.startswith(_DEFECTS):
            self._broken = True
            return unanswered(error)
        ours = _OURS.findall(str(error))
        if ours:  # about arguments that are not even a question; DuckDB puts it into a text of its own
            return ArgumentError(ours[-1])
        if _INTERNAL.search(line) or "Python exception" in line or not _DUCKDB.match(line):
            return unanswered(error)
        return ArgumentError(f"the statement cannot be answered: {line}")

    def _opened(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        connection = duckdb.connect(":memory:", config={**_CONFIG, "memory_limit": self._limits.memory})
        try:
            for setting in _SETTINGS:
                connection.execute(setting)
            register(connection, self._releases)
            self._bound_certificates(connection)
            connection.execute("SET lock_configuration = true")
            self._broken = False
        except BaseException:
            connection.close()
            raise
        return connection

    def _bound_certificates(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Put a function in the place of ``pkdp_certified`` that stops in time: nothing else can stop it."""
        import pyarrow as pa

        def certified(*columns: Any) -> Any:
            rows = zip(*(column.to_pylist() for column in columns), strict=True)
            return pa.array([self._releases.noted(partial(_certified, row)) for row in rows], pa.float64())

        names = [Parameter(name, Parameter.POSITIONAL_ONLY) for name, _ in certificates.PARAMETERS]
        certified.__signature__ = Signature(names)  # type: ignore[attr-defined]
        self._functions.append(certified)  # DuckDB does not keep it alive
        connection.remove_function("pkdp_certified")
        create: Any = connection.create_function  # typed otherwise in each version
        kinds = [kind for _, kind in certificates.PARAMETERS]
        create("pkdp_certified", certified, kinds, "DOUBLE", type="arrow", null_handling="special")


def _certified(row: certificates.Row) -> float:
    for (name, kind), value in zip(certificates.PARAMETERS, row, strict=True):
        if kind == "BIGINT" and value is not None and abs(value) > _MOST:
            raise ArgumentError(f"{name} must be at most {_MOST} here.")
    (bound,) = certificates.certified([row])
    return bound


def _bytes(memory: str) -> int:
    number, unit = re.fullmatch(r"(\d+) ?(\w+)", memory).groups()  # type: ignore[union-attr]
    return int(number) * _UNITS[unit]
