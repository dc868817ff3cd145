"""The claims of a release's file: its id, what else is in it, and that its mechanism can have published its table."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.assurance.verification.certificates import Nested
from pkdp_pipeline.assurance.verification.claims import BREAKS, BrokenError, Claim, UncheckedError, checked
from pkdp_pipeline.assurance.verification.opening import Opened, read_json
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.ledger.sealed import (
    CERTIFICATE_KEY,
    RELEASE_KEY,
    RELEASE_SCHEMA,
    check_table,
    parquet_bytes,
    parquet_content,
    release_id,
)
from pkdp_pipeline.model.keys import canonical_key, domain_dtype, kind_of_dtype, kind_of_values, published_keys
from pkdp_pipeline.model.mechanisms import Count

if TYPE_CHECKING:
    import pandas as pd

_PANDAS = b"pandas"


def file_claims(file: Opened) -> Iterator[Claim]:
    """Yield whether a release's id is its own, and whether its file holds anything else."""
    for key, check in (("release.id", _id), ("release.content", _content)):
        yield from checked({key: functools.partial(check, file)})


def release_table_claims(table: pd.DataFrame, made: list[Nested]) -> Iterator[Claim]:
    """Yield the claims of the table, given the release's certificate; it is empty where it could not be made again."""
    if not made:
        yield Claim("table.counts", "not_checked", "There is no certificate to hold it against.")
        return
    certificate = made[-1].certificate
    if not isinstance(certificate, ReleaseCertificate):
        yield Claim("table.counts", "fail", "The certificate is one of several releases together, not of this table.")
        return
    checks = {"table.columns": _columns, "table.cells": _cells, "table.counts": _counts}
    yield from checked({key: functools.partial(check, table, certificate) for key, check in checks.items()})


def least_shown(certificate: ReleaseCertificate) -> int | None:
    """Return the smallest count that a release shows; None where any whole number may be."""
    mechanism = certificate.mechanism
    if mechanism.noise is not None:
        return mechanism.release_threshold
    return max(mechanism.k or 0, 1 if is_found(certificate) else 0)


def is_found(certificate: ReleaseCertificate) -> bool:
    """Return whether cells are found in the data, so that somebody is in each and a suppressed one has no row."""
    if isinstance(certificate.mechanism, Count):
        return False
    return certificate.context is None or certificate.context.cells != "declared"


def _id(file: Opened) -> tuple[str, dict[str, Any]]:
    stated = read_json(file.metadata.get(RELEASE_KEY, b""))
    named = stated.get("id")
    if stated.get("schema") != RELEASE_SCHEMA or not isinstance(named, str):
        raise BrokenError("The file states no id in a form that this version reads.")
    found = release_id(file.table, file.text)
    if found != named:
        raise BrokenError(
            "The table or the certificate is not the one its id was made from: it was altered.",
            stated=named,
            recomputed=found,
        )
    return "Recomputed from both: the same.", {"recomputed": found}


def _content(file: Opened) -> str:
    strangers = sorted(set(file.metadata) - {CERTIFICATE_KEY, RELEASE_KEY, _PANDAS})
    if strangers:
        named = ", ".join(repr(name[:40].decode("utf-8", "replace")) for name in strangers[:3])
        raise BrokenError(f"It also carries {named}.", others=len(strangers))
    try:
        sealed = parquet_bytes(file.table, file.text)
        _, fresh = parquet_content(sealed)
        same = _about_columns(file.metadata.get(_PANDAS)) == _about_columns(fresh.get(_PANDAS))
    except BREAKS as error:
        raise BrokenError(f"The file cannot be written again ({type(error).__name__}).") from None
    if sealed == file.content:
        return "Written again from table and certificate, it has the same bytes."
    if not same:
        raise BrokenError("What it says about its columns is not what is written of them.")
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

    names, about = list(table.columns), certificate.context
    cells = None if about is None else about.cells
    if isinstance(certificate.mechanism, Count):
        right = names == ["count"] and cells is None
    else:
        right = len(names) > 1 and (about is None or cells in ("declared", "found"))
    right = right and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    if not right or "count" in map(str.casefold, names[:-1]):
        raise BrokenError(
            "The columns must be those of declared or found cells, with different names; a count has none."
        )
    plain = isinstance(table.index, pd.RangeIndex) and table.index.equals(pd.RangeIndex(len(table)))
    if names[-1] != "count" or table["count"].dtype != pd.Int64Dtype() or not plain:
        raise BrokenError("The last column must be 'count', of whole numbers (Int64), and the index a plain one.")
    for name in names[:-1]:
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
    if isinstance(certificate.mechanism, Count):
        if len(table) != 1:
            raise BrokenError("A count is published as one number: its table has one row.")
        return "One row."
    by = list(table.columns[:-1])
    keys = table[by]
    if bool(keys.duplicated().any()):
        raise BrokenError("A cell is named twice.")
    if not is_found(certificate):
        if not len(table):
            raise BrokenError("A declared domain has at least one cell, and every one of them has a row.")
        return f"{len(table)} declared cells, each once; which cells were declared is not in the file."
    if bool(table["count"].isna().any()):
        raise BrokenError("Cells are found in the data, so a suppressed one has no row; here one has.")
    ordered = keys.sort_values(by=by, na_position="last", ignore_index=True)
    if not ordered.equals(keys.reset_index(drop=True)):
        raise BrokenError("Cells that are found in the data are published in their order; these rows are not in it.")
    return f"{len(table)} cells, each once and in order; none of them is suppressed."


def _counts(table: pd.DataFrame, certificate: ReleaseCertificate) -> str:
    mechanism = certificate.mechanism
    check_table(table, certificate)
    least = least_shown(certificate)
    shown = table["count"].dropna()
    suppressing = mechanism.k, getattr(mechanism, "k_complement", None), mechanism.release_threshold
    if len(shown) < len(table) and all(one is None for one in suppressing):
        raise BrokenError("The mechanism suppresses nothing, and a count is missing.")
    if least is None:
        return f"{len(shown)} counts shown; with noise and without a threshold after it, any whole number may be."
    if bool((shown < least).any()):
        raise BrokenError(f"A count is below {least}, which the mechanism never publishes.")
    return f"{len(shown)} counts shown, none below {least}."
