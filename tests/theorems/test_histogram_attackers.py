"""No random attacker learns more from a whole published table than its certificate says."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.attacks import search
from oracle.releases import table_losses
from thorough import CLOSEST, examples

import pkdp_pipeline as pkdp


@examples(quick=20, full=200)
def test_no_attacker_learns_more_about_presence(examples: int) -> None:
    attackers, worst = search("presence", examples=examples, batch=9)
    assert attackers >= examples * 9 * 45 // 100
    assert worst > CLOSEST[examples >= 200]


@examples(quick=20, full=200)
def test_no_attacker_learns_more_about_the_cell_through_absence(examples: int) -> None:
    attackers, worst = search("value", examples=examples, batch=9)
    assert attackers >= examples * 9 * 45 // 100
    assert worst > CLOSEST[examples >= 200]


@examples(quick=70, full=220)
def test_no_attacker_learns_more_about_the_cell_with_the_number_present_published(examples: int) -> None:
    attackers, worst = search("between", examples=examples, batch=9)
    assert attackers >= examples * 9 * 45 // 100
    assert worst > CLOSEST[examples >= 200]


def test_a_conditional_p_max_is_not_the_chance_of_the_cell() -> None:
    # Eight people, three equally likely cells, nobody absent: of the cell and absence, it is surely the cell.
    everybody = [[1 / 3, 1 / 3, 1 / 3, 0.0]] * 8
    truth = max(table_losses(everybody, (0, 0, 0), 5.0, np.exp, cells=3, lives=(0, 3), k=3))
    assert truth == pytest.approx(0.45, abs=0.005)
    misread = pkdp.certify(pkdp.Histogram(k=3), pkdp.AttackerModel(p_max=1 / 3)).delta(5.0)
    assert misread < truth
    with pytest.raises(pkdp.NotCertifiableError, match="nobody is ever absent"):
        pkdp.certify(pkdp.Histogram(k=3), pkdp.AttackerModel(p_max=1.0))


def test_binned_cells_need_the_p_max_of_the_bin() -> None:
    # Five raw values, each at most 0.1 against absence, make a bin of 0.36.
    odds = 5 * 0.1 / 0.9
    binned = odds / (1 + odds)
    assert binned == pytest.approx(0.357, abs=0.001)
    people = [[binned, 1 - binned]] * 4
    truth = max(table_losses(people, (0,), 1.0, np.exp, cells=1, lives=(0, 1), k=4))
    assert pkdp.certify(pkdp.Histogram(k=4), pkdp.AttackerModel(p_max=0.1)).delta(1.0) < truth
    assert pkdp.certify(pkdp.Histogram(k=4), pkdp.AttackerModel(p_max=binned)).delta(1.0) >= truth * (1 - 1e-12)


def test_a_published_total_of_those_present_undoes_presence() -> None:
    people = [[0.1, 0.1, 0.8]] * 4
    hidden = max(table_losses(people, (0, 0), 1.0, np.exp, cells=2, lives=(0, 2), k=4))
    with_total = max(table_losses(people, (0, 0), 1.0, np.exp, cells=2, lives=(0, 2), k=4, total=True))
    certified = pkdp.certify(pkdp.Histogram(k=4), pkdp.AttackerModel(p_max=1 / 9)).delta(1.0)
    assert hidden <= certified < with_total
