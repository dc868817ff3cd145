"""What a job reads from: the protocol of a source, and the rules and complaints that all sources share.

What an engine says when it cannot read is never passed on: it can quote values. All engines say the same
instead, so that a job's errors do not depend on its engine.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import PeriodTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Kind",
    "Rows",
    "Source",
    "day_kind",
    "no_such_column",
    "not_readable",
    "not_readable_to_its_end",
    "not_selectable",
    "period_kind",
]

Kind = Literal["date", "timestamp", "instant", "text", "number", "real", "boolean", "other"]
"""What a column holds, as far as a job has to know. An instant is a timestamp in a time zone."""

_WORDS: Mapping[Kind, str] = {
    "date": "dates",
    "timestamp": "timestamps",
    "instant": "instants",
    "text": "text",
    "number": "numbers",
    "real": "numbers",
    "boolean": "booleans",
    "other": "values of a type that has no days",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows that have a value in all these columns; with `negated`, the other rows. NaN is no value."""

    present: tuple[str, ...] = ()
    negated: bool = False


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

    def counts(self, period: PeriodTable, day: date, rows: Sequence[Rows]) -> list[int]:
        """Return how many rows of one day there are of each sort, in one aggregate query.

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
    if period.column not in columns:
        raise no_such_column({period.column: "period.column"}, columns)
    kind = columns[period.column]
    if kind not in ("date", "timestamp", "instant"):
        raise ConfigError(
            f"period column {period.column!r} holds {_WORDS[kind]}, not dates; store it as DATE or as a timestamp."
        )
    if kind == "instant" and period.time_zone is None:
        raise ConfigError(
            f"period column {period.column!r} holds instants: say where a day begins, for example "
            f"period = {{ column = '{period.column}', time_zone = 'UTC' }}."
        )
    if kind == "timestamp" and period.time_zone is not None:
        raise ConfigError(
            f"period column {period.column!r} holds {_WORDS[kind]} without a time zone: its days are taken as "
            "written; remove time_zone, or store dates or instants."
        )
    return kind


def day_kind(columns: Mapping[str, Kind], column: str) -> Kind:
    """Return what a column holds whose newest day is asked for: "date", "timestamp" or "instant".

    Raises
    ------
    ConfigError
        If there is no such column, or it holds something else.
    """
    if column not in columns:
        raise no_such_column({column: "checks.fresh"}, columns)
    if columns[column] not in ("date", "timestamp", "instant"):
        raise ConfigError(f"column {column!r} holds {_WORDS[columns[column]]}, not dates: it has no newest day.")
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


def not_readable(path: str) -> ConfigError:
    """Return what to say of data that are no Parquet."""
    return ConfigError(f"source {path!r} cannot be read as a Parquet file.")


def not_readable_to_its_end(path: str) -> ConfigError:
    """Return what to say of data that break off."""
    return ConfigError(f"source {path!r} cannot be read to its end as a Parquet file.")


def not_selectable(period: PeriodTable) -> ConfigError:
    """Return what to say where the rows of a day cannot be asked for."""
    return ConfigError(f"the rows of one day cannot be selected by {period.column!r}.")
