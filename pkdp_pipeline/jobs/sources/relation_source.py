"""RelationSource: the rows of a DuckDB relation by day."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from pkdp_pipeline.engines.duckdb.connecting import connect as private_connection
from pkdp_pipeline.engines.duckdb.connecting import disconnect
from pkdp_pipeline.engines.duckdb.relation_types import is_number
from pkdp_pipeline.engines.duckdb.statements import quoted
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.jobs.job import PeriodTable
from pkdp_pipeline.jobs.sources.day_sql import newest_day, on_day
from pkdp_pipeline.jobs.sources.pandas_rows import pandas_rows
from pkdp_pipeline.jobs.sources.source import Kind, Rows, day_kind, not_selectable, period_kind

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["RelationSource", "connect", "count_rows", "disconnect", "kind_of"]

_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL\(.*\)")


def connect(*, spill: bool = True) -> duckdb.DuckDBPyConnection:
    """Return a private DuckDB whose clock is UTC's; see `engines.duckdb.connecting.connect`."""
    connection = private_connection(spill=spill)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class RelationSource:
    """A relation of a connection of its own, which is closed with it; see `Source`.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    relation : duckdb.DuckDBPyRelation
    broken : callable
        Returns what to say where the rows cannot be read to their end.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        relation: duckdb.DuckDBPyRelation,
        broken: Callable[[], PkdpError],
    ) -> None:
        self._connection = connection
        self._relation = relation
        self._broken = broken
        self._types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        self._columns = {name: kind_of(sql_type) for name, sql_type in self._types.items()}

    def close(self) -> None:
        """See `Source.close`."""
        disconnect(self._connection)

    def interrupt(self) -> None:
        """See `Source.interrupt`."""
        self._connection.interrupt()

    @property
    def columns(self) -> Mapping[str, Kind]:
        """See `Source.columns`."""
        return self._columns

    def day(self, period: PeriodTable, day: date) -> duckdb.DuckDBPyRelation:
        """See `Source.day`."""
        import duckdb

        kind = period_kind(self._columns, period)
        # Bounds are microseconds, which not every stored unit can hold.
        bounds = self._types[period.column] in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
        try:
            return self._relation.filter(on_day(quoted(period.column), kind, period, day, bounds=bounds))
        except duckdb.Error:
            pass
        raise not_selectable(period)

    def counts(self, period: PeriodTable, day: date, rows: Sequence[Rows]) -> list[int]:
        """See `Source.counts`."""
        import duckdb

        relation = self.day(period, day)
        try:
            return count_rows(relation, rows, self._columns)
        except duckdb.Error:
            pass
        raise self._broken()

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """See `Source.newest`."""
        import duckdb

        kind = day_kind(self._columns, column)
        try:
            found: date | None = self._relation.aggregate(newest_day(quoted(column), kind, period)).fetchall()[0][0]
            return found
        except duckdb.Error:
            pass
        raise self._broken()

    def pandas(self, period: PeriodTable, day: date, columns: Sequence[str]) -> pd.DataFrame:
        """See `Source.pandas`."""
        import duckdb

        relation = self.day(period, day)
        try:
            return pandas_rows(relation.project(", ".join(map(quoted, columns))).to_arrow_table())
        except duckdb.Error:
            pass
        raise self._broken()


def count_rows(relation: duckdb.DuckDBPyRelation, rows: Sequence[Rows], columns: Mapping[str, Kind]) -> list[int]:
    """Return how many rows of a relation there are of each sort."""

    def present(column: str) -> str:
        return is_number(quoted(column)) if columns[column] == "real" else f"{quoted(column)} IS NOT NULL"

    def counted(sort: Rows) -> str:
        condition = " AND ".join(["TRUE", *map(present, sort.present)])
        return f"count(*) FILTER (WHERE {f'NOT ({condition})' if sort.negated else condition})"

    return list(relation.aggregate(", ".join(map(counted, rows))).fetchall()[0])


def kind_of(sql_type: str) -> Kind:
    """Return what a column of a type of DuckDB holds."""
    if sql_type.startswith("TIMESTAMP"):
        return "instant" if sql_type.endswith("WITH TIME ZONE") else "timestamp"
    if sql_type == "DATE":
        return "date"
    if sql_type in ("FLOAT", "DOUBLE"):
        return "real"
    if sql_type == "BOOLEAN":
        return "boolean"
    if sql_type in ("VARCHAR", "UUID") or sql_type.startswith("ENUM"):
        return "text"
    return "number" if _NUMBER.fullmatch(sql_type) else "other"
