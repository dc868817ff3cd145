"""Part and Total: what a composition rule is given, and what it returns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.leakage import Leakage
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, Sum
from pkdp_pipeline.model.wording import Clause, Protection
from pkdp_pipeline.theorems import THEOREMS, Applied, Bound, Protects, WorstCase
from pkdp_pipeline.theorems.theorems import emptied_by


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
        last=last,
    )


def in_words(
    parts: Sequence[Part], *, counted: str, included: str, both: str, cell: Clause, last: Clause | None = None
) -> Protection:
    """Return what fits parts without cells, parts that hide presence, both, or the cell alone; and what that shows."""
    if not has_cells(parts):
        return Protection(counted, last=last)
    if parts[0].aim == "presence":
        return Protection(included, _ADDS if has_cells(parts, Sum) else _WHICH, last=last)
    hides, shown = cell
    return Protection(both, last=last) if hides_presence(parts) else Protection(hides, (shown, shown), last=last)


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
