"""Formats of offices and their programs: CSV on the Web, JSON-stat, SDMX-CSV; and the files that a job writes in them.

CSV has metadata as the W3C has them. JSON-stat 2.0 is a cube of counts with the status of each cell, and SDMX-CSV 2.0
gives each observation's status and confidentiality.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.tables.published import (
    PublishedRows,
    labelled,
    marker,
    notes,
    period,
    safe,
    title,
    told_apart,
)
from pkdp_pipeline.extras.tables.workbook import check_rows, workbook_bytes
from pkdp_pipeline.model.keys import Cell, Key, plain
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
