"""What was added up for more holds for less: the answers are those of adding up each time, for less work."""

from __future__ import annotations

import random
import sys
from collections import Counter, OrderedDict

import pytest
from thorough import one_in, thinned

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger import totals
from pkdp_pipeline.ledger.account import Bundle, add_up
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.ledger.totals import fits_budget
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import BoundedParticipation, IndependentGivenHabits, OneDayProtected
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram

PARTS = {
    "counts": certify(Count(noise=GeometricNoise(0.03)), AttackerModel()),
    "more": certify(Count(noise=GeometricNoise(0.1)), AttackerModel()),
    "table": certify(Histogram(k=90), AttackerModel(p_max=0.3)),
    "large": certify(Histogram(k=1500), AttackerModel(p_max=0.3)),
}
SUMS = []
ALONE = {key: Bundle.of("alone", {key: 1}) for key in PARTS}
BUDGETS = (
    Budget(1.0, 1e-6, part="partial_knowledge"),
    Budget(3.0, 1e-9, part="partial_knowledge"),
    Budget(2.0, 1e-6),
    Budget(0.0, 1e-3, part="worst_case"),
)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(totals, "_known_totals", OrderedDict())


@pytest.fixture
def sums(monkeypatch):
    """Record what is added up."""
    recorded = []
    monkeypatch.setattr(sys.modules[__name__], "SUMS", recorded)
    return recorded


def afresh(bundles, evidence, budget):
    total = add_up(bundles, PARTS, evidence, beside_others=False)
    return all(
        (total if measure == "partial_knowledge" else total.worst_case).delta(budget.epsilon) <= budget.delta
        for measure in budget.measures
    )


def answer(bundles, evidence, budget, *, others=False):
    def total_of(counted):
        SUMS.append(dict(counted))
        return add_up(counted, PARTS, evidence, beside_others=others)

    return fits_budget(bundles, budget, total_of, (evidence, others))


@thinned(2)
@pytest.mark.parametrize("seed", one_in(3, range(6)))
def test_the_answers_are_those_of_adding_up(seed):
    draw = random.Random(seed)
    kinds = [(IndependentGivenHabits(),), (BoundedParticipation(40), IndependentGivenHabits()), (OneDayProtected(),)]
    for _ in range(40):
        # Noise has parts that add up without evidence; the others do with it.
        evidence = draw.choice([(), *kinds])
        keys = draw.sample(["counts", "more"] if not evidence else sorted(PARTS), draw.choice([1, 1, 2]))
        bundles = Counter({ALONE[key]: draw.randrange(1, 120) for key in keys})
        budget = draw.choice(BUDGETS)
        for _ in range(4):
            assert answer(bundles, evidence, budget) == afresh(bundles, evidence, budget)
            bundles[ALONE[draw.choice(keys)]] += draw.choice([1, 1, 7, 40])


@pytest.mark.parametrize("budget", BUDGETS[:3])
def test_the_first_that_is_too_much_is_the_same(budget, sums):
    evidence = (IndependentGivenHabits(),)
    days = 1
    while answer({ALONE["counts"]: days}, evidence, budget):
        days += 1
    assert len(sums) < days or days < 8
    assert not afresh({ALONE["counts"]: days}, evidence, budget)
    assert afresh({ALONE["counts"]: days - 1}, evidence, budget)
    assert days > 8


def test_a_year_takes_a_few_sums(sums):
    for day in range(1, 366):
        assert answer({ALONE["large"]: day}, (IndependentGivenHabits(),), Budget(3.0, 1e-6, part="partial_knowledge"))
    assert len(sums) <= 12


def test_a_single_question_takes_one_sum(sums):
    assert answer({ALONE["counts"]: 5}, (), BUDGETS[0])
    assert sums == [{ALONE["counts"]: 5}]


def test_what_fits_is_remembered_for_its_own_question_only(sums):
    bundles, fewer = {ALONE["counts"]: 100}, {ALONE["counts"]: 5}
    evidence = (IndependentGivenHabits(),)
    assert answer(bundles, evidence, BUDGETS[1])
    del sums[:]
    assert answer(fewer, evidence, BUDGETS[1])
    assert not sums
    assert answer(fewer, (), BUDGETS[1])
    assert len(sums) == 1
    assert answer(fewer, evidence, BUDGETS[0])
    assert len(sums) == 2
    assert not answer({ALONE["more"]: 5}, evidence, BUDGETS[3])
    assert len(sums) == 3
    assert answer(fewer, evidence, BUDGETS[1], others=True)
    assert len(sums) == 4


def test_what_does_not_add_up_is_an_error_and_remembers_nothing():
    with pytest.raises(NoEvidenceError):
        answer({ALONE["table"]: 2}, (), BUDGETS[0])
    assert answer({ALONE["large"]: 1}, (), BUDGETS[0])
    with pytest.raises(NoEvidenceError):
        answer({ALONE["large"]: 2}, (), BUDGETS[0])


def test_what_is_remembered_stays_small():
    for number in range(totals._MAX_KNOWN_TOTALS + 50):
        budget = Budget(1.0 + number / 1000, 1e-6, part="worst_case")
        assert answer({ALONE["counts"]: 1}, (), budget)
    assert len(totals._known_totals) == totals._MAX_KNOWN_TOTALS
