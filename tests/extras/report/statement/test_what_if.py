"""Stronger attackers: every number is that of a certificate made here from the changed attacker."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import ALL, few, one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.stronger import leaves, likelier
from pkdp_pipeline.extras.report.statement import knowledge_curves, what_if
from pkdp_pipeline.extras.report.statement.what_if import people_known
from pkdp_pipeline.model.wording import rounded_up

A = pkdp.AttackerModel
DELTA = 1e-5
CLOSE = 1e-6


def number(mechanism, attacker, protects="presence", delta=DELTA):
    try:
        return pkdp.certify(mechanism, attacker, protects=protects).epsilon(delta)
    except pkdp.NotCertifiableError:
        return math.inf


@st.composite
def releases(draw, *, noised=True):
    """Thresholds and histograms, noised or not, against all kinds of attackers; in ``make test`` soon certified."""
    k = draw(st.integers(2, 40 if ALL else 8 if noised else 20))
    noise = draw(st.sampled_from([None, 0.5, 1.5])) if noised or ALL else None
    extra = {} if noise is None else {"noise": pkdp.GeometricNoise(noise), "release_threshold": k + 20}
    known = draw(st.integers(0, 6))
    influence = draw(st.sampled_from(["passive", "active"])) if ALL else "active"
    kind = draw(st.sampled_from(["count", "presence", "between"]))
    if kind == "between":
        share = draw(st.integers(50, 99)) / 100
        attacker = A(p_max_between=share, known=known, influence=influence)
        return pkdp.Histogram(k=k, **extra), attacker, "value"
    attacker = A(p_max=draw(st.integers(1, 95)) / 100, known=known, influence=influence)
    return (pkdp.Count if kind == "count" else pkdp.Histogram)(k=k, **extra), attacker, "presence"


def surely(attacker):
    """Whether knowing more people shall mean people who surely count."""
    return attacker.known == 0 or attacker.influence == "active" or attacker.p_max is None


@given(releases())
@settings(max_examples=few(8, 2), deadline=None)
def test_scenarios_are_certificates_of_the_changed_attacker(drawn):
    mechanism, attacker, protects = drawn
    try:
        certificate = pkdp.certify(mechanism, attacker, protects=protects)
    except pkdp.NotCertifiableError:
        return
    rows = what_if(certificate, delta=DELTA)
    assert rows[0].kind == "declared"
    assert rows[0].epsilon == certificate.epsilon(DELTA)
    assert rows[0].delta_at_one == certificate.delta(1.0)
    assert rows[-1].kind == "everything_known"
    assert rows[-1].epsilon == pytest.approx(certificate.worst_case.epsilon(DELTA), rel=CLOSE)
    assert all(row.epsilon >= rows[0].epsilon and row.delta_at_one >= rows[0].delta_at_one for row in rows)
    # Whoever knows everybody has no use for people who share the target's fate; noise hides one unit only.
    weaker = [row for row in rows if row.kind != "no_evidence"]
    assert all(row.epsilon <= rows[-1].epsilon and row.delta_at_one <= rows[-1].delta_at_one for row in weaker)
    assert all((row.epsilon, row.delta_at_one) == (math.inf, 1.0) for row in rows if row.kind == "no_evidence")
    if not certificate.has_partial_knowledge:
        assert [row.kind for row in rows] == ["declared", "everything_known"]
        return
    more = [row for row in rows if row.kind == "knows_more"]
    models = [replace(attacker, known=attacker.known + math.ceil(Fraction(t, 10) * mechanism.k)) for t in range(1, 6)]
    if surely(attacker):
        models = [replace(model, influence="active") for model in models]
    else:
        models.append(replace(models[-1], influence="active"))
    models = list(dict.fromkeys(models))  # of a small k two shares are as many people
    assert len(more) == len(models)
    assert all(left.epsilon <= right.epsilon for left, right in pairwise(more))
    for row, model in zip(more, models, strict=True):
        assert row.epsilon == pytest.approx(number(mechanism, model, protects), rel=CLOSE)
    for row in rows:
        if row.kind == "surer":
            field = "p_max" if protects == "presence" else "p_max_between"
            twice = likelier(getattr(attacker, field), Fraction(2))
            assert f"{twice * 100:g} %" in row.words
            model = replace(attacker, **{field: twice})
            assert row.epsilon == pytest.approx(number(mechanism, model, protects), rel=CLOSE)


@given(releases(noised=False))
@settings(max_examples=few(4, 2), deadline=None)
def test_curves_are_certificates_of_the_moved_attacker(drawn):
    mechanism, attacker, protects = drawn
    try:
        certificate = pkdp.certify(mechanism, attacker, protects=protects)
    except pkdp.NotCertifiableError:
        return
    for curve in knowledge_curves(certificate, delta=DELTA):
        assert list(curve.values) == sorted(set(curve.values))
        assert list(curve.epsilons) == sorted(curve.epsilons)
        assert curve.declared == getattr(attacker, curve.field)
        assert curve.epsilons[curve.values.index(curve.declared)] == certificate.epsilon(DELTA)
        floor = certificate.worst_case.epsilon(DELTA)
        assert curve.floor == (None if floor == math.inf else floor)
        for value, epsilon in zip(curve.values, curve.epsilons, strict=True):
            if curve.field == "known":
                influence = "active" if surely(attacker) else attacker.influence
                moved = replace(attacker, known=int(value), influence=influence)
            else:
                moved = replace(attacker, **{curve.field: value})
            assert epsilon == pytest.approx(number(mechanism, moved, protects), rel=CLOSE)


# Behind a threshold, noise takes seconds for each: the larger the thresholds, the more.
@thinned(2)
@pytest.mark.parametrize(
    ("k", "noise", "threshold"),
    [
        (20, None, None),
        (32, None, None),
        pytest.param(45, None, None, marks=pytest.mark.slow),
        pytest.param(200, None, None, marks=pytest.mark.slow),
        pytest.param(5, pkdp.GeometricNoise(2.0), 12, marks=pytest.mark.slow),
        pytest.param(30, pkdp.GeometricNoise(2.0), 300, marks=pytest.mark.slow),
        pytest.param(200, pkdp.GeometricNoise(2.0), 300, marks=pytest.mark.slow),
    ],
)
def test_curves_are_fine_and_end_where_nothing_but_the_noise_is_left(k, noise, threshold):
    certificate = pkdp.certify(pkdp.Count(k=k, noise=noise, release_threshold=threshold), A(p_max=0.1))
    floor = certificate.worst_case.epsilon(DELTA)
    known, sure = knowledge_curves(certificate, delta=DELTA)
    for curve in (known, sure):
        left = [epsilon >= floor for epsilon in curve.epsilons]
        assert left == [False] * (len(left) - sum(left)) + [True] * sum(left)
        assert 1 <= sum(left) <= 2
    assert known.values[-1] == k - 1
    steps = [right - left for left, right in pairwise(known.values[:-1])]
    assert steps == [1.0] * len(steps) if k <= 30 else max(steps) <= 5.0
    assert sure.values[-1] == 1.0
    odds = [value / (1 - value) for value in sure.values[sure.values.index(0.1) : -1]]
    assert len(odds) >= 40
    assert max(right / left for left, right in pairwise(odds)) <= 2 ** (1 / 4) * 1.01


def test_a_declared_attacker_who_is_too_strong_leaves_the_curve_below():
    certificate = pkdp.certify(pkdp.Histogram(k=20), A(p_max=0.6))
    assert certificate.epsilon(DELTA) == math.inf
    (sure,) = knowledge_curves(certificate, delta=DELTA)
    finite = [value for value, epsilon in zip(sure.values, sure.epsilons, strict=True) if epsilon < math.inf]
    assert len(finite) >= 4
    assert 0.4 < finite[-1] < 0.6
    assert (sure.declared, sure.values[-1]) == (0.6, 1.0)


@given(st.integers(1, 999), st.integers(1, 50))
def test_the_odds_are_at_least_multiplied_and_the_number_is_short(thousandths, tenths):
    p, factor = Fraction(thousandths, 1000), Fraction(10 + tenths, 10)
    up, down = likelier(float(p), factor), likelier(float(p), 1 / factor)
    odds = p / (1 - p)
    assert Fraction(repr(up)) / (1 - Fraction(repr(up))) >= odds * factor
    assert Fraction(repr(up)) / (1 - Fraction(repr(up))) <= odds * factor * Fraction(102, 100)
    assert Fraction(repr(down)) / (1 - Fraction(repr(down))) <= odds / factor
    assert min(len(repr(up)), len(repr(1 - Fraction(repr(up))))) <= 12
    assert (likelier(0.0, factor), likelier(1.0, factor), likelier(0.3, None)) == (0.0, 1.0, 1.0)
    assert likelier(float(p), Fraction(1)) == float(p)


@pytest.mark.slow
def test_a_count_without_a_threshold_moves_the_unknown():
    box = A(p_min=0.2, p_max=0.7, unknown=105)
    rows = what_if(pkdp.certify(pkdp.Count(), box), delta=DELTA)
    more = [row for row in rows if row.kind == "knows_more"]
    assert more[0].words == "is uncertain about 10 % fewer people (94 instead of 105)"
    for tenths, row in enumerate(more, start=1):
        left = 105 * (10 - tenths) // 10
        assert row.epsilon == pytest.approx(number(pkdp.Count(), replace(box, unknown=left)), rel=0.01)
    (surer,) = [row for row in rows if row.kind == "surer"]
    assert "between 11.1 % and 82.4 % instead of between 20 % and 70 %" in surer.words
    assert surer.epsilon == pytest.approx(number(pkdp.Count(), replace(box, p_min=0.111, p_max=0.824)), rel=0.01)
    (curve,) = knowledge_curves(pkdp.certify(pkdp.Count(), box), delta=DELTA, points=12)
    assert (curve.field, curve.values[0], curve.values[-1]) == ("unknown", 0.0, 105.0)
    assert curve.epsilons[0] == math.inf
    assert list(curve.epsilons) == sorted(curve.epsilons, reverse=True)
    for value, epsilon in zip(curve.values, curve.epsilons, strict=True):
        exact = number(pkdp.Count(), replace(box, unknown=int(value)))
        assert epsilon == pytest.approx(exact, rel=0.01)


THRESHOLD = pkdp.certify(pkdp.Histogram(k=20), A(p_max=0.1))
NOISED = pkdp.certify(pkdp.Histogram(k=20, noise=pkdp.GeometricNoise(0.5), release_threshold=60), A(p_max=0.1))
EVIDENCE = {
    "disjoint": pkdp.DisjointUnits(),
    "habits": pkdp.IndependentGivenHabits(),
    "habits, bounded": [pkdp.IndependentGivenHabits(), pkdp.BoundedParticipation(2)],
    "one day": pkdp.OneDayProtected(),
    "dependence": pkdp.BoundedDependence(0.1),
    "once": pkdp.OncePerUnit(),
}


@thinned(3)
@pytest.mark.parametrize(
    ("part", "evidence"),
    [(THRESHOLD, evidence) for evidence in EVIDENCE.values()]
    + one_in(3, [(NOISED, evidence) for evidence in EVIDENCE.values()]),
)
def test_totals_are_composed_again_with_every_part_changed(part, evidence):
    def total(attacker, declared):
        try:
            return pkdp.compose([(pkdp.certify(part.mechanism, attacker), 3)], declared).epsilon(DELTA)
        except (pkdp.NotCertifiableError, pkdp.NoEvidenceError):
            return math.inf

    rows = what_if(pkdp.compose([(part, 3)], evidence), delta=DELTA)
    by_kind = {row.kind: row for row in rows}
    more = [row for row in rows if row.kind == "knows_more"]
    attacker = part.attacker
    assert by_kind["declared"].epsilon == total(attacker, evidence)
    assert len(more) == 5
    for tenths, row in enumerate(more, start=1):
        model = replace(attacker, known=2 * tenths, influence="active")
        assert row.epsilon == pytest.approx(total(model, evidence), rel=CLOSE)
        assert row.words == f"knows {2 * tenths} people who are in each table ({tenths}0 % of k = 20)"
    assert by_kind["surer"].epsilon == pytest.approx(total(replace(attacker, p_max=0.182), evidence), rel=CLOSE)
    assert by_kind["everything_known"].epsilon == pytest.approx(total(A(), evidence), rel=CLOSE)
    broken = total(attacker, None)
    assert by_kind["no_evidence"].epsilon == pytest.approx(broken, rel=CLOSE)
    assert broken == (math.inf if part is THRESHOLD else pytest.approx(total(A(), None)))
    assert all(row.epsilon >= by_kind["declared"].epsilon for row in rows)


@pytest.mark.slow
def test_parts_with_different_attackers_move_together():
    other = pkdp.certify(pkdp.Histogram(k=30), A(p_max=0.2, known=3, influence="active"))
    total = pkdp.compose([(THRESHOLD, 2), (other, 1)], pkdp.IndependentGivenHabits())
    rows = what_if(total, delta=DELTA)
    assert rows[1].words == "knows more people who are in each table (10 % of its threshold k)"
    first = pkdp.certify(THRESHOLD.mechanism, replace(THRESHOLD.attacker, known=2, influence="active"))
    second = pkdp.certify(other.mechanism, replace(other.attacker, known=6))
    again = pkdp.compose([(first, 2), (second, 1)], pkdp.IndependentGivenHabits())
    assert rows[1].epsilon == pytest.approx(again.epsilon(DELTA), rel=CLOSE)
    known, sure = knowledge_curves(total, delta=DELTA, points=12)
    assert (known.declared, sure.declared) == (3.0, 0.2)
    assert known.words.endswith("(most of all releases)")
    assert known.epsilons[0] == sure.epsilons[sure.values.index(0.2)] == total.epsilon(DELTA)


def test_a_single_release_in_a_total_is_that_release():
    assert what_if(pkdp.compose([THRESHOLD])) == what_if(THRESHOLD)
    alone, together = (
        knowledge_curves(certificate, points=12) for certificate in (THRESHOLD, pkdp.compose([THRESHOLD]))
    )
    assert alone == together


def test_the_words_follow_if_the_attacker_and_the_verdicts_are_honest():
    rows = what_if(NOISED, delta=DELTA)
    floor = NOISED.worst_case.epsilon(DELTA)
    assert [row.verdict for row in rows if row.kind == "no_evidence"] == ["nothing is certified"]
    for row in (row for row in rows if row.kind != "no_evidence"):
        shown = f"ε = {rounded_up(row.epsilon)}"
        assert row.verdict == (f"only the noise protects: {shown}" if row.epsilon >= floor else f"holds: {shown}")
    assert what_if(THRESHOLD)[-1].verdict == "nothing is certified"
    open_end = pkdp.certify(pkdp.Histogram(k=20), A(p_max_between=0.9), protects="value")
    declared = what_if(open_end)[0]
    assert declared.epsilon == math.inf
    assert declared.verdict == f"no ε reaches δ = 1e-6; δ = {rounded_up(open_end.delta(1.0))} at ε = 1"
    noise = what_if(pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(0.5)), A()))
    assert [row.verdict for row in noise] == ["holds against anyone: ε = 0.5"] * 2
    assert knowledge_curves(pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(0.5)), A())) == ()
    for row in rows:
        assert row.words.split()[0] in {"is", "knows", "can", "controls"}


def test_the_value_through_absence_and_the_other_threshold():
    mechanism, attacker = pkdp.Histogram(k=12), A(p_max=0.2)
    rows = what_if(pkdp.certify(mechanism, attacker, protects="value"), delta=DELTA)
    more = [row for row in rows if row.kind == "knows_more"]
    models = [A(p_max=0.2, known=known, influence="active") for known in (2, 4, 6)]
    for row, model in zip(more, models, strict=True):
        assert row.epsilon == pytest.approx(number(mechanism, model, "value"), rel=CLOSE)
    most = pkdp.Count(k_complement=30)
    rows = what_if(pkdp.certify(most, A(p_min=0.9)), delta=DELTA)
    (surer,) = [row for row in rows if row.kind == "surer"]
    assert "81.8 % instead of 90 %" in surer.words
    assert surer.epsilon == pytest.approx(number(most, A(p_min=0.818)), rel=CLOSE)
    assert rows[1].epsilon == pytest.approx(number(most, A(p_min=0.9, known=3, influence="active")), rel=CLOSE)
    assert rows[1].words == "knows 3 people who are outside the group (10 % of k = 30)"


WORDS = {
    "knows 1 person who is in the group (10 % of k = 10)": (pkdp.Count(k=10), A(p_max=0.1), "presence"),
    "knows 2 people who are in the table (10 % of k = 20)": (pkdp.Histogram(k=20), A(p_max=0.1), "presence"),
    "controls 1 more person in the table (10 % of k = 10)": (
        pkdp.Histogram(k=10),
        A(p_max=0.1, known=2, influence="active"),
        "presence",
    ),
    "knows the records of 1 more person who may be in the table (10 % of k = 10)": (
        pkdp.Histogram(k=10),
        A(p_max=0.1, known=1),
        "presence",
    ),
    "knows the cells of 2 more people in the table (10 % of k = 20)": (
        pkdp.Histogram(k=20),
        A(p_max_between=0.6, known=2),
        "value",
    ),
}
AXES = {
    "in the group": "people in the group whom the attacker knows",
    "records": "people whose records the attacker knows",
    "controls": "people in the table whom the attacker controls",
    "cells": "people in the table whose cells the attacker knows",
    "knows": "people in the table whom the attacker knows",
}


@thinned(2)
@pytest.mark.parametrize("words", WORDS)
def test_knowing_more_people_means_people_who_count_unless_records_are_declared(words):
    mechanism, attacker, protects = WORDS[words]
    certificate = pkdp.certify(mechanism, attacker, protects=protects)
    rows = [row for row in what_if(certificate, delta=0.01) if row.kind == "knows_more"]
    assert rows[0].words == words
    axis = next(text for mark, text in AXES.items() if mark in words)
    assert people_known(leaves(certificate), each=False) == axis
    assert len(rows) == 5 + ("records" in words)
    if "records" in words:
        assert rows[-1].words == "knows 6 people who are surely in the table, or controls them"


@pytest.mark.parametrize("unknown", one_in(2, [10, 100]))
def test_a_noisy_count_moves_the_unknown_with_numbers_that_are_close_and_certified(unknown):
    mechanism, box = pkdp.Count(noise=pkdp.GeometricNoise(1.0)), A(p_min=0.3, p_max=0.6, unknown=unknown)
    certificate = pkdp.certify(mechanism, box)
    (curve,) = knowledge_curves(certificate, delta=DELTA)
    epsilons = {float(value): epsilon for value, epsilon in zip(curve.values, curve.epsilons, strict=True)}
    rows = [row for row in what_if(certificate, delta=DELTA) if row.kind == "knows_more"]
    for tenths, row in enumerate(rows, start=1):
        epsilons[float(unknown // 10 * (10 - tenths))] = row.epsilon
    assert len(epsilons) >= 6
    for value, epsilon in [*epsilons.items()][::4]:
        again = pkdp.certify(mechanism, replace(box, unknown=int(value)))
        assert again.delta(epsilon) <= DELTA
        assert again.delta(epsilon / 1.006) > DELTA or value == 0.0


def test_nothing_published_is_safe_from_anyone():
    rows = what_if(pkdp.compose([]))
    assert [row.epsilon for row in rows] == [0.0, 0.0]
    assert knowledge_curves(pkdp.compose([])) == ()


@pytest.mark.slow
def test_a_curve_of_fewer_points_says_the_same():
    certificate = pkdp.certify(pkdp.Histogram(k=24), pkdp.AttackerModel(p_max=0.2))
    for fine, coarse in zip(knowledge_curves(certificate), knowledge_curves(certificate, points=12), strict=True):
        assert (coarse.field, coarse.declared, coarse.floor) == (fine.field, fine.declared, fine.floor)
        assert len(coarse.values) < len(fine.values) / 1.3
        assert coarse.values[-1] == fine.values[-1]
        assert list(coarse.epsilons) == sorted(coarse.epsilons)
        known = dict(zip(fine.values, fine.epsilons, strict=True))
        same = [value for value in coarse.values if value in known]
        assert len(same) >= 3
        assert all(
            known[value] == epsilon
            for value, epsilon in zip(coarse.values, coarse.epsilons, strict=True)
            if value in known
        )
    with pytest.raises(pkdp.ArgumentError, match="points"):
        knowledge_curves(certificate, points=7)


@pytest.mark.parametrize("kind", [pkdp.Count, pkdp.Histogram])
def test_noised_small_counts_are_told_of_as_a_threshold_without_noise_is(kind):
    noised = kind(k=20, noise=pkdp.GeometricNoise(0.5), below="noise")
    rows, plain = (what_if(pkdp.certify(each, A(p_max=0.1)), delta=DELTA) for each in (noised, kind(k=20)))
    assert [row.words for row in rows] == [row.words for row in plain]
    # From the noise's epsilon on the numbers are the same, and nobody who knows everybody is held off.
    assert [row.epsilon for row in rows] == pytest.approx([max(row.epsilon, 0.5) for row in plain], rel=1e-4)
    assert rows[-1].verdict == "nothing is certified"


def test_of_a_secret_sample_the_draws_may_be_dependent_and_records_may_be_known():
    certificate = pkdp.certify(pkdp.Count(k=8), pkdp.AttackerModel(sampled=0.1))
    (false,) = (row for row in what_if(certificate) if row.kind == "no_evidence")
    assert "draws depend on one another" in false.words
    assert false.epsilon == math.inf
