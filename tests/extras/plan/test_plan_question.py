"""A question's command, and evidence by flags."""

from __future__ import annotations

import shlex

import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli.options import EVIDENCE, read_evidence_flags
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.plan.question import Assumed, CountsFile, Question

BOLD = pkdp.AttackerModel(p_max=0.1, known=3, influence="active", unknown_max=900)


def test_the_command_says_everything_that_is_not_the_default():
    short = Question(kind="count", attacker=pkdp.AttackerModel(), epsilon=0.5, delta=1e-9)
    assert short.command() == "pkdp plan count --epsilon 0.5 --delta 1e-9"
    long = Question(
        kind="histogram",
        attacker=BOLD,
        epsilon=8.0,
        delta=1e-6,
        protects="value",
        days=365,
        evidence=(pkdp.IndependentGivenHabits(), pkdp.BoundedParticipation(5)),
        counts=CountsFile(path="last year's.csv", column="n"),
        noise=False,
        declared_cells=False,
        choice=2,
    )
    assert shlex.split(long.command())[3:] == [
        *("--p-max", "0.1", "--unknown-max", "900", "--known", "3", "--influence", "active", "--protects", "value"),
        *("--days", "365", "--evidence", "independent_given_habits", "--evidence", "bounded_participation:5"),
        *("--epsilon", "8", "--delta", "1e-6", "--public-counts", "last year's.csv", "--count-column", "n"),
        *("--no-noise", "--cells-from-data", "--choice", "2"),
    ]
    assumed = Question(
        kind="histogram",
        attacker=BOLD,
        epsilon=1.0,
        delta=1e-6,
        evidence=(pkdp.BoundedDependence(0.25, 1e-7),),
        counts=Assumed(cells=4, people=100, spread="zipf"),
    )
    assert "--evidence bounded_dependence:0.25,1e-7" in assumed.command()
    assert assumed.command().endswith("--assumed-cells 4 --assumed-people 100 --assumed-spread zipf")


def test_evidence_by_flags():
    assert read_evidence_flags([]) == ()
    assert read_evidence_flags(["Once-Per-Unit"]) == (pkdp.OncePerUnit(),)
    assert read_evidence_flags(["bounded_dependence:0.5"]) == (pkdp.BoundedDependence(0.5),)
    assert read_evidence_flags(["bounded_dependence: 0.5, 1e-7"]) == (pkdp.BoundedDependence(0.5, 1e-7),)
    assert read_evidence_flags(["bounded_dependence:0.5,2%"]) == (pkdp.BoundedDependence(0.5, 0.02),)
    both = read_evidence_flags(["bounded_participation:3", "independent_given_habits"])
    assert set(both) == {pkdp.BoundedParticipation(3), pkdp.IndependentGivenHabits()}
    for kind, numbers in EVIDENCE.items():
        flag = f"{kind}:{','.join('1' for _ in numbers)}" if numbers else kind
        (declared,) = read_evidence_flags([flag])
        assert declared.key == kind


@pytest.mark.parametrize(
    "given",
    [
        ["once_per_unit", "once_per_unit"],
        ["once_per_unit", "one_day_protected"],
        ["bounded_dependence"],
        ["bounded_dependence:1,2,3"],
        ["bounded_dependence:0.5,2"],
        ["bounded_dependence:inf"],
        ["bounded_participation:0"],
        ["bounded_participation:2.5"],
        ["disjoint_units:1"],
        ["same_people"],
        [""],
    ],
)
def test_evidence_that_is_none_is_refused(given):
    with pytest.raises(ArgumentError):
        read_evidence_flags(given)
