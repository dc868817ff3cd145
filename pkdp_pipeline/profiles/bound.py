"""Bound: one theorem at work, a certified δ(ε) with the lower bound an attacker attains."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pkdp_pipeline.profiles.rounding import Array

__all__ = ["Bound", "Certified", "Invertible", "WorstCase"]


class Bound(Protocol):
    """A privacy profile ``δ(ε)`` bracketed from both sides."""

    @property
    def theorem(self) -> str:
        """Return the key of the theorem, as in `pkdp_pipeline.profiles.theorems.THEOREMS`."""

    @property
    def slack(self) -> float:
        """Return about how far apart the sides may be, relatively, for reasons of effort."""

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays for `epsilons` (shape (n,), each at least 0 and finite).

        *Guarantee*: the supremum of the hockey-stick divergence over the declared attackers lies at or
        between the two. *Rounding*: outward.
        """


@runtime_checkable
class Certified(Protocol):
    """A bound whose certified side costs less than both sides do."""

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `Bound.bracket` alone."""


@runtime_checkable
class Invertible(Protocol):
    """A bound that knows a quicker way back from δ to ε than a search over `Bound.bracket`."""

    def smallest_epsilon(self, target: float) -> float:
        """Return an ε whose certified δ, as `Bound.bracket` gives it, is at most `target`; or `math.inf`."""


@runtime_checkable
class WorstCase(Bound, Protocol):
    """A bound that holds against any attacker, known by one pair (ε, δ)."""

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε, δ) at which the guarantee holds for any attacker, both rounded up."""
