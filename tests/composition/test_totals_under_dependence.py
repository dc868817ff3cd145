"""Bounded dependence: the exact total of another day is a release like any other, and pays for what it depends on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle.dependence import measured_dependence
from oracle.joint import Day, crowd
from oracle.laws import losses
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.context import Context

TOLD = pkdp.AttackerModel(leakage=pkdp.Leakage.total())
TOTAL = pkdp.certify(pkdp.Count(), TOLD, protects="value")


def table(k, people, most=0.5):
    attacker = pkdp.AttackerModel(p_max_between=most, unknown_max=people, leakage=pkdp.Leakage.total())
    return pkdp.certify(pkdp.Histogram(k=k), attacker, protects="value")


def on(certificate, period, dataset="census"):
    return certificate.in_context(Context(unit=("id",), period=period, dataset=dataset))


def joint_law(people, k, cell):
    """Return the joint law of the first day's table from k on and of the second day's total, in one life."""
    law = {}
    for (today, after), weight in crowd(people, [Day(cells=2), Day(cells=1)]).items():
        counts = [count + (cell == place) for place, count in enumerate(today)]
        outputs = tuple(count if count >= k else None for count in counts), sum(after)
        law[outputs] = law.get(outputs, 0.0) + weight
    return law


def returning(share, again):
    """Return a person in one of two cells, whose chance to come again depends on the cell."""
    law = {}
    for cell, chance in ((0, share), (1, 1 - share)):
        law[cell, 0], law[cell, None] = chance * again[cell], chance * (1 - again[cell])
    return law


@thinned(3)
@pytest.mark.parametrize("seed", range(12))
def test_another_days_total_pays_for_its_dependence(seed):
    rng = np.random.default_rng([seed, 5])
    number = int(rng.integers(2, 6))
    k, most = int(rng.integers(2, number + 1)), float(rng.uniform(0.5, 0.7))
    people = [returning(float(rng.uniform(1 - most, most)), rng.uniform(0.2, 0.8, 2)) for _ in range(number)]
    if seed == 0:
        number, k, most = 4, 4, 0.5
        people = [returning(0.5, (0.6, 0.4))] * number
    part = table(k, number, min(1.0, most * (1 + 1e-12)))
    laws = [joint_law(people, k, cell) for cell in (0, 1)]
    needed = max(measured_dependence(first, second, 1) for first, second in (laws, laws[::-1]))
    total = pkdp.compose([part, TOTAL], pkdp.BoundedDependence(needed * (1 + 1e-9) + 1e-12))
    for epsilon in (0.0, 0.2, 0.6, 1.0, 1.7):
        true = max(losses(*laws, math.exp(epsilon)))
        assert true <= total.delta(epsilon) * (1 + 1e-9) + 1e-12
        if seed == 0 and epsilon in (0.0, 0.2, 1.0):
            # The table alone promises less than both tell.
            assert true > part.delta(epsilon) * (1 + 1e-6)


def test_a_total_counts_as_part_of_the_table_of_its_own_day():
    part, evidence = table(100, None, 0.6), pkdp.BoundedDependence(0.3)
    same = pkdp.compose([on(part, "2020"), on(TOTAL, "2020")], evidence)
    assert same.delta(1.0) == part.delta(1.0)
    for others in (on(TOTAL, "2021"), on(TOTAL, "2020", "births"), TOTAL):
        apart = pkdp.compose([on(part, "2020"), others], evidence)
        assert apart.delta(1.3) == pytest.approx(part.delta(1.0), rel=0.15)
        assert apart.delta(1.3) >= part.delta(1.0)
        assert apart.delta(0.2) == 1.0
        assert pkdp.Certificate.from_json(apart.to_json()).verify()
    both = [on(part, "2020"), on(TOTAL, "2020"), on(part, "2021"), on(TOTAL, "2021")]
    assert pkdp.compose(both, evidence).delta(2.0) == pkdp.compose(both[::2], evidence).delta(2.0)
    noised = pkdp.certify(pkdp.Histogram(noise=pkdp.GeometricNoise(0.1)), TOLD, protects="value")
    worst = pkdp.compose([(noised, 2), (TOTAL, 5)], evidence).worst_case
    assert worst.parameters == pkdp.compose([(noised, 2)], evidence).worst_case.parameters


def test_a_total_of_another_data_set_is_of_others():
    part = table(100, None, 0.6)
    with pytest.raises(pkdp.NoEvidenceError, match="another period or table"):
        pkdp.compose([on(part, "2020"), on(TOTAL, "2020", "births")])
