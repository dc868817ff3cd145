"""Part and Total: what a composition rule is given, and what it returns; and bounds that several rules make of parts.

These are the largest of several profiles, the sum of what noise promises in several releases, and chains of changes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import flint
import numpy as np

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import directions
from pkdp_pipeline.model.attacker import Leakage
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, Protects, Sum
from pkdp_pipeline.model.wording import Clause, Protection
from pkdp_pipeline.theorems.bound import Applied, Bound, Derived, Guarantee, Largest, WorstCase
from pkdp_pipeline.theorems.numerics import Array, ball_above, sum_above
from pkdp_pipeline.theorems.sampled import DRAWN_FOR_SURE
from pkdp_pipeline.theorems.theorems import THEOREMS, emptied_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The facts that rules need about one release, or a total, and how often it occurs.

    Parameters
    ----------
    aim : {"presence", "value"}
        The secret that the whole is to protect.
    protects : {"presence", "value"}
        The secret that the part itself protects.
    certified : tuple of Applied
        Its bounds that rest on the attacker model.
    leakage : tuple of Leakage
        Everything known, or leaked, beside it.
    totals_known : frozenset of frozenset of str
        The columns by which its attackers know exactly how many people are present; none: how many there are.
    mechanism : Count, Histogram, Sum or None
        None for a total.
    context : Context or None
        The publication of a release, where it is known.
    inside : tuple of Part
        The parts of a total; of a table with a mechanism, its certificates.
    """

    times: int
    aim: Protects
    protects: Protects
    certified: tuple[Applied, ...]
    against_anyone: WorstCase | None
    leakage: tuple[Leakage, ...]
    totals_known: frozenset[frozenset[str]]
    mechanism: Mechanism | None = None
    context: Context | None = None
    inside: tuple[Part, ...] = ()

    @property
    def partial(self) -> tuple[Applied, ...]:
        """The bounds that rest on the attacker model and protect what the total is to protect."""
        if self.aim == self.protects:
            return self.certified
        # A value guarantee is used for presence only where its proof gives that too.
        return tuple(applied for applied in self.certified if THEOREMS[applied.bound.theorem].hides_presence_too)

    @property
    def worst(self) -> WorstCase | None:
        """The bound against any attacker; noise that hides two cells hides one.

        Given a leakage that tells whether a person is there, it does not: there are no two such lives then.
        """
        return None if self.aim == "presence" and self.leaks_presence else self.against_anyone

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """All bounds that hold for this part alone; the smallest of them holds."""
        worst = self.worst
        return (*(applied.bound for applied in self.partial), *(() if worst is None else (worst,)))

    @property
    def leaks_presence(self) -> bool:
        """Whether something leaks that no two lives share which differ in presence."""
        return emptied_by(self.leakage, "presence") is not None

    @property
    def promises(self) -> tuple[Part, ...]:
        """A table's certificates, as one part each; the part itself where there is one."""
        return self.inside if self.inside and self.mechanism is not None else (self,)

    @property
    def samples(self) -> frozenset[bool]:
        """Whether what rests on an attacker model rests on who was drawn; both where only some of its parts do."""
        if self.inside and self.certified:
            return frozenset[bool]().union(*(part.samples for part in self.inside))
        return frozenset({any("sampled" in THEOREMS[entry.bound.theorem].rests_on for entry in self.certified)})

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The publications that are known, at any depth."""
        own = () if self.context is None else (self.context,)
        return (*own, *(context for part in self.inside for context in part.contexts))


_WHICH = "which cell she is in once that is known", "which cell a person is in once it is known that she is there"
_ADDS = (
    "what she adds, and to which cells, once that is known",
    "what a person adds, and to which cells, once it is known that she is there",
)


def what_is_hidden(parts: Sequence[Part], where: str, last: Clause | None = None) -> Protection:
    """Return what the parts hide about a person in one of them, and what they do not."""
    return in_words(
        parts,
        counted=f"whether a person is counted in {where}",
        included=f"whether a person is included in {where}",
        both=f"whether a person is included, and in which cell, in {where}",
        cell=(f"in which cell a person is, in {where}", "whether she is included"),
        drawn=f"whether a person is in the population of {where}",
        last=last,
    )


def in_words(
    parts: Sequence[Part],
    *,
    counted: str,
    included: str,
    both: str,
    cell: Clause,
    drawn: str,
    last: Clause | None = None,
) -> Protection:
    """Return what fits parts without cells, parts that hide presence, both, or the cell alone; and what that shows.

    `drawn`: of a sample, being in its population takes the place of being in what is published.
    """
    end, shows = "", tuple[Clause, ...]()
    if drawn and any(True in part.samples for part in parts):
        end, shows = ", from somebody who does not know who was drawn", (DRAWN_FOR_SURE,)
        counted, included, both = drawn, drawn, f"{drawn}, and in which cells"
    if not has_cells(parts):
        return Protection(counted + end, *shows, last=last)
    if parts[0].aim == "presence":
        return Protection(included + end, _ADDS if has_cells(parts, Sum) else _WHICH, *shows, last=last)
    hides, shown = cell
    if hides_presence(parts):
        return Protection(both + end, *shows, last=last)
    return Protection(hides + end, (shown, shown), *shows, last=last)


def has_cells(parts: Iterable[Part], kinds: Any = Histogram | Sum) -> bool:
    """Return whether any of the parts has cells, at any depth: of counts nothing tells a cell."""
    return any(isinstance(part.mechanism, kinds) or has_cells(part.inside, kinds) for part in parts)


def hides_presence(parts: Sequence[Part]) -> bool:
    """Return whether parts that protect the value hide presence too.

    Theorem B and noise do, in every part, where nothing leaks that tells presence.
    """
    if any(part.leaks_presence for part in parts):
        return False
    several = (applied for part in parts for promise in part.promises for applied in promise.partial)
    return all(THEOREMS[applied.bound.theorem].hides_presence_too for applied in several)


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The total of several parts.

    Parameters
    ----------
    rule : str
        Key of the rule.
    partial : tuple of Applied
        Bounds on the whole that rest on the attacker model.
    protection : str
        The extent of the total's protection, as one sentence.
    reason : str
        Why there is no partial-knowledge total; empty where there is one.
    """

    rule: str
    partial: tuple[Applied, ...]
    worst: WorstCase | None
    protection: str
    reason: str = ""


Series = list[tuple[tuple[Part, ...], int]]
"""The parts about one period, and how many such periods there are; all of them different ones."""

_CALENDAR = frozenset({"0000-00-00", "0000-W00", "0000-00", "0000-Q0", "0000-H0", "0000"})
"""Forms of periods of which two that differ share no day."""


def series_of(parts: Iterable[Part]) -> tuple[Series, list[Series]]:
    """Return parts in series of different periods: those of known periods and totals; every other release by itself.

    A period of one series may be any of another. So of every series as many periods concern a life as the life takes
    part in.
    """
    dated: list[tuple[frozenset[str], tuple[Part, ...]]] = []
    totals: Series = []
    loose: list[Series] = []
    for part in parts:
        periods, complete = _periods(part)
        if complete:
            dated.append((periods, (part,)))
        elif periods or part.mechanism is not None:
            loose.append([((replace(part, times=1),), part.times)])
        else:
            totals.append(((replace(part, times=1),), part.times))
    return [*((group, 1) for group in _overlapping(dated)), *totals], loose


def at_once(parts: tuple[Part, ...]) -> int:
    """Return how many releases one period may hold, where those that rest on an attacker model are of different ones.

    That is what evidence says by which they add up; only their own contexts can say otherwise.
    """
    known, loose = series_of(parts)
    alone = [bool(group[0].partial) for series in loose for group, _ in series]
    most = uncertain = int(any(alone))
    for group, _ in known:
        noised = sum(part.times for part in group if not part.partial)
        # A release without a period may be about the one of noised releases that have it.
        most = max(most, noised + max(sum(part.times for part in group) - noised, uncertain))
    return most + alone.count(False)


def rests_on_own_periods(parts: Iterable[Part]) -> bool:
    """Return whether parts are taken for parts about periods of their own, of which nothing else says so."""
    known, loose = series_of(parts)
    undated = [group for group, _ in known if not _periods(group[0])[1]]
    return bool(undated) or any(times > 1 for series in loose for _, times in series)


def _periods(part: Part) -> tuple[frozenset[str], bool]:
    """Return the periods that a part is known to be about, and whether there are no others."""
    if part.mechanism is not None:
        period = None if part.context is None else part.context.period
        return (frozenset(), False) if period is None else (frozenset({period}), True)
    inside = [_periods(inner) for inner in part.inside]
    union = frozenset().union(*(periods for periods, _ in inside))
    return union, bool(union) and all(complete for _, complete in inside)


def _overlapping(dated: list[tuple[frozenset[str], tuple[Part, ...]]]) -> list[tuple[Part, ...]]:
    """Return the parts whose periods may overlap, each leading to the next, as one group each."""
    shapes = {re.sub("[0-9]", "0", period) for periods, _ in dated for period in periods}
    if len(shapes) > 1 or not shapes <= _CALENDAR:
        return [tuple(part for _, group in dated for part in group)]
    groups: list[tuple[frozenset[str], tuple[Part, ...]]] = []
    # Connected components: a group that overlaps several of those before it unites them.
    for periods, group in dated:
        touching = [other for other in groups if other[0] & periods]
        groups = [other for other in groups if not other[0] & periods]
        touching.append((periods, group))
        together = frozenset().union(*(days for days, _ in touching))
        groups.append((together, tuple(part for _, members in touching for part in members)))
    return [group for _, group in groups]


_Part = TypeVar("_Part")

_MAX_CONVOLVED_EPSILON = 1e6
"""Totals of noise with larger ε are known by their sums only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest(Bound):
    """The pointwise smallest of the bounds that hold for one part. *Guarantee*, *Rounding*: theirs; 0 is attained."""

    bounds: tuple[Bound, ...]

    @property
    def slack(self) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return max((bound.slack for bound in self.bounds), default=0.0)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.tile(Guarantee(self.bounds).rounding(epsilons), (2, 1))

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        return np.zeros(len(epsilons)), Guarantee(self.bounds).delta(epsilons)

    def smallest_epsilon(self, target: float) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return Guarantee(self.bounds).epsilon(target)


def maximum(theorem: str, parts: Iterable[tuple[Bound, ...]]) -> Largest:
    """Return the pointwise largest of what holds for each of several parts."""
    several = tuple(Smallest(theorem=theorem, bounds=bounds) for bounds in dict.fromkeys(parts))
    return Largest(theorem=theorem, parts=several)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstMaximum(Largest, WorstCase):
    """The pointwise largest of several worst-case guarantees."""

    parts: tuple[WorstCase, ...]

    @property
    def parameters(self) -> tuple[float, float]:
        """Return the largest ε and the largest δ of the parts."""
        pairs = [part.parameters for part in self.parts]
        return max((pair[0] for pair in pairs), default=0.0), max((pair[1] for pair in pairs), default=0.0)


def best_attack(theorem: str, applied: Iterable[Applied]) -> Bound | None:
    """Return what the best of the attacks known on single parts attains, each an attack on the whole; None for none."""
    attacks = tuple(dict.fromkeys(entry.attack for entry in applied if entry.attack is not None))
    return Largest(theorem=theorem, parts=attacks) if attacks else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTotal(WorstCase):
    """Worst-case guarantees of several releases about the same people.

    Parameters
    ----------
    parts : tuple of (WorstCase, int)
        Different parts and how often each occurs.
    differing : int, optional
        Two lives differ in at most this many of them. Where that is so because nobody takes part in more than half as
        many, each part is all that is published about one period.

    Notes
    -----
    Two statements are combined. The sums of all ε and all δ hold however the releases were chosen, later ones
    after seeing earlier ones. The convolution of the losses is smaller; it holds when the parameters of the
    releases were fixed beforehand.

    *Guarantee*: never below the divergence of the whole. *Rounding*: up. *Source*: `docs/composition.md`, rule 6.
    """

    parts: tuple[tuple[WorstCase, int], ...]
    differing: int | None = None

    @property
    def releases(self) -> int:
        """How many releases can differ between two lives."""
        everything = sum(times for _, times in self.parts)
        return everything if self.differing is None else min(self.differing, everything)

    @property
    def parameters(self) -> tuple[float, float]:
        """Return the sum of the ε and of the δ of the worst releases, both rounded up."""
        pairs = [(bound.parameters, times) for bound, times in self.parts]
        epsilon, delta = (_worst([(pair[index], times) for pair, times in pairs], self.releases) for index in (0, 1))
        return epsilon, min(1.0, delta)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return _convolved(self).rounding(epsilons)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        attained, certified = _convolved(self).bracket(epsilons)
        return attained, self._summed(certified, epsilons)

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `bracket` alone."""
        return self._summed(_convolved(self).certified(epsilons), epsilons)

    def smallest_epsilon(self, target: float) -> float:
        """Return an ε whose certified δ is at most `target`; `math.inf` when there is none."""
        epsilon, delta = self.parameters
        smallest = _convolved(self).smallest_epsilon(target)
        return min(smallest, epsilon) if delta <= target else smallest

    def _summed(self, values: Array, epsilons: Array) -> Array:
        epsilon, delta = self.parameters
        return np.where(epsilons >= epsilon, np.minimum(values, delta), values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nothing(Bound):
    """A bound that says nothing."""

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        return np.zeros(len(epsilons)), np.ones(len(epsilons))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallerTotal(WorstCase):
    """The smaller of two profiles that both hold: of the few releases that differ, and of all of them.

    Releases that differ are sometimes replaced by larger ones, such as the largest of all. *Guarantee*: never below the
    divergence of the whole. *Rounding*: none of its own. *Source*: `docs/composition.md`, rules 6, 8 and 9.
    """

    few: WorstCase
    everything: NoiseTotal

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε, δ) of the one with the smaller ε."""
        return min(self.few.parameters, self.everything.parameters)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.maximum(self.few.rounding(epsilons), self.everything.rounding(epsilons))

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        certified = self.certified(epsilons)
        return np.minimum(self.few.bracket(epsilons)[0], certified), certified

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `bracket` alone."""
        return np.minimum(self.few.certified(epsilons), self.everything.certified(epsilons))

    def smallest_epsilon(self, target: float) -> float:
        """Return an ε whose certified δ is at most `target`; `math.inf` when there is none."""
        return min(self.few.smallest_epsilon(target), self.everything.smallest_epsilon(target))


def _worst(values: list[tuple[float, int]], most: int) -> float:
    """Return the sum of the `most` largest values, of which each occurs so often; rounded up."""
    taken = first_of(sorted(values, reverse=True), most)
    return sum_above([value for value, _ in taken], [times for _, times in taken])


def first_of(listed: Iterable[tuple[_Part, int]], most: int) -> list[tuple[_Part, int]]:
    """Return the first `most` of things that occur so often each, with how often each is taken."""
    taken = []
    for item, times in listed:
        taken.append((item, min(times, most)))
        most -= taken[-1][1]
    return [part for part in taken if part[1]]


@lru_cache(maxsize=64)
def _convolved(total: NoiseTotal) -> Bound:
    if total.parameters[0] > _MAX_CONVOLVED_EPSILON:
        # So little noise hides nothing that a convolution could show.
        return _Nothing(theorem=total.theorem)
    if len(total.parts) == 1 and total.releases == 1:
        return total.parts[0][0]
    if total.differing is None:
        parts = tuple((directions((bound,), "presence"), times) for bound, times in total.parts)
        return Convolved(theorem=total.theorem, parts=parts)
    # Two lives differ in few releases, each at most as telling as the worst one.
    bounds = tuple(bound for bound, _ in total.parts)
    worst = bounds[0] if len(bounds) == 1 else WorstMaximum(theorem=total.theorem, parts=bounds)
    return Convolved(theorem=total.theorem, parts=((directions((worst,), "presence"), total.releases),))


_STEP_GRID = np.concatenate([[0.0], np.geomspace(1e-3, 512.0, 200)])
"""Steps that are looked at below the one asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPrivacy(Derived):
    """The profile of lives that are `steps` single changes apart.

    Notes
    -----
    Steps of (ε, δ) each give ``(s ε, δ (e^{s ε} - 1)/(e^ε - 1))`` along a chain of s lives. *Guarantee*: never below
    the divergence of two lives whose chain consists of possible lives. *Rounding*: up. *Source*:
    `docs/composition.md`, rule 3.
    """

    steps: int

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return self.base.rounding(epsilons / self.steps)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        # A smaller ε in each step is safe, so the division rounds down, and so are all smaller steps: the factor
        # grows with the step, and the smallest value may lie before the end.
        single = epsilons if self.steps == 1 else np.nextafter(epsilons / self.steps, -np.inf).clip(0.0)
        least = np.minimum.accumulate(_on_steps(self))
        before = np.searchsorted(_STEP_GRID, single, side="right") - 1
        return np.zeros(len(epsilons)), np.minimum(self.at_steps(single), least[before])

    def at_steps(self, single: Array) -> Array:
        """Return δ of the whole chain when every step has these ε, rounded up."""
        pairs = zip(single.tolist(), Guarantee((self.base,)).delta(single).tolist(), strict=True)
        grown = np.array([min(1.0, value * self._factor(step)) if value > 0.0 else 0.0 for step, value in pairs])
        certified: Array = np.minimum(1.0, np.nextafter(grown, np.inf) * (grown > 0.0))
        return certified

    def _factor(self, epsilon: float) -> float:
        """Return ``Σ_{i<s} e^{iε}``, rounded up."""
        if epsilon == 0.0:
            return float(self.steps)
        if self.steps * epsilon > 690.0:
            return math.inf
        with flint.ctx.workprec(128):
            step = flint.arb(epsilon)
            return ball_above((self.steps * step).expm1() / step.expm1())


@lru_cache(maxsize=256)
def _on_steps(bound: GroupPrivacy) -> Array:
    return bound.at_steps(_STEP_GRID)
