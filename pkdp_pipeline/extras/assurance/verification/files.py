"""Files: which of ours a file is, by its content; and what a release's file claims of itself and of its table."""

from __future__ import annotations

import functools
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.extras.assurance.verification.claims import (
    BREAKS,
    BrokenError,
    Claim,
    Kind,
    Nested,
    UncheckedError,
    checked,
)
from pkdp_pipeline.ledger.sealed import (
    CERTIFICATE_KEY,
    RELEASE_KEY,
    RELEASE_SCHEMA,
    check_table,
    has_period_column,
    parquet_bytes,
    parquet_content,
    release_id,
    text_bytes,
)
from pkdp_pipeline.model import display
from pkdp_pipeline.model.columns import is_ordered
from pkdp_pipeline.model.keys import canonical_key, domain_dtype, kind_of_dtype, kind_of_values, published_keys
from pkdp_pipeline.model.mechanisms import Count, Mechanism, Sum, key_columns, noised_below, value_column, value_columns
from pkdp_pipeline.plugins import view

if TYPE_CHECKING:
    import pandas as pd

_MAX_BYTES = 1 << 30
_PARQUET = b"PAR1"
_MAX_DEPTH = 100
"""No certificate or report is nested so deep; what walks through a document relies on it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """A file as it was read.

    Parameters
    ----------
    kind : {"release", "certificate", "report"}
    name : str
        Of the file, without its folder.
    document : mapping
        The JSON of a certificate or report; that of a release's certificate, or empty where `problem` is about it.
    text, problem : str
        The certificate of a release as it is stored; why it could not be read, empty where it could.
    table : pandas.DataFrame
        Of a release.
    metadata : mapping
        All that a release's file carries besides the table.
    form : {"html", "md", "json"}
    reader : {"everybody", "officer"}
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
    form: Literal["html", "md", "json"] = "json"
    reader: Literal["everybody", "officer"] = "everybody"


def opened(path: str | os.PathLike[str], rows: int) -> Opened:
    """Read a file and recognise it; of a release at most so many rows, of a text in proportion.

    Raises `ConfigError` if it cannot be read, `ArgumentError` if it is none of the three, or too large.
    """
    content, name = _content(path), Path(path).name
    if content.startswith(_PARQUET):
        return _release(content, name, rows)
    if len(content) > text_bytes(rows):
        raise ArgumentError(
            f"{name!r} is not read: it has more than {text_bytes(rows):,} bytes, and no certificate or report is that "
            f"large. Where this one is, allow more with rows = {10 * rows}."
        )
    try:
        text = content.decode("utf-8")
        inside = None if text.startswith("{") else view("report.carried")(text)
        document = read_json(text if inside is None else inside[0])
    except (ArgumentError, UnicodeError) as error:
        why = _why(error)
        if Path(path).suffix.lower() in (".csv", ".xlsx", ".md"):
            why = "it carries no certificate; verify the Parquet file of the table, or the report in HTML or JSON."
        words = f"{name!r} is no release (Parquet), certificate (JSON) or report with its content: {why}"
        raise ArgumentError(words) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if inside is None and schema == "pkdp-certificate/1":
        return Opened(kind="certificate", name=name, content=content, document=document)
    if schema == "pkdp-report/1":
        page = functools.partial(Opened, kind="report", name=name, content=content, document=document)
        form: Literal["html", "md"] = "html" if text.startswith("<!DOCTYPE") else "md"
        return page() if inside is None else page(form=form, reader=inside[1])
    raise ArgumentError(
        f"{name!r} is neither a certificate nor a report of a form that this version reads: the field 'schema' must "
        "say 'pkdp-certificate/1' or 'pkdp-report/1'."
    )


def read_json(content: bytes | str) -> Any:
    """Return the document of a JSON text, as every reader reads it.

    Raises `ArgumentError` if it is not JSON in UTF-8, names a field twice, holds a number that is not finite, or is
    nested too deep.
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
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ArgumentError("it names a field twice.")
    return fields


def _no_constant(_: str) -> NoReturn:
    raise ArgumentError("it holds a number that is not finite.")


def _check_depth(document: Any, depth: int = 0) -> None:
    if depth > _MAX_DEPTH:
        raise RecursionError
    for inner in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        _check_depth(inner, depth + 1)


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            raise ConfigError(f"{str(path)!r} cannot be read: it is not a file.")
        if about.st_size > _MAX_BYTES:
            raise ConfigError(f"{str(path)!r} is not read: no release, certificate or report is larger than 1 GiB.")
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
    except ValueError:  # a null byte in a path
        raise ConfigError("the path names no file.") from None


def _release(content: bytes, name: str, rows: int) -> Opened:
    try:
        table, metadata = parquet_content(content, rows=rows)
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
    return str(error) if isinstance(error, ArgumentError) else "it holds something that cannot be read."


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


_PANDAS = b"pandas"


def file_claims(file: Opened) -> Iterator[Claim]:
    """Yield whether a release's id is its own, and whether its file holds anything else."""
    for key, check in (("release.id", _id), ("release.content", _nothing_else)):
        yield from checked({key: functools.partial(check, file)})


def release_table_claims(table: pd.DataFrame, nested: list[Nested]) -> Iterator[Claim]:
    """Yield the claims of the table, given the release's certificate; it is empty where it could not be made again."""
    if not nested:
        yield Claim("table.counts", "not_checked", "There is no certificate to compare it with.")
        return
    certificate = nested[-1].certificate
    if not isinstance(certificate, ReleaseCertificate):
        yield Claim("table.counts", "fail", "The certificate is one of several releases together, not of this table.")
        return
    checks = {"table.columns": _columns, "table.cells": _cells, "table.counts": _counts}
    yield from checked({key: functools.partial(check, table, certificate) for key, check in checks.items()})


def least_shown(certificate: ReleaseCertificate) -> int | None:
    """Return the smallest count that a release shows; None where any whole number may be."""
    mechanism = certificate.mechanism
    k = max(mechanism.k or 0, 1 if is_found(certificate) else 0)
    least = k if mechanism.noise is None else mechanism.release_threshold
    if noised_below(mechanism) and least is not None:
        least = min(k, least)
    return None if least is None else display.least_shown(mechanism.display, least)


def least_noised(mechanism: Mechanism) -> int | None:
    """Return the smallest noised count that is shown beside exact ones; None where any whole number may be."""
    threshold = mechanism.release_threshold
    return None if threshold is None else display.least_shown(mechanism.display, threshold)


def is_found(certificate: ReleaseCertificate) -> bool:
    """Return whether cells are found in the data, so that somebody is in each and a suppressed one has no row."""
    mechanism, about = certificate.mechanism, certificate.context
    if isinstance(mechanism, Sum):
        return mechanism.cells_found if about is None else about.cells == "found"
    return not isinstance(mechanism, Count) and (about is None or about.cells != "declared")


def _id(file: Opened) -> tuple[str, dict[str, Any]]:
    stated = read_json(file.metadata.get(RELEASE_KEY, b""))
    named = stated.get("id")
    if stated.get("schema") != RELEASE_SCHEMA or not isinstance(named, str):
        raise BrokenError("The file states no id in a form that this version reads.")
    recomputed = release_id(file.table, file.text)
    if recomputed != named:
        raise BrokenError(
            "The table or the certificate is not the one its id was made from: it was altered.",
            stated=named,
            recomputed=recomputed,
        )
    return "Recomputed from both: the same.", {"recomputed": recomputed}


def _nothing_else(file: Opened) -> str:
    strangers = sorted(set(file.metadata) - {CERTIFICATE_KEY, RELEASE_KEY, _PANDAS})
    if strangers:
        named = ", ".join(repr(name[:40].decode("utf-8", "replace")) for name in strangers[:3])
        raise BrokenError(f"It also carries {named}.", others=len(strangers))
    try:
        sealed = parquet_bytes(file.table, file.text, period_column=has_period_column(file.metadata))
        _, fresh = parquet_content(sealed)
        same = _about_columns(file.metadata.get(_PANDAS)) == _about_columns(fresh.get(_PANDAS))
    except BREAKS as error:
        raise BrokenError(f"The file cannot be written again ({type(error).__name__}).") from None
    if sealed == file.content:
        return "Written again from table and certificate, it has the same bytes."
    if not same:
        raise BrokenError("Its description of its columns is not the one that is written.")
    if _writer(sealed) == _writer(file.content):
        raise BrokenError(
            "Written again by the same version of Arrow, it has other bytes: more is in it, or another program wrote "
            "it."
        )
    raise UncheckedError(
        "Another version of Arrow is named as its writer, so bytes cannot be compared. Its metadata hold nothing else; "
        "what may be hidden between its pages was not looked for."
    )


def _about_columns(text: bytes | None) -> Any:
    """Return what pandas notes about the columns, without the versions of what wrote it."""
    noted = json.loads(text or b"{}")
    return {name: value for name, value in noted.items() if name not in ("creator", "pandas_version")}


def _writer(content: bytes) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return str(pq.ParquetFile(pa.BufferReader(content)).metadata.created_by)


def _columns(table: pd.DataFrame, certificate: ReleaseCertificate) -> str:
    import pandas as pd

    names, about, own = list(table.columns), certificate.context, value_columns(certificate.mechanism)
    cells, keys = None if about is None else about.cells, names[: -len(own)]
    if isinstance(certificate.mechanism, Count) or (isinstance(certificate.mechanism, Sum) and not keys):
        right = not keys and cells is None
    else:
        right = bool(keys) and (about is None or cells in ("declared", "found"))
    right = right and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    if not right or set(own) & set(map(str.casefold, keys)):
        raise BrokenError(
            "The columns must be those of declared or found cells, with different names; a count has none."
        )
    plain = isinstance(table.index, pd.RangeIndex) and table.index.equals(pd.RangeIndex(len(table)))
    if names[len(keys) :] != list(own) or table[own[0]].dtype != pd.Int64Dtype() or not plain:
        raise BrokenError(f"The last column must be {own[-1]!r}, {own[0]}s whole numbers, the index a plain one.")
    if own[-1] == "exact" and table["exact"].dtype != pd.BooleanDtype():
        raise BrokenError("Whether a count is exact must be true or false (boolean) in every row.")
    for name in keys:
        stored = table[name].dtype
        if kind_of_dtype(stored) is None or stored != _public_dtype(table[name], cells):
            raise BrokenError(f"A column of cells has the type {stored}, which published values do not have.")
    return f"{', '.join(names)}: each has the type that the published values alone give."


def _public_dtype(column: pd.Series, cells: str | None) -> object:
    if cells != "declared":
        return published_keys(column).dtype
    values = [canonical_key(value) for value in column.array]
    return domain_dtype(kind_of_values("the table", values), values)


def _cells(table: pd.DataFrame, certificate: ReleaseCertificate) -> str:
    by, value = key_columns(table.columns), value_column(table.columns)
    if isinstance(certificate.mechanism, Count) or not by:
        if len(table) != 1:
            raise BrokenError(f"A {value} is published as one number: its table has one row.")
        return "One row."
    keys = table[by]
    if bool(keys.duplicated().any()):
        raise BrokenError("A cell is named twice.")
    if not is_found(certificate):
        if not len(table):
            raise BrokenError("A declared domain has at least one cell, and every one of them has a row.")
        if certificate.cells not in (None, len(table)):
            raise BrokenError("The certificate rests on another number of declared cells than the table has.")
        return f"{len(table)} declared cells, each once; which cells were declared is not in the file."
    if certificate.context is not None and certificate.mechanism.of_found_cells() != certificate.mechanism:
        raise BrokenError("Cells are found in the data, and the certificate is about declared ones.")
    if bool(table[value].isna().any()):
        raise BrokenError("Cells are found in the data, so a suppressed one has no row; here one has.")
    if not is_ordered(list(zip(*(map(canonical_key, keys[name].array) for name in by), strict=True))):
        raise BrokenError("Cells that are found in the data are published in their order; these rows are not in it.")
    return f"{len(table)} cells, each once and in order; none of them is suppressed."


def _counts(table: pd.DataFrame, certificate: ReleaseCertificate) -> str:
    mechanism = certificate.mechanism
    check_table(table, certificate)
    least = least_noised(mechanism) if noised_below(mechanism) else least_shown(certificate)
    value = value_column(table.columns)
    shown = table[value].dropna()
    suppressing = mechanism.k, getattr(mechanism, "k_complement", None), mechanism.release_threshold
    if len(shown) < len(table) and all(threshold is None for threshold in suppressing):
        raise BrokenError(f"The mechanism suppresses nothing, and a {value} is missing.")
    if noised_below(mechanism):
        exact = table["exact"].fillna(False).to_numpy(dtype=bool)
        least_exact = display.least_shown(mechanism.display, mechanism.k or 0)
        if bool((table["count"][exact] < least_exact).any()):
            raise BrokenError(f"A count below {least_exact} is marked as exact; the mechanism adds noise to it.")
        if mechanism.release_threshold is None and mechanism.below == "noise" and len(shown) < len(table):
            raise BrokenError("The mechanism suppresses nothing, and a count is missing.")
        noised = "a noised one" if least is None else f"a noised one that is {least} or more"
        return (
            f"{len(shown)} counts shown: {exact.sum()} are marked as exact, none of them below {least_exact}; each of "
            f"the others is {noised}."
        )
    if least is None:
        return f"{len(shown)} {value}s shown; with noise and without a threshold after it, any whole number may be."
    if bool((shown < least).any()):
        raise BrokenError(f"A {value} is below {least}, which the mechanism never publishes.")
    return f"{len(shown)} {value}s shown, none below {least}."
