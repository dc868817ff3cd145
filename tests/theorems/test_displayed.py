"""Theorem R: what is shown through a rule of display promises what suppression below its first boundary does."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

import pkdp_pipeline as pkdp

RULES = (
    pkdp.Rounding(5),
    pkdp.Rounding(4),
    pkdp.Rounding(3, "down"),
    pkdp.Rounding(4, "midpoint"),
    pkdp.Bands([0, 3, 5, 10]),
)


def shown(mechanism: Any, count: int, people: int) -> dict[Any, Any]:
    """Return the law of what is shown of a count among so many people."""
    complement = getattr(mechanism, "k_complement", None) or 0
    if (mechanism.k is not None and count < mechanism.k) or people - count < complement:
        return {None: 1}
    rule = mechanism.display
    return dict(rule.chances(count)) if hasattr(rule, "chances") else {rule.shown(count): 1}


def divergence(mechanism: Any, chances: list[Any], growth: Any) -> Any:
    """Return the larger divergence of the two orders, of a person who is counted or not."""
    law: list[Any] = [1]
    for chance in chances:
        law = [a * (1 - chance) + b * chance for a, b in zip([*law, 0], [0, *law], strict=True)]
    lives: list[dict[Any, Any]] = []
    for target in (0, 1):
        out: dict[Any, Any] = {}
        for count, weight in enumerate(law):
            for value, mass in shown(mechanism, count + target, len(law)).items():
                out[value] = out.get(value, 0) + weight * mass
        lives.append(out)
    names = {*lives[0], *lives[1]}
    return max(
        sum(max(0, first.get(name, 0) - growth * second.get(name, 0)) for name in names)
        for first, second in (lives, lives[::-1])
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.words)
def test_exact_enumeration_is_reached_and_never_above(rule: Any) -> None:
    p, growth = Fraction(1, 4), Fraction(3, 2)
    mechanism = pkdp.Count(display=rule)
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.25))
    suppressed = pkdp.certify(pkdp.Count(k=rule.first_boundary), pkdp.AttackerModel(p_max=0.25))
    epsilon = math.log(1.5)
    certified = certificate.delta(math.nextafter(epsilon, 0.0))
    exact = max(
        divergence(mechanism, [p] * people + [p / 2] * others, growth) for people, others in product(range(14), (0, 2))
    )
    assert Fraction(certified) >= exact
    assert certified == suppressed.delta(math.nextafter(epsilon, 0.0))
    assert certified <= float(exact) * (1 + 1e-9)
    assert certificate.bracket(epsilon)[0] >= float(exact) * (1 - 1e-6) if hasattr(certificate, "bracket") else True


def test_the_first_boundary_is_what_the_rule_makes_of_counts() -> None:
    tables = (pkdp.PerturbationTable([(0, 0, 1.0), (1, 0, 1.0), (2, 0, 0.5), (2, 3, 0.5)]), pkdp.RandomRounding(3))
    assert [rule.first_boundary for rule in (*RULES, *tables)] == [3, 2, 3, 4, 3, 2, 1]
    for rule in RULES:
        values = [rule.shown(count) for count in range(60)]
        assert values == sorted(values)
        assert values.index(next(value for value in values if value != values[0])) == rule.first_boundary
        for count, value in enumerate(values):
            least, most = rule.interval(value)
            assert least <= count
            assert most is None or count <= most
            assert {rule.shown(least), rule.shown(most or least)} == {value}


@st.composite
def displays(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["rounding", "bands", "random", "table"]))
    if kind == "rounding":
        return pkdp.Rounding(draw(st.integers(2, 6)), draw(st.sampled_from(["nearest", "down", "midpoint"])))
    if kind == "bands":
        return pkdp.Bands([0, *sorted(draw(st.sets(st.integers(1, 9), min_size=1)))])
    if kind == "random":
        return pkdp.RandomRounding(draw(st.integers(2, 5)))
    share = draw(st.floats(0.0, 1.0))
    return pkdp.PerturbationTable([(0, 0, 1.0), (1, 0, share), (1, 2, 1.0 - share), (2, 1, 0.25), (2, 2, 0.75)])


@settings(max_examples=few(400, 20))
@given(
    displays(),
    st.none() | st.integers(2, 6),
    st.floats(0.02, 0.95),
    st.lists(st.floats(0.0, 1.0), max_size=10),
    st.floats(0.0, 2.0),
)
def test_people_of_different_chances_never_tell_more(
    display: Any, k: int | None, p: float, shares: list[float], epsilon: float
) -> None:
    mechanism = pkdp.Count(k=k, display=display)
    chances = [share * p for share in shares]
    exact = divergence(mechanism, chances, math.exp(epsilon))
    try:
        certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=p))
    except pkdp.NotCertifiableError:
        assert k is None
        assert display.first_boundary == 1
        return
    assert certificate.delta(epsilon) >= exact * (1 - 1e-9)
    again = pkdp.Certificate.from_json(certificate.to_json())
    assert again.verify()
    assert again.delta(epsilon) == certificate.delta(epsilon)


@pytest.mark.parametrize("display", [pkdp.Bands([0, 3, 7]), pkdp.Rounding(3), pkdp.Rounding(4, "down")])
def test_beside_k_complement_nothing_takes_the_place_of_k(display: Any) -> None:
    mechanism, growth = pkdp.Count(k_complement=1, display=display), Fraction(3, 2)
    # Of a person alone a count of 0 is shown, and one of 1 is not.
    assert divergence(mechanism, [], growth) == 1
    with pytest.raises(pkdp.NotCertifiableError):
        pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.5))
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_min=0.25, p_max=0.5, unknown=2))
    behind = pkdp.certify(replace(mechanism, k=4), pkdp.AttackerModel(p_max=0.5))
    for low, high in product(range(6), repeat=2):
        crowd = [Fraction(1, 4)] * low + [Fraction(1, 2)] * high
        epsilon = math.nextafter(math.log(1.5), 0.0)
        assert Fraction(behind.delta(epsilon)) >= divergence(replace(mechanism, k=4), crowd, growth)
        if low + high >= 2:
            assert Fraction(certificate.delta(epsilon)) >= divergence(mechanism, crowd, growth)


def test_a_zero_that_is_told_from_small_counts_is_refused() -> None:
    for display in (pkdp.RandomRounding(3), pkdp.Bands([0, 1, 5])):
        with pytest.raises(pkdp.NotCertifiableError, match="tell a zero from small counts"):
            pkdp.certify(pkdp.Histogram(display=display), pkdp.AttackerModel(p_max=0.1))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: pkdp.Bands([0, 10, 10]), "overlap"),
        (lambda: pkdp.Bands([5, 10]), "begin with 0"),
        (lambda: pkdp.Rounding(1), "at least 2"),
        (lambda: pkdp.Rounding(5, "up"), "mode"),
        (lambda: pkdp.PerturbationTable([(0, 0, 0.5)]), "must sum to 1"),
        (lambda: pkdp.PerturbationTable([(1, 0, 1.0)]), "every count from 0"),
        (lambda: pkdp.Count(display=5), "display"),
        (lambda: pkdp.Histogram(totals=True, display=pkdp.Rounding(5)), "totals"),
    ],
)
def test_what_means_nothing_is_refused(make: Any, named: str) -> None:
    with pytest.raises(pkdp.ArgumentError, match=named):
        make()


def test_random_rounding_is_unbiased() -> None:
    for count in range(20):
        assert math.fsum(value * chance for value, chance in pkdp.RandomRounding(3).chances(count)) == pytest.approx(
            count
        )


def test_noise_alone_survives_every_display() -> None:
    noise, rounded = pkdp.GeometricNoise(0.5), pkdp.Rounding(5)
    plain, shown_ = (pkdp.certify(pkdp.Count(noise=noise, display=display)) for display in (None, rounded))
    np.testing.assert_array_equal(plain.delta(np.linspace(0, 1, 5)), shown_.delta(np.linspace(0, 1, 5)))
