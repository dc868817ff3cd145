"""Tables: public tables as text, and as one series over many periods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.report.content import PublishedTable, Series
from pkdp_pipeline.report.plain_text import key_text, printable

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.release import Release

__all__ = ["MOST_CELLS", "MOST_PERIODS", "MOST_ROWS", "published_table", "series_of"]

MOST_ROWS = 1000
"""So many rows of a table are shown; the others are in the files."""

MOST_CELLS = 40
"""So many cells of a series are shown, those that are published most often."""

MOST_PERIODS = 400
"""So many periods of a series are shown, the latest ones."""

Cell = tuple[str, ...]


def published_table(table: pd.DataFrame, most: int = MOST_ROWS) -> PublishedTable:
    """Return a public table as text, with `most` rows at most."""
    rows = _rows(table)
    return PublishedTable(
        columns=tuple(printable(column) for column in table.columns[:-1]),
        keys=tuple(key for key, _ in rows[:most]),
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
        cells=tuple(" / ".join(cell) or "count" for cell in cells),
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
        rows.append((tuple(map(key_text, cell)), None if pd.isna(count) else int(count)))
    return rows


def _in_order(tables: Sequence[pd.DataFrame]) -> list[Cell]:
    """Return every cell once, in the order that all tables have; else by keys, where these compare."""
    import pandas as pd

    keys = [table.iloc[:, :-1] for table in reversed(tables)]
    if all(one.equals(keys[0]) for one in keys[1:]):
        return list(dict.fromkeys(cell for cell, _ in _rows(tables[-1])))  # the order of a declared domain
    together: Any = pd.concat([one.astype("object") for one in keys], ignore_index=True)
    if not together.shape[1]:
        return [()]
    together = together.drop_duplicates(ignore_index=True)
    with suppress(TypeError):  # the same column held keys of another kind on another day
        together = together.sort_values(by=list(together.columns), na_position="last", ignore_index=True)
    cells = (tuple(map(key_text, row)) for row in together.itertuples(index=False, name=None))
    return list(dict.fromkeys(cells))
