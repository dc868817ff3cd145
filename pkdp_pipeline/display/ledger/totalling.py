"""Totalling: what everything charged adds up to, with budgets, rule and evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.display.ledger.screen import Screen
from pkdp_pipeline.display.ledger.words import amount, class_call, no_epsilon
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.ledger.views.spent import Spent
from pkdp_pipeline.model.plain_text import exactly
from pkdp_pipeline.theorems import THEOREMS

__all__ = ["print_total", "rule_lines", "statements"]

_SINGLE = "none needed: a single release"


def print_total(screen: Screen, total: Certificate, terms: Terms, budgets: Sequence[Spent], *, delta: float) -> None:
    """Print one unit's total."""
    screen.say(total.sentence(delta))
    if isinstance(total, ComposedCertificate) and not total.parts:
        return
    screen.head("In numbers")
    screen.pairs(statements(total, delta))
    screen.head("By which rule")
    screen.pairs(rule_lines(total, terms))
    screen.head("Budgets")
    if budgets:
        screen.budgets(budgets)
    else:
        screen.say("None is declared: nothing limits what is published.")


def statements(total: Certificate, delta: float) -> list[tuple[str, str]]:
    """Return the two totals, each with its name."""
    at = f"δ = {exactly(delta)}"
    reason = total.reason if isinstance(total, ComposedCertificate) else ""
    partial = f"none: {reason}" if reason else "none: nothing rests on what an attacker does not know"
    if total.has_partial_knowledge:
        epsilon = total.epsilon(delta)
        partial = f"ε = {amount(epsilon)} at {at}" if epsilon < math.inf else no_epsilon(delta, total.delta(1.0))
    worst = "none: not all of it is noised with a finite worst case"
    parameters = total.worst_case.parameters
    if parameters is not None and parameters[1] < 1.0:
        epsilon = total.worst_case.epsilon(delta)
        plain = f"ε = {amount(parameters[0])}, δ = {amount(parameters[1])}"
        worst = (
            f"{plain} by plain sums" if epsilon == math.inf else f"ε = {amount(epsilon)} at {at} (plain sums: {plain})"
        )
    beside = [("Given", ", ".join(leak.name for leak in total.leakage))] if total.leakage else []
    return [("Partial knowledge", partial), ("Against anyone", worst), *beside]


def rule_lines(total: Certificate, terms: Terms) -> list[tuple[str, str]]:
    """Return the rule by which it adds up, where it is proved, and the evidence in force."""
    keys = [key for key in total.theorems if THEOREMS[key].is_rule]
    listed = [("Rule", f"{THEOREMS[key].title} ({THEOREMS[key].citation})") for key in keys]
    declared = ", ".join(map(class_call, terms.evidence)) or "none declared"
    several = isinstance(total, ComposedCertificate) and total.releases > 1
    none = "none needed: exact totals are given (docs/composition.md, rule 7)" if several else _SINGLE
    return [*(listed or [("Rule", none)]), ("Evidence", declared)]
