from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import os
import signal
import stat
import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from public_releases import plain, release, releases, rows, seal
from thorough import few

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.jobs.dry_run import check_folder
from pkdp_pipeline.jobs.outputs import check_outputs, write_outputs
from pkdp_pipeline.jobs.outputs.files import csv_bytes, make_folder, remove_leftovers, write_atomically, write_together
from pkdp_pipeline.releases.release import read_release

DAY = date(2020, 1, 1)


def test_a_file_is_replaced_whole_and_readable_by_all(tmp_path):
    path = tmp_path / "file"
    before = os.umask(0o077)
    try:
        write_atomically(path, b"old")
        write_atomically(path, b"new")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_with_the_same_content_is_left_as_it_is(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    before = path.stat()
    (tmp_path / ".file.partial").write_bytes(b"o")
    write_atomically(path, b"old")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert os.listdir(tmp_path) == ["file"]


def test_the_names_of_files_written_together_are_on_the_disk_after_their_contents(tmp_path, monkeypatch):
    sync, folders = os.fsync, []
    monkeypatch.setattr(
        os, "fsync", lambda handle: folders.append(stat.S_ISDIR(os.fstat(handle).st_mode)) or sync(handle)
    )
    contents = {tmp_path / "table": b"rows", tmp_path / "certificate": b"numbers"}
    write_together(contents)
    write_together(contents)
    assert folders == [False, False, True]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == contents


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_kill_leaves_is_gone_after_the_next_run(tmp_path):
    folder = tmp_path / "2020-01-01"
    folder.mkdir()
    code = (
        "import os, signal, pathlib, pkdp_pipeline.jobs.outputs.files as files\n"
        "os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"files.write_atomically(pathlib.Path({str(folder)!r}) / 'people.parquet', b'whole')\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert os.listdir(folder) == [".people.parquet.partial"]
    (folder / "notes.partial").write_text("the curator's own")
    remove_leftovers(tmp_path)
    assert os.listdir(folder) == ["notes.partial"]
    remove_leftovers(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_is_a_config_error(tmp_path):
    (tmp_path / "file").write_text("")
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    for folder in (tmp_path / "file" / "folder", tmp_path / "file"):
        with pytest.raises(ConfigError, match="cannot be created"):
            make_folder(folder)
    with pytest.raises(ConfigError, match="cannot be written"):
        write_atomically(tmp_path / "missing" / "file", b"")


KEYS = {"town": ["Ås", 'a "b", c\r\nd', "", "=1+1", None], "n": [1, 2, 3, None, 5]}


def test_csv_quotes_text_and_leaves_empty_what_is_missing():
    assert csv_bytes(release(KEYS, [7, None, 5, 9, 8])).decode() == (
        '"town","n","count"\r\n"Ås",1,7\r\n"a ""b"", c\r\nd",2,\r\n"",3,5\r\n"=1+1",,9\r\n,5,8\r\n'
    )
    keys = {
        "a": [True],
        "b": [decimal.Decimal("1.50")],
        "c": [float("inf")],
        "d": [datetime.date(2020, 1, 2)],
        "e": [pd.Timestamp("2020-01-02 03:04:05.000006")],
        "f": [pd.Timestamp("2020-07-02 03:04:05", tz="UTC")],
        "g": [2**64 - 1],
        "h": [0.1],
    }
    assert csv_bytes(release(keys, [7])).decode().splitlines()[1] == (
        "true,1.50,inf,2020-01-02,2020-01-02T03:04:05.000006,2020-07-02T03:04:05+00:00,18446744073709551615,0.1,7"
    )


def test_a_suppressed_count_without_keys_is_a_line_that_no_reader_skips():
    content = csv_bytes(seal(pd.DataFrame({"count": pd.array([None], dtype="Int64")})))
    assert content == b'"count"\r\n""\r\n'
    read = pd.read_csv(io.BytesIO(content))
    assert read["count"].isna().tolist() == [True]


@given(released=releases(kinds=("text", "integer", "boolean", "date")))
@settings(max_examples=few(40))
def test_csv_comes_back_through_duckdb_as_it_is_in_the_release(tmp_path_factory, released):
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_bytes(csv_bytes(released))
    kinds = dict(
        zip(
            released.table.columns,
            [_sql_type(released.table[name]) for name in released.table],
            strict=True,
        )
    )
    read = duckdb.read_csv(
        str(path), columns=kinds, header=True, delimiter=",", quotechar='"', escapechar='"', allow_quoted_nulls=False
    ).fetchall()
    assert [tuple(map(plain, row)) for row in read] == rows(released)


def _sql_type(column):
    present = [plain(value) for value in column.array if plain(value) is not None]
    first = type(present[0]) if present else int
    return {bool: "BOOLEAN", int: "BIGINT", str: "VARCHAR", datetime.date: "DATE"}[first]


@given(released=releases())
@settings(max_examples=few(40))
def test_csv_has_the_rows_and_columns_that_rfc_4180_says(released):
    text = csv_bytes(released).decode()
    read = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert read[0] == list(released.table.columns)
    assert len(read) == len(released.table) + 1
    assert {len(line) for line in read} == {released.table.shape[1]}
    texts = [name for name in released.table if isinstance(released.table[name].dtype, pd.StringDtype)]
    for name in texts:
        place = read[0].index(name)
        assert [line[place] for line in read[1:]] == [
            "" if value is None else value for value in map(plain, released.table[name].array)
        ]


def test_a_day_is_files_of_the_chosen_formats_with_the_same_bytes_each_time(job_file, basic):
    job = load_job(job_file(basic + 'formats = ["csv", "parquet"]\n'))
    released = release({"town": ["Ås", "Bø"]}, [7, None])
    files = write_outputs(job, DAY, [(job.release[0], released)])["people_by_town"]
    folder = Path(job.output.directory) / "2020-01-01"
    assert sorted(files) == sorted(folder.iterdir())
    assert [path.name for path in sorted(files)] == [
        "people_by_town.certificate.json",
        "people_by_town.csv",
        "people_by_town.parquet",
    ]
    assert read_release(folder / "people_by_town.parquet").id == released.id
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
    (folder / ".people_by_town.parquet.partial").write_bytes(b"half")
    (folder / ".people.csv.partial").write_bytes(b"half")
    write_outputs(job, DAY, [(job.release[0], released)])
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before
    assert not list(folder.glob(".*"))


def test_a_parquet_file_says_nothing_of_where_and_when_it_was_made(job_file):
    job = load_job(job_file())
    released = release({"town": ["Ås"]}, [7])
    files = write_outputs(job, DAY, [(job.release[0], released)])["people_by_town"]
    metadata = pq.ParquetFile(files[0]).metadata
    assert set(metadata.metadata) == {b"pandas", b"pkdp.certificate", b"pkdp.release"}
    assert set(json.loads(metadata.metadata[b"pandas"])) <= {
        "attributes",
        "column_indexes",
        "columns",
        "creator",
        "index_columns",
        "pandas_version",
    }
    content = files[0].read_bytes()
    assert os.uname().nodename.encode() not in content
    assert str(Path(job.output.directory)).encode() not in content


def test_a_folder_with_releases_of_another_data_set_is_refused(job_file, basic):
    job = load_job(job_file())
    check_folder(job)
    assert not Path(job.output.directory).exists()
    write_outputs(job, DAY, [(job.release[0], release({"town": ["Ås"]}, [7]))])
    check_folder(job)
    other = load_job(job_file(basic.replace('dataset = "visits"', 'dataset = "trips"')))
    with pytest.raises(ConfigError, match="releases of the data set 'visits', this job's is 'trips'"):
        check_folder(other)
    same = load_job(job_file(basic.replace('dataset = "visits"', 'dataset = " Visits"')))
    check_folder(same)
    houses = load_job(job_file(basic.replace('unit = "person"', 'unit = "house"')))
    with pytest.raises(ConfigError, match="about other units"):
        check_folder(houses)


def test_an_unreadable_certificate_does_not_stop_a_job(job_file):
    job = load_job(job_file())
    folder = Path(job.output.directory) / "2020-01-01"
    folder.mkdir(parents=True)
    for content in (b"{", b"[]", b'{"context": 1}', b"\xff", b'{"context": {"dataset": 1}}'):
        (folder / "people_by_town.certificate.json").write_bytes(content)
        check_folder(job)


def test_a_file_of_the_jobs_own_is_no_place_for_public_tables(job_file, basic):
    source = 'source = { duckdb = "public.duckdb", table = "visits" }'
    text = basic.replace('source = "visits.parquet"', source) + 'duckdb = "public.duckdb"\n'
    with pytest.raises(ConfigError, match=r"output\.duckdb"):
        check_outputs(load_job(job_file(text)))


def test_a_release_that_nothing_reached_is_a_header(job_file, basic):
    job = load_job(job_file(basic + 'formats = ["csv"]\n'))
    nothing = seal(pd.DataFrame({"town": pd.Series([], dtype="str"), "count": pd.array([], dtype="Int64")}))
    files = write_outputs(job, DAY, [(job.release[0], nothing)])["people_by_town"]
    assert files[0].read_bytes() == b'"period","town","count"\r\n'
