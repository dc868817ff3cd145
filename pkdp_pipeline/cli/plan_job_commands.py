"""The command ``pkdp plan job``: what a job would publish and promise and, where it is refused, what mends it."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pkdp_pipeline.cli.options import AsJson, JobFile
from pkdp_pipeline.errors import REFUSED, ArgumentError, ConfigError, exit_code

if TYPE_CHECKING:
    import datetime

    from pkdp_pipeline.jobs import Job
    from pkdp_pipeline.jobs.repair import Repairs

_DATE = "DATE"


def plan_job(
    job_file: JobFile,
    *,
    date: Annotated[
        str | None, typer.Option(metavar=_DATE, help="The date it is about: YYYY-MM-DD, today (default) or yesterday.")
    ] = None,
    first: Annotated[str | None, typer.Option("--from", metavar=_DATE, help="Or the first of several dates,")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar=_DATE, help="and the last, included.")] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="What the releases of a day have to reach together, besides the budgets. Without it those that are "
            "changed have to reach 1 where there is no budget.",
            show_default=False,
        ),
    ] = None,
    delta: Annotated[float | None, typer.Option(help="At this delta; 1e-6.", show_default=False)] = None,
    as_json: AsJson = False,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the job is refused, write it with the smallest change to a new file beside it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say what a job would publish and promise and, where it is refused, the smallest change that mends it.

    No data are read and nothing is charged. The exit code is 0, or 4 where the job is refused or short of the target.
    """
    from pkdp_pipeline.certificates.target import Target
    from pkdp_pipeline.cli.plan_job_views import print_repairs, repairs_document
    from pkdp_pipeline.jobs import load_job
    from pkdp_pipeline.jobs.repair import repair

    if write is not None and (write.exists() or write.resolve().parent != job_file.resolve().parent):
        raise ArgumentError("--write must name a new file in the job file's folder: its paths are relative to it.")
    days = _days(load_job(job_file), date, first, last)
    target = None
    if epsilon is not None or delta is not None:
        target = Target(1.0 if epsilon is None else epsilon, 1e-6 if delta is None else delta)
    with Console(stderr=True).status("Trying changes …") if sys.stderr.isatty() else nullcontext():
        repairs = repair(job_file, days, target=target)
    if as_json:
        typer.echo(json.dumps(repairs_document(repairs), ensure_ascii=False, indent=2))
    else:
        print_repairs(repairs)
    if repairs.error is None and not repairs.short:
        return
    if write is not None:
        _write(repairs, write)
    raise typer.Exit(REFUSED if repairs.error is None else exit_code(repairs.error))


def _days(job: Job, date: str | None, first: str | None, last: str | None) -> tuple[datetime.date, ...]:
    from pkdp_pipeline.cli.job_commands import chosen_day
    from pkdp_pipeline.jobs.backfilling import days_of

    if first is None and last is None:
        return (chosen_day("--date", date or "today", job),)
    if date is not None or first is None or last is None:
        raise ArgumentError("dates are --date alone, or --from and --to together.")
    return days_of(chosen_day("--from", first, job), chosen_day("--to", last, job))


def _write(repairs: Repairs, file: Path) -> None:
    """Write the job with the smallest change, its comments kept."""
    smallest = next((offer for offer in repairs.offers if offer.kind == "change"), None)
    if smallest is None:
        typer.echo("pkdp: nothing was written: no change was found.", err=True)
        return
    try:
        with file.open("x", encoding="utf-8", newline="") as target:
            target.write(smallest.text)
    except OSError as error:
        raise ConfigError(f"--write {file} cannot be written: {error.strerror}.") from None
    typer.echo(f"pkdp: wrote {file}; its ledger and its outputs are those of the job.", err=True)
