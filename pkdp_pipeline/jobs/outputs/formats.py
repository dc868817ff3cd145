"""The files of a release, in the formats that a job file can name. Another format is a function and a line."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pkdp_pipeline.jobs.outputs.files import write_atomically
from pkdp_pipeline.model.keys import Key, canonical_key
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.tables import OutputTable

__all__ = ["FORMATS", "csv_bytes", "write_files"]


def write_files(output: OutputTable, folder: Path, name: str, release: Release) -> tuple[Path, ...]:
    """Write the files of a release, its certificate among them, and return where."""
    certificate = f"{release.certificate.to_json().rstrip()}\n".encode()
    contents = {suffix: content(release) for suffix, content in FORMATS.items() if suffix in output.formats}
    files = []
    for suffix, content in (contents | {"certificate.json": certificate}).items():
        files.append(folder / f"{name}.{suffix}")
        write_atomically(files[-1], content)
    return tuple(files)


def csv_bytes(release: Release) -> bytes:
    """Return the public table as CSV (RFC 4180) in UTF-8, with a header and lines that end in CR LF.

    Text is in quotes, numbers and dates are not. An empty field without quotes is a missing key or a suppressed count;
    ``""`` is the empty text. PostgreSQL's ``COPY`` reads it so, and DuckDB with ``allow_quoted_nulls = false``.
    """
    table = release.table
    columns = [map(canonical_key, table.iloc[:, position].array) for position in range(table.shape[1])]
    lines = [",".join(_field(str(name)) for name in table.columns)]
    lines += [",".join(map(_field, row)) for row in zip(*columns, strict=True)]
    # A line with nothing on it would be skipped by most readers.
    return "".join(f"{line or _EMPTY}\r\n" for line in lines).encode()


FORMATS: Mapping[str, Callable[[Release], bytes]] = MappingProxyType({"parquet": Release.to_bytes, "csv": csv_bytes})
"""The suffix of a release's file, which is its name in ``formats`` → what it holds."""


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
