"""Explanation: as plain text of 80 characters a line, and as HTML for notebooks in the colours of their page."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.display.ledger.words import amount, budget_words
from pkdp_pipeline.model.plain_text import exactly
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.releases.explain import DELTA

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.releases.explain import BudgetUse, Explanation

__all__ = ["heading", "html_of", "text_of"]

_CELL = "text-align:left;vertical-align:top;padding:0.15em 1.2em 0.15em 0;border-bottom:1px solid currentColor"
_WIDTH = 80
_BOUND = "\ue000"
"""Stands for a blank at which no line may end."""
_BECOMES = {
    "publish": "would be published",
    "replay": "is published already and would be replayed: no data would be read, nothing charged",
    "refused": "would be refused: nothing would be read or charged",
}


def text_of(explained: Explanation) -> str:
    """Return the explanation as plain text."""
    from rich.console import Console

    from pkdp_pipeline.display.terminal.screen import Screen

    sink = io.StringIO()
    screen = Screen(Console(file=sink, width=_WIDTH, color_system=None, markup=False, highlight=False, emoji=False))
    screen.say(heading(explained), indent=0)
    if explained.refused is not None:
        screen.head("Why")
        screen.say(str(explained.refused))
    if explained.statement is not None:
        screen.head("What it promises" if explained.refused is None else "What it would have promised")
        screen.say(explained.statement.sentence)
        screen.say(_in_short(explained))
    screen.head("What is published")
    for sentence in _publication_sentences(explained):
        screen.say(sentence)
    if explained.scenarios:
        screen.head("What if the attacker is stronger")
        screen.table(
            ("if the attacker …", "what is left"), [(one.words, _bound(one.verdict)) for one in explained.scenarios]
        )
    if explained.context.dataset is not None:
        screen.head(f"The ledger of {explained.context.dataset!r}")
        screen.table(*_ledger_table(explained))
    text = sink.getvalue().replace(_BOUND, " ")
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def _bound(text: str) -> str:
    """Return a text of which no line begins or ends with an equals sign."""
    return text.replace(" = ", f"{_BOUND}={_BOUND}")


def html_of(explained: Explanation) -> str:
    """Return the explanation as HTML."""
    parts = [f"<p><strong>{escape(heading(explained))}</strong></p>"]
    if explained.refused is not None:
        parts.append(f"<p>{escape(str(explained.refused))}</p>")
    if explained.statement is not None:
        if explained.refused is not None:
            parts.append("<p>What it would have promised:</p>")
        parts.append(explained.statement.to_html())
    parts += [f"<p>{escape(sentence)}</p>" for sentence in _publication_sentences(explained)]
    if explained.scenarios:
        left = [(one.words, one.verdict) for one in explained.scenarios]
        parts.append(_table(("If the attacker …", "what is left"), left))
    if explained.context.dataset is not None:
        header, rows = _ledger_table(explained)
        parts.append(_table((f"The ledger of {explained.context.dataset!r}", *header[1:]), rows))
    return f'<div style="max-width:48em;line-height:1.5">{"".join(parts)}</div>'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<table style="border-collapse:collapse;margin:0.5em 0"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{escape(text)}</td>'


def heading(explained: Explanation) -> str:
    """Return what is asked and what would become of it, as one line."""
    period, dataset = explained.context.period, explained.context.dataset
    about = explained.asked if period is None else f"{explained.asked}, period {period}"
    charged = f", and charged to {dataset!r}" if dataset is not None and explained.outcome == "publish" else ""
    return f"{about}: {_BECOMES[explained.outcome]}{charged}."


def _in_short(explained: Explanation) -> str:
    """Return the numbers of the certificate, rounded up; empty where there is none."""
    statement = explained.statement
    if statement is None:
        return ""
    epsilon, delta = statement.named
    reached = f"ε = {amount(epsilon)} at δ = {exactly(delta)}"
    if statement.epsilon == math.inf:
        reached = f"No ε is certified at δ = {exactly(statement.delta)}"
    others = ", ".join(f"{rounded_up(delta)} at ε = {rounded_up(epsilon)}" for epsilon, delta in statement.numbers)
    return f"{reached}. δ is at most {others}."


def _publication_sentences(explained: Explanation) -> tuple[str, ...]:
    """Return when a count would be published, and what error the noise would make."""
    error = explained.error
    if explained.mechanism.noise is None:
        return error.suppression, "No noise is added."
    return (
        error.suppression,
        f"Expected error of the noise: {error.mean_absolute:.3g} on average, standard deviation "
        f"{error.standard_deviation:.3g}; it is within ±{error.bound_95} in 95 % of cases.",
    )


def _ledger_table(explained: Explanation) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return what the ledger's releases add up to, and what is used of every budget: a header, and rows.

    Where nothing would be charged, only what is true now.
    """
    total = f"everything, ε at δ = {exactly(DELTA)}"
    rows = [(total, _total(explained.before), _total(explained.after)), *map(_used, explained.budgets)]
    if explained.outcome == "refused":
        return ("what", "now"), [row[:2] for row in rows]
    return ("what", "now", "then"), list(rows)


def _total(total: Certificate | None) -> str:
    if total is None:
        return "does not add up"
    if isinstance(total, ComposedCertificate) and not total.parts:
        return "nothing yet"
    return amount(total.epsilon(DELTA))


def _used(one: BudgetUse) -> tuple[str, str, str]:
    least = "" if one.complete else "at least "
    now, then = (f"{least}{amount(value)}" for value in (one.before, one.after))
    return f"budget {budget_words(one.budget, (one.part,))}", now, then
