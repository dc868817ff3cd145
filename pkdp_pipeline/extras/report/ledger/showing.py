"""Showing: what is published, how the total has grown with every period, and what it is."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.ledger import Entry
from pkdp_pipeline.ledger.account import unit_named
from pkdp_pipeline.ledger.chain import Terms
from pkdp_pipeline.ledger.history import (
    History,
    Point,
    Spent,
    alone_words,
    amount,
    command,
    evidence_words,
    given_words,
    mechanism_words,
    no_epsilon,
    noise_words,
    number_of,
    number_of_periods,
    state_words,
)
from pkdp_pipeline.model.evidence import OneDayProtected, evidence_to_dicts
from pkdp_pipeline.model.mechanisms import mechanism_to_dict
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.theorems.theorems import THEOREMS

Growth = Sequence[tuple[str, Sequence[Point], Sequence[Spent]]]
"""For each privacy unit its total after each period, and its budgets."""

_TABLE_WIDTH = 110
_MAX_POINTS = 20


def opening(history: History, location: str) -> tuple[str, str]:
    """Return the two lines that say which ledger this is and how much it holds."""
    summary = number_of(len(history.lines), "release")
    if history.lines:
        ordered = history.in_order()
        firsts = [line for line in ordered if line.row.first_day is not None]
        first = min(firsts, key=lambda line: line.row.first_day or 0, default=ordered[0]).standing.period
        last = ordered[-1].standing.period
        summary += f", period {first}" if first == last else f", periods {first} to {last}"
        waiting = sum(line.state == "reserved" for line in history.lines)
        summary += f"; {waiting:,} reserved, charged and not public" if waiting else ""
    return f"{history.dataset} · {location}", f"{summary}."


def show(
    screen: Screen,
    history: History,
    location: str,
    growth: Growth,
    *,
    delta: float,
    last: int | None,
    changed: str = "",
) -> None:
    """Print the releases and the spend-over-time view.

    `location`: without a password. `last`: show this many of the latest releases; None for all. `changed`: see
    `changed_since`.
    """
    title, summary = opening(history, location)
    screen.title(title)
    screen.say(summary, indent=0)
    if changed:
        screen.say(f"{changed} Which and when:", indent=0)
        screen.command(command("explain", location))
    if not history.lines:
        screen.say("Nothing is published, and nothing was spent.", indent=0)
        return
    shown = history.in_order()
    hidden = 0 if last is None else max(0, len(shown) - last)
    screen.head("Published" if not hidden else f"Published: the last {len(shown) - hidden}")
    _releases(screen, history, shown[hidden:], delta)
    if hidden:
        screen.say(f"and {number_of(hidden, 'earlier release')}; --all lists {'it' if hidden == 1 else 'them'} too.")
    for unit, points, budgets in growth:
        several = f", unit {unit_named(unit)}" if len(history.units) > 1 else ""
        screen.head(f"Together: ε at δ = {exactly(delta)}, after each period{several}")
        one_day = history.evidence == (OneDayProtected(),)
        periods = number_of_periods(history, unit)
        beside = given_words(history.attackers(unit))
        _growth(screen, points, budgets, delta, periods=periods, one_day=one_day, beside=beside)
        if points[-1].epsilon == math.inf and points[-1].at_one is None:
            screen.say("Why they do not add up:")
            screen.command(command("explain", location))


def show_document(history: History, growth: Growth, *, delta: float) -> str:
    """Return what `show` prints as JSON; all releases, and every number in full."""
    own = {part: certificate.epsilon(delta) for part, certificate in history.parts.items()}
    document: dict[str, Any] = {
        "schema": "pkdp-ledger-show/1",
        "dataset": history.dataset,
        "head": history.head,
        "delta": delta,
        "evidence": evidence_to_dicts(history.evidence),
        "releases": [
            {
                "entry": line.sequence,
                "key": line.key,
                "revision": line.revision,
                "state": line.state,
                "unit": list(line.standing.unit),
                "period": line.standing.period,
                "label": line.standing.label,
                "mechanism": mechanism_to_dict(line.standing.mechanism),
                "epsilon": _finite(own[line.row.part]),
                "release_id": line.release_id,
                "created_at": line.created_at,
            }
            for line in history.in_order()
        ],
        "units": [
            {
                "unit": json.loads(unit),
                "spending": [
                    {
                        "period": point.period,
                        "releases": point.releases,
                        "epsilon": _finite(point.epsilon),
                        "worst_case_epsilon": _finite(point.worst_case),
                    }
                    for point in points
                ],
                "budgets": [
                    {
                        **budget.budget.to_dict(),
                        "part": budget.measure,
                        "spent": _finite(budget.epsilon),
                        "first_day": budget.start,
                        "complete": budget.complete,
                    }
                    for budget in budgets
                ],
            }
            for unit, points, budgets in growth
        ],
    }
    return json.dumps(document)


def _finite(epsilon: float) -> float | None:
    return None if epsilon == math.inf else epsilon


def _releases(screen: Screen, history: History, lines: Sequence[Entry], delta: float) -> None:
    own = {line.row.part: alone_words(history.parts[line.row.part], delta, start="") for line in lines}
    epsilon = f"ε at δ = {exactly(delta)}"
    header = ["entry", "period", "release", "mechanism", "noise", epsilon, "state", "rev.", "id"]
    rows = [
        [
            str(line.sequence),
            line.period,
            line.label,
            mechanism_words(line.standing.mechanism, line.standing.protects),
            noise_words(line.standing.mechanism),
            own[line.row.part],
            state_words(line.state),
            str(line.revision),
            (line.release_id or "")[:12],
        ]
        for line in lines
    ]
    screen.records(header, rows, wide=_TABLE_WIDTH, right=("entry", epsilon, "rev."))


def _growth(
    screen: Screen,
    points: Sequence[Point],
    budgets: Sequence[Spent],
    delta: float,
    *,
    periods: int,
    one_day: bool,
    beside: str,
) -> None:
    last = points[-1]
    finite = [point.epsilon for point in points if point.epsilon < math.inf]
    comparable = sorted({use.budget.epsilon for use in budgets if _is_whole(use) and use.budget.delta == delta})
    if finite:
        most, steps = max(*finite, *comparable, 1e-300), min(len(points), _MAX_POINTS) - 1
        shown = [points[len(points) - 1 - step * (len(points) - 1) // max(1, steps)] for step in range(steps, -1, -1)]
        rows = [(point.period, screen.bar(min(1.0, point.epsilon / most)), amount(point.epsilon)) for point in shown]
        rows += [("budget", screen.bar(epsilon / most), exactly(epsilon)) for epsilon in comparable]
        screen.table(("up to", "", "ε"), rows, right=("ε",))
        if len(shown) < periods:
            screen.say(f"{len(shown)} of {periods:,} periods are shown, spread evenly; the last one is among them.")
    else:
        screen.say(
            "There is nothing to draw: the releases do not add up with what is declared."
            if last.at_one is None
            else f"There is nothing to draw: {no_epsilon(delta, last.at_one)}. --delta asks at a larger δ."
        )
    worst = "none" if last.worst_case == math.inf else f"ε = {amount(last.worst_case)}"
    # Not to be taken for what all of them tell together.
    several = f"any one of {last.releases:,} releases" if one_day else f"{last.releases:,} releases together"
    together = "1 release" if last.releases == 1 else several
    number = f", ε = {amount(last.epsilon)}"
    if last.epsilon == math.inf:
        number = ", which do not add up" if last.at_one is None else f": {no_epsilon(delta, last.at_one)}"
    screen.say(f"After {last.period}: {together}{number}. Against anyone at all: {worst}.")
    if beside:
        screen.say(f"All of this is {beside}: what that tells by itself is not protected.")
    if budgets:
        screen.head("Budgets")
        screen.budgets(budgets)
        away = sorted({exactly(use.budget.delta) for use in budgets if _is_whole(use) and use.budget.delta != delta})
        if away:
            screen.say(f"A budget is drawn beside the totals at its own δ: --delta {', --delta '.join(away)}.")


def _is_whole(use: Spent) -> bool:
    """Return whether a budget is for the total of all days."""
    return use.budget.window_days is None


def print_total(
    screen: Screen,
    total: Certificate,
    terms: Terms,
    budgets: Sequence[Spent],
    *,
    delta: float,
    hidden: Certificate | None = None,
) -> None:
    """Print one unit's total; `hidden`: see `LedgerTotals.hidden_below`."""
    screen.say(total.sentence(delta))
    if isinstance(total, ComposedCertificate) and not total.parts:
        return
    screen.head("In numbers")
    screen.pairs(statements(total, delta, hidden))
    screen.head("By which rule")
    screen.pairs(rule_lines(total, terms))
    screen.head("Budgets")
    if budgets:
        screen.budgets(budgets)
    else:
        screen.say("None is declared: nothing limits what is published.")


def _partial(total: Certificate, delta: float) -> str:
    epsilon = total.epsilon(delta)
    known = f"ε = {amount(epsilon)} at δ = {exactly(delta)}"
    return known if epsilon < math.inf else no_epsilon(delta, total.delta(1.0))


def statements(total: Certificate, delta: float, hidden: Certificate | None = None) -> list[tuple[str, str]]:
    """Return the two totals, each with its name; beside them `hidden`, of `LedgerTotals.hidden_below`."""
    at_delta = f"δ = {exactly(delta)}"
    reason = total.reason if isinstance(total, ComposedCertificate) else ""
    partial = f"none: {reason}" if reason else "none: nothing rests on what an attacker does not know"
    if total.has_partial_knowledge:
        partial = _partial(total, delta)
    worst = "none: not all of it is noised with a finite worst case"
    parameters = total.worst_case.parameters
    if parameters is not None and parameters[1] < 1.0:
        epsilon = total.worst_case.epsilon(delta)
        plain = f"ε = {amount(parameters[0])}, δ = {amount(parameters[1])}"
        worst = (
            f"{plain} by plain sums"
            if epsilon == math.inf
            else f"ε = {amount(epsilon)} at {at_delta} (plain sums: {plain})"
        )
    beside = [("Given", ", ".join(leak.name for leak in total.leakage))] if total.leakage else []
    if hidden is not None:
        were = "the same releases, were counts below k suppressed and not noised"
        beside.insert(0, ("Small cells hidden", f"{_partial(hidden, delta)}: {were}"))
    return [("Partial knowledge", partial), ("Against anyone", worst), *beside]


def rule_lines(total: Certificate, terms: Terms) -> list[tuple[str, str]]:
    """Return the rule by which it adds up, where it is proved, and the evidence in force."""
    keys = [key for key in total.theorems if THEOREMS[key].is_rule]
    listed = [("Rule", f"{THEOREMS[key].title} ({THEOREMS[key].citation})") for key in keys]
    declared = ", ".join(map(evidence_words, terms.evidence)) or "none declared"
    several = isinstance(total, ComposedCertificate) and total.releases > 1
    why = "exact totals are given (docs/composition.md, rule 7)" if several else "a single release"
    return [*(listed or [("Rule", f"none needed: {why}")]), ("Evidence", declared)]
