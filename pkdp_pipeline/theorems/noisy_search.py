"""The search for the worst numbers of people behind a threshold with noise after it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from pkdp_pipeline.theorems import noisy_blocks
from pkdp_pipeline.theorems.channel import Channel, ends_of, rows_of
from pkdp_pipeline.theorems.noisy_blocks import Blocks, Divergences
from pkdp_pipeline.theorems.numerics import TINY, Array, Optimum, Whole

SLACK = 0.00001
"""Blocks of coins of one kind are divided until none exceeds the best attacker by more than this, relatively."""

SLACK_IN_BOX = 0.04
"""The same of coins of two kinds."""

NEGLIGIBLE_DELTA = 1e-250
"""Below this no two sides need to agree."""

NEGLIGIBLE_DELTA_IN_BOX = 1e-40
"""The same of coins of two kinds."""

_BATCH_SIZE = 128
"""This many blocks are looked at together."""

_NARROW = 0.2
"""Blocks bounded within this factor of what is enough are bounded again, by the second order."""

_MAX_BLOCKS = 1000
"""With more blocks than this for one ε to divide at once, the search stops, which widens the bracket."""

_MAX_EVALUATED = 2**9
"""The search also stops once more blocks than this are evaluated for one ε: most searches end after 200."""

_MAX_EVALUATED_IN_BOX = 2**12
"""The same of coins of two kinds, while k is small; each takes as long as k is large."""

_SMALL_K = 100

_HOPELESS_RATIO = 1000.0
"""In a box a search stops at a quarter of the blocks where some bound still exceeds the best attacker by so much."""

_LADDER_SIZE = 24
"""This many numbers of people are looked at first, with as many of them at the larger chance as these shares say."""

_LADDER_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)

_MAX_HALVINGS = 6
"""The last block of equal coins is halved up to so often before it is looked at."""

_SHORTEST_SHARE = 16
"""The first block of equal coins has this share of the coins."""

_GROWTH_FACTOR = 1.3
"""The ends of a search are found in steps by this factor."""


def _fit(channels: tuple[Channel, ...], low: int, high: int) -> bool:
    return all(ends_of(channel, low + max(0, channel.k - 1 - low - high), high) is not None for channel in channels)


def ladder(channels: tuple[Channel, ...], least: int, cap: float) -> tuple[Whole, Whole]:
    """Return numbers of coins that are looked at first, at least and at most this many."""
    first = channels[0]
    most = math.ceil(2.0 * max(first.k, first.release or 0) / first.p_min)
    people = np.minimum(least + most * (np.arange(_LADDER_SIZE) / _LADDER_SIZE) ** 2, cap)
    people = np.unique(people.astype(np.int64))
    shares = np.array(_LADDER_SHARES[:1] if first.p_min == first.p_max else _LADDER_SHARES)
    high = np.floor(shares[:, None] * people).ravel().astype(np.int64)
    low = np.tile(people, len(shares)) - high
    fit = np.array([_fit(channels, *pair) for pair in zip(low.tolist(), high.tolist(), strict=True)])
    return low[fit], high[fit]


class NoisySearch:
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
        There are at least this many coins.
    cap : int, optional
        And at most this many.
    others : Array or float
        At or above what all other channels add at each ε, whatever the number of coins.
    """

    def __init__(
        self,
        channels: tuple[Channel, ...],
        chances: Array,
        lowered: Array,
        unknown: int,
        cap: int | None,
        epsilons: Array,
        others: Array | float = 0.0,
    ) -> None:
        self.channels, self.cap, self.epsilons = channels, math.inf if cap is None else cap, epsilons
        self.others = others + np.zeros(len(epsilons))
        self.parts = tuple(zip((Divergences(channel, epsilons) for channel in channels), chances, lowered, strict=True))
        # Fewer coins than these are never told apart.
        self.least = max(0, unknown, channels[-1].k - 1)
        self.p_min, self.p_max = channels[0].p_min, channels[0].p_max
        self.is_line = self.p_min == self.p_max
        self.slack = SLACK if self.is_line else SLACK_IN_BOX
        least = NEGLIGIBLE_DELTA if self.is_line else NEGLIGIBLE_DELTA_IN_BOX
        self.negligible = np.maximum(least, 4.0 * self.parts[0][0].doubt)
        self._stride, self._settled = (1, 2**48), np.full((2, len(epsilons)), math.inf)
        self._keys, self._values = np.full(1, -1), np.zeros((len(channels), 1))

    def fits(self, low: int, high: int) -> bool:
        """Return whether this many coins can be looked at."""
        return _fit(self.channels, low, high)

    def sides(self) -> Optimum:
        """Return what is found for every ε."""
        many = len(self.epsilons)
        best, top, apart = np.zeros((3, many))
        optimum = Optimum(best, top, apart, np.repeat([[self.least], [0]], many, axis=1))
        if self.least > self.cap:
            return optimum
        blocks, ends = self._line(optimum) if self.is_line else self._plane(optimum)
        evaluated, most = np.zeros(many), float(_MAX_EVALUATED)
        if not self.is_line:
            most = _MAX_EVALUATED_IN_BOX * min(1.0, _SMALL_K / max(1, self.channels[0].k))
        # Branch and bound: corners may become the incumbent; a block whose bound exceeds the incumbent by more than the
        # slack is halved. All numbers of coins are in a block or beyond the ends, which are bounded in `top`.
        while len(blocks.column):
            evaluated += np.bincount(blocks.column, minlength=many)
            corners = self._at_corners(blocks, optimum)
            inside = np.flatnonzero((blocks.first > 1) | (blocks.second > 1))
            blocks, corners = blocks.taken(inside), corners[:, :, inside]
            enough = self._enough(blocks.column, optimum)
            bounds = np.zeros(len(inside))
            # Blocks of like counts are looked at together.
            order = np.argsort(blocks.low * self.p_min + blocks.high * self.p_max)
            for start in range(0, len(inside), _BATCH_SIZE):
                batch = order[start : start + _BATCH_SIZE]
                bounds[batch] = self.between(blocks.taken(batch), corners[:, :, batch], enough[batch])
            done = bounds <= enough
            # Every bound holds as it stands: stopping here widens the bracket and changes nothing else.
            largest = np.zeros(many)
            np.maximum.at(largest, blocks.column, bounds)
            hopeless = (not self.is_line) & (largest > _HOPELESS_RATIO * best)
            stops = evaluated > np.where(hopeless, 0.25 * most, most)
            done |= (len(bounds) > _MAX_BLOCKS * many) | stops[blocks.column]
            np.maximum.at(top, blocks.column[done], bounds[done])
            blocks = blocks.taken(np.flatnonzero(~done)).halved((self.p_min, self.p_max - self.p_min, self.p_max))
            blocks = self._declared(blocks, ends)
        np.minimum(1.0, top, out=top)
        return optimum

    def _enough(self, column: Whole, optimum: Optimum) -> Array:
        enough: Array = np.maximum((1.0 + self.slack) * optimum.best[column], self.negligible[column])
        return enough

    def _line(self, optimum: Optimum) -> tuple[Blocks, Whole]:
        """Return blocks of all numbers of people that need to be looked at, and where they end.

        The upper sides of what is found include a bound on all larger numbers.
        """
        many, ends, new = len(self.epsilons), [], [self.least]
        reached, left = np.zeros(many, dtype=np.int64), np.arange(many)
        # Ends at doubling distances: all up to about k/p_min, below which `beyond` says nothing, and on from there,
        # until more people tell too little. A bound that is not small enough holds as well.
        step = max(1, self.least // _SHORTEST_SHARE)
        while new[-1] * self.p_min < self.channels[0].k and new[-1] < self.cap:
            new.append(int(min(self.least + step * 2.0 ** (len(new) - 1), self.cap)))
        if not self.fits(new[-1], 0):
            optimum.top[:], left, ends = 1.0, left[:0], new
        while len(left):
            column, place = (part.ravel() for part in np.indices((len(left), len(new))))
            self._known(left[column], np.array(new)[place], np.zeros_like(place), optimum)
            ends, new = [*ends, *new], [int(min(self.least + step * 2.0 ** (len(ends) + len(new) - 1), self.cap))]
            beyond = self.beyond(left, ends[-1], 0).max(axis=0) * (ends[-1] < self.cap)
            done = (beyond <= self._enough(left, optimum)) | (not self.fits(new[0], 0))
            optimum.top[left[done]] = np.maximum(optimum.top[left[done]], beyond[done])
            reached[left], left = len(ends) - 1, left[~done]
        column, place = np.nonzero(np.arange(len(ends) - 1) < reached[:, None])
        parts = np.array(ends)[place], np.array(ends)[place + 1]
        final = np.flatnonzero(place == reached[column] - 1)
        # The last block of each ε ends, or is cut, where more people tell too little in one order.
        self._settled = np.full((2, many), math.inf)
        shorter = np.sort(self._shortened(column[final], parts[0][final], parts[1][final], optimum), axis=0)
        parts[1][final], column = shorter[0], np.append(column, column[final])
        firsts, lasts = np.append(parts[0], shorter[0]), np.append(parts[1], shorter[1])
        none = np.zeros_like(firsts)
        blocks = Blocks(column, firsts, none, lasts - firsts, none, none)
        return blocks.taken(np.flatnonzero(lasts > firsts)), np.stack([np.array(ends)[reached], np.zeros_like(reached)])

    def _shortened(self, column: Whole, firsts: Whole, lasts: Whole, optimum: Optimum) -> Whole:
        """Return for both orders where blocks may end: they are halved while more than their middle tell too little."""
        starts, stops = np.tile(firsts, (2, 1)), np.tile(lasts, (2, 1))
        for _ in range(_MAX_HALVINGS):
            middles = (starts + stops) // 2
            for people in np.unique(middles).tolist():
                self._known(column, np.full_like(column, people), np.zeros_like(column), optimum)
                bounds = self.beyond(column, people, 0)
                fine = (middles == people) & (bounds <= self._enough(column, optimum))
                for order in range(2):
                    np.maximum.at(optimum.top, column[fine[order]], bounds[order][fine[order]])
                stops[fine], starts[(middles == people) & ~fine] = people, people
        self._settled[:, column] = stops
        return stops

    def _plane(self, optimum: Optimum) -> tuple[Blocks, Whole]:
        """Return the same of people of two kinds."""
        low, high = ladder(self.channels, self.least, self.cap)
        active, ends = np.arange(len(self.epsilons)), np.zeros((2, len(self.epsilons)), dtype=np.int64)
        if not len(low):
            optimum.top[:], active = 1.0, active[:0]
        elif self.fits(self.least, 0):
            for part, _, _ in self.parts:
                active = active[~part.silent(active, self.least, 0)]
        if not len(active):
            return Blocks(*np.zeros((6, 0), dtype=np.int64)), ends
        column, place = (part.ravel() for part in np.indices((len(active), len(low))))
        self._look(active[column], low[place], high[place], optimum)
        ends = self._ends(active, optimum)
        return self._all(active, ends, optimum), ends

    def _ends(self, active: Whole, optimum: Optimum) -> Whole:
        """Return for every ε this many coins of either kind, shape (2, ε), that as many or more need not be looked at.

        The upper sides of what is found include a bound on all of them.
        """
        many = len(self.epsilons)
        ends = np.full((2, many), -1, dtype=np.int64)
        for kind in range(2):
            people, left = max(1, math.ceil(self.channels[0].k / (self.p_max if kind else self.p_min))), active
            while len(left):
                place = (0, people) if kind else (people, 0)
                further = int(people * _GROWTH_FACTOR) + 1
                bounds = np.zeros(len(left)) if people > self.cap else self.beyond(left, *place).max(axis=0)
                done = bounds <= self._enough(left, optimum)
                # A bound that is not small enough holds as well.
                done |= not self.fits(*((0, further) if kind else (further, 0)))
                ends[kind, left[done]] = people
                optimum.top[left[done]] = np.maximum(optimum.top[left[done]], bounds[done])
                left, people = left[~done], further
        return ends

    def _all(self, active: Whole, ends: Whole, optimum: Optimum) -> Blocks:
        """Return blocks of all places that need to be looked at."""
        parts: list[tuple[int, ...]] = []
        for column in active.tolist():
            most, at_high = ends[:, column].tolist()
            people, step = self.least, 1
            while people < most + self.least and people < self.cap:
                size = int(min(step, self.cap - people))
                parts.append((column, people, 0, size, self.least, 1))
                people, step = people + size, 2 * step
            if people == self.least:
                parts.append((column, self.least, 0, 0, self.least, 1))
            people, step = self.least, 1
            while people < min(at_high, self.cap):
                size = int(min(step, self.cap - people))
                parts.append((column, 0, people, int(min(most, self.cap)), size, 0))
                people, step = people + size, 2 * step
        blocks = Blocks(*np.array(parts, dtype=np.int64).T)
        last = blocks.corner(1, 1)
        fit = np.array([self.fits(*pair) for pair in zip(last[0].tolist(), last[1].tolist(), strict=True)])
        optimum.top[blocks.column[~fit]] = 1.0
        self._stride = int(last[1].max()) + 1, int(max(last[0].max(), blocks.low.max())) + 1
        if self._stride[0] * self._stride[1] * len(self.epsilons) >= 2**62:
            optimum.top[:] = 1.0
            return blocks.taken(np.zeros(0, dtype=np.int64))
        return self._declared(blocks.taken(np.flatnonzero(fit)), ends)

    def _declared(self, blocks: Blocks, ends: Whole) -> Blocks:
        """Return the blocks that have declared attackers in them whom nothing is known about yet."""
        most, at_high = ends[:, blocks.column]
        beyond = blocks.low - blocks.slanted * blocks.second >= most
        beyond |= (not self.is_line) & (blocks.high >= at_high)
        return blocks.taken(np.flatnonzero(~beyond & (blocks.low + blocks.high <= self.cap)))

    def _at_corners(self, blocks: Blocks, optimum: Optimum) -> Array:
        """Look at the corners of each block; return bounds on the divergence of every channel there, in this order."""
        corners = blocks.corners[:: 2 if self.is_line else 1]
        low, high = (np.concatenate(part) for part in zip(*corners, strict=True))
        known = self._known(np.tile(blocks.column, len(corners)), low, high, optimum)
        return known.reshape(len(self.parts), len(corners), len(blocks.column))

    def _known(self, column: Whole, low: Whole, high: Whole, optimum: Optimum) -> Array:
        """Return bounds on the divergence of every channel at these places, the larger of both orders."""
        # One whole number for each place, sorted: a binary search finds what was evaluated before.
        keys = (column * self._stride[1] + low) * self._stride[0] + high
        position = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        missing = np.flatnonzero(self._keys[position] != keys)
        if len(missing):
            new, position = np.unique(keys[missing], return_index=True)
            position = missing[position]
            values = self._look(column[position], low[position], high[position], optimum)
            keys_, values = np.append(self._keys, new), np.hstack([self._values, values])
            order = np.argsort(keys_)
            self._keys, self._values = keys_[order], values[:, order]
        known: Array = self._values[:, np.searchsorted(self._keys, keys)]
        return known

    def _look(self, column: Whole, low: Whole, high: Whole, optimum: Optimum) -> Array:
        """Look at these places, and enter what is there; return bounds of every channel."""
        lower, upper, apart = self._exact(column, low, high)
        declared = low + high <= self.cap
        lower, upper = np.where(declared, lower, 0.0), np.where(declared, upper, 0.0)
        np.maximum.at(optimum.best, column, lower)
        np.maximum.at(optimum.top, column, upper)
        leading = lower >= 0.5 * optimum.best[column]
        wide = (upper - lower)[leading] / np.maximum(lower[leading], TINY)
        np.maximum.at(optimum.apart, column[leading], np.minimum(1.0, wide))
        first = (lower == optimum.best[column]) & (lower > 0.0)
        optimum.leader[:, column[first]] = low[first], high[first]
        return apart

    def exact(self, column: Whole, low: Whole, high: Whole) -> tuple[Array, Array]:
        """Return brackets of the divergence, the larger of both orders, at each place."""
        return self._exact(column, low, high)[:2]

    def _exact(self, column: Whole, low: Whole, high: Whole) -> tuple[Array, Array, Array]:
        lower, upper = np.zeros((2, 2, len(low)))
        each = np.zeros((len(self.parts), len(low)))
        for index, (part, chance, lowered) in enumerate(self.parts):
            possible = np.flatnonzero(low + high >= part.channel.k - 1)
            if len(possible):
                least, most, each[index, possible] = part.orders(column[possible], low[possible], high[possible])
                lower[:, possible] += lowered * least
                upper[:, possible] += chance * most
        several = len(self.parts) > 1
        upper = upper.max(axis=0) * (1.0 + 1e-14 * several) + self.others[column]
        return lower.max(axis=0) * (1.0 - 1e-14 * several), upper, each

    def reaching(self, low: int, high: int, target: float, order: int) -> float:
        """Return about the ε at which so many coins tell `target` in one order of the lives: 1, or -1."""
        people = np.array([low]), np.array([high])
        lives = [
            chance * np.concatenate(part.lives(rows_of(part.channel, *people)))
            for part, chance, _ in self.parts
            if low + high >= part.channel.k - 1
        ]
        if not lives:
            return 0.0
        first, second = np.hstack(lives)[::order]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # The best events are those of the largest likelihood ratios.
            best = np.argsort(second / first)
            growth = np.nanmax((np.cumsum(first[best]) - target) / np.cumsum(second[best]))
        return math.log(max(1.0, float(growth)))

    def beyond(self, column: Whole, low: int, high: int) -> Array:
        """Return bounds in both orders with at least this many coins of either kind."""
        bounds: Array = sum(chance * part.beyond(column, low, high) for part, chance, _ in self.parts) * (1.0 + 1e-14)
        return bounds + self.others[column]

    def between(self, blocks: Blocks, corners: Array, enough: Array) -> Array:
        """Return bounds on the divergence in each block; coarse ones where these are `enough`."""
        bounds = np.where(blocks.low >= self._settled[:, blocks.column], 0.0, np.inf)
        narrow = np.maximum(blocks.first, 16) * self.p_min <= _NARROW * math.sqrt(self.channels[0].k)
        narrow &= ~self.parts[0][0].doubtful[blocks.column]
        for from_ends, where in ((False, narrow | (not self.is_line)), (True, self.is_line)):
            rows = np.flatnonzero(where & (bounds.max(axis=0) > enough))
            if len(rows):
                closer = self._between(blocks.taken(rows), corners[:, :, rows], enough[rows], from_ends)
                bounds[:, rows] = np.minimum(bounds[:, rows], closer)
        largest: Array = bounds.max(axis=0)
        return largest

    def _between(self, blocks: Blocks, corners: Array, enough: Array, from_ends: bool) -> Array:
        """Return bounds in both orders: from either end of blocks of coins of one kind, or from all corners."""
        bounds = np.zeros((2, len(enough)))
        share = 1.0 if len(self.parts) == 1 else 1e-3
        firsts, lasts = blocks.low + blocks.high, blocks.low + blocks.first + blocks.high + blocks.second
        for known, (part, chance, _) in zip(corners, self.parts, strict=True):
            least = part.channel.k - 1
            if from_ends:
                possible = np.flatnonzero(lasts >= least)
                rows = blocks.column[possible], np.maximum(firsts, least)[possible], lasts[possible]
                of = partial(noisy_blocks.between_columns, part, *rows)
            else:
                bounds[:, (firsts < least) & (least <= lasts)] = np.inf
                possible = np.flatnonzero(firsts >= least)
                of = partial(noisy_blocks.between, part, blocks.taken(possible), known[:, possible])
            if len(possible):
                bounds[:, possible] += chance * of(share * enough[possible])
        return bounds * (1.0 + 1e-14) + self.others[blocks.column]
