"""smallest_k is minimal, and says when there is none."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few

from pkdp_pipeline import ArgumentError, AttackerModel, Count, Histogram, NotCertifiableError, certify, smallest_k


def holds(k, attacker, epsilon, delta, protects, kind=Histogram):
    try:
        return certify(kind(k=k), attacker, protects=protects).delta(epsilon) <= delta
    except NotCertifiableError:
        return False


def assert_minimal(k, attacker, epsilon, delta, protects):
    assert isinstance(k, int)
    assert holds(k, attacker, epsilon, delta, protects)
    assert k == 1 or not holds(k - 1, attacker, epsilon, delta, protects)


@given(
    st.floats(0.001, 0.97),
    st.floats(0.05, 5.0),
    st.floats(1e-40, 0.3),
    st.sampled_from([0, 0, 1, 5]),
    st.sampled_from(["passive", "active"]),
    st.sampled_from([None, None, 30, 300]),
)
@settings(max_examples=few(120))
def test_presence_is_minimal(p_max, epsilon, delta, known, influence, unknown_max):
    attacker = AttackerModel(p_max=p_max, known=known, influence=influence, unknown_max=unknown_max)
    k = smallest_k(attacker, epsilon=epsilon, delta=delta)
    assert_minimal(k, attacker, epsilon, delta, "presence")
    assert holds(k, attacker, epsilon, delta, "presence", Count)


def test_no_smaller_threshold_holds_either():
    draw = random.Random(3)
    for _ in range(few(15, 2)):
        attacker = AttackerModel(p_max=draw.uniform(0.02, 0.6), known=draw.randrange(4))
        epsilon, delta = draw.uniform(0.3, 3.0), 10 ** draw.uniform(-9, -2)
        k = smallest_k(attacker, epsilon=epsilon, delta=delta)
        assert [n for n in range(1, k + 4) if holds(n, attacker, epsilon, delta, "presence")] == [
            k,
            k + 1,
            k + 2,
            k + 3,
        ]


@given(st.floats(0.02, 0.7), st.floats(0.3, 4.0), st.floats(1e-12, 0.2), st.sampled_from([0, 1, 2]))
@settings(max_examples=few(15))
def test_value_is_minimal(p_max, epsilon, delta, known):
    attacker = AttackerModel(p_max=p_max, known=known, influence="active")
    assert_minimal(
        smallest_k(attacker, epsilon=epsilon, delta=delta, protects="value"), attacker, epsilon, delta, "value"
    )


@given(st.floats(0.5, 0.97), st.floats(0.1, 4.0), st.floats(1e-30, 0.2), st.integers(0, 6))
@settings(max_examples=few(50))
def test_between_is_minimal(between, epsilon, delta, known):
    attacker = AttackerModel(p_max_between=between, known=known)
    assert_minimal(
        smallest_k(attacker, epsilon=epsilon, delta=delta, protects="value"), attacker, epsilon, delta, "value"
    )


def test_values_that_are_known():
    assert smallest_k(AttackerModel(p_max=0.1), epsilon=1.0, delta=1e-6) == 30
    assert smallest_k(AttackerModel(p_max=0.1), epsilon=1.0, delta=6.3e-10) <= 50
    assert smallest_k(AttackerModel(p_max=0.0), epsilon=0.0, delta=1e-300) == 2
    assert smallest_k(AttackerModel(p_max=0.5, unknown_max=0), epsilon=0.0, delta=1e-9) == 2


def test_an_easier_question_never_needs_more():
    for delta in (1e-3, 1e-9):
        answers = [
            smallest_k(AttackerModel(p_max=p_max), epsilon=1.0, delta=delta) for p_max in (0.01, 0.1, 0.3, 0.6, 0.9)
        ]
        assert answers == sorted(answers)


@pytest.mark.parametrize("delta", [0.0, -0.1, 1.5, float("nan"), "1e-6", None, True])
def test_delta_is_checked(delta):
    with pytest.raises(ArgumentError, match="delta"):
        smallest_k(AttackerModel(p_max=0.1), epsilon=1.0, delta=delta)


@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), float("inf"), "1", None, True])
def test_epsilon_is_checked(epsilon):
    with pytest.raises(ArgumentError, match="epsilon"):
        smallest_k(AttackerModel(p_max=0.1), epsilon=epsilon, delta=1e-6)


@pytest.mark.parametrize("epsilon", [[1.0, 2.0], np.array([1.0, 2.0])])
def test_one_epsilon_is_asked_for(epsilon):
    with pytest.raises(ArgumentError, match="epsilon"):
        smallest_k(AttackerModel(p_max=0.1), epsilon=epsilon, delta=1e-6)


def test_numbers_from_numpy_are_numbers():
    assert smallest_k(AttackerModel(p_max=np.float64(0.1)), epsilon=np.float64(1.0), delta=np.float64(1e-6)) == 30


def test_the_other_arguments_are_checked():
    with pytest.raises(ArgumentError, match="attacker must be an AttackerModel"):
        smallest_k({"p_max": 0.1}, epsilon=1.0, delta=1e-6)
    with pytest.raises(ArgumentError, match="protects"):
        smallest_k(AttackerModel(p_max=0.1), epsilon=1.0, delta=1e-6, protects="both")


@pytest.mark.parametrize(
    ("attacker", "protects", "words"),
    [
        (AttackerModel(p_max=1.0), "presence", "nobody is ever absent"),
        (AttackerModel(), "presence", "p_max < 1 is declared"),
        (AttackerModel(p_max=1.0), "value", "p_max_between"),
        (AttackerModel(p_max_between=0.6), "presence", "p_max < 1 is declared"),
    ],
)
def test_what_no_threshold_protects(attacker, protects, words):
    with pytest.raises(NotCertifiableError, match=words):
        smallest_k(attacker, epsilon=1.0, delta=1e-6, protects=protects)


def test_a_target_out_of_reach_says_so():
    with pytest.raises(NotCertifiableError, match="no threshold k up to 10000000 reaches delta = 1e-100"):
        smallest_k(AttackerModel(p_max=0.5), epsilon=0.0, delta=1e-100)
