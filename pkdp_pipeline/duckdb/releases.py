"""Who answers the macros: the protocol `Releases`, and `CuratorReleases`, which publishes from a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from pkdp_pipeline.duckdb.cells import public_type, read_domain
from pkdp_pipeline.duckdb.filters import from_sql
from pkdp_pipeline.duckdb.spec import Spec
from pkdp_pipeline.duckdb.tables import TableRef, column_named, quoted, resolve
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.releases.publish import publish, read_through
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.releases.request import Request

if TYPE_CHECKING:
    import duckdb

__all__ = ["CuratorReleases", "Releases"]


class Releases(Protocol):
    """Answers the questions that macros send. Every method raises `PkdpError` only."""

    def plan(self, spec: Spec) -> tuple[tuple[str, str], ...]:
        """Return name and SQL type of the by-columns. Called when a statement is bound, also by EXPLAIN."""
        ...

    def release(self, spec: Spec) -> Release:
        """Publish or replay. Called only when a statement runs, perhaps several times and by several threads."""
        ...

    def published(self) -> Iterator[Entry]:
        """Yield what has been published, oldest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class CuratorReleases:
    """Publishes from the tables of one DuckDB database.

    Parameters
    ----------
    cursor : callable
        Returns a fresh cursor of the database; it is closed after use.
    attacker : AttackerModel
    ledger : Ledger
    unit, period, missing_unit, units, one_cell, order_by
        As of `Request`: what holds where a call does not say otherwise.
    trusted
        As of `publish`.
    """

    cursor: Callable[[], duckdb.DuckDBPyConnection]
    attacker: AttackerModel
    ledger: Ledger
    unit: Any
    period: Any = None
    missing_unit: str = "error"
    units: str = "checked"
    one_cell: str = "error"
    order_by: Any = None
    trusted: bool = True

    def plan(self, spec: Spec) -> tuple[tuple[str, str], ...]:
        """See `Releases.plan`."""
        with self._opened() as cursor:
            table = resolve(cursor, spec.table, spec.database, spec.schema, spec.schemas)
            by = self.request(spec, table).by or ()
        return tuple((name, public_type(name, table.columns[name])) for name in by)

    def release(self, spec: Spec) -> Release:
        """See `Releases.release`."""
        with self._opened() as cursor:
            table = resolve(cursor, spec.table, spec.database, spec.schema, spec.schemas)
            request = self.request(spec, table)
            return publish(
                lambda: cursor.sql(self._rows(table)),
                request,
                attacker=self.attacker,
                ledger=self.ledger,
                trusted=self.trusted,
            )

    def check(self, table: TableRef) -> None:
        """Raise `ArgumentError` where every question about the table fails, whatever its rows are."""
        people = self.request(Spec(kind="count", table=table.name, k=1), table)
        with self._opened() as cursor:
            read_through(cursor.sql(f"SELECT * FROM {table.sql} LIMIT 0"), people)

    def read(self, table: TableRef, columns: Sequence[str], *, units: str) -> None:
        """Read these columns of every row, as questions about them do, and forget what was read.

        `units` is the rule for names of people: no question may fail because of them, so it is held to here.

        Raises
        ------
        Exception
            Whatever a question about the table could fail with because of its rows.
        """
        people = replace(self.request(Spec(kind="count", table=table.name, k=1), table), units=units)
        histograms = [
            self.request(Spec(kind="histogram", table=table.name, by=(column,), k=1), table)
            for column in columns
            if _names_cells(table.columns[column])
        ]
        with self._opened() as cursor:
            # Of what nothing is made DuckDB computes nothing: a hash needs the value of every column.
            read = dict.fromkeys((*columns, *people.unit, *(self.order_by or ())))
            cursor.execute(f"SELECT bit_xor(hash({', '.join(map(quoted, read))})) FROM {table.sql}").fetchall()
            for request in (people, *histograms):
                read_through(cursor.sql(self._rows(table)), request)

    def _rows(self, table: TableRef) -> str:
        """Return the query for the rows of a table.

        DuckDB asks a filter as early as it can, also of rows that a view leaves out, for which its columns may not be
        computable. It asks none below a LIMIT: no asker chooses the rows for which a view is computed.
        """
        return f"SELECT * FROM {table.sql}" + ("" if self.trusted else f" LIMIT {2**63 - 1}")

    def published(self) -> Iterator[Entry]:
        """See `Releases.published`."""
        return (entry for entry in self.ledger.entries() if entry.state == "published")

    def request(self, spec: Spec, table: TableRef) -> Request:
        """Return what a call asks of a table; no data are read."""
        columns = table.columns
        by = None if spec.by is None else tuple(column_named("by", name, columns) for name in spec.by)
        kinds = {name: public_type(name, columns[name]) for name in by or ()}
        where = None
        if spec.filter is not None:
            where = from_sql(spec.filter, columns)
        # A call that names a rule of its own does not inherit the columns that belong to another one.
        one_cell = spec.one_cell or self.one_cell
        inherits = spec.order_by is None and one_cell == self.one_cell
        order_by: Any = self.order_by if inherits else spec.order_by
        if isinstance(order_by, str):
            order_by = (order_by,)
        request = Request(
            mechanism=spec.mechanism(),
            unit=self.unit,
            protects=spec.protects or "presence",
            by=by,
            domain=None if spec.domain is None else read_domain(spec.domain, kinds),
            where=where,
            missing_unit=spec.missing_unit or self.missing_unit,
            units=self.units,
            one_cell="error" if by is None else one_cell,
            order_by=None
            if by is None or order_by is None
            else [column_named("order_by", n, columns) for n in order_by],
            undeclared=spec.undeclared or "error",
            period=self.period if spec.period is None else spec.period,
            table=table.name,
        )
        for name in request.unit:
            if name not in columns:
                column_named("unit", name, columns)
                raise ArgumentError(f"unit names column {name!r}; the table spells it otherwise: rename one.")
        return request

    @contextmanager
    def _opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a cursor and close it; what DuckDB says when it fails could quote data, and is not passed on."""
        import duckdb

        problem = ""
        try:
            cursor = self.cursor()
            try:
                # The same request means the same on every machine: points in time without an offset are of UTC. A
                # database whose configuration is locked keeps its own zone.
                with suppress(duckdb.Error):
                    cursor.execute("SET TimeZone = 'UTC'")
                yield cursor
            finally:
                cursor.close()
            return
        except RuntimeError as error:
            # DuckDB's word for Ctrl-C, which says nothing about what was read.
            if str(error) == "Query interrupted":
                raise KeyboardInterrupt from None
            raise
        except duckdb.Error as error:
            problem = type(error).__name__
        raise ConfigError(f"the database could not be read ({problem}); check that its connection is open.")


def _names_cells(kind: str) -> bool:
    try:
        public_type("column", kind)
    except ArgumentError:
        return False
    return True
