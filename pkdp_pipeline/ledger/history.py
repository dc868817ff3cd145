"""History: the charged releases of a data set in order, what any of them add up to, and what is left of budgets.

Words: mechanisms, attackers, terms, people and numbers as the ledger's views print them.
"""

from __future__ import annotations

import json
import math
import shlex
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, Context, Decimal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import releases_in
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.account import Bundle
from pkdp_pipeline.ledger.chain import Budget, Terms
from pkdp_pipeline.ledger.rows import Row
from pkdp_pipeline.ledger.totals import LedgerTotals
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Count, Mechanism, Sum, cells_per_unit, kind_of, mechanism_name, noised_below
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import rounded_up


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The charged releases of a data set.

    Attributes
    ----------
    lines : tuple of Entry
        In the order in which they were charged, without certificates and bytes.
    totals : LedgerTotals
        Their totals, under the terms in force.
    """

    dataset: str
    head: str
    lines: tuple[Entry, ...]
    totals: LedgerTotals

    @property
    def parts(self) -> Mapping[str, Certificate]:
        """The promises that the releases count with, without the facts of their publication, by `Row.part`."""
        return self.totals.parts

    def attackers(self, unit: str) -> Iterator[AttackerModel]:
        """Yield the attackers of the certificates that one unit's releases count with."""
        kinds = dict.fromkeys(line.row.part for line in self.lines if line.row.unit == unit)
        return (release.attacker for part in kinds for release in releases_in(self.parts[part]))

    @property
    def terms(self) -> Terms:
        """Evidence and budgets in force."""
        return self.totals.terms

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence in force."""
        return self.terms.evidence

    @property
    def units(self) -> list[str]:
        """The privacy units, as `unit_text`."""
        return self.totals.account.units

    @property
    def is_dated(self) -> bool:
        """Whether every period has dates."""
        return all(line.row.first_day is not None for line in self.lines)

    def in_order(self) -> list[Entry]:
        """Return the releases by the end of their periods; by their charge, where a period has no dates."""
        if not self.is_dated:
            return list(self.lines)
        return sorted(self.lines, key=lambda line: (line.row.last_day or 0, line.row.first_day or 0, line.row.id))

    def components(self) -> list[list[Row]]:
        """Return the releases whose periods overlap, each leading to the next, as one list each."""
        return self.totals.account.components

    def of_some(self, unit: str, lines: Iterable[Entry]) -> Certificate:
        """Return what some releases add up to for one unit; all others count as standing beside them.

        Raises `NoEvidenceError` if they do not add up with the evidence in force.
        """
        bundles = self.totals.account.bundles(unit, {line.sequence for line in lines})
        if not self.evidence and len(self.lines) > 1:
            # Without evidence a release in any other period may tell what this one's attacker does not know.
            accompanied: Counter[Bundle] = Counter()
            for bundle, times in bundles.items():
                accompanied[Bundle("same unit", bundle.parts) if bundle.beside == "alone" else bundle] += times
            bundles = accompanied
        return self.totals.of(bundles)


def read_history(ledger: Ledger) -> History:
    """Read the charged releases of a ledger; its events are not checked, which is `Ledger.verify`."""
    totals, lines = ledger.totals(), tuple(ledger.records.each(brief=True))
    parts = {part: totals.parts[part] for part in {line.row.part for line in lines}}
    return History(dataset=ledger.dataset, head=ledger.head(), lines=lines, totals=replace(totals, parts=parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The total of everything up to the end of a period.

    Attributes
    ----------
    epsilon, worst_case : float
        At the δ asked for; `math.inf` where there is none.
    at_one : float or None
        Where `epsilon` is infinite, the δ at ε = 1; None if the releases do not add up.
    """

    period: str
    releases: int
    epsilon: float
    worst_case: float
    at_one: float | None = None


def spending(
    history: History,
    unit: str,
    delta: float,
    *,
    max_points: int = 40,
    periods: Container[str] | None = None,
    seconds: float = 1.5,
    clock: Callable[[], float] = time.monotonic,
) -> list[Point]:
    """Return the total after each period, at `max_points` periods spread evenly over all, the last one among them.

    Everything that others take away from a point's releases, later ones and other units' too, is counted. The last
    point is the total of everything.

    Parameters
    ----------
    unit : str
        See `unit_text`.
    periods : container of str, optional
        Points are made at these periods only; what is charged in between counts in the next point, and after the
        last of them in that.
    seconds : float
        After so long fewer points are returned, as evenly spread.
    """
    lines = history.in_order()
    reached = _reached(lines, unit, periods)
    ends = sorted(reached)
    if len(ends) > max_points:
        ends = [ends[-1 - position * (len(ends) - 1) // (max_points - 1)] for position in reversed(range(max_points))]
    points: dict[int, Point] = {}
    deadline = clock() + seconds
    for level in _halves(ends):
        finer: dict[int, Point] = {}
        for end in level:
            if points and clock() > deadline:
                return [points[end] for end in sorted(points)]
            finer[end] = _point(history, unit, lines[:end], reached[end], delta)
        points |= finer
    return [points[end] for end in sorted(points)]


def number_of_periods(history: History, unit: str) -> int:
    """Return how many points `spending` has where nothing limits them."""
    return len(_reached(history.in_order(), unit, None))


def _reached(lines: Sequence[Entry], unit: str, periods: Container[str] | None) -> dict[int, str]:
    """Return how many of the lines stand at the end of each of the unit's periods, and its name.

    Lines of whatever unit that end on the same day belong to it; to the last one belong all that remain.
    """
    own = [place for place, line in enumerate(lines) if line.row.unit == unit]
    reached: dict[int, str] = {}
    name = ""
    for place, after in zip(own, [*own[1:], None], strict=True):
        period = lines[place].standing.period
        name = period if periods is None or period in periods else name
        if after is not None and _end_together(lines[place], lines[after]):
            continue
        end = place + 1
        while end < len(lines) and _end_together(lines[place], lines[end]):
            end += 1
        if name:
            reached[end], name = name, ""
    if reached:
        reached[len(lines)] = reached.pop(max(reached))
    return reached


def _end_together(entry: Entry, other: Entry) -> bool:
    """Return whether two periods end together."""
    if entry.row.last_day is None or other.row.last_day is None:
        return entry.period == other.period
    return entry.row.last_day == other.row.last_day


def _halves(indices: Sequence[int]) -> list[list[int]]:
    """Return the last one, then those that halve the gaps between the ones before (bisection), until none is left."""
    backward = list(reversed(indices))
    step = 1
    while step < len(backward):
        step *= 2
    levels, chosen = [], set[int]()
    while step >= 1:
        level = [index for index in backward[::step] if index not in chosen]
        chosen.update(level)
        levels.append(level)
        step //= 2
    return [level for level in levels if level]


def _point(history: History, unit: str, lines: Sequence[Entry], period: str, delta: float) -> Point:
    epsilon, worst, at_one = math.inf, math.inf, None
    with suppress(NoEvidenceError):
        total = history.of_some(unit, lines)
        epsilon, worst = total.epsilon(delta), total.worst_case.epsilon(delta)
        at_one = total.delta(1.0) if epsilon == math.inf else None
    releases = sum(line.row.unit == unit for line in lines)
    return Point(period=period, releases=releases, epsilon=epsilon, worst_case=worst, at_one=at_one)


MAX_FURTHER_RELEASES = 3650
"""The most further releases that are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The use of one budget for one of the totals it limits.

    Attributes
    ----------
    measure : {"partial_knowledge", "worst_case"}
    epsilon : float
        The total of the releases at the budget's δ; for a budget of some days, in the fullest window. `math.inf`
        where no ε reaches that δ, and where they do not add up.
    at_one : float or None
        Where `epsilon` is infinite, the δ at ε = 1; None if they do not add up.
    start : int or None
        The first day of that window, as an ordinal.
    complete : bool
        Whether every window was looked at; if not, the fullest one may hold more.
    """

    budget: Budget
    measure: str
    epsilon: float
    at_one: float | None = None
    start: int | None = None
    complete: bool = True


def spent(totals: LedgerTotals, unit: str, *, seconds: float = 1.0) -> list[Spent]:
    """Return how much of every budget in force is used up for one privacy unit.

    `unit`: see `unit_text`. `seconds`: after so long no further windows are looked at.
    """
    deadline = time.monotonic() + seconds
    uses = []
    for budget in totals.terms.budgets:
        windows: list[tuple[int | None, Counter[Bundle]]] = [(None, totals.account.bundles(unit))]
        if budget.window_days is not None:
            windows = _fullest(list(totals.account.windows(unit, budget.window_days)))
        for measure in budget.measures:
            fullest, start, examined = 0.0, None, 0
            fullest_bundles: Counter[Bundle] = Counter()
            for first, window in reversed(windows):  # the latest first: it is what the next release meets
                if examined and time.monotonic() > deadline:
                    break
                epsilon, examined = totals.epsilon(window, measure, budget.delta), examined + 1
                if epsilon > fullest:
                    fullest, start, fullest_bundles = epsilon, first, window
            at_one = totals.at_one(fullest_bundles, measure) if fullest == math.inf else None
            complete = examined == len(windows)
            uses.append(
                Spent(budget=budget, measure=measure, epsilon=fullest, at_one=at_one, start=start, complete=complete)
            )
    return uses


def _fullest(listed: list[tuple[int | None, Counter[Bundle]]]) -> list[tuple[int | None, Counter[Bundle]]]:
    """Leave out the windows that hold no more than a neighbour does: they add up to no more (data processing)."""
    kept: list[tuple[int | None, Counter[Bundle]]] = []
    for start, window in listed:
        while kept and kept[-1][1] <= window:
            kept.pop()
        if not kept or not window <= kept[-1][1]:
            kept.append((start, window))
    return kept


def how_many_more(totals: LedgerTotals, unit: str, part: str) -> int | None:
    """Return how many more releases like one, each about a period of its own, all budgets of the whole history allow.

    At most `MAX_FURTHER_RELEASES`; None where there is no budget of the whole history. `part`: the sha256 of the
    release's part.
    """
    budgets = [budget for budget in totals.terms.budgets if budget.window_days is None]
    if not budgets:
        return None
    bundles = totals.account.bundles(unit)

    def allowed(more: int) -> bool:
        return totals.all_within(bundles + Counter({Bundle.of("alone", {part: 1}): more}), budgets)

    # Bisection: fewer of the same releases tell no more, so all numbers below one that fits do.
    return bisect_left(range(1, MAX_FURTHER_RELEASES + 1), True, key=lambda more: not allowed(more))


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
