"""The output of commands about jobs: tables and guarantees, plans, changes where one is refused, and progress."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.jobs import Job, JobResult
from pkdp_pipeline.jobs.dry_run import DELTA, Plan, PlannedDay
from pkdp_pipeline.jobs.outputs import public_rows, remarks
from pkdp_pipeline.jobs.session import BackfillResult
from pkdp_pipeline.jobs.tables import PeriodTable
from pkdp_pipeline.ledger.history import amount, no_epsilon, number_of
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.releases.release import Release

_MAX_ROWS_SHOWN = 20
_MAX_LISTED = 5
_OUTCOMES = {"publish": "published", "replay": "replayed"}
_SECONDS = 30.0  # of silence between two lines about a backfill


def print_result(result: JobResult) -> None:
    """Print one day: its tables with their guarantees, and what the ledger adds up to."""
    console = Console(markup=False, highlight=False, emoji=False)
    period, releases = result.job.period.text(result.day), [release.release for release in result.releases]
    for published in result.releases:
        console.print(f"{published.declared.name}, {period}")
        print_release(published.release, console=console, beside=releases)
        how = "published, and charged to the ledger."
        if published.release.replayed:
            derived = published.release.certificate.derived_from is not None
            before = "derived: another display of it was" if derived else "replayed:"
            how = f"{before} published before; no data was read, nothing was charged."
        console.print(f"{how}\n")
    if result.together is not None:
        console.print(result.together.sentence(period), "\n", sep="")
    here = len(result.releases) if result.together is None else result.together.releases
    if isinstance(result.total, ComposedCertificate) and result.total.releases > here:
        printed = [release.release.certificate for release in result.releases]
        console.print(f"The ledger so far. {result.total.sentence(below=printed)}\n")
    if result.new_ledger:
        console.print(
            "A new ledger was started for this data set: nothing was known to be published about these people before."
        )
    console.print(f"Files in {result.summary.parent}", soft_wrap=True)
    if result.report is not None:
        console.print(f"Report: {result.report}", soft_wrap=True)


def print_plan(job: Job, plan: Plan, report: str | None = None, way_out: str | None = None) -> None:
    """Print a dry run: what would become of which days, what it would add up to, and which report would be written.

    `way_out` is a command that shows what to change where it would be refused.
    """
    screen = Screen()
    screen.title(f"Dry run of {Path(job.file).name}: nothing is read, charged or written")
    at_delta = f"ε at δ = {exactly(DELTA)}"
    rows, every = list(_plan_rows(job, plan.days)), f"{job.period.every}s"
    if rows:
        screen.head("Planned releases")
        screen.table(("from", "to", every, "release", "would be", "ε"), rows, right=(every, "ε"))
        screen.say(f"Each ε is that of one release at δ = {exactly(DELTA)}.")
    refused = plan.refused
    if refused is not None:
        screen.head(f"{job.period.text(refused.day)} would be refused")
        screen.say(str(refused.refused))
        if plan.unreached:
            screen.say(f"{number_of(plan.unreached, job.period.every)} after it would not be reached.")
        if way_out is not None:
            screen.say("The smallest change that makes it certifiable:")
            screen.command(way_out)
    screen.head(f"Totals, {at_delta}")
    totals = {"the ledger now": plan.before}
    if any(release.outcome == "publish" for planned_day in plan.days for release in planned_day.releases):
        totals |= {f"these {every}": plan.period, "the ledger then": plan.after}
    screen.pairs((name, total_words(total)) for name, total in totals.items())
    if report is not None and any(planned_day.refused is None for planned_day in plan.days):
        screen.head("The report")
        screen.say(f"{report}, in output.directory, would be written anew.")
    if job.about is not None and job.about.outdated(job.period.today()):
        screen.head("The assumptions")
        screen.say(
            f"They were last checked on {job.about.checked_on}, more than a year ago: argue them anew, and write the "
            "new date as checked_on under [about]."
        )
    screen.head("Not looked at")
    screen.say(f"the source: whether the {every} pass their input checks is found out when they are run.")


def print_backfill(job: Job, days: Sequence[date], result: BackfillResult) -> None:
    """Print what became of the days of a backfill, and what the ledger adds up to."""
    screen = Screen()
    every, first, last = job.period.every, job.period.text(days[0]), job.period.text(days[-1])
    period = first if len(days) == 1 else f"{first} to {last} ({number_of(len(days), every)})"
    screen.title(f"{job.dataset}, {period}")
    screen.head(f"{every.capitalize()}s")
    counts = {"published": len(result.published), "replayed": len(result.replayed), "failed": len(result.failed)}
    counts["not reached"] = len(days) - sum(counts.values())
    words = {name: number_of(count, every) for name, count in counts.items() if count}
    if result.failed:
        words["failed"] += f": {', '.join(job.period.text(failure.day) for failure in result.failed[:_MAX_LISTED])}"
        words["failed"] += " and others, named above" if len(result.failed) > _MAX_LISTED else ""
    screen.pairs(words.items())
    screen.head("The ledger now")
    screen.say("Its releases do not add up: no evidence says how." if result.total is None else result.total.sentence())
    screen.head("Files")
    report = [] if result.report is None else [f"{result.report.name} there: everything published"]
    screen.lines([job.output.directory, *report])


def print_release(
    release: Release, delta: float = DELTA, *more: str, console: Console | None = None, beside: Sequence[Release] = ()
) -> None:
    """Print a release's table, what its noise does, its guarantee, and more lines."""
    console = console or Console(markup=False, highlight=False, emoji=False)
    header, rows, left = public_rows(release, _MAX_ROWS_SHOWN, beside)
    table = Table(*(Column(Text(name)) for name in header[:-1]), Column(Text(header[-1]), justify="right"))
    for row in rows:
        table.add_row(*map(Text, row))
    if left:
        table.caption = f"and {left} more in the file"
    console.print(table)
    if not rows:
        console.print("Nothing reached the rule for publishing.")
    for remark in remarks(release, beside):
        console.print(remark)
    console.print(release.certificate.sentence(delta))
    for line in more:
        console.print("", line, sep="\n")


def _plan_rows(job: Job, days: Iterable[PlannedDay]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each release of days that follow one another and have the same in store."""
    for releases, group in groupby(
        (planned_day for planned_day in days if planned_day.refused is None),
        key=lambda planned_day: planned_day.releases,
    ):
        listed = [job.period.text(planned_day.day) for planned_day in group]
        where = (listed[0], listed[-1], str(len(listed)))
        for release in releases:
            yield (*where, release.name, _OUTCOMES[release.outcome], amount(release.epsilon))
            where = ("", "", "")


def total_words(total: Certificate | None) -> str:
    """Return the ε at `DELTA` of what something adds up to, or what there is instead."""
    if total is None:
        return "nothing declared says what it adds up to"
    if isinstance(total, ComposedCertificate) and not total.parts:
        return "nothing is published"
    epsilon = total.epsilon(DELTA)
    return amount(epsilon) if epsilon < math.inf else no_epsilon(DELTA, total.delta(1.0))


class Watch:
    """Counts the periods of a backfill and shows how far it is, on standard error; use it as a context manager.

    `clock` returns the seconds since any moment.
    """

    def __init__(
        self,
        days: int,
        period: PeriodTable,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._period, self._every = period, f"{period.every}s"
        self._clock, self._spoken = clock, clock()
        self._console = console or Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
        columns = (TextColumn("{task.description:<10}"), BarColumn(bar_width=None), MofNCompleteColumn())
        left = (TextColumn(self._every), TimeRemainingColumn(compact=True), TextColumn("left"))
        hour = 3600.0  # from whose days the time left is estimated
        self._bar = Progress(
            *columns, *left, console=self._console, expand=True, get_time=clock, speed_estimate_period=hour
        )
        self._task = self._bar.add_task("starting", total=days)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def saw(self, done: JobResult) -> None:
        """Count a day that has ended; one that failed is told at once."""
        day = self._period.text(done.day)
        if done.error is not None:
            self._console.print(f"pkdp: {day}: {done.error}", soft_wrap=True)
        self._bar.update(self._task, advance=1, description=day)
        if not self._console.is_terminal and self._clock() - self._spoken >= _SECONDS:
            self._spoken = self._clock()
            (task,) = self._bar.tasks
            left = "" if task.time_remaining is None else f"; about {timedelta(seconds=task.time_remaining)} left"
            self._console.print(
                f"pkdp: {task.completed:.0f} of {task.total} {self._every}, up to {day}{left}.", soft_wrap=True
            )
