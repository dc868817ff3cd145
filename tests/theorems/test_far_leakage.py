"""Leakages at the ends of what can be declared, and words beside leakages that must not promise more than is true."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import product

import pytest
from oracle.laws import losses
from oracle.leaking import geometric
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline import AttackerModel, Count, GeometricNoise, Histogram, Leakage, NotCertifiableError, certify

NOISED = Count(noise=GeometricNoise(0.5))
BOX = {"p_min": 0.2, "p_max": 0.6, "unknown": 200}


# Far numbers ----------------------------------------------------------------------------------------------------------


@thinned(2)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("large_epsilon", [800.0, 1e17, 9e299])
@pytest.mark.parametrize("delta", one_in(2, [1e-9, 0.0]))
def test_far_numbers_give_little_and_no_error(large_epsilon, delta):
    alone = certify(NOISED, AttackerModel()).delta(0.3)
    for leak in (
        Leakage("x", epsilon=large_epsilon, delta=delta),
        Leakage("x", shared_by=("presence",), dependence_epsilon=large_epsilon, dependence_delta=delta),
        Leakage("x", epsilon=large_epsilon, delta=delta, dependence_epsilon=large_epsilon),
    ):
        for mechanism in (NOISED, Count()):
            try:
                certificate = certify(mechanism, AttackerModel(leakage=leak, **BOX))
            except NotCertifiableError:
                continue
            points = (0.0, 0.3, 1.0, 700.0, 1e300)
            deltas = [certificate.delta(epsilon) for epsilon in points]
            assert all(0.0 <= value <= 1.0 for value in deltas)
            assert mechanism == Count() or deltas[1] >= alone
            assert deltas[0] > 0.9
            assert certificate.epsilon(1e-6) == math.inf or certificate.epsilon(1e-6) >= large_epsilon * 0.99
            if certificate.worst_case_bound is not None:
                assert certificate.worst_case.parameters[0] >= large_epsilon
            assert pkdp.Certificate.from_json(certificate.to_json()).verify()


@pytest.mark.parametrize("name", ["epsilon", "dependence_epsilon"])
@pytest.mark.parametrize("value", [1e300, 1.7e308])
def test_farther_numbers_are_refused(name, value):
    with pytest.raises(pkdp.ArgumentError, match="below 1e300"):
        Leakage("x", **{name: value})


# Refusals -------------------------------------------------------------------------------------------------------------


@thinned(3)
@pytest.mark.parametrize(
    "leak",
    [
        Leakage("a published answer", epsilon=2.0),
        Leakage("a published answer", epsilon=0.1, delta=1e-4),
        Leakage("a checksum", shared_by=("presence", "value"), dependence_epsilon=0.7),
    ],
)
@pytest.mark.parametrize(("mechanism", "protects"), [(Count(k=5), "presence"), (Histogram(), "value")])
def test_a_refusal_does_not_deny_the_noise_that_would_give_something(leak, mechanism, protects):
    attacker = AttackerModel(leakage=leak)
    noised = certify(type(mechanism)(noise=GeometricNoise(0.1)), attacker, protects=protects)
    assert 0.0 < noised.delta(1.0) < 1.0
    with pytest.raises(NotCertifiableError) as refused:
        certify(mechanism, attacker, protects=protects)
    message = str(refused.value)
    assert "No parameter of the release changes that" not in message
    assert "Each of these would give" not in message
    assert "Noise gives a guarantee against anyone, but none of epsilon = 1, delta = 1e-6 beside what leaks" in message
    noise, epsilon, delta = map(
        float, re.findall(r"GeometricNoise\(([^)]+)\).* epsilon = (\S+), delta = (\S+)\. P", message)[0]
    )
    offered = certify(type(mechanism)(noise=GeometricNoise(noise)), attacker, protects=protects)
    assert offered.delta(epsilon) <= delta


@pytest.mark.parametrize(
    "leak",
    [
        Leakage("the parity"),
        Leakage("a published answer", epsilon=0.1, delta=1.0),
        Leakage("a checksum", shared_by=("presence",), dependence_delta=1.0),
    ],
)
def test_a_refusal_says_where_no_noise_gives_anything(leak):
    with pytest.raises(NotCertifiableError, match="No parameter of the release changes that"):
        certify(Count(k=5), AttackerModel(leakage=leak))


# Words ----------------------------------------------------------------------------------------------------------------


def test_a_total_is_part_of_the_leakage_that_tells_it():
    leaks = [Leakage("a noised turnout", tells="people_present", epsilon=1.0), Leakage.total("the turnout")]
    sentence = certify(Count(), AttackerModel(leakage=leaks), protects="value").sentence()
    assert "given the turnout. This release is the number of people present" in sentence


def leaked(target, others):
    """Tell the target's place where all others are in one, relative to theirs; nothing where they are not."""
    return (target + others[0]) % 2 if len(set(others)) == 1 else 0


def test_given_a_leakage_only_lives_beside_the_same_others_are_compared():
    # It tells nothing by itself, is shared by both lives where others differ, and noise hides the count; but to
    # somebody who knows that all others are in one cell, and not in which, noise and leakage together tell the cell.
    noise, people = Fraction(3, 4), 40
    part = certify(
        Histogram(noise=GeometricNoise(-math.log(noise))),
        AttackerModel(leakage=Leakage("x", shared_by=("value",))),
        protects="value",
    )
    joint_laws, leak_laws = ({}, {}), ({}, {})
    for target, place in product((0, 1), repeat=2):
        others = (place,) * people
        value = leaked(target, others)
        leak_laws[target][value] = leak_laws[target].get(value, 0) + Fraction(1, 2)
        for shown, weight in geometric(people * place + target, noise, people).items():
            joint_laws[target][shown, value] = joint_laws[target].get((shown, value), 0) + weight / 2
    growth = Fraction(2)
    assert max(losses(*leak_laws, growth)) == 0
    assert max(losses(*joint_laws, growth)) > 0.9 > part.delta(math.log(2))
    assert leaked(0, (0, 1)) == leaked(1, (0, 1))
    assert (
        "nor are two possibilities for a person that it tells apart to somebody who knows everybody else."
        in part.sentence()
    )
