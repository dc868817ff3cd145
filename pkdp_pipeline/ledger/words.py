"""Words: mechanisms, attackers, terms, people and numbers as the ledger's views print them."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, Context, Decimal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.chain import Budget, Terms
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Count, Mechanism, Sum, cells_per_unit, kind_of, mechanism_name, noised_below
from pkdp_pipeline.model.spelling import exactly
from pkdp_pipeline.model.wording import rounded_up

_STATES = {"published": "published", "reserved": "reserved", "given_back": "given back"}


def number_of(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is one."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def amount(epsilon: float) -> str:
    """Return an ε, rounded up; "none" where there is none."""
    return "none" if epsilon == math.inf else rounded_up(epsilon)


def no_epsilon(delta: float, at_one: float) -> str:
    """Return that no ε reaches `delta`, and the δ that ε = 1 has instead."""
    instead = f"δ = {amount(at_one)} at ε = 1" if at_one < 1.0 else "nothing is certified at ε = 1 either"
    return f"no ε reaches δ = {exactly(delta)}; {instead}"


def alone_words(certificate: Certificate, delta: float, start: str = "ε = ") -> str:
    """Return what one certificate promises: its ε at `delta`, after `start`, or its δ at ε = 1 where it has none."""
    epsilon = certificate.epsilon(delta)
    return f"{start}{amount(epsilon)}" if epsilon < math.inf else f"δ = {amount(certificate.delta(1.0))} at ε = 1"


def spent_words(allowed: float, spent: float, *, complete: bool = True) -> str:
    """Return what is spent, of how much, and what is left: all with as many decimals, so that they add up.

    Spending is rounded up, and the rest down. Where it is not `complete`, it is at least what is spent.
    """
    exactly_so = Context(prec=2000)
    most, used = Decimal(repr(allowed)), Decimal(repr(spent))
    left = exactly_so.subtract(most, used)
    written = max(0, -int(most.normalize().as_tuple().exponent))
    # Three digits of the smallest number, as long as what is allowed has no more than six for it.
    digits = 2 - min((abs(number) for number in (used, left) if number), default=most.normalize()).adjusted()
    decimals = max(written, min(digits, 5 - most.adjusted()) if most else digits, 0)
    used = used.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_CEILING, context=exactly_so)
    words = f"spent{'' if complete else ' at least'} {used:.{decimals}f} of {most:.{decimals}f}"
    if used > most:
        return f"{words}, OVER BUDGET"
    return f"{words}, left {exactly_so.subtract(most, used):.{decimals}f}" if complete else words


def mechanism_words(mechanism: Mechanism, protects: str = "presence") -> str:
    """Return what is published and from which thresholds on; the noise has its own words."""
    if kind_of(mechanism, protects) == "total":
        return "exact total"
    kind = mechanism_name(mechanism)
    details, marked = [], noised_below(mechanism)
    if marked:
        details += [f"exact from k = {mechanism.k}", "noised below"]
    elif mechanism.k is not None:
        details.append(f"k = {mechanism.k}")
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        details.append(f"k of the rest = {mechanism.k_complement}")
    if isinstance(mechanism, Sum):
        details.append(f"{mechanism.bounds[0]} to {mechanism.bounds[1]} a person")
    if cells_per_unit(mechanism) > 1:
        details.append(f"up to {cells_per_unit(mechanism)} cells a person")
    if mechanism.release_threshold is not None:
        details.append(f"shown from {mechanism.release_threshold}")
    if mechanism.display is not None:
        details.append(f"shown {mechanism.display.words}")
    if mechanism.noise is not None and not marked:
        return ", ".join((f"noisy {kind}", *details))
    return ", ".join((kind if details else f"exact {kind}", *details))


def noise_words(mechanism: Mechanism) -> str:
    """Return the noise; "none" where there is none."""
    return "none" if mechanism.noise is None else f"ε = {exactly(mechanism.noise.epsilon)}"


def attacker_words(attacker: AttackerModel) -> str:
    """Return what is declared about the attacker, as it is written."""
    listed = [f"{name} = {exactly(value)}" for name, value in attacker.numbers.items()]
    if attacker.known:
        listed.append(f"known = {attacker.known} ({attacker.influence})")
    if attacker.independent_cells:
        listed.append("cells independent given habits")
    if attacker.secret == "conditional":
        listed.append(f"given the others of each {attacker.dependent}")
    elif attacker.dependent is not None:
        listed.append(f"people of one {attacker.dependent} depend on one another")
    whom = ", ".join(listed) or "anyone at all"
    return f"{whom}; {given_words([attacker])}" if attacker.leakage else whom


def given_words(attackers: Iterable[AttackerModel]) -> str:
    """Return what is known, or leaks, beside the releases; empty where nothing does."""
    names = list(dict.fromkeys(leak.name for attacker in attackers for leak in attacker.leakage))
    return f"given {' and '.join(names)}" if names else ""


def state_words(state: str) -> str:
    """Return an entry's state in words."""
    return _STATES[state]


def evidence_words(declaration: Evidence) -> str:
    """Return evidence as a job file names it, with its numbers."""
    numbers = ", ".join(f"{field.name} = {exactly(getattr(declaration, field.name))}" for field in fields(declaration))
    return f"{declaration.key} ({numbers})" if numbers else declaration.key


def budget_words(budget: Budget, measures: Iterable[str] | None = None) -> str:
    """Return what a budget allows, and which total it holds to it."""
    totals = {"partial_knowledge": "the total", "worst_case": "the worst-case total"}
    limited = " and ".join(totals[measure] for measure in (measures or budget.measures))
    days = "" if budget.window_days is None else f" of any {number_of(budget.window_days, 'day')}"
    return f"ε = {exactly(budget.epsilon)} at δ = {exactly(budget.delta)} for {limited}{days}"


def command(name: str, location: str, *options: str) -> str:
    """Return a command about this ledger, to be pasted."""
    return " ".join(("pkdp ledger", name, shlex.quote(location), *options))


def verify_command(ledger: Ledger, head: str, location: str | None = None) -> str:
    """Return the command that checks a data set's chain and that it holds `head`, to be pasted.

    `location` stands in for where the ledger is, which not everybody may know.
    """
    ((several,),) = ledger.records.execute("SELECT COUNT(*) > 1 FROM dataset")
    named = [f"--dataset {shlex.quote(ledger.dataset)}"] if several else []
    return command("verify", location or ledger.location, *named, f"--head {head}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Terms that differ from those recorded just before them.

    Attributes
    ----------
    position : int
        The event, within the data set, that recorded them first.
    """

    position: int
    created_at: str
    terms: Terms

    @property
    def words(self) -> str:
        """The change, as one line."""
        return f"terms changed with event {self.position:,} ({self.created_at[:10]}): {terms_words(self.terms)}"


def terms_words(terms: Terms) -> str:
    """Return evidence and budgets, as one line."""
    evidence = ", ".join(map(evidence_words, terms.evidence)) or "none"
    budgets = "; ".join(map(budget_words, terms.budgets)) or "none"
    return f"evidence {evidence}; {'budget' if len(terms.budgets) == 1 else 'budgets'} {budgets}"


def term_changes(ledger: Ledger) -> list[Change]:
    """Return the terms of the first reservation and all that follow them, in order; those of given-back ones too."""
    rows = ledger.records.execute(
        "SELECT position, created_at, terms FROM event WHERE dataset = :dataset AND terms IS NOT NULL ORDER BY position"
    )
    changes: list[Change] = []
    before = None
    for position, created_at, text in rows:
        if text == before:
            continue
        before, terms = text, Terms.from_dict(json.loads(text))
        if not changes or terms != changes[-1].terms:
            changes.append(Change(position=int(position), created_at=str(created_at), terms=terms))
    return changes


def changed_since(changes: list[Change]) -> str:
    """Return one sentence where the terms in force are not those of the first release; else nothing."""
    if not changes or changes[-1].terms == changes[0].terms:
        return ""
    last = f"with event {changes[-1].position:,} ({changes[-1].created_at[:10]})"
    when = last if len(changes) == 2 else f"{number_of(len(changes) - 1, 'time')}, the last time {last}"
    return f"The terms in force are not those of the first release: they changed {when}."
