"""Who answers the macros: the protocol `Releases`, and `CuratorReleases`, which publishes from a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pkdp_pipeline.duckdb.cells import public_type, read_domain
from pkdp_pipeline.duckdb.spec import Spec
from pkdp_pipeline.duckdb.tables import LACKING, TableRef, column_named, resolve
from pkdp_pipeline.errors import ArgumentError, ConfigError, TemporaryError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.publish import publish
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.certificates.target import Asked

__all__ = ["CuratorReleases", "Releases", "request_of"]


class Releases(Protocol):
    """Answers the questions that macros send. Every method raises `PkdpError` only."""

    def plan(self, spec: Spec) -> tuple[tuple[str, str], ...]:
        """Return name and SQL type of the by-columns. Called when a statement is bound, also by EXPLAIN."""
        ...

    def release(self, spec: Spec) -> Release:
        """Publish or replay. Called only when a statement runs, perhaps several times and by several threads."""
        ...

    def published(self) -> Iterator[tuple[str, Release]]:
        """Yield label and release of what has been published, oldest first."""
        ...


def request_of(spec: Spec, table: TableRef, rules: Question, *, lacking: str = LACKING) -> Question:
    """Return what a question asks of a table; no data are read.

    Parameters
    ----------
    spec : Spec
    table : TableRef
    rules : Question
        Says what holds where the question does not: unit, period, and the rules for rows.
    lacking : str, optional
        What an error says about a column that the table does not have.
    """
    columns = table.columns
    by = None
    if spec.histogram is not None:
        by = tuple(column_named("by", name, columns, lacking=lacking) for name in spec.histogram)
    kinds = {name: public_type(name, columns[name]) for name in by or ()}
    where = None
    if spec.filter is not None:
        from pkdp_pipeline.duckdb.filters import from_sql

        where = from_sql(spec.filter, columns, lacking=lacking)
    # A call that names a rule of its own does not inherit the columns that belong to another one.
    one_cell = spec.one_cell or rules.one_cell
    inherits = spec.order_by is None and one_cell == rules.one_cell
    order_by = rules.order_by if inherits else spec.order_by
    request = Question(
        mechanism=spec.mechanism(),
        unit=rules.unit,
        protects=spec.protects or "presence",
        by=by,
        domain=None if spec.domain is None else read_domain(spec.domain, kinds),
        where=where,
        missing_unit=spec.missing_unit or rules.missing_unit,
        units=rules.units,
        one_cell="error" if by is None else one_cell,
        order_by=None if by is None or not order_by else [column_named("order_by", n, columns) for n in order_by],
        undeclared=spec.undeclared or "error",
        period=rules.period if spec.period is None else spec.period,
        table=table.name,
    )
    for name in request.unit:
        if name not in columns:
            column_named("unit", name, columns)
            raise ArgumentError(f"unit names column {name!r}; the table spells it otherwise: rename one.")
    return request


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class CuratorReleases:
    """Publishes from the tables of one DuckDB database.

    Parameters
    ----------
    cursor : callable
        Returns a fresh cursor of the database; it is closed after use.
    attacker : AttackerModel
    ledger : Ledger
    rules : Question
        As of `request_of`.
    target : Target, None or "default"
        What each release has to promise at least.
    """

    cursor: Callable[[], duckdb.DuckDBPyConnection]
    attacker: AttackerModel
    ledger: Ledger
    rules: Question
    target: Asked = "default"

    def plan(self, spec: Spec) -> tuple[tuple[str, str], ...]:
        """See `Releases.plan`."""
        with self._opened() as cursor:
            table = resolve(cursor, spec.table, spec.database, spec.schema, spec.schemas)
            by = request_of(spec, table, self.rules).by
        return tuple((name, public_type(name, table.columns[name])) for name in by)

    def release(self, spec: Spec) -> Release:
        """See `Releases.release`."""
        with self._opened() as cursor:
            table = resolve(cursor, spec.table, spec.database, spec.schema, spec.schemas)
            request = request_of(spec, table, self.rules)
            return publish(
                lambda: cursor.sql(f"SELECT * FROM {table.sql}"),
                request,
                attacker=self.attacker,
                ledger=self.ledger,
                target=self.target,
            )

    def published(self) -> Iterator[tuple[str, Release]]:
        """See `Releases.published`."""
        for entry in self.ledger.entries():
            if entry.content is not None:
                yield entry.label, Release.from_bytes(entry.content, replayed=True)

    @contextmanager
    def _opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a cursor and close it; what DuckDB says when it fails could quote data, and is not passed on."""
        import duckdb

        problem, told = "", None
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
            if isinstance(error, duckdb.OutOfMemoryException):
                told = TemporaryError(
                    "there is not enough memory to read the database now; try again when more is free."
                )
        raise told or ConfigError(f"the database could not be read ({problem}); check that its connection is open.")
