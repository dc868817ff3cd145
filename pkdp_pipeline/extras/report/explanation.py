"""Explanation: as plain text of 80 characters a line, and as HTML for notebooks in the colours of their page."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.extras.report import environment
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.ledger.words import amount, budget_words
from pkdp_pipeline.model.mechanisms import noised_below
from pkdp_pipeline.model.spelling import exactly
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.releases.explain import DELTA

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.releases.explain import BudgetUse, Explanation

Table = list[tuple[str, ...]]

_WIDTH = 80
_BOUND = "\ue000"
"""Stands for a blank at which no line may end."""
_BECOMES = {
    "publish": "would be published",
    "replay": "is published already and would be replayed: no data would be read, nothing charged",
    "refused": "would be refused: nothing would be read or charged",
}


def statement_html(certificate: Certificate) -> str:
    """Return what a certificate says as HTML for notebooks."""
    return Statement.of(certificate).to_html()


def text_of(explained: Explanation) -> str:
    """Return the explanation as plain text."""
    from rich.console import Console

    from pkdp_pipeline.cli.screen import Screen

    sink = io.StringIO()
    screen = Screen(Console(file=sink, width=_WIDTH, color_system=None, markup=False, highlight=False, emoji=False))
    screen.say(heading(explained), indent=0)
    for title, sentences, table in _sections(explained):
        screen.head(title)
        for sentence in sentences:
            screen.say(sentence)
        if table:
            # No line of a cell begins or ends with an equals sign.
            bound = [[cell.replace(" = ", f"{_BOUND}={_BOUND}") for cell in row] for row in table[1:]]
            screen.table(table[0], bound)
    text = sink.getvalue().replace(_BOUND, " ")
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def html_of(explained: Explanation) -> str:
    """Return the explanation as HTML."""
    parts = ((title, texts, *(table[:1] or ((),)), table[1:]) for title, texts, table in _sections(explained))
    template = environment("").get_template("explanation.html.jinja")
    return template.render(heading=heading(explained), parts=parts, statement=explained.statement)


def _sections(explained: Explanation) -> Iterator[tuple[str, Sequence[str], Table]]:
    """Yield titles, each with sentences and a table, which may be empty and begins with its header."""
    if explained.refused is not None:
        yield "Why", [str(explained.refused)], []
    if explained.statement is not None:
        title = "The promise" if explained.refused is None else "The promise it would have made"
        yield title, [explained.statement.sentence, _in_short(explained.statement)], []
    noise = "No noise is added."
    if explained.mechanism.noise is not None:
        error = explained.error
        noise = (
            f"Expected error of the noise: {error.mean_absolute:.3g} on average, standard deviation "
            f"{error.standard_deviation:.3g}; it is within ±{error.bound_95} in 95 % of cases."
        )
    if noised_below(explained.mechanism):
        noise += f" Counts of at least {explained.mechanism.k} have none, and are marked as exact."
    yield "Published", [explained.error.suppression, noise], []
    if explained.scenarios:
        rows = [(scenario.words, scenario.verdict) for scenario in explained.scenarios]
        yield "If the attacker is stronger", [], [("if the attacker …", "what is left"), *rows]
    if explained.context.dataset is not None:
        yield f"The ledger of {explained.context.dataset!r}", [], _ledger_table(explained)


def heading(explained: Explanation) -> str:
    """Return what is asked and what would become of it, as one line."""
    period, dataset = explained.context.period, explained.context.dataset
    about = explained.asked if period is None else f"{explained.asked}, period {period}"
    charged = f", and charged to {dataset!r}" if dataset is not None and explained.outcome == "publish" else ""
    return f"{about}: {_BECOMES[explained.outcome]}{charged}."


def _in_short(statement: Statement) -> str:
    """Return the numbers of the certificate, rounded up."""
    epsilon, delta = statement.named
    reached = f"ε = {amount(epsilon)} at δ = {exactly(delta)}"
    if statement.epsilon == math.inf:
        reached = f"No ε is certified at δ = {exactly(statement.delta)}"
    others = ", ".join(f"{rounded_up(delta)} at ε = {rounded_up(epsilon)}" for epsilon, delta in statement.numbers)
    return f"{reached}. δ is at most {others}."


def _ledger_table(explained: Explanation) -> Table:
    """Return what the ledger's releases add up to, and what is used of every budget; where nothing is charged, now."""
    total = f"everything, ε at δ = {exactly(DELTA)}"
    rows = [("what", "now", "then"), (total, _total(explained.before), _total(explained.after))]
    rows += map(_used, explained.budgets)
    return [row[:2] for row in rows] if explained.outcome == "refused" else [*rows]


def _total(total: Certificate | None) -> str:
    if total is None:
        return "does not add up"
    if isinstance(total, ComposedCertificate) and not total.parts:
        return "nothing yet"
    return amount(total.epsilon(DELTA))


def _used(use: BudgetUse) -> tuple[str, str, str]:
    least = "" if use.complete else "at least "
    now, then = (f"{least}{amount(value)}" for value in (use.before, use.after))
    return f"budget {budget_words(use.budget, (use.part,))}", now, then
