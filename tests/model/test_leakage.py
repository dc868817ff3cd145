"""Leakage: fields are checked, several are refused where they say nothing together, dictionaries come back."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import pytest

from pkdp_pipeline import ArgumentError, AttackerModel, Leakage

TOTAL = Leakage.total()
NOISED = Leakage("the noised turnout", epsilon=0.5, delta=1e-9)
OTHER = Leakage("the register's average age", shared_by=("value",))


def test_a_total_follows_from_who_is_present_and_is_shared_by_two_values():
    assert (TOTAL.tells, TOTAL.shared_by, TOTAL.epsilon) == ("people_present", ("value",), None)
    assert TOTAL.is_shared("value")
    assert not TOTAL.is_shared("presence")
    assert not TOTAL.is_private
    assert not TOTAL.is_dependent
    assert Leakage.total("turnout").name == "turnout"


def test_totals_of_groups_tell_their_columns_and_the_total():
    groups = Leakage.totals(by="region")
    assert (groups.by, groups.shared_by, groups.tells_total) == (("region",), ("value",), True)
    assert groups.name == "the number of people present by 'region'"
    assert Leakage.totals(["region", "year"], "last year's table").by == ("region", "year")
    attacker = AttackerModel(leakage=[groups, Leakage.totals(by=["year", "region"])])
    assert attacker.groups == ("region", "year")
    assert attacker.totals_known == {frozenset(), frozenset({"region"}), frozenset({"region", "year"})}
    assert AttackerModel(leakage=TOTAL).totals_known == {frozenset()}
    assert AttackerModel(leakage=NOISED).totals_known == frozenset()
    assert groups.to_dict() == {"name": groups.name, "tells": "people_present", "by": ["region"]}
    assert Leakage.from_dict(json.loads(json.dumps(groups.to_dict()))) == groups
    with pytest.raises(ArgumentError, match="one at least"):
        Leakage.totals(by=[])


def test_kinds_of_lives_are_kept_in_one_order():
    assert Leakage("x", shared_by=["value", "presence"]) == Leakage("x", shared_by=("presence", "value", "value"))
    assert Leakage("x", tells="people_present", shared_by=("presence",)).shared_by == ("presence", "value")
    assert Leakage("x").shared_by == ()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": ""}, "^name must say"),
        ({"name": None}, "^name must say"),
        ({"name": " x"}, "^name must be one line"),
        ({"name": "a\nb"}, "^name must be one line"),
        ({"name": "a" * 201}, "^name must be one line"),
        ({"tells": "everything"}, "^tells must be one of"),
        ({"by": {"region": 1}, "tells": "people_present"}, "^by must be a column name or a list"),
        ({"by": [""], "tells": "people_present"}, "^by must be a column name or a list"),
        ({"by": ["region", "region"], "tells": "people_present"}, "^by names a column twice"),
        ({"by": "region"}, "^by belongs to exact totals"),
        ({"by": "region", "tells": "people_present", "epsilon": 1}, "^by belongs to exact totals"),
        ({"by": "region", "tells": "people_present", "shared_by": ("presence",)}, "^by belongs to exact totals"),
        ({"by": "region", "tells": "people_present", "dependence_epsilon": 0.1}, "^by belongs to exact totals"),
        ({"shared_by": "value"}, "^shared_by must be a tuple"),
        ({"shared_by": ("cell",)}, "^shared_by must be one of 'presence', 'value'"),
        ({"epsilon": -0.1}, "^epsilon must be finite and at least 0"),
        ({"epsilon": float("nan")}, "^epsilon must be"),
        ({"epsilon": float("inf")}, "^epsilon must be"),
        ({"epsilon": True}, "^epsilon must be a number"),
        ({"epsilon": 10**400}, "^epsilon must be finite"),
        ({"epsilon": 1, "delta": 1.5}, "^delta must be"),
        ({"delta": 0.1}, "^delta belongs to epsilon"),
        ({"dependence_epsilon": "1"}, "^dependence_epsilon must be"),
        ({"dependence_delta": 2}, "^dependence_delta must be"),
    ],
)
def test_fields_are_checked(fields, words):
    with pytest.raises(ArgumentError, match=words):
        Leakage(**{"name": "x", **fields})


@pytest.mark.parametrize(
    "leakage",
    [
        TOTAL,
        NOISED,
        OTHER,
        Leakage("x", tells="people_present", shared_by=("presence",)),
        Leakage("x", dependence_epsilon=0.1, dependence_delta=0.2),
        Leakage("x", epsilon=0),
    ],
)
def test_dictionaries_come_back(leakage):
    assert Leakage.from_dict(json.loads(json.dumps(leakage.to_dict()))) == leakage
    attacker = AttackerModel(p_max=0.1, leakage=leakage)
    assert AttackerModel.from_dict(json.loads(json.dumps(attacker.to_dict()))) == attacker
    for back in (pickle.loads(pickle.dumps(leakage)), copy.deepcopy(leakage), dataclasses.replace(leakage)):
        assert back == leakage
        assert hash(back) == hash(leakage)


def test_only_what_differs_is_written():
    assert TOTAL.to_dict() == {"name": "the number of people present", "tells": "people_present"}
    assert NOISED.to_dict() == {"name": "the noised turnout", "tells": "anything", "epsilon": 0.5, "delta": 1e-9}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "x", "is_shared": 1}, "a leakage has no field 'is_shared'"),
        ({"name": "x", "_": 1}, "a leakage has no field '_'"),
        ({"tells": "anything"}, "needs a name"),
        ("x", "must be a mapping"),
    ],
)
def test_strange_dictionaries_are_refused(fields, words):
    with pytest.raises(ArgumentError, match=words):
        Leakage.from_dict(fields)


def test_an_attacker_holds_one_leakage_or_several():
    assert AttackerModel(leakage=TOTAL).leakage == AttackerModel(leakage=[TOTAL]).leakage == (TOTAL,)
    assert AttackerModel(leakage=[TOTAL, NOISED, OTHER]).leakage == (TOTAL, NOISED, OTHER)
    assert AttackerModel(leakage=[TOTAL, Leakage.total("who came")]).leakage[1].name == "who came"


@pytest.mark.parametrize(
    ("leakage", "words"),
    [
        ("the total", "leakage must be a Leakage or a list of them, not str"),
        (["the total"], "leakage must be a Leakage or a list of them, not str"),
        (None, "not NoneType"),
        ([TOTAL, TOTAL], "the same name"),
        ([OTHER, Leakage("parity")], "declare them as one leakage, shared by"),
        (
            [Leakage(name, tells="people_present", shared_by=("presence",)) for name in ("n // 2", "(n + 1) // 2")],
            "together leave none",
        ),
        (
            [Leakage("x", epsilon=1, dependence_epsilon=1), Leakage("y", epsilon=1, dependence_delta=0.1)],
            "with the dependence of the pair",
        ),
    ],
)
def test_leakages_that_say_nothing_together_are_refused(leakage, words):
    with pytest.raises(ArgumentError, match=words):
        AttackerModel(leakage=leakage)


def test_dependence_names_the_larger_unit_and_a_conditional_secret_needs_it():
    attacker = AttackerModel(p_max=0.1, dependent="household", secret="conditional", leakage=TOTAL)
    written = attacker.to_dict()
    assert (written["dependent"], written["secret"]) == ("household", "conditional")
    assert AttackerModel.from_dict(written) == attacker
    with pytest.raises(ArgumentError, match="say who these are in dependent"):
        AttackerModel(secret="conditional")
    for bad in ("", " household", "a\nb", 5):
        with pytest.raises(ArgumentError, match="dependent must name the larger unit"):
            AttackerModel(dependent=bad)
    with pytest.raises(ArgumentError, match="secret must be one of"):
        AttackerModel(secret="records", dependent="household")


def test_against_anyone_keeps_the_leakage_alone():
    attacker = AttackerModel(p_max=0.1, known=3, dependent="household", leakage=[TOTAL, NOISED])
    assert attacker.against_anyone() == AttackerModel(leakage=[TOTAL, NOISED])
    assert AttackerModel(p_max=0.1).against_anyone() == AttackerModel()


def test_older_documents_keep_their_bytes():
    assert list(AttackerModel(p_max=0.1).to_dict()) == [
        "p_max",
        "p_min",
        "p_max_between",
        "unknown",
        "unknown_max",
        "known",
        "influence",
    ]
