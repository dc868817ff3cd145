"""Theorem: the record of all that is said of it; Bound: one at work, a certified δ(ε); Guarantee: the least of many.

Losses: a bound that can be composed gives its privacy losses, logarithms of the likelihood ratio of the two lives.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real
from typing import Any, Literal, overload

import flint
import numpy as np
from numpy.typing import ArrayLike

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism, Protects
from pkdp_pipeline.model.wording import probability
from pkdp_pipeline.theorems.numerics import UNIT, Array, ball_above, evaluated, smallest_epsilon
from pkdp_pipeline.theorems.waiting_pair import Pair, averaged_pair, waiting_pair
from pkdp_pipeline.theorems.words import UNCHECKED, Formal

Order = Literal["right", "left"]

DROPPED_MASS = 1e-90
"""Mass of a waiting time that may be left out of its atoms and counted as disclosed."""

_DROPPED_FOR_SPREAD = 1e-20
"""The same where only the width of the law is asked for."""

_MAX_ATOMS = 3e6
"""Most atoms of a pair that is an average over known people."""

_NEGLIGIBLE_MASS = 1e-100
"""Losses with less mass do not count for the width of a law."""

GRID_ROUNDING = 1e-10
"""The relative rounding that products, envelopes and hulls on a grid of some thousand cells add to the masses'."""

Atoms = tuple[Array, Array, float]
"""Losses, their masses, and the mass of infinite ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The privacy loss of one release in one order."""

    def atoms(self) -> Atoms:
        """Return atoms whose profile is nowhere below that of the release."""
        raise NotImplementedError

    def spread(self) -> float:
        """Return about the standard deviation of the loss; it decides the grid, not the truth of what follows."""
        return _deviation(*self.atoms()[:2])

    def rounding(self) -> tuple[float, float, float]:
        """Return how far the law on a grid may be rounded: its masses, relatively, its losses, and its profile."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLosses(Losses):
    """Losses of theorem A's waiting times.

    Parameters
    ----------
    k : int
        The threshold; people who are controlled are taken off.
    known : int
        People the attacker merely knows; both laws show how many of them count.
    order : str
        ``"right"``: `k` − 1 against `k` successes; ``"left"``: the other way round.
    """

    k: int
    p: float
    cap: int | None = None
    known: int = 0
    order: Order = "right"

    def atoms(self) -> Atoms:
        """See `Losses`."""
        ratios, weights, infinite = _ratios(self.pair(), self.order)
        return -np.log(ratios), weights, infinite

    def pair(self) -> Pair:
        """Return the two laws, in the order ``"right"``."""
        return _pair(self.k, self.p, self.cap, self.known)

    def spread(self) -> float:
        """See `Losses`; of a pair without its far tails, or as of a normal law, within 4 %.

        That spares a year of different releases half of its pairs (benchmarks/bench_composition.py).
        """
        apart = (self.k - 1) * (1.0 - self.p)
        if self.known:
            return Losses.spread(self)
        if self.cap is None and apart > 16.0:
            return 1.0 / math.sqrt(apart)
        ratios, weights, _ = _ratios(waiting_pair(self.k - 1, self.p, self.cap, _DROPPED_FOR_SPREAD), self.order)
        return _deviation(-np.log(ratios), weights)

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`."""
        budget = self.pair().budget + 64.0 * UNIT
        return 4.0 * budget, 4.0 * budget, 2.0 * DROPPED_MASS


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductLosses(Losses):
    """Losses of several independent factors shown together."""

    members: tuple[Losses, ...]

    def spread(self) -> float:
        """See `Losses`."""
        return math.sqrt(sum(member.spread() ** 2 for member in self.members))

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`: they add up."""
        masses, losses, left = map(math.fsum, zip(*(member.rounding() for member in self.members), strict=True))
        return masses + GRID_ROUNDING, losses, left


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeLosses(Losses):
    """Losses of the pair, its own mirror image, that dominates several pairs in both orders."""

    members: tuple[Losses, ...]

    def spread(self) -> float:
        """See `Losses`."""
        return max(member.spread() for member in self.members)

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`: that of the one that is rounded most."""
        masses, losses, left = map(max, zip(*(member.rounding() for member in self.members), strict=True))
        return masses + GRID_ROUNDING, losses, left


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLosses(Losses):
    """Losses of two-sided geometric noise: sums of as many ±ε0 as cells change; the pair is its own mirror image.

    Parameters
    ----------
    noise : float
        ε0.
    cells : int
        How many cells change.
    """

    noise: float
    cells: int

    def rounding(self) -> tuple[float, float, float]:
        """See `Losses`."""
        return 64.0 * UNIT, 64.0 * UNIT, 0.0

    def atoms(self) -> Atoms:
        """See `Losses`."""
        with flint.ctx.workprec(128):
            alpha = (-flint.arb(self.noise)).exp()
            balls = (
                math.comb(self.cells, gains) * alpha ** (self.cells - gains) / (1 + alpha) ** self.cells
                for gains in range(self.cells + 1)
            )
            weights = np.array([ball_above(ball) for ball in balls])
        steps = np.arange(-self.cells, self.cells + 1, 2, dtype=np.float64)
        return steps * self.noise, weights, 0.0


def waiting_losses(k: int, p: float, cap: int | None, known: int = 0) -> tuple[Losses, Losses]:
    """Return the losses of theorem A in either order."""
    right = PairLosses(k=k, p=p, cap=cap, known=known)
    return right, replace(right, order="left")


def _ratios(pair: Pair, order: Order) -> Atoms:
    """Return ratios ``e^{-loss}``, increasing, none above the exact ones, with masses and infinite mass."""
    finite = pair.ratio > 0.0
    lowered = 1.0 - 1.1 * pair.budget - 4.0 * UNIT
    ratio, weight = pair.ratio[finite], pair.weight[finite] * (1.0 + 1.1 * pair.budget)
    if order == "right":
        infinite = pair.first_only + float(pair.weight[~finite].sum()) * (1.0 + 1.1 * pair.budget + 4.0 * UNIT)
        return ratio * lowered, weight, min(1.0, infinite * (1.0 + 4.0 * UNIT))
    masses = weight * ratio * (1.0 + 1.1 * pair.budget + 4.0 * UNIT)
    return (lowered / ratio)[::-1], masses[::-1], min(1.0, pair.second_only)


@lru_cache(maxsize=8)
def _pair(k: int, p: float, cap: int | None, known: int) -> Pair:
    if known == 0:
        return waiting_pair(k - 1, p, cap, DROPPED_MASS)
    if p in (0.0, 1.0):
        return waiting_pair(k - 1 - (known if p == 1.0 else 0), p, cap, DROPPED_MASS)
    atoms = 40.0 * math.sqrt(k) / max(p, 1e-9)
    return averaged_pair(k, p, cap, (known, p), DROPPED_MASS, int(min(400.0, max(16.0, _MAX_ATOMS / atoms))))


def _deviation(losses: Array, weights: Array) -> float:
    """Return the standard deviation, or a hundredth of the range where nearly all mass is at one loss."""
    losses, weights = losses[weights > _NEGLIGIBLE_MASS], weights[weights > _NEGLIGIBLE_MASS]
    if len(losses) == 0:
        return 0.0
    # Not as inner products: threads of a BLAS cost more here than they save.
    total = float(weights.sum())
    mean = float((weights * losses).sum()) / total
    deviation = math.sqrt(max(0.0, float((weights * (losses - mean) ** 2).sum()) / total))
    deviation = max(deviation, 1e-2 * float(losses.max() - losses.min()))
    # A single loss deviates by its rounding only.
    return deviation if deviation > 1e-10 * abs(mean) else 0.0


Knowledge = Literal["known", "p_max", "p_max_between", "sampled", "unknown"]
"""The attacker's fields on which a theorem's number can rest."""

PAPER = 'D. Desfontaines, E. Mohammadi, E. Krahmer and D. Basin, "Differential privacy with partial knowledge"'
LEAKAGE_PAPER = 'K. Ligett, C. Peale and O. Reingold, "Bounded-leakage differential privacy", FORC 2020'

MAX_NOISE, MIN_NOISE = 700.0, 1e-290
"""Noise of an ε0 beyond these is left out where it is not alone: what holds without it holds with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A privacy profile ``δ(ε)`` bracketed from both sides.

    `theorem`: the key of the statement that uses it, as in `pkdp_pipeline.theorems.theorems.THEOREMS`.
    """

    theorem: str

    @property
    def slack(self) -> float:
        """Return about how far apart the sides may be, relatively, for reasons of effort; 0 if nothing is left open."""
        return 0.0

    @property
    def kinks(self) -> tuple[float, ...]:
        """Return the ε at which the profile bends more than its fall from ε = 0 tells."""
        return ()

    def rounding(self, epsilons: Array) -> Array:
        """Return how far the attained and the certified side may be rounded, each as a share of itself; shape (2, n).

        *Guarantee*: what is evaluated lies between a side and this share of it further inward, on every processor. So
        on another one the attained side is no more than this share higher, the certified side no more than this share
        lower. It follows from the error budget of the evaluation: `docs/numerics.md`, section 6.
        """
        return evaluated(epsilons)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays for `epsilons` (shape (n,), each at least 0 and finite).

        *Guarantee*: the supremum of the hockey-stick divergence over the declared attackers lies at or
        between the two. *Rounding*: outward.
        """
        raise NotImplementedError

    def losses(self, protects: Protects) -> tuple[Losses, ...]:
        """Return the losses of a dominating pair, also in the other order where it is not its own mirror image.

        None where nothing but the profile is known: then its hull is such a pair.
        """
        return ()

    @property
    def quick(self) -> Bound:
        """Return a bound on the same release of which many ε are found quickly; it may be less close."""
        return self

    def certified(self, epsilons: Array) -> Array:
        """Return the certified side of `bracket` alone, which may cost less."""
        return self.bracket(epsilons)[1]

    def smallest_epsilon(self, target: float) -> float:
        """Return an ε whose certified δ is at most `target`, as small as can be found; `math.inf` if there is none."""
        return smallest_epsilon(lambda epsilon: float(self.certified(np.array([epsilon]))[0]), target, self.slack)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase(Bound):
    """A bound that holds against any attacker, known by one pair (ε, δ)."""

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε, δ) at which the guarantee holds for any attacker, both rounded up."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Bound):
    """A profile that follows from another one."""

    base: Bound

    @property
    def slack(self) -> float:
        """Return the slack of the bound it follows from."""
        return self.base.slack

    def rounding(self, epsilons: Array) -> Array:
        """See `Bound`."""
        return self.base.rounding(epsilons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest(Bound):
    """The pointwise largest of several profiles.

    *Guarantee*: never below the divergence of any of them; what one of them attains is attained. *Rounding*: theirs.
    """

    parts: tuple[Bound, ...]

    @property
    def slack(self) -> float:
        """See `Bound`."""
        return max((part.slack for part in self.parts), default=0.0)

    def rounding(self, epsilons: Array) -> Array:
        """See `Bound`: a small value may be rounded by a large share of itself, which a large one does not show."""
        largest, moved, signs = *np.zeros((2, 2, len(epsilons))), np.array([[1.0], [-1.0]])
        for part in self.parts:
            values = np.stack(part.bracket(epsilons))
            largest = np.maximum(largest, values)
            moved = np.maximum(moved, values * (1.0 + signs * part.rounding(epsilons)))
        share: Array = signs * (moved / np.where(largest > 0.0, largest, np.inf) - 1.0)
        return np.where(largest > 0.0, share, 0.0).clip(0.0, 1.0)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """See `Bound`."""
        sides = (np.stack(part.bracket(epsilons)) for part in self.parts)
        attained, certified = functools.reduce(np.maximum, sides, np.zeros((2, len(epsilons))))
        return attained, certified

    def smallest_epsilon(self, target: float) -> float:
        """Return the largest of the parts' ε, at which each has reached the target."""
        epsilon = max((part.smallest_epsilon(target) for part in self.parts), default=0.0)
        if math.isinf(epsilon) or float(self.certified(np.array([epsilon]))[0]) <= target:
            return epsilon
        # A profile that rises again by a hair has left its target: look at the whole.
        return Bound.smallest_epsilon(self, target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One bound that holds; `attack`, where known, is a bound whose attained side is reached by this release."""

    bound: Bound
    attack: Bound | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """One result, and all that is said of it.

    Parameters
    ----------
    citation : str
        Where statement and proof can be read.
    formal : Formal, optional
        How far its proof is checked by machine; None where no part is.
    against : callable or None
        The attackers it covers, in words, for an attacker; None for a theorem that assumes nothing of the attacker.
    assumes : tuple of str
        Its other assumptions, as plain sentences.
    protection : str
        The extent of its protection, where that is not what the mechanism says.
    rests_on : tuple of {"known", "p_max", "p_max_between", "sampled", "unknown"}
        The fields that its number rests on. One that rests on ``unknown`` but not on ``known`` lets the attacker know
        everybody else.
    averages : bool
        Whether it averages over how many of the merely known people count.
    told_absent : bool
        Whether ``p_max`` is about somebody who is told that a person is absent or in a given cell.
    reveals_who : bool
        Whether its proof lets the attacker see who is present.
    hides_presence_too : bool
        Whether its dominating pair for the value dominates that for presence as well.
    beside_private : bool
        Whether it is left beside leakages that are themselves differentially private.
    noised_below : bool
        Whether it holds where counts below k are noised and all others exact.
    needs : tuple of str
        The mechanism's and the attacker's fields without which it has nothing to say beside a threshold k.
    is_rule : bool
        Whether it adds certificates up.
    about : (mechanism class, {"presence", "value"}), optional
        Its subject, where it rests on what the attacker does not know.
    rule : callable, optional
        When it holds: takes a mechanism of that class, an attacker and the keys of the theorems that are left for
        this attacker; returns the bound as `Applied`, or why there is none, in words; None where there is nothing to
        say.
    declared : callable, optional
        Returns the bound of a table with this number of declared cells: takes both.
    """

    key: str
    title: str
    citation: str
    formal: Formal | None = None
    against: Callable[[AttackerModel], str] | None = None
    assumes: tuple[str, ...] = ()
    protection: str = ""
    rests_on: tuple[Knowledge, ...] = ()
    averages: bool = False
    told_absent: bool = False
    reveals_who: bool = False
    hides_presence_too: bool = False
    beside_private: bool = False
    noised_below: bool = False
    needs: tuple[str, ...] = ()
    is_rule: bool = False
    about: tuple[type[Mechanism], Protects] | None = None
    rule: Callable[[Any, AttackerModel, frozenset[str]], Applied | str | None] | None = None
    declared: Callable[[Applied, int], Applied] | None = None

    @property
    def checked(self) -> tuple[str, ...]:
        """How far its proof is checked by machine, one plain sentence each."""
        return UNCHECKED if self.formal is None else self.formal.sentences()


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A certified δ(ε): the pointwise smallest of bounds that all hold; with no bound, no guarantee.

    Parameters
    ----------
    bounds : tuple of Bound
    parameters : (float, float) or None
        An (ε, δ) pair the guarantee is known by, where it has one.
    """

    bounds: tuple[Bound, ...]
    parameters: tuple[float, float] | None = None

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> Array: ...
    def delta(self, epsilon: ArrayLike) -> float | Array:
        """Return the certified δ at `epsilon`; 1.0 where there is no guarantee. See `Certificate.delta`."""
        points, scalar = epsilon_points(epsilon)
        if scalar:
            return min((_certified(bound, float(points[0])) for bound in self.bounds), default=1.0)
        values = np.ones(points.size)
        for bound in self.bounds:
            values = np.fmin(values, bound.certified(points.ravel()))
        return values.reshape(points.shape)

    def rounding(self, epsilons: Array) -> Array:
        """Return how far δ may be rounded at each ε, as a share of it; see `Bound`."""
        smallest, least = np.ones(len(epsilons)), np.ones(len(epsilons))
        for bound in self.bounds:
            value = bound.certified(epsilons)
            smallest = np.fmin(smallest, value)
            least = np.fmin(least, value * (1.0 - bound.rounding(epsilons)[1]))
        share: Array = 1.0 - least / np.where(smallest > 0.0, smallest, np.inf)
        return np.where(smallest > 0.0, share, 0.0).clip(0.0, 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the smallest certified ε at `delta`; `math.inf` where there is none."""
        target = probability("delta", delta, limit=True)
        # The smallest of several bounds reaches the target where the first of them does.
        return 0.0 if target >= 1.0 else min((_crossing(bound, target) for bound in self.bounds), default=math.inf)


@functools.lru_cache(maxsize=1024)
def _certified(bound: Bound, epsilon: float) -> float:
    """Return the certified δ of one bound at one ε, at most 1."""
    return float(np.fmin(1.0, bound.certified(np.array([epsilon]))[0]))


@functools.lru_cache(maxsize=1024)
def _crossing(bound: Bound, target: float) -> float:
    """Return the smallest ε found at which one bound is at most `target`; what runs every day asks again and again."""
    epsilon = bound.smallest_epsilon(target)
    # The end of the noise's curve is known exactly; a search only comes close to it.
    if isinstance(bound, WorstCase) and float(bound.certified(np.array([bound.parameters[0]]))[0]) <= target:
        epsilon = min(epsilon, bound.parameters[0])
    return epsilon


def epsilon_points(epsilon: ArrayLike) -> tuple[Array, bool]:
    """Return the ε asked for as an array, and whether it was a single number."""
    scalar = isinstance(epsilon, Real) or (isinstance(epsilon, np.ndarray) and epsilon.ndim == 0)
    try:
        given = np.asarray(float(epsilon)) if isinstance(epsilon, Real) else np.asarray(epsilon)
    except (TypeError, ValueError, OverflowError):
        given = np.asarray(None)
    if isinstance(epsilon, bool) or (given.dtype.kind not in "iuf" and given.size):
        raise ArgumentError("epsilon must be a number or an array of numbers, each at least 0 and finite.")
    points = np.atleast_1d(given.astype(np.float64))
    if not np.all(np.isfinite(points) & (points >= 0.0)):
        raise ArgumentError("epsilon must be at least 0 and finite.")
    return points, scalar


def bracketed(partial: tuple[Applied, ...], worst: WorstCase | None, epsilons: Array) -> tuple[Array, Array]:
    """Return (attained, certified) δ at each ε of a certificate with these bounds."""
    attained, certified = np.zeros(epsilons.size), np.ones(epsilons.size)
    # Noise alone is attacked as it is; beside a bound on the others' uncertainty only the attack on that counts.
    for applied in (*partial, *(() if worst is None else (Applied(bound=worst, attack=None if partial else worst),))):
        lower, upper = applied.bound.bracket(epsilons)
        certified = np.minimum(certified, upper)
        if applied.attack is not None:
            if applied.attack is not applied.bound:
                lower, _ = applied.attack.bracket(epsilons)
            attained = np.maximum(attained, lower)
    return np.minimum(attained, certified), certified


def coarsest(bounds: Iterable[Bound], epsilons: Array) -> Array:
    """Return the largest roundings of several bounds, shape (2, n); 0 for none."""
    each = (bound.rounding(epsilons) for bound in bounds)
    return functools.reduce(np.maximum, each, np.zeros((2, len(epsilons))))
