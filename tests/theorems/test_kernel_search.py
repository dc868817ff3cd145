"""The search of any kernel: never below what any number of people tells, and reached, for kernels drawn at random."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

from pkdp_pipeline.theorems.channel import ExactFromK, Kernel, Mixed
from pkdp_pipeline.theorems.kernel_search import Coins, KernelSearch, _envelope, supremum
from pkdp_pipeline.theorems.noisy_threshold import NoisyThreshold
from pkdp_pipeline.theorems.numerics import UNIT

SLACK = 5e-4


@dataclass(frozen=True, eq=False)
class Drawn(Kernel):
    """Any kernel: a row of chances of symbols for each small count; larger ones are told."""

    rows: np.ndarray
    least = 0

    @property
    def for_large_counts(self):
        return ExactFromK(0, None, 1.0), len(self.rows)

    def budget(self, counts):
        return (len(self.rows) + 4.0) * UNIT

    def published(self, laws):
        return np.hstack([laws[:, len(self.rows) :], laws[:, : len(self.rows)] @ self.rows])


@dataclass(frozen=True)
class Suppressed(Kernel):
    """Theorem D's kernel: suppressed below k, noised, suppressed below the release threshold, plainly."""

    k: int
    release: int
    noise: float
    least = 0

    @property
    def for_large_counts(self):
        return ExactFromK(0, None, self.noise), self.k

    def budget(self, counts):
        return 1e-13

    def published(self, laws):
        counts, alpha = np.arange(laws.shape[1])[:, None], math.exp(-self.noise)
        values = np.arange(self.release, laws.shape[1] + 1)
        chances = (1.0 - alpha) / (1.0 + alpha) * alpha ** np.abs(counts - values)
        chances[:, -1] /= 1.0 - alpha  # the largest value, and all beyond
        hides = np.where(
            self.release > counts, 1.0 - alpha ** np.maximum(0, self.release - counts) / (1.0 + alpha), 0.0
        )
        hides += np.where(
            self.release <= counts, alpha ** np.maximum(1, 1 - self.release + counts) / (1.0 + alpha), 0.0
        )
        shown = (counts >= self.k) * chances
        return np.hstack([laws @ shown, laws @ np.where(counts >= self.k, hides, 1.0)])


def law(m, p):
    """Return the law of m coins."""
    return np.array([math.comb(m, x) * p**x * (1.0 - p) ** (m - x) for x in range(m + 1)])


def exact_divergence(kernel, m, p, epsilon):
    """Return the larger divergence beside m people, straight from its definition."""
    absent, present = np.append(law(m, p), 0.0), np.append(0.0, law(m, p))
    width = max(len(absent), kernel.for_large_counts[1] + 1)
    lives = [kernel.published(np.pad(life, (0, width - len(life)))[None])[0] for life in (present, absent)]
    growth = math.exp(epsilon)
    return max(np.maximum(0.0, a - growth * b).sum() for a, b in (lives, lives[::-1]))


@st.composite
def kernels(draw):
    if draw(st.booleans()):
        release = draw(st.one_of(st.none(), st.integers(-3, 9)))
        kernel = ExactFromK(draw(st.integers(2, 7)), release, draw(st.sampled_from([0.3, 1.0])), draw(st.booleans()))
        return (
            Mixed((kernel, ExactFromK(kernel.k - 1, release, kernel.noise)), (0.7, 0.3))
            if draw(st.booleans())
            else kernel
        )
    rows = (
        np.random.default_rng(draw(st.integers(0, 10**6))).random((draw(st.integers(1, 6)), draw(st.integers(1, 4))))
        ** 4
    )
    return Drawn(rows / rows.sum(axis=1, keepdims=True))


@settings(max_examples=few(60, 12), deadline=None)
@given(
    kernels(), st.sampled_from([0.05, 0.3, 0.6, 0.95]), st.sampled_from([0.0, 0.02, 0.2, 0.9, 2.0]), st.integers(0, 40)
)
def test_the_search_is_reached_and_never_exceeded(kernel, p, epsilon, most):
    (best,), (top,), _, (leader,) = supremum(kernel, Coins(p, most), np.array([epsilon]), SLACK)
    exact = [exact_divergence(kernel, m, p, epsilon) for m in range(most + 1)]
    assert best <= exact[leader] * (1.0 + 1e-9) + 1e-14
    assert max(exact) * (1.0 - 1e-9) - 1e-13 <= top <= max(best * (1.0 + SLACK), best + 1e-12) * (1.0 + 1e-9)


@settings(max_examples=few(200, 20), deadline=None)
@given(
    kernels(),
    st.sampled_from([0.02, 0.2, 0.5, 0.9]),
    st.sampled_from([0.0, 0.1, 0.5, 2.0]),
    st.tuples(st.integers(0, 30), st.integers(2, 20)),
)
def test_every_number_in_a_block_is_bounded(kernel, p, epsilon, block):
    first, distance = block
    search = KernelSearch(kernel, Coins(p), np.array([epsilon]), SLACK)
    bound = float(search.between(first, first + distance, np.array([0]))[0])
    exact = [exact_divergence(kernel, m, p, epsilon) for m in range(first, first + distance + 1)]
    assert max(exact) <= bound * (1.0 + 1e-9) + 1e-13
    if p * distance <= 0.2:
        assert bound <= 2.0 * max(exact) + 1e-3


@settings(max_examples=few(60, 15), deadline=None)
@given(kernels(), st.sampled_from([0.2, 0.6, 0.9]), st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 25))
def test_more_people_than_some_are_bounded_by_these(kernel, p, epsilon, people):
    bound = float(KernelSearch(kernel, Coins(p), np.array([epsilon]), SLACK)._beyond(people)[0])
    for more in (0, 1, 3, 9, 20):
        assert exact_divergence(kernel, people + more, p, epsilon) <= bound * (1.0 + 1e-9) + 1e-13


@pytest.mark.parametrize(("k", "release", "noise", "p"), [(5, 8, 1.0, 0.3), (10, 20, 0.5, 0.1), (4, 4, 2.0, 0.7)])
def test_the_numbers_of_theorem_d_are_those_of_its_kernel(k, release, noise, p):
    epsilons = np.array([0.05, 0.3, 0.9, 1.4])
    bound = NoisyThreshold(theorem="noisy_thresholding", k=k, p=p, noise=noise, release_threshold=release, cap=60)
    attained, certified = bound.bracket(epsilons)
    best, top, _, _ = supremum(Suppressed(k, release, noise), Coins(p, 60), epsilons, SLACK)
    assert np.all(best <= certified * (1.0 + 1e-9))
    assert np.all(attained <= top * (1.0 + 1e-9))
    assert np.all(top <= 1.001 * best)


@pytest.mark.parametrize("p", [1e-6, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("number", [1, 2, 7, 60])
def test_an_envelope_is_above_all_laws(number, p):
    envelope = _envelope(number, p, 46.0)
    for m in range(number + 1):
        weights = law(m, p)[: len(envelope)]
        assert np.all(weights <= envelope[: len(weights)])
        assert law(m, p)[len(envelope) :].sum() <= math.exp(-46.0)


def test_what_is_hardly_told_is_told_apart_all_the_same():
    kernel, epsilon = ExactFromK(12, 200, 1.0), np.array([0.9])
    (best,), (top,), _, _ = supremum(kernel, Coins(0.001, 10), epsilon, SLACK)
    exact = max(exact_divergence(kernel, m, 0.001, 0.9) for m in range(11))
    assert exact < 1e-40
    assert best == pytest.approx(exact, rel=1e-6)
    assert exact <= top <= 1.001 * exact
