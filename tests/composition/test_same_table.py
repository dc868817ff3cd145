"""Rule 11: one table with several certificates counts with the largest of them, alone and beside other tables."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from oracle.pairs import capped_pair, product_divergence, reversed_pair

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import promised_by

EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 9.0])
TABLE = pkdp.Histogram(k=5)
CONTROLLING = pkdp.AttackerModel(p_max=0.2, known=2, influence="active", unknown_max=9)
SURE = pkdp.AttackerModel(p_max=0.5, unknown_max=9)


def certified(*attackers, mechanism=TABLE, protects="presence"):
    return [pkdp.certify(mechanism, attacker, protects=protects) for attacker in attackers]


def test_the_largest_is_attained():
    several = certified(CONTROLLING, SURE)
    total = pkdp.compose(several, pkdp.SameTable())
    alone = [certificate.delta(EPSILONS) for certificate in several]
    assert (alone[0] > alone[1]).any()
    assert (alone[0] < alone[1]).any()
    assert (total.delta(EPSILONS) == np.max(alone, axis=0)).all()
    attained, above = total.delta_bounds(EPSILONS)
    assert attained == pytest.approx(above, rel=1e-9)
    assert (total.rule, total.releases, total.protects) == ("same_table", 1, "presence")
    assert "anyone who fits one of these descriptions. Anyone " in total.sentence()
    assert "1 release: " in total.sentence()
    assert Certificate.from_json(total.to_json()).verify()


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_two_days_of_mixed_attackers_against_enumeration(epsilon):
    table = pkdp.compose(certified(CONTROLLING, SURE), pkdp.SameTable())
    total = pkdp.compose([(table, 2)], pkdp.IndependentGivenHabits()).delta(epsilon)
    pairs = [capped_pair(k, p, most) for k, p, most in ((3, 0.2, 9), (5, 0.5, 9))]
    both = [*pairs, *map(reversed_pair, pairs)]
    true = max(product_divergence(list(days), math.exp(epsilon)) for days in product(both, repeat=2))
    assert true <= total * (1 + 1e-12)
    assert total <= 1.2 * true


def test_equal_guarantees_leave_the_losses_as_they_are():
    several = certified(pkdp.AttackerModel(p_max=0.2), pkdp.AttackerModel(p_max=0.2, p_max_between=0.9))
    table = pkdp.compose(several, pkdp.SameTable())
    habits = pkdp.IndependentGivenHabits()
    assert pkdp.compose([(table, 4)], habits).epsilon(0.1) == pkdp.compose([(several[0], 4)], habits).epsilon(0.1)
    assert promised_by(several[:1]) is several[0]


@pytest.mark.parametrize("order", [1, -1])
def test_it_protects_what_the_first_does(order):
    presence, value = certified(SURE)[0], certified(pkdp.AttackerModel(p_max_between=0.9), protects="value")[0]
    first, second = (presence, value)[::order]
    total = pkdp.compose([first, second], pkdp.SameTable())
    assert total.protects == first.protects
    assert total.delta(1.0) == max(presence.delta(1.0), value.delta(1.0))
    # Beside a table that hides presence it hides that, as one of its certificates does.
    beside = pkdp.compose([total, presence], pkdp.OneDayProtected())
    assert (beside.protects, beside.delta(1.0)) == ("presence", total.delta(1.0))


def test_a_table_that_hides_the_cell_alone_is_not_added_to_one_that_hides_presence():
    attackers = pkdp.AttackerModel(p_max_between=0.9), pkdp.AttackerModel(p_max_between=0.6, known=1)
    table = pkdp.compose(certified(*attackers, protects="value"), pkdp.SameTable())
    assert table.protects == "value"
    with pytest.raises(pkdp.NoEvidenceError, match="protect different things"):
        pkdp.compose([table, *certified(SURE)], pkdp.OneDayProtected())


def test_noise_beside_different_leakages_counts_with_the_larger():
    noisy = pkdp.Count(noise=pkdp.GeometricNoise(0.3))
    leaking = pkdp.AttackerModel(leakage=pkdp.Leakage("a survey", epsilon=0.1))
    table = pkdp.compose(certified(pkdp.AttackerModel(), leaking, mechanism=noisy), pkdp.SameTable())
    assert table.worst_case.parameters == pytest.approx((0.4, 0.0))
    assert pkdp.compose([(table, 3)]).worst_case.parameters == pytest.approx((1.2, 0.0))
    assert pkdp.compose([(table, 30)], pkdp.BoundedParticipation(2)).worst_case.parameters == pytest.approx((1.6, 0.0))


@pytest.mark.parametrize(
    "several",
    [
        [pkdp.certify(pkdp.Count(k=5), SURE), pkdp.certify(pkdp.Count(k=6), SURE)],
        [pkdp.compose(certified(SURE)), *certified(SURE)],
    ],
)
def test_certificates_of_different_tables_are_refused(several):
    with pytest.raises(pkdp.NoEvidenceError, match="SameTable is about certificates of one table"):
        pkdp.compose(several, pkdp.SameTable())
