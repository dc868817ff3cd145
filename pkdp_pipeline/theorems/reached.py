"""Attackers tried on a count or on two cells: the attained side where no theorem names the worst one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from pkdp_pipeline.theorems.bound import Bound
from pkdp_pipeline.theorems.boxed_threshold import BoxedThreshold
from pkdp_pipeline.theorems.channel import Channel, bernstein
from pkdp_pipeline.theorems.noisy_between import lives_of, noise_of
from pkdp_pipeline.theorems.numerics import TINY, Array, Whole, binomial_weights

_MAX_PEOPLE = 600
"""Attackers with more unknown people than this are not tried."""

_MAX_CLIMB_PEOPLE = 4000
"""Nor are those near the worst one of a theorem."""

_GRID_SIZE = 48
"""This many numbers of people are tried, in geometric progression."""

_SHARES = (1.0, 0.5, 0.0)
"""Of the people who are tried, these shares are counted with the larger probability."""

_CUTOFF_EXPONENT = 80.0
"""Noise beyond e^-80 is left out of what is seen, which errs downward."""

_ERROR = 1e-11
"""Relative error of every chance, with room."""

_UNDERFLOW_MASS = 1e6 * TINY
"""The most that may have been added to a chance against underflow."""


_MAX_PEOPLE_IN_CELLS = 400
"""Of two cells, attackers with more unknown people than this are not tried."""

_CELL_GRID_SIZE = 10
"""Of two cells, this many numbers of people are tried."""


def _gain(first: Array, second: Array, epsilon: float) -> Array:
    """Return at most the divergences of rows of two laws of which every chance is known with an error of `_ERROR`."""
    growth = math.exp(min(epsilon, 700.0)) * (1.0 + _ERROR)
    gains = np.maximum(0.0, first * (1.0 - _ERROR) - growth * second * (1.0 + _ERROR) - _UNDERFLOW_MASS * growth)
    total: Array = gains.sum(axis=1) * (1.0 - _ERROR)
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Attained(Bound):
    """The divergence attained by attackers that are tried; nothing is certified."""

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`: as near as two large chances are to each other, and no nearer."""
        attained, _ = self.bracket(epsilons)
        apart = self._apart(epsilons, attained)
        share = np.divide(apart, attained, out=np.ones(len(epsilons)), where=attained > apart)
        return np.stack([share, np.zeros(len(epsilons))])

    def _apart(self, epsilons: Array, attained: Array) -> Array:
        """Return how far apart what is attained on two processors may be."""
        apart: Array = 4.0 * _ERROR * (1.0 + np.exp(np.minimum(epsilons, 700.0)))
        return apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached(Attained):
    """Attackers who know nobody, with people of at most two kinds, on a count; nothing is certified.

    Parameters
    ----------
    p_min, p_max : float
        Every unknown person is counted with one of these.
    unknown : int
        At least this many people are unknown.
    cap : int, optional
        At most this many are.
    noise : float, optional
        ε0 of two-sided geometric noise.

    Notes
    -----
    *Guarantee*: the attained side is at or below the divergence of one declared attacker; the certified side is 1.
    *Rounding*: downward, by 1e-11 of each chance. *Source*: lemma 2 of `docs/mathematics.md`: these are vertices.
    """

    p_min: float
    p_max: float
    unknown: int = 0
    cap: int | None = None
    k: int | None = None
    k_complement: int | None = None
    noise: float | None = None
    release_threshold: int | None = None

    def _apart(self, epsilons: Array, attained: Array) -> Array:
        apart, boxed = Attained._apart(self, epsilons, attained), self._boxed()
        # A climb may end elsewhere on another processor, and nowhere above what is certified.
        return apart if boxed is None else np.maximum(apart, boxed.certified(epsilons) - attained)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        attained = np.zeros(len(epsilons))
        laws, boxed = _laws(self), self._boxed()
        if boxed is not None and boxed.unknown > _MAX_CLIMB_PEOPLE:
            boxed = None  # nobody climbs from so many people
        crowds = [] if boxed is None else boxed.worst_crowds(epsilons)[::-1].T.tolist()
        for row, epsilon in enumerate(epsilons.tolist()):
            if laws is not None:
                attained[row] = _gains(laws, epsilon).max()
            if crowds:
                attained[row] = max(attained[row], self._climbed(tuple(crowds[row]), epsilon))
        return attained, np.ones(len(epsilons))

    def _boxed(self) -> BoxedThreshold | None:
        """Return the bound on two thresholds in a box, whose worst attacker is near the worst of all."""
        if self.noise is not None or not 0.0 < self.p_min <= self.p_max < 1.0:
            return None
        if min(self.k or 0, self.k_complement or 0, self.unknown + 1) < 2:
            return None
        least = max(self.unknown, (self.k or 0) + (self.k_complement or 0) - 1)
        return BoxedThreshold(
            theorem=self.theorem,
            unknown=least,
            p_min=self.p_min,
            p_max=self.p_max,
            k=self.k or 0,
            k_complement=self.k_complement,
            cap=self.cap,
        )

    def _climbed(self, crowd: tuple[int, int], epsilon: float) -> float:
        """Return what the best attacker near one reaches, by steps that are halved where none of them helps."""
        if sum(crowd) > _MAX_CLIMB_PEOPLE:
            return 0.0
        best, step, most = 0.0, 1 + sum(crowd) // 8, min(_MAX_CLIMB_PEOPLE, math.inf if self.cap is None else self.cap)
        # Pattern search: move to the best neighbour, or halve the step. Every crowd tried is declared, so its δ is
        # attained and a local optimum errs downward only.
        while step:
            moves = {(crowd[0] + step * down, crowd[1] + step * up) for down, up in product((-1, 0, 1), repeat=2)}
            neighbours = sorted(sizes for sizes in moves if min(sizes) >= 0 and self.unknown <= sum(sizes) <= most)
            if not neighbours:
                break
            gains = _gains(_outcome_laws(self, neighbours), epsilon)
            if gains.max() > best:
                best, crowd = float(gains.max()), neighbours[int(gains.argmax())]
            else:
                step //= 2
        return best

    def crowds(self) -> list[tuple[int, int]]:
        """Return the (number at `p_min`, number at `p_max`) that are tried."""
        # Fewer people than a threshold needs are never told apart.
        least = max(1, self.unknown, (self.k or 0) - 1, (self.k_complement or 0) - 1)
        enough = 2.0 * max(self.k or 0, self.release_threshold or 0) / max(self.p_max, 1e-9)
        enough = max(enough, 2.0 * (self.k_complement or 0) / max(1.0 - self.p_min, 1e-9), 2.0 * least)
        most = math.floor(min(_MAX_PEOPLE, enough, math.inf if self.cap is None else self.cap))
        if most < least:
            return []
        numbers = {round(least * (most / least) ** (step / (_GRID_SIZE - 1))) for step in range(_GRID_SIZE)}
        return sorted({(m - (high := round(share * m)), high) for m in numbers for share in _SHARES})


def _gains(laws: tuple[Array, Array], epsilon: float) -> Array:
    """Return the larger divergence of every crowd, never above it."""
    return np.maximum(*(_gain(*pair, epsilon) for pair in (laws, laws[::-1])))


@lru_cache(maxsize=32)
def _laws(bound: Reached) -> tuple[Array, Array] | None:
    """Return what is seen of all crowds that are tried."""
    crowds = bound.crowds()
    return _outcome_laws(bound, crowds) if crowds else None


def _outcome_laws(bound: Reached, crowds: list[tuple[int, int]]) -> tuple[Array, Array]:
    """Return what is seen in the target's two lives; a row for each crowd."""
    size = max(map(sum, crowds)) + 2
    counts, chances = np.arange(size), np.zeros((len(crowds), size))
    for row, (low, high) in enumerate(crowds):
        chances[row, : low + high + 1] = np.convolve(
            binomial_weights(low, bound.p_min, 0, low), binomial_weights(high, bound.p_max, 0, high)
        )
    not_counted = np.array([[sum(crowd) + 1] for crowd in crowds]) - counts
    shows = (counts >= (bound.k or 0)) & (not_counted >= (bound.k_complement or -size))
    lives = np.roll(chances, 1, axis=1), chances
    hidden, shown = [(law * ~shows).sum(axis=1, keepdims=True) for law in lives], [law * shows for law in lives]
    if bound.noise is not None:
        reach = math.ceil(min(4000.0, _CUTOFF_EXPONENT / bound.noise))
        noised = _noised(counts, bound.noise, bound.release_threshold, reach, size + reach)
        shown = [law @ noised for law in shown]
        # Nobody sees why a count is suppressed.
        hidden, shown = (
            [mass + law[:, -1:] for mass, law in zip(hidden, shown, strict=True)],
            [law[:, :-1] for law in shown],
        )
    present, absent = (np.hstack(pair) for pair in zip(shown, hidden, strict=True))
    return present, absent


def _noised(counts: Whole, noise: float, release: int | None, reach: int, most: int) -> Array:
    """Return what is published of each count with noise: values from -`reach` to `most`, then "suppressed"."""
    values = np.arange(-reach if release is None else max(-reach, release), most)
    with np.errstate(over="ignore"):
        shown = np.exp(-noise * np.abs(counts[:, None] - values)) * (-math.expm1(-noise) / (1.0 + math.exp(-noise)))
    hidden = np.zeros(len(counts))
    if release is not None:
        hidden = Channel(0, release, noise, 0.5, 0.5).below((release - counts).astype(float))
    return np.hstack([shown, hidden[:, None]])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedBetween(Attained):
    """Attackers on two noised cells between which everybody whom they do not know tosses a coin.

    Parameters
    ----------
    p : float
        The chance of the coins for the one cell, or for the other; at least 1/2.
    noise : float
        ε0 of two-sided geometric noise in each cell.
    cap : int, optional
        At most this many people are unknown.
    unknown : int
        At least this many people are unknown, and all of them are coins.
    known : int
        So many people are controlled, in either cell.

    Notes
    -----
    *Guarantee*: the attained side is at or below the divergence of one declared attacker; the certified side is 1.
    *Rounding*: downward, by 1e-11 of each chance. *Source*: section 6 of
    `docs/mathematics.md`, "Two noisy looks": given x people in the one cell both noises are independent.
    """

    p: float
    noise: float
    k: int | None = None
    release_threshold: int | None = None
    cap: int | None = None
    unknown: int = 0
    known: int = 0

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        return np.array(_attained_by_cells(self, tuple(epsilons.tolist()))), np.ones(len(epsilons))

    def crowds(self) -> list[int]:
        """Return the numbers of people that are tried."""
        least = max(1, self.unknown, (self.k or 0) - 1 - self.known)
        most = min(_MAX_PEOPLE_IN_CELLS, 3 * max(self.k or 0, self.release_threshold or 0, least))
        most = most if self.cap is None else min(most, self.cap)
        if most < least:
            return []
        return sorted(
            {round(least * (most / least) ** (step / (_CELL_GRID_SIZE - 1))) for step in range(_CELL_GRID_SIZE)}
        )

    def laws(self, people: int, known: int = 0) -> tuple[Array, Array]:
        """Return what two cells show in the target's two lives, this many people being coins.

        `known`: how many of those who are controlled are in the first cell.
        """
        law = binomial_weights(people, self.p, 0, people)[None]
        return lives_of(law, self.noise, self.k or 0, self.release_threshold, (known, self.known - known))


@lru_cache(maxsize=64)
def _attained_by_cells(bound: ReachedBetween, epsilons: tuple[float, ...]) -> tuple[float, ...]:
    """Return what is attained at these ε; a certificate asks for the same ones again."""
    attained = np.zeros(len(epsilons))
    for people, known in product(bound.crowds(), sorted({0, bound.known // 2, bound.known})):
        lives = bound.laws(people, known)
        for pair in (lives, lives[::-1]):
            attained = np.maximum(attained, [float(_gain(*pair, epsilon)[0]) for epsilon in epsilons])
    return tuple(attained.tolist())


_WINDOW_EXPONENT, _SEEN_IN = 40.0, 128
"""Numbers of people less likely than e^-40 are left out; the other cells' sum is looked at in so many intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedBesideOthers(Attained):
    """People who may be in other noised cells as well, whose sum hides how many may be in the target's.

    Parameters
    ----------
    p_min : float
        Everybody is in each cell that the target may be in with this probability.
    p : float, optional
        Everybody is in the target's cell, absent, or, as likely as `p` allows, in one of the others, each as likely as
        the next; None for a target in one of two cells, beside whom nobody is absent.
    others : int
        How many other cells there are.
    unknown : int
        So many people are unknown.
    noise : float
        ε0 of two-sided geometric noise in each cell.

    Notes
    -----
    *Guarantee*: the attained side is at or below the divergence of one declared attacker; the certified side is 1.
    *Rounding*: downward, by 1e-11 of each chance; what is left out is taken off. *Source*: `docs/mathematics.md`,
    section 6, "Two noisy looks", and theorem F.
    """

    p_min: float
    unknown: int
    noise: float
    others: int
    p: float | None = None

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        attained = np.zeros(len(epsilons))
        looks = noise_of(self.others, self.noise) if self.others and 0 < self.unknown <= _MAX_PEOPLE_IN_CELLS else None
        if looks is not None:
            present, absent = _beside_others(self)
            for first, second in ((present, absent), (absent, present)):
                gains = np.array([float(_gain(first, second, epsilon)[0]) for epsilon in epsilons.tolist()])
                lost = 8.0 * math.exp(-_WINDOW_EXPONENT) * (1.0 + np.exp(np.minimum(epsilons, 700.0)))
                attained = np.maximum(attained, gains - lost)
        return attained, np.ones(len(epsilons))

    @property
    def elsewhere(self) -> float:
        """The probability of the other cells together."""
        if self.p is None:
            return 1.0 - 2.0 * self.p_min
        return (1.0 - self.p_min) * self.others * self.p / (1.0 - self.p + self.others * self.p)


def _window(people: int, chance: float) -> tuple[int, int]:
    """Return numbers outside of which, on either side, less than `_WINDOW_EXPONENT` allows are (Bernstein's)."""
    spread = bernstein(people * chance * (1.0 - chance), _WINDOW_EXPONENT)
    return max(0, math.floor(people * chance - spread)), min(people, math.ceil(people * chance + spread))


def _look(low: int, high: int, noise: float) -> Array:
    """Return what is shown of counts from `low` to `high` with noise; values beyond them all are merged."""
    counts = np.arange(low, high + 1)
    with np.errstate(under="ignore"):
        chances = np.exp(-noise * np.abs(counts[:, None] - counts)) * math.tanh(0.5 * noise)
    chances[:, [0, -1]] /= -math.expm1(-noise)
    result: Array = chances
    return result


@lru_cache(maxsize=16)
def _beside_others(bound: ReachedBesideOthers) -> tuple[Array, Array]:
    """Return what all cells show in the target's two lives, a row each."""
    people, noise = bound.unknown, bound.noise
    least, most = _window(people, bound.elsewhere)
    weights = binomial_weights(people, bound.elsewhere, least, most)
    # How many are elsewhere, as the sum of their cells shows it. What is seen is looked at in intervals, the first and
    # the last of which have the tails.
    looks = noise_of(bound.others, noise)
    assert looks is not None
    size = most - least + len(looks)
    inner = min(len(looks) // 2, math.ceil(4.0 * math.sqrt(2.0 * bound.others) / noise))
    start, end = len(looks) // 2 - inner, size - len(looks) // 2 + inner
    edges = np.unique(np.linspace(start, end, min(_SEEN_IN, end - start), endpoint=False).astype(int))
    edges[0] = 0
    shown = np.zeros((most - least + 1, len(edges)))
    for row, chances in enumerate(shown):
        values = np.zeros(size)
        values[row : row + len(looks)] = looks
        chances[:] = np.add.reduceat(values, edges)
    shown *= weights[:, None]
    low, high = _window(people, bound.p_min)
    chance = 0.5 if bound.p is None else bound.p_min / (1.0 - bound.elsewhere)
    laws = np.zeros((most - least + 1, high - low + 1))
    for row, count in enumerate(range(people - least, people - most - 1, -1)):
        start, end = low, min(high, count)
        if start <= end:
            laws[row, : end - start + 1] = binomial_weights(count, chance, start, end)
    look = _look(low, high + 1, noise)
    with_target, without = look[1:], look[:-1]
    if bound.p is not None:
        return (with_target.T @ laws.T @ shown).reshape(1, -1), (without.T @ laws.T @ shown).reshape(1, -1)
    # Of two cells the law of both counts, for each interval in which the number elsewhere is seen.
    both = np.zeros((shown.shape[1], high - low + 1, high - low + 1))
    for row, count in enumerate(range(people - least, people - most - 1, -1)):
        first = np.arange(max(low, count - high), min(high, count - low) + 1)
        both[:, first - low, count - first - low] = laws[row, first - low] * shown[row][:, None]
    lives = (with_target.T @ both @ without, without.T @ both @ with_target)
    return lives[0].reshape(1, -1), lives[1].reshape(1, -1)
