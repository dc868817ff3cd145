"""compose: what it takes, what it returns, and what it refuses. The rules have tests of their own."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re

import jsonschema
import numpy as np
import pytest
from test_schemas import VALIDATOR
from thorough import ALL, one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline import AttackerModel, Certificate, Count, GeometricNoise, Histogram, certify, compose
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.model.context import Context

K20 = certify(Histogram(k=20), AttackerModel(p_max=0.1))
K30 = certify(Histogram(k=30), AttackerModel(p_max=0.2))
VALUE = certify(Histogram(k=20), AttackerModel(p_max=0.1), protects="value")
BETWEEN = certify(Histogram(k=60), AttackerModel(p_max_between=0.7), protects="value")
NOISED = certify(Histogram(noise=GeometricNoise(0.25)), AttackerModel())
BOTH = certify(Histogram(k=20, noise=GeometricNoise(0.5), release_threshold=60), AttackerModel(p_max=0.1))
EXACT = certify(Count(), AttackerModel(p_min=0.2, p_max=0.7, unknown=60))
HABITS, ONE_DAY = pkdp.IndependentGivenHabits(), pkdp.OneDayProtected()
POINTS = np.array([0.0, 0.3, 1.0, 2.5, 8.0])

NOTHING = "Nothing is assumed about what the attacker knows."


def test_a_total_lists_what_is_true_of_all_of_its_releases():
    """Exact totals promise nothing and assume nothing; what some releases assume or count is told as theirs."""
    attacker = AttackerModel(p_max_between=0.7, leakage=pkdp.Leakage.totals(by="region"))
    table = certify(Histogram(k=60), attacker, protects="value")
    exact = certify(Histogram(totals=True), attacker, protects="value")
    assert exact.assumptions[0] == NOTHING
    beside = compose([table, exact]).assumptions
    assert NOTHING not in beside
    assert set(table.assumptions) <= set(beside)
    assert not any(text.startswith("In 1 of") for text in beside)
    both = compose([K20, (K30, 2)], HABITS).assumptions
    assert [text[:50] for text in both if "The attacker is" in text] == [
        "In 1 of the 3 releases: The attacker is anyone who",
        "In 2 of the 3 releases: The attacker is anyone who",
    ]
    mixed = compose([BETWEEN, VALUE], HABITS).assumptions
    assert (
        "In 1 of the 2 releases: Nothing is assumed about absence; totals may be published beside the table." in mixed
    )


def test_what_only_noise_gives_assumes_nothing_and_what_also_rests_on_an_attacker_does():
    assert NOTHING not in BOTH.assumptions
    assert any(text.startswith("The attacker is") for text in BOTH.assumptions)
    for total in (compose([NOISED, BOTH]), compose([BOTH, BOTH.with_caveats("Another.")])):
        assert not total.has_partial_knowledge
        assert NOTHING in total.assumptions
        assert not any("The attacker is" in text for text in total.assumptions)
    assert NOTHING not in compose([(BOTH, 7)], HABITS).assumptions


def test_rules_about_rows_are_told_of_the_releases_that_have_them():
    kept, dropped = (
        K20.in_context(Context(unit=("id",), missing_unit=rule, period=day, dataset="d"))
        for rule, day in (("error", "2020-01-01"), ("drop", "2020-01-02"))
    )
    limits = compose([kept, dropped], HABITS).limits
    assert "A person is one value of 'id'." in limits
    assert "In 1 of the 2 releases: Rows that name no person are left out." in limits
    assert not any(text.startswith("Rows that name no person") for text in limits)
    nested = compose([compose([kept], pkdp.SamePeople()), (dropped, 3)], HABITS).limits
    assert "In 3 of the 4 releases: Rows that name no person are left out." in nested


MADE = {
    "single": ([K20], None),
    "disjoint": ([K20, K30], pkdp.DisjointUnits()),
    "habits": ([(K20, 5), K30], HABITS),
    "habits, value": ([(VALUE, 3)], HABITS),
    "habits, between": ([(BETWEEN, 4)], HABITS),
    "habits, participation": ([(K20, 9)], [HABITS, pkdp.BoundedParticipation(2)]),
    "one day": ([(K20, 365), K30], ONE_DAY),
    "group": ([(K30, 6)], [ONE_DAY, pkdp.BoundedParticipation(1)]),
    "dependence": ([K20, K30], pkdp.BoundedDependence(0.1, 1e-7)),
    "participation": ([(NOISED, 20)], pkdp.BoundedParticipation(3)),
    "once": ([K20, K30], pkdp.OncePerUnit()),
    "once, value": ([VALUE, VALUE.with_caveats("Another.")], pkdp.OncePerUnit()),
    "same people": ([EXACT, certify(Count(noise=GeometricNoise(0.1)), AttackerModel())], pkdp.SamePeople()),
    "noise": ([(NOISED, 4), BOTH], None),
    "habits, noise": ([(BOTH, 7)], HABITS),
    "nothing": ([], None),
}


@pytest.fixture(scope="module", params=one_in(4, MADE))
def total(request):
    return compose(*MADE[request.param])


@thinned(2)
def test_a_total_is_a_certificate(total):
    assert isinstance(total, Certificate)
    assert isinstance(total, ComposedCertificate)
    attained, certified = total.delta_bounds(POINTS)
    assert np.all((attained >= 0.0) & (attained <= certified) & (certified <= 1.0))
    assert total.delta(POINTS) == pytest.approx(certified, rel=1e-12)
    assert np.all(np.diff(certified) <= 1e-12)
    for target in (1e-3, 1e-6):
        epsilon = total.epsilon(target)
        if epsilon < math.inf:
            assert total.delta(epsilon) <= target


@thinned(2)
def test_it_comes_back_from_json_with_its_parts_and_verifies(total):
    text = total.to_json()
    back = Certificate.from_json(text)
    assert back == total
    assert hash(back) == hash(total)
    assert back.to_json() == text
    assert back.verify() is True
    assert total.verify() is True
    assert [times for _, times in back.parts] == [times for _, times in total.parts]
    VALIDATOR.validate(json.loads(text))
    json.loads(text, parse_constant=pytest.fail)


@thinned(2)
def test_it_can_be_copied_and_pickled(total):
    for back in (pickle.loads(pickle.dumps(total)), copy.deepcopy(total)):
        assert back == total
        assert back.to_json() == total.to_json()


def test_it_says_what_it_promises(total):
    sentence = total.sentence()
    assert sentence.endswith(".")
    assert "rotects" in sentence or total.releases == 0
    for evidence in total.evidence:
        if total.has_partial_knowledge:
            assert evidence.declares[1:-1] in sentence
        assert evidence.declares in total.assumptions
    assert total.with_caveats("One more limit.").sentence().endswith(" One more limit.")
    assert "<p>" in total._repr_html_()


@thinned(2)
def test_a_changed_part_number_or_word_is_found(total):
    document = json.loads(total.to_json())
    changes = [("sentence", "All is well."), ("protects", "value" if total.protects == "presence" else "presence")]
    for field, value in changes:
        forged = {**document, field: value}
        with pytest.raises(pkdp.PkdpError):
            Certificate.from_json(json.dumps(forged)).verify()
    for row in (0, -1):
        forged = copy.deepcopy(document)
        forged["grid"][row]["delta"] = forged["grid"][row]["delta"] * 0.999 - 1e-12
        with pytest.raises(pkdp.PkdpError):
            Certificate.from_json(json.dumps(forged)).verify()
    for position in range(len(document["parts"]))[: None if ALL else 1]:
        fewer = copy.deepcopy(document)
        fewer["parts"][position]["times"] += 1
        with pytest.raises(pkdp.PkdpError):
            Certificate.from_json(json.dumps(fewer)).verify()
        other = copy.deepcopy(document)
        other["parts"][position]["certificate"]["sentence"] = "Trust me."
        with pytest.raises(pkdp.PkdpError):
            Certificate.from_json(json.dumps(other)).verify()


@pytest.mark.parametrize("times", [0, -1, 1.5, True, None, "2"])
def test_malformed_parts_are_refused(times):
    document = json.loads(compose([K20, K30], ONE_DAY).to_json())
    document["parts"][0]["times"] = times
    with pytest.raises(pkdp.ArgumentError, match="times"):
        Certificate.from_json(json.dumps(document))
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)


def test_equal_parts_are_counted_once():
    listed = compose([K20] * 5 + [K30], HABITS)
    counted = compose([(K20, 4), K30, (K20, 1)], HABITS)
    assert listed == counted
    assert listed.parts == ((K20, 5), (K30, 1))
    assert listed.releases == 6
    assert compose(iter([K20, K20]), HABITS).releases == 2


def test_one_part_keeps_its_own_guarantee():
    for part in (K20, VALUE, BOTH, EXACT):
        total = compose([part])
        assert (total.delta(POINTS) == part.delta(POINTS)).all()
        assert total.protects == part.protects
        assert total.sentence() == part.sentence()


def test_nothing_promises_everything():
    total = compose([])
    assert total.delta(0.0) == 0.0
    assert total.epsilon(0.0) == 0.0
    assert total.worst_case.delta(0.0) == 0.0
    assert "Nothing is published" in total.sentence()


def test_noiseless_parts_need_evidence_and_the_choices_are_named():
    for parts in ([K20, K30], [(K20, 2)], [K20, NOISED], [EXACT, NOISED]):
        with pytest.raises(pkdp.NoEvidenceError) as refused:
            compose(parts)
        for name in ("DisjointUnits", "IndependentGivenHabits", "OneDayProtected", "OncePerUnit", "noise"):
            assert name in str(refused.value)


def test_noised_parts_add_up_without_evidence_and_the_rest_is_none():
    total = compose([(NOISED, 4), BOTH])
    assert not total.has_partial_knowledge
    assert total.reason == "no evidence says how the releases depend on one another"
    assert total.reason in total.sentence()
    epsilon, delta = total.worst_case.parameters
    assert epsilon == 4 * 0.25 + 0.5
    assert delta == BOTH.worst_case.parameters[1]
    assert total.delta(epsilon) <= delta


def test_what_a_total_protects():
    assert compose([VALUE, VALUE.with_caveats("Another.")], ONE_DAY).protects == "value"
    mixed = compose([VALUE, K30], HABITS)
    assert mixed.protects == "presence"
    assert mixed.epsilon(1e-6) > K30.epsilon(1e-6)
    # Theorem C says nothing about presence.
    with pytest.raises(pkdp.NoEvidenceError, match="protects"):
        compose([BETWEEN, K30], HABITS)
    noised = certify(Histogram(noise=GeometricNoise(0.25)), AttackerModel(), protects="value")
    assert compose([noised, NOISED]).protects == "presence"


def test_one_day_and_the_whole_trajectory_are_not_mixed_up():
    one_day = compose([K20, K30], ONE_DAY)
    assert not one_day.whole
    assert "It does not protect what several releases together tell about her." in one_day.sentence()
    assert "it does not protect which cell she is in" in one_day.sentence()
    value = compose([VALUE, VALUE.with_caveats("Another.")], ONE_DAY).sentence()
    assert "Protects whether a person is included, and in which cell, in any one of these releases" in value
    for evidence in (None, HABITS, pkdp.DisjointUnits(), [ONE_DAY, pkdp.BoundedParticipation(1)]):
        with pytest.raises(pkdp.NoEvidenceError, match="one day"):
            compose([one_day, K20], evidence)
    again = compose([one_day, K20], ONE_DAY)
    assert not again.whole
    assert (again.delta(POINTS) == one_day.delta(POINTS)).all()
    grouped = compose([K20, K30], [ONE_DAY, pkdp.BoundedParticipation(1)])
    assert grouped.whole
    assert (grouped.delta(POINTS) >= one_day.delta(POINTS)).all()


def test_totals_can_be_parts():
    weeks = compose([(K20, 2)], HABITS)
    regions = compose([weeks, compose([(K30, 2)], HABITS)], pkdp.DisjointUnits())
    assert regions.epsilon(1e-6) == max(weeks.epsilon(1e-6), compose([(K30, 2)], HABITS).epsilon(1e-6))
    assert regions.verify() is True
    year = compose([weeks, compose([K20, K30], HABITS)], HABITS)
    flat = compose([(K20, 3), K30], HABITS)
    assert flat.epsilon(1e-6) <= year.epsilon(1e-6) * (1 + 1e-6)


@pytest.mark.parametrize(
    "given",
    [K20, None, 5, [None], [(K20, 0)], [(K20, 1.5)], [(K20, True)], ["text"], [(K20, 1, 1)], [K20.to_json()]],
)
def test_anything_but_certificates_is_an_error(given):
    with pytest.raises(pkdp.ArgumentError):
        compose(given, HABITS)


OPTIONS = certify(Histogram(), AttackerModel(p_min=0.2, unknown=60), protects="value")


@thinned(2)
@pytest.mark.parametrize(
    "evidence",
    [pkdp.DisjointUnits(), HABITS, ONE_DAY, pkdp.BoundedDependence(0.1), [HABITS, pkdp.BoundedParticipation(1)]],
)
def test_no_total_promises_what_its_parts_do_not(evidence):
    presence = compose([K20, K30], evidence).sentence()
    assert "it does not protect which cell she is in once that is known" in presence
    for part in (BETWEEN, OPTIONS):
        value = compose([(part, 2)], evidence).sentence()
        assert re.search("does not protect (whether|in which releases) she is included", value)
    assert "it does not protect" not in compose([(VALUE, 2)], evidence).sentence()


def test_different_attackers_are_named():
    sentence = compose([(K20, 3), K30], HABITS).sentence()
    assert "In 3 of the releases: anyone who regards" in sentence
    assert "In 1 of the releases: anyone who regards" in sentence
    assert "10 %" in sentence
    assert "20 %" in sentence


def test_a_forged_document_cannot_turn_one_day_into_everything():
    one_day = json.loads(compose([(K20, 30)], ONE_DAY).to_json())
    for evidence, times in ((HABITS, 2), (None, 1)):
        forged = json.loads(compose([(K20, times)], evidence).to_json())
        forged["parts"] = [{"times": times, "certificate": one_day}]
        with pytest.raises(pkdp.NoEvidenceError, match="one day"):
            Certificate.from_json(json.dumps(forged))


def test_limits_of_parts_are_limits_of_the_total():
    context = Context(unit=("household",), where="age >= 18", period="2020-01-01")
    part = K20.in_context(context).with_caveats("Visitors are not counted.")
    for total in (compose([part, K30.in_context(context)], HABITS), compose([compose([part, K30], HABITS)])):
        for words in ("A person is one value of 'household'.", "Only rows with age >= 18", "Visitors are not counted."):
            assert words in total.sentence()
            assert any(words in limit for limit in total.limits)
    with pytest.raises(pkdp.NoEvidenceError, match="different privacy units"):
        compose([part, K30.in_context(Context(unit=("person",)))], HABITS)


def test_group_privacy_and_bounded_dependence_never_rise_again():
    grouped = compose([(K20, 30)], [ONE_DAY, pkdp.BoundedParticipation(3)])
    split = compose([(BOTH, 2), (EXACT, 5)], pkdp.BoundedDependence(0.05, 1e-9))
    for total in (grouped, split):
        values = total.delta(np.array([1.0, 5.0, 10.0, 20.0, 40.0, 80.0, 200.0, 500.0]))
        assert np.all(np.diff(values) <= 1e-12)
    for target in (1e-6, 7.8e-9):
        assert grouped.epsilon(target) < math.inf


def test_the_largest_of_totals_that_cross_is_inverted():
    steep = certify(Count(k=20), AttackerModel(p_max=0.5))
    weak = certify(Count(noise=GeometricNoise(20.0)), AttackerModel())
    steep_total = compose([(steep, 30)], [ONE_DAY, pkdp.BoundedParticipation(2)])
    weak_total = compose([(weak, 30)], [ONE_DAY, pkdp.BoundedParticipation(10)])
    total = compose([steep_total, weak_total], pkdp.DisjointUnits())
    assert total.delta(total.epsilon(0.0212)) <= 0.0212


def test_numbers_beyond_all_use():
    with pytest.raises(pkdp.ArgumentError, match="times"):
        compose([(K20, 10**12)], HABITS)
    with pytest.raises(pkdp.ArgumentError, match="epsilon"):
        pkdp.BoundedDependence(10**400)
    loud = compose([(certify(Count(noise=GeometricNoise(1e100)), AttackerModel()), 1_000_000)])
    assert loud.delta(1.0) == 1.0
    assert loud.epsilon(1e-6) == loud.worst_case.parameters[0]
