"""Workbooks as statistics offices write them: a cover, notes, and one table a sheet."""

from __future__ import annotations

import datetime
import io
import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.extras.tables.published import PublishedRows, labelled, marker, marks, notes, title
from pkdp_pipeline.model.keys import Key
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
_NOTE_WIDTH, _LINE_HEIGHT = 80, 15
"""Characters of a line of text on paper, and its height in points."""


def check_rows(rows: int) -> None:
    """Refuse a table that is longer than a sheet; raises `ArgumentError`."""
    if rows > _MAX_ROWS:
        raise ArgumentError(f"a sheet has at most {_MAX_ROWS:,} rows: write CSV or Parquet.")


def workbook_bytes(
    releases: Mapping[str, Release], suppressed: str | None, about: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """Return a workbook with a sheet for each release, by its name; see `Release.to_excel`.

    `about`: of title, publisher and contact those that the cover names.
    """
    try:
        from xlsxwriter import Workbook
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
    line = 2
    for number, (name, release) in enumerate(releases.items(), start=1):
        mark = marker(release.certificate.mechanism, suppressed)
        sheet = f"Table {number}"
        lines.append(f"{sheet}: {name}. {title(release)}.")
        follows = following_beside(release, [*releases.values()])
        for note in filter(None, [follows.remark, *notes(release, mark)]):
            explained.write_string(line, 0, sheet, wrapped)
            explained.write_string(line, 1, note[:_LONGEST_CELL], wrapped)
            # Not every program finds the height of a wrapped text.
            explained.set_row(line, _LINE_HEIGHT * len(textwrap.wrap(note, _NOTE_WIDTH)))
            line += 1
        _write_table(book, sheet, f"{sheet}: {name}", release, mark, [text or mark for text in follows.texts])
    lines += ['The sheet "Notes" says what marks mean and what is promised.', "Each sheet has one table."]
    cover.write_string(0, 0, about.get("title", "Cover"), strong)
    cover.write_column(1, 0, lines, wrapped)
    for sheet in book.worksheets():
        # On paper a sheet is as wide as the page, and pages say where they belong.
        sheet.fit_to_pages(1, 0)
        sheet.set_footer("&L&A&RPage &P of &N")
    book.close()
    return content.getvalue()


def _write_table(book: Any, name: str, heading: str, release: Release, mark: str, hidden: Sequence[str]) -> None:
    """Write one table: its name, what its marker means, and the rows under a header.

    `hidden`: the text in the place of each row's count where it is not published: the marker, or what follows of it.
    """
    sheet, table = book.add_worksheet(name), PublishedRows.of(release)
    check_rows(len(table.rows))
    noised = book.add_format({"num_format": '"≈ "#,##0;"≈ "-#,##0', "align": "right"})
    exact, text = book.add_format({"num_format": "#,##0"}), book.add_format({"align": "right"})
    sheet.write_string(0, 0, heading, book.add_format({"bold": True, "font_size": 14}))
    narrower = ["Where exact totals tell more of a hidden count, that stands there."] if {*hidden} - {mark} else []
    remarks = [*marks(release, mark), *narrower, 'The sheet "Notes" says what is promised.']
    above = [line for remark in remarks for line in textwrap.wrap(remark, _NOTE_WIDTH)]
    sheet.write_column(1, 0, above)
    first = len(above) + 2
    last = first + max(1, len(table.rows))
    left, right = (book.add_format({"bold": True, "bottom": 1, "align": side}) for side in ("left", "right"))
    names = _headers((*table.by, table.number))
    columns = [{"header": name, "header_format": left} for name in names[:-1]]
    columns.append({"header": names[-1], "header_format": right})
    sheet.repeat_rows(first - 1)
    sheet.add_table(
        first - 1,
        0,
        last - 1,
        len(table.by),
        {"columns": columns, "autofilter": False, "style": "Table Style Light 1"},
    )
    for place, header in enumerate(names):
        # A text beside a filled cell is cut on paper: a column is as wide as its longest one.
        texts = [header, *(labelled(row.keys[place]) for row in table.rows if place < len(table.by))]
        sheet.set_column(place, place, min(60, max(18, *map(len, texts))))
    for line, (row, in_its_place) in enumerate(zip(table.rows, hidden, strict=True), start=first):
        for place, key in enumerate(row.keys):
            _write_key(sheet, line, place, key)
        shown = table.shown(row)
        if isinstance(shown, int):
            sheet.write_number(line, len(table.by), shown, noised if table.marked and not row.exact else exact)
        else:
            sheet.write_string(line, len(table.by), in_its_place if shown is None else shown, text)


def _write_key(sheet: Any, line: int, place: int, key: Key) -> None:
    if key is not None and type(key) in (int, float) and abs(key) < _LONGEST_NUMBER:
        sheet.write_number(line, place, key)
    else:
        if len(text := labelled(key)) > _LONGEST_CELL:
            # What is published can be written: the row tells keys apart that begin alike.
            cut = f"… (cut, row {line})"
            text = text[: _LONGEST_CELL - len(cut)] + cut
        sheet.write_string(line, place, text)


def _headers(names: tuple[str, ...]) -> list[str]:
    """Return names for the columns of a table, of which Excel has no two that differ in letter case only."""
    folded = [name.casefold() for name in names]
    return [f"{name} ({place + 1})" if folded.count(folded[place]) > 1 else name for place, name in enumerate(names)]
