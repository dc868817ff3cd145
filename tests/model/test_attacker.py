"""AttackerModel: every field is checked, contradictions are named, and dictionaries come back."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

from pkdp_pipeline import ArgumentError, AttackerModel, Leakage

BAD_SHARES = [True, "0.1", None.__class__, [0.1], float("nan"), float("inf"), -0.1, 1.1, 0.5j, 10**400]
BAD_NUMBERS = [True, "5", 5.0, [5], float("nan"), -1, 1.5, np.float64(5.0)]


def test_nothing_is_declared_by_default():
    attacker = AttackerModel()
    fields = ("p_max", "p_min", "p_max_between", "unknown", "unknown_max")
    assert all(getattr(attacker, name) is None for name in fields)
    assert (attacker.known, attacker.influence) == (0, "passive")


def test_fields_are_given_by_name():
    with pytest.raises(TypeError):
        AttackerModel(0.1)


@pytest.mark.parametrize("name", ["p_max", "p_min", "p_max_between"])
@pytest.mark.parametrize("value", BAD_SHARES)
def test_shares_are_checked(name, value):
    with pytest.raises(ArgumentError, match=rf"^{name} must be"):
        AttackerModel(**{name: value})


@pytest.mark.parametrize("name", ["unknown", "unknown_max", "known"])
@pytest.mark.parametrize("value", BAD_NUMBERS)
def test_numbers_of_people_are_checked(name, value):
    with pytest.raises(ArgumentError, match=rf"^{name} must be"):
        AttackerModel(**{name: value})


def test_known_has_to_be_a_number():
    with pytest.raises(ArgumentError, match=r"^known must be"):
        AttackerModel(known=None)


@pytest.mark.parametrize("influence", ["Active", "", None, 1, ["active"]])
def test_influence_is_one_of_two(influence):
    with pytest.raises(ArgumentError, match="influence must be one of 'active', 'passive'"):
        AttackerModel(influence=influence)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"p_min": 0.6, "p_max": 0.5}, "p_min = 0.6 is above p_max = 0.5"),
        ({"p_max_between": 0.49}, "p_max_between must be at least 1/2"),
        ({"unknown": 8, "unknown_max": 7}, "unknown = 8 is above unknown_max = 7"),
        pytest.param({"unknown": 10**5000, "unknown_max": 7}, "unknown must be", id="huge"),
    ],
)
def test_contradictions_are_named(fields, words):
    with pytest.raises(ArgumentError, match=words):
        AttackerModel(**fields)


def test_the_ends_are_allowed():
    attacker = AttackerModel(p_min=0.5, p_max=0.5, p_max_between=0.5, unknown=7, unknown_max=7)
    assert attacker.p_min == attacker.p_max == attacker.p_max_between == 0.5
    assert AttackerModel(p_min=0, p_max=1, p_max_between=1, unknown=0).p_max == 1.0


def test_numbers_become_plain_ones():
    attacker = AttackerModel(p_max=np.float32(0.5), p_min=0, unknown=np.int64(9), known=np.uint8(2))
    kinds = [type(value) for value in (attacker.p_max, attacker.p_min, attacker.unknown, attacker.known)]
    assert kinds == [float, float, int, int]
    assert attacker == AttackerModel(p_max=0.5, p_min=0.0, unknown=9, known=2)


def test_it_is_a_value():
    attacker = AttackerModel(p_max=0.1, unknown=7, known=2, influence="active")
    with pytest.raises(dataclasses.FrozenInstanceError):
        attacker.p_max = 0.2
    for back in (pickle.loads(pickle.dumps(attacker)), copy.deepcopy(attacker), dataclasses.replace(attacker)):
        assert back == attacker
        assert hash(back) == hash(attacker)
    assert dataclasses.replace(attacker, p_max=0.2) != attacker
    with pytest.raises(ArgumentError, match="p_max"):
        dataclasses.replace(attacker, p_max=2)


def test_dictionaries_come_back():
    attacker = AttackerModel(p_max=0.1, p_min=1e-300, p_max_between=0.7, unknown=7, unknown_max=2**70, known=2)
    assert AttackerModel.from_dict(json.loads(json.dumps(attacker.to_dict()))) == attacker
    assert AttackerModel.from_dict(AttackerModel().to_dict()) == AttackerModel()
    assert AttackerModel.from_dict({}) == AttackerModel()


@pytest.mark.parametrize("stranger", ["p", "Known", "", "to_dict", 5])
def test_unknown_fields_are_named(stranger):
    with pytest.raises(
        ArgumentError, match=f"no field {stranger!r}; its fields are dependent, independent_cells, influence"
    ):
        AttackerModel.from_dict({stranger: 1})


def test_strangers_of_several_kinds_are_an_argument_error():
    with pytest.raises(ArgumentError, match="no field"):
        AttackerModel.from_dict({5: 1, "p": 2})


def test_an_attacker_is_shown_as_it_is_declared():
    assert repr(AttackerModel()) == "AttackerModel()"
    declared = AttackerModel(p_max=0.1, known=3, leakage=Leakage.total(), dependent="household")
    assert eval(repr(declared)) == declared
    assert "p_min" not in repr(declared)
