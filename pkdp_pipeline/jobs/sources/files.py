"""The files of a source: which a pattern finds, what columns they agree on, and Parquet as DuckDB reads it."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pkdp_pipeline.engines.layouts import DIGITS
from pkdp_pipeline.engines.rows import literal, quoted
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.sources.csv_forms import FORMS
from pkdp_pipeline.jobs.sources.relations import RelationSource, connect
from pkdp_pipeline.jobs.sources.source import Kind, Needs, check_unique

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.jobs.source_tables import FileSourceTable

_MISSING = "__HIVE_DEFAULT_PARTITION__"
_NO_COLUMNS: Mapping[str, Kind] = MappingProxyType({})


def open_parquet(table: FileSourceTable, needs: Needs) -> RelationSource:
    """Return Parquet files, open for reading: one relation of the columns on which they agree.

    Raises `ConfigError` if they do not exist, are no Parquet files, disagree on what the job needs, or do not lie in
    the folders that name columns.
    """
    import duckdb

    name, files = shown(table.files), files_of(table.files)
    opened = states_of(files)
    check_parquet_columns(files, needs.of, needs.unit)
    _check_folders(files, table.hive)
    connection = connect()
    try:
        # A year of days is read from one connection: what the files say about themselves is read once.
        connection.execute("SET parquet_metadata_cache = true")
        columns = agreed_parquet_columns(connection, files, needs, name, table.hive)
        with suppress(duckdb.Error):
            relation = _read(connection, files, table.hive).project(", ".join(map(quoted, columns)))
            broken = no_parquet(name, "to its end ")
            # DuckDB opens the files anew for each question.
            return RelationSource(
                connection, relation, broken, lambda: opened is not None and states_of(files) == opened
            )
        raise no_parquet(name)
    except BaseException:
        connection.close()
        raise


def files_of(patterns: Sequence[str], *, folders: bool = False) -> tuple[str, ...]:
    """Return the files that paths and patterns stand for, each once, by name.

    `patterns`: absolute paths. The path of a file is no pattern. `folders`: whether a path may be a folder. Raises
    `ConfigError` if one of them stands for no file, or a file may not be read.
    """
    files: dict[str, None] = {}
    for pattern in patterns:
        path = _exact(pattern)
        if Path(path).is_file() or (folders and Path(path).is_dir()):
            files[path] = None
            continue
        matches = sorted(match for match in glob.glob(pattern, recursive=True) if Path(match).is_file())
        if not matches:
            is_pattern = glob.has_magic(re.sub(r"\[[*?\[]\]", "", pattern))
            problem = "matches no file" if is_pattern else "does not exist or is not a file"
            raise ConfigError(f"source {path!r} {problem}; correct the path.")
        files.update(dict.fromkeys(matches))
    for path in files:
        if not os.access(path, os.R_OK):
            raise ConfigError(f"source {path!r} may not be read by this user: check the permissions of the file.")
    return tuple(files)


def states_of(files: Sequence[str]) -> tuple[tuple[int, ...], ...] | None:
    """Return what tells states of files apart: a file that is replaced or written has another one; None: unknown."""
    try:
        states = map(os.stat, files)
        return tuple(
            (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns) for state in states
        )
    except OSError:
        return None


def _exact(pattern: str) -> str:
    """Return a path as it is written without the signs by which a pattern names itself."""
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)


def escaped(file: str) -> str:
    """Return the pattern that stands for one file in DuckDB."""
    return re.sub(r"([*?\[])", r"[\1]", file)


def shown(patterns: Sequence[str]) -> str:
    """Return how a source is named in messages."""
    return ", ".join(map(_exact, patterns))


def agreed_columns(
    schemas: Mapping[str, Mapping[str, str]], needed: Callable[[Collection[str]], Sequence[str]], source: str
) -> tuple[str, ...]:
    """Return the columns that all files have under one type, in the order of the first file.

    `schemas` holds for each file its column names and their types; `needed` returns which columns are needed. Raises
    `ConfigError`, naming a column that is needed and some files lack, or hold under another type, and one of these
    files.
    """
    first = next(iter(schemas.values()))
    somewhere = list(dict.fromkeys(column for schema in schemas.values() for column in schema))
    for column in needed(somewhere):
        types: dict[str | None, str] = {}
        for file, schema in schemas.items():
            types.setdefault(schema.get(column), os.path.basename(file))
        if len(types) > 1:
            listed = " and ".join(f"{kind or 'missing'} in {file!r}" for kind, file in [*types.items()][:2])
            raise ConfigError(
                f"the files of source {source!r} must agree on their columns: {column!r} is {listed}; store it in all "
                "of them, under one type."
            )
    return tuple(column for column, kind in first.items() if all(s.get(column) == kind for s in schemas.values()))


def check_parquet_columns(
    files: Sequence[str], needed: Callable[[Sequence[str]], Collection[str]], unit: Collection[str]
) -> None:
    """Refuse files whose columns an engine would read as others, or as other values.

    Raises `ConfigError` if two columns have one name, letter case aside, or one that is needed holds decimals of more
    than 38 digits, which DuckDB reads as floating-point numbers: several would be one. So may be whole numbers kept as
    half floats, which it reads as longer ones: of `unit` they are refused as well.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files:
        schema = pa.schema([])
        with suppress(pa.ArrowException, OSError):  # what cannot be read, the engine says
            schema = pq.read_schema(file)
        check_unique(schema.names, f"source {file!r}")
        for column in needed(schema.names):
            kind = schema.field(column).type
            if pa.types.is_decimal(kind) and kind.precision > DIGITS:
                raise ConfigError(
                    f"column {column!r} of source {file!r} holds decimals of up to {kind.precision} digits, and more "
                    f"than {DIGITS} are not told apart; store it as text, or as decimals of at most {DIGITS} digits."
                )
            if column in unit and pa.types.is_float16(kind):
                raise ConfigError(
                    f"unit column {column!r} of source {file!r} holds half floats, among which whole numbers may not "
                    "be told apart; store it as whole numbers or as text."
                )


def agreed_parquet_columns(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[str],
    needs: Needs,
    name: str,
    hive: Mapping[str, Kind] = _NO_COLUMNS,
) -> tuple[str, ...]:
    """Return the columns that all Parquet files have under one type; `name` is that of the source in messages.

    Raises `ConfigError` if one is no Parquet file, or they do not agree on a column that the job needs.
    """
    import duckdb

    schemas: dict[str, dict[str, str]] = {}
    for file in files:
        with suppress(duckdb.Error):
            relation = _read(connection, [file], hive)
            schemas[file] = dict(zip(relation.columns, map(str, relation.types), strict=True))
        if file not in schemas:
            raise no_parquet(file)
    return agreed_columns(schemas, needs.of, name)


def _check_folders(files: Sequence[str], hive: Mapping[str, Kind]) -> None:
    """Refuse files that do not lie in the folders that name columns, each once, or hold such a column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files if hive else ():
        folders = [folder.split("=", 1) for folder in Path(file).parts[:-1] if "=" in folder]
        if sorted(name for name, _ in folders) != sorted(hive):
            raise ConfigError(
                f"source {file!r} must lie in folders {', '.join(f'{name}=…' for name in hive)}, each once, and in no "
                "others of this form: correct hive under source in the job file, or the folders."
            )
        for name, value in folders:
            form = FORMS.get(hive[name])
            if form is not None and value != _MISSING and not re.fullmatch(form.pattern, unquote(value)):
                raise ConfigError(f"source {file!r}: the folder {name}=… must name {form.words()}, as hive says.")
        inside: list[str] = []
        with suppress(pa.ArrowException, OSError):  # what cannot be read, the engine says
            inside = [name for name in pq.read_schema(file).names if name in hive]
        if inside:
            raise ConfigError(
                f"source {file!r} has a column {inside[0]!r}, and lies in a folder of that name: remove one of them."
            )


def _read(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], hive: Mapping[str, Kind]
) -> duckdb.DuckDBPyRelation:
    paths = list(map(escaped, files))
    if not hive:  # the names of folders say nothing about columns
        return connection.read_parquet(paths, hive_partitioning=False)
    kinds = {name: FORMS[kind].sql_type if kind in FORMS else "VARCHAR" for name, kind in hive.items()}
    types = ", ".join(f"{literal(name)}: {kind}" for name, kind in kinds.items())
    listed = ", ".join(map(literal, paths))
    return connection.sql(f"FROM read_parquet([{listed}], hive_partitioning = true, hive_types = {{{types}}})")


def no_parquet(path: str, how_far: str = "") -> ConfigError:
    """Return what to say of data that are no Parquet, or break off."""
    return ConfigError(f"source {path!r} cannot be read {how_far}as a Parquet file.")
