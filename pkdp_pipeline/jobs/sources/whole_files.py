"""A whole file as one table, for a release of its own: Parquet as it is, CSV as a job reads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.csv_files import CsvSource
from pkdp_pipeline.jobs.sources.files import check_parquet_columns, files_of, no_parquet
from pkdp_pipeline.jobs.sources.relations import connect, kind_of
from pkdp_pipeline.jobs.sources.source import Kind

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFile:
    """One file, and how it is read.

    `table`: of one Parquet, CSV or Excel file. `columns`: its columns and what they hold; no row was read to find out.
    """

    table: FileSourceTable
    columns: Mapping[str, Kind]
    _path: str = field(repr=False)

    @classmethod
    def of(cls, path: Path, **keys: Any) -> WholeFile:
        """Return a file by its path and the keys of a job's `source`; no row is read, but of a workbook.

        Raises `ArgumentError` if a key is not one of a file, or has a value that it cannot have; `ConfigError` if the
        file cannot be read, or has no such columns.
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
        if table.format != "parquet":
            with closing(CsvSource(table, tuple)) as source:
                return cls(table=table, columns=source.columns, _path=file)
        check_parquet_columns([file], lambda names: (), ())
        relation = _parquet(file)
        kinds = map(kind_of, map(str, relation.types))
        return cls(table=table, columns=dict(zip(relation.columns, kinds, strict=True)), _path=file)

    def first_texts(self, rows: int = 100) -> Mapping[str, list[str]]:
        """Return what is written in the first rows of each column; of Parquet, whose types say it, nothing.

        Raises `ConfigError` if the file cannot be read; the message holds no value.
        """
        if self.table.format == "parquet":
            return {name: [] for name in self.columns}
        with closing(CsvSource(self.table, tuple)) as source:
            return source.first_texts(rows)

    def rows(self, named: Collection[str] = (), unit: Collection[str] = ()) -> Any:
        """Return all rows: a DuckDB relation of Parquet, an Arrow table of others.

        Raises `ConfigError` if the file cannot be read to its end, or one of the columns that are `named`, those of
        `unit` among them, is not read as it is; the message holds no value.
        """
        if self.table.format != "parquet":
            with closing(CsvSource(self.table, tuple)) as source:
                return source.whole()
        check_parquet_columns([self._path], lambda names: [name for name in names if name in {*named, *unit}], unit)
        return _parquet(self._path)


def _parquet(file: str) -> duckdb.DuckDBPyRelation:
    import duckdb

    with suppress(duckdb.Error):  # whose words could quote the file
        return connect().read_parquet(file, hive_partitioning=False)
    raise no_parquet(file)
