"""The SQL that selects one day and finds the newest; DuckDB and PostgreSQL read it alike."""

from __future__ import annotations

from datetime import date

from pkdp_pipeline.engines.duckdb.statements import literal
from pkdp_pipeline.jobs.job import PeriodTable
from pkdp_pipeline.jobs.sources.source import Kind

__all__ = ["newest_day", "on_day"]

#: No zone is further from UTC than a day, and a day has at most two parts that are a day apart.
_MARGIN = 2


def on_day(column: str, kind: Kind, period: PeriodTable, day: date, *, bounds: bool = True) -> str:
    """Return SQL for whether a quoted period column lies on a day.

    With `bounds` it says the same once more, roughly, in a way that indexes and the statistics of files answer.
    """
    condition = f"CAST({_clock(column, kind, period)} AS DATE) = DATE '{day.isoformat()}'"
    if kind == "date" or not bounds:
        return condition
    first, last = max(day.toordinal() - _MARGIN, 1), min(day.toordinal() + _MARGIN, date.max.toordinal())
    name, zone = ("TIMESTAMPTZ", "+00") if kind == "instant" else ("TIMESTAMP", "")
    begin, end = (f"{name} '{date.fromordinal(one).isoformat()} 00:00:00{zone}'" for one in (first, last))
    return f"{column} >= {begin} AND {column} <= {end} AND {condition}"


def newest_day(column: str, kind: Kind, period: PeriodTable) -> str:
    """Return SQL for the latest day of a quoted column that has a name in Python."""
    day = f"CAST({_clock(column, kind, period)} AS DATE)"
    return f"max(CASE WHEN {day} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {day} END)"


def _clock(column: str, kind: Kind, period: PeriodTable) -> str:
    return f"timezone({literal(period.time_zone or 'UTC')}, {column})" if kind == "instant" else column
