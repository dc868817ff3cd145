"""Who tries a certificate keeps to its declaration, reaches it where the theorem is exact, and never exceeds it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from attack_cases import EXACT, certified, crowds, drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.families import FAMILIES
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group, is_admitted, vertices
from pkdp_pipeline.extras.assurance.attacks.enumeration import enumerated
from pkdp_pipeline.extras.assurance.attacks.matching import knowing_all, matching


@thinned(6)
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize("name", sorted(EXACT))
def test_the_matching_attacker_reaches_an_exact_theorem_and_finds_a_lowered_number(name: str, epsilon: float) -> None:
    certificate = certified(name)
    delta = certificate.delta(epsilon)
    attained = Fraction(0)
    for crowd in matching(certificate, epsilon):
        assert is_admitted(crowd, certificate)
        bounds = enumerated(certificate.mechanism, crowd, epsilon)
        assert bounds is not None
        assert bounds.lower <= Fraction(delta)
        attained = max(attained, bounds.lower)
    # The certified number is sound, and nine tenths of it would not be.
    assert attained > Fraction(0.99 * delta)


@settings(max_examples=few(15))
@given(st.sampled_from(sorted(FAMILIES)), st.integers(0, 10_000), st.floats(0.0, 3.0), st.data())
def test_no_admitted_crowd_tells_more_than_is_certified(
    family: str, seed: int, epsilon: float, data: st.DataObject
) -> None:
    certificate = drawn(family, seed)
    listed = crowds(certificate, epsilon)
    assert listed
    delta = Fraction(certificate.delta(epsilon))
    start = data.draw(st.integers(0, 7))
    for crowd in listed[start::8]:
        assert is_admitted(crowd, certificate)
        bounds = enumerated(certificate.mechanism, crowd, epsilon)
        assert bounds is None or bounds.lower <= delta, crowd


@thinned(2)
@pytest.mark.parametrize("family", ["thresholding", "presence", "value", "anybody"])
def test_nobody_who_knows_everybody_exceeds_the_worst_case(family: str) -> None:
    checked = 0
    for seed in range(200):
        certificate = drawn(family, seed)
        if certificate.worst_case_bound is None or checked > 100:
            continue
        for crowd in knowing_all(certificate):
            for epsilon in (0.0, 0.7, 2.5):
                bounds = enumerated(certificate.mechanism, crowd, epsilon)
                assert bounds is not None
                assert bounds.lower <= Fraction(certificate.worst_case.delta(epsilon))
                checked += 1
    assert checked > 20


def test_all_vertices_of_a_small_instance_are_there() -> None:
    box = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.1, p_max=0.4, unknown=5))
    five = {crowd for crowd in vertices(box) if sum(group.people for group in crowd.unknown) == 5}
    kinds = {tuple(sorted((group.chances[0], group.people) for group in crowd.unknown)) for crowd in five}
    for high in range(6):
        parts = [(0.1, 5 - high), (0.4, high)]
        assert tuple(part for part in parts if part[1]) in kinds
    assert {crowd.reversed() for crowd in five} == five
    table = pkdp.certify(pkdp.Histogram(k=3), pkdp.AttackerModel(p_max=0.5), protects="value")
    shapes = {group.chances for crowd in vertices(table) for group in crowd.unknown}
    assert {(0.5, 0.0), (0.0, 0.5), (0.0, 0.0)} < shapes
    # In both cells as likely as p_max allows: a third each.
    assert any(min(shape) > 0.333 for shape in shapes)


def _admits(declared: dict[str, object], crowd: Crowd, mechanism: object, protects: str = "presence") -> bool:
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(**declared), protects=protects)
    return is_admitted(crowd, certificate)


def test_whoever_breaks_the_declaration_is_not_admitted() -> None:
    count, table = pkdp.Count(k=5), pkdp.Histogram(k=5)
    ten = Crowd(cells=1, unknown=(Group(people=10, chances=(0.3,)),))
    assert _admits({"p_max": 0.3}, ten, count)
    assert not _admits({"p_max": 0.29999999999999993}, ten, count)
    assert not _admits({"p_max": 0.3, "unknown_max": 9}, ten, count)
    assert not _admits({"p_max": 0.3, "p_min": 0.2, "unknown": 11}, ten, count)
    assert not _admits({"p_max": 0.4, "p_min": 0.35, "unknown": 2}, ten, count)
    assert _admits({"p_max": 0.3, "unknown_max": 10}, replace(ten, unknown=(*ten.unknown, _absent(50))), count)
    with_known = replace(ten, known=(Group(people=2, chances=(0.3,)),))
    assert _admits({"p_max": 0.3, "known": 2}, with_known, count)
    assert not _admits({"p_max": 0.3, "known": 1}, with_known, count)
    with_controlled = replace(ten, controlled=(2,))
    assert _admits({"p_max": 0.3, "known": 2, "influence": "active"}, with_controlled, count)
    assert not _admits({"p_max": 0.3, "known": 2}, with_controlled, count)
    # p_max of a table is conditional: a third each, absent a third, is 1/2 told "this cell or absent".
    thirds = Crowd(cells=2, unknown=(Group(people=4, chances=(0.33, 0.33)),), first=0, second=1)
    assert _admits({"p_max": 0.5}, thirds, table, "value")
    assert not _admits({"p_max": 0.34}, thirds, table, "value")
    assert not _admits({"p_max": 0.5}, replace(thirds, second=None), table, "value")
    lopsided = replace(thirds, unknown=(Group(people=4, chances=(0.4, 0.3)),))
    assert _admits({"p_max_between": 0.6}, lopsided, table, "value")
    assert not _admits({"p_max_between": 0.55}, lopsided, table, "value")


def _absent(people: int) -> Group:
    return Group(people=people, chances=(0.0,))


def test_a_crowd_is_checked_when_it_is_made() -> None:
    with pytest.raises(pkdp.ArgumentError, match="more than 1"):
        Group(people=1, chances=(0.6, 0.6))
    with pytest.raises(pkdp.ArgumentError, match="2 chances"):
        Crowd(cells=2, unknown=(_absent(1),))
    with pytest.raises(pkdp.ArgumentError, match="must differ"):
        Crowd(cells=1, first=0, second=0)
    with pytest.raises(pkdp.ArgumentError, match="a life is"):
        Crowd(cells=1, first=1)
