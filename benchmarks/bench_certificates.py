"""Time one certified δ, one ε and a curve, and dp-accounting on the same output pairs in the same run.

Run with ``python benchmarks/bench_certificates.py``. Times are medians of several runs in milliseconds; the
peer builds its privacy-loss distribution from the same two laws of the output and reads the same δ from it.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from scipy import stats

import pkdp_pipeline as pkdp


def median_of(task: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """Return the median time in seconds and the last result."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        result = task()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def peer_delta(first: dict[int, float], second: dict[int, float], epsilon: float) -> float:
    """Return the peer's δ for the two laws, given as logarithms of probabilities."""
    loss = privacy_loss_distribution.from_two_probability_mass_functions(second, first)
    return float(loss.get_delta_for_epsilon(epsilon))


def thresholding_pair(k: int, p: float) -> tuple[dict[int, float], dict[int, float]]:
    """Return the waiting times for k-1 and k successes, but for 1e-15 of their mass."""
    first, second = stats.nbinom(k - 1, p), stats.nbinom(k, p)
    last = int(second.ppf(1 - 1e-15)) + k + 1
    trials = np.arange(k - 1, last)
    return as_dict(trials, first.logpmf(trials - (k - 1))), as_dict(trials, second.logpmf(trials - k))


def counting_pair(unknown: int, p: float) -> tuple[dict[int, float], dict[int, float]]:
    """Return the laws of a count of `unknown` coins without and with the target."""
    values = np.arange(unknown + 2)
    return as_dict(values, stats.binom.logpmf(values, unknown, p)), as_dict(
        values, stats.binom.logpmf(values - 1, unknown, p)
    )


def as_dict(values: np.ndarray, logs: np.ndarray) -> dict[int, float]:
    """Return the finite part of a law in the peer's form."""
    finite = np.isfinite(logs)
    return dict(zip(values[finite].tolist(), logs[finite].tolist(), strict=True))


def line(*cells: object) -> None:
    """Print one row of the report."""
    print(" | ".join(str(cell).ljust(width) for cell, width in zip(cells, (46, 12, 14, 18, 12), strict=False)))


def thresholds() -> None:
    """One δ, one ε and 200 points of a curve for thresholded releases."""
    line("thresholding", "one δ, ms", "ε(1e-9), × δ", "200 δ, × one by one", "δ(1)")
    for k, p in ((50, 0.1), (1_000, 0.1), (10_000, 0.1), (10_000, 0.5), (1_000, 0.01), (10_000, 0.01)):
        certificate = pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(p_max=p))
        scale = min(1.0, 6.0 / math.sqrt(k))
        one, value = median_of(lambda c=certificate, e=scale: c.delta(e), 31)
        inverse, _ = median_of(lambda c=certificate: c.epsilon(1e-9), 7)
        grid = np.linspace(0.2, 1.8, 200) * scale
        array, _ = median_of(lambda c=certificate, g=grid: c.delta(g), 5)
        loop, _ = median_of(lambda c=certificate, g=grid: [c.delta(float(e)) for e in g], 3)
        line(f"k = {k}, p_max = {p}", f"{1e3 * one:.3f}", f"{inverse / one:.1f}", f"{array / loop:.2f}", f"{value:.3e}")


def counts() -> None:
    """One δ, one ε and a curve for exact counts."""
    line("counting, p in [0.1, 0.9]", "one δ, ms", "ε(1e-9), × δ", "20 δ, × one by one", "bracket")
    for unknown in (10_000, 1_000_000, 1_000_000_000):
        attacker = pkdp.AttackerModel(p_min=0.1, p_max=0.9, unknown=unknown)
        certificate = pkdp.certify(pkdp.Count(), attacker)
        epsilon = 6.0 / math.sqrt(0.09 * unknown)
        one, (low, high) = median_of(lambda c=certificate, e=epsilon: c.delta_bounds(e), 7)
        inverse, _ = median_of(lambda c=certificate: c.epsilon(1e-9), 3)
        grid = np.linspace(0.5, 1.5, 20) * epsilon
        array, _ = median_of(lambda c=certificate, g=grid: c.delta(g), 3)
        loop, _ = median_of(lambda c=certificate, g=grid: [c.delta(float(e)) for e in g], 3)
        width = f"{100 * (high / low - 1):.2f} %"
        line(f"unknown = {unknown:.0e}", f"{1e3 * one:.1f}", f"{inverse / one:.1f}", f"{array / loop:.2f}", width)


def peers() -> None:
    """The peer's time for one δ on the same pair, as a multiple of ours."""
    line("same output pair in dp-accounting", "ours, ms", "peer, ms", "peer / ours", "peer δ / ours")
    for k, p, epsilon in ((50, 0.1, 1.0), (1_000, 0.1, 0.2)):
        certificate = pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(p_max=p))
        ours, value = median_of(lambda c=certificate, e=epsilon: c.delta(e), 31)
        theirs, other = median_of(lambda k=k, p=p, e=epsilon: peer_delta(*thresholding_pair(k, p), e), 3)
        line(
            f"thresholding k = {k}",
            f"{1e3 * ours:.3f}",
            f"{1e3 * theirs:.0f}",
            f"{theirs / ours:.0f}",
            f"{other / value:.4f}",
        )
    for unknown in (10_000, 1_000_000):
        certificate = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.1, p_max=0.1, unknown=unknown))
        epsilon = 6.0 / math.sqrt(0.09 * unknown)
        ours, value = median_of(lambda c=certificate, e=epsilon: c.delta(e), 7)
        theirs, other = median_of(lambda u=unknown, e=epsilon: peer_delta(*counting_pair(u, 0.1), e), 1)
        line(
            f"counting, {unknown:.0e} coins",
            f"{1e3 * ours:.2f}",
            f"{1e3 * theirs:.0f}",
            f"{theirs / ours:.0f}",
            f"{other / value:.4f}",
        )
    tracemalloc.start()
    peer_delta(*counting_pair(1_000_000, 0.1), 0.02)
    print(f"peer's peak allocation for 1e6 outcomes: {tracemalloc.get_traced_memory()[1] / 2**20:.0f} MiB")
    tracemalloc.stop()


if __name__ == "__main__":
    for part in (thresholds, counts, peers):
        part()
        print()
        sys.stdout.flush()
