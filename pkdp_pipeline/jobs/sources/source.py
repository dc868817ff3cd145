"""The source of a job: its protocol, the columns that a job needs, and the words that all sources share.

An engine's own words when it cannot read are never passed on: they can quote values. All engines say the same
instead, so that a job's errors do not depend on its engine.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pkdp_pipeline.errors import ConfigError, PkdpError
from pkdp_pipeline.model.columns import twins

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.jobs.tables import PeriodTable

Answer = TypeVar("Answer")

Kind = Literal["date", "timestamp", "instant", "text", "number", "real", "boolean", "other"]
"""The kind of a column, as far as a job has to know. An instant is a timestamp in a time zone."""

DAYS: tuple[Kind, ...] = ("date", "timestamp", "instant")
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


class Source:
    """Rows of a job's data, open for reading until `close`. A day stands for the period that it lies in.

    A source of one's own has `columns` and `rows`. All else are questions about these rows: selected here, and by
    `DuckDBSource` of what DuckDB counts.
    """

    columns: Mapping[str, Kind]
    """Column names and what they hold."""

    broken: Exception = ConfigError("the source cannot be read to its end.")
    """The error where the rows cannot be read to their end."""

    def rows(self, period: PeriodTable, first: date, last: date, columns: Collection[str] = ()) -> Any:
        """Return the rows of the days from `first` to `last` as a frame of the engine, unread; usable while it is open.

        It has the columns that the job needs, and these. Raises `ConfigError` if the period column does not hold days,
        or the time zone does not fit what it holds.
        """
        raise NotImplementedError

    def together(self, period: PeriodTable, days: Sequence[date]) -> None:
        """Take note that these periods in a row, by their first days, are going to be read: all at once, where it can.

        Each is then described as if it were read alone; nothing is read yet.
        """

    def day(self, period: PeriodTable, day: date) -> Any:
        """Return the `rows` of a period."""
        return self.rows(period, *period.span(day))

    def counts(self, period: PeriodTable, day: date, unit: Sequence[str]) -> tuple[int, int]:
        """Return how many rows a period has, and how many of them lack a value of the unit; NaN is no value.

        Raises `ConfigError` as `rows` does, and if the data cannot be read to their end.
        """
        import narwhals.stable.v2 as nw

        from pkdp_pipeline.engines.narwhals_columns import comparable, opened
        from pkdp_pipeline.engines.narwhals_engine import collected
        from pkdp_pipeline.engines.narwhals_queries import as_number

        def ask() -> tuple[int, int]:
            lazy, schema = opened(self.rows(period, *period.span(day), unit))
            selected = {"rows": nw.len()}
            if unit:
                missing = [comparable("unit", name, schema[name]).is_null() for name in unit]
                lazy = lazy.select(missing=as_number(nw.any_horizontal(*missing, ignore_nulls=False)))
                selected["without"] = nw.col("missing").sum()
            (answer,) = collected(lazy.select(**selected)).to_pylist()
            return int(answer["rows"]), int(answer.get("without") or 0)

        return self.guarded(ask)

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """Return the latest day in a column over the whole source, None where it holds none.

        Days of instants are cut in the period's time zone. Days outside the years 1 to 9999, such as infinity, do not
        count. Raises `ConfigError` if there is no such column, it does not hold days, it holds instants and the period
        has no time zone, or the data cannot be read to their end.
        """
        raise ConfigError(f"column {column!r} (checks.fresh): this source does not tell its newest day; remove fresh.")

    def pandas(self, period: PeriodTable, day: date, columns: Sequence[str]) -> pd.DataFrame:
        """Return the rows of a period with these columns, under dtypes that do not depend on the rows.

        Raises `ConfigError` as `counts` does.
        """
        from pkdp_pipeline.engines.narwhals_columns import column, opened
        from pkdp_pipeline.engines.narwhals_engine import collected

        def ask() -> Any:
            lazy, _ = opened(self.rows(period, *period.span(day), columns))
            return collected(lazy.select(*map(column, columns))).rename_columns(list(columns))

        return pandas_rows(self.guarded(ask))

    def guarded(self, question: Callable[[], Answer]) -> Answer:
        """Return what the engine answers, or raise `broken`: its own words could quote the data."""
        try:
            return question()
        except PkdpError:
            raise
        except Exception:
            pass
        raise self.broken

    def is_one_state(self) -> bool:
        """Return whether all that was read since it was opened is of one state of the data; False: nobody knows."""
        return False

    def interrupt(self) -> None:
        """Make a query that another thread waits for fail, where the engine can."""

    def close(self) -> None:
        """Close the source; frames made from it can no longer be read."""


def period_kind(columns: Mapping[str, Kind], period: PeriodTable) -> Kind:
    """Return what the period column holds: "date", "timestamp" or "instant".

    Raises `ConfigError` if there is no such column, it holds something else, or the time zone does not fit.
    """
    kind = newest_kind(columns, period.column, period, "period.column")
    if kind == "timestamp" and period.time_zone is not None:
        raise ConfigError(
            f"period column {period.column!r} holds {HOLDS[kind]}: its days are taken as written; remove time_zone, or "
            "store dates or instants."
        )
    return kind


def newest_kind(columns: Mapping[str, Kind], column: str, period: PeriodTable, key: str = "checks.fresh") -> Kind:
    """Return what a column of days holds: "date", "timestamp" or "instant"; `key` is where the job names it.

    Raises `ConfigError` if there is no such column, it holds something else, or its days need a time zone.
    """
    if column not in columns:
        raise no_such_column({column: key}, columns)
    if columns[column] not in DAYS:
        raise ConfigError(
            f"column {column!r} ({key}) holds {HOLDS[columns[column]]}, not dates; store it as DATE or as a timestamp."
        )
    if columns[column] == "instant" and period.time_zone is None:
        raise ConfigError(
            f"column {column!r} ({key}) holds {HOLDS['instant']}: say on which clocks a day begins, for example "
            f"period = {{ column = '{period.column}', time_zone = 'Europe/Oslo' }}."
        )
    return columns[column]


def no_such_column(missing: Mapping[str, str], columns: Collection[str]) -> ConfigError:
    """Return what to say of columns that a source does not have: which key names each, and what may be meant."""
    problems = []
    for column, key in missing.items():
        alike = [known for known in columns if known.casefold() == column.casefold()]
        close = alike or difflib.get_close_matches(column, columns, n=1)
        problems.append(f"{column!r} ({key}{f', did you mean {close[0]!r}?' if close else ''})")
    named = f"column{'' if len(problems) == 1 else 's'} {', '.join(problems)}"
    has = ", ".join(map(repr, columns))
    return ConfigError(f"the source has no {named}: it has {has}; correct the job file or the source.")


def check_unique(columns: Sequence[str], source: str = "the source") -> None:
    """Raise `ConfigError` where two columns have one name, letter case aside."""
    if (pair := twins(columns)) is not None:
        if pair[0] == pair[1]:
            raise ConfigError(f"{source} has two columns {pair[0]!r}; rename one, or leave it out.")
        raise ConfigError(
            f"{source} has columns {pair[0]!r} and {pair[1]!r}: capitals and small letters are not told apart "
            "everywhere; rename one."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """A job's needs of its source; `Job.needs` makes them.

    Parameters
    ----------
    engine : str
        The engine of the job.
    period : PeriodTable
    unit : tuple of str
        The columns of the privacy unit.
    declared : tuple of (str, str)
        Each column that the job names outside of predicates and checks, after the key that names it.
    checked, compared : frozenset of str
        Columns named by the checks of ``[checks] columns``, and by other checks and predicates.
    """

    engine: str
    period: PeriodTable
    unit: tuple[str, ...]
    declared: tuple[tuple[str, str], ...]
    checked: frozenset[str]
    compared: frozenset[str]

    def check_named(self, columns: Collection[str]) -> None:
        """Raise `ConfigError` where the job names a column outside of predicates that its source does not have.

        A column named in ``[checks]`` is left to the input check, by which it has become a rule about the data.
        """
        missing: dict[str, str] = {}
        for key, column in self.declared:
            if column not in columns and column not in self.checked:
                missing.setdefault(column, key)
        if missing:
            raise no_such_column(missing, columns)

    def of(self, columns: Collection[str]) -> tuple[str, ...]:
        """Return those of a source's columns that the job names, its predicates included."""
        named = {column for _, column in self.declared} | self.checked | self.compared
        return tuple(column for column in columns if column in named)


def pandas_rows(table: Any) -> pd.DataFrame:
    """Return an Arrow table as a frame whose dtypes depend on its types alone, never on the rows.

    They are text, nullable whole numbers and booleans, times in microseconds.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    for position, field in enumerate(table.schema):
        kind = _plain(field.type)
        if kind != field.type:
            column = table.column(position)
            if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
                # A cast would cut those before 1970 the other way.
                column = pc.floor_temporal(column.cast(pa.timestamp("ns", kind.tz)), unit="microsecond")
            table = table.set_column(position, field.name, column.cast(kind, safe=False))
    whole = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    dtypes: dict[Any, Any] = {
        **{getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")() for name in whole},
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype(na_value=float("nan")),
    }
    frame: pd.DataFrame = table.to_pandas(types_mapper=dtypes.get, date_as_object=False)
    return frame


def _plain(kind: Any) -> Any:
    """Return the one Arrow type under which all engines give a column."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    return pa.timestamp("us") if pa.types.is_date(kind) else kind
