"""What the texts of a CSV file mean: a declared type, one way of writing it, and no guessing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pkdp_pipeline.engines.duckdb.statements import literal, quoted
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.sources.source import Kind

if TYPE_CHECKING:
    import duckdb

__all__ = ["CsvTypes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How values of a kind are written, under which type they are read, and how to say so."""

    pattern: str
    sql_type: str
    words: str


_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_FORMS: Mapping[Kind, _Form] = {
    "number": _Form(pattern=r"[+-]?[0-9]+", sql_type="BIGINT", words="whole numbers of at most 64 bits"),
    "real": _Form(
        pattern=r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?",
        sql_type="DOUBLE",
        words="numbers such as 1.5, with a point",
    ),
    "boolean": _Form(pattern=r"(?i)true|false", sql_type="BOOLEAN", words="true or false"),
    "date": _Form(pattern=r"[0-9]{4}-[0-9]{2}-[0-9]{2}", sql_type="DATE", words="dates such as 2013-01-31"),
    "timestamp": _Form(
        pattern=_TIME, sql_type="TIMESTAMP", words="timestamps such as 2013-01-31T23:59:00, without a time zone"
    ),
    "instant": _Form(
        pattern=_TIME + r" ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)",
        sql_type="TIMESTAMP WITH TIME ZONE",
        words="timestamps with an offset, such as 2013-01-31T23:59:00+01:00",
    ),
}
_MARK = "pkdp_mistyped_"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvTypes:
    """The kinds of a CSV source's columns, and which of them says the day."""

    kinds: Mapping[str, Kind]
    period: str

    def typed(self, column: str) -> str:
        """Return SQL that reads a column of texts under its type; anything else in it ends the statement."""
        kind, name = self.kinds[column], quoted(column)
        if kind == "text":
            return name
        form = _FORMS[kind]
        read = f"TRY_CAST({_written(name, kind)} AS {form.sql_type})"
        # That a value is named in it keeps the error from being raised before there is one.
        mark = f"error({literal(_MARK + str(list(self.kinds).index(column)))} || left({name}, 0))"
        good = f"CASE WHEN regexp_full_match({name}, {literal(form.pattern)}) THEN {read} END"
        return f"CASE WHEN {name} IS NOT NULL THEN coalesce({good}, {mark}) END"

    def select(self, columns: Sequence[str]) -> str:
        """Return SQL that reads several columns under their names."""
        return ", ".join(f"{self.typed(column)} AS {quoted(column)}" for column in columns)

    def mistyped(self, error: duckdb.Error, file: str | None = None) -> ConfigError | None:
        """Return what to say where an error of DuckDB is one of `typed`: file, column and rule, never the value."""
        found = re.search(rf"{_MARK}(\d+)", str(error))
        if found is None:
            return None
        column = list(self.kinds)[int(found[1])]
        where = "the file" if file is None else f"file {file!r}"
        return ConfigError(
            f"column {column!r} must hold {_FORMS[self.kinds[column]].words}, and holds something else; correct "
            f"{where}, {self._other(column)}, or add what stands for a missing value to null."
        )

    def _other(self, column: str) -> str:
        """Say how another type is declared; the texts of the period column would be no days."""
        kind = self.kinds[column]
        if column != self.period:
            other = "real" if kind == "number" else "text"
            return f'declare another type (source = {{ …, types = {{ {column} = "{other}" }} }})'
        zoned = f'say where a day begins if it holds instants (period = {{ column = "{column}", time_zone = … }})'
        plain = f'declare times without an offset (source = {{ …, types = {{ {column} = "timestamp" }} }})'
        if kind == "date":
            return f"{zoned}, {plain}"
        if kind == "instant":
            return f"remove time_zone from period if it holds no instants, {plain}"
        return "remove it from types if it holds dates"


def _written(name: str, kind: Kind) -> str:
    """Return SQL for a text in a form that every version of DuckDB reads: with seconds, and a colon in the offset."""
    if kind in ("timestamp", "instant"):
        name = rf"regexp_replace({name}, '^([^ T]+[T ][0-9]{{2}}:[0-9]{{2}})([^:]|$)', '\1:00\2')"
    if kind == "instant":
        return rf"regexp_replace({name}, '([+-][0-9]{{2}})([0-9]{{2}})$', '\1:\2')"
    return name
