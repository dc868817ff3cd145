"""How large a Parquet file's content is, by its metadata and by its pages, before any of it is decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

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
