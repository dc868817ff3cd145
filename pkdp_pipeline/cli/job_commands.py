"""The commands ``pkdp run`` and ``pkdp backfill``, and their dry runs.

The commands ``pkdp ledger show | total | explain | verify | export``: they read a ledger and write nothing in it.
"""

from __future__ import annotations

import datetime
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from pkdp_pipeline.cli.options import AsJson, AtDelta, JobFile
from pkdp_pipeline.cli.screen import backfill_document, plan_document, print_document, run_document
from pkdp_pipeline.errors import REFUSED, ArgumentError, PkdpError, TemporaryError, exit_code
from pkdp_pipeline.plugins import view

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
    from pkdp_pipeline.jobs.session import missed_days, run_missed

    if catch_up and revise:
        raise ArgumentError("--catch-up and --revise exclude each other: missed days have nothing to revise.")
    job = load_job(job_file)
    day = chosen_day("--date", date, job, catch_up=catch_up)
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
    from pkdp_pipeline.jobs.session import backfill_days, days_of

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
    from pkdp_pipeline.jobs.steps import Stopped, Stopping

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


def chosen_day(option: str, text: str, job: Job, *, catch_up: bool = False) -> datetime.date:
    """Return the first day of the period of a date: YYYY-MM-DD, or a word for one in the job's time zone.

    With `catch_up` that of a period which is not over is that of the latest one before it.
    """
    day = None
    if text in ("today", "yesterday"):
        day = job.period.today() - datetime.timedelta(days=int(text == "yesterday"))
    with suppress(ValueError):
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
            day = datetime.date.fromisoformat(text)
    if day is not None:
        return job.period.caught_up(day) if catch_up else job.period.span(day)[0]
    raise ArgumentError(
        f"{option} must be written YYYY-MM-DD, and be in the calendar, or be today or yesterday; got {text!r}."
    )


SECONDS = 1.5
"""How long `show`, `total` and `explain` work on the view over time and on budgets; after that it is coarser."""


ledger_app = typer.Typer(
    help="Read a ledger: what is published, what it adds up to and why, and whether it is intact.", no_args_is_help=True
)

Location = Annotated[
    str, typer.Argument(metavar="LEDGER", help="The ledger's file, or its postgresql:// URL.", show_default=False)
]
Dataset = Annotated[str | None, typer.Option(metavar="NAME", help="The data set; needed when the ledger has several.")]
Units = Annotated[
    list[str] | None,
    typer.Option("--unit", metavar="COL", help="A column of the privacy unit; again for each further one."),
]
EachRow = Annotated[bool, typer.Option("--each-row", help="The privacy unit in which every row is a person.")]


@ledger_app.command()
def show(
    location: Location,
    *,
    dataset: Dataset = None,
    unit: Units = None,
    each_row: EachRow = False,
    delta: AtDelta = 1e-6,
    last: Annotated[int, typer.Option(min=1, help="List this many of the latest releases.")] = 10,
    everything: Annotated[bool, typer.Option("--all", help="List all releases.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is published, and how the total grew with every period, with the budgets."""
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.ledger.history import changed_since, read_history, spending, spent, term_changes
    from pkdp_pipeline.ledger.reading import chosen_units, open_for_reading

    with open_for_reading(location, dataset) as ledger, ledger.records.snapshot():
        history = read_history(ledger)
        units = chosen_units(history.units, unit or (), each_row=each_row)
        seconds = SECONDS / max(1, len(units))
        growth = [
            (
                chosen,
                spending(history, chosen, delta, seconds=seconds),
                spent(history.totals, chosen, seconds=seconds / 2),
            )
            for chosen in units
        ]
        where, changed = ledger.location, changed_since(term_changes(ledger))
    if as_json:
        _print([view("ledger.document")(history, growth, delta=delta), "\n"])
    else:
        view("ledger.show")(
            Screen(), history, where, growth, delta=delta, last=None if everything else last, changed=changed
        )


@ledger_app.command()
def total(
    location: Location,
    *,
    dataset: Dataset = None,
    unit: Units = None,
    each_row: EachRow = False,
    delta: AtDelta = 1e-6,
    as_json: AsJson = False,
) -> None:
    """Print what everything charged adds up to: the sentence, the numbers, the rule, and what is left of budgets."""
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.ledger.account import unit_named
    from pkdp_pipeline.ledger.history import changed_since, command, spent, term_changes
    from pkdp_pipeline.ledger.reading import chosen_units, open_for_reading

    with open_for_reading(location, dataset) as ledger, ledger.records.snapshot():
        totals, name, terms = ledger.totals(), ledger.dataset, ledger.terms
        units = chosen_units(totals.account.units, unit or (), each_row=each_row) or ["[]"]
        if as_json and len(units) > 1:
            named = "; ".join(map(unit_named, units))
            raise ArgumentError(
                f"data set {name!r} has releases for several privacy units, each with its own total: choose one with "
                f"--unit or --each-row: {named}."
            )
        totals_of_units = [(chosen, totals.total(chosen), spent(totals, chosen, seconds=SECONDS)) for chosen in units]
        where, changed = ledger.location, changed_since(term_changes(ledger))
    if as_json:
        _print([totals_of_units[0][1].to_json(), "\n"])
        return
    screen = Screen()
    for privacy_unit, certificate, budgets in totals_of_units:
        screen.title(f"{name} · {where}" if privacy_unit == units[0] else "")
        if len(totals_of_units) > 1:
            screen.head(f"Unit {unit_named(privacy_unit)}")
        hidden = totals.hidden_below(privacy_unit)
        view("ledger.total")(screen, certificate, terms, budgets, delta=delta, hidden=hidden)
    if changed:
        screen.say(f"{changed} Which and when:", indent=0)
        screen.command(command("explain", where))


@ledger_app.command()
def explain(
    location: Location,
    *,
    dataset: Dataset = None,
    unit: Units = None,
    each_row: EachRow = False,
    delta: AtDelta = 1e-6,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Explain one release: the start of its key or id.")
    ] = None,
    entry: Annotated[int | None, typer.Option(metavar="N", help="Explain one release: its entry.")] = None,
) -> None:
    """Explain how the total comes about and what may be published next; or one release, and its place in the chain."""
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.ledger.history import read_history
    from pkdp_pipeline.ledger.reading import chosen_units, open_for_reading

    if key is not None and entry is not None:
        raise ArgumentError("--key and --entry name the same thing: give one of them.")
    with open_for_reading(location, dataset) as ledger, ledger.records.snapshot():
        screen = Screen()
        if key is not None or entry is not None:
            release = view("ledger.find")(ledger, key=key, entry=entry)
            view("ledger.entry")(screen, ledger, release, delta=delta)
            return
        history = read_history(ledger)
        units = chosen_units(history.units, unit or (), each_row=each_row)
        view("ledger.explain")(screen, ledger, history, units, delta=delta, seconds=SECONDS)


@ledger_app.command()
def verify(
    location: Location,
    *,
    dataset: Dataset = None,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="A head noted earlier; the chain must hold it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the chain, what is derived from it, and every stored release with its certificate."""
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.ledger.history import number_of, verify_command
    from pkdp_pipeline.ledger.reading import open_for_reading

    with open_for_reading(location, dataset) as ledger:
        checked = view("ledger.check")(ledger, head=None if head is None else head.strip().lower())
        again, name = verify_command(ledger, checked.head), ledger.dataset
    if as_json:
        print_document({"dataset": name, **asdict(checked)})
        return
    screen = Screen()
    typer.echo(f"{name}: chain of {number_of(checked.events, 'event')} intact, head {checked.head}")
    if not checked.events:
        return
    for line in checked.remarks:
        screen.say(line, indent=0)
    if checked.head_position != checked.events:
        screen.command(again)


@ledger_app.command()
def export(
    location: Location,
    *,
    dataset: Dataset = None,
    unit: Units = None,
    each_row: EachRow = False,
    form: Annotated[
        str, typer.Option("--format", metavar="json|registry", help="All events, or a draft for the public registry.")
    ] = "json",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there.")] = None,
) -> None:
    """Export all public facts as JSON, or an entry for the public registry of deployments as YAML."""
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.ledger.reading import exported, open_for_reading, write_out

    if form not in ("json", "registry"):
        raise ArgumentError(f"--format must be json or registry, got {form!r}.")
    if form == "json" and (unit or each_row):
        raise ArgumentError("--unit and --each-row are for --format registry: the JSON holds the events of all units.")
    with open_for_reading(location, dataset) as ledger, ledger.records.snapshot():
        if form == "json":
            pieces: Iterable[str] = exported(ledger)
        else:
            plain = out is None and Screen().plain
            pieces = [view("ledger.registry")(ledger, unit or (), each_row=each_row, plain=plain)]
        if out is None:
            _print(pieces)
        else:
            write_out(pieces, out, ledger=ledger.location)


def _print(pieces: Iterable[str]) -> None:
    """Print a text that may be long; a reader that stops early, such as ``head``, is no error."""
    try:
        for piece in pieces:
            typer.echo(piece, nl=False)
    except BrokenPipeError:
        # Python would complain again when it flushes what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
