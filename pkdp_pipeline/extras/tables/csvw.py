"""CSV for spreadsheets and for programs, with metadata as the W3C's "CSV on the Web" has them."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pkdp_pipeline.extras.tables.published import PublishedRows, safe, told_apart
from pkdp_pipeline.extras.tables.words import marker, notes, title
from pkdp_pipeline.model.keys import Key, plain
from pkdp_pipeline.model.spelling import MISSING

if TYPE_CHECKING:
    from pkdp_pipeline.releases.release import Release

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
