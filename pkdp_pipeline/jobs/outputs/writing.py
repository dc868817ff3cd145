"""Writing a day's releases to every place that a job names, and refusing places before anything is charged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from pkdp_pipeline.jobs.job import Job, ReleaseTable
from pkdp_pipeline.jobs.outputs.csv_text import csv_bytes
from pkdp_pipeline.jobs.outputs.duckdb_table import check_duckdb, write_duckdb
from pkdp_pipeline.jobs.outputs.files import make_folder, remove_leftovers_in, write_atomically
from pkdp_pipeline.jobs.outputs.postgres_table import check_postgres, write_postgres
from pkdp_pipeline.releases.release import Release

__all__ = ["check_outputs", "write_outputs"]


def check_outputs(job: Job) -> None:
    """Refuse whatever is wrong with a job's outputs, before anything is charged; nothing is written.

    Raises
    ------
    ConfigError
        If a place cannot be used, or holds what is not this job's.
    TemporaryError
        If a database is locked or cannot be reached.
    """
    for name, (check, _) in _TABLES.items():
        if getattr(job.output, name) is not None:
            check(job)


def write_outputs(
    job: Job, day: date, releases: Sequence[tuple[ReleaseTable, Release]]
) -> Mapping[str, tuple[Path, ...]]:
    """Write releases of one day to all of a job's outputs; what is there already is left or replaced.

    Parameters
    ----------
    job : Job
    day : datetime.date
    releases : sequence of (ReleaseTable, Release)
        All of the day's releases, or those that exist so far.

    Returns
    -------
    mapping of str to tuple of pathlib.Path
        The files of each release, by its name.

    Raises
    ------
    ConfigError
        If an output cannot hold a release.
    TemporaryError
        If a database is locked or cannot be reached.
    """
    folder = Path(job.output.directory) / day.isoformat()
    make_folder(folder)
    remove_leftovers_in(folder)
    files = {asked.name: _write_files(job, folder, asked.name, release) for asked, release in releases}
    for name, (_, write) in _TABLES.items():
        if getattr(job.output, name) is not None:
            write(job, day, [(asked.name, release) for asked, release in releases])
    return files


_TABLES = {"duckdb": (check_duckdb, write_duckdb), "postgres": (check_postgres, write_postgres)}
"""The databases that hold public tables, by their key in ``[output]``: how each is checked and written."""


def _write_files(job: Job, folder: Path, name: str, release: Release) -> tuple[Path, ...]:
    contents: dict[str, bytes] = {}
    if "parquet" in job.output.formats:
        contents["parquet"] = release.to_bytes()
    if "csv" in job.output.formats:
        contents["csv"] = csv_bytes(release.table)
    contents["certificate.json"] = (release.certificate.to_json().rstrip("\n") + "\n").encode()
    files = []
    for suffix, content in contents.items():
        path = folder / f"{name}.{suffix}"
        write_atomically(path, content)
        files.append(path)
    return tuple(files)
