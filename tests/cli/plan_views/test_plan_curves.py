"""Curves: every column is certified, the declared one exactly; more of k never costs ε."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli.plan_views.plan import Curve, curves, evenly, planned, takes_long
from pkdp_pipeline.cli.plan_views.question import Question

HABITS = (pkdp.IndependentGivenHabits(),)
ONCE = Question(kind="histogram", attacker=pkdp.AttackerModel(p_max=0.2, known=2), epsilon=1.0, delta=1e-6)
QUARTER = Question(
    kind="histogram", attacker=pkdp.AttackerModel(p_max=0.1), epsilon=4.0, delta=1e-6, days=90, evidence=HABITS
)


@pytest.mark.parametrize("question", [ONCE, QUARTER], ids=["once", "quarter"])
def test_every_point_is_a_certificate(question):
    made = planned(question)
    found = {curve.field: curve for curve in curves(made)}
    assert set(found) == {"k", "known", "p_max"}
    for k, epsilon in list(zip(found["k"].values, found["k"].epsilons, strict=True))[::4]:
        one = pkdp.certify(pkdp.Histogram(k=int(k)), question.attacker)
        total = one if question.days == 1 else pkdp.compose([(one, question.days)], question.evidence)
        assert total.epsilon(1e-6) == epsilon
    assert all(a >= b for a, b in pairwise(found["k"].epsilons))
    assert all(a <= b for a, b in pairwise(found["known"].epsilons))
    at = found["k"].values.index(found["k"].declared)
    # k is the smallest that reaches the target.
    assert found["k"].epsilons[at] <= question.epsilon
    assert found["k"].epsilons[at - 1] > question.epsilon


def test_what_holds_against_anyone_has_no_curves():
    assert curves(planned(ONCE).choosing(2)) == ()


def test_what_takes_long_depends_on_theorem_and_size():
    passive = pkdp.AttackerModel(p_max=0.1, known=1)
    several = Question(kind="histogram", attacker=passive, epsilon=4.0, delta=1e-6, days=2, evidence=HABITS)
    assert takes_long(planned(several))
    assert not takes_long(planned(QUARTER))
    assert not takes_long(planned(ONCE))


@st.composite
def drawn(draw):
    field = draw(st.sampled_from(["k", "known", "p_max", "unknown"]))
    size = draw(st.integers(2, 12))
    if field == "p_max":
        values = sorted(draw(st.sets(st.floats(0.001, 1.0), min_size=size, max_size=size)))
    else:
        values = sorted(map(float, draw(st.sets(st.integers(0, 500), min_size=size, max_size=size))))
    epsilons = sorted(draw(st.lists(st.floats(0.01, 50.0), min_size=size, max_size=size)))
    none = draw(st.integers(0, size - 1))
    epsilons = [*epsilons[: size - none], *([math.inf] * none)]
    if field in ("k", "unknown"):
        epsilons.reverse()
    certified = [place for place, epsilon in enumerate(epsilons) if epsilon < math.inf]
    declared = values[draw(st.sampled_from(certified))]
    return Curve(field=field, words="w", declared=declared, values=tuple(values), epsilons=tuple(epsilons))


@given(drawn(), st.integers(16, 60))
def test_columns_are_nowhere_below_what_is_certified(curve, room):
    shown = evenly(curve, room)
    assert len(shown.heights) <= room
    assert shown.heights[shown.declared] == curve.epsilons[curve.values.index(curve.declared)]
    certified = [(value, epsilon) for value, epsilon in zip(curve.values, curve.epsilons, strict=True)]
    finite = [column for column, height in enumerate(shown.heights) if height < math.inf]
    step = (shown.last - shown.first) / max(1, len(finite) - 1)
    for place, column in enumerate(finite):
        if column == shown.declared:
            continue
        at = shown.first + place * step
        below = max((one for one in certified if one[0] <= at * (1 + 1e-9)), key=lambda one: one[0], default=None)
        above = min((one for one in certified if one[0] >= at * (1 - 1e-9)), key=lambda one: one[0], default=None)
        true = {one for one in (below, above) if one is not None and one[1] < math.inf}
        # Between two values the attacker who knows more is the certified one: the larger ε.
        exact = [epsilon for value, epsilon in true if abs(value - at) <= 1e-9 * abs(at)]
        assert shown.heights[column] == (exact[0] if exact else max(epsilon for _, epsilon in true))
    if math.inf in curve.epsilons:
        assert math.inf in shown.heights
