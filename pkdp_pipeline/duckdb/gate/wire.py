"""How an answer travels: as JSON that any language reads without loss, or as an Arrow stream."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.releases.release import Release

__all__ = ["ARROW", "JSON", "Answered", "arrow_stream", "json_document"]

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"

_OUT_OF_RANGE = "<value out of range"
_VALUES, _BYTES = 1_000_000, 2**26
_WIDE = ("HUGEINT", "UHUGEINT")


class Answered(Protocol):
    """What the gate answers: a table derived from releases."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""

    @property
    def types(self) -> Sequence[Any]:
        """Their SQL types."""

    @property
    def releases(self) -> Sequence[Release]:
        """The releases it rests on."""

    def arrow(self) -> Any:
        """Return it as a `pyarrow.Table`."""


def json_document(answer: Answered) -> bytes:
    """Return an answer as JSON.

    Integers are JSON integers of any size. Decimals, dates, times, timestamps (ISO 8601, instants in UTC) and
    UUIDs are text; so are ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``, for JSON has no such numbers. ``null``
    is SQL's NULL alone.

    Raises
    ------
    ArgumentError
        If a column has a type without a form in JSON; Arrow has one, or a cast to VARCHAR helps. Or if it is so
        large that its values, as Python objects, would take much more memory than the table.
    """
    table = answer.arrow()
    if table.num_rows * table.num_columns > _VALUES or table.nbytes > _BYTES:
        raise ArgumentError(
            f"the answer has more than {_VALUES} values or {_BYTES} bytes, too many for JSON: ask for "
            f"{ARROW}, or for less."
        )
    columns = list(zip(answer.columns, map(str, answer.types), strict=True))
    values = [
        _column(name, sql_type, table.column(position).combine_chunks())
        for position, (name, sql_type) in enumerate(columns)
    ]
    document = {
        "columns": [{"name": name, "type": sql_type} for name, sql_type in columns],
        "rows": list(zip(*values, strict=True)),
        "releases": _releases(answer),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def arrow_stream(answer: Answered) -> bytes:
    """Return an answer as an Arrow IPC stream; what JSON says of its releases is in the schema's metadata."""
    import pyarrow as pa

    table = answer.arrow()
    table = table.replace_schema_metadata({"pkdp.releases": json.dumps(_releases(answer))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _releases(answer: Answered) -> list[dict[str, Any]]:
    return [
        {
            "id": release.id,
            "sentence": release.certificate.sentence(),
            "replayed": release.replayed,
            "certificate": json.loads(release.certificate.to_json()),
        }
        for release in answer.releases
    ]


def _column(name: str, sql_type: str, values: Any) -> list[Any]:
    """Return the values of an Arrow array as what `json` writes."""
    import pyarrow as pa
    import pyarrow.types as kind

    arrow = values.type
    if kind.is_dictionary(arrow):
        return _column(name, sql_type, values.dictionary_decode())
    if kind.is_timestamp(arrow):
        # Arrow keeps instants in UTC.
        plain, zone = values.cast(pa.timestamp(arrow.unit)), "" if arrow.tz is None else "+00:00"
        return [text and _moment(name, text) + zone for text in plain.cast(pa.string()).to_pylist()]
    if kind.is_date(arrow) or (kind.is_time(arrow) and sql_type == "TIME"):
        return [text and _moment(name, text) for text in values.cast(pa.string()).to_pylist()]
    if kind.is_list(arrow) or kind.is_large_list(arrow) or kind.is_fixed_size_list(arrow):
        return _lists(values, _column(name, "", values.flatten()))
    if kind.is_struct(arrow):
        fields = {one.name: _column(name, "", part) for one, part in zip(arrow, values.flatten(), strict=True)}
        return [
            {field: inner[row] for field, inner in fields.items()} if valid else None
            for row, valid in enumerate(values.is_valid().to_pylist())
        ]
    write = _written(arrow, sql_type)
    if write is None:
        raise ArgumentError(
            f"column {name!r} has the type {sql_type or arrow}, which JSON cannot hold: cast it to VARCHAR, or ask for "
            f"{ARROW}."
        )
    return [None if value is None else write(value) for value in values.to_pylist()]


def _written(arrow: Any, sql_type: str) -> Callable[[Any], Any] | None:
    """Return what writes a value of an Arrow type, or None for a type without a form in JSON."""
    import pyarrow.types as kind

    if kind.is_floating(arrow):
        return _real
    if kind.is_decimal(arrow):
        # DuckDB's sums of integers are wider than Arrow's integers and travel as decimals.
        return int if sql_type in _WIDE else lambda value: format(value, "f")
    plain = (
        *(kind.is_null, kind.is_boolean, kind.is_integer),
        *(kind.is_string, kind.is_large_string, kind.is_string_view),
    )
    return (lambda value: value) if any(is_plain(arrow) for is_plain in plain) else None


def _real(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _moment(name: str, text: str) -> str:
    """Return Arrow's text as ISO 8601, without a fraction that is zero."""
    if text.startswith(_OUT_OF_RANGE):
        raise ArgumentError(f"column {name!r} holds a date that JSON cannot hold: leave infinite dates out.")
    whole, _, fraction = text.replace(" ", "T").partition(".")
    return f"{whole}.{fraction}" if fraction.strip("0") else whole


def _lists(values: Any, inner: list[Any]) -> list[Any]:
    """Cut the values of all lists into those of each; `flatten` leaves out what is in missing lists."""
    import pyarrow.compute as pc

    found: list[Any] = []
    start = 0
    for length in pc.list_value_length(values).to_pylist():
        if length is None:
            found.append(None)
            continue
        found.append(inner[start : start + length])
        start += length
    return found
