"""The curator's connection: `install` gives it the macros, which publish from its tables."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.errors import ArgumentError, ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.attacker import AttackerModel, read_attacker
from pkdp_pipeline.model.columns import columns_listed
from pkdp_pipeline.model.mechanisms import Histogram, cells_per_unit
from pkdp_pipeline.model.question import RULES, Question
from pkdp_pipeline.model.wording import CURATOR, with_arguments, worded_for
from pkdp_pipeline.releases.publish import Publication, publish
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.sql.functions import register
from pkdp_pipeline.sql.spec import Spec, public_type, read_domain
from pkdp_pipeline.sql.tables import (
    LACKING,
    NOT_OFFERED,
    TableRef,
    column_named,
    link_warning,
    linking_views,
    resolve,
)

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.certificates.target import Asked


def install(
    con: duckdb.DuckDBPyConnection,
    *,
    attacker: AttackerModel | None = None,
    unit: Any,
    ledger: Ledger | None = None,
    period: Any = None,
    missing_unit: Literal["error", "drop"] = "error",
    units: Literal["checked", "exact"] = "checked",
    one_cell: Literal["error", "most_frequent", "first", "hash"] = "error",
    order_by: Any = None,
    target: Asked = "default",
) -> None:
    """Give a connection the macros ``pkdp_histogram``, ``pkdp_count``, ``pkdp_sum``, ``pkdp_releases`` and others.

    Anyone using the connection sees the data: these are the curator's tools. An analyst gets a `Gate`.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        Not in a transaction. Installing again replaces what was installed. A database that can be written keeps
        the macros, not the functions behind them: after reopening, install again.
    attacker : AttackerModel, optional
        May be left out where every release has noise: what it gives holds against anybody.
    unit : str, sequence of str, or EACH_ROW
        Columns that name a person, in the catalog's spelling; the same in every table.
    ledger : Ledger, optional
        Stays open as long as the macros are used. None: one in memory that lives as long as what was installed,
        so that an identical request replays.
    period : str or datetime.date, optional
        The period the data are about, where a call does not say. With `ledger`, one of the two is needed; without,
        it is ``"all"``.
    missing_unit, units, one_cell, order_by : optional
        As of `pkdp_pipeline.histogram`; what holds where a call does not say otherwise.
    target : Target or None, optional
        The least each release has to promise: without it the ledger's, or a finite ε at δ = 1e-6. None: nothing.

    Raises
    ------
    ArgumentError
        If an argument is malformed.
    ConfigError
        If the connection does not take the macros.

    Notes
    -----
    Tables and views are read through cursors of the connection: what is committed, in the catalog, with the
    database's settings rather than the session's, and with points in time of UTC where no offset is written. The
    effects of a view are the curator's responsibility. A `UserWarning` names views in which a row does not come from
    one person's rows alone: by ``random()``, LIMIT, a sample, a window, a subquery or an aggregate of all rows.

    The connection is not kept open. Functions belong to the database: cursors have them, too, and where a database is
    opened by several connections of one process, each that installs has its own, while cursors have what was
    installed last.
    """
    import duckdb

    if not isinstance(con, duckdb.DuckDBPyConnection):
        raise ArgumentError(f"con must be a DuckDB connection, not {type(con).__name__}: use duckdb.connect().")
    attacker = read_attacker(attacker)
    if ledger is not None and not isinstance(ledger, Ledger):
        raise ArgumentError(
            f"ledger must be a Ledger, not {type(ledger).__name__}: open one with pkdp.Ledger.open(path)."
        )
    # What is the same in every call is checked as any request is.
    rules = Question(
        mechanism=Histogram(k=1),
        unit=unit,
        by="cell",
        missing_unit=missing_unit,
        units=units,
        one_cell=one_cell,
        order_by=order_by,
        period="all" if period is None and ledger is None else period,
    )
    readonly = "SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()"
    try:
        with closing(con.cursor()) as cursor:
            ((temporary,),) = cursor.execute(readonly).fetchall()
            linked = linking_views(cursor, rules.unit)
    except duckdb.Error as error:
        raise ConfigError(f"the connection cannot be used ({type(error).__name__}): is it open and free?") from None
    book = Ledger.open(":memory:") if ledger is None else ledger
    releases = CuratorReleases(cursor=_cursors(con), attacker=attacker, ledger=book, rules=rules, target=target)
    if ledger is None:
        weakref.finalize(releases, book.close)
    register(con, releases, temporary=bool(temporary))
    for name, parts in linked.items():
        warnings.warn(link_warning(f"view {name!r}", parts), stacklevel=2)


def _cursors(con: duckdb.DuckDBPyConnection) -> Callable[[], duckdb.DuckDBPyConnection]:
    """Return what makes cursors of a connection without keeping it open."""
    import duckdb

    if con is duckdb.default_connection():
        # DuckDB keeps this one itself; the object that stands for it comes and goes.
        return lambda: duckdb.default_connection().cursor()
    reference = weakref.ref(con)

    def cursor() -> duckdb.DuckDBPyConnection:
        connection = reference()
        if connection is None:
            raise ConfigError("the connection on which pkdp was installed is gone; install on the one in use.")
        return connection.cursor()

    return cursor


def request_of(
    spec: Spec,
    table: TableRef,
    rules: Question,
    *,
    domain: object = None,
    offered: Mapping[str, str] | None = None,
) -> Question:
    """Return what a question asks of a table; no data are read.

    Parameters
    ----------
    rules : Question
        Says what holds where the question does not: unit, period, and the rules for rows.
    domain : dict, optional
        The public cells, instead of those of the question.
    offered : mapping of str to str, optional
        The only columns that the question may name: of others nothing is said, not even that they are there.
    """
    columns, lacking, own = offered, NOT_OFFERED, LACKING
    if columns is None:
        columns, lacking = table.columns, f"{LACKING}; it has {columns_listed(table.columns)}"
        own = lacking
    by = None
    if spec.cells is not None:
        by = tuple(column_named("by", name, columns, lacking=lacking) for name in spec.cells)
    kinds = {name: public_type(name, columns[name]) for name in by or ()}
    where = None
    if spec.filter is not None:
        from pkdp_pipeline.sql.filters import from_sql

        where = from_sql(spec.filter, columns, lacking=lacking)
    # A call that names a rule of its own does not inherit the columns that belong to another one.
    several = cells_per_unit(spec.mechanism) > 1
    one_cell = spec.one_cell or ("error" if several or by is None else rules.one_cell)
    inherits = spec.order_by is None and one_cell == rules.one_cell and not several and by is not None
    first = rules.order_by if inherits else spec.order_by
    request = replace(
        rules,
        mechanism=spec.mechanism,
        by=by,
        summed=None if spec.sum is None else column_named("sum", spec.sum, table.columns, lacking=own),
        domain=domain if spec.domain is None else read_domain(spec.domain, kinds) if kinds else spec.domain,
        where=where,
        order_by=[column_named("order_by", column, table.columns, lacking=own) for column in first or ()] or None,
        period=spec.period or rules.period,
        table=table.name,
        **{rule: said for rule in RULES if (said := getattr(spec, rule, None))} | {"one_cell": one_cell},
    )
    for name in request.unit:
        if name not in table.columns:
            column_named("unit", name, table.columns, lacking=own)
            raise ArgumentError(f"unit names column {name!r}; the table spells it otherwise: rename one.")
    return request


#: The arguments of the macros, and of `install`, under the names that messages have for them.
_NO_ARGUMENTS = ("table", "histogram", "count", "sum", "database", "schema_", "schemas")
_ARGUMENTS = {name: name for name in (*Spec.model_fields, "units") if name not in _NO_ARGUMENTS} | {"where": "filter"}


def _in_sql(error: PkdpError) -> str:
    """Return what an error says, arguments as the macros take them, or `install` does."""

    def written(name: str, value: str) -> str:
        in_sql = value.replace('"', "'")
        return f"{name}={value} at install" if name == "units" else f"{name} := {in_sql}"

    return with_arguments(worded_for(error, CURATOR), _ARGUMENTS, written)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class CuratorReleases:
    """Publishes from the tables of one DuckDB database.

    Parameters
    ----------
    cursor : callable
        Returns a fresh cursor of the database; it is closed after use.
    rules : Question
        As of `request_of`.
    target : Target, None or "default"
        The least that each release has to promise.
    """

    cursor: Callable[[], duckdb.DuckDBPyConnection]
    attacker: AttackerModel
    ledger: Ledger
    rules: Question
    target: Asked = "default"

    def plan(self, spec: Spec) -> tuple[tuple[str, str], ...]:
        """See `functions.Releases`."""
        with self._opened() as cursor:
            table = resolve(cursor, spec.table, spec.database, spec.schema_, spec.schemas)
            by = request_of(spec, table, self.rules).by
        return tuple((name, public_type(name, table.columns[name])) for name in by)

    def release(self, spec: Spec) -> Release:
        """See `functions.Releases`."""
        with self._opened() as cursor:
            table = resolve(cursor, spec.table, spec.database, spec.schema_, spec.schemas)
            request = request_of(spec, table, self.rules)
            return publish(
                lambda: cursor.sql(f"SELECT * FROM {table.sql}"),
                Publication(question=request, attacker=self.attacker, ledger=self.ledger, target=self.target),
            )

    def published(self) -> Iterator[tuple[str, Release]]:
        """See `functions.Releases`."""
        for entry in self.ledger.entries():
            if entry.content is not None:
                yield entry.label, Release.from_bytes(entry.content, replayed=True)

    @contextmanager
    def _opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a cursor and close it; what DuckDB says when it fails could quote data, and is not passed on."""
        import duckdb

        problem: Exception | None = None
        try:
            with closing(self.cursor()) as cursor:
                # The same request means the same on every machine: points in time without an offset are of UTC. A
                # database whose configuration is locked keeps its own zone.
                with suppress(duckdb.Error):
                    cursor.execute("SET TimeZone = 'UTC'")
                yield cursor
            return
        except PkdpError as error:
            raise type(error)(_in_sql(error)) from None
        except RuntimeError as error:
            # DuckDB's word for Ctrl-C, which says nothing about what was read.
            if str(error) == "Query interrupted":
                raise KeyboardInterrupt from None
            raise
        except duckdb.OutOfMemoryException:
            problem = TemporaryError(
                "there is not enough memory to read the database now; try again when more is free."
            )
        except duckdb.Error as error:
            kind = type(error).__name__
            problem = ConfigError(f"the database could not be read ({kind}); check that its connection is open.")
        raise problem
