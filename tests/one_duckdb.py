"""One DuckDB for the files of all jobs: to start another takes ten times as long as to read what tests publish."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from pkdp_pipeline.engines import rows

__all__ = ["one_duckdb"]


@pytest.fixture(autouse=True, scope="module")
def one_duckdb() -> Iterator[None]:
    """Let sources of files share the DuckDB that counts few rows, each with a connection and settings of its own."""
    from pkdp_pipeline.jobs.sources import csv_files, files

    def connected(**_: object) -> Any:
        cursor = rows._kept(os.getpid()).cursor()
        cursor.execute("SET TimeZone = 'UTC'")
        return cursor

    with pytest.MonkeyPatch.context() as patched:
        for module in (csv_files, files):
            patched.setattr(module, "connect", connected)
        yield
