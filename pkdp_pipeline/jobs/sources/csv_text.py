"""CSV files as text: UTF-8, a header, and nothing guessed from the values.

One reader serves every engine, so that what a file holds does not depend on the engine.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.engines.duckdb.statements import literal, quoted
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.files import agreed_columns, files_of, shown
from pkdp_pipeline.jobs.sources.needed import needed_columns, two_columns
from pkdp_pipeline.jobs.sources.source import no_such_column
from pkdp_pipeline.model.predicate.columns import twins

if TYPE_CHECKING:
    import duckdb

__all__ = ["TextRows", "csv_not_readable", "text_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRows:
    """The rows of CSV files, every column as text and the declared texts as NULL.

    Parameters
    ----------
    all : duckdb.DuckDBPyRelation
    of_file : mapping
        For each of several files, by its name for messages, what returns its own rows; to find the one that is wrong.
    """

    all: duckdb.DuckDBPyRelation
    of_file: Mapping[str, Callable[[], duckdb.DuckDBPyRelation]]


def text_rows(connection: duckdb.DuckDBPyConnection, job: Job) -> TextRows:
    """Return the rows of the job's CSV files.

    Raises
    ------
    ConfigError
        If there are no such files, they are not UTF-8 with a header, or one lacks a column that the job needs.
    """
    import duckdb

    table = job.source
    assert isinstance(table, FileSourceTable)
    if any("://" in file for file in table.files):
        raise ConfigError("source: CSV is read from files of this machine, not from addresses; store it as Parquet.")
    files, name = files_of(table.files), shown(table.files)
    labels = _labels(files)
    headers = {file: _header(file, table.delimiter, name, labels.get(file)) for file in files}
    somewhere = list(dict.fromkeys(column for header in headers.values() for column in header))
    undefined = [column for column in table.types if column not in somewhere]
    if undefined:
        raise no_such_column(dict.fromkeys(undefined, "source.types"), somewhere)
    schemas = {file: dict.fromkeys(header, "text") for file, header in headers.items()}
    columns = agreed_columns(schemas, needed_columns(job, somewhere), source=name)
    alike: dict[tuple[tuple[str, ...], bool], list[str]] = {}
    for file, header in headers.items():
        alike.setdefault((header, _is_compressed(file)), []).append(file)
    selected = ", ".join(f"{_value(column, table.null)} AS {quoted(column)}" for column in columns)

    def reading(group: Sequence[str]) -> str:
        header, compressed = headers[group[0]], _is_compressed(group[0])
        return f"SELECT {selected} FROM {_reading(group, header, table.delimiter, compressed)}"

    try:
        return TextRows(
            all=connection.sql(" UNION ALL ".join(map(reading, alike.values()))),
            of_file={label: partial(connection.sql, reading([file])) for file, label in labels.items()},
        )
    except duckdb.Error:
        pass
    raise csv_not_readable(name)


def csv_not_readable(name: str, file: str | None = None) -> ConfigError:
    """Return what to say of files that are not as a CSV file must be; `file` is one of them, where it is known."""
    what = f"source {name!r}" if file is None else f"file {file!r} of source {name!r}"
    return ConfigError(
        f"{what} cannot be read to its end as CSV: a file must be UTF-8 text with a header, the declared "
        'delimiter, " around texts that hold a delimiter, a quote or a line break, and in every line as many values as '
        "the header has names."
    )


def _labels(files: Sequence[str]) -> dict[str, str]:
    """Return how each of several files is named: by its base name, where that tells it from the others."""
    if len(files) < 2:
        return {}
    names = [os.path.basename(file) for file in files]
    return {file: name if names.count(name) == 1 else file for file, name in zip(files, names, strict=True)}


def _is_compressed(file: str) -> bool:
    return file.lower().endswith(".gz")


def _header(file: str, delimiter: str, name: str, label: str | None) -> tuple[str, ...]:
    header: list[str] | None = None
    try:
        opened: Any = gzip.open if _is_compressed(file) else open
        with opened(file, "rt", encoding="utf-8-sig", newline="") as lines:
            header = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error):
        pass
    if header is None:
        raise csv_not_readable(name, label)
    # Names are compared without regard to case by what reads the files.
    if (found := twins(header)) is not None and all(header):
        raise ConfigError(two_columns(f"source {name!r}" if label is None else f"{label!r} of source {name!r}", found))
    if not header or not all(header):
        raise ConfigError(
            f"source {name!r}: the first line of {'a CSV file' if label is None else repr(label)} must name every "
            "column."
        )
    return tuple(header)


def _value(column: str, null: Sequence[str]) -> str:
    # What is read is NULL where nothing is written; whether that is a missing value, the job says.
    value = f"coalesce({quoted(column)}, '')"
    return f"CASE WHEN {value} NOT IN ({', '.join(map(literal, null))}) THEN {value} END" if null else value


def _reading(files: Sequence[str], header: Sequence[str], delimiter: str, compressed: bool) -> str:
    paths = ", ".join(literal(re.sub(r"([*?\[])", r"[\1]", file)) for file in files)
    columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in header)
    return (
        f"read_csv([{paths}], columns = {{{columns}}}, delim = {literal(delimiter)}, quote = '\"', escape = '\"', "
        f"header = true, auto_detect = false, strict_mode = true, null_padding = false, encoding = 'utf-8', "
        f"hive_partitioning = false, compression = '{'gzip' if compressed else 'none'}')"
    )
