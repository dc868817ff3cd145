"""Steps around a job's periods: what plugins do, and what becomes of a day: its result, its record, its kept rows.

A plugin's step is for example a report, or an event of lineage.

Stopping: a job that is told to stop does so where nothing is left half done.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import signal
import stat
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pkdp_pipeline.clock import instant, now
from pkdp_pipeline.errors import REFUSED, ConfigError, InputCheckError, PkdpError, exit_code
from pkdp_pipeline.jobs.dry_run import DELTA
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs.files import PERIOD, is_writable, make_folder, write_atomically
from pkdp_pipeline.jobs.release_tables import ReleaseTable
from pkdp_pipeline.jobs.sources.source import Source
from pkdp_pipeline.ledger.database import while_waiting
from pkdp_pipeline.plugins import hooks, load
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.schemas import VERSION

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.ledger.totals import Together

Answer = TypeVar("Answer")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopped(BaseException):
    """SIGTERM or Ctrl-C; no `Exception`, so that nothing takes it for an error and goes on."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)

    @property
    def exit_code(self) -> int:
        """The exit status a shell reports: 128 plus the number of the signal."""
        return 128 + self.signal


class Stopping:
    """Decides where a signal takes effect.

    While data are checked and counted it does at once, as nothing is charged yet, and so it does while the ledger is
    locked by others. Elsewhere the step that has begun is finished first, such as a transaction of the ledger or a
    file. A second signal takes effect at once everywhere.

    Notes
    -----
    Without `listening` nothing is changed: signals do what the surrounding program has decided, and a release
    that they interrupt gives its charge back as well.
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._at_once = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take SIGTERM and Ctrl-C over; outside the main thread, which alone gets signals, nothing happens."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        former = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        try:
            with while_waiting(self.check):
                yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raise `Stopped` when a signal has come; called between steps."""
        if self._received is not None:
            raise Stopped(self._received)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let a signal take effect at once."""
        try:
            self._at_once = True
            self.check()
            yield
        except Exception:
            # A library may have made an error of its own out of it.
            if self._received is not None:
                raise Stopped(self._received) from None
            raise
        finally:
            self._at_once = False

    def _stop(self, number: int, frame: FrameType | None) -> None:
        first, self._received = self._received is None, number
        if self._at_once or not first:
            raise Stopped(number)


def interruptible(work: Callable[[], Answer], cancel: Callable[[], None]) -> Answer:
    """Wait for `work`, done in another thread, and cancel it when a signal comes.

    One that waits inside a driver or an engine learns of a signal only when it is over.
    """
    with ThreadPoolExecutor(1) as other:
        future = other.submit(work)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                with suppress(Exception):
                    cancel()
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRelease:
    """One release of a job and the files it was written to."""

    declared: ReleaseTable
    release: Release
    files: tuple[Path, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return name, id, whether this run charged it, the certified ε at δ = 1e-6 or None, and the guarantee."""
        certificate = self.release.certificate
        epsilon = certificate.epsilon(DELTA)
        return {
            "name": self.declared.name,
            "id": self.release.id,
            "charged": not self.release.replayed,
            "epsilon": epsilon if math.isfinite(epsilon) else None,
            "sentence": certificate.sentence(DELTA),
        }


@dataclass(slots=True, kw_only=True)
class JobResult:
    """The record of one period; it is filled while the run goes on.

    Parameters
    ----------
    day : datetime.date
        The first of the period.
    run : str
        UUID of the run; its lineage events have the same.
    started, ended : datetime.datetime
        In UTC; `ended` is None while it runs.
    releases : tuple of JobRelease
        The releases published or replayed so far.
    checks : sequence of (str, bool)
        Rules about the input and whether the day kept them; nothing of what was found.
    new_ledger : bool
        Whether the ledger held nothing about this data set before. Where something was expected, its path or
        the data set's name is wrong.
    together : Together or None
        The total of everything that the ledger holds about these people on this date, when that is more
        than one release.
    head : str or None
        Hash of the ledger's event that holds the last of these releases; ``pkdp ledger verify --head`` finds
        out whether a ledger still has it. None until the files are written.
    for_offices : tuple of pathlib.Path
        Files of further formats, of one release or several.
    unwritten : mapping of str to str
        Files whose format cannot hold a table, by their names: why.
    report : pathlib.Path or None
        The date's report, where ``[output] report`` asks for it.
    total : Certificate or None
        The total of everything that the ledger holds about the job's unit, under the declared evidence; None
        where it does not add up, and for a day of a longer session, whose `JobSession.total` tells it.
    error : BaseException or None
        The error that ended it.
    """

    job: Job
    day: date
    run: str = field(default_factory=lambda: str(uuid.uuid4()))
    started: datetime = field(default_factory=now)
    ended: datetime | None = None
    releases: tuple[JobRelease, ...] = ()
    checks: Sequence[tuple[str, bool]] = ()
    new_ledger: bool = False
    together: Together | None = None
    head: str | None = None
    for_offices: tuple[Path, ...] = ()
    unwritten: Mapping[str, str] = field(default_factory=dict)
    report: Path | None = None
    total: Certificate | None = None
    error: BaseException | None = None

    @property
    def summary(self) -> Path:
        """Where the period's summary is."""
        return self.job.folder(self.day) / "summary.md"

    @property
    def files(self) -> list[Path]:
        """The files that were written, or are as they would be written."""
        files = [file for release in self.releases for file in release.files]
        ends = [self.summary] if self.head is not None else []
        return [*files, *self.for_offices, *ends, *filter(None, [self.report])]

    @property
    def replayed(self) -> bool:
        """Whether everything was published before: no data was read and nothing was charged."""
        return all(release.release.replayed for release in self.releases)

    @property
    def exit_code(self) -> int:
        """The exit code of a command that ends with it."""
        if self.error is None:
            return 0
        return self.error.exit_code if isinstance(self.error, Stopped) else exit_code(self.error)

    @property
    def outcome(self) -> Literal["published", "replayed", "refused", "failed"]:
        """How it ended: refused by the input or a rule of privacy, or failed for another reason."""
        if self.error is None:
            return "replayed" if self.replayed else "published"
        return "refused" if self.exit_code == REFUSED or isinstance(self.error, InputCheckError) else "failed"

    @property
    def message(self) -> str | None:
        """The error's words; None where it is not one of ours, since its words may quote data."""
        return str(self.error) if isinstance(self.error, PkdpError) else None

    def to_json(self) -> str:
        """Return the record of the run as JSON, as `pkdp_pipeline/schemas/run.v1.json` describes it."""
        job, error = self.job, self.error
        document: dict[str, Any] = {
            "record": "pkdp.run.v1",
            "run": self.run,
            "job": job.name,
            "dataset": job.dataset,
            "digest": job.digest,
            "day": self.day.isoformat(),
            "started": instant(self.started),
            "ended": None if self.ended is None else instant(self.ended),
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "error": None if error is None else {"kind": type(error).__name__, "message": self.message},
            "delta": DELTA,
            "releases": [release.facts() for release in self.releases],
            "checks": [{"rule": rule, "passed": passed} for rule, passed in self.checks],
            "files": list(map(str, self.files)),
            "head": self.head,
            "versions": {
                "pkdp_pipeline": VERSION,
                "python": platform.python_version(),
                "duckdb": metadata.version("duckdb"),
                "pandas": metadata.version("pandas"),
            },
        }
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def write(self) -> Path | None:
        """Write the record, readable by its owner alone; return where, or None where the job keeps none.

        Raises `ConfigError` if it cannot be written.
        """
        if self.job.records is None or self.job.records.directory is None:
            return None
        folder = Path(self.job.records.directory)
        make_folder(folder, 0o700)
        # What killed runs have left; a younger one may belong to another job that is writing its own record.
        for leftover in folder.glob(".*.json.partial"):
            if leftover.name < f".{self.started - timedelta(days=1):{_STAMP}}":
                with suppress(OSError):
                    leftover.unlink(missing_ok=True)
        path = folder / f"{self.started:{_STAMP}}-{self.run}.json"
        write_atomically(path, self.to_json().encode(), 0o600)
        return path


_STAMP = "%Y%m%dT%H%M%SZ"


_SUFFIX = ".rows.parquet"


def check_retention(job: Job) -> None:
    """Refuse a folder that others can read.

    Raises `ConfigError` if the copy may not be kept there; nothing was written.
    """
    folder = Path(job.retention.directory) if job.retention else None
    if folder is None or not folder.exists():
        return
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise ConfigError(
            f"retention.directory {str(folder)!r} must be a folder that its owner alone, who runs the job, can "
            f"open: chmod 700 {str(folder)!r}, or choose one that does not exist yet."
        )


def keep_rows(job: Job, source: Source, day: date) -> None:
    """Keep a copy of one day's rows, the columns that the job needs, where the job has ``retention``."""
    if job.retention is None:
        return
    check_retention(job)
    folder = Path(job.retention.directory)
    rows = source.pandas(job.period, day, job.needs().of(source.columns))
    content, problem, period = b"", "", job.period.text(day)
    try:
        content = rows.to_parquet(index=False)
    except Exception as error:  # whose words can quote a row
        problem = type(error).__name__
    if problem:
        raise ConfigError(f"the copy of the rows of {period} in {str(folder)!r} cannot be made: {problem}.")
    make_folder(folder, 0o700)
    write_atomically(folder / f"{_stem(job)}{period}{_SUFFIX}", content, 0o600)


def forget_rows(job: Job) -> None:
    """Delete the job's copies that were written more than ``retention.days`` days ago, and what a kill left behind.

    A copy's age counts from when it was written, by this machine's clock: a backfill of old dates would otherwise
    delete what it has just kept. Raises `ConfigError` if others can read the folder, or a copy cannot be deleted.
    """
    if job.retention is None:
        return
    check_retention(job)
    oldest = (now() - timedelta(job.retention.days)).timestamp()
    ours = re.compile(re.escape(_stem(job)) + PERIOD + re.escape(_SUFFIX))
    problem = None
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


class PeriodStep:
    """A step of a plugin; all its methods do nothing until they are overridden.

    An error that one raises, if it is a `PkdpError`, ends the run with its words; what is published stays published.
    """

    def check(self, job: Job) -> None:
        """Refuse what cannot work, before anything is opened, charged or written."""

    def began(self, result: JobResult) -> None:
        """Take note that the run of a period has begun."""

    def published(self, result: JobResult, *, alone: bool) -> None:
        """Do what follows once a period's releases are published and written.

        `alone`: False in the run of several periods, after which `all_published` is called.
        """

    def ended(self, result: JobResult) -> None:
        """Take note that the run of a period has ended, well or with ``result.error``; its record is written."""

    def all_published(self, job: Job) -> Path | None:
        """Do what follows after several periods, and return the report where one was written."""
        return None


def steps_of(job: Job) -> tuple[PeriodStep, ...]:
    """Return the steps of plugins that a job asks for: those of options that it sets, and those for every job.

    Raises `ConfigError` if one cannot be loaded.
    """
    places = (place for option, place in hooks("after_period") if option == "*" or _is_set(job, option))
    return tuple(load(place)() for place in places)


def _is_set(job: Job, option: str) -> bool:
    value: object = job
    for name in option.split("."):
        value = getattr(value, name, None)
    return value is not None and value is not False


@contextmanager
def outputs_only() -> Iterator[None]:
    """Say, where only outputs are missing, that the releases themselves are safe."""
    try:
        yield
    except PkdpError as error:
        raise type(error)(
            f"{error} The releases are published, and charged once: run again with the same date, and the "
            "outputs are written from the ledger."
        ) from error


@contextmanager
def recorded(result: JobResult, steps: Sequence[PeriodStep]) -> Iterator[None]:
    """Record how what is done inside ends, and tell the steps; a job without ``[records]`` writes nothing.

    Raises `ConfigError` if what went well cannot be recorded. An error from inside is passed on, recorded or not.
    """
    for step in steps:
        step.began(result)
    try:
        yield
    except BaseException as error:
        result.ended, result.error = now(), error
        with suppress(PkdpError):
            _write(result, steps)
        raise
    result.ended = now()
    try:
        _write(result, steps)
    except PkdpError as error:
        raise type(error)(
            f"{error} The releases themselves are published, charged once, and written: only the record is missing."
        ) from error


def _write(result: JobResult, steps: Sequence[PeriodStep]) -> None:
    result.write()
    for step in steps:
        step.ended(result)


def check_records(job: Job, steps: Sequence[PeriodStep]) -> None:
    """Refuse what would keep a run from being recorded, before anything is charged; nothing is written.

    Raises `ConfigError` if private places are inside the public one, records or lineage cannot be written, or what a
    step needs is not installed.
    """
    if wrong := job.misplaced():  # a folder may have become a link since the file was read
        raise ConfigError("\n  ".join(["the job cannot be run:", *wrong]))
    for key in ("directory", "lineage"):
        place = getattr(job.records, key, None)
        if place is not None and not is_writable(Path(place), folder=key == "directory"):
            raise ConfigError(f"records.{key} {place!r} cannot be written: choose another, or check its permissions.")
    for step in steps:
        step.check(job)
