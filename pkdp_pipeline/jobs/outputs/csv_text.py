"""A public table as CSV (RFC 4180): text in quotes, numbers and dates without, what is missing empty.

An empty field without quotes is a missing key or a suppressed count; ``""`` is the empty text. PostgreSQL's
``COPY`` reads it so, and DuckDB with ``allow_quoted_nulls = false``.
"""

from __future__ import annotations

import datetime
import decimal
from typing import TYPE_CHECKING

from pkdp_pipeline.model.keys import Key, canonical_key

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["csv_bytes"]


def csv_bytes(table: pd.DataFrame) -> bytes:
    """Return the table as CSV in UTF-8, with a header and lines that end in CR LF; equal tables have equal bytes."""
    columns = [map(canonical_key, table.iloc[:, position].array) for position in range(table.shape[1])]
    lines = [",".join(_field(str(name)) for name in table.columns)]
    lines += [",".join(map(_field, row)) for row in zip(*columns, strict=True)]
    # A line with nothing on it would be skipped by most readers.
    return "".join(f"{line or _EMPTY}\r\n" for line in lines).encode()


_EMPTY = '""'


def _field(value: Key) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        escaped = value.replace('"', '""')
        return f'"{escaped}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.date):  # timestamps and instants, too
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    return repr(value)
