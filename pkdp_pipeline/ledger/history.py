"""History: the charged releases of a data set in order, what any of them add up to, and what is left of budgets."""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

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
