"""install: the curator's connection gets the pkdp macros."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.duckdb.functions import register
from pkdp_pipeline.duckdb.releases import CuratorReleases
from pkdp_pipeline.duckdb.views import link_warning, linking_views
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.model.question import Question

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.certificates.target import Asked

__all__ = ["install"]


def install(
    con: duckdb.DuckDBPyConnection,
    *,
    attacker: AttackerModel,
    unit: Any,
    ledger: Ledger | None = None,
    period: Any = None,
    missing_unit: str = "error",
    units: str = "checked",
    one_cell: str = "error",
    order_by: Any = None,
    target: Asked = "default",
) -> None:
    """Give a connection ``pkdp_histogram``, ``pkdp_count``, ``pkdp_releases``, ``pkdp_delta`` and ``pkdp_epsilon``.

    Whoever uses the connection sees the data: these are the curator's tools. An analyst gets a `Gate`.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        Not in a transaction. Installing again replaces what was installed. A database that can be written keeps
        the macros, not the functions behind them: after reopening, install again.
    attacker : AttackerModel
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
        What each release has to promise at least: without it the ledger's, or a finite ε at δ = 1e-6. None: nothing.

    Raises
    ------
    ArgumentError
        If an argument is malformed.
    ConfigError
        If the connection does not take the macros.

    Notes
    -----
    Tables and views are read through cursors of the connection: what is committed, in the catalog, with the
    database's settings rather than the session's, and with points in time of UTC where no offset is written. What a
    view does is the curator's responsibility. A `UserWarning` names views in which a row does not come from one
    person's rows alone: by ``random()``, LIMIT, a sample, a window, a subquery or an aggregate of all rows.

    The connection is not kept open. Functions belong to the database: cursors have them, too, and where a database is
    opened by several connections of one process, each that installs has its own, while cursors have what was
    installed last.
    """
    import duckdb

    if not isinstance(con, duckdb.DuckDBPyConnection):
        raise ArgumentError(f"con must be a DuckDB connection, not {type(con).__name__}: use duckdb.connect().")
    if not isinstance(attacker, AttackerModel):
        raise ArgumentError(
            f"attacker must be an AttackerModel, not {type(attacker).__name__}: write pkdp.AttackerModel(p_max=0.1)."
        )
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
    readonly, linked = _looked_at(con, rules.unit)
    book = Ledger.open(":memory:") if ledger is None else ledger
    releases = CuratorReleases(
        cursor=_cursors(con),
        attacker=attacker,
        ledger=book,
        rules=rules,
        target=target,
    )
    if ledger is None:
        weakref.finalize(releases, book.close)
    register(con, releases, temporary=readonly)
    for name, parts in linked.items():
        warnings.warn(link_warning(f"view {name!r}", parts), stacklevel=2)


def _looked_at(con: duckdb.DuckDBPyConnection, unit: tuple[str, ...]) -> tuple[bool, dict[str, list[str]]]:
    """Return whether the database that was opened takes no macros, and the views that link people's rows."""
    import duckdb

    try:
        cursor = con.cursor()
        try:
            found = cursor.execute(
                "SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()"
            ).fetchall()
            linked = linking_views(cursor, unit)
        finally:
            cursor.close()
    except duckdb.Error as error:
        raise ConfigError(f"the connection cannot be used ({type(error).__name__}): is it open and free?") from None
    return bool(found[0][0]), linked


def _cursors(con: duckdb.DuckDBPyConnection) -> Callable[[], duckdb.DuckDBPyConnection]:
    """Return what makes cursors of a connection without keeping it open."""
    import duckdb

    if con is duckdb.default_connection():
        # DuckDB keeps this one itself; the object that stands for it comes and goes.
        return lambda: duckdb.default_connection().cursor()
    reference = weakref.ref(con)

    def cursor() -> duckdb.DuckDBPyConnection:
        held = reference()
        if held is None:
            raise ConfigError("the connection on which pkdp was installed is gone; install on the one in use.")
        return held.cursor()

    return cursor
