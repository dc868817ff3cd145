"""Part and Total: what a composition rule is given, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass

from pkdp_pipeline.certificate import Certificate
from pkdp_pipeline.profiles import Applied, Bound, Protects, WorstCase

__all__ = ["Part", "Total"]

_PRESENCE_TOO = {"histogram_value"}
"""Value theorems whose dominating pair dominates presence as well; theorem C and exact options do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One certificate and how often it occurs.

    Parameters
    ----------
    certificate : Certificate
    times : int
    aim : {"presence", "value"}
        What the total is to protect.
    """

    certificate: Certificate
    times: int
    aim: Protects

    @property
    def partial(self) -> tuple[Applied, ...]:
        """The bounds that rest on the attacker model and protect what the total is to protect."""
        bounds = self.certificate.partial_bounds
        if self.aim == self.certificate.protects:
            return bounds
        # A value guarantee is used for presence only where its proof gives that too.
        return tuple(applied for applied in bounds if applied.bound.theorem in _PRESENCE_TOO)

    @property
    def worst(self) -> WorstCase | None:
        """The bound against any attacker; noise that hides two cells hides one."""
        return self.certificate.worst_case_bound

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """All bounds that hold for this part alone; the smallest of them holds."""
        worst = self.worst
        return (*(applied.bound for applied in self.partial), *(() if worst is None else (worst,)))


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
