"""PolarsSource: Parquet files scanned lazily by Polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job, PeriodTable
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.files import files_of, shown
from pkdp_pipeline.jobs.sources.pandas_rows import pandas_rows
from pkdp_pipeline.jobs.sources.parquet_files import agreed_parquet_columns, check_parquet_columns
from pkdp_pipeline.jobs.sources.relation_source import connect
from pkdp_pipeline.jobs.sources.source import (
    Kind,
    Rows,
    day_kind,
    not_readable,
    not_readable_to_its_end,
    not_selectable,
    period_kind,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["PolarsSource", "open_source"]


def open_source(job: Job) -> PolarsSource:
    """Return the job's Parquet files, open for reading."""
    return PolarsSource(job)


class PolarsSource:
    """Parquet files, open for reading until `close`; see `Source`.

    Parameters
    ----------
    job : Job

    Raises
    ------
    ConfigError
        If Polars is not installed, or the files do not exist, are no Parquet files, or disagree on what the job needs.
    """

    def __init__(self, job: Job) -> None:
        try:
            import polars as pl
        except ImportError:
            raise ConfigError(
                'engine = "polars" needs Polars: pip install "pkdp-pipeline[polars]", or choose another engine.'
            ) from None
        assert isinstance(job.source, FileSourceTable)
        self._path = shown(job.source.files)
        files = files_of(job.source.files)
        check_parquet_columns(files, job)
        self._failures = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
        schema: Mapping[str, Any] | None = None
        agreed: Sequence[str] | None = None
        if len(files) > 1:
            with connect() as connection:
                agreed = agreed_parquet_columns(connection, files, job)
        try:
            # A path is one file's name, not a pattern, and says nothing about columns.
            frames = [pl.scan_parquet(file, glob=False, hive_partitioning=False) for file in files]
            if agreed is not None:
                frames = [frame.select(map(_column, agreed)) for frame in frames]
            # Relaxed: where DuckDB sees text in all files, some may hold it as categories.
            self._frame = pl.concat(frames, how="vertical_relaxed")
            schema = self._frame.collect_schema()
        except self._failures:
            pass
        if schema is None:
            raise not_readable(self._path)
        self._columns = {name: _kind(dtype) for name, dtype in schema.items()}

    def close(self) -> None:
        """See `Source.close`; a lazy frame holds nothing open."""

    def interrupt(self) -> None:
        """See `Source.interrupt`; a query of Polars ends by itself."""

    @property
    def columns(self) -> Mapping[str, Kind]:
        """See `Source.columns`."""
        return self._columns

    def day(self, period: PeriodTable, day: date) -> pl.LazyFrame:
        """See `Source.day`."""
        import polars as pl

        kind = period_kind(self._columns, period)
        frame = self._frame.filter(_day(period.column, kind, period) == pl.lit(day))
        try:
            frame.collect_schema()
            return frame
        except self._failures:
            pass
        raise not_selectable(period)

    def counts(self, period: PeriodTable, day: date, rows: Sequence[Rows]) -> list[int]:
        """See `Source.counts`."""
        frame = self.day(period, day)
        counted = [self._matching(one).sum().alias(str(position)) for position, one in enumerate(rows)]
        try:
            return [int(count) for count in frame.select(counted).collect().row(0)]
        except self._failures:
            pass
        raise not_readable_to_its_end(self._path)

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """See `Source.newest`."""
        day = _day(column, day_kind(self._columns, column), period)
        try:
            found: date | None = (
                self._frame.select(day.filter(day.dt.year().is_between(1, 9999)).max()).collect().item()
            )
            return found
        except self._failures:
            pass
        raise not_readable_to_its_end(self._path)

    def pandas(self, period: PeriodTable, day: date, columns: Sequence[str]) -> pd.DataFrame:
        """See `Source.pandas`."""
        frame = self.day(period, day)
        try:
            return pandas_rows(frame.select(map(_column, columns)).collect().to_arrow())
        except self._failures:
            pass
        raise not_readable_to_its_end(self._path)

    def _matching(self, rows: Rows) -> pl.Expr:
        import polars as pl

        matching = pl.repeat(True, pl.len())
        for name in rows.present:
            column = _column(name)
            matching &= column.is_not_null()
            if self._columns[name] == "real":
                matching &= column.is_not_nan().fill_null(False)
        return ~matching if rows.negated else matching


def _day(name: str, kind: Kind, period: PeriodTable) -> pl.Expr:
    """Return the day of a column that holds dates, timestamps or instants."""
    column = _column(name)
    if kind == "instant":
        column = column.dt.convert_time_zone(period.time_zone or "UTC")
    return column if kind == "date" else column.dt.date()


def _column(name: str) -> pl.Expr:
    """Return a column by its name; `polars.col` would read some names as patterns."""
    from polars import selectors

    return selectors.by_name(name).as_expr()


def _kind(dtype: Any) -> Kind:
    import polars as pl

    if dtype == pl.Date:
        return "date"
    if dtype == pl.Datetime:
        return "timestamp" if dtype.time_zone is None else "instant"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    if dtype == pl.Boolean:
        return "boolean"
    if dtype.is_float():
        return "real"
    return "number" if dtype.is_numeric() else "other"
