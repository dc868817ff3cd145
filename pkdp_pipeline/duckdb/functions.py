"""Registration: the SQL functions behind the macros, and the macros of ``sql/duckdb``, on one connection."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.duckdb import certificates
from pkdp_pipeline.duckdb.cells import spelled
from pkdp_pipeline.duckdb.releases import Releases
from pkdp_pipeline.duckdb.spec import Spec
from pkdp_pipeline.duckdb.tables import literal, quoted
from pkdp_pipeline.errors import ConfigError, PkdpError
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    import duckdb

__all__ = ["INTERNAL", "MACROS", "register"]

#: The SQL functions that only the macros call.
INTERNAL = ("pkdp_plan", "pkdp_release", "pkdp_certified", "pkdp_published")
#: The macros, each in a file of its name in ``sql/duckdb``.
MACROS = ("pkdp_histogram", "pkdp_count", "pkdp_delta", "pkdp_epsilon", "pkdp_releases")

_CELLS = "STRUCT(keys VARCHAR[], count BIGINT)[]"
_ENTRIES = (
    "STRUCT(id VARCHAR, table_name VARCHAR, label VARCHAR, period VARCHAR, row_count BIGINT, sentence VARCHAR, "
    "certificate VARCHAR)[]"
)
_CREATE = re.compile(r"(?m)^CREATE OR REPLACE MACRO ")
_INTERNAL = re.compile(rf"\b({'|'.join(INTERNAL)})\(")

#: Every function ever registered. DuckDB keeps bare pointers to them, which cursors can follow even after the
#: connection that registered them is closed.
_kept: list[Callable[..., Any]] = []


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _Registration:
    """Who answers on a connection, until it is closed or registered again; the functions know it weakly."""

    releases: Releases


_registrations: weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, _Registration] = weakref.WeakKeyDictionary()
#: The default connection is DuckDB's own; the object that stands for it comes and goes.
_on_default: list[_Registration] = []


def register(connection: duckdb.DuckDBPyConnection, releases: Releases, *, temporary: bool = False) -> None:
    """Make the pkdp macros on a connection, answered by `releases`; made before, they are replaced.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Not in a transaction.
    releases : Releases
        Kept until the connection is closed or registered again.
    temporary : bool, default False
        Make temporary macros only, which leave nothing in the database and which cursors of the connection do not
        have; a database opened read-only takes no others.

    Raises
    ------
    ConfigError
        If DuckDB does not take them; nothing was changed then.
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
    registration, problem = _Registration(releases), ""
    try:
        names = _create_functions(connection, weakref.ref(registration))
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
        _on_default[:] = [registration]
    else:
        _registrations[connection] = registration


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
    cursor = connection.cursor()
    try:
        ((database, schema),) = cursor.execute("SELECT current_database(), current_schema()").fetchall()
    finally:
        cursor.close()
    return f"{quoted(database)}.{quoted(schema)}"


def _create_functions(
    connection: duckdb.DuckDBPyConnection, registration: weakref.ref[_Registration]
) -> dict[str, str]:
    """Register the functions; return under which names.

    The names get a number where another connection of the same database has functions of its own.
    """
    import duckdb

    for former in _registered(connection):
        # Only the connection that registered a function can remove it.
        with suppress(duckdb.InvalidInputException):
            connection.remove_function(former)
    taken = set(_registered(connection))
    suffixes = ("", *(f"_{number}" for number in range(2, len(taken) + 3)))
    suffix = next(free for free in suffixes if taken.isdisjoint(name + free for name in INTERNAL))
    used = {name: name + suffix for name in INTERNAL}
    import pyarrow as pa

    cell = pa.struct([("keys", pa.list_(pa.string())), ("count", pa.int64())])
    entry = pa.struct(
        [
            ("id", pa.string()),
            ("table_name", pa.string()),
            ("label", pa.string()),
            ("period", pa.string()),
            ("row_count", pa.int64()),
            ("sentence", pa.string()),
            ("certificate", pa.string()),
        ]
    )

    def releases() -> Releases:
        held = registration()
        if held is None:
            raise ConfigError("the connection on which pkdp was installed is gone; install on the one in use.")
        return held.releases

    def plan(questions: Any) -> Any:
        def answer(text: Any) -> str:
            spec = Spec.read(text)
            return _planned(spec, releases().plan(spec), used["pkdp_release"])

        return pa.array(_each(questions.to_pylist(), answer), pa.string())

    def release(questions: Any) -> Any:
        answers = _each(questions.to_pylist(), lambda text: _cells(releases().release(Spec.read(text))))
        return pa.array(answers, pa.list_(cell))

    def certified(*columns: Any) -> Any:
        rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
        return pa.array(_guarded(lambda: certificates.certified(rows)), pa.float64())

    def published(calls: Any) -> Any:
        return pa.array(_each(calls.to_pylist(), lambda _: _entries(releases().published())), pa.list_(entry))

    create: Any = connection.create_function  # typed otherwise in each version
    kinds = [kind for _, kind in certificates.PARAMETERS]
    # DuckDB asks how many columns it takes.
    names = [Parameter(name, Parameter.POSITIONAL_ONLY) for name, _ in certificates.PARAMETERS]
    certified.__signature__ = Signature(names)  # type: ignore[attr-defined]
    for name, function, parameters, answer, volatile in (
        ("pkdp_plan", plan, ["VARCHAR"], "VARCHAR", False),
        ("pkdp_release", release, ["VARCHAR"], _CELLS, True),
        ("pkdp_certified", certified, kinds, "DOUBLE", False),
        ("pkdp_published", published, ["BIGINT"], _ENTRIES, True),
    ):
        _kept.append(function)
        create(
            used[name],
            function,
            parameters,
            answer,
            type="arrow",
            null_handling="special",
            side_effects=volatile,
        )
    return used


def _registered(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'scalar' "
        "AND regexp_full_match(function_name, $pattern)",
        {"pattern": rf"({'|'.join(INTERNAL)})(_\d+)?"},
    ).fetchall()
    return [row[0] for row in rows]


def _planned(spec: Spec, columns: Iterable[tuple[str, str]], release: str) -> str:
    """Return the SELECT that a table macro runs: the typed key columns and ``count``.

    The types of `columns` come from a closed list, never from a user. `release` is the function that publishes or
    replays: it is volatile, so DuckDB calls it when the statement runs, and not under EXPLAIN.
    """
    keys = [
        f"CAST(cell.keys[{position}] AS {kind}) AS {quoted(name)}, "
        for position, (name, kind) in enumerate(columns, start=1)
    ]
    question = literal(spec.to_json())
    return f"SELECT {''.join(keys)}cell.count AS count FROM (SELECT unnest({release}({question})) AS cell)"


def _each(questions: Sequence[Any], answer: Callable[[Any], Any]) -> list[Any]:
    """Answer every distinct question once: DuckDB sends chunks of equal ones."""
    answers = {}
    for question in questions:
        if question not in answers:
            answers[question] = _guarded(partial(answer, question))
    return [answers[question] for question in questions]


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
    keys = [spelled(table.iloc[:, position].array) for position in range(table.shape[1] - 1)]
    counts: list[int | None] = [None if count is pd.NA else int(count) for count in table["count"].array]
    rows: Iterable[tuple[str | None, ...]] = zip(*keys, strict=True) if keys else [()] * len(counts)
    return [{"keys": list(cell), "count": count} for cell, count in zip(rows, counts, strict=True)]


def _entries(published: Iterable[tuple[str, Release]]) -> list[dict[str, Any]]:
    rows = []
    for label, release in published:
        context = release.certificate.context
        rows.append(
            {
                "id": release.id,
                "table_name": None if context is None else context.table,
                "label": label,
                "period": None if context is None else context.period,
                "row_count": len(release.table),
                "sentence": release.certificate.sentence(),
                "certificate": release.certificate.to_json(),
            }
        )
    return rows


def _script(name: str) -> str:
    package = Path(__file__).resolve().parents[1]
    # A wheel carries sql/ inside the package; an editable install reads it beside the package.
    for folder in (package / "sql", package.parent / "sql"):
        file = folder / "duckdb" / f"{name}.sql"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise ConfigError(f"the installation is incomplete: sql/duckdb/{name}.sql is missing; install the package again.")
