"""Reads public perturbation tables from CSV files, as offices publish them."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from os import PathLike
from pathlib import Path

from pkdp_pipeline.errors import ArgumentError, ConfigError

_MAX_BYTES = 10_000_000
_COLUMNS: dict[str, tuple[Callable[[str], float], str]] = {
    "count": (int, "a whole number from 0 on"),
    "shown": (int, "a whole number from 0 on"),
    "probability": (float, "a number between 0 and 1, with a point"),
}


def read_rows(path: str | PathLike[str]) -> list[tuple[float, ...]]:
    """Return the rows (count, shown, probability) of a CSV file whose first line names these columns, in any order.

    Raises `ConfigError` if it cannot be read, and `ArgumentError` if it is not as described; both name it.
    """
    file = f"the perturbation table {str(path)!r}"
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no path"
        raise ConfigError(f"{file} cannot be read: {reason}.") from None
    if len(content) > _MAX_BYTES:
        raise ArgumentError(f"{file} must be of at most {_MAX_BYTES // 10**6} megabytes.")
    try:
        reader = csv.reader(content.decode("utf-8-sig").splitlines(), strict=True)
        lines = [([cell.strip() for cell in line], reader.line_num) for line in reader if line]
    except (UnicodeDecodeError, csv.Error):
        raise ArgumentError(f"{file} must be a CSV file in UTF-8, with commas: save it as that.") from None
    header = lines[0][0] if lines else []
    if sorted(header) != sorted(_COLUMNS):
        raise ArgumentError(
            f"{file} must have the columns count, shown and probability, named in its first line, separated by commas, "
            "and no others."
        )
    rows = []
    for cells, number in lines[1:]:
        if len(cells) != len(header):
            raise ArgumentError(f"{file}, line {number}, must have a value for each of count, shown and probability.")
        named = dict(zip(header, cells, strict=True))
        rows.append(tuple(_read(named[column], column, f"{file}, line {number}") for column in _COLUMNS))
    return rows


def _read(cell: str, column: str, place: str) -> float:
    kind, what = _COLUMNS[column]
    try:
        value = kind(cell)
    except ValueError:
        value = math.nan
    if math.isnan(value) or value < 0 or (kind is float and value > 1):
        raise ArgumentError(f"{place}, column {column!r}: it must hold {what}.")
    return value
