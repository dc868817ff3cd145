"""The curator's connection: `install` gives it the macros, which publish from its tables.

Registration: the SQL functions behind the macros, and the macros of ``sql/duckdb``, on one connection.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pandas as pd

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.engines.rows import built_in, literal, quoted
from pkdp_pipeline.errors import ArgumentError, ConfigError, NotCertifiableError, PkdpError, TemporaryError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.attacker import AttackerModel, Leakage, read_attacker
from pkdp_pipeline.model.columns import columns_listed
from pkdp_pipeline.model.mechanisms import (
    MECHANISMS,
    Histogram,
    cells_per_unit,
    key_columns,
    noised_below,
    value_column,
)
from pkdp_pipeline.model.question import RULES, Question
from pkdp_pipeline.model.wording import CURATOR, choice, probability, with_arguments, worded_for
from pkdp_pipeline.releases.publish import Publication, publish
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.sql.spec import STEPS, Spec, mechanism_of, public_type, read_domain, spelled, sql_fields
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

    from pkdp_pipeline.certificates.release_certificate import Asked

#: The SQL functions that only the macros call.
INTERNAL = ("pkdp_plan", "pkdp_release", "pkdp_certified", "pkdp_published")
#: The macros, each in a file of its name in ``sql/duckdb``.
MACROS = ("pkdp_histogram", "pkdp_count", "pkdp_sum", "pkdp_delta", "pkdp_epsilon", "pkdp_releases")

_CELL = {"keys": "VARCHAR[]", "count": "BIGINT", "exact": "BOOLEAN"}
#: A release in ``pkdp_releases``: the columns, each with its type and what it holds of label and release.
_ENTRY: dict[str, tuple[str, Callable[[str, Release], Any]]] = {
    "id": ("VARCHAR", lambda _, release: release.id),
    "table_name": ("VARCHAR", lambda _, release: getattr(release.certificate.context, "table", None)),
    "label": ("VARCHAR", lambda label, _: label),
    "period": ("VARCHAR", lambda _, release: getattr(release.certificate.context, "period", None)),
    "row_count": ("BIGINT", lambda _, release: len(release.table)),
    "sentence": ("VARCHAR", lambda _, release: release.certificate.sentence()),
    "certificate": ("VARCHAR", lambda _, release: release.certificate.to_json()),
    "epsilon": ("DOUBLE", lambda _, release: release.certificate.epsilon(1e-6)),
    "cells": ("VARCHAR", lambda _, release: json.dumps(_cells(release))),
}
_SQL_TYPES = {int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}


def _parameters(declared: Mapping[str, Any]) -> dict[str, str]:
    """Return declared fields as parameters of SQL; what is no number and no truth value is text, or JSON text."""
    return {name: _SQL_TYPES.get(kind, "VARCHAR") for name, kind in declared.items()}


#: Parameters of the function behind ``pkdp_delta`` and ``pkdp_epsilon``, in order.
_ATTACKER = _parameters(sql_fields(AttackerModel, without=("leakage", "dependent", "secret")))
_CERTIFIED = (
    {"quantity": "VARCHAR", "target": "DOUBLE", "mechanism": "VARCHAR"}
    | _parameters(STEPS)
    | {"protects": "VARCHAR"}
    | _ATTACKER
    | {"total_known": "BOOLEAN"}
)
_CREATE = re.compile(r"(?m)^CREATE OR REPLACE MACRO ")
#: What macros call: the functions behind them, and DuckDB's own, in whose place no other macro may stand.
_CALLED = re.compile(rf"\b({'|'.join(INTERNAL)}|query|to_json|unnest|current_(?:database|schemas?))\(")


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


#: Every function ever registered. DuckDB keeps bare pointers to them, which cursors can follow even after the
#: connection that registered them is closed.
_kept: list[Callable[..., Any]] = []
#: Who answers on a connection, until it is closed or registered again; the functions know it weakly.
_registrations: weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, Releases] = weakref.WeakKeyDictionary()
#: The default connection is DuckDB's own; the object that stands for it comes and goes.
_on_default: list[Releases] = []


def register(connection: duckdb.DuckDBPyConnection, releases: Releases, *, temporary: bool = False) -> None:
    """Make the pkdp macros on a connection, answered by `releases`; made before, they are replaced.

    Raises `ConfigError` if DuckDB does not take them; nothing was changed then.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Not in a transaction.
    releases : Releases
        Kept until the connection is closed or registered again.
    temporary : bool, default False
        Make temporary macros only, which leave nothing in the database and which cursors of the connection do not
        have; a database opened read-only takes no others.
    """
    import duckdb

    try:
        connection.begin()
    except duckdb.TransactionException:
        raise ConfigError(
            "the connection is in a transaction, whose end would take the macros away: commit first."
        ) from None
    except duckdb.Error as error:
        raise ConfigError(f"the connection cannot be used ({type(error).__name__}): is it open and free?") from None
    problem = ""
    try:
        names = _create_functions(connection, weakref.ref(releases))
        _create_macros(connection, names, temporary=temporary)
        connection.commit()
    except BaseException as error:
        with suppress(duckdb.Error):
            connection.rollback()
        if not isinstance(error, duckdb.Error):
            raise
        problem = f"{type(error).__name__}: {error}"
    if problem:
        raise ConfigError(f"the macros could not be made on this connection ({problem}).")
    if connection is duckdb.default_connection():
        _on_default[:] = [releases]
    else:
        _registrations[connection] = releases


def _create_macros(connection: duckdb.DuckDBPyConnection, names: Mapping[str, str], *, temporary: bool) -> None:
    """Create the macros, which call the functions under these names."""
    home = "" if temporary else _home(connection)
    for macro in (macro for script in map(_script, MACROS) for macro in _CREATE.split(script)[1:]):
        text = _CALLED.sub(lambda match: f"system.main.{names.get(match[1], match[1])}(", macro)
        # Temporary macros come first when names are looked up, wherever the connection stands.
        connection.execute(f"CREATE OR REPLACE TEMP MACRO {text}")
        if not temporary:
            connection.execute(f"CREATE OR REPLACE MACRO {home}.{text}")


def _home(connection: duckdb.DuckDBPyConnection) -> str:
    """Return where cursors of the connection look names up."""
    with closing(connection.cursor()) as cursor:
        ((database, schema),) = cursor.execute(built_in("SELECT current_database(), current_schema()")).fetchall()
    return f"{quoted(database)}.{quoted(schema)}"


def _create_functions(connection: duckdb.DuckDBPyConnection, reference: weakref.ref[Releases]) -> dict[str, str]:
    """Register the functions; return under which names.

    The names get a number where another connection of the same database has functions of its own.
    """
    import duckdb
    import pyarrow as pa

    with closing(connection.cursor()) as cursor:  # whose errors end no transaction
        for number in itertools.count(1):
            suffix = f"_{number}" if number > 1 else ""
            try:
                # Nobody can call it so. To list all functions takes as long as the rest of an installation.
                cursor.execute(f"SELECT {INTERNAL[0]}{suffix}()")
            except duckdb.CatalogException:
                break  # there is none
            except duckdb.BinderException:
                with suppress(duckdb.InvalidInputException):  # only who registered functions can remove them
                    for name in INTERNAL:
                        connection.remove_function(name + suffix)
                    break
    used = {name: name + suffix for name in INTERNAL}

    def releases() -> Releases:
        current = reference()
        if current is None:
            raise ConfigError("the connection on which pkdp was installed is gone; install on the one in use.")
        return current

    def planned(text: Any) -> str:
        spec = Spec.read(text)
        return _planned(spec, releases().plan(spec), used["pkdp_release"])

    def entries() -> list[dict[str, Any]]:
        published = releases().published()
        return [{name: of_release(*entry) for name, (_, of_release) in _ENTRY.items()} for entry in published]

    arrow = {"VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_()}
    arrow["VARCHAR[]"] = pa.list_(pa.string())

    def create(
        name: str, answer: Callable[..., Any], parameters: Mapping[str, str], kind: str | Mapping[str, str]
    ) -> None:
        """Create a function that answers every distinct row once: DuckDB sends chunks of equal ones."""
        if isinstance(kind, str):
            returned, sql = arrow[kind], kind
        else:
            returned = pa.list_(pa.struct([(field, arrow[field_kind]) for field, field_kind in kind.items()]))
            sql = f"STRUCT({', '.join(f'{field} {field_kind}' for field, field_kind in kind.items())})[]"

        def function(*columns: Any) -> Any:
            rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
            answers = {row: _guarded(partial(answer, *row)) for row in dict.fromkeys(rows)}
            return pa.array([answers[row] for row in rows], returned)

        # DuckDB asks how many columns it takes.
        named = [Parameter(parameter, Parameter.POSITIONAL_ONLY) for parameter in parameters]
        function.__signature__ = Signature(named)  # type: ignore[attr-defined]
        _kept.append(function)
        register_function: Any = connection.create_function  # typed otherwise in each version
        register_function(
            used[name],
            function,
            list(parameters.values()),
            sql,
            type="arrow",
            null_handling="special",
            side_effects=name in ("pkdp_release", "pkdp_published"),
        )

    question = {"question": "VARCHAR"}
    create("pkdp_plan", planned, question, "VARCHAR")
    create("pkdp_release", lambda text: _cells(releases().release(Spec.read(text))), question, _CELL)
    create("pkdp_certified", _certified, _CERTIFIED, "DOUBLE")
    of_entry = {name: kind for name, (kind, _) in _ENTRY.items()}
    create("pkdp_published", lambda _: entries(), {"call": "BIGINT"}, of_entry)
    return used


def _planned(spec: Spec, columns: Iterable[tuple[str, str]], release: str) -> str:
    """Return the SELECT that a table macro runs: typed key columns, ``count`` or ``sum``, ``exact`` where it is marked.

    The types of `columns` come from a closed list, never from a user. `release` is the function that publishes or
    replays: it is volatile, so DuckDB calls it when the statement runs, and not under EXPLAIN.
    """
    selected = [
        f"CAST(cell.keys[{position}] AS {kind}) AS {quoted(name)}"
        for position, (name, kind) in enumerate(columns, start=1)
    ]
    selected.append(f"cell.count AS {'sum' if spec.is_sum else 'count'}")
    selected += ["cell.exact AS exact"] if spec.below == "noise" else []
    question = literal(spec.to_json())
    return f"SELECT {', '.join(selected)} FROM (SELECT system.main.unnest(system.main.{release}({question})) AS cell)"


def _guarded(answer: Callable[[], Any]) -> Any:
    """Return what is answered. DuckDB shows the text of errors: those of ours only, others could quote data."""
    problem = ""
    try:
        return answer()
    except PkdpError as error:
        raise error.with_traceback(None) from None
    except Exception as error:
        problem = type(error).__name__
    raise PkdpError(f"the question could not be answered ({problem}).")


def _cells(release: Release) -> list[dict[str, Any]]:
    table = release.table
    keys = [spelled(table.iloc[:, position].array) for position in range(len(key_columns(table.columns)))]
    numbers = table[value_column(table.columns)].array
    counts: list[int | None] = [None if count is pd.NA else int(count) for count in numbers]
    rows: Iterable[tuple[str | None, ...]] = zip(*keys, strict=True) if keys else [()] * len(counts)
    marks: list[bool | None] = [None] * len(counts)
    if noised_below(release.certificate.mechanism):
        marks = [None if exact is pd.NA else bool(exact) for exact in table["exact"].array]
    return [
        {"keys": list(cell), "count": count, "exact": exact}
        for cell, count, exact in zip(rows, counts, marks, strict=True)
    ]


@lru_cache(maxsize=8192)
def _certified(*row: Any) -> float:
    """Return the δ or ε that is certified; where nothing can be, that nothing is promised: δ = 1, ε = inf."""
    given = {name: value for name, value in zip(_CERTIFIED, row, strict=True) if value is not None}
    quantity = choice("quantity", given.get("quantity"), ("delta", "epsilon"))
    argument = "epsilon" if quantity == "delta" else "delta"
    if "target" not in given:
        raise ArgumentError(
            f"{argument} is needed, and may not be NULL: pkdp_{quantity}('histogram', …, {argument} := …)."
        )
    target = float(given["target"])
    name = choice("mechanism", given.get("mechanism"), MECHANISMS.keys())
    for step in {"display", "bounds"} & given.keys():
        given[step] = json.loads(given[step])  # which holds text where text was given
    mechanism = mechanism_of(name, given)
    attacker = AttackerModel.from_dict({field: given[field] for field in _ATTACKER if field in given})
    if given.get("total_known"):
        attacker = replace(attacker, leakage=(Leakage.total(),))
    try:
        certificate = certify(mechanism, attacker, protects=given.get("protects", "presence"))
    except NotCertifiableError:
        # Checked as if it were used, so that a malformed target is the same error everywhere.
        if argument == "delta":
            probability("delta", target)
        elif not (math.isfinite(target) and target >= 0):
            raise ArgumentError("epsilon must be finite and at least 0.") from None
        return 1.0 if quantity == "delta" else math.inf
    return float(certificate.delta(target) if quantity == "delta" else certificate.epsilon(target))


def _script(name: str) -> str:
    package = Path(__file__).resolve().parents[1]
    # A wheel carries sql/ inside the package; an editable install reads it beside the package.
    for folder in (package / "sql", package.parent / "sql"):
        file = folder / "duckdb" / f"{name}.sql"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise ConfigError(f"the installation is incomplete: sql/duckdb/{name}.sql is missing; install the package again.")


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
    readonly = built_in("SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()")
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
