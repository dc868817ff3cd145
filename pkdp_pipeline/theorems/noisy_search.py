"""The search for the worst number of people behind a threshold with noise after it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pkdp_pipeline.theorems.binomial_tails import binomial_below
from pkdp_pipeline.theorems.noisy_rows import (
    LOST,
    Channel,
    Rows,
    Whole,
    falling_ratio,
    least_ratio,
    rising_ratio,
    row_of,
    rows_of,
    suffixes,
)
from pkdp_pipeline.theorems.rounding import TINY, UNIT, Array

SLACK = 0.01
"""Blocks are divided until none exceeds the best attacker found by more than this, relatively."""

_NEGLIGIBLE = 1e-250
"""Below this no two sides need to agree."""

_TOGETHER = 256
"""So many blocks are looked at together."""

_NEAR = 1.0 - 2.0**-40
"""Up to this share of ε0 an ε is surely below that of the noise as it is drawn."""

_MOST_BLOCKS = 1000
"""With more blocks than this to divide at once, the search stops, which widens the bracket."""


class Found(NamedTuple):
    """For every ε: the best attacker's δ, a bound on all, how far apart the sides of one are, and who is the best."""

    best: Array
    top: Array
    apart: Array
    leader: Whole


class Search:
    """The largest divergences over all numbers of coins, for several ε at once, of channels whose average is seen.

    A place is an ε and a number of coins; a block is an ε and two numbers, with all between.

    Parameters
    ----------
    channels : tuple of Channel
        Thresholds fall from one to the next.
    chances : Array
        Of the channels, each at or above its own.
    lowered : Array
        The same, at or below.
    cap : int, optional
    epsilons : Array
    others : Array or float
        At or above what all other channels add at each ε, whatever the number of coins.
    """

    def __init__(
        self,
        channels: tuple[Channel, ...],
        chances: Array,
        lowered: Array,
        cap: int | None,
        epsilons: Array,
        others: Array | float = 0.0,
    ) -> None:
        self.channels, self.cap, self.epsilons = channels, cap, epsilons
        self.others = others + np.zeros(len(epsilons))
        self.parts = tuple(zip((_Divergences(one, epsilons) for one in channels), chances, lowered, strict=True))

    @property
    def least(self) -> int:
        """Fewer coins than these are never told apart."""
        return max(0, self.channels[-1].k - 1)

    def fits(self, m: int) -> bool:
        """Return whether so many coins can be looked at."""
        return all(row_of(one, max(m, one.k - 1)) is not None for one in self.channels)

    def sides(self) -> Found:
        """Return what is found for every ε."""
        many = len(self.epsilons)
        best, top, apart = np.zeros((3, many))
        found = Found(best, top, apart, np.full(many, self.least))
        ends, reached = self._edges(found)
        column, place = np.nonzero(np.arange(len(ends) - 1) < reached[:, None])
        firsts, lasts = np.array(ends)[place], np.array(ends)[place + 1]
        wide = lasts - firsts > 1
        column, firsts, lasts = column[wide], firsts[wide], lasts[wide]
        while len(firsts):
            enough = np.maximum((1.0 + SLACK) * best[column], _NEGLIGIBLE)
            parts = range(0, len(firsts), _TOGETHER)
            cut = [slice(at, at + _TOGETHER) for at in parts]
            bounds = np.concatenate([self.between(column[c], firsts[c], lasts[c], enough[c]) for c in cut])
            done = bounds <= enough
            # Every bound holds as it stands: stopping here widens the bracket and changes nothing else.
            done |= len(firsts) > _MOST_BLOCKS * many
            np.maximum.at(top, column[done], bounds[done])
            column, firsts, lasts = column[~done], firsts[~done], lasts[~done]
            if not len(firsts):
                break
            middles = (firsts + lasts) // 2
            self._improve(column, middles, found)
            column, firsts, lasts = (
                np.concatenate(pair) for pair in ((column, column), (firsts, middles), (middles, lasts))
            )
            wide = lasts - firsts > 1
            column, firsts, lasts = column[wide], firsts[wide], lasts[wide]
        np.minimum(1.0, top, out=top)
        return found

    def _edges(self, found: Found) -> tuple[list[int], Whole]:
        """Return numbers of coins that blocks lie between, and how many blocks each ε needs.

        The upper sides of what is found include a bound on all larger numbers.
        """
        k, p, many, least = self.channels[0].k, self.channels[0].p, len(self.epsilons), self.least
        most = math.inf if self.cap is None else self.cap
        ends, step, reached = [least], 1, np.zeros(many, dtype=np.int64)
        # Before about as many as make k likely no tail can be left out.
        while ends[-1] * p < k and ends[-1] < most:
            ends.append(int(min(least + step, most)))
            step *= 2
        if not self.fits(ends[-1]):
            found.top[:] = 1.0
            return ends, reached
        column, place = (part.ravel() for part in np.indices((many, len(ends))))
        self._improve(column, np.array(ends)[place], found)
        left = np.arange(many)
        while len(left):
            beyond = np.zeros(len(left)) if ends[-1] == most else self.beyond(left, ends[-1])
            reached[left] = len(ends) - 1
            further = int(min(least + step, most))
            done = beyond <= np.maximum((1.0 + SLACK) * found.best[left], _NEGLIGIBLE)
            # A bound that is not small enough holds as well.
            done |= not self.fits(further)
            found.top[left[done]] = np.maximum(found.top[left[done]], beyond[done])
            left = left[~done]
            if len(left):
                ends.append(further)
                step *= 2
                self._improve(left, np.full(len(left), further), found)
        return ends, reached

    def _improve(self, column: Whole, people: Whole, found: Found) -> None:
        """Look at these places, and enter what is there."""
        lower, upper = self.exact(column, people)
        np.maximum.at(found.best, column, lower)
        np.maximum.at(found.top, column, upper)
        leading = lower >= 0.5 * found.best[column]
        wide = (upper - lower)[leading] / np.maximum(lower[leading], TINY)
        np.maximum.at(found.apart, column[leading], np.minimum(1.0, wide))
        first = (lower == found.best[column]) & (lower > 0.0)
        found.leader[column[first]] = people[first]

    def exact(self, column: Whole, people: Whole) -> tuple[Array, Array]:
        """Return brackets of the divergence, the larger of both orders, at each place."""
        lower, upper = np.zeros((2, 2, len(people)))
        for part, chance, lowered in self.parts:
            told = people >= part.channel.k - 1
            if told.any():
                least, most = part.orders(column[told], people[told])
                lower[:, told] += lowered * least
                upper[:, told] += chance * most
        several = len(self.parts) > 1
        upper = upper.max(axis=0) * (1.0 + 1e-14 * several) + self.others[column]
        return lower.max(axis=0) * (1.0 - 1e-14 * several), upper

    def beyond(self, column: Whole, m: int) -> Array:
        """Return bounds on the divergence with m coins or more, where these make every k likely."""
        bounds: Array = sum(chance * part.beyond(column, m) for part, chance, _ in self.parts) * (1.0 + 1e-14)
        return bounds + self.others[column]

    def between(self, column: Whole, firsts: Whole, lasts: Whole, enough: Array) -> Array:
        """Return bounds on the divergence in each block, both ends included; coarse ones where these are `enough`."""
        bounds = np.zeros(len(column))
        share = 1.0 if len(self.parts) == 1 else 1e-3
        for part, chance, _ in self.parts:
            told = lasts >= part.channel.k - 1
            if told.any():
                starts = np.maximum(firsts[told], part.channel.k - 1)
                bounds[told] += chance * part.between(column[told], starts, lasts[told], share * enough[told])
        return bounds * (1.0 + 1e-14) + self.others[column]


class _Divergences:
    """Divergences of what one channel publishes, for several ε at once."""

    def __init__(self, channel: Channel, epsilons: Array) -> None:
        self.channel, self.epsilons = channel, epsilons
        alpha, rise = math.exp(-channel.noise), np.expm1(epsilons)
        self.growth = np.exp(epsilons)
        # So far beyond a cutoff a count still speaks for it: log((e^ε - 1)(1 + α)/(e^ε - α)) / log α.
        self.inside = epsilons < channel.noise * _NEAR
        share = rise * (1.0 + alpha) / (rise - math.expm1(-channel.noise))
        self.turn = np.where(self.inside, np.maximum(0.0, -np.log(share) / channel.noise), 0.0)

    def beyond(self, column: Whole, m: int) -> Array:
        """Return bounds on the divergence with m coins or more, where these make k likely.

        From ε0 on only a count that has just reached k tells anything. Below, the count without its threshold, which
        more coins only help to hide, differs from it where fewer than k people count.
        """
        row, growth = row_of(self.channel, m), self.growth[column]
        noisy = self.epsilons[column] < self.channel.noise
        if row is None or m * self.channel.p < self.channel.k:
            return np.ones(len(column))
        bounds = np.full(len(column), self.channel.appears * row.numbers[1] * (1.0 + row.numbers[-1]) + LOST)
        if noisy.any():
            free = row_of(replace(self.channel, k=0, release=None), m)
            if free is None:
                return np.where(noisy, 1.0, bounds)
            budget, rest = free.numbers[-1], free.numbers[3]
            gains = np.zeros(len(column))
            for first, second in (free.laws[:2], free.laws[1::-1]):
                apart = first * (1.0 + budget) - growth[:, None] * (1.0 - budget) * second
                gains = np.maximum(gains, np.maximum(0.0, apart).sum(axis=1) + rest)
            few = (1.0 + growth) * binomial_below(m, self.channel.p, self.channel.k)
            bounds = np.where(noisy, gains + few, bounds)
        return bounds * (1.0 + 1e-12)

    def orders(self, column: Whole, people: Whole) -> tuple[Array, Array]:
        """Return brackets of the divergence at each place, in both orders; shape (2, places)."""
        rows, growth = rows_of(self.channel, people), self.growth[column][:, None]
        shown = 1.0 - self.channel.appears
        one, other = rows.few + rows.just * shown + rows.before[:, :1], rows.few + rows.just + rows.hidden[:, :1]
        present, absent = np.hstack([rows.present, one]), np.hstack([rows.absent, other])
        less, more = growth * (1.0 + rows.budget), growth * (1.0 - rows.budget)
        both = ((present, absent), (absent, present))
        lower = [np.maximum(0.0, first * (1.0 - rows.budget) - second * less).sum(axis=1) for first, second in both]
        upper = [np.maximum(0.0, first * (1.0 + rows.budget) - second * more).sum(axis=1) for first, second in both]
        lost = ((1.0 + growth) * (rows.rest + rows.under))[:, 0]
        least = np.maximum(0.0, np.stack(lower) * (1.0 - 1e-12) - lost)
        return least, np.stack(upper) * (1.0 + 1e-12) + self._left_out(column, rows)[:, 0]

    def _left_out(self, column: Whole, rows: Rows) -> Array:
        """Return at most how much the counts left out can add: from ε0 on only that of k - 1 people tells anything."""
        return np.where((self.epsilons[column] < self.channel.noise)[:, None], rows.rest, LOST)

    def between(self, column: Whole, firsts: Whole, lasts: Whole, enough: Array) -> Array:
        """Return bounds on the divergence in each block, both ends included; coarse ones where these are `enough`."""
        ends = rows_of(self.channel, np.concatenate([firsts, lasts]))
        near, far = (Rows(*(part[half] for part in ends)) for half in (np.s_[: len(firsts)], np.s_[len(firsts) :]))
        a, b = firsts[:, None].astype(float), lasts[:, None].astype(float)
        # More coins publish more often.
        bounds: Array = far.present.sum(axis=1) * (1.0 + 2.0 * far.budget[:, 0]) + far.rest[:, 0]
        todo = np.flatnonzero(bounds > enough)
        if len(todo):
            near, far = (Rows(*(part[todo] for part in rows)) for rows in (near, far))
            a, b, column = a[todo], b[todo], column[todo]
            found = np.maximum(self._right(near, far, a, b, column), self._left(near, far, a, b, column, enough[todo]))
            bounds[todo] = np.minimum(bounds[todo], found)
        return bounds * (1.0 + 1e-10)

    def _right(self, near: Rows, far: Rows, a: Array, b: Array, column: Whole) -> Array:
        """Return bounds on ``P[Y ≥ t] - e^ε P[Y' ≥ t]`` for all t and all numbers of coins in each block."""
        growth = self.growth[column][:, None]
        # More coins publish larger numbers.
        bounds = suffixes(far.present * (1.0 + far.budget)) + far.rest
        gains = near.present * (1.0 + near.budget) - growth * (1.0 - near.budget) * near.absent
        gains = suffixes(np.maximum(0.0, gains)) + LOST
        least = float(max(0, self.channel.k - 1))
        turns = self._cutoffs(gains.shape[1]) + np.floor(self.turn[column] + 1e-6)[:, None]
        turns = np.where((self.epsilons[column] < self.channel.noise)[:, None], np.maximum(turns, least), least)
        seen = turns <= np.minimum(near.high, a)
        rising = rising_ratio(self.channel.p, np.minimum(turns, a), a, b)
        result: Array = np.where(seen, np.minimum(bounds, gains * rising), bounds).max(axis=1)
        return result

    def _left(self, near: Rows, far: Rows, a: Array, b: Array, column: Whole, enough: Array) -> Array:
        """Return bounds on the other order: events that hold less often with more coins, from the end of each block."""
        k, growth, turn = self.channel.k, self.growth[column][:, None], self.turn[column][:, None]
        cutoffs = self._cutoffs(far.present.shape[1] + 1)
        gains = far.absent * (1.0 + far.budget) - growth * (1.0 - far.budget) * far.present
        rest = self._left_out(column, far)
        gains = np.cumsum(np.maximum(0.0, gains), axis=1) + rest
        gains *= (self.epsilons[column] < self.channel.noise)[:, None]
        # With what is suppressed: fewer than k - 1 people, just as many, and more.
        more = far.hidden * (1.0 + far.budget) - growth * (1.0 - far.budget) * far.before + rest
        jumps = np.maximum(0.0, 1.0 - growth * self.channel.below(cutoffs[:-1] - k) + 4.0 * UNIT * (1.0 + growth))
        just = near.just * (1.0 + near.budget) + LOST
        just = np.minimum(1.0, just * rising_ratio(self.channel.p, np.full((1, 1), max(0.0, k - 1.0)), a, b))
        others = jumps * just - (growth - 1.0) * (1.0 - 1e-12) * far.few * (1.0 - far.budget)
        # The first cutoff falls least.
        falling = falling_ratio(self.channel.p, np.maximum(float(k), np.floor(cutoffs[:1] - 1.0 - turn - 1e-6)), a, b)
        most = np.maximum(0.0, more.max(axis=1, keepdims=True)) * falling + others[:, :1]
        bounds: Array = np.maximum(gains[:, -1:] * falling, most)[:, 0]
        todo = np.flatnonzero(bounds > enough)
        if len(todo):
            a, b, turn, more = a[todo], b[todo], turn[todo], more[todo]
            falling = falling_ratio(self.channel.p, np.maximum(float(k), np.floor(cutoffs - 1.0 - turn - 1e-6)), a, b)
            least = least_ratio(self.channel.p, np.maximum(float(k), np.ceil(cutoffs[:-1] - turn)), a, b)
            more = np.where(more > 0.0, more * falling[:, :-1], more * least * self.inside[column[todo]][:, None])
            bounds[todo] = np.maximum((gains[todo] * falling[:, 1:]).max(axis=1), (more + others[todo]).max(axis=1))
        return bounds

    def _cutoffs(self, size: int) -> Array:
        """Return the values at which an event can begin: the first that is published, and those that follow."""
        k, release = self.channel.k, self.channel.release
        cutoffs = np.arange(size, dtype=np.float64) + (k if release is None else max(k, release))
        cutoffs[0] = -np.inf if release is None else release
        return cutoffs
