"""The commands ``pkdp plan …``: which k or which noise keeps a promise, before anybody looks at the data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkdp_pipeline.cli.options import AsJson, attacker_options, taking
from pkdp_pipeline.cli.plan_job_commands import plan_job
from pkdp_pipeline.errors import ArgumentError, PkdpError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram

if TYPE_CHECKING:
    from pkdp_pipeline.cli.plan_views.question import Kind

__all__ = ["plan_app"]

_LEFT = 130


def plan_app() -> typer.Typer:
    """Return the commands."""
    app = typer.Typer(
        help="Plan a release: which k or which noise keeps a promise, and what each costs. Without a command it asks.",
        invoke_without_command=True,
    )
    app.callback()(_ask)
    for command in (histogram, count):
        app.command()(command)
    app.command(name="job")(plan_job)
    return app


_OF_BOTH = {
    "epsilon": (
        Annotated[float, typer.Option(help="The target: odds change by a factor of e^epsilon at most,")],
        1.0,
    ),
    "delta": (Annotated[float, typer.Option(help="up to this probability.")], 1e-6),
    "days": (Annotated[int, typer.Option(help="How many such releases are to reach the target together.")], 1),
    "evidence": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="KIND",
                help="What is declared so that several releases add up, such as independent_given_habits, "
                "once_per_unit, bounded_participation:5; again for a second kind.",
            ),
        ],
        None,
    ),
    "public_counts": (
        Annotated[
            str | None,
            typer.Option(
                metavar="FILE.csv",
                help="Counts that are public already, a row for each cell; by naming the file you declare that it is "
                "public. Never the data to be protected.",
            ),
        ],
        None,
    ),
    "count_column": (
        Annotated[str | None, typer.Option(metavar="COL", help="The file's column of counts; without it: count.")],
        None,
    ),
    "assumed_people": (
        Annotated[int | None, typer.Option(metavar="M", help="Assume so many people in all.")],
        None,
    ),
    "no_noise": (Annotated[bool, typer.Option("--no-noise", help="Noise is not acceptable.")], False),
    "choice": (
        Annotated[int | None, typer.Option(metavar="N", help="Look closely at this choice; without it, the first.")],
        None,
    ),
}
_OF_HISTOGRAMS = {
    "protects": (
        Annotated[
            str,
            typer.Option(metavar="presence|value", help="presence: who is there; value: who is in which cell."),
        ],
        "presence",
    ),
    "assumed_cells": (
        Annotated[int | None, typer.Option(metavar="N", help="Assume so many cells; without it, one.")],
        None,
    ),
    "assumed_spread": (
        Annotated[str, typer.Option(metavar="even|zipf", help="All cells alike, or in proportion to 1/rank.")],
        "even",
    ),
    "cells_from_data": (
        Annotated[
            bool,
            typer.Option("--cells-from-data", help="The cells are not declared: their names come from the data."),
        ],
        False,
    ),
}
Drawn = Annotated[
    bool | None,
    typer.Option("--curves/--no-curves", help="Draw curves, or none; without it, those that take no long time."),
]


def _asked(
    *, evidence: list[str] | None, no_noise: bool, cells_from_data: bool = False, **others: Any
) -> dict[str, Any]:
    """Return the fields of a `Question`, without its kind and its attacker."""
    from pkdp_pipeline.cli.plan_views.question import read_counts, read_evidence_flags

    flags = ("public_counts", "count_column", "assumed_people", "assumed_cells", "assumed_spread")
    counts = {name: others.pop(name) for name in flags if name in others}
    return {
        **others,
        "evidence": read_evidence_flags(evidence or ()),
        "counts": read_counts(**counts),
        "noise": not no_noise,
        "declared_cells": not cells_from_data,
    }


@attacker_options(Histogram)
@taking("asked", _OF_HISTOGRAMS | _OF_BOTH, _asked)
def histogram(*, attacker: AttackerModel, asked: dict[str, Any], curves: Drawn = None, as_json: AsJson = False) -> None:
    """Plan counts per cell: no noise at this k against noise at that epsilon."""
    _answer("histogram", attacker, asked, curves=curves, as_json=as_json)


@attacker_options(Count)
@taking("asked", _OF_BOTH, _asked)
def count(*, attacker: AttackerModel, asked: dict[str, Any], curves: Drawn = None, as_json: AsJson = False) -> None:
    """Plan one number: how many people satisfy a predicate."""
    _answer("count", attacker, asked, curves=curves, as_json=as_json)


def _answer(kind: Kind, attacker: AttackerModel, asked: dict[str, Any], *, curves: bool | None, as_json: bool) -> None:
    from pkdp_pipeline.cli.plan_views import printing
    from pkdp_pipeline.cli.plan_views.plan import planned
    from pkdp_pipeline.cli.plan_views.question import Question
    from pkdp_pipeline.display.terminal.screen import Screen

    plan = planned(Question(kind=kind, attacker=attacker, **asked))
    if as_json:
        typer.echo(printing.plan_document(plan, curves))
        return
    screen = Screen()
    printing.print_choices(screen, plan)
    printing.print_closely(screen, plan, curves)
    printing.print_fragment(screen, plan)


def _ask(context: typer.Context) -> None:
    """Plan a release: which k or which noise keeps a promise, and what each costs. Without a command it asks."""
    if context.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ArgumentError(
            "without a terminal there is nobody to ask: say what is published and what is argued about the attacker, "
            "for instance pkdp plan histogram --p-max 0.1 --epsilon 1 --delta 1e-6; pkdp plan histogram --help lists "
            "everything."
        )
    from pkdp_pipeline.cli.plan_views import printing
    from pkdp_pipeline.cli.plan_views.asking import Asker
    from pkdp_pipeline.cli.plan_views.dialogue import ask_choice, ask_question
    from pkdp_pipeline.cli.plan_views.plan import planned
    from pkdp_pipeline.display.terminal.screen import Screen

    screen = Screen()
    asker = Asker(screen)
    try:
        question = ask_question(asker, screen)
        typer.echo()
        try:
            plan = planned(question)
        except PkdpError:
            screen.say("This cannot be had as asked. The same as a command, to be changed:", indent=0)
            screen.command(question.command())
            raise
        printing.print_choices(screen, plan)
        plan = ask_choice(asker, plan)
        printing.print_closely(screen, plan)
        printing.print_again(screen, plan)
        printing.print_fragment(screen, plan)
    except (EOFError, KeyboardInterrupt):
        typer.echo("\nLeft. Nothing was written.")
        raise typer.Exit(_LEFT) from None
