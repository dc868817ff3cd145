"""Run records: one JSON file for each run of a job, for the curator; never beside what is public."""

from __future__ import annotations

import json
import math
import os
import platform
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, Self

from pkdp_pipeline.errors import (
    BudgetExceededError,
    ConfigError,
    DifferencingError,
    InputCheckError,
    NoEvidenceError,
    NotCertifiableError,
    PkdpError,
)
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs.files import why_no_folder
from pkdp_pipeline.model.version import VERSION
from pkdp_pipeline.releases.release import Release

__all__ = ["CheckRecord", "ReleaseRecord", "RunRecord", "check_records", "write_record"]

_SCHEMA = "pkdp.run.v1"
_DELTA = 1e-6
_REFUSED = (BudgetExceededError, DifferencingError, InputCheckError, NoEvidenceError, NotCertifiableError)

Outcome = Literal["published", "replayed", "refused", "failed"]


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
        epsilon = release.certificate.epsilon(_DELTA)
        return cls(
            name=name,
            id=release.id,
            charged=not release.replayed,
            epsilon=epsilon if math.isfinite(epsilon) else None,
            sentence=release.certificate.sentence(_DELTA),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRecord:
    """One rule about the input and whether the day kept it; nothing of what was found."""

    rule: str
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What one run of a job has done.

    Parameters
    ----------
    run : str
        UUID of the run; its lineage events have the same.
    day : datetime.date
    started, ended : datetime.datetime
        In UTC; `ended` is None while it runs.
    outcome : {"published", "replayed", "refused", "failed"} or None
    exit_code : int
    error : PkdpError class name and message, or None
        An error that is not one of ours has its kind alone: its words may quote data.
    releases : tuple of ReleaseRecord
    checks : tuple of CheckRecord
    files : tuple of str
    head : str or None
        Hash of the ledger's last event about the day.
    """

    run: str
    day: date
    started: datetime
    ended: datetime | None = None
    outcome: Outcome | None = None
    exit_code: int = 0
    error: tuple[str, str | None] | None = None
    releases: tuple[ReleaseRecord, ...] = ()
    checks: tuple[CheckRecord, ...] = ()
    files: tuple[str, ...] = ()
    head: str | None = None

    @classmethod
    def begin(cls, day: date) -> Self:
        """Return the record of a run that starts now."""
        return cls(run=str(uuid.uuid4()), day=day, started=datetime.now(UTC))

    def succeeded(
        self,
        releases: Sequence[tuple[str, Release]],
        *,
        files: Sequence[str | os.PathLike[str]] = (),
        head: str | None = None,
        checks: Sequence[CheckRecord] = (),
    ) -> Self:
        """Return the record of the run as it ended: everything is published, or was before."""
        replayed = all(release.replayed for _, release in releases)
        return replace(
            self,
            ended=datetime.now(UTC),
            outcome="replayed" if replayed else "published",
            releases=tuple(ReleaseRecord.of(name, release) for name, release in releases),
            files=tuple(os.fspath(file) for file in files),
            head=head,
            checks=tuple(checks),
        )

    def stopped(
        self,
        error: BaseException,
        exit_code: int,
        *,
        releases: Sequence[tuple[str, Release]] = (),
        files: Sequence[str | os.PathLike[str]] = (),
        head: str | None = None,
        checks: Sequence[CheckRecord] = (),
    ) -> Self:
        """Return the record of the run as it ended with an error; `releases` were published before it."""
        return replace(
            self,
            ended=datetime.now(UTC),
            outcome="refused" if isinstance(error, _REFUSED) else "failed",
            exit_code=exit_code,
            error=(type(error).__name__, str(error) if isinstance(error, PkdpError) else None),
            releases=tuple(ReleaseRecord.of(name, release) for name, release in releases),
            files=tuple(os.fspath(file) for file in files),
            head=head,
            checks=tuple(checks),
        )

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
            "delta": _DELTA,
            "releases": [asdict(release) for release in self.releases],
            "checks": [asdict(check) for check in self.checks],
            "files": list(self.files),
            "head": self.head,
            "versions": {
                "pkdp_pipeline": VERSION,
                "python": platform.python_version(),
                "duckdb": metadata.version("duckdb"),
                "pandas": metadata.version("pandas"),
            },
        }
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def check_records(job: Job) -> None:
    """Refuse places for records that lie among public files, or cannot be used, before anything is charged.

    Raises
    ------
    ConfigError
    """
    if job.records is None:
        return
    public = Path(job.output.directory).resolve()
    for key, place in (("records.directory", job.records.directory), ("records.lineage", job.records.lineage)):
        if place is not None and Path(place).resolve().is_relative_to(public):
            raise ConfigError(
                f"{key} {place!r} lies in output.directory, but records are the curator's alone and outputs are "
                "public: choose a place outside it."
            )
    if job.records.directory is not None:
        folder = Path(job.records.directory)
        there = next(place for place in (folder, *folder.parents) if place.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise ConfigError(
                f"records.directory {str(folder)!r} cannot be written to: choose another folder, or check the "
                "permissions of this one."
            )


def write_record(job: Job, record: RunRecord) -> Path | None:
    """Write the record of a run, readable by its owner alone; None where the job keeps none.

    Raises
    ------
    ConfigError
        If it cannot be written.
    """
    if job.records is None or job.records.directory is None:
        return None
    folder = _private_folder(Path(job.records.directory))
    path = folder / f"{_stamp(record.started)}-{record.run}.json"
    temporary = path.with_name(f".{path.name}.partial")
    try:
        # What killed runs have left; a younger one may belong to another job that is writing its own record.
        for leftover in folder.glob(".*.json.partial"):
            if leftover.name < f".{_stamp(record.started - timedelta(days=1))}":
                leftover.unlink(missing_ok=True)
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(record.to_json(job).encode())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"the run record {str(path)!r} cannot be written: {error.strerror}.") from error
    return path


def _private_folder(folder: Path) -> Path:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the folder {str(folder)!r} cannot be created: {why_no_folder(folder, error)}.") from error
    return folder


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
