"""Where releases go: files in a folder for each period, tables in databases, and files for offices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.jobs.outputs.files import (
    Format,
    for_offices,
    make_folder,
    remove_leftovers_in,
    write_atomically,
    write_files,
)
from pkdp_pipeline.jobs.outputs.tables import TableStore, check_tables, replace_period
from pkdp_pipeline.plugins import hook, view
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.job import Job
    from pkdp_pipeline.jobs.release_tables import ReleaseTable

__all__ = ["Format", "Output", "check_outputs", "write_for_offices", "write_outputs"]

Output = Callable[["Job", Callable[[TableStore], None], bool], None]
"""A database that holds public tables, by its key in ``[output]``: it does work in one transaction.

Its parameters are the job, the work, and whether this writes: a database is then created where there is none.
"""


def check_outputs(job: Job) -> None:
    """Refuse whatever is wrong with a job's outputs, before anything is charged; nothing is written.

    Raises `ConfigError` if a place cannot be used, or holds what is not this job's; `TemporaryError` if a database is
    locked or cannot be reached.
    """
    _in_databases(job, lambda store: check_tables(store, job))
    for _ in for_offices(job.output.formats, {}, None):
        pass  # what is not installed is said
    if job.output.suppressed is not None:
        for release in job.release:
            try:
                view("tables.marker")(release.mechanism, job.output.suppressed)
            except ArgumentError as error:
                raise ConfigError(f"output, release {release.name!r}: {error}") from None


def write_outputs(
    job: Job, day: date, releases: Sequence[tuple[ReleaseTable, Release]]
) -> Mapping[str, tuple[Path, ...]]:
    """Write releases of one period to all of a job's outputs; what is there already is left or replaced.

    `day`: in the period. `releases`: all of the period's releases, or those that exist so far. Raises `ConfigError` if
    an output cannot hold a release, `TemporaryError` if a database is locked or cannot be reached.

    Returns
    -------
    mapping of str to tuple of pathlib.Path
        The files of each release, by its name.
    """
    folder = job.folder(day)
    make_folder(folder)
    remove_leftovers_in(folder)
    written = partial(write_files, folder, formats=job.output.formats, named=job.output.layout == "plain")
    files = {table.name: written(table.name, release) for table, release in releases}
    named = [(table.name, release) for table, release in releases]
    _in_databases(job, lambda store: replace_period(store, job, day, named), writing=True)
    return files


def write_for_offices(job: Job, day: date, releases: Sequence[tuple[ReleaseTable, Release]]) -> tuple[Path, ...]:
    """Write the further formats that a job names, of these releases of one period, and return where.

    Raises `ArgumentError` if a format cannot hold a release, `ConfigError` if a file cannot be written.
    """
    written, named = [], {table.name: release for table, release in releases}
    for name, content in for_offices(job.output.formats, named, job.output.suppressed):
        written.append(job.folder(day) / name)
        write_atomically(written[-1], content)
    return tuple(written)


def _in_databases(job: Job, work: Callable[[TableStore], None], *, writing: bool = False) -> None:
    for name in job.output.databases():
        in_database: Output = hook("outputs", name)
        in_database(job, work, writing)
