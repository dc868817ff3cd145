"""Recording: every run of a day ends in a record and a lineage event, however it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from pkdp_pipeline.errors import PkdpError, exit_code
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.lineage import check_lineage, lineage_ended, lineage_started
from pkdp_pipeline.jobs.records import CheckRecord, RunRecord, check_records, write_record
from pkdp_pipeline.jobs.stopping import Stopped
from pkdp_pipeline.releases.release import Release

__all__ = ["Done", "check_recording", "recorded", "recorded_failure"]


@dataclass(slots=True)
class Done:
    """What a run has done so far."""

    releases: list[tuple[str, Release]] = field(default_factory=list)
    files: Sequence[Path] = ()
    head: str | None = None
    verdicts: Sequence[tuple[str, bool]] = ()

    def noted(self) -> dict[str, Any]:
        """Return what a record holds of it, by the names that `RunRecord` has for it."""
        checks = [CheckRecord(rule=rule, passed=passed) for rule, passed in self.verdicts]
        return {"releases": self.releases, "files": self.files, "head": self.head, "checks": checks}


def check_recording(job: Job) -> None:
    """Refuse places where nothing can be recorded, before anything is charged.

    Raises
    ------
    ConfigError
    """
    check_records(job)
    check_lineage(job)


@contextmanager
def recorded(job: Job, day: date) -> Iterator[Done]:
    """Record what is done inside; it is noted in what this yields. Nothing happens in a job without ``[records]``.

    Raises
    ------
    ConfigError
        If what went well cannot be recorded. An error from inside is passed on, recorded or not.
    """
    done = Done()
    if job.records is None:
        yield done
        return
    record = RunRecord.begin(day)
    lineage_started(job, record)
    try:
        yield done
    except BaseException as error:
        code = error.exit_code if isinstance(error, Stopped) else exit_code(error)
        with suppress(PkdpError):
            _end(job, record.stopped(error, code, **done.noted()))
        raise
    try:
        _end(job, record.succeeded(**done.noted()))
    except PkdpError as error:
        raise type(error)(
            f"{error} The releases themselves are published, charged once, and written: only the record is missing."
        ) from error


@contextmanager
def recorded_failure(job: Job, day: date) -> Iterator[None]:
    """Record that a run ended before it began: an error from inside is recorded and passed on, success is not."""
    try:
        yield
    except BaseException as error:
        code = error.exit_code if isinstance(error, Stopped) else exit_code(error)
        with suppress(PkdpError):
            check_recording(job)
            record = RunRecord.begin(day)
            lineage_started(job, record)
            _end(job, record.stopped(error, code))
        raise


def _end(job: Job, record: RunRecord) -> None:
    write_record(job, record)
    lineage_ended(job, record)
