"""Key columns of a release as tables hold them: their names, kinds and values."""

from __future__ import annotations

import decimal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.model.keys import Key, canonical_key
from pkdp_pipeline.releases.release import Release

__all__ = ["PublicColumn", "exactly_real", "key_columns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicColumn:
    """One key column.

    Parameters
    ----------
    name : str
    kind : str
        ``text``, ``boolean``, ``integer``, ``natural`` (above a signed 64-bit integer), ``decimal``, ``real``,
        ``date``, ``timestamp`` or ``instant``.
    values : tuple
        Canonical keys, None where missing.
    digits, scale : int
        Of decimals: all digits, and those behind the point.
    nanoseconds : bool
        Of timestamps and instants: whether one of them is finer than a microsecond.
    """

    name: str
    kind: str
    values: tuple[Key, ...]
    digits: int = 0
    scale: int = 0
    nanoseconds: bool = False


def key_columns(release: Release) -> tuple[PublicColumn, ...]:
    """Return the key columns of a release, in its order, with the types that its Parquet file has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(pa.BufferReader(release.to_bytes())).read(use_threads=False)
    return tuple(_column(name, table.column(place)) for place, name in enumerate(table.column_names[:-1]))


def exactly_real(values: Iterable[Key]) -> bool:
    """Return whether each of these numbers is one that a column of floats holds as it is."""
    return all(
        value is None or isinstance(value, float) or decimal.Decimal(float(value)) == decimal.Decimal(value)
        for value in values
    )


def _column(name: str, keys: Any) -> PublicColumn:
    import pyarrow as pa

    kinds = {
        "boolean": pa.types.is_boolean,
        "natural": pa.types.is_unsigned_integer,
        "integer": pa.types.is_integer,
        "real": pa.types.is_floating,
        "decimal": pa.types.is_decimal,
        "date": pa.types.is_date,
        "instant": lambda held: pa.types.is_timestamp(held) and held.tz is not None,
        "timestamp": pa.types.is_timestamp,
    }
    held = keys.type
    kind = next((kind for kind, matches in kinds.items() if matches(held)), "text")
    values = tuple(map(canonical_key, keys.to_pylist()))
    digits, scale = (held.precision, held.scale) if kind == "decimal" else (0, 0)
    fine = kind in ("timestamp", "instant") and any(value is not None and value.nanosecond for value in values)
    return PublicColumn(name=name, kind=kind, values=values, digits=digits, scale=scale, nanoseconds=fine)
