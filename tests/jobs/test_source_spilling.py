"""What DuckDB reads does not stay on the disk, and nobody else sees it there."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from pkdp_pipeline.jobs.sources.relation_source import connect


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files; the working folder is another."""
    folder, elsewhere = tmp_path / "temporary", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.chdir(elsewhere)
    return folder


def test_what_does_not_fit_into_memory_goes_where_nobody_else_reads_and_does_not_stay(temporary):
    with connect() as connection:
        connection.execute("SET memory_limit = '60MB'")
        with suppress(duckdb.OutOfMemoryException):
            connection.execute("CREATE TABLE kept AS SELECT repeat('person', 20) || range AS s FROM range(3000000)")
        (folder,) = temporary.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert any(path.stat().st_size > 0 for path in folder.iterdir())
    assert list(folder.iterdir()) == []
    assert list(Path.cwd().iterdir()) == []


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
