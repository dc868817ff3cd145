"""Answer: what a gate returns for one statement, in the forms that DuckDB's own results have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Answer"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer:
    """A table computed from releases; it is public, as they are.

    Attributes
    ----------
    columns : tuple of str
    types : tuple of str
        The columns' SQL types.
    releases : tuple of Release
        The releases that the statement made or replayed, with their certificates.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    releases: tuple[Release, ...]
    _table: Any
    _position: list[int]

    @classmethod
    def of(cls, table: Any, types: tuple[str, ...], releases: tuple[Release, ...]) -> Answer:
        """Return the answer that holds `table`, a `pyarrow.Table`, with its SQL `types` and the `releases` in it."""
        return cls(tuple(table.column_names), types, releases, table, [0])

    def arrow(self) -> Any:
        """Return the whole answer as a `pyarrow.Table`."""
        return self._table

    def df(self) -> pd.DataFrame:
        """Return the whole answer as a `pandas.DataFrame`."""
        frame: pd.DataFrame = self._numbers().to_pandas(date_as_object=False)
        return frame

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows that were not fetched yet."""
        rows = self._rows(self._position[0], self._table.num_rows)
        self._position[0] = self._table.num_rows
        return rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, None after the last one."""
        rows = self._rows(self._position[0], self._position[0] + 1)
        self._position[0] += len(rows)
        return rows[0] if rows else None

    def __len__(self) -> int:
        rows: int = self._table.num_rows
        return rows

    def __repr__(self) -> str:
        releases = "1 release" if len(self.releases) == 1 else f"{len(self.releases)} releases"
        return f"Answer({len(self)} rows from {releases})\n{self.df()}"

    def _rows(self, start: int, stop: int) -> list[tuple[Any, ...]]:
        part = self._table.slice(start, stop - start)
        columns = [
            [None if value is None else int(value) for value in part.column(position).to_pylist()]
            if self.types[position] == "HUGEINT"
            else part.column(position).to_pylist()
            for position in range(part.num_columns)
        ]
        return list(zip(*columns, strict=True)) if columns else []

    def _numbers(self) -> Any:
        """Return the table with decimals, and HUGEINT that sums of counts are, as floats, as DuckDB does for pandas."""
        import pyarrow as pa

        table = self._table
        for position, field in enumerate(table.schema):
            if pa.types.is_decimal(field.type):
                values = table.column(position).cast(pa.float64())
                table = table.set_column(position, table.column_names[position], values)
        return table
