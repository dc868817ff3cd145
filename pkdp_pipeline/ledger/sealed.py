"""A published table sealed with its certificate: one Parquet file, and the hash that binds the two."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import canonical_key, json_key, kind_of_dtype
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.model.period import Period

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate

CERTIFICATE_KEY = b"pkdp.certificate"
RELEASE_KEY = b"pkdp.release"
RELEASE_SCHEMA = "pkdp-release/1"
PERIOD_COLUMN = "period"
_PERIOD_KEY = "period_column"


def opened(content: bytes) -> tuple[pd.DataFrame, str, str]:
    """Return the table, the certificate's text and the id of a sealed table.

    Raises
    ------
    ArgumentError
        If the bytes are not a release, or its table and certificate are not those of its id.
    """
    table, metadata = parquet_content(content)
    try:
        stated = json.loads(metadata[RELEASE_KEY])
        text = metadata[CERTIFICATE_KEY].decode()
        known = stated["schema"] == RELEASE_SCHEMA
    except (KeyError, TypeError, ValueError):
        raise ArgumentError("the file is a Parquet file but not a release: it carries no certificate.") from None
    if not known:
        raise ArgumentError(f"not a release this version reads: its schema must be {RELEASE_SCHEMA!r}.")
    identity = release_id(table, text)
    if stated.get("id") != identity:
        raise ArgumentError("the release's table or certificate is not the one its id was made from: it was altered.")
    return table, text, identity


def release_id(table: pd.DataFrame, certificate_json: str) -> str:
    """Return the sha256, in hex, of the canonical form of a public table and its certificate."""
    columns = [list(column.array) for _, column in table.items()]
    content = {
        "certificate": certificate_json,
        "columns": [[name, kind_of_dtype(column.dtype)] for name, column in table.items()],
        "rows": [[json_key(canonical_key(value)) for value in row] for row in zip(*columns, strict=True)],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def parquet_bytes(table: pd.DataFrame, certificate_json: str, *, period_column: bool = False) -> bytes:
    """Return a release's file; with `period_column` its first column names the certificate's period in each row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Statistics are of published values only; attrs are dropped so that nothing but the columns is written.
    plain = table.copy(deep=False)
    plain.attrs = {}
    arrow = pa.Table.from_pandas(plain, preserve_index=False)
    identity = release_id(_in_pandas(arrow), certificate_json)
    stated = {"id": identity, "schema": RELEASE_SCHEMA}
    metadata = arrow.schema.metadata or {}
    if period_column:
        label = pa.scalar(Period.parse(_period(certificate_json)).value)
        arrow = arrow.add_column(0, PERIOD_COLUMN, pa.repeat(label, len(arrow)))
        stated[_PERIOD_KEY] = PERIOD_COLUMN
    own = {CERTIFICATE_KEY: certificate_json.encode(), RELEASE_KEY: json.dumps(stated, sort_keys=True).encode()}
    sink = pa.BufferOutputStream()
    # Without the stored Arrow schema, which would hold the metadata a second time.
    with pq.ParquetWriter(sink, arrow.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(arrow)
        writer.add_key_value_metadata({**metadata, **own})
    return bytes(sink.getvalue().to_pybytes())


def parquet_content(content: bytes) -> tuple[pd.DataFrame, dict[bytes, bytes]]:
    """Return the table of a Parquet file, without a column that names its period, and what it carries besides.

    Raises
    ------
    ArgumentError
        If it cannot be read, or the column names another period than the certificate.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        table, metadata = _in_pandas(file.read(use_threads=False)), dict(file.metadata.metadata or {})
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise ArgumentError("the release is not a Parquet file that can be read.") from None
    if not has_period_column(metadata):
        return table, metadata
    try:
        named = set(map(str, table.pop(PERIOD_COLUMN)))
        if named <= {_period(metadata[CERTIFICATE_KEY])}:
            return table, metadata
    except (KeyError, TypeError, ValueError):
        pass
    raise ArgumentError("the release's column 'period' does not name its certificate's period: it was altered.")


def _in_pandas(table: Any) -> pd.DataFrame:
    """Return an Arrow table as pandas has it, text as ``str``, also before pandas 3."""
    import pyarrow as pa

    text = pd.StringDtype(na_value=np.nan)
    frame: pd.DataFrame = table.to_pandas(types_mapper={pa.string(): text, pa.large_string(): text}.get)
    return frame


def names_period(content: bytes) -> bool:
    """Return whether the first column of a release's file names the period."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return has_period_column(pq.read_metadata(pa.BufferReader(content)).metadata or {})


def has_period_column(metadata: Mapping[bytes, bytes]) -> bool:
    """Return whether a release's file says that its first column names the period."""
    try:
        return _PERIOD_KEY in json.loads(metadata[RELEASE_KEY])
    except (KeyError, TypeError, ValueError):
        return False


def _period(certificate_json: str | bytes) -> str:
    return str(json.loads(certificate_json)["context"]["period"])


def check_table(table: pd.DataFrame, certificate: ReleaseCertificate) -> None:
    """Raise `ArgumentError` where a table is not one that the certificate's mechanism can publish."""
    mechanism = certificate.mechanism
    if "count" not in table.columns or table["count"].dtype != pd.Int64Dtype():
        raise ArgumentError("the release has no column 'count' of whole numbers: it was altered or is not ours.")
    if isinstance(mechanism, Count) and table.shape != (1, 1):
        raise ArgumentError("the release of a count must hold one number: it was altered or is not ours.")
    keys = [name for name in table.columns if name != "count"]
    if keys and bool(table.duplicated(keys).any()):
        raise ArgumentError("the release names a cell twice: it was altered or is not ours.")
    least = mechanism.release_threshold if mechanism.noise is not None else mechanism.k or 0
    if least is not None and bool((table["count"].array < least).any()):  # suppressed ones are left out
        raise ArgumentError(
            "the release publishes a count below its certificate's threshold: it was altered or is not ours."
        )
