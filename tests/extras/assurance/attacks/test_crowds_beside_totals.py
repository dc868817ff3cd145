"""Attackers who are told the number of people present, and those for whom a secret is given its household."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
from attack_cases import crowds
from oracle.laws import BITS, exact_exp
from oracle.leaking import joint_losses_with, shown_table, total_present

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group, is_admitted
from pkdp_pipeline.extras.assurance.attacks.days import tabulated
from pkdp_pipeline.extras.assurance.attacks.enumeration import enumerated
from pkdp_pipeline.extras.assurance.attacks.matching import knowing_all, matching

TOTAL = pkdp.Leakage.total()


@pytest.mark.parametrize("seed", range(40))
def test_the_total_is_enumerated_as_the_oracle_has_it(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    epsilon, noise = float(rng.uniform(0, 2)), float(rng.uniform(0.2, 3)) if rng.random() < 0.5 else None
    release = int(rng.integers(0, 6)) if noise is not None and rng.random() < 0.6 else None
    k = int(rng.integers(1, 4)) if rng.random() < 0.8 else None
    cells, m, b = int(rng.integers(1, 3)) if noise else 3, int(rng.integers(0, 3)), int(rng.integers(0, 2))
    chances = rng.dirichlet([1] * (cells + 1), m + b)[:, :cells].tolist()
    controlled = (0,) * cells if b else tuple(rng.integers(0, 2, cells).tolist())
    value = cells > 1 and rng.random() < 0.6
    people = [Group(people=1, chances=tuple(row)) for row in chances]
    second = 1 if value else None
    crowd = Crowd(
        cells=cells,
        unknown=tuple(people[:m]),
        known=tuple(people[m:]),
        controlled=controlled,
        second=second,
        sees_total=True,
    )
    with flint.ctx.workprec(BITS):
        rows = [[*map(flint.arb, row), 1 - sum(map(flint.arb, row))] for row in chances]
        alpha = None if noise is None else exact_exp(-noise)
        shown = shown_table(k, alpha, release, top=m + b + 2)
        growth = exact_exp(epsilon)
        wanted = joint_losses_with(rows[:m], controlled, (0, second), growth, shown, total_present, rows[m:])
    mechanism = pkdp.Histogram(
        k=k, noise=None if noise is None else pkdp.GeometricNoise(noise), release_threshold=release
    )
    for each, loss in zip((crowd, crowd.reversed()), wanted, strict=True):
        bounds = enumerated(mechanism, each, epsilon)
        assert bounds is not None
        assert bounds.lower <= bounds.upper
        assert float(bounds.lower) == pytest.approx(float(flint.arb(loss).mid()), rel=1e-12, abs=1e-18)
        # Who is told more learns no less.
        without = enumerated(mechanism, replace(each, sees_total=False), epsilon)
        assert without is not None
        assert without.lower <= bounds.upper


CERTIFIED = {
    "between": (pkdp.Histogram(k=12), {"p_max_between": 0.6}),
    "controlled": (pkdp.Histogram(k=12), {"p_max_between": 0.6, "known": 4, "influence": "active"}),
    "options": (pkdp.Histogram(), {"p_min": 0.2, "unknown": 10}),
}


@pytest.mark.parametrize("name", sorted(CERTIFIED))
def test_what_is_certified_beside_the_total_is_reached_and_not_exceeded(name: str) -> None:
    mechanism, fields = CERTIFIED[name]
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(leakage=TOTAL, **fields), protects="value")
    delta, attained = Fraction(certificate.delta(0.5)), Fraction(0)
    listed = crowds(certificate, 0.5)
    for crowd in listed[:40]:
        assert crowd.sees_total
        assert is_admitted(crowd, certificate)
        bounds = enumerated(mechanism, crowd, 0.5)
        assert bounds is not None
        assert bounds.lower <= delta
        attained = max(attained, bounds.lower)
    assert attained > Fraction(99, 100) * delta


def test_a_number_certified_without_the_total_is_exceeded_with_it() -> None:
    # Theorem B hides which suppressed cell somebody is in; the total gives it away, and the crowds find that.
    plain = pkdp.certify(pkdp.Histogram(k=6), pkdp.AttackerModel(p_max=0.4), protects="value")
    exceeded = False
    for crowd in matching(plain, 1.0):
        bounds = enumerated(plain.mechanism, replace(crowd, sees_total=True), 1.0)
        exceeded = exceeded or (bounds is not None and bounds.lower > Fraction(plain.delta(1.0)))
    assert exceeded
    # Presence: the total says it, whatever the table does.
    (crowd, *_) = matching(pkdp.certify(pkdp.Histogram(k=6), pkdp.AttackerModel(p_max=0.4)), 1.0)
    bounds = enumerated(pkdp.Histogram(k=6), replace(crowd, unknown=(), sees_total=True), 50.0)
    assert bounds is not None
    assert bounds.lower == 1


def test_who_sees_the_total_has_to_be_declared_to() -> None:
    plain = pkdp.certify(pkdp.Histogram(k=12), pkdp.AttackerModel(p_max_between=0.6), protects="value")
    beside = pkdp.certify(pkdp.Histogram(k=12), pkdp.AttackerModel(p_max_between=0.6, leakage=TOTAL), protects="value")
    for crowd in matching(plain, 1.0):
        assert not crowd.sees_total
        assert is_admitted(crowd, beside)
        assert not is_admitted(replace(crowd, sees_total=True), plain)
        assert is_admitted(replace(crowd, sees_total=True), beside)
    # What only follows from who is present, and is coarser than their number, is not taken for it.
    coarse = pkdp.Leakage("their number in thousands", tells="people_present", shared_by=("presence",))
    rough = pkdp.certify(
        pkdp.Histogram(noise=pkdp.GeometricNoise(1.0)), pkdp.AttackerModel(leakage=coarse), protects="presence"
    )
    assert not any(crowd.sees_total for crowd in knowing_all(rough))


def test_tables_do_not_look_at_the_total_and_stay_below_the_truth() -> None:
    mechanism = pkdp.Histogram(k=5)
    sure = Group(people=14, chances=(0.6, 0.4))
    unsure = Group(people=14, chances=(0.4, 0.3))
    for group in (sure, unsure):
        crowd = Crowd(cells=2, unknown=(group,), second=1, sees_total=True)
        exact = enumerated(mechanism, crowd, 0.3)
        attained = tabulated(mechanism, crowd, 0.3)
        assert exact is not None
        assert 0.0 < attained <= float(exact.upper)
        # Nobody who is surely present is counted by a total: there the tables come close.
        assert attained > (0.999 if group is sure else 0.0) * float(exact.lower)


def test_a_count_of_everybody_tells_whether_somebody_is_there_and_not_where() -> None:
    people = (Group(people=3, chances=(0.25, 0.5)),)
    where = Crowd(cells=2, unknown=people, second=1, sees_total=True)
    whether = Crowd(cells=2, unknown=people, second=None)
    for crowd in (where, where.reversed(), replace(where, sees_total=False)):
        bounds = enumerated(pkdp.Count(), crowd, 0.0)
        assert bounds is not None
        assert bounds.lower == bounds.upper == 0
    bounds = enumerated(pkdp.Count(), whether, 0.0)
    alone = enumerated(pkdp.Count(), Crowd(cells=1, unknown=(Group(people=3, chances=(0.75,)),)), 0.0)
    assert bounds is not None
    assert alone is not None
    assert bounds.lower == alone.lower > 0
    with pytest.raises(ArgumentError, match="enumerated, not tabulated"):
        tabulated(pkdp.Count(), where, 0.5)


@pytest.mark.parametrize("noise", [None, 3.0])
def test_a_secret_given_its_household_is_tried_by_those_who_know_everybody_else(noise: float | None) -> None:
    mechanism = pkdp.Count(noise=None if noise is None else pkdp.GeometricNoise(noise))
    attacker = pkdp.AttackerModel(p_min=0.2, p_max=0.7, unknown=12, dependent="household", secret="conditional")
    certificate = pkdp.certify(mechanism, attacker)
    delta, attained = Fraction(certificate.delta(0.4)), Fraction(0)
    for crowd in matching(certificate, 0.4):
        # Twelve of one household each, and all of their households, whatever they are.
        knowing_households = replace(crowd, controlled=(30,))
        assert is_admitted(crowd, certificate)
        assert is_admitted(knowing_households, certificate)
        alone, beside_households = (enumerated(mechanism, each, 0.4) for each in (crowd, knowing_households))
        assert alone is not None
        assert beside_households is not None
        assert float(alone.lower) == pytest.approx(float(beside_households.lower), rel=1e-12)
        assert beside_households.lower <= delta
        attained = max(attained, beside_households.lower)
    assert attained > Fraction(99, 100) * delta
    # Fewer unknown people than declared are not admitted, known ones or not.
    few = Crowd(cells=1, unknown=(Group(people=11, chances=(0.7,)),), controlled=(30,))
    assert not is_admitted(few, certificate)
