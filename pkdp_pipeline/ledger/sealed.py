"""A published table sealed with its certificate: one Parquet file, and the hash that binds the two.

How large a Parquet file's content is, by its metadata and by its pages, before any of it is decoded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pkdp_pipeline.certificates.codec import parsed
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import beside_groups
from pkdp_pipeline.model.display import least_shown
from pkdp_pipeline.model.keys import Key, canonical_key, json_key, kind_of_dtype
from pkdp_pipeline.model.mechanisms import Count, noised_below, value_column, value_columns
from pkdp_pipeline.model.period import Period

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate

MAX_ROWS = 200_000
"""A release from a stranger with more rows is not read, unless that is asked for."""

_MAX_COLUMNS, _MAX_ROW_GROUPS, _MAX_PAGES = 100, 100, 10_000
_MIN_BYTES = 1 << 20


def text_bytes(rows: int) -> int:
    """Return how many bytes a certificate, a report, or all that a release carries besides its table may take."""
    return max(_MIN_BYTES, 128 * rows)


def table_bytes(rows: int) -> int:
    """Return how many bytes all values of a release may take."""
    return max(_MIN_BYTES, 1024 * rows)


def read_within(content: bytes, rows: int) -> tuple[pa.Table, pq.FileMetaData]:
    """Return the table of a Parquet file and its metadata.

    Raises `ArgumentError` if it holds more than `rows` rows, or more than a kilobyte for each row that is allowed (a
    megabyte at least); `pa.ArrowException`, `OSError`, `ValueError`, `TypeError`, `KeyError` or `AttributeError` if it
    cannot be read.

    Notes
    -----
    Metadata may say anything: how large a page becomes stands in its own header, by which memory is taken for it. Texts
    are decoded as a dictionary, whose values are repeated only once it is known how long all of them are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(content))
    _check_metadata(file.metadata, rows)
    _check_statistics(content, file.metadata)
    _check_pages(content, file.metadata, rows)
    columns = [file.metadata.schema.column(index) for index in range(file.metadata.num_columns)]
    texts = [column.name for column in columns if column.physical_type == "BYTE_ARRAY"]
    file_of_dictionaries = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts, metadata=file.metadata)
    table = file_of_dictionaries.read(use_threads=False)
    size = table.nbytes
    for column in table.columns:
        for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
            size += pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
    if len(table) > rows or size > table_bytes(rows):
        raise _too_large(f"its values take more than {table_bytes(rows):,} bytes", rows)
    return table.cast(file.schema_arrow), file.metadata


def _too_large(what: str, rows: int) -> ArgumentError:
    return ArgumentError(
        f"it is larger than what is read of a release: {what}. A release has a row for each cell that is shown; where "
        f"this one has so many, allow more with rows = {10 * rows}."
    )


def _check_metadata(metadata: pq.FileMetaData, rows: int) -> None:
    schema = metadata.schema
    flat = len(schema) == metadata.num_columns and all(
        schema.column(index).max_repetition_level == 0 and schema.column(index).max_definition_level <= 1
        for index in range(metadata.num_columns)
    )
    if metadata.num_rows > rows:
        raise _too_large(f"it has more than {rows:,} rows", rows)
    if not flat or metadata.num_columns > _MAX_COLUMNS or metadata.num_row_groups > _MAX_ROW_GROUPS:
        raise ArgumentError(
            f"a release has at most {_MAX_COLUMNS} columns of plain values and {_MAX_ROW_GROUPS} groups of rows: this "
            "is none."
        )
    carried = sum(len(key) + len(text) for key, text in (metadata.metadata or {}).items())
    claimed = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    if carried > text_bytes(rows):
        raise _too_large(f"it carries more than {text_bytes(rows):,} bytes besides its table", rows)
    if claimed > table_bytes(rows):
        raise _too_large(f"its values take more than {table_bytes(rows):,} bytes", rows)


def _check_statistics(content: bytes, metadata: pq.FileMetaData) -> None:
    """Refuse statistics of sizes that contradict the schema: over these Arrow ends the process, without an error."""
    columns = [metadata.schema.column(index) for index in range(metadata.num_columns)]
    footer = _Compact(content, len(content) - 8 - int.from_bytes(content[-8:-4], "little")).struct()
    for group in footer[4]:
        for column, chunk in zip(columns, group[1], strict=True):
            sizes = chunk[3].get(16, {})
            levels = ((2, column.max_repetition_level), (3, column.max_definition_level))
            fits = all(len(sizes.get(field, ())) in (0, highest + 1) for field, highest in levels)
            if not fits or (1 in sizes and column.physical_type != "BYTE_ARRAY"):
                raise ValueError


def _check_pages(content: bytes, metadata: pq.FileMetaData, rows: int) -> None:
    """Refuse a file whose pages are larger together than allowed, when decompressed, or too many."""
    pages = size = 0
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            for uncompressed in _pages(content, metadata.row_group(group).column(column)):
                pages, size = pages + 1, size + uncompressed
                if size > table_bytes(rows) or pages > _MAX_PAGES:
                    raise _too_large(f"its pages take more than {table_bytes(rows):,} bytes", rows)


def _pages(content: bytes, chunk: pq.ColumnChunkMetaData) -> Iterator[int]:
    """Yield the decompressed size of each page of a column, as its header has it."""
    # A column without values has no page of them.
    offsets = [chunk.data_page_offset, chunk.dictionary_page_offset if chunk.has_dictionary_page else None]
    start = min((offset for offset in offsets if offset), default=0)
    end = start + chunk.total_compressed_size
    if not 0 <= start <= end <= len(content):
        raise ValueError
    header = _Compact(content, start)
    while header.place < end:
        sizes = header.struct()
        uncompressed, compressed = sizes[2], sizes[3]
        if uncompressed < 0 or compressed < 0:
            raise ValueError
        yield uncompressed
        header.place += compressed


class _Compact:
    """Reads structures of Thrift's compact protocol, as page headers are; anything else is a `ValueError`."""

    def __init__(self, content: bytes, place: int) -> None:
        self._content, self.place = content, place

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return whole numbers, lists and structures by the numbers of their fields; None for what else there is."""
        fields: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            fields[field] = self._value(head & 15, depth + 1)
        return fields

    def _value(self, kind: int, depth: int, *, listed: bool = False) -> Any:
        if depth > 8:
            raise ValueError
        if kind in (1, 2):  # true and false: in a field the kind alone, in a list a byte
            self.place += listed
        elif kind == 3:
            self.place += 1
        elif kind in (4, 5, 6):
            return self._number()
        elif kind == 7:
            self.place += 8
        elif kind == 8:
            length = self._varint()
            self.place += length
        elif kind in (9, 10):
            head = self._byte()
            length = min(head >> 4 if head >> 4 < 15 else self._varint(), len(self._content))
            return [self._value(head & 15, depth, listed=True) for _ in range(length)]
        elif kind == 12:
            return self.struct(depth)
        else:
            raise ValueError
        return None

    def _number(self) -> int:
        raw = self._varint()
        return (raw >> 1) ^ -(raw & 1)

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError

    def _byte(self) -> int:
        if self.place >= len(self._content):
            raise ValueError
        self.place += 1
        return self._content[self.place - 1]


CERTIFICATE_KEY = b"pkdp.certificate"
RELEASE_KEY = b"pkdp.release"
RELEASE_SCHEMA = "pkdp-release/1"
PERIOD_COLUMN = "period"
_PANDAS = b"pandas"
_PERIOD_KEY = "period_column"


@dataclass(frozen=True, slots=True)
class Cells:
    """The content of a public table: its columns by name and kind, and each row as hashes take it."""

    columns: tuple[tuple[Any, str | None], ...]
    rows: list[list[Any]]
    counted: bool  # whether there is one column of counts or sums, of whole numbers that may be missing

    @classmethod
    def of(cls, table: pd.DataFrame) -> Cells:
        """Return what a table says."""
        import pandas as pd

        values, own = [list(column.array) for _, column in table.items()], value_column(table.columns)
        return cls(
            columns=tuple((name, kind_of_dtype(column.dtype)) for name, column in table.items()),
            rows=[[json_key(canonical_key(value)) for value in row] for row in zip(*values, strict=True)],
            counted=[column.dtype for name, column in table.items() if name == own] == [pd.Int64Dtype()],
        )

    @classmethod
    def read(cls, table: pa.Table) -> Cells:
        """Return what the table says as a DataFrame; one is made only where that is not plain to see."""
        columns = _plain_columns(table.schema)
        if columns is None:
            return cls.of(_frame(table))
        values = [column.to_pylist() for column in table.columns]
        own = value_column(name for name, _ in columns)
        counted = [kind for name, kind in columns if name == own] == ["integer"]
        return cls(columns, list(map(list, zip(*values, strict=True))), counted)

    def identity(self, certificate_json: str) -> str:
        """Return the sha256, in hex, of this and a certificate."""
        content = {"certificate": certificate_json, "columns": self.columns, "rows": self.rows}
        return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def check(self, certificate: ReleaseCertificate) -> None:
        """Raise `ArgumentError` where the mechanism of a certificate cannot publish this."""
        mechanism, rows = certificate.mechanism, self.rows
        own, columns = value_columns(mechanism), [name for name, _ in self.columns]
        if not self.counted or value_column(columns) != own[0]:
            raise ArgumentError(
                f"the release has no column {own[0]!r} of whole numbers: it was altered or is not ours."
            )
        single = isinstance(mechanism, Count) or (own == ("sum",) and len(columns) == 1)
        if single and (len(rows), len(columns)) != (1, len(own)):
            raise ArgumentError("the release of a count or a sum must hold one number: it was altered or is not ours.")
        if noised_below(mechanism) and (columns[-2:] != list(own) or self.columns[-1][1] not in ("boolean", None)):
            raise ArgumentError("the release does not mark which counts are exact: it was altered or is not ours.")
        place = columns.index(own[0])
        keys = {(*row[:place], *row[place + len(own) :]) for row in rows}
        if len(columns) > len(own) and len(keys) < len(rows):
            raise ArgumentError("the release names a cell twice: it was altered or is not ours.")
        names = [str(name) for name in (*columns[:place], *columns[place + len(own) :])]
        if beside_groups(mechanism, names, certificate.protects, certificate.attacker) != mechanism:
            raise ArgumentError("the release is totals of groups, and its certificate says something else.")
        counts = [(row[place], row[-1] if noised_below(mechanism) else mechanism.noise is None) for row in rows]
        if any((count is None) != (exact is None) for count, exact in counts if noised_below(mechanism)):
            raise ArgumentError("the release does not mark which counts are exact: it was altered or is not ours.")
        display, release = mechanism.display, mechanism.release_threshold
        least = {
            True: least_shown(display, mechanism.k or 0),
            False: None if release is None else least_shown(display, release),
        }
        if any(
            count is not None and (smallest := least[bool(exact)]) is not None and count < smallest
            for count, exact in counts
        ):
            raise ArgumentError(
                "the release publishes a count below its certificate's threshold: it was altered or is not ours."
            )


def _plain_columns(schema: pa.Schema) -> tuple[tuple[str, str], ...] | None:
    """Return the columns where all are texts and nullable whole numbers, by the names that they have in Arrow."""
    import pyarrow as pa

    text = ("str", "text")
    plain = {pa.string(): text, pa.large_string(): text, pa.int64(): ("Int64", "integer")}
    kinds = [plain.get(field.type, ("", "")) for field in schema]
    expected = [(name, name, dtype) for name, (dtype, _) in zip(schema.names, kinds, strict=True)]
    try:
        stated = schema.pandas_metadata or {}
        actual = [(each["name"], each.get("field_name"), each["numpy_type"]) for each in stated.get("columns", ())]
        if actual != expected or stated["index_columns"] or stated["column_indexes"]:
            return None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None  # what pandas cannot read either is refused there
    return tuple((name, kind) for name, (_, kind) in zip(schema.names, kinds, strict=True))


@dataclass(frozen=True)
class Sealed:
    """A sealed table as it was read: what it says, its certificate's text, the id of both, and the file.

    `names_period`: whether the file's first column names the period, which the table leaves out. `arrow`: the table, in
    whose schema the certificate stands.
    """

    cells: Cells
    text: str
    identity: str
    content: bytes
    names_period: bool
    arrow: pa.Table

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The table as pandas has it."""
        return _frame(self.arrow)

    @cached_property
    def rows(self) -> list[list[Key]]:
        """Its rows as canonical keys and counts; None is what is missing or suppressed."""
        if _plain_columns(self.arrow.schema) is not None:
            return self.cells.rows
        columns = [map(canonical_key, column.array) for _, column in self.frame.items()]
        return list(map(list, zip(*columns, strict=True)))

    def file(self, *, names_period: bool) -> bytes:
        """Return the file, with or without a first column that names the period."""
        if names_period == self.names_period:
            return self.content
        stated = {key: text for key, text in (self.arrow.schema.metadata or {}).items() if key == _PANDAS}
        arrow = self.arrow.replace_schema_metadata(stated)
        return _written(arrow, self.text, self.identity, names_period=names_period)


def opened(content: bytes, *, rows: int | None = None) -> Sealed:
    """Read a sealed table, of at most `rows` rows; None: of any size, from who is trusted.

    Raises `ArgumentError` if the bytes are not a release, or its table and certificate are not those of its id, or it
    is too large.
    """
    arrow, metadata = _arrow_content(content, rows)
    try:
        stated = json.loads(metadata[RELEASE_KEY])
        text = metadata[CERTIFICATE_KEY].decode()
        known = stated["schema"] == RELEASE_SCHEMA
    except (KeyError, TypeError, ValueError):
        raise ArgumentError("the file is a Parquet file but not a release: it carries no certificate.") from None
    if not known:
        raise ArgumentError(f"not a release this version reads: its schema must be {RELEASE_SCHEMA!r}.")
    cells = Cells.read(arrow)
    identity = cells.identity(text)
    if stated.get("id") != identity:
        raise ArgumentError("the release's table or certificate is not the one its id was made from: it was altered.")
    return Sealed(cells, text, identity, content, has_period_column(metadata), arrow)


def release_id(table: pd.DataFrame, certificate_json: str) -> str:
    """Return the sha256, in hex, of the canonical form of a public table and its certificate."""
    return Cells.of(table).identity(certificate_json)


def parquet_bytes(table: pd.DataFrame, certificate_json: str, *, period_column: bool = False) -> bytes:
    """Return a release's file; with `period_column` its first column names the certificate's period in each row."""
    import pyarrow as pa

    # Statistics are of published values only; attrs are dropped so that nothing but the columns is written.
    plain = table.copy(deep=False)
    plain.attrs = {}
    arrow = pa.Table.from_pandas(plain, preserve_index=False)
    return _written(arrow, certificate_json, Cells.read(arrow).identity(certificate_json), names_period=period_column)


def _written(arrow: pa.Table, certificate_json: str, identity: str, *, names_period: bool) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stated = {"id": identity, "schema": RELEASE_SCHEMA}
    metadata = arrow.schema.metadata or {}
    if names_period:
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


def parquet_content(content: bytes, *, rows: int | None = None) -> tuple[pd.DataFrame, dict[bytes, bytes]]:
    """Return the table of a Parquet file, without a column that names its period, and what it carries besides.

    `rows`: as of `opened`. Raises `ArgumentError` if it cannot be read, or the column names another period than the
    certificate.
    """
    arrow, metadata = _arrow_content(content, rows)
    return _frame(arrow), metadata


def _arrow_content(content: bytes, rows: int | None) -> tuple[pa.Table, dict[bytes, bytes]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if rows is None:
            file = pq.ParquetFile(pa.BufferReader(content))
            table, about = file.read(use_threads=False), file.metadata
        else:
            table, about = read_within(content, rows)
    except ArgumentError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError):
        raise ArgumentError(_UNREADABLE) from None
    metadata = dict(about.metadata or {})
    if not has_period_column(metadata):
        return table, metadata
    try:
        named = set(map(str, table.column(PERIOD_COLUMN).to_pylist()))
        if named <= {_period(metadata[CERTIFICATE_KEY].decode())}:
            return table.drop_columns([PERIOD_COLUMN]), metadata
    except (KeyError, TypeError, ValueError):
        pass
    raise ArgumentError("the release's column 'period' does not name its certificate's period: it was altered.")


_UNREADABLE = "the release is not a Parquet file that can be read."


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as pandas has it, text as ``str``, also before pandas 3."""
    import pandas as pd
    import pyarrow as pa

    text = pd.StringDtype(na_value=np.nan)
    types = {pa.string(): text, pa.large_string(): text}
    try:
        # pandas' metadata name zones, for which pyarrow would make nanoseconds, too narrow for some years.
        for column in (table.schema.pandas_metadata or {}).get("columns", ()):
            position = table.schema.get_field_index(column["name"])
            if column["pandas_type"] == "datetimetz" and position >= 0:
                instants = table.column(position)
                zoned = instants.cast(pa.timestamp(instants.type.unit, column["metadata"]["timezone"]))
                table = table.set_column(position, column["name"], zoned)
        # Of small tables, threads cost more than they save.
        frame: pd.DataFrame = table.to_pandas(types_mapper=types.get, use_threads=False)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError):
        raise ArgumentError(_UNREADABLE) from None
    return frame


def has_period_column(metadata: Mapping[bytes, bytes]) -> bool:
    """Return whether a release's file says that its first column names the period."""
    try:
        return _PERIOD_KEY in json.loads(metadata[RELEASE_KEY])
    except (KeyError, TypeError, ValueError):
        return False


def _period(certificate_json: str) -> str:
    return str(parsed(certificate_json)["context"]["period"])


def check_table(table: pd.DataFrame, certificate: ReleaseCertificate) -> None:
    """Raise `ArgumentError` where a table is not one that the certificate's mechanism can publish."""
    Cells.of(table).check(certificate)
