"""The tables ``[period]``, ``[checks]``, ``retention``, ``[output]``, ``[records]`` and ``[about]`` of a job file.

Paths, which are relative to the job file, and addresses with passwords, kept out of whatever shows a job.

TOML: a value in one line, as it stands in a job file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import tomlkit
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from tomlkit.items import Item

from pkdp_pipeline.clock import today, zones
from pkdp_pipeline.errors import ArgumentError, ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.jobs.outputs.files import FORMATS
from pkdp_pipeline.ledger.database import is_misspelt_address, public_address, public_url, trouble_of
from pkdp_pipeline.model.period import Every, Period, printable
from pkdp_pipeline.model.wording import names_guarantee
from pkdp_pipeline.plugins import hooks
from pkdp_pipeline.releases.options import (
    ColumnKind,
    Name,
    Table,
)

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ENCODE = (
    "write postgresql://user@host:5432/database, and percent-encode what is not a letter or a digit in user and "
    "password."
)


def from_environment(value: object) -> object:
    """Return the environment variable that ``${NAME}`` names; anything else as it is.

    Raises `ValueError` if it is not set, or is only a part of the value. The message never holds what it is set to.
    """
    if not isinstance(value, str) or ("${" not in value and not re.fullmatch(r"\$\w+", value)):
        return value
    match = _VARIABLE.fullmatch(value)
    if match is None:
        raise ValueError('an environment variable must be the whole value, in braces, such as "${PKDP_DATABASE}".')
    content = os.environ.get(match[1], "")
    if not content:
        raise ValueError(f"the environment variable {match[1]} is not set; set it where the job runs.")
    return content


def local(path: object) -> object:
    """Return a path on this machine as it is.

    Raises `ValueError` if it is an address, or something that a shell would replace and this library does not.
    """
    if isinstance(path, str) and (path.startswith("~") or any(mark in path for mark in ("://", "${", "\x00"))):
        raise ValueError(
            "must be a path on this machine, whole or relative to the job file: not an address; ~ is not replaced, and "
            "environment variables are read in ledger, postgres and ibis only."
        )
    return path


def refusal(place: str, error: Exception, fixes: Mapping[str, str]) -> PkdpError:
    """Return our own error of one of PostgreSQL's, whose words can quote the data or hold the address.

    `fixes` says what to do by SQLSTATE or its class, and after "" about all others.
    """
    state = str(getattr(error, "sqlstate", None) or "")
    lost = not state and type(error).__name__ in ("OperationalError", "ConnectionTimeout")
    trouble = trouble_of(state, str(error), lost=lost)
    if trouble == "passing":
        return TemporaryError(f"{place} cannot be reached, has no room for one more, or is locked: try again later.")
    if trouble != "other" or not state:
        return ConfigError(f"{place} refuses the connection: check user, password, host, database and options.")
    known = {"53": "its server has run out of room: make room", "58": "its server's disk fails: mend it", **fixes}
    fix = known.get(state) or known.get(state[:2]) or known[""]
    return ConfigError(f"{place} cannot be used (SQLSTATE {state}): {fix}.")


def _read(value: object, *, file: bool) -> object:
    """Return an address, out of the environment where it is there, or the path of a file where one may be given."""
    value = from_environment(value)
    if not isinstance(value, str):
        return value
    if file and "://" not in value:
        if is_misspelt_address(value):
            raise ValueError(f"is neither a file nor an address of a PostgreSQL database: {_ENCODE}")
        return local(value)
    scheme, readable = _scheme(value)
    if scheme is not None and scheme.partition("+")[0] not in ("postgresql", "postgres"):
        raise ValueError("must be the address of a PostgreSQL database: postgresql://user@host:5432/database.")
    if not readable:
        raise ValueError(f"the address cannot be read: {_ENCODE}")
    return value


def _read_any(value: object, info: ValidationInfo) -> object:
    """Return an address that Ibis connects to, out of the environment where it is there; a file's path is placed."""
    value = from_environment(value)
    if not isinstance(value, str):
        return value
    scheme, readable = _scheme(value) if "://" in value else ("", False)
    if scheme in ("", "file", "sqlite"):
        raise ValueError(
            'must be the address of a database, such as "snowflake://user@account/database/schema"; files are read '
            'with source = "data/*.parquet" or { duckdb = … }.'
        )
    if not readable:
        raise ValueError(
            "the address cannot be read: percent-encode what is not a letter or a digit in user and password."
        )
    if scheme == "duckdb":
        path, question, options = value.removeprefix("duckdb://").partition("?")
        return f"duckdb://{placed(path, info)}{question}{options}"
    return value


def _scheme(value: str) -> tuple[str | None, bool]:
    """Return how an address begins, None where that cannot be told, and whether all of it can be read."""
    try:
        parts = urlsplit(value)
        good = parts.port is None or parts.port > 0
    except ValueError:
        return None, False
    # An @ further on, or a fragment, is the rest of a password that was cut at one of its characters.
    return parts.scheme, good and not parts.fragment and "@" not in parts.path + parts.query


def _shown(value: str) -> str:
    return public_address(value) if "://" in value else value


def _shown_any(value: str) -> str:
    return public_url(value) if "://" in value else value


def placed(path: str, info: ValidationInfo) -> str:
    """Return a path from the folder that is the context of a validation; as it is written where there is none."""
    return path if info.context is None or "://" in path else str(Path(info.context, path))


PathName = Annotated[str, StringConstraints(min_length=1), BeforeValidator(local), AfterValidator(placed)]
"""A path on this machine, relative to the job file."""

Address = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(partial(_read, file=False)),
    PlainSerializer(_shown),
    Field(examples=["${PKDP_DATABASE}", "postgresql://statistics@db.example.org/warehouse"]),
]
"""The address of a PostgreSQL database; shown and written without user and password."""

AnyAddress = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(_read_any),
    PlainSerializer(public_url),
    Field(examples=["${PKDP_SOURCE}", "snowflake://statistics@account/database/schema?warehouse=small"]),
]
"""The address of a database that Ibis connects to; shown and written without user, password and options."""

PluginText = Annotated[
    str, StringConstraints(min_length=1), BeforeValidator(from_environment), PlainSerializer(_shown_any)
]
"""A text that a plugin reads; an address is shown and written without user, password and options."""

LedgerName = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(partial(_read, file=True)),
    AfterValidator(placed),
    PlainSerializer(_shown),
    Field(examples=["ledger.sqlite", "${PKDP_LEDGER}"]),
]
"""A file, or the address of a PostgreSQL database."""


def toml_text(value: Any) -> str:
    """Return a value as TOML in one line."""
    return toml_item(value).as_string()


def toml_item(value: Any) -> Item:
    """Return a value as what `tomlkit` sets in a document."""
    if isinstance(value, Mapping):
        inside = (f"{tomlkit.key(key).as_string()} = {toml_text(item_value)}" for key, item_value in value.items())
        inline_table: Item = tomlkit.value(f"{{ {', '.join(inside)} }}")
        return inline_table
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        array.extend(map(toml_item, value))
        return array
    item: Item = tomlkit.item(value)
    return item


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _formats() -> list[str]:
    return [*FORMATS, *(name for name, _ in hooks("formats"))]


def _is_format(name: str) -> str:
    if name not in _formats():
        expected = " or ".join(map(repr, _formats()))
        raise PydanticCustomError("literal_error", "must be {expected}", {"expected": expected})
    return name


def _list_formats(schema: dict[str, Any]) -> None:
    schema["items"]["enum"] = _formats()


def _as_text(value: object) -> object:
    return value.isoformat() if isinstance(value, date) and not isinstance(value, datetime) else value


class PeriodTable(Table):
    """``period``: one release for each day, week, month, quarter or year of a column.

    Notes
    -----
    A day stands for the period that it lies in.
    """

    column: Name = Field(description="The column with the day of each row.", examples=["date"])
    time_zone: Name | None = Field(
        default=None,
        description="The zone in which a day begins and ends: needed for instants; for dates, where they were cut. "
        "Without it a day is over by the clocks of the machine.",
        examples=["Europe/Oslo"],
    )
    every: Every = Field(default="day", description="The period of a release; weeks are ISO weeks.", examples=["week"])
    closed: tuple[Annotated[str, BeforeValidator(_as_text)], ...] = Field(
        default=(),
        strict=False,
        description="Days of which nothing is published: weekdays, dates, or intervals of dates. A week, month, "
        "quarter or year has a release unless all of its days are closed.",
        examples=[["sunday", "2026-12-25", "2026-07-01/2026-07-31"]],
    )

    @field_validator("time_zone")
    @classmethod
    def _zone_exists(cls, zone: str | None) -> str | None:
        if zone is not None and zone not in zones():
            raise ValueError("must be the name of a time zone, such as 'Europe/Oslo' or 'UTC'.")
        return zone

    @field_validator("closed")
    @classmethod
    def _are_days(cls, closed: tuple[str, ...]) -> tuple[str, ...]:
        for number, text in enumerate(closed, 1):
            try:
                known = text in WEEKDAYS or Period.parse(text).days() is not None
            except ArgumentError:
                known = False
            if not known:
                raise ValueError(
                    f"entry {number} must be a weekday in small letters, such as 'sunday', a date such as "
                    "'2026-12-25', or an interval such as '2026-07-01/2026-07-31'."
                )
        if {*WEEKDAYS} <= {*closed}:
            raise ValueError("names every weekday, and nothing would ever be published: leave one out.")
        return closed

    def text(self, day: date) -> str:
        """Return the period of a day as releases name it: 2026-01-12, 2026-W03, 2026-01, 2026-Q1 or 2026."""
        return Period.around(day, self.every).text

    def start(self, text: str) -> date | None:
        """Return the first day of a period by its name; None where the job has no period of that name."""
        try:
            first = Period.parse(text).first
        except ArgumentError:
            return None
        return first if first is not None and self.text(first) == text else None

    def span(self, day: date) -> tuple[date, date]:
        """Return the first and last day of the period of a day."""
        period = Period.around(day, self.every)
        return period.first or day, period.last or day

    def is_closed(self, day: date) -> bool:
        """Return whether nothing is published of the period of a day."""
        closed = self._closed_days
        return all(WEEKDAYS[day.weekday()] in self.closed or day in closed for day in _days(*self.span(day)))

    def closed_dates(self) -> tuple[date, ...]:
        """Return the first days of the closed periods that hold a day which is closed by its date."""
        return tuple(sorted({self.span(day)[0] for day in self._closed_days if self.is_closed(day)}))

    @cached_property
    def _closed_days(self) -> frozenset[date]:
        """The days that are closed by their dates."""
        named = [Period.parse(text) for text in self.closed if text not in WEEKDAYS]
        return frozenset(
            day for period in named if period.first and period.last for day in _days(period.first, period.last)
        )

    def periods(self, first: date, last: date) -> Iterator[date]:
        """Yield the first days of the periods that days from `first` to `last`, both included, lie in.

        Those that are closed are left out.
        """
        for ordinal in range(self.span(first)[0].toordinal(), last.toordinal() + 1):
            day = date.fromordinal(ordinal)
            if self.span(day)[0] == day and not self.is_closed(day):
                yield day

    def today(self) -> date:
        """Return today's date in the period's time zone, or where it has none in the machine's own."""
        return today(self.time_zone)

    def is_over(self, day: date) -> bool:
        """Return whether the last day of the period of a day is over."""
        return self.span(day)[1] < self.today()

    def check_open(self, day: date) -> None:
        """Refuse a period that is closed, or not over: rows that are still to come would never be published."""
        if why := self.not_open(day):
            raise ArgumentError(f"date: {why}")

    def not_open(self, day: date) -> str:
        """Return why nothing of a period is published yet, or any more, and what to do; empty where it can be."""
        if self.is_closed(day):
            return (
                f"{self.text(day)} is closed, and nothing is published of it: choose another date, or correct closed "
                "under period."
            )
        if self.is_over(day):
            return ""
        latest = self.caught_up(self.today())
        return (
            f"{self.text(day)} is not over before the end of {self.span(day)[1].isoformat()}, and rows that come later "
            f"would never be published: wait, or ask for {self.text(latest)}, the latest that is over (date "
            f"{latest.isoformat()})."
        )

    def caught_up(self, day: date) -> date:
        """Return the first day of a period; where it has begun and is not over, of the latest that is over."""
        first = self.span(day)[0]
        return first if first > self.today() or self.is_over(day) else self.span(first - timedelta(1))[0]


def _days(first: date, last: date) -> tuple[date, ...]:
    return tuple(map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1)))


class RowsTable(Table):
    """``rows``: how many rows the day may have."""

    min: int | None = Field(default=None, ge=0, description="At least this many.", examples=[100])
    max: int | None = Field(default=None, ge=0, description="At most this many.", examples=[100000])

    @model_validator(mode="after")
    def _a_range(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("needs min, max or both: write rows = { min = 100, max = 100000 }.")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min is above max, and no day could pass: swap them.")
        return self


class FreshTable(Table):
    """``fresh``: the newest value of a column, over the whole source, shows that the day is complete."""

    column: Name = Field(description="A column that holds days or times.", examples=["date"])
    days: int = Field(
        default=1, ge=0, description="The least number of days from the period's day to its newest value."
    )


class ChecksTable(Table):
    """``[checks]``: rules beyond those that are always checked; one that fails stops the job before any charge."""

    rows: RowsTable | None = Field(default=None, description="How many rows the day may have.")
    columns: dict[Name, ColumnKind] = Field(
        default_factory=dict,
        description="Columns that must exist, and what they hold.",
        examples=[{"tailnum": "text", "distance": "number"}],
    )
    fresh: FreshTable | None = Field(
        default=None, description="The day is complete: the source has rows of a later day already."
    )
    expectations: PathName | None = Field(
        default=None,
        description="A suite of Great Expectations 1.x in JSON, relative to the job file.",
        examples=["checks.json"],
    )
    expect: tuple[dict[str, Any], ...] = Field(
        default=(),
        strict=False,
        description="Expectations of Great Expectations: type, and its arguments.",
        examples=[[{"type": "expect_column_values_to_be_between", "column": "distance", "min_value": 0}]],
    )

    @property
    def look_at_rows(self) -> bool:
        """Whether a day's rows can fail them; what only names columns and kinds is no matter of a day."""
        stops = [expectation.get("severity", "critical") == "critical" for expectation in self.expect]
        return self.rows is not None or self.fresh is not None or self.expectations is not None or any(stops)


class RetentionTable(Table):
    """``retention``: a private copy of the day's rows, for some days; without it no copy is kept."""

    directory: PathName = Field(
        description="Where the copy is kept, relative to the job file; only the curator may read it.",
        examples=["private"],
    )
    days: int = Field(ge=1, description="The copy is deleted after this many days.", examples=[7])


class OutputTable(Table):
    """``[output]``: where the releases go. The certificate and summary.md are written beside every release."""

    # Other keys are those of outputs that plugins add: each holds a text, such as an address.
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})
    __pydantic_extra__: dict[str, PluginText] = Field(init=False)

    directory: PathName = Field(
        description="A folder, relative to the job file; each date has a folder of its own in it.", examples=["out"]
    )
    formats: tuple[Annotated[str, AfterValidator(_is_format)], ...] = Field(
        default=("parquet",),
        min_length=1,
        strict=False,
        description="The files of each release; xlsx is one workbook of all, xlsx-estimates with estimates of samples.",
        json_schema_extra=_list_formats,
    )
    suppressed: Name | None = Field(
        default=None,
        description="In files for offices and other programs (not in Parquet and csv), the text in the place of counts "
        'that are not published; without it "<k".',
        examples=["c"],
    )
    duckdb: PathName | None = Field(
        default=None,
        description="A DuckDB file for the public: a table for each release, named as it is.",
        examples=["public.duckdb"],
    )
    postgres: Address | None = Field(
        default=None, repr=False, description="A PostgreSQL database for the public: a table for each release."
    )
    schema_: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=63)] | None = Field(
        default=None,
        alias="schema",
        description="The schema of these tables; the database's own when left out.",
        examples=["public"],
    )
    layout: Literal["plain", "hive"] = Field(
        default="plain",
        description='How the folders of periods are named: "2026-01-12", and the files have a column period; or '
        '"period=2026-01-12", which readers of Hive partitions take for the column.',
    )
    report: bool = Field(
        default=False,
        description="Write report.html, for the public: beside each date's releases, and at the end of a backfill "
        "about all of them. Needs the extra report.",
    )

    @classmethod
    def _keys(cls) -> list[str]:
        return [*super()._keys(), *(name for name, _ in hooks("outputs") if name not in cls.model_fields)]

    def databases(self) -> list[str]:
        """Return the keys of the databases to which the releases go."""
        return [
            *(name for name in ("duckdb", "postgres") if getattr(self, name) is not None),
            *(self.model_extra or ()),
        ]

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        # An address may hold a password.
        return ((name, value) for name, value in super().__repr_args__() if name not in (self.model_extra or ()))

    def folder_name(self, period: str) -> str:
        """Return the name of a period's folder."""
        return f"period={period}" if self.layout == "hive" else period

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("formats names a format twice.")
        if self.suppressed is not None and set(self.formats) <= set(FORMATS):
            raise ValueError("suppressed is the mark in files for offices: add xlsx to formats, or remove suppressed.")
        if self.schema_ is not None and not self.databases():
            raise ValueError("schema is for the tables of a database: add duckdb or postgres, or remove schema.")
        return self


class RecordsTable(Table):
    """``[records]``: what is written about every run, for the curator."""

    directory: PathName | None = Field(
        default=None, description="A folder for one JSON file per run, relative to the job file.", examples=["runs"]
    )
    lineage: PathName | None = Field(
        default=None, description="A file to which OpenLineage events are appended.", examples=["lineage.jsonl"]
    )
    namespace: Name = Field(default="pkdp", description="The namespace of the events' jobs and data sets.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.directory is None and self.lineage is None:
            raise ValueError("needs directory, lineage or both.")
        return self


class AboutTable(Table):
    """``[about]``: who publishes and who argued the attacker; public words, which reports print."""

    title: Name | None = Field(
        default=None, description="Title of the reports.", examples=["Patients of a walk-in clinic"]
    )
    publisher: Name | None = Field(default=None, description="The publisher, who answers for it.")
    contact: Name | None = Field(
        default=None, description="Where questions go: an address, a telephone number.", examples=["data@example.org"]
    )
    argued_by: Name | None = Field(default=None, description="The person who argued the attacker.")
    argued_on: Name | None = Field(
        default=None, description="When: a date, before the first release.", examples=["2025-12-01"]
    )
    checked_on: Name | None = Field(
        default=None,
        description="When the assumptions were last checked: a date. After a year reports and dry runs say so.",
        examples=["2026-12-01"],
    )
    argument: Name | None = Field(default=None, description="Why what is declared about the attacker is true.")

    @field_validator("*")
    @classmethod
    def _are_words(cls, text: str | None) -> str | None:
        words = text and " ".join(text.split())
        if words == "" or (words and names_guarantee(words)):
            raise ValueError(
                "must hold words, and none that promise: leave ε, δ and whom they hold against to the certificate."
            )
        return words

    @field_validator("argued_on", "checked_on", mode="before")
    @classmethod
    def _is_a_date(cls, day: object) -> object:
        try:
            day = date.fromisoformat(day) if isinstance(day, str) else day
            return day.isoformat() if type(day) is date else day
        except ValueError:
            raise ValueError("must be a date, such as 2025-12-01.") from None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("is empty: say who publishes, or remove it.")
        return self

    def outdated(self, day: date) -> bool:
        """Return whether the assumptions were last checked more than a year before a day."""
        return self.checked_on is not None and (day - date.fromisoformat(self.checked_on)).days > 366

    def words(self) -> dict[str, str]:
        """Return what is said, printable, by key."""
        return {name: printable(text) for name, text in self.model_dump(exclude_none=True).items()}
