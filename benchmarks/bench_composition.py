"""Time totals of a year of releases, and dp-accounting on the same pairs in the same run.

Run with ``python benchmarks/bench_composition.py``. Times are in milliseconds, cold: nothing about the total is
kept from an earlier one, but the modules are imported. The peer composes the privacy-loss distribution of one
day, given by the same two laws, with itself; it looks at one direction only. The `lower` column is the score test on
the dominating pairs: the true ε lies between it and ours.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from scipy import stats

from pkdp_pipeline.composition import convolution
from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import Directions, directions
from pkdp_pipeline.composition.score_attack import score_test
from pkdp_pipeline.theorems import bound
from pkdp_pipeline.theorems.bound import NoiseLosses
from pkdp_pipeline.theorems.counting import Counting
from pkdp_pipeline.theorems.hull import hull_atoms
from pkdp_pipeline.theorems.numerics import smallest_epsilon
from pkdp_pipeline.theorems.thresholding import Thresholding
from pkdp_pipeline.theorems.waiting_pair import waiting_pair

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from oracle.scores import scores_of_pair

DAYS = 365
Kinds = Sequence[tuple[int, float, int]]


def cold(task: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """Return the median time in milliseconds, with all caches emptied before each run, and the last result."""
    times = []
    for _ in range(runs):
        for cache in (convolution._spread, bound._pair, hull_atoms):
            cache.cache_clear()
        convolution._KEPT_LAWS.clear()
        start = time.perf_counter()
        result = task()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times), result


def presence(k: int, p: float) -> Directions:
    return directions((Thresholding(theorem="histogram_presence", k=k, p=p),), "presence")


def total(kinds: Kinds) -> Convolved:
    return Convolved(theorem="independent_given_habits", parts=tuple((presence(k, p), times) for k, p, times in kinds))


def lower(kinds: Kinds, target: float) -> float:
    """Return the ε at which the score test on the right pairs attains `target`."""
    step = min(1.0 / math.sqrt((k - 1) * (1.0 - p)) for k, p, _ in kinds) / 40
    days = [(scores_of_pair(waiting_pair(k - 1, p, None, 1e-90), "right", step), times) for k, p, times in kinds]

    def reached(epsilon: float) -> float:
        rate, position = 0.1 * step, epsilon / step
        while rate < 4.0 and sum(times * scores.first.tilted(rate).mean for scores, times in days) < position:
            rate *= math.sqrt(2.0)
        return score_test(days, epsilon, step, rate)[0]

    return smallest_epsilon(reached, target, 1e-2)


def peer_day(k: int, p: float) -> Any:
    """Return the peer's loss distribution of one day."""
    first, second = stats.nbinom(k - 1, p), stats.nbinom(k, p)
    trials = np.arange(k - 1, int(second.ppf(1 - 1e-15)) + k + 1)
    laws = (first.logpmf(trials - (k - 1)), second.logpmf(trials - k))
    upper, under = ({int(m): float(x) for m, x in zip(trials, law, strict=True) if np.isfinite(x)} for law in laws)
    return privacy_loss_distribution.from_two_probability_mass_functions(under, upper)


def line(*cells: object) -> None:
    """Print one row of the report."""
    print(" | ".join(str(cell).ljust(width) for cell, width in zip(cells, (44, 12, 20, 12, 12, 14), strict=False)))


def equal_days() -> None:
    """A year of equal releases, every number of days in each direction."""
    line("365 equal releases, ε(1e-9)", "ours, ms", "lower … ours", "width, %", "peer, ms", "peer ε")
    for k, p in ((50, 0.1), (20, 0.05), (1_000, 0.1)):
        kinds = ((k, p, DAYS),)
        ours, epsilon = cold(lambda kinds=kinds: total(kinds).smallest_epsilon(1e-9), 7)
        least = lower(kinds, 1e-9)
        theirs, other = cold(lambda k=k, p=p: peer_day(k, p).self_compose(DAYS).get_epsilon_for_delta(1e-9), 3)
        line(
            f"k = {k}, p_max = {p}, presence",
            f"{ours:.1f}",
            f"{least:.4f} … {epsilon:.4f}",
            f"{100 * (epsilon / least - 1):.3f}",
            f"{theirs:.0f}",
            f"{other:.3f} ({100 * (other / epsilon - 1):+.1f} %)",
        )


def small_deltas() -> None:
    """Where the peer's transform loses its digits: it then reports too much, or less than the score test attains."""
    line("δ at our ε for a δ", "our δ", "lower / ours", "peer / lower")
    for k, p, days in ((50, 0.1, DAYS), (200, 0.3, 100), (50, 0.1, 30)):
        year = total(((k, p, days),))
        step = 1.0 / math.sqrt((k - 1) * (1.0 - p)) / 100
        scores = scores_of_pair(waiting_pair(k - 1, p, None, 1e-90), "right", step)
        composed = peer_day(k, p).self_compose(days)
        for target in (1e-6, 1e-12, 3e-14, 1e-14, 1e-15, 1e-30):
            epsilon = year.smallest_epsilon(target)
            rate, position = 0.1 * step, epsilon / step
            while days * scores.first.tilted(rate).mean < position:
                rate *= math.sqrt(2.0)
            least, _ = score_test([(scores, days)], epsilon, step, rate)
            other = float(composed.get_delta_for_epsilon(epsilon))
            name = f"k = {k}, p_max = {p}, {days} days, ε = {epsilon:.3f}"
            line(name, f"{target:.0e}", f"{least / target:.4f}", f"{other / least:.3g}")


def different_days() -> None:
    """A year of releases no two of which are alike,."""
    line("365 different releases, ε(1e-9)", "ours, ms", "right order … ours", "width, %", "lower")
    rows: dict[str, Kinds] = {
        "k = 20 … 384, p_max = 0.1": [(20 + day, 0.1, 1) for day in range(DAYS)],
        "k = 50, p_max = 0.02 … 0.2": [(50, 0.02 + 0.0005 * day, 1) for day in range(DAYS)],
    }
    for name, kinds in rows.items():
        ours, epsilon = cold(lambda kinds=kinds: total(kinds).smallest_epsilon(1e-9), 3)
        year = total(kinds)
        year.smallest_epsilon(1e-9)
        one_way = tuple((Directions(right=part.right), times) for part, times in year.parts)
        least = Convolved(theorem="independent_given_habits", parts=one_way).smallest_epsilon(1e-9)
        line(
            name,
            f"{ours:.0f}",
            f"{least:.4f} … {epsilon:.4f}",
            f"{100 * (epsilon / least - 1):.2f}",
            f"{lower(kinds, 1e-9):.4f}",
        )


def other_kinds() -> None:
    """Weekdays and weekends, counts, noise."""
    line("a year of other releases, ε(1e-9)", "ours, ms", "ε")
    weeks: Kinds = ((50, 0.1, 261), (30, 0.1, 104))
    ours, epsilon = cold(lambda: total(weeks).smallest_epsilon(1e-9), 5)
    line("261 with k = 50, 104 with k = 30", f"{ours:.1f}", f"{epsilon:.4f}")
    bound = Counting(theorem="counting", unknown=10_000, p_min=0.1, p_max=0.9)

    def counts() -> float:
        part = directions((bound,), "presence")
        return Convolved(theorem="independent_given_habits", parts=((part, DAYS),)).smallest_epsilon(1e-9)

    ours, epsilon = cold(counts, 3)
    line("counts of 10,000, p in [0.1, 0.9]", f"{ours:.0f}", f"{epsilon:.4f}")

    def noise() -> float:
        part = Directions(right=NoiseLosses(noise=0.1, cells=1))
        return Convolved(theorem="worst_case_parts", parts=((part, DAYS),)).smallest_epsilon(1e-9)

    ours, epsilon = cold(noise, 7)
    line("noise, ε0 = 0.1", f"{ours:.1f}", f"{epsilon:.4f}")


if __name__ == "__main__":
    for part in (equal_days, small_deltas, different_days, other_kinds):
        part()
        print()
        sys.stdout.flush()
