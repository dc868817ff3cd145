"""Divergences of one channel with coins of two kinds, for several ε at once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pkdp_pipeline.theorems.noisy_rows import UNDERFLOW_MASS, Channel, ChannelRows, row_of, rows_of
from pkdp_pipeline.theorems.rounding import Array, Decided, Whole

_SAMPLER_SLACK = 2.0**-40
"""An ε this close to ε0, relatively, may lie on either side of the ε0 that the sampler draws with."""


class Divergences:
    """Divergences of what one channel publishes, for several ε at once."""

    def __init__(self, channel: Channel, epsilons: Array) -> None:
        self.channel, self.epsilons = channel, epsilons
        alpha, rise = math.exp(-channel.noise), np.expm1(epsilons)
        self.growth = np.exp(epsilons)
        self.noisy, self.inside = epsilons < channel.noise, epsilons < channel.noise * (1.0 - _SAMPLER_SLACK)
        # There the profile may be above what holds beyond ε0, by at most this much.
        doubtful = ~self.inside & (epsilons <= channel.noise * (1.0 + _SAMPLER_SLACK)) & (channel.p_min < channel.p_max)
        self.doubt = np.where(doubtful, 4.0 * _SAMPLER_SLACK * channel.noise * self.growth, 0.0)
        # How far beyond a cutoff gains turn into losses: c = log((e^ε - 1)(1 + α)/(e^ε - α)) / log α of theorem D.
        share = rise * (1.0 + alpha) / (rise - math.expm1(-channel.noise))
        self.turn = np.where(self.inside, np.maximum(0.0, -np.log(share) / channel.noise), 0.0)

    def beyond(self, column: Whole, low: int, high: int) -> Array:
        """Return bounds on the divergence with this many coins of either kind or more, where these make k likely.

        From ε0 on only a count that has just reached k tells anything. Below, the count without its threshold, which
        more coins only help to hide, differs from it where fewer than k people count.
        """
        k, p, q = self.channel.k, self.channel.p_min, self.channel.p_max
        growth, noisy = self.growth[column], self.noisy[column]
        row = row_of(self.channel, low, high) if low + high >= k - 1 else None
        if row is None or low * p + high * q < k:
            return np.ones(len(column))
        bounds = np.full(len(column), self.channel.appears * row.numbers[1] * (1.0 + row.numbers[-1]) + UNDERFLOW_MASS)
        bounds[self.silent(column, low, high)] = 0.0
        bounds += self.doubt[column]
        if noisy.any():
            free = row_of(replace(self.channel, k=0, release=None), low, high)
            if free is None:
                return np.where(noisy, 1.0, bounds)
            budget, rest = free.numbers[-1], free.numbers[3] + free.numbers[4]
            gains = np.zeros(len(column))
            for first, second in (free.laws[:2], free.laws[1::-1]):
                apart = first * (1.0 + budget) - growth[:, None] * (1.0 - budget) * second
                gains = np.maximum(gains, np.maximum(0.0, apart).sum(axis=1) + rest)
            few = row.numbers[0] + row.numbers[1] + row.numbers[4]
            bounds = np.where(noisy, gains + (1.0 + growth) * (few * (1.0 + row.numbers[-1]) + UNDERFLOW_MASS), bounds)
        return bounds * (1.0 + 1e-12)

    def silent(self, column: Whole, low: int, high: int) -> Decided:
        """Return where this many coins, or more, or likelier ones, tell nothing: k people are too likely for it."""
        growth, row = self.growth[column], row_of(self.channel, low, high)
        k, noise = self.channel.k, self.channel.noise
        if row is None or len(row.law) <= k - row.start or not row.law[k - row.start] > 0.0:
            return np.zeros(len(column), dtype=bool)
        ratio = row.numbers[1] / float(row.law[k - row.start])
        quiet = growth * (0.0 if self.channel.release is None else 1.0 - self.channel.appears) > 1.0 + 1e-9
        rare = (growth - math.exp(noise)) * (1.0 - 1e-6) > ratio
        result: Decided = quiet & rare & ~self.inside[column] & (self.doubt[column] == 0.0)
        return result

    def orders(self, column: Whole, low: Whole, high: Whole) -> tuple[Array, Array, Array]:
        """Return brackets of the divergence at each place, in both orders, shape (2, places); and bounds for blocks."""
        rows, growth = rows_of(self.channel, low, high), self.growth[column][:, None]
        shown = 1.0 - self.channel.appears
        hidden_present = rows.few + rows.just * shown + rows.before[:, :1]
        hidden_absent = rows.few + rows.just + rows.hidden[:, :1]
        present, absent = np.hstack([rows.present, hidden_present]), np.hstack([rows.absent, hidden_absent])
        less, more = growth * (1.0 + rows.budget), growth * (1.0 - rows.budget)
        both = ((present, absent), (absent, present))
        lower = [np.maximum(0.0, first * (1.0 - rows.budget) - second * less).sum(axis=1) for first, second in both]
        upper = [np.maximum(0.0, first * (1.0 + rows.budget) - second * more).sum(axis=1) for first, second in both]
        lost = ((1.0 + growth) * (rows.rest + rows.under))[:, 0]
        least = np.maximum(0.0, np.stack(lower) * (1.0 - 1e-12) - lost)
        most = np.stack(upper) * (1.0 + 1e-12) + self.left_out(column, rows)[:, 0]
        if self.channel.p_min == self.channel.p_max:
            return least, most, most.max(axis=0)
        # From ε0 on losses of what is published beside "suppressed" are left out in blocks.
        silent = 0.0 if self.channel.release is None else 1.0 - self.channel.appears
        kept = rows.just * (1.0 + rows.budget) * (1.0 - growth * silent) - (growth - 1.0) * rows.few * (
            1.0 - rows.budget
        )
        kept = np.where(self.inside[column], 0.0, np.maximum(0.0, kept[:, 0] * (1.0 + 1e-12)) + UNDERFLOW_MASS)
        return least, most, np.maximum(most.max(axis=0), kept) + self.doubt[column]

    def left_out(self, column: Whole, rows: ChannelRows) -> Array:
        """Return at most how much the counts left out can add: from ε0 on only that of k - 1 people tells anything."""
        return np.where(self.noisy[column][:, None], rows.rest, UNDERFLOW_MASS)
