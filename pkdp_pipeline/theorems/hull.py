"""The pair of laws whose profile is the convex hull of certified points: it dominates whatever these hold for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pkdp_pipeline.theorems.bound import DROPPED_MASS, GRID_ROUNDING, Atoms, Bound, Guarantee, Losses, coarsest
from pkdp_pipeline.theorems.numerics import TINY, UNIT, Array
from pkdp_pipeline.theorems.thresholding import Threshold
from pkdp_pipeline.theorems.waiting_pair import Pair, mixed, product_above, waiting_pair

MAX_FINITE_LOSS = 400.0
"""Larger losses are counted as infinite where profiles are compared."""

_NEGLIGIBLE_DELTA = 1e-60
"""A profile that has fallen below this is cut off there; what is left is counted as disclosed at every ε."""


_MIN_RELATIVE_DELTA = 1e-30
"""Below this the rounding of a profile is counted absolutely."""

_TRIVIAL_DELTA = 0.99
"""A profile that is above this at ε = 0 may begin to fall only farther out, as that of a shifted bound does."""


def where_it_falls(bounds: tuple[Bound, ...]) -> tuple[float, float]:
    """Return an ε before which the profile says next to nothing, and a length on the axis of ε on which it falls.

    The length is the standard deviation of the normal loss with the same δ(0), where that tells one from another.
    """
    profile = Guarantee(bounds)
    start = float(profile.delta(np.zeros(1))[0])
    # erf(x) is about sqrt(1 - exp(-4x²/π)).
    scale = min(40.0, max(1e-7, 2.0 * math.sqrt(-0.5 * math.pi * math.log1p(-min(start * start, 1.0 - 1e-16)))))
    if start < _TRIVIAL_DELTA:
        return 0.0, scale
    first, half = profile.epsilon(_TRIVIAL_DELTA), profile.epsilon(0.5)
    if half == math.inf:
        return 0.0, scale
    return first, min(scale, max(1e-7, half - first, 1e-3 * half))


@lru_cache(maxsize=64)
def hull_atoms(bounds: tuple[Bound, ...], reverse: tuple[Bound, ...] | None = None) -> Atoms:
    """Return losses, P-masses and infinite mass of a pair dominating the smallest of `bounds`.

    `reverse`: bounds in the other order; without them `bounds` hold in both, and the pair is its own mirror image.

    Notes
    -----
    At the corners ``a < b < c`` of the lower hull the slope in ``z = e^ε`` changes at b by ``w/z_b`` with
    ``w = (δ_a - δ_b)/(1 - e^{a-b}) - (δ_b - δ_c)/(e^{c-b} - 1)``. These masses are differences; so the profile they
    give is summed up again, from positive terms, and all masses are raised until it is at or above every corner.
    Beyond the last point nothing is assumed: what is left there counts as infinite loss. *Guarantee*: the profile
    is nowhere below the true one, in either order. *Rounding*: up.
    """
    forward = _sampled(bounds)
    backward = forward if reverse is None else _sampled(reverse)
    # At ε = 0 both orders are one. Rounding, too, must not leave Q the larger mass: more of P has the least loss.
    forward[1][0] = backward[1][0] = max(forward[1][0], backward[1][0])
    points, masses, infinite = _positive_losses(*forward)
    against, weights, other = _positive_losses(*backward)
    more = other - infinite - (weights * np.expm1(-against)).sum() + (masses * np.expm1(-points)).sum()
    masses[0] += max(0.0, float(more)) / -math.expm1(-points[0])
    negative = weights * np.exp(-against) * (1.0 + (8.0 + 4.0 * against) * UNIT)
    used = math.fsum(masses.tolist()) + math.fsum(negative.tolist()) + infinite
    middle = max(0.0, 1.0 - used + 16.0 * UNIT)
    losses = np.concatenate([-against[::-1], [0.0], points])
    return losses, np.concatenate([negative[::-1], [middle], masses]), infinite


def _positive_losses(points: Array, values: Array) -> Atoms:
    """Return the positive losses of a pair with a profile at or above these values, their masses, and what is left."""
    corners = _lower_hull(points, values)
    points, values = points[corners], values[corners]
    falls, gaps = values[:-1] - values[1:], np.diff(points)
    masses = np.zeros(len(points))
    masses[1:] = falls / -np.expm1(-gaps)
    masses[:-1] -= falls / np.expm1(gaps)
    # Differences of nearly equal slopes may come out negative: they are cut at 0, and the check below makes up for it.
    masses, points = np.maximum(0.0, masses[1:]), points[1:]
    infinite = float(values[-1])
    knots = np.concatenate([[0.0], points])
    kernel = np.maximum(0.0, -np.expm1(np.minimum(0.0, knots[:, None] - points[None, :])))
    again = (kernel * masses).sum(axis=1) + infinite
    with np.errstate(invalid="ignore"):
        missing = np.where(values > 0.0, values / again, 1.0)
    scale = max(1.0, float(missing.max(initial=1.0))) * (1.0 + (4.0 * len(points) + 64.0) * UNIT)
    return points, masses * scale, min(1.0, infinite * scale)


def hull_pair(bound: Bound) -> Pair:
    """Return the same of one bound as a pair whose atoms have increasing ratios; it is its own mirror image."""
    losses, weights, infinite = hull_atoms((bound,))
    return Pair(
        weight=weights[::-1],
        ratio=np.exp(-losses[::-1]),
        budget=64.0 * UNIT,
        first_only=infinite,
        second_only=infinite,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLosses(Losses):
    """Losses of the pair, its own mirror image, whose profile is the convex hull of certified points.

    `bounds`: all of them hold in both orders, so the smallest does, and so does its lower convex hull in ``e^ε``: the
    true profile is convex and below all points. With no bound everything is disclosed.
    """

    bounds: tuple[Bound, ...]

    def atoms(self) -> Atoms:
        """See `Losses`."""
        return hull_atoms(self.bounds)

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`."""
        losses, weights, infinite = hull_atoms(self.bounds)
        points = np.unique(np.abs(losses))
        shares = coarsest(self.bounds, points)[1]
        values = (np.maximum(0.0, -np.expm1(points[:, None] - losses)) * weights).sum(axis=1) + infinite
        # Far in the tail a share may be large, and is one of next to nothing: it is counted absolutely.
        relative = values > _MIN_RELATIVE_DELTA
        masses, left = float(shares[relative].max(initial=0.0)), float((shares * values)[~relative].max(initial=0.0))
        return masses + GRID_ROUNDING, 64.0 * UNIT, left + 2.0 * DROPPED_MASS


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoCells(Bound):
    """Profile against learning which of two cells a person is in, where absence is possible.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    presence : Threshold
        That of one cell; all of its people known are controlled.
    told_apart : float
        At or above the chance with which a suppressed cell would have to tell that its count is below k, for the rest
        of what suppresses it to be the likelier the larger the count.
    added : float
        The same, where the cell would have to tell that nobody is in it: it counts as disclosed.

    Notes
    -----
    *Guarantee*: never below the divergence of any declared attacker: given what is shown of the one cell, the others
    in it differ by at most one between the two lives, as in theorem B, so the two cells' pairs in opposite orders
    dominate. The hull of `presence` stands for either, mixed with theorem A's where a cell tells more. *Rounding*: up.
    *Source*: `docs/mathematics.md`, section 6, "Value through absence".
    """

    presence: Threshold
    told_apart: float = 0.0
    added: float = 0.0

    @property
    def slack(self) -> float:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return self.presence.slack

    @property
    def kinks(self) -> tuple[float, ...]:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return tuple(2.0 * kink for kink in self.presence.kinks)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`: that of the hull's points."""
        return np.full((2, len(epsilons)), 1e-6)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        certified = self.certified(epsilons)
        # The attacker may look at the one cell only.
        return np.minimum(self.presence.bracket(epsilons)[0], certified), certified

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `bracket` alone."""
        first = second = hull_pair(self.presence)
        if self.told_apart:
            below = waiting_pair(self.presence.k - 1, self.presence.p, self.presence.cap, _NEGLIGIBLE_DELTA)
            chances = (1.0 - self.told_apart) * (1.0 + 4.0 * UNIT) + TINY, self.told_apart
            second = mixed(chances, (first, below), 0.0)
        both = np.array([product_above(first, second, epsilon) for epsilon in epsilons.tolist()])
        return both if self.added == 0.0 else np.minimum(1.0, np.nextafter(both + self.added, np.inf))


def told_apart(noise: float, above: int) -> float:
    """Return at least ``1 - F(s)²/F(s-1)``, F(s) = P[Z < s], for a release threshold s above what no noise shows.

    The rest is at least F(s), or 0.
    """
    alpha = math.exp(-noise)
    if above <= 0:
        rest = alpha**-above / (1.0 + alpha)
        return 1.0 if rest * -math.expm1(-noise) < 1e-11 else 1.0 - rest + 1e-12
    if alpha < 0.5 - 1e-9:
        return 0.0
    tail = alpha ** (above - 1) / (1.0 + alpha)
    share = max(0.0, 2.0 * alpha - 1.0 - tail * alpha**2) / (1.0 - tail)
    # Of a chance that may have lost bits to underflow no float is known to be between both bounds.
    return tail * (share * (1.0 + 1e-9) + 1e-12) if tail > 1e-290 else 1.0


def _sampled(bounds: tuple[Bound, ...]) -> tuple[Array, Array]:
    """Return points that are dense where the profile bends, and its values there, not increasing."""
    first, scale = where_it_falls(bounds)
    most = math.ceil(math.log2(MAX_FINITE_LOSS / scale)) + 1
    ladder = np.minimum(MAX_FINITE_LOSS, first + scale * 2.0 ** np.arange(1, most + 1))
    deltas = np.minimum.accumulate(Guarantee(bounds).delta(ladder))
    ended = (deltas <= _NEGLIGIBLE_DELTA) | (deltas <= float(deltas[-1]) * (1.0 + 1e-9))
    end = float(ladder[int(ended.argmax())])
    dense = first + scale * np.concatenate([np.arange(0.0, 6.0, 0.08), np.arange(6.0, 12.0, 0.25)])
    decades = math.ceil(math.log(max(1.0, (end - first) / scale / 12.0)) / math.log(1.1)) + 1
    sparse = first + scale * 12.0 * 1.1 ** np.arange(0, max(1, decades))
    kinks = [kink for bound in bounds for kink in bound.kinks]
    points = np.unique(np.concatenate([[0.0], dense, sparse, kinks, [end]]))
    points = points[points <= end]
    return points, np.minimum.accumulate(np.minimum(1.0, Guarantee(bounds).delta(points)))


def _lower_hull(points: Array, values: Array) -> list[int]:
    """Return the corners of the largest convex function of ``e^ε`` below the points."""
    # Monotone chain: a corner is dropped where the slope in e^ε does not increase, so the chain stays convex.
    corners: list[int] = []
    for index in range(len(points)):
        while len(corners) >= 2:
            a, b = corners[-2], corners[-1]
            before = (values[a] - values[b]) / -math.expm1(points[a] - points[b])
            after = (values[b] - values[index]) / math.expm1(points[index] - points[b])
            if before > after:
                break
            corners.pop()
        corners.append(index)
    return corners
