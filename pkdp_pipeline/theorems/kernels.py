"""Public kernels: what is published of a count, as a map from laws of counts to laws of what is published.

*Rounding*, with ``u = 2^-53``: a map sums positive terms of a law. The sum with the noise is built from both sides in
steps of 1, 2, 4, …: at most 14 products each, so a probability errs by ``(4W + 12ε0(W + |k - r|) + 200)u`` relatively,
for W values, where ``12ε0 W`` also covers every ε0 of the sampler, within 2^-50 of the declared one. Of signed vectors
the same share of what their absolute values publish.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from pkdp_pipeline.theorems.rounding import UNIT, Array


class Kernel(ABC):
    """A public map from a count to what is published of it."""

    @property
    @abstractmethod
    def far(self) -> tuple[Kernel, int]:
        """A kernel to which more people who count are noise, and the count from which on it is the same."""

    @abstractmethod
    def published(self, laws: Array) -> Array:
        """Return what is published of counts 0, 1, …: a law, or differences of laws, a row; symbols are columns."""

    @abstractmethod
    def budget(self, counts: int) -> float:
        """Return the relative error of what is published of so many counts."""


def noised(values: Array, noise: float) -> Array:
    """Return what is published of counts 0, 1, … with noise, row by row, of as many values."""
    ahead, back, step = values.copy(), values.copy(), 1
    while step < values.shape[1] and (decay := math.exp(-noise * step)) > 0.0:
        # Doubling: after this step the geometric sums to either side hold every term within 2·step.
        ahead[:, step:] += decay * ahead[:, :-step]
        back[:, :-step] += decay * back[:, step:]
        step *= 2
    alpha = math.exp(-noise)
    ahead[:, :-1] += alpha * back[:, 1:]
    result: Array = ahead * (-math.expm1(-noise) / (1.0 + alpha))
    return result


@dataclass(frozen=True, slots=True)
class ExactFromK(Kernel):
    """Exact from `k` on, noised and marked below; `from_one`: of a count of 0 nothing is published.

    Symbols are the counts from k on, then the noised values, of which 0 and less, and k and more, are merged, and
    "hidden", below `release`.
    """

    k: int
    release: int | None
    noise: float
    from_one: bool = False

    @property
    def far(self) -> tuple[Kernel, int]:
        """See `Kernel`: the count itself."""
        return ExactFromK(0, None, self.noise), self.k

    def budget(self, counts: int) -> float:
        """See `Kernel`."""
        return (4.0 * self.k + 12.0 * self.noise * (self.k + abs(self.release or 0)) + 200.0) * UNIT

    def published(self, laws: Array) -> Array:
        """See `Kernel`."""
        k, silent = self.k, -math.expm1(-self.noise)
        if k == 0:
            return laws
        values = np.zeros((len(laws), k + 1))
        values[:, : min(k, laws.shape[1])] = laws[:, :k]
        hidden = values[:, 0] * self.from_one
        values[:, 0] *= not self.from_one
        values = noised(values, self.noise)
        # P[count + Z ≤ 0] and P[count + Z ≥ k] sum geometric tails.
        values[:, [0, k]] /= silent
        if self.release is not None and self.release <= 0:
            # Of values of 0 or less, this share is below the release threshold.
            hidden = hidden + values[:, 0] * math.exp(-self.noise * (1 - self.release))
            values[:, 0] *= -math.expm1(-self.noise * (1 - self.release))
        elif self.release is not None:
            cut = min(self.release, k)
            beyond = self.noise * (self.release - cut)
            hidden = hidden + values[:, :cut].sum(axis=1) - values[:, cut] * math.expm1(-beyond)
            values = values[:, cut:]
            values[:, 0] *= math.exp(-beyond)
        return np.hstack([laws[:, k:], values, hidden[:, None]])


@dataclass(frozen=True, slots=True)
class Mixed(Kernel):
    """One of several kernels, each with its chance, and which one is shown: one for each number of known people.

    Thresholds fall from one to the next. `chances` are at or above, within 1e-14.
    """

    kernels: tuple[Kernel, ...]
    chances: tuple[float, ...]

    @property
    def far(self) -> tuple[Kernel, int]:
        """See `Kernel`."""
        return self.kernels[0].far[0], max(kernel.far[1] for kernel in self.kernels)

    def budget(self, counts: int) -> float:
        """See `Kernel`."""
        return max(kernel.budget(counts) for kernel in self.kernels) + 1e-14

    def published(self, laws: Array) -> Array:
        """See `Kernel`."""
        pairs = zip(self.kernels, self.chances, strict=True)
        return np.hstack([chance * kernel.published(laws) for kernel, chance in pairs])
