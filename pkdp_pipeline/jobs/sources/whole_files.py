"""A whole file as one table, for a release of its own: Parquet as it is, CSV as text under declared types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.csv_forms import no_csv, read_header
from pkdp_pipeline.jobs.sources.files import files_of, no_parquet
from pkdp_pipeline.jobs.sources.relations import connect, kind_of
from pkdp_pipeline.jobs.sources.source import Kind, check_unique, no_such_column

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFile:
    """One file, and how it is read.

    Parameters
    ----------
    table : FileSourceTable
        Of one Parquet or CSV file.
    columns : mapping of str to Kind
        Its columns and what they hold; no row was read to find out.
    """

    table: FileSourceTable
    columns: Mapping[str, Kind]
    _path: str = field(repr=False)

    @classmethod
    def of(cls, path: Path, **keys: Any) -> WholeFile:
        """Return a file by its path and the keys of a job's `source`; only its schema or first line is read.

        Raises
        ------
        ArgumentError
            If a key is not one of a file, or has a value that it cannot have.
        ConfigError
            If the file cannot be read, or has no such columns.
        """
        from pydantic import ValidationError

        from pkdp_pipeline.releases.complaints import complaints

        said = ""
        try:
            table = FileSourceTable.model_validate({"files": str(path.absolute()), **keys})
            table.check_engine("duckdb")
        except ValidationError as error:
            said = "; ".join(complaints(error, tuple(FileSourceTable.model_fields)))
        except ValueError as error:
            said = str(error)
        if said:
            raise ArgumentError(f"the file {path.name!r} cannot be read like this: {said}")
        (file,) = files_of([str(path.absolute())])
        columns = _of_csv(file, table) if table.format == "csv" else _of_parquet(file)
        check_unique(list(columns), f"source {file!r}")
        return cls(table=table, columns=columns, _path=file)

    def rows(self) -> Any:
        """Return all rows: a DuckDB relation of Parquet, an Arrow table of CSV.

        Raises
        ------
        ConfigError
            If the file cannot be read to its end; the message holds no value.
        """
        if self.table.format == "csv":
            return _csv_rows(self._path, self.table, self.columns)
        import duckdb

        try:
            return connect().read_parquet(self._path, hive_partitioning=False)
        except duckdb.Error:
            pass
        raise no_parquet(self._path)


def _of_parquet(file: str) -> dict[str, Kind]:
    import duckdb

    try:
        with connect() as connection:
            relation = connection.read_parquet(file, hive_partitioning=False)
            return dict(zip(relation.columns, map(kind_of, map(str, relation.types)), strict=True))
    except duckdb.Error:
        pass
    raise no_parquet(file)


def _of_csv(file: str, table: FileSourceTable) -> dict[str, Kind]:
    header = read_header(file, table)
    if undefined := [column for column in table.types if column not in header]:
        raise no_such_column(dict.fromkeys(undefined, "types"), header)
    return {column: table.types.get(column, "text") for column in header}


def _csv_rows(file: str, table: FileSourceTable, columns: Mapping[str, Kind]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    kinds: Mapping[str, Any] = {
        "text": pa.string(),
        "number": pa.int64(),
        "real": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.timestamp("s"),
        "timestamp": pa.timestamp("us"),
        "instant": pa.timestamp("us", "UTC"),
    }
    days = table.date_format or "%Y-%m-%d"
    parsers = [days] if table.date_format else [csv.ISO8601]
    parsers += [f"{days}{mark}%H:%M{seconds}" for mark in " T" for seconds in (":%S", "")] if table.date_format else []
    convert = csv.ConvertOptions(
        column_types={column: kinds[kind] for column, kind in columns.items()},
        null_values=list(table.null),
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
        decimal_point=table.decimal,
        timestamp_parsers=parsers,
        true_values=["true", "True", "TRUE"],
        false_values=["false", "False", "FALSE"],
    )
    parse = csv.ParseOptions(delimiter=table.delimiter, newlines_in_values=True)
    problem: ConfigError | None = None
    try:
        read = csv.read_csv(file, csv.ReadOptions(encoding=table.encoding), parse, convert)
        for place, (column, kind) in enumerate(columns.items()):
            if kind == "date":
                read = read.set_column(place, column, read.column(column).cast(pa.date32()))
        return read
    except pa.ArrowException as error:  # whose words can quote the data
        mistyped = "CSV conversion error" in str(error) or "cast" in str(error)
        problem = no_csv(file, " A column also must hold what its type says." if mistyped else "")
    except (OSError, UnicodeError):
        problem = no_csv(file)
    raise problem
