"""JSON-stat 2.0, a cube of counts with the status of each cell."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.tables.published import PublishedRows, labelled
from pkdp_pipeline.extras.tables.words import marker, notes, period, title
from pkdp_pipeline.model.keys import Key

if TYPE_CHECKING:
    from pkdp_pipeline.releases.release import Release

_MAX_CELLS = 1_000_000
"""A cube has a place for every combination of keys, also for those that no row has."""


def json_stat_bytes(release: Release, suppressed: str | None) -> bytes:
    """Return a table as a JSON-stat 2.0 dataset; see `Release.to_json_stat`."""
    mark, table, time = marker(release.certificate.mechanism, suppressed), PublishedRows.of(release), period(release)
    indices = [_index([row.keys[place] for row in table.rows]) for place in range(len(table.by))]
    sizes = [len(index) for index in indices]
    if math.prod(sizes) > _MAX_CELLS:
        raise ArgumentError(
            f"the cube would have more than {_MAX_CELLS:,} cells, since it has one for every combination of keys: "
            "publish fewer by-columns, or write CSV or Parquet."
        )
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
