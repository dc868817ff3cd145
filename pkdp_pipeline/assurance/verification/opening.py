"""Opening: which of our files a file is, by its content; what is none of them is refused here."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pkdp_pipeline.assurance.verification.claims import BREAKS, Kind
from pkdp_pipeline.display.report import Format
from pkdp_pipeline.display.report.forms import carried
from pkdp_pipeline.errors import ArgumentError, ConfigError

if TYPE_CHECKING:
    import pandas as pd

_MOST_BYTES = 1 << 30
_PARQUET = b"PAR1"
_DEEPEST = 100
"""No certificate or report is nested so deep; what walks through a document relies on it."""


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
    table : pandas.DataFrame
        Of a release.
    metadata : mapping
        All that a release's file carries besides the table.
    problem : str
        Why a release's certificate could not be read; empty where it could.
    form : {"html", "md", "json"}
        Of a report.
    """

    kind: Kind
    name: str
    content: bytes
    document: dict[str, Any]
    text: str = ""
    table: Any = None
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)
    problem: str = ""
    form: Format = "json"


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
        text = content.decode("utf-8")
        inside = None if text.startswith("{") else carried(text)
        document = read_json(text if inside is None else inside)
    except (ArgumentError, UnicodeError) as error:
        raise ArgumentError(
            f"{name!r} is neither a release (Parquet) nor a certificate (JSON) nor a report that carries its content: "
            f"{_why(error)}"
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if inside is None and schema == "pkdp-certificate/1":
        return Opened(kind="certificate", name=name, content=content, document=document)
    if schema == "pkdp-report/1":
        form: Format = "json" if inside is None else "html" if text.startswith("<!DOCTYPE") else "md"
        return Opened(kind="report", name=name, content=content, document=document, form=form)
    raise ArgumentError(
        f"{name!r} is neither a certificate nor a report of a form that this version reads: the field 'schema' must "
        "say 'pkdp-certificate/1' or 'pkdp-report/1'."
    )


def read_json(content: bytes | str) -> Any:
    """Return the document of a JSON text, as every reader reads it.

    Raises
    ------
    ArgumentError
        If it is not JSON in UTF-8, names a field twice, holds a number that is not finite, or is nested too deep.
    """
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8")
        _check_depth(document)
    except ArgumentError:
        raise
    except RecursionError:
        raise ArgumentError("it is nested too deep.") from None
    except ValueError as error:  # not JSON, not finite, not Unicode, or thousands of digits
        place = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ArgumentError(f"it is not JSON that everybody reads alike{place}.") from None
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ArgumentError("it names a field twice.")
    return found


def _no_constant(_: str) -> NoReturn:
    raise ArgumentError("it holds a number that is not finite.")


def _check_depth(document: Any, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise RecursionError
    for inner in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        _check_depth(inner, depth + 1)


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
        raise ArgumentError(f"{name!r} cannot be read: {_why(error)}") from None
    if CERTIFICATE_KEY not in metadata and RELEASE_KEY not in metadata:
        raise ArgumentError(f"{name!r} is a Parquet file but not a release: it carries no certificate.")
    text, document, problem = "", {}, ""
    try:
        text = metadata.get(CERTIFICATE_KEY, b"").decode("utf-8")
        document = read_json(text)
    except (ArgumentError, UnicodeError) as error:
        problem = _why(error)
    return Opened(
        kind="release",
        name=name,
        content=content,
        document=document if isinstance(document, dict) else {},
        text=text,
        table=table,
        metadata=metadata,
        problem=problem,
    )


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, ArgumentError) else "it holds what cannot be read."


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
