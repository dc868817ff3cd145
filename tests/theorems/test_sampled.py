"""Theorem S: a secret sample. Never below an attacker by enumeration, reached, and the exact vectors."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems.sampled import Sampled
from pkdp_pipeline.theorems.worst_case import NoiseCurve

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "rules.json").read_text(encoding="utf-8")
)["sampled_presence"]


def drawn(chances: list[Any], others: int = 0) -> list[Any]:
    """Return the law of how many are drawn, beside some who are for certain."""
    law: list[Any] = [*([0] * others), 1]
    for chance in chances:
        law = [a * (1 - chance) + b * chance for a, b in zip([*law, 0], [0, *law], strict=True)]
    return law


def published(law: list[Any], k: int) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for count, weight in enumerate(law):
        name = count if count >= k else None
        out[name] = out.get(name, 0) + weight
    return out


def divergence(first: dict[Any, Any], second: dict[Any, Any], growth: Any) -> Any:
    return sum(max(0, first.get(name, 0) - growth * second.get(name, 0)) for name in {*first, *second})


def presence(chances: list[Any], target: Any, k: int, growth: Any, others: int = 0) -> Any:
    """Return the larger divergence of a person with her record, who may be drawn, against nobody."""
    absent = published(drawn(chances, others), k)
    there = published(drawn([*chances, target], others), k)
    return max(divergence(there, absent, growth), divergence(absent, there, growth))


def test_exact_vectors_are_reproduced_and_never_undercut() -> None:
    for case in VECTORS:
        certificate = pkdp.certify(pkdp.Histogram(k=case["k"]), pkdp.AttackerModel(sampled=case["sampled"]))
        certified = certificate.delta(case["epsilon"])
        assert case["delta"] * (1 - 1e-13) <= certified <= case["delta"] * (1 + 1e-11), case


def test_exact_enumeration_is_reached() -> None:
    share = Fraction(1, 4)
    for k in (2, 3, 5):
        for growth in (Fraction(6, 5), Fraction(3, 2), Fraction(3)):
            epsilon = math.nextafter(math.log(growth), 0.0)
            exact = max(presence([share] * people, share, k, growth) for people in range(30))
            certified = pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(sampled=0.25)).delta(epsilon)
            assert exact <= Fraction(certified) <= exact * (1 + Fraction(1, 10**9))


@settings(max_examples=few(400, 20))
@given(
    st.integers(2, 6),
    st.floats(0.01, 0.9),
    st.lists(st.floats(0.0, 1.0), max_size=12),
    st.floats(0.0, 1.0),
    st.integers(0, 2),
    st.floats(0.0, 2.5),
)
def test_people_of_different_chances_never_tell_more(
    k: int, share: float, shares: list[float], target: float, known: int, epsilon: float
) -> None:
    attacker = pkdp.AttackerModel(sampled=share, known=known, influence="active")
    certified = pkdp.certify(pkdp.Histogram(k=k + known), attacker).delta(epsilon)
    chances = [part * share for part in shares]
    for others in range(known + 1):
        exact = presence(chances, target * share, k + known, math.exp(epsilon), others)
        assert certified >= exact * (1 - 1e-9) - 1e-15


@settings(max_examples=few(200, 10))
@given(
    st.integers(2, 4),
    st.floats(0.05, 0.8),
    st.lists(st.floats(0.0, 1.0), max_size=8),
    st.lists(st.floats(0.0, 1.0), max_size=8),
    st.floats(0.0, 2.5),
)
def test_the_value_is_never_above_the_product_of_both_cells(
    k: int, share: float, first: list[float], second: list[float], epsilon: float
) -> None:
    certified = pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(sampled=share), protects="value").delta(epsilon)
    cells = [[part * share for part in cell] for cell in (first, second)]
    alone = [published(drawn(cell), k) for cell in cells]
    joined = [published(drawn([*cell, share]), k) for cell in cells]
    lives = [
        {(x, y): a * b for x, a in one_cell.items() for y, b in other.items()}
        for one_cell, other in ((joined[0], alone[1]), (alone[0], joined[1]))
    ]
    exact = max(divergence(*pair, math.exp(epsilon)) for pair in (lives, lives[::-1]))
    assert certified >= exact * (1 - 1e-9) - 1e-15


def test_two_crowds_come_close_to_the_value() -> None:
    share, k, epsilon = 0.3, 3, 0.8
    certified = pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(sampled=share), protects="value").delta(epsilon)
    reached = 0.0
    for people in range(2, 16):
        for others in range(2, 16):
            laws = [[published(drawn([share] * (size + more)), k) for more in (1, 0)] for size in (people, others)]
            lives = [
                {(x, y): a * b for x, a in laws[0][way].items() for y, b in laws[1][1 - way].items()} for way in (0, 1)
            ]
            reached = max(reached, divergence(*lives, math.exp(epsilon)))
    # The product of both cells' dominating pairs is not that of one pair of crowds.
    assert reached <= certified <= reached * 1.2


def test_noise_is_amplified_exactly() -> None:
    # One person, noise of ε0 = log 2: e^ε = 1 + β (e^ε0 - 1).
    certificate = pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(math.log(2.0))), pkdp.AttackerModel(sampled=0.25))
    assert certificate.epsilon(0.0) == pytest.approx(math.log(1.25), rel=1e-10)
    alpha = 0.5
    for epsilon in (0.0, 0.1, 0.2):
        exact = 0.25 * max(0.0, 1.0 / (1 + alpha) - (1 + math.expm1(epsilon) / 0.25) * alpha / (1 + alpha))
        assert certificate.delta(epsilon) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("share", "noise"), [(1e-20, 2.0), (1e-12, 30.0), (0.5, 800.0), (1.0 - 2.0**-53, 5.0)])
def test_noise_is_amplified_exactly_in_tiny_samples_and_beyond_large_numbers(share: float, noise: float) -> None:
    with flint.ctx.workprec(4000):
        beta, alpha = flint.arb(share), (-flint.arb(noise)).exp()
        end = float((1 + beta * (1 / alpha - 1)).log().mid())
        for part in (0.0, 0.3, 0.999):
            epsilon, growth = part * end, flint.arb(part * end).exp()
            # β H_ε'(P ‖ Q) and a H_ε''(Q ‖ P) are gains of the first outcome, at e^ε' and e^ε''.
            rest = beta - (1 - beta) * (growth - 1)
            gains = (beta - alpha * (beta + growth - 1), rest - alpha * beta * growth)
            exact = max(flint.arb(0), *gains) / (1 + alpha)
            bound = Sampled(theorem="", base=NoiseCurve(theorem="noise", noise=noise), sampled=share)
            ((attained,), (certified,)) = bound.bracket(np.array([epsilon]))
            assert flint.arb(float(attained)) <= exact <= flint.arb(float(certified))
            assert certified <= float(exact.mid()) * (1.0 + 1e-9) or epsilon > 690.0


def test_the_smallest_k_of_offices() -> None:
    for share, k in ((0.1, 8), (0.05, 6), (0.01, 4), (0.5, 35)):
        deltas = [
            pkdp.certify(pkdp.Histogram(k=each), pkdp.AttackerModel(sampled=share)).delta(1.0) for each in (k - 1, k)
        ]
        assert deltas[1] <= 1e-6 < deltas[0]


def test_small_counts_may_be_noised_there_too() -> None:
    mechanism = pkdp.Histogram(k=8, below="noise", noise=pkdp.GeometricNoise(1.0))
    attacker = pkdp.AttackerModel(sampled=0.1)
    noised, hidden = (pkdp.certify(each, attacker) for each in (mechanism, pkdp.Histogram(k=8)))
    assert noised.delta(1.0) == pytest.approx(hidden.delta(1.0), rel=1e-6)
    assert noised.delta(0.05) > hidden.delta(0.05)


def test_draws_add_up_and_nothing_else_adds_them() -> None:
    release = pkdp.certify(pkdp.Histogram(k=8), pkdp.AttackerModel(sampled=0.1))
    totals = [pkdp.compose([release] * times, pkdp.IndependentDraws()).delta(1.0) for times in (1, 2, 8)]
    assert all(first < second for first, second in pairwise(totals))
    # Two draws of one person alone and k = 2 others: the product of the exact pairs, by enumeration.
    small = pkdp.certify(pkdp.Count(k=2), pkdp.AttackerModel(sampled=0.5))
    lives = [published(drawn([0.5] * people), 2) for people in (3, 2)]
    twice = [{(x, y): a * b for x, a in life.items() for y, b in life.items()} for life in lives]
    assert pkdp.compose([small] * 2, pkdp.IndependentDraws()).delta(0.5) >= divergence(*twice, math.exp(0.5))
    for evidence in (None, pkdp.IndependentGivenHabits(), pkdp.OneDayProtected()):
        with pytest.raises(pkdp.NoEvidenceError):
            pkdp.compose([release] * 2, evidence)
    habits = pkdp.certify(pkdp.Histogram(k=30), pkdp.AttackerModel(p_max=0.1))
    with pytest.raises(pkdp.NoEvidenceError, match="secret samples"):
        pkdp.compose([habits, release], pkdp.IndependentDraws())


def test_one_sample_asked_twice_is_not_added_up_through_totals_or_tables() -> None:
    share, k, people = Fraction(1, 10), 8, 60
    # Everybody's records are known. Of one sample both days count all but the target, who is in the first count alone:
    # where both are shown their difference tells that she was drawn.
    attained = share * (1 - sum(drawn([share] * people)[:k]))
    release, other = (
        pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(sampled=chance, known=known))
        for chance, known in ((0.1, 0), (0.05, 1))
    )
    drawn_anew = pkdp.compose([(release, 2)], pkdp.IndependentDraws())
    assert drawn_anew.delta(1.0) < attained
    habits = pkdp.certify(pkdp.Count(k=30), pkdp.AttackerModel(p_max=0.1))
    table = pkdp.compose([release, other], pkdp.SameTable())
    for evidence in (pkdp.IndependentGivenHabits(), pkdp.OneDayProtected(), pkdp.BoundedDependence(0.1)):
        for part in (drawn_anew, table, pkdp.compose([release])):
            for parts in ([(part, 2)], [part, habits]):
                with pytest.raises(pkdp.NoEvidenceError, match="add up by their draws"):
                    pkdp.compose(parts, evidence)
    # A table that was certified twice, and a total of draws, are samples as well.
    both = pkdp.compose([(table, 2)], pkdp.IndependentDraws()).delta(1.0)
    assert both == pytest.approx(
        max(pkdp.compose([(each, 2)], pkdp.IndependentDraws()).delta(1.0) for each in (release, other))
    )
    nested, flat = (pkdp.compose(parts, pkdp.IndependentDraws()) for parts in ([drawn_anew, release], [(release, 3)]))
    assert nested.delta(1.0) == pytest.approx(flat.delta(1.0), rel=0.05)
    apart = pkdp.compose([release, habits], pkdp.DisjointUnits()).assumptions
    assert any("tells nothing about the draws of others" in text for text in apart)
    mixed = pkdp.compose([release, pkdp.certify(pkdp.Count(k=k), pkdp.AttackerModel(p_max=0.1))], pkdp.SameTable())
    with pytest.raises(pkdp.NoEvidenceError, match="some of these are none"):
        pkdp.compose([mixed, release], pkdp.IndependentDraws())


@pytest.mark.parametrize("field", ["p_max", "p_min", "p_max_between", "unknown", "unknown_max"])
def test_sampled_excludes_what_is_about_people(field: str) -> None:
    with pytest.raises(pkdp.ArgumentError, match=field):
        pkdp.AttackerModel(sampled=0.1, **{field: 1})


def test_somebody_who_alone_is_not_counted_is_told_by_k_complement() -> None:
    share, people = Fraction(1, 10), 300
    mechanism, attacker = pkdp.Count(k=8, k_complement=1), pkdp.AttackerModel(sampled=0.1)
    # Published where at least 8 of 300 are drawn who satisfy the predicate, and the target, who alone does not, is.
    attained = share * (1 - sum(drawn([share] * people)[:8]))
    assert attained > Fraction(99, 1000)
    noised = pkdp.GeometricNoise(1.0)
    for refused in (mechanism, replace(mechanism, noise=noised), replace(mechanism, k=None, noise=noised)):
        with pytest.raises(pkdp.NotCertifiableError, match="tells who was drawn"):
            pkdp.certify(refused, attacker)
    assert pkdp.certify(pkdp.Count(k=8), attacker).delta(1.0) < attained


def test_it_is_written_and_read_again() -> None:
    certificate = pkdp.certify(pkdp.Histogram(k=8), pkdp.AttackerModel(sampled=0.1, known=2))
    again = pkdp.Certificate.from_json(certificate.to_json())
    assert again.verify()
    np.testing.assert_array_equal(again.delta(np.array([0.1, 1.0])), certificate.delta(np.array([0.1, 1.0])))
    with pytest.raises(pkdp.NotCertifiableError, match="somebody was drawn"):
        pkdp.certify(pkdp.Histogram(), pkdp.AttackerModel(sampled=0.1))
    with pytest.raises(pkdp.NotCertifiableError, match="count her in one cell"):
        pkdp.certify(pkdp.Histogram(k=8, cells_per_unit=2), pkdp.AttackerModel(sampled=0.1))
    with pytest.raises(pkdp.NotCertifiableError, match="cross the threshold"):
        pkdp.certify(pkdp.Histogram(k=3), pkdp.AttackerModel(sampled=0.1, known=2))


def test_a_tiny_chance_under_a_large_epsilon_overflows_without_a_warning():
    with np.errstate(over="raise"):
        assert 0.0 < pkdp.certify(pkdp.Histogram(k=20), pkdp.AttackerModel(sampled=1e-300)).delta(600.0) < 1e-300
