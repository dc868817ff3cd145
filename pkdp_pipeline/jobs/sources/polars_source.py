"""PolarsSource: a Parquet file scanned lazily by Polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ConfigError
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
    import polars as pl

__all__ = ["PolarsSource", "open_source"]


def open_source(path: str) -> PolarsSource:
    """Return the Parquet file at `path`, open for reading."""
    return PolarsSource(path)


class PolarsSource:
    """A Parquet file, open for reading until `close`; see `Source`.

    Parameters
    ----------
    path : str

    Raises
    ------
    ConfigError
        If Polars is not installed, or the file does not exist or is no Parquet file.
    """

    def __init__(self, path: str) -> None:
        try:
            import polars as pl
        except ImportError:
            raise ConfigError(
                'engine = "polars" needs Polars: pip install "pkdp-pipeline[polars]", or choose another engine.'
            ) from None
        check_exists(path)
        self._path = path
        self._failures = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
        try:
            # The path is one file's name, not a pattern, and says nothing about columns.
            self._frame = pl.scan_parquet(path, glob=False, hive_partitioning=False)
            schema = self._frame.collect_schema()
        except self._failures:
            raise not_readable(path) from None
        self._columns = {name: _kind(dtype) for name, dtype in schema.items()}

    def close(self) -> None:
        """See `Source.close`; a lazy frame holds nothing open."""

    @property
    def columns(self) -> Mapping[str, Kind]:
        """See `Source.columns`."""
        return self._columns

    def day(self, period: PeriodTable, day: date) -> pl.LazyFrame:
        """See `Source.day`."""
        import polars as pl

        kind = period_kind(self._columns, period)
        column = _column(period.column)
        if kind == "instant":
            column = column.dt.convert_time_zone(str(period.time_zone))
        if kind != "date":
            column = column.dt.date()
        frame = self._frame.filter(column == pl.lit(day))
        try:
            frame.collect_schema()
        except self._failures:
            raise not_selectable(period) from None
        return frame

    def counts(self, period: PeriodTable, day: date, rows: Sequence[Rows]) -> list[int]:
        """See `Source.counts`."""
        frame = self.day(period, day)
        counted = [self._matching(one).sum().alias(str(position)) for position, one in enumerate(rows)]
        try:
            return [int(count) for count in frame.select(counted).collect().row(0)]
        except self._failures:
            raise not_readable_to_its_end(self._path) from None

    def _matching(self, rows: Rows) -> pl.Expr:
        import polars as pl

        matching = pl.repeat(True, pl.len())
        for name in rows.present:
            column = _column(name)
            matching &= column.is_not_null()
            if self._columns[name] == "real":
                matching &= column.is_not_nan().fill_null(False)
        return ~matching if rows.negated else matching


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
