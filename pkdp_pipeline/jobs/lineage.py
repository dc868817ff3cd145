"""OpenLineage events of a job's runs, appended to a file: what was read, what was written, what it guarantees.

Events are written by openlineage-python's file transport itself. Its client, which reads ``OPENLINEAGE_…``
variables and can send events over a network, is not used.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import Job

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.records import RunRecord

__all__ = ["check_lineage", "lineage_ended", "lineage_started"]


def check_lineage(job: Job) -> None:
    """Refuse what would keep events from being written, before anything is charged; nothing is written.

    Raises
    ------
    ConfigError
        If openlineage-python is not installed, or the file cannot be written.
    """
    if job.records is None or job.records.lineage is None:
        return
    _look_for_openlineage()
    path = Path(job.records.lineage)
    there = next(place for place in (path, *path.parents) if place.exists())
    if (there.is_dir() == (there == path)) or not os.access(there, os.W_OK):
        raise ConfigError(
            f"records.lineage {str(path)!r} cannot be written: choose another file, or check permissions."
        )


def lineage_started(job: Job, record: RunRecord) -> None:
    """Append the event START of a run, where the job keeps lineage.

    Raises
    ------
    ConfigError
        As of `check_lineage`.
    """
    _append(job, record, "START")


def lineage_ended(job: Job, record: RunRecord) -> None:
    """Append the event COMPLETE or FAIL of a run that has ended, where the job keeps lineage.

    Raises
    ------
    ConfigError
        As of `check_lineage`.
    """
    _append(job, record, "COMPLETE" if record.error is None else "FAIL")


def _append(job: Job, record: RunRecord, kind: str) -> None:
    if job.records is None or job.records.lineage is None:
        return
    _look_for_openlineage()
    from pkdp_pipeline.jobs.lineage_events import append_event, run_event

    path = Path(job.records.lineage)
    problem = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))  # the curator's alone
        append_event(path, run_event(job, job.records.namespace, record, kind))
    except OSError as error:
        problem = error.strerror or "the disk may be full"
    if problem is not None:
        raise ConfigError(f"records.lineage {str(path)!r} cannot be written: {problem}.")


def _look_for_openlineage() -> None:
    try:
        found = importlib.util.find_spec("openlineage.client") is not None
    except ImportError:
        found = False
    if not found:
        raise ConfigError(
            "records.lineage needs openlineage-python, which is not installed: pip install 'pkdp-pipeline[lineage]'."
        )
