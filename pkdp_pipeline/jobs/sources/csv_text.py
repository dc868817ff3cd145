"""CSV files as text: UTF-8, a header, and nothing guessed from the values.

One reader serves every engine, so that what a file holds does not depend on the engine.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.engines.duckdb.statements import literal, quoted
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.files import agreed_columns, files_of, shown
from pkdp_pipeline.jobs.sources.needed import needed_columns

if TYPE_CHECKING:
    import duckdb

__all__ = ["csv_not_readable", "text_rows"]


def text_rows(connection: duckdb.DuckDBPyConnection, job: Job) -> duckdb.DuckDBPyRelation:
    """Return the rows of the job's CSV files, every column as text and the declared texts as NULL.

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
    headers = {file: _header(file, table.delimiter, name) for file in files}
    somewhere = list(dict.fromkeys(column for header in headers.values() for column in header))
    undefined = [column for column in table.types if column not in somewhere]
    if undefined:
        raise ConfigError(f"source.types names column {undefined[0]!r}, which the header of {name!r} does not have.")
    schemas = {file: dict.fromkeys(header, "text") for file, header in headers.items()}
    columns = agreed_columns(schemas, needed_columns(job, somewhere), source=name)
    alike: dict[tuple[tuple[str, ...], bool], list[str]] = {}
    for file, header in headers.items():
        alike.setdefault((header, _is_compressed(file)), []).append(file)
    selected = ", ".join(f"{_value(column, table.null)} AS {quoted(column)}" for column in columns)
    parts = [
        f"SELECT {selected} FROM {_reading(group, header, table.delimiter, compressed)}"
        for (header, compressed), group in alike.items()
    ]
    try:
        return connection.sql(" UNION ALL ".join(parts))
    except duckdb.Error:
        pass
    raise csv_not_readable(name)


def csv_not_readable(name: str) -> ConfigError:
    """Return what to say of files that are not as a CSV file must be."""
    return ConfigError(
        f"source {name!r} cannot be read to its end as CSV: a file must be UTF-8 text with a header, the declared "
        'delimiter, " around texts that hold a delimiter, a quote or a line break, and in every line as many values as '
        "the header has names."
    )


def _is_compressed(file: str) -> bool:
    return file.lower().endswith(".gz")


def _header(file: str, delimiter: str, name: str) -> tuple[str, ...]:
    header: list[str] | None = None
    try:
        opened: Any = gzip.open if _is_compressed(file) else open
        with opened(file, "rt", encoding="utf-8-sig", newline="") as lines:
            header = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error):
        pass
    if header is None:
        raise csv_not_readable(name)
    # Names are compared without regard to case by what reads the files.
    if not header or not all(header) or len({column.casefold() for column in header}) < len(header):
        raise ConfigError(
            f"source {name!r}: the first line of a CSV file must name every column, each name once (capitals and small "
            "letters are not told apart)."
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
