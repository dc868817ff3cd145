"""Bound: one theorem at work, a certified δ(ε) with the lower bound an attacker attains."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import numpy as np

from pkdp_pipeline.theorems.rounding import Array, evaluated

__all__ = ["Bound", "Certified", "Invertible", "WithoutSlack", "WorstCase", "coarsest"]


class Bound(Protocol):
    """A privacy profile ``δ(ε)`` bracketed from both sides."""

    @property
    def theorem(self) -> str:
        """Return the key of the theorem, as in `pkdp_pipeline.theorems.theorems.THEOREMS`."""

    @property
    def slack(self) -> float:
        """Return about how far apart the sides may be, relatively, for reasons of effort."""

    def rounding(self, epsilons: Array) -> Array:
        """Return how far the attained and the certified side may be rounded, each as a share of itself; shape (2, n).

        *Guarantee*: what is evaluated lies between a side and this share of it further inward, on every processor. So
        on another one the attained side is no more than this share higher, the certified side no more than this share
        lower. It follows from the error budget of the evaluation: `docs/numerics.md`, section 6.
        """

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays for `epsilons` (shape (n,), each at least 0 and finite).

        *Guarantee*: the supremum of the hockey-stick divergence over the declared attackers lies at or
        between the two. *Rounding*: outward.
        """


class WithoutSlack:
    """What a bound has whose sides are evaluated within the usual error budget, and not searched for."""

    __slots__ = ()

    @property
    def slack(self) -> float:
        """Return 0: nothing is left open to save effort."""
        return 0.0

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return evaluated(epsilons)


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


class _Rounded(Protocol):
    def rounding(self, epsilons: Array) -> Array: ...


def coarsest(bounds: Iterable[_Rounded], epsilons: Array) -> Array:
    """Return the largest roundings of several bounds, shape (2, n); 0 for none."""
    each = (bound.rounding(epsilons) for bound in bounds)
    return functools.reduce(np.maximum, each, np.zeros((2, len(epsilons))))
