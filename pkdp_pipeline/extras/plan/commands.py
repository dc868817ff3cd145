"""The commands ``pkdp plan …``: which k or which noise keeps a promise, before anybody looks at the data."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from pkdp_pipeline.cli.file_commands import bounds_of, whole_pair
from pkdp_pipeline.cli.options import (
    CELLS_FROM_DATA,
    SEVERAL,
    AsJson,
    JobFile,
    Options,
    attacker_options,
    flag,
    of_share,
    read_evidence_flags,
    taking,
)
from pkdp_pipeline.errors import REFUSED, ArgumentError, ConfigError, exit_code
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram, mechanism_to_dict
from pkdp_pipeline.schemas import VERSION

if TYPE_CHECKING:
    import datetime

    from pkdp_pipeline.extras.plan.question import Kind
    from pkdp_pipeline.extras.plan.repair import Repairs
    from pkdp_pipeline.jobs import Job


plan_app = typer.Typer(
    help="Plan a release: which k or which noise keeps a promise, and what each costs.", no_args_is_help=True
)

_OF_BOTH: Options = {
    "epsilon": flag(float, 1.0, "The target: odds change by a factor of e^epsilon at most,"),
    "delta": (Annotated[float, of_share("up to this probability.")], 1e-6),
    **SEVERAL,
    "public_counts": flag(
        str | None,
        None,
        "Counts that are public already, a row for each cell; by naming the file you declare that it is public. Never "
        "the data to be protected.",
        "FILE.csv",
    ),
    "count_column": flag(str | None, None, "The file's column of counts; without it: count.", "COL"),
    "assumed_people": flag(int | None, None, "Assume this many people in all.", "M"),
    "no_noise": flag(bool, False, "Noise is not acceptable.", name="--no-noise"),
    "choice": flag(int | None, None, "Look closely at this choice; without it, the first.", "N"),
}
_OF_HISTOGRAMS: Options = {
    "protects": flag(str, "presence", "presence: who is there; value: who is in which cell.", "presence|value"),
    "assumed_cells": flag(int | None, None, "Assume this many cells; without it, one.", "N"),
    "assumed_spread": flag(str, "even", "All cells alike, or in proportion to 1/rank.", "even|zipf"),
    **CELLS_FROM_DATA,
    "cells_per_unit": flag(int, 1, "The most cells a person may be in."),
}
_KINDS: tuple[tuple[type[Histogram | Count], Kind, Options, str], ...] = (
    (
        Histogram,
        "histogram",
        _OF_HISTOGRAMS | _OF_BOTH,
        "Plan counts per cell: no noise at this k against noise at that epsilon.",
    ),
    (Count, "count", _OF_BOTH, "Plan one number: how many people satisfy a predicate."),
)


def _question_options(
    kind: Kind, *, evidence: list[str] | None, no_noise: bool, cells_from_data: bool = False, **others: Any
) -> dict[str, Any]:
    """Return the fields of a `Question`, without its attacker."""
    from pkdp_pipeline.extras.plan.question import read_counts

    flags = ("public_counts", "count_column", "assumed_people", "assumed_cells", "assumed_spread")
    counts = {name: others.pop(name) for name in flags if name in others}
    return {
        "kind": kind,
        **others,
        "evidence": read_evidence_flags(evidence or ()),
        "counts": read_counts(**counts),
        "noise": not no_noise,
        "declared_cells": not cells_from_data,
    }


def _plan(
    *,
    attacker: AttackerModel,
    question_options: dict[str, Any],
    curves: Annotated[
        bool | None,
        typer.Option("--curves/--no-curves", help="Draw curves, or none; without it, those that take no long time."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.extras.plan import printing
    from pkdp_pipeline.extras.plan.answers import planned
    from pkdp_pipeline.extras.plan.question import Question

    plan = planned(Question(attacker=attacker, **question_options))
    if as_json:
        typer.echo(printing.plan_document(plan, curves))
        return
    screen = Screen()
    printing.print_choices(screen, plan)
    printing.print_closely(screen, plan, curves)
    printing.print_offer(screen, plan)


for kind, name, options, words in _KINDS:
    plan_app.command(name=name, help=words)(
        attacker_options(kind)(taking("question_options", options, partial(_question_options, name))(_plan))
    )


@plan_app.command(name="sum")
def plan_sum(
    *,
    bounds: Annotated[
        list[str],
        typer.Option(
            metavar="LEAST,MOST", help="The limits of what a person adds to a cell, as 0,5; again to compare."
        ),
    ],
    epsilon: Annotated[float, typer.Option(help="The target: odds change by a factor of e^epsilon at most,")] = 1.0,
    delta: Annotated[float, of_share("up to this probability.")] = 1e-6,
    protects: Annotated[str, typer.Option(metavar="presence|value", help="value: also what a person adds.")] = (
        "presence"
    ),
    cells_per_unit: Annotated[int, typer.Option(help="The most cells a person may be in.")] = 1,
    adds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBER=PEOPLE",
            help="How many people of a typical cell add this number, from a public source, never from the data; again "
            "for others.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan sums of whole numbers: bounds against error. Wider ones need more noise, narrower ones cut more off."""
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.extras.plan.planning import sum_choices
    from pkdp_pipeline.model.period import exactly
    from pkdp_pipeline.model.wording import rounded_up

    people = {number: most for text in adds or () for number, most in [whole_pair("--adds", text, "=", "5=120")]}
    choices = sum_choices(
        [bounds_of(text) for text in bounds],
        epsilon=epsilon,
        delta=delta,
        protects=cast("Any", protects),
        cells_per_unit=cells_per_unit,
        contributions=people or None,
    )
    if as_json:
        document = {
            "schema": "pkdp-plan-sum/1",
            "library": {"name": "pkdp_pipeline", "version": VERSION},
            "protects": protects,
            "epsilon": epsilon,
            "delta": delta,
            "choices": [
                {**asdict(choice), "mechanism": mechanism_to_dict(choice.mechanism), "error": choice.error}
                for choice in choices
            ],
        }
        typer.echo(json.dumps(document, indent=2))
        return
    screen, best = Screen(), choices[0].mechanism
    screen.title(f"Sums with ε = {exactly(epsilon)} at δ = {exactly(delta)}, the smallest error first")
    header = ("bounds", "noise", "mean error of a cell", "cut off")
    rows = []
    for choice in choices:
        least, most = choice.mechanism.bounds
        cut = "not known" if choice.cut_off is None else str(choice.cut_off)
        error = rounded_up(choice.mean_absolute_error)
        rows.append((f"{least} to {most}", exactly(choice.mechanism.noise.epsilon), error, cut))
    screen.table(header, rows, right=header)
    screen.head("In a job file, for the first")
    screen.lines(
        [
            f"bounds = {list(best.bounds)}",
            f"noise = {{ epsilon = {exactly(best.noise.epsilon)} }}",
            *([] if protects == "presence" else [f'protects = "{protects}"']),
            *([] if cells_per_unit == 1 else [f"cells_per_unit = {cells_per_unit}"]),
        ]
    )


@plan_app.command(name="levels")
def plan_levels(
    codes: Annotated[
        Path, typer.Argument(metavar="CODES.csv", help="A code list: code and parent.", show_default=False)
    ],
    *,
    noise: Annotated[float, typer.Option(help="The epsilon of all noise together.")] = 1.0,
    delta: Annotated[float, of_share("Where epsilons are stated.")] = 1e-6,
    as_json: AsJson = False,
) -> None:
    """Say what may be published at several levels of a hierarchy, derived or each by itself, and what that costs."""
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.extras.plan.printing import levels_document, print_levels

    document = levels_document(codes, noise, delta)
    if as_json:
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    print_levels(Screen(), document)


_DATE = "DATE"


@plan_app.command(name="job")
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
            help="The epsilon that a day's releases have to reach together, besides the budgets. Without it those that "
            "are changed have to reach 1 where there is no budget.",
            show_default=False,
        ),
    ] = None,
    delta: Annotated[float | None, of_share("At this delta; 1e-6.")] = None,
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
    from pkdp_pipeline.certificates.release_certificate import Target
    from pkdp_pipeline.extras.plan.repair import print_repairs, repair, repairs_document
    from pkdp_pipeline.jobs import load_job

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
    from pkdp_pipeline.jobs.session import days_of

    if first is None and last is None:
        return (chosen_day("--date", date or "today", job),)
    if date is not None or first is None or last is None:
        raise ArgumentError("dates are --date alone, or --from and --to together.")
    return days_of(job, chosen_day("--from", first, job), chosen_day("--to", last, job), ahead=True)


def _write(repairs: Repairs, file: Path) -> None:
    """Write the job with the smallest change, its comments kept."""
    if repairs.change is None:
        typer.echo("pkdp: nothing was written: no change was found.", err=True)
        return
    try:
        with file.open("x", encoding="utf-8", newline="") as target:
            target.write(repairs.change.text)
    except OSError as error:
        raise ConfigError(f"--write {file} cannot be written: {error.strerror}.") from None
    typer.echo(f"pkdp: wrote {file}; its ledger and its outputs are those of the job.", err=True)
