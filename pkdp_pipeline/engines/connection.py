"""An embedded DuckDB, which fetches nothing from elsewhere and spills to a private folder, and texts in its SQL."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.model.predicate import like_regex

if TYPE_CHECKING:
    import duckdb


_NUMBERS = itertools.count(1)
_MAX_SMALL_ROWS = 100_000


def connect(*, spill: bool = True) -> duckdb.DuckDBPyConnection:
    """Return an embedded DuckDB that fetches nothing from elsewhere; without `spill` it writes nothing to disk.

    Data that do not fit into memory go to a folder that its owner alone can open, and are deleted with the connection;
    those that a killed process leaves, by a later connection.
    """
    import duckdb

    # By default rows would go, readable by everybody, to the folder in which the program was started.
    place = _spill_folder() if spill else ""
    return duckdb.connect(config={"autoinstall_known_extensions": "false", "temp_directory": place})


@contextmanager
def counting(rows: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection to an embedded DuckDB for counting this many rows.

    Few rows take 3 ms and starting a DuckDB 15 more: they are counted in one that the process keeps, which writes
    nothing to disk.
    """
    with closing(_kept(os.getpid()).cursor() if rows <= _MAX_SMALL_ROWS else connect()) as connection:
        yield connection


@cache
def _kept(process: int) -> duckdb.DuckDBPyConnection:  # a forked process cannot use that of another
    connection = connect(spill=False)
    # Without threads of its own nothing is waited for when a process ends, also a forked one.
    connection.execute("SET threads = 1")
    return connection


def disconnect(connection: duckdb.DuckDBPyConnection) -> None:
    """Close an embedded DuckDB; one that a stopped query still holds goes with the process."""
    import duckdb

    with suppress(duckdb.Error):
        connection.close()


def _spill_folder() -> str:
    """Return a path for one connection's temporary files; empty where nothing would be private.

    DuckDB makes a folder of it when it needs one, and removes it. No two connections share one: before version 2 they
    would write over each other's files.
    """
    private = _private_folder()
    if private is None:
        return ""
    here = f"{re.sub(r'[^A-Za-z0-9]', '_', socket.gethostname())}-"
    with suppress(OSError):
        for left in private.iterdir():
            pid = left.name.removeprefix(here).partition("-")[0]
            # Of another host, a container perhaps, nobody here knows which processes live.
            if left.name.startswith(here) and pid.isdecimal() and not _lives(int(pid)):
                shutil.rmtree(left, ignore_errors=True)
    return str(private / f"{here}{os.getpid()}-{next(_NUMBERS)}")


def _private_folder() -> Path | None:
    """Return a folder that nobody else can open; None where there is none."""
    if not hasattr(os, "getuid"):
        return None
    folder = Path(tempfile.gettempdir()) / f"pkdp-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077:
            return folder
    return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def quoted(name: str) -> str:
    """Return a name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return text as a SQL string."""
    return "'" + text.replace("'", "''") + "'"


def matched(text: str, pattern: str) -> str:
    """Return SQL for whether a text matches a LIKE pattern in its one spelling."""
    # DuckDB takes long for LIKE with % and _, and cannot be interrupted in it; a regular expression is read once.
    if "_" in pattern or "\\" in pattern:
        return f"regexp_matches({text}, {literal(like_regex(pattern))})"
    return f"{text} LIKE {literal(pattern)}"
