"""The commands ``pkdp ledger show | total | explain | verify | export``: they read a ledger and write nothing in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pkdp_pipeline.cli.options import AsJson, AtDelta
from pkdp_pipeline.cli.screen import print_document
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.plugins import view

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
    from pkdp_pipeline.ledger.history import read_history, spending, spent
    from pkdp_pipeline.ledger.reading import chosen_units, open_for_reading
    from pkdp_pipeline.ledger.words import changed_since, term_changes

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
    from pkdp_pipeline.ledger.history import spent
    from pkdp_pipeline.ledger.reading import chosen_units, open_for_reading
    from pkdp_pipeline.ledger.words import changed_since, command, term_changes

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
    from pkdp_pipeline.ledger.reading import open_for_reading
    from pkdp_pipeline.ledger.words import number_of, verify_command

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
