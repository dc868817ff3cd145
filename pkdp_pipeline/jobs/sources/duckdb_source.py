"""DuckDBSource: a Parquet file read through an embedded DuckDB of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from pkdp_pipeline.engines.duckdb.relation_types import is_number
from pkdp_pipeline.jobs.job import PeriodTable
from pkdp_pipeline.jobs.sources.source import (
    Kind,
    Rows,
    check_exists,
    not_readable,
    not_readable_to_its_end,
    not_selectable,
    period_kind,
)

if TYPE_CHECKING:
    import duckdb

__all__ = ["DuckDBSource", "open_source"]

_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL\(.*\)")


def open_source(path: str) -> DuckDBSource:
    """Return the Parquet file at `path`, open for reading."""
    return DuckDBSource(path)


class DuckDBSource:
    """A Parquet file, open for reading until `close`; see `Source`.

    Parameters
    ----------
    path : str

    Raises
    ------
    ConfigError
        If the file does not exist or is no Parquet file.
    """

    def __init__(self, path: str) -> None:
        import duckdb

        check_exists(path)
        self._path = path
        # Whatever this file holds can be read without an extension fetched from elsewhere.
        self._connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        try:
            # The path is one file's name, not a pattern.
            self._relation = self._connection.read_parquet(re.sub(r"([*?\[])", r"[\1]", path))
        except duckdb.Error:
            self._connection.close()
            raise not_readable(path) from None
        self._columns = {
            name: _kind(str(kind)) for name, kind in zip(self._relation.columns, self._relation.types, strict=True)
        }

    def close(self) -> None:
        """See `Source.close`."""
        self._connection.close()

    @property
    def columns(self) -> Mapping[str, Kind]:
        """See `Source.columns`."""
        return self._columns

    def day(self, period: PeriodTable, day: date) -> duckdb.DuckDBPyRelation:
        """See `Source.day`."""
        import duckdb

        column = _quoted(period.column)
        if period_kind(self._columns, period) == "instant":
            column = f"timezone('{period.time_zone}', {column})"
        try:
            return self._relation.filter(f"CAST({column} AS DATE) = DATE '{day.isoformat()}'")
        except duckdb.Error:
            raise not_selectable(period) from None

    def counts(self, period: PeriodTable, day: date, rows: Sequence[Rows]) -> list[int]:
        """See `Source.counts`."""
        import duckdb

        relation = self.day(period, day)
        try:
            return list(relation.aggregate(", ".join(map(self._counted, rows))).fetchall()[0])
        except duckdb.Error:
            raise not_readable_to_its_end(self._path) from None

    def _counted(self, rows: Rows) -> str:
        condition = " AND ".join(["TRUE", *map(self._present, rows.present)])
        return f"count(*) FILTER (WHERE {f'NOT ({condition})' if rows.negated else condition})"

    def _present(self, column: str) -> str:
        return is_number(_quoted(column)) if self._columns[column] == "real" else f"{_quoted(column)} IS NOT NULL"


def _quoted(column: str) -> str:
    """Return a column name as a SQL identifier."""
    return '"' + column.replace('"', '""') + '"'


def _kind(sql_type: str) -> Kind:
    if sql_type.startswith("TIMESTAMP"):
        return "instant" if sql_type.endswith("WITH TIME ZONE") else "timestamp"
    if sql_type == "DATE":
        return "date"
    if sql_type in ("FLOAT", "DOUBLE"):
        return "real"
    if sql_type == "BOOLEAN":
        return "boolean"
    if sql_type == "VARCHAR" or sql_type.startswith("ENUM"):
        return "text"
    return "number" if _NUMBER.fullmatch(sql_type) else "other"
