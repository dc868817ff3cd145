"""Tables: public tables as text, and as one series over many periods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from numbers import Number
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.display.content import PublishedTable, Series
from pkdp_pipeline.model.plain_text import joined, key_text

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.releases.release import Release

MOST_ROWS = 1000
"""So many rows of a table are shown; the others are in the files."""

MOST_CELLS = 40
"""So many cells of a series are shown, those that are published most often."""

MOST_PERIODS = 400
"""So many periods of a series are shown, the latest ones."""

Key = tuple[str, Hashable]
"""What kind of value a key is, and the value: texts, numbers and truths are never the same key."""

Cell = tuple[Key, ...]


def published_table(table: pd.DataFrame, most: int = MOST_ROWS) -> PublishedTable:
    """Return a public table as text, with `most` rows at most."""
    rows = _rows(table)
    return PublishedTable(
        columns=tuple(key_text(column) for column in table.columns[:-1]),
        keys=tuple(tuple(key_text(value) for _, value in cell) for cell, _ in rows[:most]),
        counts=tuple(count for _, count in rows[:most]),
        more=max(0, len(rows) - most),
    )


def series_of(name: str, releases: Mapping[str, Release], *, more_periods: int = 0) -> Series:
    """Return one release over its periods.

    Parameters
    ----------
    name : str
        Its name in the job file.
    releases : mapping of str to Release
        By period, in their order.
    more_periods : int
        How many earlier ones are left out.
    """
    tables = {period: release.table for period, release in releases.items()}
    found: dict[str, dict[Cell, int | None]] = {period: dict(_rows(table)) for period, table in tables.items()}
    often = Counter(cell for cells in found.values() for cell, count in cells.items() if count is not None)
    ordered = _in_order(list(tables.values()))
    # Of cells that are published equally often, those that come first.
    kept = set(sorted(ordered, key=lambda cell: -often[cell])[:MOST_CELLS])
    cells = [cell for cell in ordered if cell in kept]
    return Series(
        name=name,
        cells=tuple(_names(cells)),
        periods=tuple(found),
        counts=tuple(tuple(of_period.get(cell) for cell in cells) for of_period in found.values()),
        more_cells=len(ordered) - len(cells),
        more_periods=more_periods,
    )


def _rows(table: pd.DataFrame) -> list[tuple[Cell, int | None]]:
    import pandas as pd

    rows: list[tuple[Cell, int | None]] = []
    for row in table.itertuples(index=False, name=None):
        *cell, count = row
        rows.append((tuple(map(_key, cell)), None if pd.isna(count) else int(count)))
    return rows


def _key(value: Any) -> Key:
    """Return a key that is equal for equal values: 1 and 1.0 on another day, but neither "1" nor true."""
    import pandas as pd

    if pd.isna(value):
        return "missing", None
    if isinstance(value, str):
        return "text", value
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, Number):
        return "number", value
    return type(value).__name__, value


def _names(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the names of cells; where two would be the same, as those of 7 and "7", texts are in quotation marks."""
    plain = [joined([key_text(value) for _, value in cell]) for cell in cells]
    often = Counter(plain)
    for cell, name in zip(cells, plain, strict=True):
        if often[name] > 1:
            name = joined([key_text(value, quoted=kind == "text") for kind, value in cell])  # noqa: PLW2901
        yield name or "count"


def _in_order(tables: Sequence[pd.DataFrame]) -> list[Cell]:
    """Return every cell once, in the order that all tables have; else by keys, where these compare."""
    import pandas as pd

    keys = [table.iloc[:, :-1] for table in reversed(tables)]
    if all(one.equals(keys[0]) for one in keys[1:]):
        return list(dict.fromkeys(cell for cell, _ in _rows(tables[-1])))  # the order of a declared domain
    cells = list(dict.fromkeys(cell for table in reversed(tables) for cell, _ in _rows(table)))
    columns = range(len(cells[0])) if cells else range(0)
    # By column, and as objects: a number stays what it is.
    values: Any = pd.DataFrame(
        {column: pd.Series([cell[column][1] for cell in cells], dtype="object") for column in columns}
    )
    if values.empty:
        return cells
    with suppress(TypeError):  # the same column held keys of another kind on another day
        values = values.sort_values(by=list(columns), na_position="last", kind="stable")
    return [cells[place] for place in values.index]
