"""Theorem I below ε0: the profile of counts that are exact from k on and noised below, over all numbers of people.

The worst attacker has some number of people at p, and nobody else counts. The gain of an event is a sequence in that
number whose second differences are at most p² times the kernel's; so between two numbers no event gains more than at
the better end, and an eighth of that times the squared distance.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pkdp_pipeline.theorems.noised_left import SLACK, log_factorials
from pkdp_pipeline.theorems.rounding import UNIT, Array, kept

_GRID_SIZE = 12
"""Below ε0 the profile is evaluated at this many ε, denser towards 0, and at as many e^ε at equal distances."""

_LAST_STEP = 0.01
"""The last of them is this share of the range of e^ε before ε0."""

_MAX_ENTRIES = 4e6
"""With larger laws only a chord from δ(0) = 1 is certified below ε0."""

_MAX_ROUNDS = 14
"""Most halvings of a block."""

_MAX_BLOCKS = 3_000
"""Most numbers of people looked at below ε0; what is left widens the bracket."""

_BATCH_SIZE = 128
"""This many numbers of people are looked at together."""

_LOST = 1e-13
"""At least what logarithms of sums and far tails leave out of a law that sums to 1."""

_MIN_NOISE = 1e-4
"""Of a smaller ε0 only a chord is certified below it."""


class Profile(NamedTuple):
    """Both sides of a profile at ``e^ε - 1`` = `points`."""

    points: Array
    attained: Array
    certified: Array


def grid_points(noise: float) -> Array:
    """Return the grid's ``e^ε - 1``, from 0 to a little before that of ε0."""
    end = math.expm1(noise)
    even = np.arange(_GRID_SIZE) / _GRID_SIZE
    points: Array = np.unique(np.concatenate([np.expm1(noise * even**1.5), end * even, [end * (1.0 - _LAST_STEP)]]))
    return points


@lru_cache(maxsize=256)
def profile_below(p: float, cap: int | None, noise: float, k: int, release: int | None, from_one: bool) -> Profile:
    """Return what the worst number of people attains and what is certified, at each point of the grid."""
    points = grid_points(noise)
    if noise < _MIN_NOISE:
        return Profile(*kept((points, np.zeros(len(points)), np.ones(len(points)))))
    if p == 1.0 or k <= 1:
        return Profile(*kept((points, np.ones(len(points)), np.ones(len(points)))))
    search = _Search(k, p, noise, release, from_one, points)
    attained, certified = search.sides(math.inf if cap is None else cap)
    return Profile(*kept((points, attained, certified)))


@lru_cache(maxsize=256)
def profile_with_bends(p: float, cap: int | None, noise: float, k: int, release: int | None, from_one: bool) -> Profile:
    """Return the same at more points: where the chords before and after an interval meet, the profile bends."""
    profile = profile_below(p, cap, noise, k, release, from_one)
    x, y = profile.points, profile.certified
    slopes = np.diff(y) / np.diff(x)
    before, after = slopes[:-2], slopes[2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        meets = x[1:-2] + (y[2:-1] - y[1:-2] - after * (x[2:-1] - x[1:-2])) / (before - after)
    inside = (meets > x[1:-2]) & (meets < x[2:-1])
    steps = np.where(inside, meets - x[1:-2], 0.0)
    chord, below = y[1:-2] + slopes[1:-1] * steps, y[1:-2] + before * steps
    bends = inside & (chord > below + 10.0 * SLACK * np.abs(chord))
    if noise < _MIN_NOISE or not bends.any():
        return profile
    added = _Search(k, p, noise, release, from_one, meets[bends])
    sides = added.sides(math.inf if cap is None else cap)
    order = np.argsort(np.concatenate([x, meets[bends]]), kind="stable")
    columns = zip(profile, (meets[bends], *sides), strict=True)
    return Profile(*kept(np.concatenate(pair)[order] for pair in columns))


class _Search:
    """The largest divergences over all numbers of people, at several ε below ε0."""

    def __init__(self, k: int, p: float, noise: float, release: int | None, from_one: bool, points: Array) -> None:
        self.k, self.p, self.release, self.from_one, self.points = k, p, release, from_one, points
        self.alpha = math.exp(-noise)
        silent = -math.expm1(-noise)
        self.scale = silent / (1.0 + self.alpha)
        self.bent = 2.0 * silent * self.scale * (1.0 + 1e-9)

    def sides(self, cap: float) -> tuple[Array, Array]:
        """Return (attained, certified) at each point."""
        mean = self.k + 6.0 * math.sqrt(self.k) + 20.0
        last, brackets = min(cap, math.ceil(mean / self.p)), None
        # More people than `last` tell no more than `beyond`: where that is too much still, more are looked at.
        beyond = np.ones(len(self.points))
        while brackets is None or not (beyond <= brackets[0].max(axis=1)).all():
            further = last if brackets is None else min(cap, math.ceil(1.5 * last))
            width = further * self.p + 12.0 * math.sqrt(further * self.p) + 60.0
            if width * max(4.0 * width, 200.0) > _MAX_ENTRIES or further > 2.0**50:
                break
            last = further
            mean = last * self.p
            # Steps of a quarter of a person counted, and wider ones where the law is wide.
            means = np.cumsum(np.maximum(0.25, 0.12 * np.sqrt(np.arange(0.0, mean + 1.0, 0.25))))
            people = np.unique(np.floor(np.concatenate([[0.0, last], np.minimum(last, means / self.p)])))
            brackets = self._divergences(people)
            beyond = np.zeros(len(self.points)) if last == cap else self._beyond(last)
        if brackets is None:
            return np.zeros(len(self.points)), np.ones(len(self.points))
        (least, most), top = brackets, beyond
        peaks = self._peaks(people)
        rounds = 0
        while True:
            best = least.max(axis=1)
            gap = np.diff(people)
            curve = np.minimum(2.0, self.bent + 10.0 * peaks[:-1]) * (self.p * gap) ** 2 / 8.0 * (1.0 + 1e-9)
            curve = np.where(gap > 1.0, curve, 0.0)
            ends = np.maximum(most[:, :-1], most[:, 1:])
            bounds = ends + (2.0 + self.points)[:, None] * curve
            open_ = ((bounds > best[:, None] * (1.0 + SLACK)) & (gap > 1.0)).any(axis=0)
            rounds += 1
            if not open_.any() or rounds > _MAX_ROUNDS or len(people) > _MAX_BLOCKS:
                break
            middle = np.floor(people[:-1][open_] + gap[open_] / 2.0)
            added = self._divergences(middle)
            people = np.concatenate([people, middle])
            least, most = (np.hstack(pair) for pair in zip((least, most), added, strict=True))
            peaks = np.concatenate([peaks, self._peaks(middle)])
            order = np.argsort(people, kind="stable")
            people, least, most, peaks = people[order], least[:, order], most[:, order], peaks[order]
        top = np.maximum(top, np.maximum(bounds.max(axis=1), most.max(axis=1)))
        return np.maximum(0.0, best), np.minimum(1.0, top * (1.0 + 1e-12))

    def _peaks(self, people: Array) -> Array:
        """Return at or above the largest probability of a count for this many people, or more."""
        mode = np.floor((people + 1.0) * self.p)
        with np.errstate(divide="ignore", invalid="ignore"):
            exponent = (
                log_factorials(people)
                - log_factorials(mode)
                - log_factorials(people - mode)
                + mode * math.log(self.p)
                + (people - mode) * math.log1p(-self.p)
            )
        peaks: Array = np.minimum(1.0, np.exp(exponent) * 1.001)
        return peaks

    def _divergences(self, people: Array) -> tuple[Array, Array]:
        """Return brackets of the divergence, the larger of both orders: points are rows, numbers of people columns."""
        parts = [self._some(people[start : start + _BATCH_SIZE]) for start in range(0, len(people), _BATCH_SIZE)]
        least, most = (np.hstack(part) for part in zip(*parts, strict=True))
        return least, most

    def _law(self, people: Array) -> tuple[Array, float, Array]:
        """Return the laws of so many coins, counts as rows, their relative budget, and at most what is left out."""
        k, p = self.k, self.p
        most = float(people.max())
        top = int(min(most, max(most * p + 12.0 * math.sqrt(most * p) + 60.0, k + 1.0)))
        counts = np.arange(1, top + 1, dtype=np.float64)[:, None]
        with np.errstate(divide="ignore"):
            steps = np.log(np.maximum(0.0, people - (counts - 1.0)) / counts) + math.log(p / (1.0 - p))
        logs = np.vstack([np.zeros(len(people)), np.cumsum(steps, axis=0)]) + people * math.log1p(-p)
        law = np.vstack([np.exp(logs), np.zeros((max(0, k + 1 - len(logs)), len(people)))])
        largest = float(np.abs(logs[np.isfinite(logs)]).max(initial=0.0))
        budget = (8.0 * (top + 2.0) * (largest + 2.0) + 64.0 * k + 4096.0) * UNIT
        rest = np.maximum(0.0, 1.0 - law.sum(axis=0)) * (top < most) + _LOST
        return law, budget, rest

    def _beyond(self, last: float) -> Array:
        """Return bounds on the divergence of so many people or more: the exact count's, and what is below k."""
        law, budget, rest = self._law(np.array([last]))
        before, law = np.append(0.0, law[:, 0]), np.append(law[:, 0], 0.0)
        growth = (1.0 + self.points)[:, None]
        more, less = 1.0 + budget, 1.0 - budget
        exact = [
            np.maximum(0.0, first * more - growth * less * second).sum(axis=1)
            for first, second in ((before, law), (law, before))
        ]
        result: Array = (np.maximum(*exact) + law[: self.k].sum() * more + rest) * (1.0 + 1e-12)
        return result

    def _some(self, people: Array) -> tuple[Array, Array]:
        k = self.k
        law, budget, rest = self._law(people)
        nobody = np.zeros((1, len(people)))
        absent, present = self._published(law[:k]), self._published(np.vstack([nobody, law[: k - 1]]))
        # Exact values are told apart from some count on, or up to it: P[S ≥ t] - e^ε P[S ≥ t+1] and the reverse.
        tails = np.vstack([np.cumsum(law[k - 1 :][::-1], axis=0)[::-1], nobody])
        growth = 1.0 + self.points
        least, most = np.zeros((2, len(growth), len(people)))
        column = np.arange(len(people))
        odds = self.p / (1.0 - self.p)
        for row, factor in enumerate(growth.tolist()):
            loss = (1.0 + budget) * factor, (1.0 - budget) * factor
            # f(x-1) > e^ε f(x) where x > (m + 1) odds e^ε / (1 + odds e^ε); f(x) > e^ε f(x-1) where x < (m + 1) odds /
            # (e^ε + odds). Any cutoff bounds from below; the best is one of three, and bounds from above.
            for order, share in enumerate((odds * factor / (1.0 + odds * factor), odds / (factor + odds))):
                first, second = (present, absent) if order == 0 else (absent, present)
                low = np.maximum(0.0, first * (1.0 - budget) - loss[0] * second).sum(axis=0)
                high = np.maximum(0.0, first * (1.0 + budget) - loss[1] * second).sum(axis=0)
                turn = np.floor((people + 1.0) * share).astype(np.int64)
                gains = []
                for cutoff in (turn - 1, turn, turn + 1):
                    t = np.clip(cutoff - (k - 1), 0, len(tails) - 2)
                    if order == 0:
                        gains.append((tails[t, column], tails[t + 1, column]))
                    else:
                        # k ≤ x ≤ cutoff: P[k ≤ S ≤ t] against P[k - 1 ≤ S ≤ t - 1].
                        gains.append((tails[1] - tails[t + 1, column], tails[0] - tails[t, column]))
                size = tails[0] * budget * (1.0 + factor) * 2.0
                exact = np.maximum(0.0, np.max([a - factor * b for a, b in gains], axis=0))
                least[row] = np.maximum(least[row], low + np.maximum(0.0, exact - size))
                most[row] = np.maximum(most[row], high + exact + size + rest)
        return np.maximum(0.0, least * (1.0 - 1e-12) - _LOST), most * (1.0 + 1e-12)

    def _published(self, law: Array) -> Array:
        """Return the law of the noised values: rows are 0 and less, 1, …, k - 1, k and more, and what is hidden.

        Values outside have one likelihood ratio each and are merged.
        """
        k, alpha = self.k, self.alpha
        silent = law[0] * self.from_one
        counts = np.vstack([law[:1] * (not self.from_one), law[1:], np.zeros((1, law.shape[1]))])
        ahead, back = counts.copy(), counts.copy()
        for row in range(1, k + 1):
            ahead[row] += alpha * ahead[row - 1]
            back[k - row] += alpha * back[k - row + 1]
        values = ahead.copy()
        values[:-1] += alpha * back[1:]
        values *= self.scale
        # P[count + Z ≤ 0] and P[count + Z ≥ k] sum geometric tails.
        values[0] /= 1.0 - alpha
        values[k] /= 1.0 - alpha
        if self.release is None and not self.from_one:
            return values
        hidden = silent.copy()
        if self.release is not None:
            low, high = (values[0] * alpha ** max(0, -self.release + 1), 0) if self.release <= 0 else (values[0], 1)
            return self._cut(values, hidden, low, high)
        return np.vstack([values, hidden])

    def _cut(self, values: Array, hidden: Array, low: Array, high: int) -> Array:
        """Return the values from the release threshold on, and all others with what is hidden."""
        assert self.release is not None
        k, release = self.k, self.release
        shown = values.copy()
        if release <= 0:
            hidden, shown[0] = hidden + low, values[0] - low
        elif release <= k:
            hidden = hidden + values[:release].sum(axis=0)
            shown = shown[release:]
        else:
            appears = values[k] * self.alpha ** (release - k)
            hidden = hidden + values[:k].sum(axis=0) + (values[k] - appears)
            shown = appears[None]
        return np.vstack([shown, hidden])
