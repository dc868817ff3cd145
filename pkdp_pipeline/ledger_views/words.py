"""Words: mechanisms, attackers, periods, people and numbers as the ledger's views print them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from decimal import ROUND_FLOOR, Context, Decimal

from pkdp_pipeline.attacker import AttackerModel
from pkdp_pipeline.composition.evidence import Evidence
from pkdp_pipeline.ledger.budget import Budget
from pkdp_pipeline.mechanisms import Count, Mechanism
from pkdp_pipeline.sentences import rounded_up

__all__ = [
    "amount",
    "attacker_words",
    "budget_words",
    "class_call",
    "exactly",
    "left_over",
    "mechanism_words",
    "noise_words",
    "number_of",
    "state_words",
]

_STATES = {"published": "published", "reserved": "reserved", "given_back": "given back"}


def number_of(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is one."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def amount(epsilon: float) -> str:
    """Return an ε, rounded up; "none" where there is none."""
    return "none" if epsilon == math.inf else rounded_up(epsilon)


def left_over(allowed: float, spent: float) -> str:
    """Return what a budget leaves, rounded down."""
    left = Decimal(allowed) - Decimal(spent) if spent < math.inf else Decimal(0)
    if left <= 0:
        return "0"
    exact = Context(prec=3, rounding=ROUND_FLOOR).create_decimal(left)
    return f"{float(exact):g}"


def mechanism_words(mechanism: Mechanism) -> str:
    """Return what is published and from which thresholds on; the noise has its own words."""
    kind = "count" if isinstance(mechanism, Count) else "histogram"
    details = []
    if mechanism.k is not None:
        details.append(f"k = {mechanism.k}")
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        details.append(f"k of the rest = {mechanism.k_complement}")
    if mechanism.release_threshold is not None:
        details.append(f"shown from {mechanism.release_threshold}")
    if mechanism.noise is not None:
        return ", ".join((f"noisy {kind}", *details))
    return ", ".join((kind if details else f"exact {kind}", *details))


def noise_words(mechanism: Mechanism) -> str:
    """Return the noise; "none" where there is none."""
    return "none" if mechanism.noise is None else f"ε = {exactly(mechanism.noise.epsilon)}"


def attacker_words(attacker: AttackerModel) -> str:
    """Return what is declared about the attacker, as it is written."""
    names = ("p_max", "p_min", "p_max_between", "unknown", "unknown_max")
    stated = [(name, getattr(attacker, name)) for name in names]
    listed = [f"{name} = {value!r}" for name, value in stated if value is not None]
    if attacker.known:
        listed.append(f"known = {attacker.known} ({attacker.influence})")
    return ", ".join(listed) or "anyone at all"


def state_words(state: str) -> str:
    """Return an entry's state in words."""
    return _STATES[state]


def class_call(one: Evidence | Budget) -> str:
    """Return how a value is written in Python."""
    if isinstance(one, Budget):
        named = {"part": one.part, "window_days": one.window_days}
        arguments = [exactly(one.epsilon), exactly(one.delta)]
    else:
        named, arguments = {}, [repr(getattr(one, field.name)) for field in fields(one)]
    arguments += [f"{name}={value!r}" for name, value in named.items() if value is not None]
    return f"{type(one).__name__}({', '.join(arguments)})"


def budget_words(budget: Budget, measures: Iterable[str] | None = None) -> str:
    """Return what a budget allows, and which total it holds to it."""
    totals = {"partial_knowledge": "the total", "worst_case": "the worst-case total"}
    held = " and ".join(totals[measure] for measure in (measures or budget.measures))
    days = "" if budget.window_days is None else f" of any {number_of(budget.window_days, 'day')}"
    return f"ε = {exactly(budget.epsilon)} at δ = {exactly(budget.delta)} for {held}{days}"


def exactly(value: float) -> str:
    """Return a number that somebody has chosen, as it was written."""
    return rounded_up(value, 12)
