"""Steps: what plugins do before, after and around a job's periods, such as a report or an event of lineage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline import plugins

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.job import Job
    from pkdp_pipeline.jobs.records import JobResult


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
    places = (place for option, place in plugins.added("after_period") if option == "*" or _is_set(job, option))
    return tuple(plugins.loaded(place)() for place in places)


def _is_set(job: Job, option: str) -> bool:
    value: object = job
    for name in option.split("."):
        value = getattr(value, name, None)
    return value is not None and value is not False
