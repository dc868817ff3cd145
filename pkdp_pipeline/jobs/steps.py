"""Steps: what plugins do around a job's periods, such as a report or an event of lineage; how a period is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pkdp_pipeline.clock import now
from pkdp_pipeline.errors import ConfigError, PkdpError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs.files import is_writable
from pkdp_pipeline.jobs.records import JobResult
from pkdp_pipeline.plugins import hooks, load


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
