"""Arrow columns as the values that they hold, whatever keeps them: a dictionary may hold one value twice, or none."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from pkdp_pipeline.errors import ArgumentError

#: More digits than DuckDB's decimals have.
DIGITS = 38

_MAX_DIGITS = 76


def plain_type(kind: Any) -> Any:
    """Return the one Arrow type for what a column of this type holds: its own, unless it is but another layout."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_null(kind) or _is_uuid(kind):
        return pa.string()
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_decimal(kind):
        # A negative scale leaves out zeros before the point, and few libraries have one.
        digits, scale = kind.precision - min(0, kind.scale), max(0, kind.scale)
        if digits <= DIGITS:
            return pa.decimal128(digits, scale)
        return pa.decimal256(digits, scale) if digits <= _MAX_DIGITS else pa.string()
    return kind


def plain_column(name: str, column: Any) -> Any:
    """Return an Arrow column, chunked, under its plain type.

    Raises `ArgumentError`, which names the column, where Arrow cannot read its layout.
    """
    import pyarrow as pa

    if plain_type(column.type) == column.type:
        return column
    problem = ""
    try:
        return pa.chunked_array(map(_plain, column.chunks), plain_type(column.type))
    except pa.ArrowException as error:  # whose words could quote a value
        problem = type(error).__name__
    raise ArgumentError(
        f"column {name!r} has type {column.type}, which cannot be read ({problem}); cast it in the frame, for example "
        "to text."
    )


def plain_table(table: Any, names: Iterable[str]) -> Any:
    """Return an Arrow table in which these columns have their plain types."""
    for name in names:
        position = table.schema.get_field_index(name)
        if position >= 0:
            table = table.set_column(position, name, plain_column(name, table.column(position)))
    return table


def unread(table: Any) -> list[str]:
    """Return the names of columns of an Arrow table whose type Narwhals refuses to read: decimals of negative scale."""
    import pyarrow as pa

    return [field.name for field in table.schema if pa.types.is_decimal(field.type) and field.type.scale < 0]


def untyped(table: Any) -> list[str]:
    """Return the names of columns of an Arrow table that have no type, all missing."""
    import pyarrow as pa

    return [
        field.name
        for field in table.schema
        if pa.types.is_null(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
    ]


def _plain(values: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        return _plain(values.dictionary).take(values.indices)
    if pa.types.is_run_end_encoded(values.type):
        return _plain(pc.run_end_decode(values))
    if _is_uuid(values.type):
        coded = values.cast(values.type.storage_type).dictionary_encode()
        texts = [str(uuid.UUID(bytes=raw)) for raw in coded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(coded.indices)
    return values.cast(plain_type(values.type))


def _is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"
