"""Types of PostgreSQL columns: what they hold, how they are fetched, and under which type they are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.engines.duckdb.statements import quoted
from pkdp_pipeline.jobs.sources.source import Kind

__all__ = ["PostgresColumn", "column_of"]

_PLAIN: Mapping[str, Kind] = {
    "bool": "boolean",
    "int2": "number",
    "int4": "number",
    "int8": "number",
    "float4": "real",
    "float8": "real",
}
_TIMES: Mapping[str, tuple[Kind, str, str]] = {
    "date": ("date", "DATE", ""),
    "timestamp": ("timestamp", "TIMESTAMP", ""),
    "timestamptz": ("instant", "TIMESTAMPTZ", " 00:00:00+00"),
}
#: Arrow knows them as text, but two spellings of one value are two texts.
_NO_TEXT = ("json", "jsonb", "xml")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresColumn:
    """One column of a table or a query.

    Parameters
    ----------
    kind : str
        What it holds; "other" where it cannot be fetched.
    fetched : str
        SQL for PostgreSQL.
    counted : str
        SQL for DuckDB, from what was fetched.
    fix : str
        What to write in a query where the kind is "other".
    """

    kind: Kind
    fetched: str
    counted: str
    fix: str = ""

    def present(self) -> str:
        """Return SQL for PostgreSQL: whether there is a value, which NaN is not."""
        number = f" AND {self.fetched} <> 'NaN'" if self.kind == "real" else ""
        return f"({self.fetched} IS NOT NULL{number})"


def column_of(field: Any) -> PostgresColumn:
    """Return a column as the driver describes it: an Arrow field with PostgreSQL's own type in its metadata."""
    import pyarrow as pa

    name = quoted(field.name)
    metadata: Mapping[bytes, bytes] = field.metadata or {}
    sql_type = metadata.get(b"POSTGRESQL:type", b"").decode()
    if sql_type in _PLAIN:
        return PostgresColumn(kind=_PLAIN[sql_type], fetched=name, counted=name)
    if sql_type in _TIMES:
        kind, word, zone = _TIMES[sql_type]
        # Infinity, and years that have no name in Python, are no values: nothing could be published under them.
        limits = f"{word} '0001-01-01{zone}' AND {word} '9999-12-31{zone}'"
        return PostgresColumn(kind=kind, fetched=f"CASE WHEN {name} BETWEEN {limits} THEN {name} END", counted=name)
    if sql_type == "numeric":
        return _numeric(name, int(metadata.get(b"POSTGRESQL:typmod", b"-1")))
    if sql_type == "uuid" or (pa.types.is_string(field.type) and sql_type not in _NO_TEXT):
        return PostgresColumn(kind="text", fetched=f"CAST({name} AS text)", counted=name)
    return PostgresColumn(kind="other", fetched=name, counted=name, fix=f"CAST({name} AS text) AS {name}")


def _numeric(name: str, typmod: int) -> PostgresColumn:
    """Return a column of decimals; the type modifier holds precision and scale."""
    precision, scale = (typmod - 4) >> 16 & 0xFFFF, (typmod - 4) & 0x7FF
    if typmod < 4 or not 0 <= scale <= precision <= 38:
        return PostgresColumn(kind="other", fetched=name, counted=name, fix=f"CAST({name} AS numeric(18, 2)) AS {name}")
    # Arrow has no type for them that keeps every digit, so they travel as text.
    fetched = f"CAST(NULLIF({name}, 'NaN') AS text)"
    return PostgresColumn(kind="number", fetched=fetched, counted=f"CAST({name} AS DECIMAL({precision}, {scale}))")
