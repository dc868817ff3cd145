"""No random attacker learns more from histograms without a threshold than the certificate says."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.attacks import search
from oracle.releases import table_losses
from thorough import CLOSEST, examples

import pkdp_pipeline as pkdp


@examples(quick=25, full=150)
def test_no_attacker_learns_more_about_the_option(examples: int) -> None:
    attackers, worst = search("options", examples=examples, batch=8)
    assert attackers >= examples * 8 * 62 // 100
    assert worst > CLOSEST[examples >= 150]


@examples(quick=25, full=150)
def test_no_attacker_learns_more_about_who_is_in_a_cell(examples: int) -> None:
    attackers, worst = search("cells", examples=examples, batch=8)
    assert attackers >= examples * 8 * 62 // 100
    assert worst > CLOSEST[examples >= 150]


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
def test_two_options_are_one_count(epsilon: float) -> None:
    # Whoever did not choose the one option chose the other: the table says no more than a count of fair coins.
    truth = max(table_losses([[0.5, 0.5, 0.0]] * 7, (0, 0), epsilon, np.exp, cells=2, lives=(0, 1)))
    certified = pkdp.certify(pkdp.Histogram(), pkdp.AttackerModel(p_min=0.5, unknown=7), protects="value")
    assert truth * (1 - 1e-12) <= certified.delta(epsilon) <= 1.01 * truth
