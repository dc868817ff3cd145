"""What DuckDB cannot hold in memory does not stay on the disk, and nobody else sees it there."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.engines import rows as connecting
from pkdp_pipeline.engines.rows import connect

_FILLED = "CREATE TABLE kept AS SELECT repeat('person', 20) || range AS s FROM range(1500000)"


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files; the working folder is another."""
    folder, elsewhere = tmp_path / "temporary", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.chdir(elsewhere)
    return folder


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET memory_limit = '60MB'")
    with suppress(duckdb.OutOfMemoryException):
        connection.execute(_FILLED)


def test_what_does_not_fit_into_memory_goes_where_nobody_else_reads_and_does_not_stay(temporary):
    with connect() as connection:
        fill(connection)
        (folder,) = temporary.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert any(path.stat().st_size > 0 for path in folder.rglob("*") if path.is_file())
    assert list(folder.iterdir()) == []
    assert list(Path.cwd().iterdir()) == []


def test_two_connections_do_not_write_over_each_other(temporary):
    with connect() as connection, connect() as other:
        fill(connection)
        fill(other)
        (folder,) = temporary.iterdir()
        assert len(list(folder.iterdir())) == 2


def test_what_a_killed_process_leaves_goes_with_the_next_connection(temporary):
    program = f"""
import os, signal, sys, tempfile
tempfile.tempdir = {str(temporary)!r}
sys.path[:0] = {[str(folder) for folder in Path(__file__).parents[:2]]!r}
from test_connecting import connect, fill
connection = connect()
fill(connection)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).returncode == -signal.SIGKILL
    (folder,) = temporary.iterdir()
    assert [path for path in folder.rglob("*") if path.is_file()]
    with connect():
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("taken", ["open", "link", "file"])
def test_where_somebody_else_could_read_nothing_is_written(temporary, tmp_path, taken):
    folder = temporary / f"pkdp-{os.getuid()}"
    if taken == "open":
        folder.mkdir()
        folder.chmod(0o755)
    elif taken == "link":
        (tmp_path / "private").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "private")
    else:
        folder.write_bytes(b"")
    with connect() as connection:
        assert connection.execute("SELECT current_setting('temp_directory')").fetchall() == [("",)]


@thinned(3)
@pytest.mark.parametrize("few", [0, 40], ids=["many rows", "few rows"])
@pytest.mark.parametrize("question", ["count", "histogram"])
@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table])
def test_counting_a_frame_leaves_nothing_where_the_program_runs(temporary, monkeypatch, kind, question, few):
    places = []
    opened = duckdb.connect

    def watched(*args, **kwargs):
        connection = opened(*args, **kwargs)
        places.extend(connection.execute("SELECT current_setting('temp_directory')").fetchall())
        return connection

    monkeypatch.setattr(duckdb, "connect", watched)
    monkeypatch.setattr(connecting, "_MAX_SMALL_ROWS", few)
    connecting._kept.cache_clear()
    frame = kind({"person": [f"p{n}" for n in range(40)], "town": ["Ås", "Bø"] * 20})
    attacker = pkdp.AttackerModel(p_max=0.5)
    if question == "count":
        pkdp.count(frame, "town == 'Ås'", unit="person", attacker=attacker, k=5)
    else:
        pkdp.histogram(frame, "town", unit="person", attacker=attacker, k=5)
    if few:
        assert places == [("",)]
    else:
        assert places
        assert all(Path(place).parent == temporary / f"pkdp-{os.getuid()}" for (place,) in places)
    assert connecting._kept.cache_info().currsize == bool(few)


def test_threads_count_at_the_same_time():
    frames = [pd.DataFrame({"person": [f"p{n}" for n in range(50 + many)]}) for many in range(20)]

    def counted(frame):
        return pkdp.count(frame, unit="person", attacker=pkdp.AttackerModel(p_max=0.5), k=5).value

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(counted, frames * 2)) == [len(frame) for frame in frames] * 2
