"""The commands ``pkdp run`` and ``pkdp backfill``, and their dry runs."""

from __future__ import annotations

import datetime
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from pkdp_pipeline.cli.options import AsJson, JobFile
from pkdp_pipeline.cli.screen import backfill_document, plan_document, print_document, run_document
from pkdp_pipeline.errors import REFUSED, ArgumentError, PkdpError, TemporaryError, exit_code

if TYPE_CHECKING:
    from pkdp_pipeline.jobs import Job, JobSession

_DATE = "DATE"
_SMALLEST = "The smallest change that makes it certifiable:"
Revise = Annotated[
    bool,
    typer.Option(
        "--revise",
        help="Publish changed data as one more charged release, whose files replace the day's; refused without noise.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be published, charged and refused; read no data.")
]


def run(
    job_file: JobFile,
    *,
    date: Annotated[str, typer.Option(metavar=_DATE, help="The date to publish: YYYY-MM-DD, today or yesterday.")],
    dry_run: DryRun = False,
    revise: Revise = False,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="First publish the days missed since the latest one before it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Publish what a job asks for on one date, or replay what it has published."""
    from pkdp_pipeline.cli.job_views import print_result
    from pkdp_pipeline.jobs import load_job
    from pkdp_pipeline.jobs.backfilling import missed_days, run_missed

    if catch_up and revise:
        raise ArgumentError("--catch-up and --revise exclude each other: missed days have nothing to revise.")
    job = load_job(job_file)
    day = chosen_day("--date", date, job)
    if job.period.is_closed(day):
        if as_json:
            print_document({"dataset": job.dataset, "day": day.isoformat(), "outcome": "closed"})
        else:
            typer.echo(f"{job.period.text(day)} is closed: nothing is published of it.")
        return
    days = [day]
    if dry_run:
        days[:0] = missed_days(job, day) if catch_up else ()
        named = "each of these dates" if days[1:] else job.period.text(day)
        _plan(job_file, job, days, f"report.html of {named}", revise=revise, as_json=as_json)
        return
    with _session(job_file, job, days, revise=revise) as session:
        days[:0] = missed_days(job, day) if catch_up else ()
        for result in [session.run(day, revise=True)] if revise else run_missed(session, days[:-1], day):
            if as_json:
                _show(sys.stdout, print_document, run_document(result))
            elif result.day < day:
                _show(sys.stdout, typer.echo, f"{job.period.text(result.day)}: {result.outcome}")
            else:
                result.total = session.total()
                _show(sys.stdout, print_result, result)


def backfill(
    job_file: JobFile,
    *,
    first: Annotated[
        str, typer.Option("--from", metavar=_DATE, help="The first date: YYYY-MM-DD, today or yesterday.")
    ],
    last: Annotated[str, typer.Option("--to", metavar=_DATE, help="The last date, included.")],
    dry_run: DryRun = False,
    revise: Revise = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on after days whose input check fails, and exit with 3 at the end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Publish the dates of a period in order; after a stop or a crash the same command goes on where it was."""
    from pkdp_pipeline.cli.job_views import Watch, print_backfill
    from pkdp_pipeline.jobs import load_job
    from pkdp_pipeline.jobs.backfilling import backfill_days, days_of

    job = load_job(job_file)
    days = days_of(job, chosen_day("--from", first, job), chosen_day("--to", last, job))
    if dry_run:
        _plan(job_file, job, days, "report.html about everything published", revise=revise, as_json=as_json)
        return
    with _session(job_file, job, days, revise=revise) as session:
        with Watch(len(days), job.period) as watch:
            saw = partial(_show, sys.stderr, watch.saw)
            result = backfill_days(session, days, revise=revise, keep_going=keep_going, progress=saw)
        if as_json:
            _show(sys.stdout, print_document, backfill_document(job, days, result))
        else:
            _show(sys.stdout, print_backfill, job, days, result)
    if result.unreported is not None and result.stopped is None:
        typer.echo(f"pkdp: {result.unreported}", err=True)
    if result.stopped is not None and (way := _way_out(job_file, days, result.stopped, revise=revise)):
        typer.echo(f"pkdp: {_SMALLEST} {way}", err=True)
    error = result.stopped or next((failure.error for failure in result.failed), result.unreported)
    if error is not None:
        raise typer.Exit(exit_code(error))


def _plan(job_file: Path, job: Job, days: Sequence[datetime.date], report: str, *, revise: bool, as_json: bool) -> None:
    """Print the dry run; it ends with the exit code of what would be refused first."""
    from pkdp_pipeline.cli.job_views import print_plan
    from pkdp_pipeline.jobs.dry_run import plan_job

    with _with_way_out(job_file, days, revise=revise):
        plan = plan_job(job, days, revise=revise)
    error = None if plan.refused is None else plan.refused.refused
    if as_json:
        print_document(plan_document(job, days, plan, error))
    else:
        way = None if error is None else _way_out(job_file, days, error, revise=revise)
        print_plan(job, plan, report if job.output.report else None, way)
    if error is not None:
        raise typer.Exit(exit_code(error))


@contextmanager
def _with_way_out(job_file: Path, days: Sequence[datetime.date], *, revise: bool) -> Iterator[None]:
    """Let a refusal for privacy end with the command that shows a way out."""
    try:
        yield
    except PkdpError as error:
        if (way := _way_out(job_file, days, error, revise=revise)) is None:
            raise
        raise type(error)(f"{error}\n{_SMALLEST} {way}") from None


def _way_out(job_file: Path, days: Sequence[datetime.date], error: PkdpError, *, revise: bool) -> str | None:
    """Return the command that shows the smallest change; None where it has none to show."""
    if exit_code(error) != REFUSED or revise:
        return None
    first, last = days[0].isoformat(), days[-1].isoformat()
    dates = f"--date {first}" if len(days) == 1 else f"--from {first} --to {last}"
    return f"pkdp plan job {shlex.quote(str(job_file))} {dates}"


@contextmanager
def _session(job_file: Path, job: Job, days: Sequence[datetime.date], *, revise: bool) -> Iterator[JobSession]:
    """Open a job's session and show its remarks; SIGTERM and Ctrl-C take effect where nothing is left half done."""
    from pkdp_pipeline.jobs import JobSession
    from pkdp_pipeline.jobs.stopping import Stopped, Stopping

    stopping = Stopping()
    try:
        with stopping.listening(), _with_way_out(job_file, days, revise=revise):
            try:
                with JobSession(job, day=days[0], stopping=stopping) as session:
                    for remark in session.remarks:
                        typer.echo(f"pkdp: {remark}", err=True)
                    yield session
            except TemporaryError:
                stopping.check()  # a signal came during the wait: repeating is not what is wanted
                raise
    except Stopped as stopped:
        typer.echo(
            f"pkdp: stopped by {stopped.signal.name}. Published releases stay published, the others are not "
            "charged; the same command goes on from there.",
            err=True,
        )
        raise typer.Exit(stopped.exit_code) from None


def _show(stream: TextIO, show: Callable[..., None], *what: object) -> None:
    """Let what is done stand, and go on, where it cannot be shown: nobody reads on, or the disk of a log is full."""
    try:
        show(*what)
    except (OSError, SystemExit) as error:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            # Rich makes an exit of a pipe that is closed, as head closes it: that is meant.
            if not isinstance(error, BrokenPipeError | SystemExit):
                typer.echo("pkdp: not all that was done can be shown: output closed, or disk full.", err=True)


def chosen_day(option: str, text: str, job: Job) -> datetime.date:
    """Return the first day of the period of a date: YYYY-MM-DD, or a word for one in the job's time zone."""
    day = None
    if text in ("today", "yesterday"):
        day = job.period.today() - datetime.timedelta(days=int(text == "yesterday"))
    with suppress(ValueError):
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
            day = datetime.date.fromisoformat(text)
    if day is not None:
        return job.period.span(day)[0]
    raise ArgumentError(
        f"{option} must be written YYYY-MM-DD, and be in the calendar, or be today or yesterday; got {text!r}."
    )
