"""Words: what an explanation says besides its certificate's own sentence, for the terminal and for a page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.ledger.views.words import amount, budget_words
from pkdp_pipeline.model.plain_text import exactly
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.releases.explaining.explanation import DELTA

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.releases.explaining.explanation import BudgetUse, Explanation

__all__ = ["heading", "in_short", "ledger_table", "publication_sentences"]

_BECOMES = {
    "publish": "would be published",
    "replay": "is published already and would be replayed: no data would be read, nothing charged",
    "refused": "would be refused: nothing would be read or charged",
}


def heading(explained: Explanation) -> str:
    """Return what is asked and what would become of it, as one line."""
    period, dataset = explained.context.period, explained.context.dataset
    about = explained.asked if period is None else f"{explained.asked}, period {period}"
    charged = f", and charged to {dataset!r}" if dataset is not None and explained.outcome == "publish" else ""
    return f"{about}: {_BECOMES[explained.outcome]}{charged}."


def in_short(explained: Explanation) -> str:
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


def publication_sentences(explained: Explanation) -> tuple[str, ...]:
    """Return when a count would be published, and what error the noise would make."""
    error = explained.error
    if explained.mechanism.noise is None:
        return error.suppression, "No noise is added."
    return (
        error.suppression,
        f"Expected error of the noise: {error.mean_absolute:.3g} on average, standard deviation "
        f"{error.standard_deviation:.3g}; it is within ±{error.bound_95} in 95 % of cases.",
    )


def ledger_table(explained: Explanation) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
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
