"""The output of commands about jobs: tables and guarantees, plans, changes where one is refused, and progress."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.target import Target
from pkdp_pipeline.display.ledger.words import amount, no_epsilon, number_of
from pkdp_pipeline.display.screen import Screen
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.jobs import Job, JobRelease, JobResult
from pkdp_pipeline.jobs.backfilling import BackfillResult
from pkdp_pipeline.jobs.dry_run import DELTA, Plan, PlannedDay
from pkdp_pipeline.jobs.reporting import noise_line, public_rows
from pkdp_pipeline.jobs.tables import PeriodTable
from pkdp_pipeline.model import VERSION
from pkdp_pipeline.model.spelling import exactly
from pkdp_pipeline.model.wording import listed, rounded_up
from pkdp_pipeline.releases.derived import expected_error
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.edits import Offer
    from pkdp_pipeline.jobs.repair import Repairs

_ROWS_SHOWN = 20
_LISTED = 5
_OUTCOMES = {"publish": "published", "replay": "replayed"}
_SECONDS = 30.0  # of silence between two lines about a backfill


def print_result(result: JobResult) -> None:
    """Print one day: its tables with their guarantees, and what the ledger adds up to."""
    console = Console(markup=False, highlight=False, emoji=False)
    period, releases = result.job.period.text(result.day), [one.release for one in result.releases]
    for published in result.releases:
        console.print(f"{published.asked.name}, {period}")
        print_release(published.release, console=console, beside=releases)
        replayed = "replayed: published before; no data was read, nothing was charged."
        console.print(f"{replayed if published.release.replayed else 'published, and charged to the ledger.'}\n")
    if result.together is not None:
        console.print(result.together.sentence(period), "\n", sep="")
    here = len(result.releases) if result.together is None else result.together.releases
    if isinstance(result.total, ComposedCertificate) and result.total.releases > here:
        console.print(f"The ledger so far. {_briefly(result.total, result.releases)}\n")
    if result.new_ledger:
        console.print(
            "A new ledger was started for this data set: nothing was known to be published about these people before."
        )
    console.print(f"Files in {result.summary.parent}", soft_wrap=True)
    if result.report is not None:
        console.print(f"Report: {result.report}", soft_wrap=True)


def _briefly(total: Certificate, printed: Iterable[JobRelease]) -> str:
    """Return the sentence of a total without what the sentences of releases, printed above it, say as well."""
    text, about = total.sentence(), "The attacker is "
    for certificate in (one.release.certificate for one in printed):
        for said in (*certificate.assumptions, *certificate.limits):
            text = re.sub(rf"( In \d+ of the \d+ releases:)? {re.escape(said)}", "", text)
            text = text.replace(f"against {said.removeprefix(about)}", "against the attacker described above.")
    return text


def print_plan(job: Job, plan: Plan, report: str | None = None, way_out: str | None = None) -> None:
    """Print a dry run: what would become of which days, what it would add up to, and which report would be written.

    `way_out` is a command that shows what to change where it would be refused.
    """
    screen = Screen()
    screen.title(f"Dry run of {Path(job.file).name}: nothing is read, charged or written")
    at = f"ε at δ = {exactly(DELTA)}"
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
    screen.head(f"Totals, {at}")
    totals = {"the ledger now": plan.before}
    if any(release.outcome == "publish" for one in plan.days for release in one.releases):
        totals |= {f"these {every}": plan.period, "the ledger then": plan.after}
    screen.pairs((name, total_words(total)) for name, total in totals.items())
    if report is not None and any(one.refused is None for one in plan.days):
        screen.head("The report")
        screen.say(f"{report}, in output.directory, would be written anew.")
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
        words["failed"] += f": {', '.join(job.period.text(one.day) for one in result.failed[:_LISTED])}"
        words["failed"] += " and others, named above" if len(result.failed) > _LISTED else ""
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
    header, rows, left = public_rows(release, _ROWS_SHOWN, beside)
    table = Table(*(Column(Text(name)) for name in header[:-1]), Column(Text(header[-1]), justify="right"))
    for row in rows:
        table.add_row(*map(Text, row))
    if left:
        table.caption = f"and {left} more in the file"
    console.print(table)
    if not rows:
        console.print("Nothing reached the rule for publishing.")
    if noise := noise_line(release):
        console.print(noise)
    console.print(release.certificate.sentence(delta))
    for line in more:
        console.print("", line, sep="\n")


def _plan_rows(job: Job, days: Iterable[PlannedDay]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each release of days that follow one another and have the same in store."""
    for releases, group in groupby((one for one in days if one.refused is None), key=lambda one: one.releases):
        listed = [job.period.text(one.day) for one in group]
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


SCHEMA = "pkdp-plan-job/1"

_OTHERS = (
    ("less", "Or publish less", ""),
    (
        "question",
        "Or argue one of these, if it is true",
        "Nobody but you can say whether these are true, and no data can. Each was tried as if it were; what is not "
        "argued is not to be written.",
    ),
)
_TRIED = "Every change was written into the file's text, read as strictly as any job, and run dry for each date."
_ORDER = (
    "The smallest is the one that changes the fewest keys; of several, the one whose numbers go least far. No number "
    "nearer to what the file says will do; an ε has three digits."
)


def print_repairs(repairs: Repairs) -> None:
    """Print what a job would do and promise and, where it is refused, the changes that were tried."""
    from pkdp_pipeline.jobs.changes import CLAIMS

    screen = Screen()
    if repairs.plan is None:
        screen.title(f"{Path(repairs.job.file).name}: nothing is read, charged or written")
        screen.head(f"It is refused on every {repairs.job.period.every}")
        screen.say(str(repairs.error).partition("\n\n")[0])
    else:
        print_plan(repairs.job, repairs.plan)
        allowed = [one for one in repairs.plan.days if one.refused is None]
        for place, release in enumerate(allowed[0].releases if allowed else ()):
            if place == 0:
                screen.head("Promises")
            screen.say(f"{release.name}: {release.certificate.sentence(DELTA)}")
    if repairs.error is None and not repairs.short:
        screen.head("Nothing has to change")
        aim = "" if repairs.target is None else f" and reaches {_aim(repairs.target)}"
        screen.say(f"The job is certifiable as it is, on {_days(repairs, repairs.days)}{aim}.")
        try:
            repairs.job.period.check_open(repairs.days[-1])
        except ArgumentError as error:  # which is planned ahead, and not run
            screen.head("But not now")
            of = _days(repairs, repairs.days[-1:])
            screen.say(f"pkdp run publishes nothing of {of}: {str(error).partition(': ')[2]}")
        return
    if repairs.short and repairs.target is not None:
        screen.head("It is not refused, but promises less than you ask for")
        screen.say(f"The releases of a {repairs.job.period.every} are to reach {_aim(repairs.target)}, each its share.")
    _print_changes(screen, repairs, [offer for offer in repairs.offers if offer.kind == "change"])
    for kind, title, note in _OTHERS:
        offers = [offer for offer in repairs.offers if offer.kind == kind]
        if offers:
            screen.head(title)
        if offers and note:
            screen.say(note)
        for offer in offers:
            screen.item(f"{offer.words}. {offer.claim}" if offer.claim else _less(repairs, offer))
    claimed = {edit.value["kind"] for offer in repairs.offers for edit in offer.edits if edit.path == ("evidence",)}
    short = [one.key for one in CLAIMS if one.key not in claimed]
    if claimed and short:
        screen.say(
            f"{listed(short)} {'is' if len(short) == 1 else 'are'} not enough here: even if true, what is published "
            "would add up to more than is allowed."
        )


def repairs_document(repairs: Repairs) -> dict[str, Any]:
    """Return the same as a JSON-ready dictionary; `pkdp_pipeline/schemas/plan_job.v1.json` describes it."""
    plan, error, target = repairs.plan, repairs.error, repairs.target
    day = repairs.day and repairs.day.isoformat()
    return {
        "schema": SCHEMA,
        "library": {"name": "pkdp_pipeline", "version": VERSION},
        "job": Path(repairs.job.file).name,
        "from": repairs.days[0].isoformat(),
        "to": repairs.days[-1].isoformat(),
        "days": len(repairs.days),
        "delta": DELTA,
        "refused": error and {"day": day, "error": type(error).__name__, "message": str(error)},
        "short": repairs.short,
        "target": target and {"epsilon": target.epsilon, "delta": target.delta},
        "releases": [
            {
                "day": one.day.isoformat(),
                "name": release.name,
                "outcome": release.outcome,
                "epsilon": release.epsilon if release.epsilon < math.inf else None,
            }
            for one in (() if plan is None else plan.days)
            if one.refused is None
            for release in one.releases
        ],
        "total": _epsilon(plan),
        "tried_days": len(repairs.tried_days),
        "offers": [_offer(offer) for offer in repairs.offers],
    }


def _print_changes(screen: Screen, repairs: Repairs, offers: list[Offer]) -> None:
    screen.head("The smallest change" if offers else "No change was found")
    if not offers:
        screen.say(
            "No k up to 1,000,000, no noise down to ε = 0.0001, no release threshold and no cross-tabulation makes "
            "this job certifiable as it is declared, on every date that was asked about."
        )
        return
    for number, offer in enumerate(offers):
        if number == 1:
            screen.head("Other changes, in order")
        keys = "one key changes" if offer.keys == 1 else f"{offer.keys} keys change"
        screen.say(f"{offer.words} ({keys}):")
        screen.pasted(f"\n{offer.diff}\n")
        screen.say(" ".join(_found(repairs, offer)))
        if number + 1 < len(offers) and number:
            screen.lines([""])
    screen.head("About these changes")
    every = repairs.job.period.every
    reached = (
        "" if repairs.target is None else f"The changed releases of a {every} together reach {_aim(repairs.target)}. "
    )
    screen.say(f"{_TRIED} {reached}{_ORDER}")


def _found(repairs: Repairs, offer: Offer) -> Iterator[str]:
    """Yield what the trial of a change has shown, and what the change costs."""
    days = number_of(len(repairs.tried_days), repairs.job.period.every)
    yield f"Tried on {days}: nothing is refused, and what is published {_total(offer)}."
    for release in () if offer.job is None else offer.job.release:
        mechanism = release.mechanism
        if release not in repairs.job.release and mechanism.noise is not None:
            off = rounded_up(expected_error(mechanism).mean_absolute)
            yield f"A number of {release.name!r} is off by {off} on average."


def _aim(target: Target) -> str:
    return f"ε = {exactly(target.epsilon or 0.0)} at δ = {exactly(target.delta)}"


def _less(repairs: Repairs, offer: Offer) -> str:
    if offer.last_day is not None:
        return f"{offer.words}: that {repairs.job.period.every} is the last that is not refused."
    return f"{offer.words}: what is left {_total(offer)} on {_days(repairs, repairs.tried_days)}."


def _days(repairs: Repairs, days: Sequence[date]) -> str:
    every = repairs.job.period.every
    return f"that {every}" if len(days) == 1 else f"these {number_of(len(days), every)}"


def _total(offer: Offer) -> str:
    epsilon, at = _epsilon(offer.plan), f"δ = {exactly(DELTA)}"
    if epsilon is not None:
        return f"adds up to ε = {amount(epsilon)} at {at}"
    return f"has no ε at {at}: {total_words(None if offer.plan is None else offer.plan.period)}"


def _epsilon(plan: Plan | None) -> float | None:
    epsilon = math.inf if plan is None or plan.period is None else plan.period.epsilon(DELTA)
    return epsilon if epsilon < math.inf else None


def _offer(offer: Offer) -> dict[str, Any]:
    return {
        "kind": offer.kind,
        "words": offer.words,
        "claim": offer.claim or None,
        "keys": offer.keys,
        "edits": [
            {"path": list(edit.path), "value": json.loads(json.dumps(edit.value, default=str))} for edit in offer.edits
        ],
        "fragment": offer.diff or None,
        "last_day": offer.last_day and offer.last_day.isoformat(),
        "total": _epsilon(offer.plan),
    }
