"""Bound: one theorem at work, a certified δ(ε); Guarantee: the smallest of several; and the way back from δ to ε."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import TypeVar, overload

import flint
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability
from pkdp_pipeline.model.mechanisms import Protects
from pkdp_pipeline.theorems.losses import Losses
from pkdp_pipeline.theorems.rounding import Array, ball_above, evaluated

_Attacker = TypeVar("_Attacker")

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
        values = np.ones(points.size)
        for bound in self.bounds:
            values = np.fmin(values, bound.certified(points.ravel()))
        return float(values[0]) if scalar else values.reshape(points.shape)

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
        target = probability("delta", delta)
        # The smallest of several bounds reaches the target where the first of them does.
        return 0.0 if target >= 1.0 else min((_crossing(bound, target) for bound in self.bounds), default=math.inf)


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


def chord(epsilon: float, start: tuple[float, float], end: tuple[float, float]) -> float:
    """Return at least the height at `epsilon` of the chord in e^ε between two points (ε, δ), ends included.

    Every profile is convex in e^ε, so one that is at most these δ at the ends lies below the chord.
    *Guarantee*: never below such a profile. *Rounding*: up.
    """
    (first, above), (last, below) = start, end
    with flint.ctx.workprec(192):
        share = (flint.arb(epsilon) - first).expm1() / (flint.arb(math.nextafter(last, math.inf)) - first).expm1()
        return min(1.0, ball_above(above + share * (flint.arb(below) - above)))


_MAX_EPSILON = 2.0**20
_MAX_EVALUATIONS = 36
_RELATIVE_TOLERANCE = 1e-12
_INITIAL_BRACKET_FACTOR = 1.05


def smallest_epsilon(
    delta_at: Callable[[float], float], target: float, slack: float = 0.0, start: float | None = None
) -> float:
    """Return an ε at which ``delta_at(ε) <= target``, as small as can be found, or `math.inf`.

    Parameters
    ----------
    delta_at : callable
        A certified, essentially non-increasing δ(ε).
    target : float
        In [0, 1].
    slack : float
        Relative steps `delta_at` may have; finer differences are not chased.
    start : float, optional
        Where the crossing is expected, above 0.

    Returns
    -------
    float
        An ε that was evaluated, so ``delta_at(result) <= target`` holds as stated; `math.inf` when even
        ε = 2^20 does not reach the target.

    Notes
    -----
    *Rounding*: up; within one part in 1e12 of a crossing where `delta_at` is continuous.
    """
    if delta_at(0.0) <= target:
        return 0.0
    # The bracket grows by this factor to the left, and to the right by it or twice; from a guess by larger and larger.
    above, below, factor = (0.0, 1.0, 8.0) if start is None else (0.0, start, _INITIAL_BRACKET_FACTOR)
    value_above, value_below = math.inf, delta_at(below)
    if value_below <= target:
        # Walk down while the target still holds, so that tiny ε keep their relative accuracy.
        while below > 1e-9:
            probe = below / factor
            value = delta_at(probe)
            if not value <= target:
                above, value_above = probe, value
                break
            below, value_below, factor = probe, value, min(8.0, factor**2)
    else:
        while not value_below <= target:
            if below >= 8.0 and not delta_at(_MAX_EPSILON) <= target:
                return math.inf
            above, value_above = below, value_below
            below, factor = min(below * min(factor, 2.0), _MAX_EPSILON), min(8.0, factor**2)
            value_below = delta_at(below)
    # Shrink the bracket by the Illinois variant of false position on log δ, every third step a bisection. The right end
    # was evaluated and reaches the target, so what is returned is certified whatever the shape of `delta_at`.
    close = max(_RELATIVE_TOLERANCE, 1e-2 * slack)
    weight_above, weight_below = 1.0, 1.0
    last_side = 0
    for step in range(_MAX_EVALUATIONS):
        if below - above <= close * below:
            break
        probe = 0.5 * (above + below)
        if step % 3 != 2 and value_below > 0.0 and value_above < math.inf and target > 0.0:
            high = weight_above * math.log(value_above / target)
            low = weight_below * math.log(target / value_below) if value_below < target else 0.0
            guess = (above * low + below * high) / (high + low) if high + low > 0.0 else probe
            # Step a little past the estimate: it lands on the right side and closes the bracket from there.
            guess += 0.25 * close * below
            if above < guess < below:
                probe = guess
        value = delta_at(probe)
        if value <= target:
            below, value_below = probe, value
            weight_above, weight_below = (0.5 * weight_above if last_side == 1 else 1.0), 1.0
            last_side = 1
        else:
            above, value_above = probe, value
            weight_below, weight_above = (0.5 * weight_below if last_side == -1 else 1.0), 1.0
            last_side = -1
    return below


_MAX_ROUNDS = 6
"""Most ε at which an inversion looks at all attackers."""

_TARGET_TOLERANCE = 2e-4
"""An inversion ends this close below the δ asked for, relatively."""


def invert(
    target: float,
    attackers: Iterable[_Attacker],
    beside: Callable[[list[_Attacker], float], float],
    search: Callable[[float], tuple[float, Iterable[_Attacker]]],
    *,
    share: float = 1.0,
    rounds: int = _MAX_ROUNDS,
    least: float = math.inf,
) -> float:
    """Return an ε whose certified δ is at most `target`, about as small as can be found, where a search is dear.

    Parameters
    ----------
    target : float
        In [0, 1].
    attackers : iterable
        Some of those that are declared, to begin with.
    beside : callable
        Takes attackers and an ε; returns the largest δ of these, which is cheap.
    search : callable
        Takes an ε; returns the certified δ of all attackers, and the worst of them.
    share : float
        The certified δ is expected to exceed that of the worst attackers by this factor.
    rounds : int
        Most ε that are searched.
    least : float
        An ε already known to be certified.

    Returns
    -------
    float
        An ε at which `search` certified `target`, or `least`.

    Notes
    -----
    Cutting planes: the δ of the worst attackers so far, raised by the last search's gap, is inverted; the search at
    that ε certifies it or adds the attackers that are worst there.
    """
    cuts, guess, margin = list(attackers), None if math.isinf(least) else least, _TARGET_TOLERANCE

    def expected(epsilon: float) -> float:
        return min(1.0, share * beside(cuts, epsilon))

    for step in range(rounds):
        # The first guess need not be close.
        epsilon = smallest_epsilon(expected, target, 1.0 if guess is None else _TARGET_TOLERANCE, guess)
        if epsilon >= least * (1.0 - (0.25 if step else 1e-3) * _TARGET_TOLERANCE):
            break  # what is left to gain is not worth a search
        certain, worst = search(epsilon)
        least, guess = epsilon if certain <= target else least, epsilon or None
        cuts = list(worst) or cuts if step == 0 else [*cuts, *worst]
        of_cuts = beside(cuts, epsilon)
        if (1.0 - 3.0 * _TARGET_TOLERANCE) * target <= certain <= target:
            break
        share = max(1.0, certain / of_cuts if of_cuts else share) * (1.0 + margin)
        # How far a search exceeds the worst attackers differs a little from ε to ε.
        margin *= 1.0 if certain <= target else 2.0
    return least


def least_whole(holds: Callable[[int], bool], start: int, most: int) -> int | None:
    """Return the smallest n in [start, most] for which a monotone `holds` is true, or None."""
    if holds(start):
        return start
    # Exponential search, then bisection: `holds` is false at `below` and true at `above` throughout.
    below, step = start, 1
    while not holds(above := min(most, below + step)):
        if above == most:
            return None
        below, step = above, step * 2
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above


def first_offset(holds: Callable[[Array], NDArray[np.bool_]], below: Array, above: Array, guess: Array) -> Array:
    """Return, row by row, the first offset in ``(below, above]`` from which `holds`; at `above` it does.

    Exponential search away from `guess`, then bisection, for all rows at once; every offset up to `low` fails and
    `high` holds, as long as `holds` is monotone.
    """
    low, high, step = below.copy(), above.copy(), np.ones(len(below))
    start = np.clip(guess, below + 1.0, above)
    while np.any(high - low > 1.0):
        halves = np.floor((low + high) / 2.0)
        onward, backward = np.minimum(low + step, high - 1.0), np.maximum(high - step, low + 1.0)
        fresh = (low == below) & (high == above)
        probe = np.where(
            low == below, np.where(high == above, start, backward), np.where(high == above, onward, halves)
        )
        probe = np.clip(probe, low + 1.0, np.maximum(low + 1.0, high - 1.0))
        reached = holds(probe)
        unsettled = high - low > 1.0
        high = np.where(unsettled & reached, probe, high)
        low = np.where(unsettled & ~reached, probe, low)
        step = np.where(fresh, 1.0, 2.0 * step)
    return high
