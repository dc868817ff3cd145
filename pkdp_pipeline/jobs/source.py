"""ParquetSource: the rows of one day of a Parquet file, read through DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import PeriodTable

if TYPE_CHECKING:
    import duckdb

__all__ = ["ParquetSource", "quoted"]


def quoted(column: str) -> str:
    """Return a column name as a SQL identifier."""
    return '"' + column.replace('"', '""') + '"'


class ParquetSource:
    """A Parquet file, open for reading until `close`.

    Engine errors are not passed on: they can quote values.

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

        if not Path(path).is_file():
            raise ConfigError(f"source {path!r} does not exist or is not a file; correct the path in the job file.")
        self._path = path
        # Whatever this file holds can be read without an extension fetched from elsewhere.
        self._connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        try:
            self._relation = self._connection.read_parquet(path)
        except duckdb.Error:
            self._connection.close()
            raise ConfigError(f"source {path!r} cannot be read as a Parquet file.") from None
        self._types = dict(zip(self._relation.columns, map(str, self._relation.types), strict=True))

    def close(self) -> None:
        """Close the file; relations made from it can no longer be read."""
        self._connection.close()

    @property
    def columns(self) -> Mapping[str, str]:
        """Column names and their SQL types."""
        return self._types

    def day(self, period: PeriodTable, day: date) -> duckdb.DuckDBPyRelation:
        """Return the rows of one day, unread; usable while the source is open.

        Raises
        ------
        ConfigError
            If the period column does not hold days, or the time zone does not fit what it holds.
        """
        import duckdb

        column = quoted(period.column)
        kind = self._types[period.column]
        zoned = kind == "TIMESTAMP WITH TIME ZONE"
        if not zoned and kind != "DATE" and not kind.startswith("TIMESTAMP"):
            raise ConfigError(
                f"period column {period.column!r} holds {kind}, not dates; store it as DATE or as a timestamp."
            )
        if zoned and period.time_zone is None:
            raise ConfigError(
                f"period column {period.column!r} holds instants: say where a day begins, for example "
                f"period = {{ column = '{period.column}', time_zone = 'UTC' }}."
            )
        if not zoned and period.time_zone is not None:
            raise ConfigError(
                f"period column {period.column!r} holds {kind}, which is no instant: its days are taken as "
                "written; remove time_zone."
            )
        local = f"timezone('{period.time_zone}', {column})" if zoned else column
        try:
            return self._relation.filter(f"CAST({local} AS DATE) = DATE '{day.isoformat()}'")
        except duckdb.Error:
            raise ConfigError(f"the rows of one day cannot be selected by {period.column!r}.") from None
