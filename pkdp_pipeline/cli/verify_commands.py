"""The command ``pkdp verify``: every claim of a published file, recomputed or attacked, and one verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkdp_pipeline.cli.options import AsJson

if TYPE_CHECKING:
    from pkdp_pipeline.assurance.verification import Verification

FAILED = 3
"""Exit code where a claim failed."""

_MARKS = {"fail": "✗ FAIL", "pass": "✓ pass", "not_checked": "– not checked"}
_PLAIN = {"fail": "x FAIL", "pass": "  pass", "not_checked": "- not checked"}
"""Failures first, which is the order of the table."""


def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A release, a certificate or a report.", show_default=False)
    ],
    *,
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="The ledger it was published through; it is only read.")
    ] = None,
    draws: Annotated[int, typer.Option(min=100, help="Draws of every simulated attack.")] = 20_000,
    confidence: Annotated[
        float, typer.Option(help="With which a sound file passes all simulations together.")
    ] = 0.999999,
    as_json: AsJson = False,
) -> None:
    """Check every claim of a release, certificate or report; exit with 3 where one fails."""
    from pkdp_pipeline.assurance.verification import verify as verified

    found = verified(file, ledger=ledger, draws=draws, confidence=confidence)
    if as_json:
        typer.echo(found.to_json())
    else:
        _show(found)
    if not found.passed:
        raise typer.Exit(FAILED)


def _show(found: Verification) -> None:
    from pkdp_pipeline.display.terminal.screen import Screen
    from pkdp_pipeline.model.plain_text import printable

    screen = Screen()
    screen.title(f"{printable(found.file)}: a {found.kind}")
    marks = _PLAIN if screen.plain else _MARKS
    # Failures first; the claims of a kind stay in their order.
    listed = sorted(found.claims, key=lambda claim: list(marks).index(claim.outcome))
    screen.table(("outcome", "claim", "what was found"), [(marks[one.outcome], one.key, one.detail) for one in listed])
    for outcome, title in (("fail", "What does not hold"), ("not_checked", "What was not checked")):
        chosen = [claim for claim in found.claims if claim.outcome == outcome]
        if chosen:
            screen.head(title)
            for claim in chosen:
                screen.item(f"{claim.words} ({claim.key})")
    screen.head("Verdict")
    screen.say(found.verdict)
