"""Retention: a private copy of a day's rows where the job file asks for one, and nothing otherwise.

A job keeps no intermediate data unless it has ``retention``. Then each day that is read leaves one Parquet file
with the columns that the job needs, in a folder that its owner alone can open; it is deleted when it is old.
"""

from __future__ import annotations

import os
import re
import stat
import time
from datetime import date
from pathlib import Path

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs import make_folder, write_atomically
from pkdp_pipeline.jobs.sources import Source, needed_columns

__all__ = ["check_retention", "forget_rows", "keep_rows"]

_DAY = 86_400
"""Seconds."""

_SUFFIX = ".rows.parquet"


def check_retention(job: Job) -> None:
    """Refuse a folder that others can read.

    Raises
    ------
    ConfigError
        If the copy may not be kept there; nothing was written.
    """
    if job.retention is None:
        return
    folder = Path(job.retention.directory)
    if folder.exists():
        found = folder.stat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise ConfigError(
                f"retention.directory {str(folder)!r} must be a folder that its owner alone, who runs the job, can "
                f"open: chmod 700 {str(folder)!r}, or choose one that does not exist yet."
            )


def keep_rows(job: Job, source: Source, day: date) -> None:
    """Keep a copy of one day's rows, the columns that the job needs, where the job has ``retention``.

    Raises
    ------
    ConfigError
        If it cannot be written.
    """
    if job.retention is None:
        return
    check_retention(job)
    folder = Path(job.retention.directory)
    rows = source.pandas(job.period, day, needed_columns(job, source.columns))
    try:
        content: bytes | None = rows.to_parquet(index=False)
        problem = ""
    except Exception as error:  # whose words can quote a row
        content, problem = None, type(error).__name__
    if content is None:
        raise ConfigError(f"the copy of the rows of {day.isoformat()} in {str(folder)!r} cannot be made: {problem}.")
    make_folder(folder, 0o700)
    write_atomically(folder / f"{_stem(job)}{day.isoformat()}{_SUFFIX}", content, 0o600)


def forget_rows(job: Job) -> None:
    """Delete the job's copies that were written more than ``retention.days`` days ago, and what a kill left behind.

    A copy's age counts from when it was written, by this machine's clock: a backfill of old dates would otherwise
    delete what it has just kept.

    Raises
    ------
    ConfigError
        If one cannot be deleted.
    """
    if job.retention is None:
        return
    oldest = time.time() - job.retention.days * _DAY
    ours = re.compile(re.escape(_stem(job)) + r"\d{4}-\d{2}-\d{2}" + re.escape(_SUFFIX))
    problem: str | None = None
    try:
        for file in Path(job.retention.directory).glob("*"):
            left_over = file.name.startswith(".") and ours.fullmatch(file.name[1:].removesuffix(".partial"))
            if left_over or (ours.fullmatch(file.name) and file.lstat().st_mtime < oldest):
                file.unlink(missing_ok=True)
    except OSError as error:
        problem = error.strerror
    if problem is not None:
        raise ConfigError(
            f"old copies of rows in retention.directory {job.retention.directory!r} cannot be deleted: {problem}. "
            "Delete them, or check the permissions of the folder."
        )


def _stem(job: Job) -> str:
    """Return how the job's copies begin: several jobs may keep theirs in one folder."""
    return f"{job.name}." if job.name else ""
