"""No random attacker learns more from a thresholded count than its certificate says."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.attacks import search
from oracle.releases import count_losses
from thorough import CLOSEST, examples

import pkdp_pipeline as pkdp


@examples(quick=15, full=350)
def test_no_attacker_exceeds_the_certificate_of_a_thresholded_count(examples: int) -> None:
    # Known people, controlled or merely known; caps; boxes; noise and a second threshold after it.
    attackers, worst = search("thresholding", examples=examples, batch=12)
    assert attackers >= examples * 12 * 58 // 100
    assert worst > CLOSEST[examples >= 250]


@examples(quick=15, full=250)
def test_no_attacker_exceeds_the_certificate_of_a_two_sided_threshold(examples: int) -> None:
    attackers, worst = search("two_sided", examples=examples, batch=10)
    assert attackers >= examples * 10 * 45 // 100
    assert worst > CLOSEST[examples >= 250]


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("k", "p"), [(2, 0.5), (3, 0.05), (6, 0.9), (12, 0.3)])
def test_any_number_of_equal_people_stays_below_and_the_worst_number_attains(k: int, p: float, epsilon: float) -> None:
    certified = pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=p)).delta(epsilon)
    # The worst number of people is near k/p on the right and near k e^ε/p on the left.
    most = int(k + np.exp(epsilon) * k / p) + 3
    law, present = np.array([1.0]), []
    for _ in range(most):
        shown, hidden = np.append(0.0, law), np.append(law, 0.0)
        published = np.arange(len(shown)) >= k
        pairs = [(shown, hidden), (hidden, shown)]
        for first, second in pairs:
            gaps = first[published] - np.exp(epsilon) * second[published]
            dark = first[~published].sum() - np.exp(epsilon) * second[~published].sum()
            present.append(np.maximum(gaps, 0.0).sum() + max(0.0, dark))
        law = np.append(law, 0.0) * (1 - p) + np.append(0.0, law) * p
    assert certified == pytest.approx(max(present), rel=1e-9, abs=1e-13)


def test_a_revealed_person_moves_the_threshold() -> None:
    # k = 2, p = 1/2, ε = 0.5: nothing is told with no other person, and 0.5 with one.
    assert max(count_losses([], 0, 0.5, np.exp, k=2)) == 0.0
    assert max(count_losses([0.5], 0, 0.5, np.exp, k=2)) == pytest.approx(0.5)
    assert pkdp.certify(pkdp.Count(k=2), pkdp.AttackerModel(p_max=0.5)).delta(0.5) == pytest.approx(0.5, rel=1e-9)
