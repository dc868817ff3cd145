"""What was declared stands in every sentence that uses it, and in no other; reasons are those that apply."""

from __future__ import annotations

import math

import pytest
from oracle.pairs import product_divergence

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    BoundedSensitivity,
    DisjointUnits,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
    SamePeople,
)

NOISE = pkdp.GeometricNoise(0.5)
IF = ", if what was declared is true"


def noised(kind=pkdp.Histogram, protects="presence", attacker=None):
    return pkdp.certify(kind(noise=NOISE), attacker or pkdp.AttackerModel(), protects=protects)


USED = {
    "disjoint": (DisjointUnits(), "who belongs to which part is fixed in advance"),
    "participation": (BoundedParticipation(2), "Nobody takes part in more than 2 of the periods"),
    "once": (OncePerUnit(), "Every person appears in at most one of the releases."),
    "sensitivity": (BoundedSensitivity(2), "changes the counts of all releases"),
}
NOT_USED = [None, IndependentGivenHabits(), OneDayProtected(), BoundedDependence(0.1), SamePeople()]


@pytest.mark.parametrize("kind", sorted(USED))
def test_a_total_of_noise_alone_says_what_was_declared(kind):
    evidence, words = USED[kind]
    total = pkdp.compose([(noised(), 365)], evidence)
    assert not total.has_partial_knowledge
    sentence = total.sentence()
    assert f"whatever they know{IF}. Declared: " in sentence
    assert words in sentence
    assert any(words in text for text in total.assumptions)
    assert Statement.of(total).anyone.endswith(IF)
    # It is said of what is made of the total, too.
    more = pkdp.compose([total, noised()])
    assert words in more.sentence()
    assert words in " ".join(more.assumptions)
    assert more.anyone.endswith(IF)
    for text in (sentence, *total.assumptions):
        assert "p_max" not in text
        assert "declared numbers" not in text


@pytest.mark.parametrize("evidence", NOT_USED)
def test_nothing_is_said_where_noise_needs_nothing(evidence):
    total = pkdp.compose([(noised(), 2)], evidence)
    assert "Declared: " not in total.sentence()
    assert total.anyone == "anyone at all, whatever they know"
    assert not any("declared numbers" in text for text in total.assumptions)


def test_both_statements_of_a_total_say_so():
    attacker = pkdp.AttackerModel(p_max=0.1)
    parts = [(pkdp.certify(pkdp.Histogram(k=8, noise=NOISE, release_threshold=8), attacker), 9)]
    total = pkdp.compose(parts, OncePerUnit())
    assert total.has_partial_knowledge
    _, _, noise = total.sentence().partition("The noise alone gives ")
    assert f" against anyone at all, whatever they know{IF}." in noise
    assert "the declared numbers are about" in total.sentence()
    habits = pkdp.compose(parts, IndependentGivenHabits())
    assert "independent" in habits.sentence()
    assert habits.anyone == "anyone at all, whatever they know"


def test_a_person_who_is_in_every_release_is_not_protected_as_declared():
    """What the sentence of a year under `OncePerUnit` claims is false of somebody who is there every day."""
    assert product_divergence([noise_pair(0.5)] * 6, math.exp(0.5)) > 0.3
    assert pkdp.compose([(noised(), 6)], OncePerUnit()).delta(0.5) == 0.0


# Reasons ------------------------------------------------------------------------------------------------------


def test_noise_is_not_asked_for_numbers():
    for protects in ("presence", "value"):
        for evidence in (OncePerUnit(), BoundedParticipation(1)):
            total = pkdp.compose([(noised(protects=protects), 3), noised(protects=protects)], evidence)
            assert total.reason == ""
            assert "p_max" not in total.sentence()
            assert "Nothing rests" not in total.sentence()


def test_noised_counts_add_up_once_per_person():
    total = pkdp.compose([(noised(pkdp.Count), 9)], OncePerUnit())
    assert total.worst_case.parameters == (0.5, 0.0)
    numbers = pkdp.certify(pkdp.Count(noise=NOISE), pkdp.AttackerModel(p_min=0.3, p_max=0.6, unknown=500))
    total = pkdp.compose([(numbers, 9)], OncePerUnit())
    assert not total.has_partial_knowledge
    assert "only the numbers of histograms" in total.reason


@pytest.mark.parametrize("protects", ["presence", "value"])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 0.8, 1.2])
def test_releases_of_one_period_count_together_once_per_person(protects, epsilon):
    kinds = [pkdp.Histogram(noise=pkdp.GeometricNoise(noise)) for noise in (0.3, 0.5)]
    day = pkdp.compose([pkdp.certify(kind, pkdp.AttackerModel(), protects=protects) for kind in kinds])
    total = pkdp.compose([(day, 2), pkdp.certify(kinds[1], pkdp.AttackerModel(), protects=protects)], OncePerUnit())
    # In which cells, of which noise, a life is counted: both releases of one of two days, or the third day's only.
    places = [{(day, noise, cell): noise for noise in (0.3, 0.5)} for day in (1, 2) for cell in (0, 1)]
    places += [{(3, 0.5, cell): 0.5} for cell in (0, 1)]
    others = [{}] if protects == "presence" else places
    true = max(apart(place, other, epsilon) for place in places for other in others if place != other)
    assert true * (1 - 1e-12) <= total.delta(epsilon)
    assert total.worst_case.parameters[0] == pytest.approx(0.8 if protects == "presence" else 3.2)


def apart(first, second, epsilon):
    """Return the exact δ of two lives that are counted in these cells: every cell that differs shows ±ε0."""
    return product_divergence([noise_pair(noise) for _, noise in first.items() ^ second.items()], math.exp(epsilon))


def noise_pair(epsilon):
    alpha = math.exp(-epsilon)
    return [(1 / (1 + alpha), alpha / (1 + alpha)), (alpha / (1 + alpha), 1 / (1 + alpha))]


def test_several_releases_of_one_period_are_not_asked_to_be_histograms():
    exact = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.3, p_max=0.6, unknown=500))
    day = pkdp.compose([exact, noised(pkdp.Count)], SamePeople())
    with pytest.raises(pkdp.NoEvidenceError, match="count by their noise") as refused:
        pkdp.compose([(day, 2)], OncePerUnit())
    assert "Certify each part as a Histogram" not in str(refused.value)


def test_same_people_is_offered_where_it_helps():
    exact = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=0.3, p_max=0.6, unknown=500))
    with pytest.raises(pkdp.NoEvidenceError, match="SamePeople"):
        pkdp.compose([exact, noised()])
    with pytest.raises(pkdp.NoEvidenceError) as refused:
        pkdp.compose([(pkdp.certify(pkdp.Histogram(k=20), pkdp.AttackerModel(p_max=0.1)), 2)])
    assert "SamePeople" not in str(refused.value)
