"""Chart: columns of numbers over time, in characters; plain ones where the terminal knows no others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_BLOCKS = " ▁▂▃▄▅▆▇█"
_PLAIN = str.maketrans("┤└─┄×▁▂▃▄▅▆▇█", "|+--x___#####")
_EQUAL = 1e-9  # heights are rounded up, and may pass a mark that they reach exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A height that is drawn across the chart, and what it is called."""

    height: float
    name: str


def columns_chart(
    heights: Sequence[float],
    marks: Sequence[Mark] = (),
    *,
    width: int,
    first: str,
    last: str,
    rows: int = 8,
    plain: bool = False,
) -> list[str]:
    """Return the lines of a chart.

    Parameters
    ----------
    heights : sequence of float
        At least 0, from left to right; `math.inf` fills its column and is drawn as ``×``.
    marks : sequence of Mark
        Drawn as lines across it; only a height that exceeds a mark reaches into its line.
    width : int
        At most so many characters; columns that do not fit are left out evenly, never the last one.
    first, last : str
        Written below the first and the last column.
    rows : int
        Height in lines.
    plain : bool
        ASCII only.
    """
    finite = [height for height in (*heights, *(mark.height for mark in marks)) if height < math.inf]
    scale = _ceiling(max(finite, default=0.0))
    labels = {rows: f"{scale:g}", rows // 2: f"{scale * (rows // 2) / rows:.3g}", 0: "0"}
    margin = max(len(label) for label in labels.values()) + 1
    names = max((len(mark.name) + 1 for mark in marks), default=0)
    room = max(10, width - margin - 2 - names)
    places = _thinned(len(heights), room)
    shown = [heights[place] for place in places]
    each = max(1, min(3, room // max(1, len(shown))))
    across = {_row(mark.height, scale, rows): mark for mark in sorted(marks, key=lambda mark: -mark.height)}
    lines = []
    for row in range(rows, 0, -1):
        mark = across.get(row)
        cells = "".join(_cell(height, scale, rows, row, mark=mark, each=each) for height in shown)
        end = f" {mark.name}" if mark is not None else ""
        lines.append(f"{labels.get(row, '').rjust(margin)} ┤{cells}{end}".rstrip())
    lines.append(f"{labels[0].rjust(margin)} └{'─' * (each * len(shown))}")
    gap = each * len(shown) - len(first) - len(last)
    ends = f"{first}{' ' * gap}{last}" if gap > 0 else " - ".join(dict.fromkeys((first, last)))
    lines.append(" " * (margin + 2) + ends)
    return [line.translate(_PLAIN) for line in lines] if plain else lines


def _ceiling(height: float) -> float:
    """Return the next round number."""
    if height < 1e-300:
        return 1.0
    size = 10.0 ** math.floor(math.log10(height))
    return next(
        float(f"{factor * size:.3g}") for factor in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if factor * size >= height
    )


def _thinned(number: int, room: int) -> list[int]:
    """Return the places of the columns that are shown, the last one among them."""
    if number <= room:
        return list(range(number))
    return [number - 1 - position * (number - 1) // (room - 1) for position in reversed(range(room))]


def _row(height: float, scale: float, rows: int) -> int:
    return min(rows, max(1, math.ceil(height / scale * rows)))


def _cell(height: float, scale: float, rows: int, row: int, *, mark: Mark | None, each: int) -> str:
    """Return one column's piece of one line."""
    across = " " if mark is None else "┄"
    if height == math.inf:
        block = "×"
    elif mark is not None:
        # What is within the mark must not be taken for more: it ends below the line, what exceeds it covers it.
        block = "█" if height > mark.height * (1.0 + _EQUAL) else across
    else:
        block = _BLOCKS[min(8, max(0, math.ceil((height / scale * rows - (row - 1)) * 8)))]
    return block * max(1, each - 1) + across * (each > 1)
