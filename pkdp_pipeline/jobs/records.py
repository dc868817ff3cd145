"""What is kept for the curator: a record of every run, and where the job asks for it a private copy of a day's rows."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import stat
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pkdp_pipeline.errors import (
    BudgetExceededError,
    ConfigError,
    DifferencingError,
    InputCheckError,
    NoEvidenceError,
    NotCertifiableError,
    PkdpError,
    exit_code,
)
from pkdp_pipeline.jobs.dry_run import DELTA
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.lineage import append_event, check_lineage
from pkdp_pipeline.jobs.loading import misplaced
from pkdp_pipeline.jobs.outputs.files import is_writable, make_folder, write_atomically
from pkdp_pipeline.jobs.sources import Source, needed_columns
from pkdp_pipeline.jobs.stopping import Stopped
from pkdp_pipeline.jobs.tables import ReleaseTable
from pkdp_pipeline.model.version import VERSION
from pkdp_pipeline.releases.release import Release

_SCHEMA = "pkdp.run.v1"
_REFUSED = (BudgetExceededError, DifferencingError, InputCheckError, NoEvidenceError, NotCertifiableError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord:
    """One release of a run.

    Parameters
    ----------
    name : str
        Its name in the job file.
    id : str
    charged : bool
        Whether this run charged it; False where the ledger had it already.
    epsilon : float or None
        The certified ε at δ = 1e-6; None where no ε reaches it.
    sentence : str
        The guarantee in words.
    """

    name: str
    id: str
    charged: bool
    epsilon: float | None
    sentence: str

    @classmethod
    def of(cls, name: str, release: Release) -> ReleaseRecord:
        """Record a release under its name in the job file."""
        epsilon = release.certificate.epsilon(DELTA)
        return cls(
            name=name,
            id=release.id,
            charged=not release.replayed,
            epsilon=epsilon if math.isfinite(epsilon) else None,
            sentence=release.certificate.sentence(DELTA),
        )


@dataclass(slots=True, kw_only=True)
class RunRecord:
    """What one run of a job does; it is filled while the run goes on.

    Parameters
    ----------
    day : datetime.date
    run : str
        UUID of the run; its lineage events have the same.
    started, ended : datetime.datetime
        In UTC; `ended` is None while it runs.
    published : list of (ReleaseTable, Release)
    checks : sequence of (str, bool)
        Rules about the input and whether the day kept them; nothing of what was found.
    files : sequence of path-like
    head : str or None
        Hash of the ledger's last event about the day.
    outcome : {"published", "replayed", "refused", "failed"} or None
    exit_code : int
    error : PkdpError class name and message, or None
        An error that is not one of ours has its kind alone: its words may quote data.
    """

    day: date
    run: str = field(default_factory=lambda: str(uuid.uuid4()))
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended: datetime | None = None
    published: list[tuple[ReleaseTable, Release]] = field(default_factory=list)
    checks: Sequence[tuple[str, bool]] = ()
    files: Sequence[str | os.PathLike[str]] = ()
    head: str | None = None
    outcome: Literal["published", "replayed", "refused", "failed"] | None = None
    exit_code: int = 0
    error: tuple[str, str | None] | None = None

    @property
    def releases(self) -> tuple[ReleaseRecord, ...]:
        """What is recorded of the releases."""
        return tuple(ReleaseRecord.of(asked.name, release) for asked, release in self.published)

    def end(self, error: BaseException | None = None) -> None:
        """Note how the run ended."""
        self.ended = datetime.now(UTC)
        if error is None:
            self.outcome = "replayed" if all(release.replayed for _, release in self.published) else "published"
            return
        self.outcome = "refused" if isinstance(error, _REFUSED) else "failed"
        self.exit_code = error.exit_code if isinstance(error, Stopped) else exit_code(error)
        self.error = (type(error).__name__, str(error) if isinstance(error, PkdpError) else None)

    def to_json(self, job: Job) -> str:
        """Return the record as JSON, as `pkdp_pipeline/schemas/run.v1.json` describes it."""
        document: dict[str, Any] = {
            "record": _SCHEMA,
            "run": self.run,
            "job": job.name,
            "dataset": job.dataset,
            "digest": job.digest,
            "day": self.day.isoformat(),
            "started": _written(self.started),
            "ended": None if self.ended is None else _written(self.ended),
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "error": None if self.error is None else {"kind": self.error[0], "message": self.error[1]},
            "delta": DELTA,
            "releases": [asdict(release) for release in self.releases],
            "checks": [{"rule": rule, "passed": passed} for rule, passed in self.checks],
            "files": [os.fspath(file) for file in self.files],
            "head": self.head,
            "versions": {
                "pkdp_pipeline": VERSION,
                "python": platform.python_version(),
                "duckdb": metadata.version("duckdb"),
                "pandas": metadata.version("pandas"),
            },
        }
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, job: Job) -> Path | None:
        """Write the record, readable by its owner alone; return where, or None where the job keeps none.

        Raises
        ------
        ConfigError
            If it cannot be written.
        """
        if job.records is None or job.records.directory is None:
            return None
        folder = Path(job.records.directory)
        make_folder(folder, 0o700)
        # What killed runs have left; a younger one may belong to another job that is writing its own record.
        for leftover in folder.glob(".*.json.partial"):
            if leftover.name < f".{_stamp(self.started - timedelta(days=1))}":
                with suppress(OSError):
                    leftover.unlink(missing_ok=True)
        path = folder / f"{_stamp(self.started)}-{self.run}.json"
        write_atomically(path, self.to_json(job).encode(), 0o600)
        return path


@contextmanager
def recorded(job: Job, day: date, *, success: bool = True) -> Iterator[RunRecord]:
    """Record what is done inside, noted in what this yields; a job without ``[records]`` writes nothing.

    Without `success`, only that it ended before the run itself began: an error is recorded, success is not.

    Raises
    ------
    ConfigError
        If what went well cannot be recorded. An error from inside is passed on, recorded or not.
    """
    record = RunRecord(day=day)
    if success:
        append_event(job, record, "START")
    try:
        yield record
    except BaseException as error:
        with suppress(PkdpError):
            if not success:
                check_records(job)
                append_event(job, record, "START")
            record.end(error)
            record.write(job)
            append_event(job, record, "FAIL")
        raise
    if not success:
        return
    try:
        record.end()
        record.write(job)
        append_event(job, record, "COMPLETE")
    except PkdpError as error:
        raise type(error)(
            f"{error} The releases themselves are published, charged once, and written: only the record is missing."
        ) from error


def check_records(job: Job) -> None:
    """Refuse private places inside the public one, and places for records and lineage that cannot be used.

    Raises
    ------
    ConfigError
    """
    if wrong := misplaced(job):  # a folder may have become a link since the file was read
        raise ConfigError("\n  ".join(["the job cannot be run:", *wrong]))
    if job.records is None:
        return
    if job.records.directory is not None:
        folder = Path(job.records.directory)
        if not is_writable(folder, folder=True):
            raise ConfigError(
                f"records.directory {str(folder)!r} cannot be written to: choose another folder, or check the "
                "permissions of this one."
            )
    check_lineage(job)


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
