"""A file from a stranger is measured before it is decoded, whatever its metadata say, and read like any other."""

from __future__ import annotations

import random
import time
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.assurance.verification import verify
from pkdp_pipeline.extras.assurance.verification.files import opened
from pkdp_pipeline.ledger import sealed
from pkdp_pipeline.ledger.sealed import MAX_ROWS, read_within

KEYS = {
    "text": ["Ås", None, "b" * 300],
    "whole": pd.array([1, None, 3], dtype="Int64"),
    "real": [0.5, 1.5, np.nan],
    "yes": pd.array([True, False, None], dtype="boolean"),
    "day": [date(2020, 1, 1), date(1950, 1, 1), None],
    "instant": pd.to_datetime([datetime(2020, 1, 1, 5), None, datetime(1960, 1, 1)]).tz_localize("UTC"),
    "exact": [Decimal("1.25"), None, Decimal("-3.00")],
}


def written(table: pa.Table, **more) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **{"compression": "zstd", "store_schema": False, **more})
    return sink.getvalue().to_pybytes()


def varint(number: int, length: int = 0) -> bytes:
    """Return a number in zigzag form, padded to a length."""
    number, groups = number << 1, []
    while number or len(groups) < max(1, length):
        groups.append((number & 127) | 128)
        number >>= 7
    return bytes([*groups[:-1], groups[-1] & 127])


@pytest.mark.parametrize("kind", sorted(KEYS))
@pytest.mark.parametrize("times", [1, 700])
def test_a_release_is_read_as_it_is_without_a_limit(kind, times):
    table = pd.DataFrame({"cell": list(KEYS[kind]) * times, "count": pd.array([30, None, 40] * times, dtype="Int64")})
    if hasattr(KEYS[kind], "dtype"):
        table["cell"] = table["cell"].astype(KEYS[kind].dtype)
    content = sealed.parquet_bytes(table, "{}")
    plain = pq.ParquetFile(pa.BufferReader(content)).read()
    read, metadata = read_within(content, MAX_ROWS)
    assert read.equals(plain)
    assert read.schema.equals(plain.schema, check_metadata=True)
    assert metadata.num_rows == 3 * times


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_of_every_form_are_measured(compression, version):
    table = pa.table({"cell": [f"town {n}" for n in range(5_000)], "count": list(range(5_000))})
    content = written(
        table, compression=compression, data_page_version=version, data_page_size=2_000, row_group_size=1_500
    )
    assert read_within(content, 5_000)[0].equals(table)


@pytest.mark.parametrize(("name", "offset", "bit"), [("cell", 1, 2), ("cell", -1, 8), ("count", 1, 2), ("count", 1, 1)])
def test_a_damaged_schema_is_an_error_and_does_not_end_the_process(name, offset, bit):
    table = pd.DataFrame({"cell": ["a", "b"], "count": pd.array([30, None], dtype="Int64")})
    damaged = bytearray(sealed.parquet_bytes(table, "{}"))
    # In the schema a column's type, its repetition, and its name.
    damaged[damaged.index(b"\x25\x02\x18" + bytes([len(name)]) + name.encode()) + offset] ^= bit
    with pytest.raises(ArgumentError):
        sealed.parquet_content(bytes(damaged), rows=MAX_ROWS)


def refused(content: bytes, rows: int = MAX_ROWS) -> str:
    start = time.process_time()
    with pytest.raises(ArgumentError) as caught:
        sealed.opened(content, rows=rows)
    assert time.process_time() - start < 0.5
    return str(caught.value)


def test_a_million_rows_in_a_few_bytes_are_not_read():
    content = written(pa.table({"count": pa.repeat(pa.scalar(7, pa.int64()), 1_000_000)}))
    assert len(content) < 20_000
    assert "more than 200,000 rows" in refused(content)
    assert "rows = 2000000" in refused(content)


def test_a_long_text_that_is_repeated_is_not_written_out():
    towns = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), 100_000), ["x" * 100_000])
    content = written(pa.table({"town": towns}))
    assert len(content) < 20_000
    assert "values take more" in refused(content)  # it would be 10 GB


def test_pages_larger_than_the_metadata_say_are_not_decompressed():
    table = pa.table({"town": ["y" * 3_000_000]})
    content = written(table, use_dictionary=False, write_statistics=False)
    size = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0).total_byte_size
    honest = varint(size)
    assert content.count(honest) >= 2
    lying = content.replace(honest, varint(9, len(honest)))
    assert pq.ParquetFile(pa.BufferReader(lying)).metadata.row_group(0).total_byte_size == 9
    assert "values take more" in refused(content, 1_000)
    assert "pages take more" in refused(lying, 1_000)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"towns": [["a"], ["b"]]}),
        pa.table({"town": [{"a": 1}]}),
        pa.table({f"c{n}": [1] for n in range(101)}),
    ],
    ids=["list", "struct", "columns"],
)
def test_nothing_nested_or_wide_is_a_release(table):
    assert "columns of plain values" in refused(written(table))


def test_what_a_file_carries_besides_is_limited():
    content = sealed.parquet_bytes(pd.DataFrame({"count": pd.array([1], dtype="Int64")}), "z" * 2_000_000)
    assert "besides its table" in refused(content, 1_000)


def test_no_damaged_file_is_more_than_an_error():
    whole = sealed.parquet_bytes(pd.DataFrame({"t": ["a", "b"], "count": pd.array([30, 40], dtype="Int64")}), "{}")
    chance = random.Random(5)
    for _ in range(400):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(4, len(content))] = chance.randrange(256)
        try:
            sealed.parquet_content(bytes(content), rows=1_000)
        except ArgumentError:
            continue


@pytest.fixture
def release(tmp_path):
    frame = pd.DataFrame({"u": range(300), "town": ["a"] * 120 + ["b"] * 100 + ["c"] * 80})
    path = tmp_path / "towns.parquet"
    frame.pkdp.histogram("town", unit="u", k=20, attacker=pkdp.AttackerModel(p_max=0.1)).to_parquet(path)
    return path


def test_a_limit_can_be_given(release, tmp_path):
    assert pkdp.read_release(release).verify()
    assert opened(release, 3).kind == "release"
    with pytest.raises(ArgumentError, match=r"more than 2 rows.*rows = 20"):
        pkdp.read_release(release, rows=2)
    with pytest.raises(ArgumentError, match=r"'towns\.parquet' cannot be read: it is larger.*rows = 20"):
        verify(release, rows=2)
    page = tmp_path / "page.json"
    page.write_text("{" + " " * 2_000_000 + "}", encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"more than 1,048,576 bytes.*rows = 100"):
        verify(page, rows=10)
    for call in (pkdp.read_release, verify):
        with pytest.raises(ArgumentError, match="rows must be"):
            call(release, rows=0)


def test_the_command_names_its_option(release):
    result = CliRunner(env={"COLUMNS": "300"}).invoke(cli.app, ["verify", str(release), "--rows", "2"])
    assert result.exit_code == 2
    assert "--rows 20" in result.output
