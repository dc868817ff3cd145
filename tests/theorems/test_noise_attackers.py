"""No attacker learns more from a noisy release than its certificate says: suppressed, noised, suppressed again."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.attacks import search
from oracle.releases import count_losses, noisy_cell, table_losses
from thorough import CLOSEST, examples, thinned

import pkdp_pipeline as pkdp


@examples(quick=12, full=200)
def test_no_attacker_exceeds_the_certificate_of_a_noisy_count(examples: int) -> None:
    attackers, worst = search("noisy_counting", examples=examples, batch=10)
    assert attackers >= examples * 10 * 45 // 100
    assert worst > CLOSEST[examples >= 200]


@examples(quick=15, full=200)
def test_nobody_at_all_exceeds_the_worst_case_guarantee(examples: int) -> None:
    attackers, worst = search("anybody", examples=examples, batch=8)
    assert attackers >= examples * 8 * 45 // 100
    assert worst > CLOSEST[examples >= 200]


@pytest.mark.parametrize("release", [None, 0, 2, 5, 9])
@pytest.mark.parametrize("k", [None, 1, 3])
def test_the_oracle_noise_is_a_law(k: int | None, release: int | None) -> None:
    for count in range(5):
        law = noisy_cell(count, 0.4, 4, k, release)
        assert sum(law.values()) == pytest.approx(1.0, abs=1e-14)
        assert min(law.values()) >= -1e-15


def test_merging_far_noise_loses_nothing() -> None:
    # The same count with a window wide enough that next to nothing is merged.
    chances, noise, epsilon = [0.2, 0.7, 0.4], 0.8, 0.35
    merged = count_losses(chances, 0, epsilon, np.exp, noise=noise)
    wide = count_losses([*chances, *[0.0] * 60], 0, epsilon, np.exp, noise=noise)
    assert merged == pytest.approx(wide, rel=1e-12)


@thinned(6)
@pytest.mark.parametrize(("k", "release"), [(1, 1), (2, 5), (4, 2), (3, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9, 1.0, 1.7, 2.0, 6.0])
@pytest.mark.parametrize("protects", ["presence", "value"])
def test_the_worst_case_is_attained_by_an_attacker_who_knows_all(
    protects: str, epsilon: float, k: int, release: int
) -> None:
    noise = 1.0
    mechanism = pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release)
    certified = pkdp.certify(mechanism, pkdp.AttackerModel(), protects=protects).delta(epsilon)
    truths = []
    large_count = k + release + 25
    counts = [0, k - 1, k, large_count]
    for first in counts:
        for second in counts:
            truths.extend(
                table_losses(
                    [],
                    (first, second),
                    epsilon,
                    np.exp,
                    cells=2,
                    lives=(0, 1) if protects == "value" else (0, 2),
                    k=k,
                    noise=noise,
                    release=release,
                )
            )
    assert certified >= max(truths) * (1 - 1e-12) - 1e-15
    assert certified == pytest.approx(max(truths), rel=1e-9, abs=1e-13)
