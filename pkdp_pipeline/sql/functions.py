"""Registration: the SQL functions behind the macros, and the macros of ``sql/duckdb``, on one connection."""

from __future__ import annotations

import itertools
import json
import math
import re
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import fields, replace
from functools import lru_cache, partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_args, get_type_hints

import pandas as pd

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.engines.rows import literal, quoted
from pkdp_pipeline.errors import ArgumentError, ConfigError, NotCertifiableError, PkdpError
from pkdp_pipeline.model.arguments import choice, probability
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.leakage import Leakage
from pkdp_pipeline.model.mechanisms import MECHANISMS, key_columns, mechanism_of_steps, noised_below, value_column
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.sql.spec import Spec, spelled

if TYPE_CHECKING:
    import duckdb

#: The SQL functions that only the macros call.
INTERNAL = ("pkdp_plan", "pkdp_release", "pkdp_certified", "pkdp_published")
#: The macros, each in a file of its name in ``sql/duckdb``.
MACROS = ("pkdp_histogram", "pkdp_count", "pkdp_sum", "pkdp_delta", "pkdp_epsilon", "pkdp_releases")

_CELL = {"keys": "VARCHAR[]", "count": "BIGINT", "exact": "BOOLEAN"}
_ENTRY = {
    "id": "VARCHAR",
    "table_name": "VARCHAR",
    "label": "VARCHAR",
    "period": "VARCHAR",
    "row_count": "BIGINT",
    "sentence": "VARCHAR",
    "certificate": "VARCHAR",
    "epsilon": "DOUBLE",
    "cells": "VARCHAR",
}


def _sql_types(*kinds: type[Any], others: Mapping[str, str], without: Collection[str]) -> dict[str, str]:
    """Return the fields of declared values as parameters of SQL; `others`: those of fields with values of their own."""
    plain = {int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
    declared = ((field.name, get_type_hints(kind)[field.name]) for kind in kinds for field in fields(kind))
    hints = {name: hint for name, hint in declared if name not in without}
    return {
        name: others.get(name) or plain.get((get_args(hint) or (hint,))[0], "VARCHAR") for name, hint in hints.items()
    }


#: Parameters of the function behind ``pkdp_delta`` and ``pkdp_epsilon``, in order.
_MECHANISM = _sql_types(
    *MECHANISMS.values(),
    others={"noise": "DOUBLE", "display": "VARCHAR", "bounds": "VARCHAR"},
    without=("totals",),
)
_ATTACKER = _sql_types(AttackerModel, others={}, without=("leakage", "dependent", "secret"))
_CERTIFIED = (
    {"quantity": "VARCHAR", "target": "DOUBLE", "mechanism": "VARCHAR"}
    | _MECHANISM
    | {"protects": "VARCHAR"}
    | _ATTACKER
    | {"total_known": "BOOLEAN"}
)
_CREATE = re.compile(r"(?m)^CREATE OR REPLACE MACRO ")
_INTERNAL = re.compile(rf"\b({'|'.join(INTERNAL)})\(")


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
        text = _INTERNAL.sub(lambda match: f"{names[match[1]]}(", macro)
        # Temporary macros come first when names are looked up, wherever the connection stands.
        connection.execute(f"CREATE OR REPLACE TEMP MACRO {text}")
        if not temporary:
            connection.execute(f"CREATE OR REPLACE MACRO {home}.{text}")


def _home(connection: duckdb.DuckDBPyConnection) -> str:
    """Return where cursors of the connection look names up."""
    with closing(connection.cursor()) as cursor:
        ((database, schema),) = cursor.execute("SELECT current_database(), current_schema()").fetchall()
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
    create("pkdp_published", lambda _: _entries(releases().published()), {"call": "BIGINT"}, _ENTRY)
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
    return f"SELECT {', '.join(selected)} FROM (SELECT unnest({release}({question})) AS cell)"


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


def _entries(published: Iterable[tuple[str, Release]]) -> list[dict[str, Any]]:
    return [
        {
            "id": release.id,
            "table_name": getattr(release.certificate.context, "table", None),
            "label": label,
            "period": getattr(release.certificate.context, "period", None),
            "row_count": len(release.table),
            "sentence": release.certificate.sentence(),
            "certificate": release.certificate.to_json(),
            "epsilon": release.certificate.epsilon(1e-6),
            "cells": json.dumps(_cells(release)),
        }
        for label, release in published
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
    mechanism = mechanism_of_steps(name, {step: given[step] for step in _MECHANISM if step in given})
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
