"""Sources: the rows of one day of a job's data, each read by a module that is imported when a job needs it.

Their keys in a job file are in `jobs.source_tables`: each table there opens its source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkdp_pipeline.jobs.sources.source import Kind, Source, needed_columns

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.job import Job

__all__ = ["Kind", "Source", "needed_columns", "open_source"]


def open_source(job: Job) -> Source:
    """Return what the job reads from, open for reading; it is one state of the data until it is closed.

    Raises `ConfigError` if the data cannot be read, or what reads them is not installed; `TemporaryError` if the
    database is locked or cannot be reached.
    """
    return job.source.open(job)
