"""Files of offices: sheets of Excel workbooks, as rows of a job, and perturbation tables, which are public, as CSV.

A sheet is written as CSV in memory and read as that; no column may have cells of several kinds.
"""

from __future__ import annotations

import codecs
import csv
import math
import re
import warnings
from collections.abc import Callable
from datetime import date, datetime, time
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.jobs.sources.source import check_unique
from pkdp_pipeline.model.wording import INSTALLED

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.source_tables import FileSourceTable

_MERGED = re.compile(rb"""<(?:\w+:)?mergeCell\s[^>]*?ref=["']([A-Z0-9:]+)["']""")


def write_as_csv(file: str, table: FileSourceTable, text: codecs.StreamWriter) -> tuple[str, ...]:
    """Write a workbook's sheet as CSV, and return the names of its columns; rows that are empty are left out.

    Raises `ConfigError` if openpyxl is not installed, there is no such sheet, its first row does not name its columns,
    or a column has cells of several kinds, a formula or an error.
    """
    cells, merged = _sheet(file, table.sheet)
    rows = [row for row in cells if any(value is not None for value in row)]
    header = [value for value in rows[0] if value is not None] if rows else []
    if header != (rows or [[]])[0][: len(header)] or not header or not all(isinstance(name, str) for name in header):
        raise ConfigError(f"source {file!r}: the first row of the sheet must name every column, from the first one on.")
    check_unique(header, f"source {file!r}")
    if (lost := next((cells for cells, first in merged if first <= len(header)), None)) is not None:
        raise ConfigError(
            f"source {file!r}: the cells {lost} are merged, and all but the first of them hold nothing: unmerge them, "
            "and write into each what it stands for."
        )
    if any(value is not None for row in rows for value in row[len(header) :]):
        raise ConfigError(f"source {file!r}: the sheet has cells right of the last column that has a name; name it.")
    columns = [[row[place] if place < len(row) else None for row in rows[1:]] for place in range(len(header))]
    texts = [_texts(name, values, file, table) for name, values in zip(header, columns, strict=True)]
    writer = csv.writer(text, delimiter=table.delimiter, quoting=csv.QUOTE_ALL)
    writer.writerows([header, *zip(*texts, strict=True)])
    return tuple(header)


def _sheet(file: str, sheet: str | None) -> tuple[list[list[Any]], list[tuple[str, int]]]:
    """Return the cells of a sheet, row by row, and its merged ranges, each with the number of its first column."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ConfigError(f"Excel workbooks need openpyxl: {INSTALLED.format('excel')}.") from None
    sheets: list[str] = []
    try:
        with warnings.catch_warnings(action="ignore"):  # about what is not read: charts, validations
            book = load_workbook(file, read_only=True)
            sheets = [worksheet.title for worksheet in book.worksheets]
            name = sheets[0] if sheet is None and len(sheets) == 1 else sheet
            if name in sheets:
                book[name].reset_dimensions()  # not every program writes them
                rows = [[_content(cell) for cell in row] for row in book[name].iter_rows()]
                return rows, _merged(book[name])
    except Exception:  # whose words could quote a cell
        sheets = []
    if sheets:
        names = ", ".join(map(repr, sheets))
        raise ConfigError(f"source {file!r} has the sheets {names}: name one, as in sheet = {sheets[0]!r}.")
    raise ConfigError(f"source {file!r} cannot be read as an Excel workbook (.xlsx, without a password).")


def _merged(sheet: Any) -> list[tuple[str, int]]:
    """Return the merged ranges of a sheet, which openpyxl does not tell of sheets that it only reads."""
    from openpyxl.utils import range_boundaries

    with sheet._get_source() as xml:
        ranges = [match[1].decode() for match in _MERGED.finditer(xml.read())]
    return [(cells, range_boundaries(cells)[0]) for cells in ranges]


def _content(cell: Any) -> Any:
    return object() if cell.data_type in ("f", "e") else cell.value  # formulas and errors are of no kind


def _texts(column: str, values: list[Any], file: str, table: FileSourceTable) -> list[str]:
    """Return the cells of a column as CSV has them."""
    values = ["" if value is None or value in table.null else value for value in values]
    number = (int, float)
    kinds = {number if type(value) in number else type(value) for value in values if value != ""}
    if len(kinds) > 1 or kinds - {str, number, bool, date, datetime}:
        raise ConfigError(
            f"column {column!r} of source {file!r} must hold cells of one kind (text, numbers, dates, or TRUE and "
            "FALSE), and no formulas or errors: correct them, or format the whole column as text and enter it anew."
        )
    if any(type(value) in number and abs(value) >= 10**15 for value in values):
        raise ConfigError(f"column {column!r} of source {file!r}: Excel keeps 15 digits of a number; store it as text.")
    days = all(value == "" or value.time() == time() for value in values) if kinds == {datetime} else kinds == {date}
    form = table.date_format or "%Y-%m-%d"
    if kinds <= {date, datetime}:
        form += "" if days and table.types.get(column) != "timestamp" else "T%H:%M:%S.%f"
        return [value and value.strftime(form) for value in values]
    if kinds == {number}:
        whole = [int(value) if value != "" and value == int(value) else value for value in values]
        return [str(value).replace(".", table.decimal) for value in whole]
    return [str(value) for value in values]


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
