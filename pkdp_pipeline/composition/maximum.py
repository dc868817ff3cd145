"""Maximum: the guarantee of parts of which only one concerns any person's change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from pkdp_pipeline.theorems import Applied, Bound, WorstCase
from pkdp_pipeline.theorems.bound import Guarantee
from pkdp_pipeline.theorems.rounding import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Maximum(Bound):
    """The pointwise largest of several profiles, each the smallest of the bounds that hold for one part.

    *Guarantee*: never below the divergence of any single part. The attained side is 0: see `BestAttack`.
    *Rounding*: none of its own.
    """

    parts: tuple[tuple[Bound, ...], ...]

    @property
    def slack(self) -> float:
        """Return the largest slack of a part's bounds."""
        return max((bound.slack for bounds in self.parts for bound in bounds), default=0.0)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        whole = [Guarantee(bounds) for bounds in self.parts]
        share = _of_largest([(one.delta(epsilons), one.rounding(epsilons)) for one in whole], epsilons, -1.0)
        return np.stack([share, share])

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        nothing = np.zeros(len(epsilons))
        return nothing, reduce(np.maximum, (Guarantee(bounds).delta(epsilons) for bounds in self.parts), nothing)

    def smallest_epsilon(self, target: float) -> float:
        """Return the largest of the parts' ε, at which every part has reached the target."""
        found = max((Guarantee(bounds).epsilon(target) for bounds in self.parts), default=0.0)
        if found == np.inf or float(self.certified(np.array([found]))[0]) <= target:
            return found
        # A profile that rises again by a hair has left its target: look at the whole.
        return Bound.smallest_epsilon(self, target)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstMaximum(WorstCase):
    """The pointwise largest of several worst-case guarantees."""

    parts: tuple[WorstCase, ...]

    @property
    def parameters(self) -> tuple[float, float]:
        """Return the largest ε and the largest δ of the parts."""
        pairs = [part.parameters for part in self.parts]
        return max((pair[0] for pair in pairs), default=0.0), max((pair[1] for pair in pairs), default=0.0)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        sides = [(part.bracket(epsilons), part.rounding(epsilons)) for part in self.parts]
        attained = _of_largest([(side[0], shares[0]) for side, shares in sides], epsilons, 1.0)
        certified = _of_largest([(side[1], shares[1]) for side, shares in sides], epsilons, -1.0)
        return np.stack([attained, certified])

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        sides = (np.stack(part.bracket(epsilons)) for part in self.parts)
        attained, certified = reduce(np.maximum, sides, np.zeros((2, len(epsilons))))
        return attained, certified


@dataclass(frozen=True, slots=True, kw_only=True)
class BestAttack(Bound):
    """Attacks on single parts, each of which is an attack on the whole; it certifies nothing."""

    attacks: tuple[Bound, ...]

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        sides = [(attack.bracket(epsilons)[0], attack.rounding(epsilons)[0]) for attack in self.attacks]
        share = _of_largest(sides, epsilons, 1.0)
        return np.stack([share, share])

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return what the best of the attacks attains, and 1."""
        attained = (attack.bracket(epsilons)[0] for attack in self.attacks)
        return reduce(np.maximum, attained, np.zeros(len(epsilons))), np.ones(len(epsilons))


def best_attack(theorem: str, applied: Iterable[Applied]) -> BestAttack | None:
    """Return the best of the attacks known on single parts; None where none is known."""
    attacks = tuple(dict.fromkeys(one.attack for one in applied if one.attack is not None))
    return BestAttack(theorem=theorem, attacks=attacks) if attacks else None


def _of_largest(parts: Iterable[tuple[Array, Array]], epsilons: Array, sign: float) -> Array:
    """Return the rounding of the largest of several values that have one each, upwards (1) or downwards (-1).

    A small value may be rounded by a large share of itself; that does not show beside a large one.
    """
    largest, moved = np.zeros(len(epsilons)), np.zeros(len(epsilons))
    for values, shares in parts:
        largest = np.maximum(largest, values)
        moved = np.maximum(moved, values * (1.0 + sign * shares))
    share: Array = sign * (moved / np.where(largest > 0.0, largest, np.inf) - 1.0)
    return np.where(largest > 0.0, share, 0.0).clip(0.0, 1.0)
