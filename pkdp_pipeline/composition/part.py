"""Part and Total: what a composition rule is given, and what it returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.leakage import Leakage
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism
from pkdp_pipeline.theorems import THEOREMS, Applied, Bound, Protects, WorstCase

__all__ = ["Part", "Total", "has_cells", "hides_presence", "what_is_hidden"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What rules need to know of one release, or of a total, and how often it occurs.

    Parameters
    ----------
    times : int
    aim : {"presence", "value"}
        What the whole is to protect.
    protects : {"presence", "value"}
        What the part itself protects.
    certified : tuple of Applied
        Its bounds that rest on the attacker model.
    against_anyone : WorstCase or None
    leakage : tuple of Leakage
        What is known, or leaks, beside it.
    knows_total : bool
        Whether it was certified against attackers who know how many people are present.
    mechanism : Count, Histogram or None
        None for a total.
    context : Context or None
        The publication of a release, where it is known.
    inside : tuple of Part
        The parts of a total.
    """

    times: int
    aim: Protects
    protects: Protects
    certified: tuple[Applied, ...]
    against_anyone: WorstCase | None
    leakage: tuple[Leakage, ...]
    knows_total: bool
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
        return any(not leak.is_private and not leak.is_shared("presence") for leak in self.leakage)

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The publications that are known, at any depth."""
        own = () if self.context is None else (self.context,)
        return (*own, *(context for part in self.inside for context in part.contexts))


def what_is_hidden(parts: Sequence[Part], where: str) -> str:
    """Return what the parts hide about a person in one of them, and what they do not, as one sentence."""
    if not has_cells(parts):
        return f"Protects whether a person is counted in {where}."
    if parts and parts[0].aim == "presence":
        return (
            f"Protects whether a person is included in {where}; it does not protect which cell she is in once that is "
            "known."
        )
    if hides_presence(parts):
        return f"Protects whether a person is included, and in which cell, in {where}."
    return f"Protects in which cell a person is, in {where}; it does not protect whether she is included."


def has_cells(parts: Iterable[Part]) -> bool:
    """Return whether any of the parts is a histogram, at any depth: of counts nothing tells a cell."""
    return any(isinstance(part.mechanism, Histogram) or has_cells(part.inside) for part in parts)


def hides_presence(parts: Sequence[Part]) -> bool:
    """Return whether parts that protect the value hide presence too.

    Theorem B and noise do, in every part, where nothing leaks that tells presence.
    """
    if any(part.leaks_presence for part in parts):
        return False
    return all(THEOREMS[applied.bound.theorem].hides_presence_too for part in parts for applied in part.partial)


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What several parts add up to.

    Parameters
    ----------
    rule : str
        Key of the rule.
    partial : tuple of Applied
        Bounds on the whole that rest on the attacker model.
    worst : WorstCase or None
    protection : str
        What the total protects and what it does not, as one sentence.
    reason : str
        Why there is no partial-knowledge total; empty where there is one.
    """

    rule: str
    partial: tuple[Applied, ...]
    worst: WorstCase | None
    protection: str
    reason: str = ""
