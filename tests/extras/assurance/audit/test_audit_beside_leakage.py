"""What an audit makes of attackers who are told a total, and of people whose records depend on one another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.attacks.crowd import Crowd, Group, is_admitted
from pkdp_pipeline.extras.assurance.audit import audit_cases
from pkdp_pipeline.extras.assurance.audit.cases import Trial, case_of, crowds_for
from pkdp_pipeline.extras.assurance.audit.people import ABSENT, Layout, draw, shown_to_attacker

TOTAL = pkdp.Leakage.total()
NOISE = pkdp.GeometricNoise(1.0)
BOX = {"p_min": 0.3, "p_max": 0.6, "unknown": 4}
AUDITED = {
    "between": (pkdp.Histogram(k=2), {"p_max_between": 0.6, "leakage": TOTAL}, "value"),
    "noise": (pkdp.Histogram(noise=NOISE), {"leakage": TOTAL}, "value"),
    "the total itself": (pkdp.Count(), {"leakage": TOTAL}, "value"),
    "beside a private leakage": (
        pkdp.Count(),
        {**BOX, "leakage": pkdp.Leakage("a noised figure", epsilon=0.1)},
        "presence",
    ),
    "given the household": (pkdp.Count(), {**BOX, "dependent": "household", "secret": "conditional"}, "presence"),
    "dependent people": (pkdp.Count(noise=NOISE), {**BOX, "dependent": "household"}, "presence"),
}


@thinned(2)
@pytest.mark.parametrize("name", one_in(2, AUDITED))
def test_the_operators_keep_to_what_is_certified_beside_a_leakage(name):
    mechanism, fields, protects = AUDITED[name]
    attacker = pkdp.AttackerModel(**fields)
    certificate = pkdp.certify(mechanism, attacker, protects=protects)
    for trial in crowds_for(certificate):
        for crowd in trial.days:
            assert crowd.sees_total == (attacker.leakage == (TOTAL,))
            assert is_admitted(crowd, certificate)
    audit = pkdp.audit(mechanism, attacker, protects=protects, samples=8)
    assert audit.passed, str(audit)
    assert not audit.not_audited


def test_the_total_is_what_is_counted_in_the_cells_of_a_crowd():
    group = Group(people=10, chances=(0.2, 0.5))
    crowd = Crowd(cells=2, unknown=(group,), known=(Group(people=2, chances=(1.0, 0.0)),), second=1, sees_total=True)
    drawn = draw(crowd, [0, 1] * 20, Layout(), np.random.default_rng(1))
    for copy in range(40):
        assert shown_to_attacker(crowd, drawn[copy]) == (0, 2, int((drawn[copy] != ABSENT).sum()))
    assert shown_to_attacker(replace(crowd, sees_total=False), drawn[0]) == (0, 2)


def test_an_audit_finds_what_the_total_gives_away():
    # Theorem B hides which suppressed cell the target is in, as long as nobody says how many people there are.
    plain = case_of(pkdp.Histogram(k=10), pkdp.AttackerModel(p_max=0.4), "value")
    crowd = Crowd(cells=2, unknown=(Group(people=40, chances=(0.4, 0.0)),), second=1)
    outcomes = []
    for sees_total in (False, True):
        trial = Trial(name="asked", days=(replace(crowd, sees_total=sees_total),))
        audit = audit_cases([replace(plain, trials=(trial,), epsilons=(1.0,))], engines=("pandas",), samples=8)
        outcomes.append(audit.passed)
    assert outcomes == [True, False]
