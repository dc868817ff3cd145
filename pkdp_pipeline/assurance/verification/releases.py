"""The claims of a release's file: its id, what else is in it, and its table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.assurance.verification.certificates import Nested
from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.opening import BREAKS, Opened
from pkdp_pipeline.assurance.verification.tables import table_claims
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.ledger.sealed import (
    CERTIFICATE_KEY,
    RELEASE_KEY,
    RELEASE_SCHEMA,
    parquet_bytes,
    parquet_content,
    release_id,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["file_claims", "release_table_claims"]

_ID = "The id is that of this table and this certificate."
_CONTENT = "The file holds the table, the certificate and the id, and nothing else."
_PANDAS = b"pandas"


def file_claims(file: Opened) -> Iterator[Claim]:
    """Yield whether a release's id is its own, and whether its file holds anything else."""
    yield _id(file)
    yield _content(file)


def release_table_claims(file: Opened, made: list[Nested] | None) -> Iterator[Claim]:
    """Yield the claims of the table, given the release's certificate; None where it could not be made again."""
    words = "The table is one that the mechanism publishes."
    if made is None:
        yield not_checked("table.counts", words, "There is no certificate to hold it against.")
        return
    certificate = made[-1].certificate
    if not isinstance(certificate, ReleaseCertificate):
        yield failed("table.counts", words, "The certificate is one of several releases together, not of this table.")
        return
    yield from table_claims(_table(file), certificate)


def _table(file: Opened) -> pd.DataFrame:
    assert file.table is not None  # a release has one
    return file.table


def _id(file: Opened) -> Claim:
    stated = file.stated or {}
    named = stated.get("id")
    if stated.get("schema") != RELEASE_SCHEMA or not isinstance(named, str):
        return failed("release.id", _ID, "The file states no id in a form that this version reads.")
    try:
        found = release_id(_table(file), file.text)
    except BREAKS as error:
        return failed("release.id", _ID, f"The id of this table cannot be computed ({type(error).__name__}).")
    if found != named:
        return failed(
            "release.id", _ID, "The table or the certificate is not the one its id was made from: it was altered.",
            stated=named, recomputed=found,
        )  # fmt: skip
    return passed("release.id", _ID, "Recomputed from both: the same.", recomputed=found)


def _content(file: Opened) -> Claim:
    metadata = file.metadata or {}
    strangers = sorted(set(metadata) - {CERTIFICATE_KEY, RELEASE_KEY, _PANDAS})
    if strangers:
        named = ", ".join(repr(name[:40].decode("utf-8", "replace")) for name in strangers[:3])
        return failed("release.content", _CONTENT, f"It also carries {named}.", others=len(strangers))
    try:
        sealed = _sealed(file)
        _, fresh = parquet_content(sealed)
        same = _about_columns(metadata.get(_PANDAS)) == _about_columns(fresh.get(_PANDAS))
    except BREAKS as error:
        return failed("release.content", _CONTENT, f"The file cannot be written again ({type(error).__name__}).")
    if sealed == file.content:
        return passed("release.content", _CONTENT, "Written again from table and certificate, it has the same bytes.")
    if not same:
        return failed("release.content", _CONTENT, "What it says about its columns is not what is written of them.")
    if _writer(sealed) == _writer(file.content):
        return failed(
            "release.content",
            _CONTENT,
            "Written again by the same version of Arrow, it has other bytes: more is in it, or another program wrote "
            "it.",
        )
    return not_checked(
        "release.content",
        _CONTENT,
        "Another version of Arrow is named as its writer, so bytes cannot be compared. Its metadata hold nothing else; "
        "what may be hidden between its pages was not looked for.",
    )


def _sealed(file: Opened) -> bytes:
    """Return the bytes of the release, written anew from its table and the text of its certificate."""
    return parquet_bytes(_table(file), file.text)


def _about_columns(text: bytes | None) -> Any:
    """Return what pandas notes about the columns, without the versions of what wrote it."""
    noted = json.loads(text or b"{}")
    return {name: value for name, value in noted.items() if name not in ("creator", "pandas_version")}


def _writer(content: bytes) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return str(pq.ParquetFile(pa.BufferReader(content)).metadata.created_by)
