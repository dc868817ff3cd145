"""Curves: every point is certified, the declared one among them; more of k never costs ε."""

from __future__ import annotations

import io
import re
from itertools import pairwise

import pytest
from rich.console import Console
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.extras.plan.answers import curves, planned, takes_long
from pkdp_pipeline.extras.plan.printing import print_closely
from pkdp_pipeline.extras.plan.question import Question
from pkdp_pipeline.model.wording import rounded_up

HABITS = (pkdp.IndependentGivenHabits(),)
ACTIVE = pkdp.AttackerModel(p_max=0.2, known=2, influence="active")
ONCE = Question(kind="histogram", attacker=ACTIVE, epsilon=1.0, delta=1e-6)
PASSIVE = Question(kind="histogram", attacker=pkdp.AttackerModel(p_max=0.2, known=2), epsilon=1.0, delta=1e-6)
QUARTER = Question(
    kind="histogram", attacker=pkdp.AttackerModel(p_max=0.1), epsilon=4.0, delta=1e-6, days=90, evidence=HABITS
)


@thinned(2)
@pytest.mark.parametrize(
    "question",
    [
        pytest.param(ONCE, id="once"),
        pytest.param(QUARTER, id="quarter"),
        pytest.param(PASSIVE, id="passive", marks=pytest.mark.slow),
    ],
)
def test_every_point_is_a_certificate(question):
    plan = planned(question)
    by_field = {curve.field: curve for curve in curves(plan)}
    assert set(by_field) == {"k", "known", "p_max"}
    for k, epsilon in list(zip(by_field["k"].values, by_field["k"].epsilons, strict=True))[::4]:
        certificate = pkdp.certify(pkdp.Histogram(k=int(k)), question.attacker)
        total = certificate if question.days == 1 else pkdp.compose([(certificate, question.days)], question.evidence)
        assert total.epsilon(1e-6) == epsilon
    assert all(a >= b for a, b in pairwise(by_field["k"].epsilons))
    assert all(a <= b for a, b in pairwise(by_field["known"].epsilons))
    place = by_field["k"].values.index(by_field["k"].declared)
    # k is the smallest that reaches the target.
    assert by_field["k"].epsilons[place] <= question.epsilon
    assert by_field["k"].epsilons[place - 1] > question.epsilon


def test_what_holds_against_anyone_has_no_curves():
    assert curves(planned(ONCE).choosing(3)) == ()


@pytest.mark.slow
def test_what_takes_long_depends_on_theorem_and_size():
    passive = pkdp.AttackerModel(p_max=0.1, known=1)
    several = Question(kind="histogram", attacker=passive, epsilon=4.0, delta=1e-6, days=2, evidence=HABITS)
    assert takes_long(planned(several))
    assert not takes_long(planned(QUARTER))
    assert not takes_long(planned(ONCE))
    assert not takes_long(planned(PASSIVE))


def test_the_rows_that_are_drawn_are_points_of_the_curves():
    drawn_plan, text = planned(ONCE), io.StringIO()
    print_closely(Screen(Console(file=text, width=80)), drawn_plan)
    for curve in curves(drawn_plan):
        if curve.field == "k":
            rows = re.findall(r"^ +(\d+) +[█░]+ +(\S+)( +the plan)?", text.getvalue(), flags=re.MULTILINE)
            certified = {f"{value:.0f}": rounded_up(epsilon) for value, epsilon in zip(*curve[3:], strict=True)}
            shown = [row for row in rows if certified.get(row[0]) == row[1]]
            assert len(shown) >= 5
            assert any(plan and k == f"{curve.declared:.0f}" for k, _, plan in shown)
    assert text.getvalue().count("the plan") == len(curves(drawn_plan))
