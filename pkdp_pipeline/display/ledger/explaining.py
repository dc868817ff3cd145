"""Explaining: how a total comes about, step by step, for whoever must defend it; and what may be published next."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from pkdp_pipeline.certificates.sentences import protection
from pkdp_pipeline.display.ledger.showing import opening, rule_lines, statements
from pkdp_pipeline.display.ledger.words import (
    alone_words,
    amount,
    attacker_words,
    class_call,
    mechanism_words,
    noise_words,
    number_of,
    term_changes,
    terms_words,
    verify_command,
)
from pkdp_pipeline.display.terminal.screen import Screen
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.adding_up import unit_named
from pkdp_pipeline.ledger.admission import allows_overlap, covers_periods
from pkdp_pipeline.ledger.rows import Row
from pkdp_pipeline.ledger.views.history import MOST_MORE, History, Spent, how_many_more, spent
from pkdp_pipeline.model.evidence import (
    KINDS,
    BoundedDependence,
    BoundedParticipation,
    DisjointUnits,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
)
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.model.plain_text import exactly, printable
from pkdp_pipeline.model.wording import JOB_FILE

_GROUPS = 10
_OFFERED = (IndependentGivenHabits, OneDayProtected, DisjointUnits, OncePerUnit)


def explain_total(
    screen: Screen, ledger: Ledger, history: History, units: Sequence[str], *, delta: float, seconds: float = 1.5
) -> None:
    """Print how the totals of these units come about.

    Parameters
    ----------
    screen : Screen
    ledger : Ledger
        Inside a snapshot.
    history : History
    units : sequence of str
        See `unit_text`.
    delta : float
    seconds : float
        See `spent`.
    """
    title, held = opening(history, ledger.location)
    screen.title(title)
    screen.say(held, indent=0)
    pages = _pages(history)
    if not history.lines:
        screen.say("Nothing is published, so there is nothing to add up.", indent=0)
    else:
        revisions = len({(line.key, line.revision) for line in history.lines if line.revision > 1})
        screen.page(pages.declared(term_changes(ledger), revisions))
    for unit in units:
        if len(history.units) > 1:
            screen.head(f"Privacy unit {unit_named(unit)}")
        screen.page(pages.people(json.loads(unit), sum(line.row.unit == unit for line in history.lines)))
        _parts(screen, history, unit, delta)
        groups = [group for group in history.components() if any(one.unit == unit for one in group)]
        several = [group for group in groups if len(group) > 1]
        screen.page(pages.together(len(groups) - len(several), several, partial(_listed, history)))
        budgets = spent(history.totals, unit, seconds=seconds)
        _total(screen, history, unit, budgets, delta)
    last, more = history.lines[-1] if history.lines else None, None
    if last is not None and (covers_periods(history.evidence) or not last.standing.noiseless):
        more = how_many_more(history.totals, last.row.unit, last.row.part)
    windows = any(budget.window_days is not None for budget in history.terms.budgets)
    next_one = None if last is None else last.standing
    screen.page(pages.after(more, MOST_MORE, next_one, windows, verify_command(ledger, history.head)))


def pages(**facts: Any) -> Any:
    """Return what is said of facts, by macros; each returns a text for `Screen.page`."""
    environment = Environment(
        loader=PackageLoader("pkdp_pipeline.display.ledger", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"literal": repr, "printable": printable}
    named = (number_of, class_call, terms_words, mechanism_words, *_OFFERED, BoundedDependence, BoundedParticipation)
    environment.globals |= facts | {one.__name__: one for one in named} | {"say": JOB_FILE}
    return environment.get_template("explain.txt.jinja").module


def _pages(history: History) -> Any:
    standing = [line.standing for line in history.lines]
    leaks = any(part.leakage for part in history.parts.values())  # beside it nothing adds up by OncePerUnit
    return pages(
        history=history,
        covers=covers_periods(history.evidence),
        overlaps=allows_overlap(history.evidence),
        declares=dict.fromkeys(KINDS) | {one.key: one for one in history.evidence},
        offered=[one for one in _OFFERED if not (leaks and one is OncePerUnit)],
        kinds={one.kind for one in standing},
        noiseless=next((one for one in standing if one.noiseless and not one.total), None),
    )


def _parts(screen: Screen, history: History, unit: str, delta: float) -> None:
    screen.head("From which parts")
    counts = Counter(line.row.part for line in history.lines if line.row.unit == unit)
    columns = ["times", "published", "noise", "attacker", "alone", "against anyone, ε"]
    rows = []
    for part, times in counts.most_common(_GROUPS):
        one = history.parts[part]
        rows.append(
            [
                f"{times:,}",
                f"{mechanism_words(one.mechanism, one.protects)}; {one.protects}",
                noise_words(one.mechanism),
                attacker_words(one.attacker),
                alone_words(one, delta),
                amount(one.worst_case.epsilon(delta)),
            ]
        )
    screen.records(columns, rows, wide=90, right=("times", "against anyone, ε"))
    rest = len(counts) - _GROUPS
    if rest > 0:
        times = counts.total() - sum(number for _, number in counts.most_common(_GROUPS))
        screen.say(f"and {number_of(rest, 'other kind')} of part, in {number_of(times, 'release')}.")
    screen.say(f"ε at δ = {exactly(delta)}, each release by itself.")
    for text in dict.fromkeys(_protects(history, part) for part in counts):
        screen.say(text)


def _protects(history: History, part: str) -> str:
    one = history.parts[part]
    kind = "count" if isinstance(one.mechanism, Count) else "histogram"
    return f"A {kind} by itself: {protection(one.mechanism, one.protects, one.theorems[0], one.attacker)}"


def _listed(history: History, group: Sequence[Row]) -> str:
    """Return the period of releases that stand together, and which they are."""
    entries = {one.id for one in group}
    labels = Counter(
        f"{line.standing.label} ({mechanism_words(line.standing.mechanism, line.standing.protects)})"
        for line in history.lines
        if line.sequence in entries
    )
    days = [date.fromordinal(day).isoformat() for one in group for day in one.span[:2] if day is not None]
    span = " to ".join(dict.fromkeys((min(days), max(days)))) if days else repr(group[0].label)
    listed = "; ".join(label if times == 1 else f"{times} × {label}" for label, times in labels.most_common(_GROUPS))
    return printable(f"{span}: {listed}")


def _total(screen: Screen, history: History, unit: str, budgets: Sequence[Spent], delta: float) -> None:
    screen.head("What they add up to")
    try:
        total = history.totals.total(unit)
    except NoEvidenceError as error:
        screen.item(f"They do not add up. {error}")
        return
    screen.pairs([*rule_lines(total, history.terms), *statements(total, delta)])
    screen.say(total.sentence(delta))
    if budgets:
        screen.head("Budgets")
        screen.budgets(budgets)
