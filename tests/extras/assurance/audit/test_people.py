"""Crowds keep to the declared attacker, and frames differ in nothing but the target."""

from __future__ import annotations

import numpy as np
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group, is_admitted
from pkdp_pipeline.extras.assurance.audit.cases import battery, case_of, crowds_for
from pkdp_pipeline.extras.assurance.audit.people import ABSENT, Layout, draw, frame_of, shown_to_attacker

ATTACKERS = [
    (pkdp.Count(k=5), pkdp.AttackerModel(p_max=0.3, known=2, influence="active"), "presence"),
    (pkdp.Count(k=5), pkdp.AttackerModel(p_max=0.3, known=2), "presence"),
    (pkdp.Count(k=5), pkdp.AttackerModel(p_max=0.3, p_min=0.1, unknown=7, unknown_max=9), "presence"),
    (pkdp.Count(k_complement=4), pkdp.AttackerModel(p_min=0.8), "presence"),
    (pkdp.Count(), pkdp.AttackerModel(p_min=0.2, p_max=0.7, unknown=30), "presence"),
    (pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1), "presence"),
    (pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1, unknown_max=25), "value"),
    (pkdp.Histogram(k=20), pkdp.AttackerModel(p_max_between=0.7), "value"),
    (pkdp.Histogram(), pkdp.AttackerModel(p_min=0.2, unknown=50), "value"),
]


@pytest.mark.parametrize(("mechanism", "attacker", "protects"), ATTACKERS)
def test_crowds_keep_to_the_declared_attacker(mechanism, attacker, protects):
    certificate = pkdp.certify(mechanism, attacker, protects=protects)
    trials = crowds_for(certificate)
    assert trials
    for trial in trials:
        for crowd in trial.days:
            assert is_admitted(crowd, certificate), trial
            assert is_admitted(crowd.reversed(), certificate), trial


def test_the_batterys_crowds_keep_to_the_declared_attacker():
    for case in battery():
        certificate = pkdp.certify(case.mechanism, case.attacker, protects=case.protects)
        assert case.trials
        for trial in case.trials:
            assert all(is_admitted(crowd, certificate) for crowd in trial.days), case.name


def test_people_are_where_their_chances_say():
    crowd = Crowd(
        cells=2, unknown=(Group(people=10, chances=(0.2, 0.5)),), known=(Group(people=3, chances=(1.0, 0.0)),)
    )
    drawn = draw(crowd, [0, None] * 500, Layout(companions=(2,)), np.random.default_rng(1))
    assert drawn.shape == (1000, 16)
    assert set(drawn[0::2, 0]) == {0}
    assert set(drawn[1::2, 0]) == {ABSENT}
    assert set(drawn[:, 1:4].ravel()) == {0}
    assert shown_to_attacker(crowd, drawn[0]) == (0, 3)
    shares = [(drawn[:, 4:14] == cell).mean() for cell in (0, 1, ABSENT)]
    assert shares == pytest.approx([0.2, 0.5, 0.3], abs=0.03)
    assert set(drawn[:, 14:].ravel()) == {2}


@pytest.mark.parametrize(
    "layout",
    [
        Layout(companions=(2, 1), rows=(1, 2, 3)),
        Layout(counts=True, rows=(2, 3)),
        Layout(companions=(2,), rows=(2,), strays=True),
        Layout(companions=(2,), text=True, nameless=2, strangers=1),
    ],
)
def test_frames_of_the_two_lives_differ_in_the_targets_rows_alone(layout):
    crowd = Crowd(cells=1, unknown=(Group(people=4, chances=(1.0,)),))
    frames = [
        frame_of(draw(crowd, [life], layout, np.random.default_rng(2)), crowd, layout, np.random.default_rng(3))
        for life in (0, None)
    ]
    both = [{(row.person, row.cell, row.counted) for row in frame.itertuples()} for frame in frames]
    others = both[0] & both[1]
    (target,) = {person for person, _, _ in both[0] - others}
    assert {person for person, _, _ in both[1] - others} <= {target}
    assert all(person != target for person, _, _ in others)
    assert list(frames[0].columns) == list(frames[1].columns)
    assert list(frames[0].dtypes) == list(frames[1].dtypes)


def test_everybody_else_has_the_rows_that_the_rules_are_about():
    crowd, generator = Crowd(cells=1), np.random.default_rng(4)
    layout = Layout(companions=(3,), rows=(2,), strays=True)
    frame = frame_of(draw(crowd, [0], layout, generator), crowd, layout, generator)
    assert (frame.groupby("person")["cell"].nunique() == 2).all()
    first = frame.sort_values("turn").groupby("person")["cell"].first()
    most = frame.groupby("person")["cell"].agg(lambda cells: cells.mode()[0])
    assert (first == most).all()


def test_a_case_of_its_own_has_as_many_copies_as_fit():
    small = case_of(pkdp.Histogram(k=3), pkdp.AttackerModel(p_max=0.1), "presence")
    large = case_of(pkdp.Histogram(k=200), pkdp.AttackerModel(p_max=0.5), "presence")
    assert small.copies_of(small.trials[0].days[0]) == 41
    assert 1 <= large.copies_of(large.trials[1].days[0]) < 21
    assert all(case.copies_of(trial.days[0]) % 2 for case in (small, large) for trial in case.trials)
