"""The waiting times of theorem A as plain lists of atoms, and products of such pairs, without any convolution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from oracle.laws import positive

__all__ = ["Atoms", "capped_pair", "divergences", "product_divergence", "reversed_pair", "spread_pair"]

Atoms = list[tuple[Any, Any]]


def capped_pair(k: int, p: Any, most: int) -> Atoms:
    """Return the atoms of ``(min(W_{k-1}, U + 1), min(W_k, U + 1))`` for U = `most` coins."""

    def waiting(successes: int) -> list[Any]:
        # The chance that exactly `successes - 1` of the first w - 1 coins succeed, and then the w-th.
        law: list[Any] = [1]
        times: list[Any] = []
        for _ in range(most):
            times.append(law[successes - 1] * p if successes - 1 < len(law) else 0)
            law = [
                (law[s] * (1 - p) if s < len(law) else 0) + (law[s - 1] * p if s > 0 else 0)
                for s in range(len(law) + 1)
            ]
        return [*times, 1 - sum(times)]

    return list(zip(waiting(k - 1), waiting(k), strict=True))


def reversed_pair(pair: Atoms) -> Atoms:
    """Return the pair in the other order."""
    return [(second, first) for first, second in pair]


def product_divergence(pairs: Iterable[Atoms], growth: Any) -> Any:
    """Return ``Σ max(0, P - growth · Q)`` over the product of all pairs, atom by atom."""
    total: Any = 0
    for atoms in product(*pairs):
        first: Any = 1
        second: Any = 1
        for p, q in atoms:
            first, second = first * p, second * q
        total = total + positive(first - growth * second)
    return total


def spread_pair(k: int, p: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the laws of both waiting times up to `most`, as float arrays; what is later is one atom at the end."""
    sides = []
    for successes in (k - 1, k):
        w = np.arange(successes, most)
        # P(w + 1)/P(w) = w (1 - p) / (w + 1 - successes)
        steps = np.log(w * (1 - p) / (w + 1 - successes))
        law = np.zeros(most + 1)
        law[successes:] = np.exp(successes * np.log(p) + np.append(0.0, steps.cumsum()))
        sides.append(np.append(law, max(0.0, 1.0 - law.sum())))
    return sides[0], sides[1]


def divergences(pairs: Sequence[tuple[np.ndarray, np.ndarray]], growth: float) -> float:
    """Return ``Σ max(0, P - growth · Q)`` over the product of a few pairs of float arrays."""
    first, second = np.ones(1), np.ones(1)
    for p, q in pairs:
        first, second = np.outer(first, p).ravel(), np.outer(second, q).ravel()
    return float(np.maximum(first - growth * second, 0.0).sum())
