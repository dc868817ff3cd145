"""What a job reads from: the protocol of a source, its columns, and the files that a pattern finds.

What an engine says when it cannot read is never passed on: it can quote values. All engines say the same
instead, so that a job's errors do not depend on its engine.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pkdp_pipeline.engines.rows import quoted
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.expectations import read_expectations
from pkdp_pipeline.jobs.sources.relations import RelationSource, connect
from pkdp_pipeline.model.predicate import twins
from pkdp_pipeline.model.query import from_query

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    from pkdp_pipeline.jobs.job import Job, PeriodTable


Kind = Literal["date", "timestamp", "instant", "text", "number", "real", "boolean", "other"]
"""What a column holds, as far as a job has to know. An instant is a timestamp in a time zone."""

DAYS = ("date", "timestamp", "instant")
"""The kinds that lie on days."""

HOLDS: Mapping[Kind, str] = {
    "text": "text",
    "number": "numbers",
    "real": "floating-point numbers",
    "boolean": "booleans",
    "date": "dates",
    "timestamp": "timestamps without a time zone",
    "instant": "timestamps in a time zone",
    "other": "values of a type that has no days",
}


class Source(Protocol):
    """Rows by day, open for reading until `close`."""

    @property
    def columns(self) -> Mapping[str, Kind]:
        """Column names and what they hold."""
        ...

    def day(self, period: PeriodTable, day: date) -> Any:
        """Return the rows of one day as a frame of the engine, unread; usable while the source is open.

        Raises
        ------
        ConfigError
            If the period column does not hold days, or the time zone does not fit what it holds.
        """
        ...

    def counts(self, period: PeriodTable, day: date, unit: Sequence[str]) -> tuple[int, int]:
        """Return how many rows one day has, and how many of them lack a value of the unit; NaN is no value.

        Raises
        ------
        ConfigError
            As `day` does, and if the data cannot be read to their end.
        """
        ...

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """Return the latest day in a column over the whole source, None where it holds none.

        Days of instants are cut in the period's time zone, or in UTC where it has none. Days outside the years 1 to
        9999, such as infinity, do not count.

        Raises
        ------
        ConfigError
            If there is no such column, it does not hold days, or the data cannot be read to their end.
        """
        ...

    def pandas(self, period: PeriodTable, day: date, columns: Sequence[str]) -> pd.DataFrame:
        """Return the rows of one day with these columns, under dtypes that do not depend on the rows.

        Raises
        ------
        ConfigError
            As `counts` does.
        """
        ...

    def interrupt(self) -> None:
        """Make a query that another thread waits for fail, where the engine can."""
        ...

    def close(self) -> None:
        """Close the source; frames made from it can no longer be read."""
        ...


def period_kind(columns: Mapping[str, Kind], period: PeriodTable) -> Kind:
    """Return what the period column holds: "date", "timestamp" or "instant".

    Raises
    ------
    ConfigError
        If there is no such column, it holds something else, or the time zone does not fit.
    """
    kind = newest_kind(columns, period.column, "period.column")
    if kind == "instant" and period.time_zone is None:
        raise ConfigError(
            f"period column {period.column!r} holds instants: say where a day begins, for example "
            f"period = {{ column = '{period.column}', time_zone = 'UTC' }}."
        )
    if kind == "timestamp" and period.time_zone is not None:
        raise ConfigError(
            f"period column {period.column!r} holds {HOLDS[kind]}: its days are taken as written; remove time_zone, or "
            "store dates or instants."
        )
    return kind


def newest_kind(columns: Mapping[str, Kind], column: str, key: str = "checks.fresh") -> Kind:
    """Return what a column of days holds: "date", "timestamp" or "instant"; `key` is where the job names it.

    Raises
    ------
    ConfigError
        If there is no such column, or it holds something else.
    """
    if column not in columns:
        raise no_such_column({column: key}, columns)
    if columns[column] not in DAYS:
        raise ConfigError(
            f"column {column!r} ({key}) holds {HOLDS[columns[column]]}, not dates; store it as DATE or as a timestamp."
        )
    return columns[column]


def no_such_column(missing: Mapping[str, str], columns: Collection[str]) -> ConfigError:
    """Return what to say of columns that a source does not have: which key names each, and what may be meant."""
    told = []
    for column, key in missing.items():
        alike = [known for known in columns if known.casefold() == column.casefold()]
        close = alike or difflib.get_close_matches(column, columns, n=1)
        told.append(f"{column!r} ({key}{f', did you mean {close[0]!r}?' if close else ''})")
    named = f"column{'' if len(told) == 1 else 's'} {', '.join(told)}"
    return ConfigError(f"the source has no {named}; correct the job file or the source.")


def check_unique(columns: Sequence[str], source: str = "the source") -> None:
    """Raise `ConfigError` where two columns have one name, letter case aside."""
    if (found := twins(columns)) is not None:
        raise ConfigError(
            f"{source} has columns {found[0]!r} and {found[1]!r}: capitals and small letters are not told apart "
            "everywhere; rename one."
        )


def declared_columns(job: Job) -> Iterator[tuple[str, str]]:
    """Yield each column that the job names outside of predicates and checks, after the key that names it."""
    yield "period.column", job.period.column
    named = [("unit", job.unit), ("order_by", job.order_by)]
    for release in job.release:
        named += [(f"by of release {release.name!r}", release.by)]
        named += [(f"order_by of release {release.name!r}", release.order_by)]
    for key, columns in named:
        for column in columns or ():
            yield key, column


def check_named(job: Job, columns: Collection[str]) -> None:
    """Raise `ConfigError` where the job names a column outside of predicates that its source does not have.

    What ``[checks]`` names is left to the input check, by which it has been made a rule about the data.
    """
    missing: dict[str, str] = {}
    for key, column in declared_columns(job):
        if column not in columns and column not in job.checks.columns:
            missing.setdefault(column, key)
    if missing:
        raise no_such_column(missing, columns)


def needed_columns(job: Job, columns: Collection[str]) -> tuple[str, ...]:
    """Return those of a source's columns that the job names, its predicates included."""
    named = {column for _, column in declared_columns(job)}.union(job.checks.columns)
    named |= {column for expectation in read_expectations(job.checks) for column in expectation.columns}
    named |= set() if job.checks.fresh is None else {job.checks.fresh.column}
    for predicate in (from_query(release.where) for release in job.release if release.where is not None):
        named |= set() if predicate is None else predicate.columns
    return tuple(column for column in columns if column in named)


_DIGITS = 38


def open_parquet(job: Job, patterns: Sequence[str]) -> RelationSource:
    """Return Parquet files, open for reading: one relation of the columns on which they agree.

    Raises
    ------
    ConfigError
        If they do not exist, are no Parquet files, or disagree on what the job needs.
    """
    import duckdb

    name, files = shown(patterns), files_of(patterns)
    check_parquet_columns(files, job)
    connection = connect()
    try:
        # A year of days is read from one connection: what the files say about themselves is read once.
        connection.execute("SET parquet_metadata_cache = true")
        columns = agreed_parquet_columns(connection, files, job)
        with suppress(duckdb.Error):
            relation = _read(connection, files).project(", ".join(map(quoted, columns)))
            return RelationSource(connection, relation, no_parquet(name, "to its end "))
        raise no_parquet(name)
    except BaseException:
        connection.close()
        raise


def files_of(patterns: Sequence[str], *, folders: bool = False) -> tuple[str, ...]:
    """Return the files that paths and patterns stand for, each once, by name.

    Parameters
    ----------
    patterns : sequence of str
        Absolute paths. What is the path of a file is no pattern.
    folders : bool
        Whether a path may be a folder.

    Raises
    ------
    ConfigError
        If one of them stands for no file, or a file may not be read.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        path = _exact(pattern)
        if Path(path).is_file() or (folders and Path(path).is_dir()):
            found[path] = None
            continue
        matches = sorted(one for one in glob.glob(pattern, recursive=True) if Path(one).is_file())
        if not matches:
            is_pattern = glob.has_magic(re.sub(r"\[[*?\[]\]", "", pattern))
            problem = "matches no file" if is_pattern else "does not exist or is not a file"
            raise ConfigError(f"source {path!r} {problem}; correct it in the job file.")
        found.update(dict.fromkeys(matches))
    for path in found:
        if not os.access(path, os.R_OK):
            raise ConfigError(f"source {path!r} may not be read by this user: check the permissions of the file.")
    return tuple(found)


def _exact(pattern: str) -> str:
    """Return a path as it is written without the signs by which a pattern names itself."""
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)


def escaped(file: str) -> str:
    """Return the pattern that stands for one file in DuckDB."""
    return re.sub(r"([*?\[])", r"[\1]", file)


def shown(patterns: Sequence[str]) -> str:
    """Return how a source is named in messages."""
    return ", ".join(map(_exact, patterns))


def agreed_columns(schemas: Mapping[str, Mapping[str, str]], job: Job, source: str) -> tuple[str, ...]:
    """Return the columns that all files have under one type, in the order of the first file.

    `schemas` holds for each file its column names and their types.

    Raises
    ------
    ConfigError
        Naming a column that the job needs and some files lack, or hold under another type, and one of these files.
    """
    first = next(iter(schemas.values()))
    somewhere = list(dict.fromkeys(column for schema in schemas.values() for column in schema))
    for column in needed_columns(job, somewhere):
        types: dict[str | None, str] = {}
        for file, schema in schemas.items():
            types.setdefault(schema.get(column), os.path.basename(file))
        if len(types) > 1:
            listed = ", ".join(f"{kind or 'missing'} in {name!r}" for kind, name in types.items())
            raise ConfigError(
                f"the files of source {source!r} must agree on their columns: {column!r} is {listed}; store it in all "
                "of them, under one type."
            )
    return tuple(column for column, kind in first.items() if all(s.get(column) == kind for s in schemas.values()))


def check_parquet_columns(files: Sequence[str], job: Job) -> None:
    """Refuse files whose columns an engine would read as others, or as other values.

    Raises
    ------
    ConfigError
        If two columns have one name, letter case aside, or one that the job needs holds decimals of more than 38
        digits, which DuckDB reads as floating-point numbers: several would be one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files:
        schema = pa.schema([])
        with suppress(pa.ArrowException, OSError):  # what cannot be read, the engine says
            schema = pq.read_schema(file)
        check_unique(schema.names, f"source {file!r}")
        for column in needed_columns(job, schema.names):
            kind = schema.field(column).type
            if pa.types.is_decimal(kind) and kind.precision > _DIGITS:
                raise ConfigError(
                    f"column {column!r} of source {file!r} holds decimals of up to {kind.precision} digits, and more "
                    f"than {_DIGITS} are not told apart; store it as text, or as decimals of at most {_DIGITS} digits."
                )


def agreed_parquet_columns(connection: duckdb.DuckDBPyConnection, files: Sequence[str], job: Job) -> tuple[str, ...]:
    """Return the columns that all Parquet files have under one type.

    Raises
    ------
    ConfigError
        If one is no Parquet file, or they do not agree on a column that the job needs.
    """
    import duckdb

    schemas: dict[str, dict[str, str]] = {}
    for file in files:
        with suppress(duckdb.Error):
            relation = _read(connection, [file])
            schemas[file] = dict(zip(relation.columns, map(str, relation.types), strict=True))
        if file not in schemas:
            raise no_parquet(file)
    return agreed_columns(schemas, job, shown(files))


def _read(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> duckdb.DuckDBPyRelation:
    # The names of folders say nothing about columns.
    return connection.read_parquet(list(map(escaped, files)), hive_partitioning=False)


def no_parquet(path: str, how_far: str = "") -> ConfigError:
    """Return what to say of data that are no Parquet, or break off."""
    return ConfigError(f"source {path!r} cannot be read {how_far}as a Parquet file.")
