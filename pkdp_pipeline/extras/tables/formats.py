"""Formats of offices and their programs: CSV on the Web, JSON-stat, SDMX-CSV; and the files that a job writes in them.

CSV has metadata as the W3C has them. JSON-stat 2.0 is a cube of counts with the status of each cell, and SDMX-CSV 2.0
gives each observation's status and confidentiality.

Workbooks as statistics offices write them: a cover, notes, and one table a sheet, also as a cross-table.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import decimal
import io
import json
import math
import re
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pandas as pd

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.extras.tables.published import (
    PublishedRows,
    labelled,
    marker,
    marks,
    notes,
    period,
    safe,
    title,
    told_apart,
)
from pkdp_pipeline.model.keys import Cell, Key, canonical_key, plain
from pkdp_pipeline.model.mechanisms import cells_per_unit
from pkdp_pipeline.model.period import MISSING, key_text
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
    remark += (
        " Totals that hidden counts leave open are intervals; where every count is noised there are none." * margins
    )
    return {"Cross-table": ([remark], [*down, *headers], rows)}


def _key(value: Any) -> Key:
    """Return the key that stands on a cross-table's axis as `told_apart` has it."""
    if value == MISSING:
        return None
    return canonical_key(value[1:-1] if isinstance(value, str) and value.strip('"') == MISSING else value)


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


_DATATYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "double"),
    (decimal.Decimal, "decimal"),
    (datetime.datetime, "datetime"),
    (datetime.date, "date"),
)


def csv_files(release: Release, name: str, suppressed: str | None) -> tuple[bytes, bytes]:
    """Return a table as CSV (RFC 4180, UTF-8), and its metadata, which name it by `name`; see `Release.to_csv`."""
    mark, table = marker(release.certificate.mechanism, suppressed), PublishedRows.of(release)
    text = io.StringIO(newline="")
    writer, texts = csv.writer(text, lineterminator="\r\n"), [_is_text(table, place) for place in range(len(table.by))]
    writer.writerow([*map(safe, table.by), table.number, *(["exact"] if table.marked else [])])
    for row in table.rows:
        shown = table.shown(row)
        exact = [] if not table.marked else ["" if shown is None else plain(row.exact)]
        # A missing key among texts is written out, and named as null: the empty text is another key.
        keys = [MISSING if key is None and text else _field(key) for key, text in zip(row.keys, texts, strict=True)]
        writer.writerow([*keys, mark if shown is None else shown, *exact])
    return text.getvalue().encode(), _metadata(release, table, name, mark)


def _field(value: Key) -> str:
    return safe(str(told_apart(value))) if isinstance(value, str) else plain(value)


def _is_text(table: PublishedRows, place: int) -> bool:
    return _datatype(table, place) == "string"


def _metadata(release: Release, table: PublishedRows, name: str, mark: str) -> bytes:
    columns: list[dict[str, Any]] = []
    for place, column in enumerate(table.by):
        columns.append({"name": f"key_{place + 1}", "titles": safe(column), "datatype": _datatype(table, place)})
        if _is_text(table, place):
            columns[-1]["null"] = [MISSING]
    count = {"datatype": "string"} if table.bands is not None else {"datatype": "integer"}
    columns.append({"name": table.number, "titles": table.number, **count, "null": [mark]})
    if table.marked:
        columns.append({"name": "exact", "titles": "exact", "datatype": "boolean"})
    document = {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
        "url": quote(name),
        "dc:title": title(release),
        "dc:description": " ".join(notes(release, mark)),
        "dc:identifier": release.id,
        "notes": [json.loads(release.certificate.to_json())],
        "tableSchema": {"columns": columns},
    }
    return f"{json.dumps(document, ensure_ascii=False, indent=1)}\n".encode()


def _datatype(table: PublishedRows, place: int) -> str:
    values = [row.keys[place] for row in table.rows if row.keys[place] is not None]
    return next(
        (name for kind, name in _DATATYPES if values and all(isinstance(value, kind) for value in values)), "string"
    )


_MAX_CELLS = 1_000_000
"""A cube has a place for every combination of keys, also for those that no row has."""


def json_stat_bytes(release: Release, suppressed: str | None) -> bytes:
    """Return a table as a JSON-stat 2.0 dataset; see `Release.to_json_stat`."""
    mark, table, time = marker(release.certificate.mechanism, suppressed), PublishedRows.of(release), period(release)
    indices = [_index([row.keys[place] for row in table.rows]) for place in range(len(table.by))]
    sizes = [len(index) for index in indices]
    _check_cube(sizes)
    context = release.certificate.context
    # A combination without a row is left out by the declared domain; otherwise it is hidden, if it is there at all.
    listed = context is not None and context.cells == "declared"
    values: list[int | str | None] = [None] * math.prod(sizes)
    status: dict[str, str] = {} if listed else dict.fromkeys(map(str, range(len(values))), mark)
    for row in table.rows:
        place = 0
        for index, key in zip(indices, row.keys, strict=True):
            place = place * len(index) + index[key]
        # The first count of a band is no count: its text is the status.
        values[place] = None if table.bands is not None else row.count
        status.pop(str(place), None)
        if row.count is None:
            status[str(place)] = mark
        elif table.marked and not row.exact:
            status[str(place)] = "≈"
        elif table.bands is not None:
            status[str(place)] = str(table.shown(row))
    dimensions: dict[str, Any] = {
        _free(name, table.by): {"label": name, "category": _category(index)}
        for name, index in zip(table.by, indices, strict=True)
    }
    ids, role = list(dimensions), {"metric": ["metric"]}
    if time is not None:
        dimensions["period"] = {"label": "period", "category": {"index": [time], "label": {time: time}}}
        role["time"] = ["period"]
    label = "people" if table.number == "count" else title(release)
    metric = {"index": [table.number], "label": {table.number: label}}
    dimensions["metric"] = {"label": "metric", "category": metric}
    document = {
        "version": "2.0",
        "class": "dataset",
        "label": title(release),
        "note": notes(release, mark),
        "id": [*ids, *(["period"] if time is not None else []), "metric"],
        "size": [*sizes, *([1] if time is not None else []), 1],
        "role": role,
        "dimension": dimensions,
        "value": values,
        "status": status,
        "extension": {"release_id": release.id, "certificate": json.loads(release.certificate.to_json())},
    }
    return f"{json.dumps(document, ensure_ascii=False)}\n".encode()


def _check_cube(sizes: Sequence[int]) -> None:
    if math.prod(sizes) > _MAX_CELLS:
        raise ArgumentError(
            f"the cube would have more than {_MAX_CELLS:,} cells, since it has one for every combination of keys: "
            "publish fewer by-columns, or write CSV or Parquet."
        )


def check_size(formats: Collection[str], cells: Sequence[Cell]) -> None:
    """Refuse a declared domain that a job's formats cannot hold; raises `ArgumentError`."""
    if not {"xlsx", "xlsx-estimates"}.isdisjoint(formats):
        check_rows(len(cells))
    if "json-stat" in formats:
        _check_cube([len(set(keys)) for keys in zip(*cells, strict=True)])


def _index(keys: list[Key]) -> dict[Key, int]:
    """Return each value's place, in the order of the rows."""
    return {key: place for place, key in enumerate(dict.fromkeys(keys))}


def _category(index: dict[Key, int]) -> dict[str, Any]:
    codes = [labelled(key) for key in index]
    if len(set(codes)) < len(codes):
        codes = [str(place) for place in index.values()]
    return {"index": codes, "label": dict(zip(codes, map(labelled, index), strict=True))}


def _free(name: str, names: tuple[str, ...]) -> str:
    """Return the identifier of a dimension: its name, unless the cube has that for its own."""
    identifier = name
    while identifier in ("period", "metric") or (identifier != name and identifier in names):
        identifier = f"by_{identifier}"
    return identifier


_DATAFLOW = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:[A-Za-z0-9_@$-]+\(\d+(\.\d+)*\)")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")
_OWN = (
    "STRUCTURE",
    "STRUCTURE_ID",
    "ACTION",
    "TIME_PERIOD",
    "OBS_VALUE",
    "OBS_STATUS",
    "CONF_STATUS",
    "COMMENT_OBS",
    "RELEASE_ID",
)

_NORMAL, _ESTIMATED, _SUPPRESSED = "A", "E", "Q"
"""Codes of CL_OBS_STATUS: a normal value, an estimated one, a missing one that is suppressed."""

_FREE, _CONFIDENTIAL = "F", "C"
"""Codes of CL_CONF_STATUS."""


def sdmx_csv_bytes(release: Release, suppressed: str | None, dataflow: str) -> bytes:
    """Return a table as SDMX-CSV 2.0; see `Release.to_sdmx_csv`."""
    if not isinstance(dataflow, str) or _DATAFLOW.fullmatch(dataflow) is None:
        raise ArgumentError('dataflow must name an agency, a dataflow and its version, as in "OFFICE:PATIENTS(1.0)".')
    mark, table, time = marker(release.certificate.mechanism, suppressed), PublishedRows.of(release), period(release)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    times = [] if time is None else ["TIME_PERIOD"]
    observed = ["OBS_VALUE", "OBS_STATUS", "CONF_STATUS", "COMMENT_OBS", "RELEASE_ID"]
    writer.writerow(["STRUCTURE", "STRUCTURE_ID", "ACTION", *_identifiers(table.by), *times, *observed])
    for row in table.rows:
        shown = table.shown(row)
        if row.count is None:
            values = ["", _SUPPRESSED, _CONFIDENTIAL, mark]
        else:
            # The first count of a band is no count: its text is the comment.
            observed_value = "" if table.bands is not None else str(row.count)
            status = _NORMAL if row.exact and not table.rough else _ESTIMATED
            values = [observed_value, status, _FREE, str(shown) if table.bands is not None else ""]
        keys = ["_Z" if key is None else safe(plain(key)) if isinstance(key, str) else plain(key) for key in row.keys]
        writer.writerow(["dataflow", dataflow, "I", *keys, *([] if time is None else [time]), *values, release.id])
    return text.getvalue().encode()


def _identifiers(names: tuple[str, ...]) -> list[str]:
    """Return the identifiers of dimensions: names in capitals, with other signs than letters and digits replaced."""
    identifiers = [
        _NOT_IN_NAMES.sub("_", name).strip("_").upper() or f"DIM_{place + 1}" for place, name in enumerate(names)
    ]
    for place, identifier in enumerate(identifiers):
        while identifier in _OWN or identifier[0].isdigit() or identifiers.count(identifier) > 1:
            identifier = identifiers[place] = f"DIM_{place + 1}_{identifier}"  # noqa: PLW2901 - until it is its own
    return identifiers


_Releases = Mapping[str, "Release"]
_About = Mapping[str, str]


def _content(written: Callable[[], bytes]) -> bytes | str:
    """Return what a file holds, or why it cannot hold a table: that is published already, so nothing is refused."""
    try:
        return written()
    except ArgumentError as error:
        return str(error)


def workbook(releases: _Releases, suppressed: str | None, about: _About) -> Mapping[str, bytes | str]:
    """Return ``tables.xlsx``, a sheet for each release; see `jobs.outputs.Format`."""
    content = _content(lambda: workbook_bytes(releases, suppressed, about))
    return {"tables.xlsx": content} if releases else {}


def estimates_workbook(releases: _Releases, suppressed: str | None, about: _About) -> Mapping[str, bytes | str]:
    """Return ``estimates.xlsx``, which also has what counts of secret samples say of their populations."""
    sampled = [name for name, release in releases.items() if release.certificate.attacker.sampled]
    counts = [name for name in sampled if PublishedRows.of(releases[name]).number == "count"]
    content = _content(
        lambda: workbook_bytes(releases, suppressed, about, {name: releases[name].estimate() for name in counts})
    )
    return {"estimates.xlsx": content} if releases else {}


def csv_on_the_web(releases: _Releases, suppressed: str | None, _: _About) -> Mapping[str, bytes]:
    """Return ``NAME.csvw.csv`` of each release, and its metadata."""
    files: dict[str, bytes] = {}
    for name, release in releases.items():
        file = f"{name}.csvw.csv"
        files[file], files[f"{file}-metadata.json"] = csv_files(release, file, suppressed)
    return files


def json_stat(releases: _Releases, suppressed: str | None, _: _About) -> Mapping[str, bytes | str]:
    """Return ``NAME.json-stat.json`` of each release."""
    return {
        f"{name}.json-stat.json": _content(partial(json_stat_bytes, release, suppressed))
        for name, release in releases.items()
    }


def sdmx_csv(releases: _Releases, suppressed: str | None, _: _About) -> Mapping[str, bytes]:
    """Return ``NAME.sdmx.csv`` of each release; its dataflow has the release's name in capitals."""
    return {
        f"{name}.sdmx.csv": sdmx_csv_bytes(release, suppressed, f"LOCAL:{name.upper()}(1.0)")
        for name, release in releases.items()
    }
