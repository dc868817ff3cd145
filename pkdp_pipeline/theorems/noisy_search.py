"""The search for the worst numbers of people behind a threshold with noise after it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkdp_pipeline.theorems.noisy_blocks import Blocks, Gains
from pkdp_pipeline.theorems.noisy_rows import LOST, Channel, Rows, Whole, row_of, rows_of
from pkdp_pipeline.theorems.rounding import TINY, Array

SLACK = 0.01
"""Blocks of coins of one kind are divided until none exceeds the best attacker by more than this, relatively."""

SLACK_IN_BOX = 0.04
"""The same of coins of two kinds."""

_NEGLIGIBLE = 1e-250
"""Below this no two sides need to agree."""

_NEGLIGIBLE_IN_BOX = 1e-40
"""The same of coins of two kinds."""

_TOGETHER = 128
"""So many blocks are looked at together."""

_NEAR = 2.0**-40
"""So close to ε0, relatively, an ε may be on either side of that of the noise as it is drawn."""

_MOST_BLOCKS = 2000
"""With more blocks than this to divide at once, the search stops, which widens the bracket."""

_LADDER = 24
"""So many numbers of people are looked at first, with as many of them at the larger chance as these shares say."""

_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)

_STEP = 1.3
"""The ends of a search are found in steps by this factor."""


class Found(NamedTuple):
    """For every ε: the best attacker's δ, a bound on all, how far apart the sides of one are, and who is the best.

    `leader` has two rows, the numbers of people at the smaller and at the larger chance.
    """

    best: Array
    top: Array
    apart: Array
    leader: Whole


class Search:
    """The largest divergences over all numbers of coins of two kinds, for several ε, of channels whose average is seen.

    A place is an ε and two numbers of coins. Where both chances are equal, only coins of the smaller one are looked at.

    Parameters
    ----------
    channels : tuple of Channel
        Thresholds fall from one to the next.
    chances : Array
        Of the channels, each at or above its own.
    lowered : Array
        The same, at or below.
    unknown : int
        There are at least so many coins.
    cap : int, optional
        And at most so many.
    epsilons : Array
    """

    def __init__(
        self,
        channels: tuple[Channel, ...],
        chances: Array,
        lowered: Array,
        unknown: int,
        cap: int | None,
        epsilons: Array,
    ) -> None:
        self.channels, self.cap, self.epsilons = channels, math.inf if cap is None else cap, epsilons
        self.parts = tuple(zip((_Divergences(one, epsilons) for one in channels), chances, lowered, strict=True))
        # Fewer coins than these are never told apart.
        self.least = max(0, unknown, channels[-1].k - 1)
        self.p_min, self.p_max = channels[0].p_min, channels[0].p_max
        self.is_line = self.p_min == self.p_max
        self.slack = SLACK if self.is_line else SLACK_IN_BOX
        least = _NEGLIGIBLE if self.is_line else _NEGLIGIBLE_IN_BOX
        self.negligible = np.maximum(least, 4.0 * self.parts[0][0].doubt)
        self._keys, self._values = np.zeros(0, dtype=np.int64), np.zeros((len(channels), 0))

    def fits(self, low: int, high: int) -> bool:
        """Return whether so many coins can be looked at."""
        return all(row_of(one, low + max(0, one.k - 1 - low - high), high) is not None for one in self.channels)

    def ladder(self) -> tuple[Whole, Whole]:
        """Return places that are looked at first."""
        channel = self.channels[0]
        most = min(self.cap, 2.0 * max(self.least, max(channel.k, channel.release or 0) / self.p_min))
        people = self.least + max(0.0, most - self.least) * (np.arange(_LADDER) / _LADDER) ** 2
        shares = np.array(_SHARES[:1] if self.is_line else _SHARES)
        high = np.floor(shares[:, None] * people).ravel().astype(np.int64)
        low = np.tile(people.astype(np.int64), len(shares)) - high
        fit = np.array([self.fits(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)])
        return low[fit], high[fit]

    def sides(self) -> Found:
        """Return what is found for every ε."""
        many = len(self.epsilons)
        best, top, apart = np.zeros((3, many))
        found = Found(best, top, apart, np.repeat([[self.least], [0]], many, axis=1))
        if self.least > self.cap:
            return found
        low, high = self.ladder()
        if not len(low):
            top[:] = 1.0
            return found
        telling = np.arange(many)
        if self.fits(self.least, 0):
            for part, _, _ in self.parts:
                telling = telling[~part.silent(telling, self.least, 0)]
        if not len(telling):
            return found
        column, place = (part.ravel() for part in np.indices((len(telling), len(low))))
        self._look(telling[column], low[place], high[place], found)
        blocks = self._all(telling, ends := self._ends(telling, found), found)
        while len(blocks.column):
            corners = [self._known(blocks.column, *corner, found) for corner in blocks.corners]
            inside = np.flatnonzero((blocks.first > 1) | (blocks.second > 1))
            blocks, corners = blocks.taken(inside), [corner[:, inside] for corner in corners]
            enough = self._enough(blocks.column, found)
            bounds = np.zeros(len(inside))
            # Blocks of like counts are looked at together.
            order = np.argsort(blocks.low * self.p_min + blocks.high * self.p_max)
            for at in range(0, len(inside), _TOGETHER):
                some = order[at : at + _TOGETHER]
                near = np.stack([corner[:, some] for corner in corners])
                bounds[some] = self.between(blocks.taken(some), near, enough[some])
            done = bounds <= enough
            # Every bound holds as it stands: stopping here widens the bracket and changes nothing else.
            done |= len(bounds) > _MOST_BLOCKS * many
            np.maximum.at(top, blocks.column[done], bounds[done])
            blocks = blocks.taken(np.flatnonzero(~done)).halved((self.p_min, self.p_max - self.p_min, self.p_max))
            blocks = self._declared(blocks, ends)
        np.minimum(1.0, top, out=top)
        return found

    def _enough(self, column: Whole, found: Found) -> Array:
        enough: Array = np.maximum((1.0 + self.slack) * found.best[column], self.negligible[column])
        return enough

    def _ends(self, telling: Whole, found: Found) -> Whole:
        """Return for every ε so many coins of either kind, shape (2, ε), that as many or more need not be looked at.

        The upper sides of what is found include a bound on all of them.
        """
        many = len(self.epsilons)
        ends = np.full((2, many), 0 if self.is_line else -1, dtype=np.int64)
        for kind in range(1 if self.is_line else 2):
            people, left = max(1, math.ceil(self.channels[0].k / (self.p_max if kind else self.p_min))), telling
            while len(left):
                place = (0, people) if kind else (people, 0)
                further = int(people * _STEP) + 1
                bounds = np.zeros(len(left)) if people > self.cap else self.beyond(left, *place)
                done = bounds <= self._enough(left, found)
                # A bound that is not small enough holds as well.
                done |= not self.fits(*((0, further) if kind else (further, 0)))
                ends[kind, left[done]] = people
                found.top[left[done]] = np.maximum(found.top[left[done]], bounds[done])
                left, people = left[~done], further
        return ends

    def _all(self, telling: Whole, ends: Whole, found: Found) -> Blocks:
        """Return blocks of all places that need to be looked at."""
        parts: list[tuple[int, ...]] = []
        for column in telling.tolist():
            most, at_high = ends[:, column].tolist()
            people, step = self.least, 1
            while people < most + (0 if self.is_line else self.least) and people < self.cap:
                size = int(min(step, self.cap - people))
                parts.append((column, people, 0, size, 0 if self.is_line else self.least, 1))
                people, step = people + size, 2 * step
            if self.is_line or people == self.least:
                parts.append((column, self.least, 0, 0, 0 if self.is_line else self.least, 1))
            people, step = self.least, 1
            while not self.is_line and people < min(at_high, self.cap):
                size = int(min(step, self.cap - people))
                parts.append((column, 0, people, int(min(most, self.cap)), size, 0))
                people, step = people + size, 2 * step
        blocks = Blocks(*np.array(parts, dtype=np.int64).T)
        last = blocks.corner(1, 1)
        fit = np.array([self.fits(*pair) for pair in zip(last[0].tolist(), last[1].tolist(), strict=True)])
        found.top[blocks.column[~fit]] = 1.0
        self._stride = int(last[1].max()) + 1, int(max(last[0].max(), blocks.low.max())) + 1
        if self._stride[0] * self._stride[1] * len(self.epsilons) >= 2**62:
            found.top[:] = 1.0
            return blocks.taken(np.zeros(0, dtype=np.int64))
        return self._declared(blocks.taken(np.flatnonzero(fit)), ends)

    def _declared(self, blocks: Blocks, ends: Whole) -> Blocks:
        """Return the blocks that have declared attackers in them whom nothing is known about yet."""
        most, at_high = ends[:, blocks.column]
        beyond = blocks.low - blocks.slanted * blocks.second >= most
        beyond |= (not self.is_line) & (blocks.high >= at_high)
        return blocks.taken(np.flatnonzero(~beyond & (blocks.low + blocks.high <= self.cap)))

    def _known(self, column: Whole, low: Whole, high: Whole, found: Found) -> Array:
        """Return bounds on the divergence of every channel at these places, the larger of both orders."""
        keys = (column * self._stride[1] + low) * self._stride[0] + high
        new, at = np.unique(keys[~np.isin(keys, self._keys)], return_index=True)
        if len(new):
            at = np.flatnonzero(~np.isin(keys, self._keys))[at]
            values = self._look(column[at], low[at], high[at], found)
            keys_, values = np.append(self._keys, new), np.hstack([self._values, values])
            order = np.argsort(keys_)
            self._keys, self._values = keys_[order], values[:, order]
        known: Array = self._values[:, np.searchsorted(self._keys, keys)]
        return known

    def _look(self, column: Whole, low: Whole, high: Whole, found: Found) -> Array:
        """Look at these places, and enter what is there; return bounds of every channel."""
        lower, upper, apart = self._exact(column, low, high)
        declared = low + high <= self.cap
        lower, upper = np.where(declared, lower, 0.0), np.where(declared, upper, 0.0)
        np.maximum.at(found.best, column, lower)
        np.maximum.at(found.top, column, upper)
        leading = lower >= 0.5 * found.best[column]
        wide = (upper - lower)[leading] / np.maximum(lower[leading], TINY)
        np.maximum.at(found.apart, column[leading], np.minimum(1.0, wide))
        first = (lower == found.best[column]) & (lower > 0.0)
        found.leader[:, column[first]] = low[first], high[first]
        return apart

    def exact(self, column: Whole, low: Whole, high: Whole) -> tuple[Array, Array]:
        """Return brackets of the divergence, the larger of both orders, at each place."""
        return self._exact(column, low, high)[:2]

    def _exact(self, column: Whole, low: Whole, high: Whole) -> tuple[Array, Array, Array]:
        lower, upper = np.zeros((2, 2, len(low)))
        each = np.zeros((len(self.parts), len(low)))
        for at, (part, chance, lowered) in enumerate(self.parts):
            told = np.flatnonzero(low + high >= part.channel.k - 1)
            if len(told):
                least, most, each[at, told] = part.orders(column[told], low[told], high[told])
                lower[:, told] += lowered * least
                upper[:, told] += chance * most
        several = len(self.parts) > 1
        return lower.max(axis=0) * (1.0 - 1e-14 * several), upper.max(axis=0) * (1.0 + 1e-14 * several), each

    def beyond(self, column: Whole, low: int, high: int) -> Array:
        """Return bounds on the divergence with at least so many coins of either kind."""
        bounds: Array = sum(chance * part.beyond(column, low, high) for part, chance, _ in self.parts) * (1.0 + 1e-14)
        return bounds

    def between(self, blocks: Blocks, corners: Array, enough: Array) -> Array:
        """Return bounds on the divergence in each block; coarse ones where these are `enough`."""
        bounds = np.zeros(len(enough))
        share = 1.0 if len(self.parts) == 1 else 1e-3
        for at, (part, chance, _) in enumerate(self.parts):
            bounds += chance * part.gains.between(blocks, corners[:, at], share * enough)
        return bounds * (1.0 + 1e-14)


class _Divergences:
    """Divergences of what one channel publishes, for several ε at once."""

    def __init__(self, channel: Channel, epsilons: Array) -> None:
        self.channel, self.epsilons = channel, epsilons
        alpha, rise = math.exp(-channel.noise), np.expm1(epsilons)
        self.growth = np.exp(epsilons)
        self.inside = epsilons < channel.noise * (1.0 - _NEAR)
        # So much may be told in spite of it.
        doubtful = ~self.inside & (epsilons <= channel.noise * (1.0 + _NEAR))
        self.doubt = np.where(doubtful, 4.0 * _NEAR * channel.noise * self.growth, 0.0)
        # So far beyond a cutoff a count still speaks for it: log((e^ε - 1)(1 + α)/(e^ε - α)) / log α.
        share = rise * (1.0 + alpha) / (rise - math.expm1(-channel.noise))
        turn = np.where(self.inside, np.maximum(0.0, -np.log(share) / channel.noise), 0.0)
        self.gains = Gains(channel, self.growth, self.inside, turn)

    def beyond(self, column: Whole, low: int, high: int) -> Array:
        """Return bounds on the divergence with so many coins of either kind or more, where these make k likely.

        From ε0 on only a count that has just reached k tells anything. Below, the count without its threshold, which
        more coins only help to hide, differs from it where fewer than k people count.
        """
        k, p, q = self.channel.k, self.channel.p_min, self.channel.p_max
        growth, noisy = self.growth[column], self.inside[column]
        row = row_of(self.channel, low, high) if low + high >= k - 1 else None
        if row is None or low * p + high * q < k:
            return np.ones(len(column))
        bounds = np.full(len(column), self.channel.appears * row.numbers[1] * (1.0 + row.numbers[-1]) + LOST)
        bounds[self.silent(column, low, high)] = 0.0
        bounds += self.doubt[column]
        if noisy.any():
            free = row_of(replace(self.channel, k=0, release=None), low, high)
            if free is None:
                return np.where(noisy, 1.0, bounds)
            budget, rest = free.numbers[-1], free.numbers[4] + free.numbers[5]
            gains = np.zeros(len(column))
            for first, second in (free.laws, free.laws[::-1]):
                apart = first * (1.0 + budget) - growth[:, None] * (1.0 - budget) * second
                gains = np.maximum(gains, np.maximum(0.0, apart).sum(axis=1) + rest)
            few = row.numbers[0] + row.numbers[1] + row.numbers[5]
            bounds = np.where(noisy, gains + (1.0 + growth) * (few * (1.0 + row.numbers[-1]) + LOST), bounds)
        return bounds * (1.0 + 1e-12)

    def silent(self, column: Whole, low: int, high: int) -> NDArray[np.bool_]:
        """Return where so many coins, or more, or likelier ones, tell nothing: k people are too likely for it."""
        growth, row = self.growth[column], row_of(self.channel, low, high)
        k, noise = self.channel.k, self.channel.noise
        if row is None or len(row.law) <= k - row.start or not row.law[k - row.start] > 0.0:
            return np.zeros(len(column), dtype=bool)
        ratio = row.numbers[1] / float(row.law[k - row.start])
        quiet = growth * (0.0 if self.channel.release is None else 1.0 - self.channel.appears) > 1.0 + 1e-9
        rare = (growth - math.exp(noise)) * (1.0 - 1e-6) > ratio
        result: NDArray[np.bool_] = quiet & rare & ~self.inside[column] & (self.doubt[column] == 0.0)
        return result

    def orders(self, column: Whole, low: Whole, high: Whole) -> tuple[Array, Array, Array]:
        """Return brackets of the divergence at each place, in both orders, shape (2, places); and bounds for blocks."""
        rows, growth = rows_of(self.channel, low, high), self.growth[column][:, None]
        shown = 1.0 - self.channel.appears
        one, other = rows.few + rows.just * shown + rows.before, rows.few + rows.just + rows.hidden
        present, absent = np.hstack([rows.present, one]), np.hstack([rows.absent, other])
        less, more = growth * (1.0 + rows.budget), growth * (1.0 - rows.budget)
        both = ((present, absent), (absent, present))
        lower = [np.maximum(0.0, first * (1.0 - rows.budget) - second * less).sum(axis=1) for first, second in both]
        upper = [np.maximum(0.0, first * (1.0 + rows.budget) - second * more).sum(axis=1) for first, second in both]
        lost = ((1.0 + growth) * (rows.rest + rows.under))[:, 0]
        least = np.maximum(0.0, np.stack(lower) * (1.0 - 1e-12) - lost)
        most = np.stack(upper) * (1.0 + 1e-12) + self._left_out(column, rows)[:, 0]
        # From ε0 on losses of what is published beside "suppressed" are left out in blocks.
        silent = 0.0 if self.channel.release is None else 1.0 - self.channel.appears
        kept = rows.just * (1.0 + rows.budget) * (1.0 - growth * silent) - (growth - 1.0) * rows.few * (
            1.0 - rows.budget
        )
        kept = np.where(self.inside[column], 0.0, np.maximum(0.0, kept[:, 0] * (1.0 + 1e-12)) + LOST)
        return least, most, np.maximum(most.max(axis=0), kept) + self.doubt[column]

    def _left_out(self, column: Whole, rows: Rows) -> Array:
        """Return at most how much the counts left out can add: from ε0 on only that of k - 1 people tells anything."""
        return np.where(self.inside[column][:, None], rows.rest, LOST)
