"""Workbooks as statistics offices write them: a cover, notes, and one table a sheet, also as a cross-table."""

from __future__ import annotations

import contextlib
import datetime
import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.extras.tables.published import PublishedRows, labelled, marker, marks, notes, title
from pkdp_pipeline.model.keys import Key, canonical_key
from pkdp_pipeline.model.mechanisms import cells_per_unit
from pkdp_pipeline.model.spelling import MISSING, key_text
from pkdp_pipeline.model.wording import INSTALLED
from pkdp_pipeline.releases.printed import following_beside

if TYPE_CHECKING:
    from pkdp_pipeline.releases.release import Release

_CREATED = datetime.datetime(2000, 1, 1)
"""A workbook has to say when it was made: a date that tells nothing."""

_LONGEST_CELL = 32_767
_LONGEST_NUMBER = 10**15
"""Excel keeps 15 digits of a number; longer ones are written as text."""

_MAX_ROWS = 1_000_000
_MAX_ACROSS, _MAX_CROSSED = 100, 10_000
"""Columns and counts of a cross-table: more are not read side by side."""

_LONGEST_HEADER = 255
_NOTE_WIDTH, _LINE_HEIGHT = 80, 15
"""Characters of a line of text on paper, and its height in points."""

_WHOLE, _NOISED, _REAL = "#,##0", '"≈ "#,##0;"≈ "-#,##0', "#,##0.0"

_Row = tuple[Sequence[Key], Sequence[tuple[Any, str]]]
"""Keys, and numbers or texts with their formats."""

_Table = tuple[Sequence[str], Sequence[str], Sequence[_Row]]
"""Sentences above a table, its headers and its rows."""


def check_rows(rows: int) -> None:
    """Refuse a table that is longer than a sheet; raises `ArgumentError`."""
    if rows > _MAX_ROWS:
        raise ArgumentError(f"a sheet has at most {_MAX_ROWS:,} rows: write CSV or Parquet.")


def workbook_bytes(
    releases: Mapping[str, Release],
    suppressed: str | None,
    about: Mapping[str, str] = MappingProxyType({}),
    estimates: Mapping[str, pd.DataFrame] = MappingProxyType({}),
) -> bytes:
    """Return a workbook with a sheet for each release, by its name, and its cross-table; see `Release.to_excel`.

    `about`: of title, publisher and contact those that the cover names. `estimates`: further columns of a release's
    rows, by its name, as `Release.estimate` and `weighted` return them.
    """
    try:
        from xlsxwriter import Workbook
        from xlsxwriter.utility import xl_pixel_width
    except ImportError:
        raise ConfigError(f"Excel workbooks are written by xlsxwriter: {INSTALLED.format('excel')}.") from None
    content = io.BytesIO()
    # What a text looks like is never taken for a formula, a number or a link.
    book = Workbook(content, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    book.set_properties({"created": _CREATED, "title": about.get("title", " ".join(releases))})
    strong, wrapped = (
        book.add_format({"bold": True, "font_size": 14}),
        book.add_format({"text_wrap": True, "valign": "top"}),
    )
    cover, explained = book.add_worksheet("Cover"), book.add_worksheet("Notes")
    cover.set_column(0, 0, _NOTE_WIDTH)
    explained.set_column(0, 0, 12)
    explained.set_column(1, 1, _NOTE_WIDTH)
    lines = [f"{key.capitalize()}: {about[key]}" for key in ("publisher", "contact") if key in about]
    explained.write_string(0, 0, "Notes", strong)
    explained.write_row(1, 0, ["Table", "Note"], book.add_format({"bold": True}))
    line, every = 2, [*releases.values()]
    for number, (name, release) in enumerate(releases.items(), start=1):
        mark = marker(release.certificate.mechanism, suppressed)
        lines.append(f"Table {number}: {name}. {title(release)}.")
        follows = following_beside(release, every)
        for note in filter(None, [follows.remark, *notes(release, mark)]):
            explained.write_string(line, 0, f"Table {number}", wrapped)
            explained.write_string(line, 1, note[:_LONGEST_CELL], wrapped)
            # Not every program finds the height of a wrapped text. Letters are narrower than digits.
            letters = len(note) * xl_pixel_width("0" * _NOTE_WIDTH) // xl_pixel_width(note)
            explained.set_row(line, _LINE_HEIGHT * len(textwrap.wrap(note, letters)))
            line += 1
        tables = {"Table": _long(release, [text or mark for text in follows.texts], estimates.get(name))}
        with contextlib.suppress(ArgumentError):  # a value has the name of the margin, or the table would be too large
            tables |= _crossed(release, mark, [every[place] for place in follows.totals])
        narrower = ["Where exact totals tell more of a hidden count, that stands there."] * any(follows.texts)
        for kind, (remarks, headers, rows) in tables.items():
            above = [*remarks, *marks(release, mark), *narrower, 'The sheet "Notes" says what is promised.']
            _write_table(book, f"{kind} {number}", name, above, headers, rows)
        lines += [f"Cross-table {number}: the counts of Table {number} side by side."] * (len(tables) - 1)
    lines += ['The sheet "Notes" says what marks mean and what is promised.', "Each sheet has one table."]
    cover.write_string(0, 0, about.get("title", "Cover"), strong)
    cover.write_column(1, 0, lines, wrapped)
    for sheet in book.worksheets():
        # On paper a sheet is as wide as the page, and pages say where they belong.
        sheet.fit_to_pages(1, 0)
        sheet.set_footer("&L&A&RPage &P of &N")
    book.close()
    return content.getvalue()


def _long(release: Release, hidden: Sequence[str], estimates: pd.DataFrame | None) -> _Table:
    """Return a release's own table, with the columns of `estimates`.

    `hidden`: the text in the place of each row's count where it is not published: the marker, or what follows of it.
    """
    table, remarks = PublishedRows.of(release), list[str]()
    check_rows(len(table.rows))
    further = pd.DataFrame(index=range(len(table.rows))) if estimates is None else estimates.drop(columns=[*table.by])
    if "estimate" in further:
        chance = release.certificate.attacker.sampled
        remarks = [f"estimate is count / {chance}, everybody's chance to be drawn; low to high is an interval of 95 %."]
    elif "weighted" in further:
        remarks = ["weighted is count times a public weight; of those counted it is certainly from least to most."]
    if "error" in further:
        remarks.append("error is the standard error, of the draw and of noise.")
    rows: list[_Row] = []
    for row, text, values in zip(table.rows, hidden, further.to_numpy(dtype=object), strict=True):
        count = table.shown(row)
        cells = [(text if count is None else count, _NOISED if table.marked and not row.exact else _WHOLE)]
        rows.append((row.keys, [*cells, *(("not known" if pd.isna(value) else value, _REAL) for value in values)]))
    return remarks, [*table.by, table.number, *further], rows


def _crossed(release: Release, mark: str, totals: Sequence[Release]) -> Mapping[str, _Table]:
    """Return a table with the values of its last by-column across, as `Release.crosstab` has it; nothing of one column.

    `totals`: exact totals of its groups. Raises `ArgumentError` if the table cannot be shown so.
    """
    table, mechanism = PublishedRows.of(release), release.certificate.mechanism
    if len(table.by) < 2 or table.number != "count" or not 0 < len(table.rows) <= _MAX_CROSSED:
        return {}
    (*down, across), margins = table.by, cells_per_unit(mechanism) == 1
    crossed = release.crosstab(down, across, margins=margins, suppressed=mark, totals=totals)
    headers = [key_text(_key(value)) for value in crossed.columns]
    if len(headers) > _MAX_ACROSS or max(map(len, headers)) > _LONGEST_HEADER:
        return {}
    rows: list[_Row] = []
    for keys, values in zip(crossed.index, crossed.to_numpy(), strict=True):
        cells = [
            (int(value[2:]), _NOISED) if re.fullmatch(r"≈ -?\d+", str(value)) else (value, _WHOLE) for value in values
        ]
        rows.append((list(map(_key, keys if len(down) > 1 else (keys,))), cells))
    remark = f"Down: {', '.join(down)}. Across: {across}."
    remark += " Totals that hidden counts leave open are intervals." * margins
    return {"Cross-table": ([remark], [*down, *headers], rows)}


def _key(value: Any) -> Key:
    """Return the key of a cross-table's axis, whose text it is where it is missing."""
    return None if value == MISSING else canonical_key(value)


def _write_table(
    book: Any, sheet_name: str, name: str, above: Sequence[str], headers: Sequence[str], rows: Sequence[_Row]
) -> None:
    """Write one table on a sheet of its own: its name, sentences on it, and the rows under a header."""
    sheet, keys = book.add_worksheet(sheet_name), len(headers) - (len(rows[0][1]) if rows else 1)
    sheet.write_string(0, 0, f"{sheet_name}: {name}", book.add_format({"bold": True, "font_size": 14}))
    above = [line for remark in above for line in textwrap.wrap(remark, _NOTE_WIDTH)]
    sheet.write_column(1, 0, above)
    first = len(above) + 2
    last = first + max(1, len(rows))
    left, right = (book.add_format({"bold": True, "bottom": 1, "align": side}) for side in ("left", "right"))
    columns = [
        {"header": header, "header_format": left if place < keys else right}
        for place, header in enumerate(_distinct(headers))
    ]
    sheet.repeat_rows(first - 1)
    options = {"columns": columns, "autofilter": False, "style": "Table Style Light 1"}
    sheet.add_table(first - 1, 0, last - 1, len(headers) - 1, options)
    formats = {form: book.add_format({"num_format": form, "align": "right"}) for form in (_WHOLE, _NOISED, _REAL)}
    widths = [max(18 if place < keys else 10, len(column["header"]) + 2) for place, column in enumerate(columns)]
    for line, (labels, cells) in enumerate(rows, start=first):
        for place, key in enumerate(labels):
            _write_key(sheet, line, place, key)
            widths[place] = max(widths[place], len(labelled(key)))
        for place, (value, form) in enumerate(cells, start=keys):
            write = sheet.write_string if isinstance(value, str) else sheet.write_number
            write(line, place, value, formats[form])
            widths[place] = max(widths[place], len(value) if isinstance(value, str) else len(f"{value:,.0f}") + 4)
    for place, width in enumerate(widths):
        # A text beside a filled cell is cut on paper: a column is as wide as its longest one.
        sheet.set_column(place, place, min(60, width))


def _write_key(sheet: Any, line: int, place: int, key: Key) -> None:
    if key is not None and type(key) in (int, float) and abs(key) < _LONGEST_NUMBER:
        sheet.write_number(line, place, key)
    else:
        if len(text := labelled(key)) > _LONGEST_CELL:
            # What is published can be written: the row tells keys apart that begin alike.
            cut = f"… (cut, row {line})"
            text = text[: _LONGEST_CELL - len(cut)] + cut
        sheet.write_string(line, place, text)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names for the columns of a table, of which Excel has no two that differ in letter case only."""
    folded = [name.casefold() for name in names]
    return [f"{name} ({place + 1})" if folded.count(folded[place]) > 1 else name for place, name in enumerate(names)]
