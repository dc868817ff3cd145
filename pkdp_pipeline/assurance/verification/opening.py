"""Opening: which of our files a file is, by its content; what is none of them is refused here."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.assurance.verification.claims import Kind
from pkdp_pipeline.assurance.verification.strict_json import read_json
from pkdp_pipeline.errors import ArgumentError, ConfigError, PkdpError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BREAKS", "Opened", "opened"]

BREAKS: tuple[type[Exception], ...] = (
    PkdpError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What code that expects a sound document may raise where it meets another one. Each is a failure of the file."""

_MOST_BYTES = 1 << 30
_PARQUET = b"PAR1"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """A file as it was read.

    Parameters
    ----------
    kind : {"release", "certificate", "report"}
    name : str
        Of the file, without its folder.
    content : bytes
    document : mapping
        The JSON of a certificate or report; that of a release's certificate, or empty where `problem` is about it.
    text : str
        The certificate of a release, as it is stored.
    stated : mapping
        What a release says about itself: its form and its id.
    table : pandas.DataFrame or None
        Of a release.
    metadata : mapping
        All that a release's file carries besides the table.
    problem : str
        Why a release's certificate could not be read; empty where it could.
    """

    kind: Kind
    name: str
    content: bytes
    document: dict[str, Any]
    text: str = ""
    stated: dict[str, Any] | None = None
    table: pd.DataFrame | None = None
    metadata: dict[bytes, bytes] | None = None
    problem: str = ""


def opened(path: str | os.PathLike[str]) -> Opened:
    """Read a file and recognise it.

    Raises
    ------
    ConfigError
        If it cannot be read.
    ArgumentError
        If it is neither a release nor a certificate nor a report.
    """
    content, name = _content(path), Path(path).name
    if content.startswith(_PARQUET):
        return _release(content, name)
    try:
        document = read_json(content)
    except ArgumentError as error:
        raise ArgumentError(
            f"{name!r} is neither a release (Parquet) nor a certificate or report (JSON) that can be read: {error}"
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == "pkdp-certificate/1":
        return Opened(kind="certificate", name=name, content=content, document=document)
    if schema == "pkdp-report/1":
        return Opened(kind="report", name=name, content=content, document=document)
    raise ArgumentError(
        f"{name!r} is JSON, but neither a certificate nor a report of a form that this version reads: its field "
        "'schema' must say 'pkdp-certificate/1' or 'pkdp-report/1' (pkdp report --format json)."
    )


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            raise ConfigError(f"{str(path)!r} cannot be read: it is not a file.")
        if about.st_size > _MOST_BYTES:
            raise ConfigError(f"{str(path)!r} is not read: no release, certificate or report is larger than 1 GiB.")
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
    except ValueError:  # a null byte in a path
        raise ConfigError("the path names no file.") from None


def _release(content: bytes, name: str) -> Opened:
    from pkdp_pipeline.ledger.sealed import CERTIFICATE_KEY, RELEASE_KEY, parquet_content

    try:
        table, metadata = parquet_content(content)
        table = _in_their_units(table, content)
    except BREAKS as error:  # an ArgumentError is a ValueError
        why = str(error) if isinstance(error, ArgumentError) else "the release is not a table that can be read."
        raise ArgumentError(f"{name!r} cannot be read: {why}") from None
    if CERTIFICATE_KEY not in metadata and RELEASE_KEY not in metadata:
        raise ArgumentError(f"{name!r} is a Parquet file but not a release: it carries no certificate.")
    text, document, stated, problem = "", {}, {}, ""
    try:
        text = metadata.get(CERTIFICATE_KEY, b"").decode("utf-8")
        document = read_json(text)
    except (ArgumentError, UnicodeError) as error:
        problem = str(error) if isinstance(error, ArgumentError) else "it holds what is not Unicode text."
    try:
        stated = read_json(metadata.get(RELEASE_KEY, b""))
    except ArgumentError:
        stated = {}
    return Opened(
        kind="release",
        name=name,
        content=content,
        document=document if isinstance(document, dict) else {},
        text=text,
        stated=stated if isinstance(stated, dict) else {},
        table=table,
        metadata=metadata,
        problem=problem,
    )


def _in_their_units(table: pd.DataFrame, content: bytes) -> pd.DataFrame:
    """Return the table with zoned timestamps as fine as the file has them, of which reading makes nanoseconds."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    zoned = [name for name in table.columns if isinstance(table[name].dtype, pd.DatetimeTZDtype)]
    if not zoned:
        return table
    stored = pq.ParquetFile(pa.BufferReader(content)).schema_arrow
    units = {name: stored.field(name).type.unit for name in zoned}
    return table.assign(**{name: table[name].dt.as_unit(unit) for name, unit in units.items()})
