"""What cannot be certified says why, and every number it offers is confirmed by the engine."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline import (
    ArgumentError,
    AttackerModel,
    Count,
    GeometricNoise,
    Histogram,
    NotCertifiableError,
    Sum,
    certify,
)
from pkdp_pipeline.certificates.release_certificate import Target
from pkdp_pipeline.model.context import Context

NOISE = GeometricNoise(1.0)
REFUSED = {
    "certain nobody": (Count(), {"p_min": 0.0, "p_max": 0.5, "unknown": 100}, "presence", "p_min = 0"),
    "nothing declared": (Count(), {}, "presence", "p_min, p_max and unknown"),
    "nobody unknown": (Count(), {"p_min": 0.3, "p_max": 0.5, "unknown": 0}, "presence", "unknown = 0"),
    "controlled": (Count(k=5), {"p_max": 0.1, "known": 4, "influence": "active"}, "presence", "known + 1 = 5"),
    "controlled cell": (
        Histogram(k=5),
        {"p_max": 0.1, "known": 9, "influence": "active"},
        "value",
        "k = 5 is not above known + 1 = 10",
    ),
    "certain count": (Count(k=5), {"p_max": 1.0}, "presence", "p_max = 1"),
    "certain histogram": (Histogram(k=5), {"p_max": 1.0}, "presence", "nobody is ever absent"),
    "certain value": (Histogram(k=5), {"p_max": 1.0}, "value", "p_max_between"),
    "certain between": (Histogram(k=5), {"p_max_between": 1.0}, "value", "p_max_between = 1"),
    "total present": (Histogram(), {"p_max": 0.1}, "presence", "publishes how many people are present"),
    "options": (Histogram(), {}, "value", "p_min > 0"),
    "no second threshold": (Count(k=5, noise=NOISE), {}, "presence", "p_max < 1 is declared"),
    "no second threshold, value": (Histogram(k=5, noise=NOISE), {}, "value", "p_max_between < 1"),
    "complement": (Count(k_complement=5), {"p_min": 0.0}, "presence", "1 - p_min = 1"),
    "complement and noise": (Count(k_complement=5, noise=NOISE), {}, "presence", "k_complement protects"),
    "single person": (Count(k=1), {"p_max": 0.1, "unknown_max": 40}, "presence", "k must be at least 2"),
    "known in both cells": (Histogram(k=5), {"p_max_between": 0.7, "known": 9}, "value", "known + 1 = 10"),
}


def is_told_of_noise_alone(mechanism, attacker):
    """Return whether nothing is declared by somebody who uses no threshold alone: noise asks nothing of an attacker."""
    bare = mechanism.k is None and getattr(mechanism, "k_complement", None) is None
    return not attacker and (bare or mechanism.noise is not None)


def message(name):
    mechanism, attacker, protects, _ = REFUSED[name]
    with pytest.raises(NotCertifiableError) as caught:
        certify(mechanism, AttackerModel(**attacker), protects=protects)
    return str(caught.value)


def reaches(mechanism, attacker, protects):
    try:
        return certify(mechanism, AttackerModel(**attacker), protects=protects).delta(1.0) <= 1e-6
    except NotCertifiableError:
        return False


@thinned(4)
@pytest.mark.parametrize("name", REFUSED)
def test_it_says_why_and_offers_a_way_out(name):
    text = message(name)
    assert text.startswith("Not certifiable: no theorem shows that ")
    assert REFUSED[name][3] in text
    assert "Each of these would give epsilon = 1, delta = 1e-6: " in text
    assert "noise=pkdp.GeometricNoise(" in text or "release_threshold=" in text
    aim = "which cell a person is in" if REFUSED[name][2] == "value" else "whether a person is"
    assert aim in text


@pytest.mark.parametrize("name", REFUSED)
def test_the_offered_threshold_is_the_smallest(name):
    mechanism, attacker, protects, _ = REFUSED[name]
    if is_told_of_noise_alone(mechanism, attacker):
        assert "p_max" not in message(name).partition("Each of these")[2]
        return
    offered = re.search(r"[:;] (?:or )?k = (\d+) (?:with the declared|if) (p_max\w*) = ([\d.]+)", message(name))
    if offered is None:
        # An attacker who controls the target's whole cell cannot be outnumbered here.
        pytest.fail("no threshold offered")
    k, share = int(offered[1]), {offered[2]: float(offered[3])}
    if offered[2] == "p_max_between":
        attacker = {name: value for name, value in attacker.items() if name != "p_max"}
    attacker = {**attacker, **share}
    kind = Histogram if isinstance(mechanism, Histogram) else Count
    assert reaches(kind(k=k), attacker, protects)
    assert not reaches(kind(k=k - 1), attacker, protects)


@thinned(4)
@pytest.mark.parametrize("name", REFUSED)
def test_the_offered_number_of_unknown_people_is_the_smallest(name):
    mechanism, attacker, protects, _ = REFUSED[name]
    text = message(name)
    if is_told_of_noise_alone(mechanism, attacker):
        assert "p_min" not in text.partition("Each of these")[2]
        return
    if isinstance(mechanism, Histogram) and protects == "presence":
        assert " people " not in text.partition("Each of these")[2].replace("whatever", "")
        return
    if isinstance(mechanism, Count):
        offered = re.search(r"no threshold but unknown = (\d+) people with p_min = ([\d.]+) and p_max = ([\d.]+)", text)
        box = {"p_min": float(offered[2]), "p_max": float(offered[3])}
        exact = Count()
    else:
        offered = re.search(r"unknown = (\d+) people who choose every option with p_min = ([\d.]+)", text)
        box, exact = {"p_min": float(offered[2])}, Histogram()
    people = int(offered[1])
    assert reaches(exact, {**box, "unknown": people}, protects)
    assert not reaches(exact, {**box, "unknown": people - 1}, protects)


@pytest.mark.parametrize("name", REFUSED)
def test_the_offered_noise_is_enough_against_anyone(name):
    mechanism, _, protects, _ = REFUSED[name]
    offered = re.search(
        r"noise=pkdp\.GeometricNoise\(([\d.]+)\)(?: with release_threshold=(\d+))?, whatever", message(name)
    )
    if offered is None:  # its own noise is enough
        changed = re.search(r"delta = 1e-6: release_threshold=(\d+), whatever", message(name))
        kept = replace(mechanism, release_threshold=int(changed[1]))
        assert reaches(kept, {}, protects)
        assert not reaches(replace(kept, release_threshold=kept.release_threshold - 1), {}, protects)
        return
    noise = GeometricNoise(float(offered[1]))
    kind = Histogram if isinstance(mechanism, Histogram) else Count
    if offered[2] is None:
        assert reaches(kind(noise=noise), {}, protects)
        assert not reaches(kind(noise=GeometricNoise(noise.epsilon * 1.01)), {}, protects)
        return
    # The cells of a plain certificate may be found in the data, and then k is 1.
    threshold = int(offered[2])
    assert reaches(kind(k=1, noise=noise, release_threshold=threshold), {}, protects)
    assert not reaches(kind(k=1, noise=noise, release_threshold=threshold - 1), {}, protects)


def test_a_histogram_without_k_is_sent_to_the_question_it_can_answer():
    text = message("total present")
    assert "protects='value'" in text
    assert "how many people are present" in text


def test_a_hard_threshold_before_noise_has_no_worst_case_to_stand_in():
    assert certify(Count(noise=NOISE), AttackerModel()).delta(1.0) <= 1e-16
    assert certify(Count(k=5, noise=NOISE, release_threshold=30), AttackerModel()).delta(1.0) < 1e-9
    with pytest.raises(NotCertifiableError, match="release_threshold="):
        certify(Count(k=5, noise=NOISE), AttackerModel())


@pytest.mark.parametrize(
    "mechanism", [Count(), Count(k=20), Count(noise=NOISE), Count(k=20, noise=NOISE, release_threshold=40)]
)
def test_a_count_has_no_value(mechanism):
    with pytest.raises(ArgumentError, match=r"protects='value'.*Count.*protects='presence'.*Histogram"):
        certify(mechanism, AttackerModel(p_max=0.1), protects="value")


def test_with_noise_the_worst_case_stands_in():
    for name, (mechanism, attacker, protects, _) in REFUSED.items():
        if mechanism.noise is None and getattr(mechanism, "k_complement", None) is None:
            threshold = None if mechanism.k is None else mechanism.k + 20
            noised = type(mechanism)(k=mechanism.k, noise=NOISE, release_threshold=threshold)
            certificate = certify(noised, AttackerModel(**attacker), protects=protects)
            assert certificate.worst_case.parameters is not None, name
            assert not certificate.has_partial_knowledge, name


@thinned(2)
@pytest.mark.parametrize("mechanism", [Count(k=2), Histogram(k=2)])
@pytest.mark.parametrize("p_min", [0.05, 0.3, 0.9])
def test_an_example_of_p_max_does_not_contradict_what_is_declared(mechanism, p_min):
    with pytest.raises(NotCertifiableError) as refused:
        certify(mechanism, AttackerModel(p_min=p_min))
    k, p_max = re.search(r"k = (\d+) if p_max = ([\d.]+) can be argued", str(refused.value)).groups()
    offered = certify(type(mechanism)(k=int(k)), AttackerModel(p_min=p_min, p_max=float(p_max)))
    assert offered.delta(1.0) <= 1e-6


@pytest.mark.parametrize("declared", [{"p_max": 1.0}, {"p_max_between": 1.0}, {"p_min": 0.3}, {"known": 3}])
@pytest.mark.parametrize("mechanism", [Count(k=5, noise=NOISE), Histogram(k=5, noise=NOISE)])
def test_no_example_is_given_to_those_who_use_noise(mechanism, declared):
    for protects in ("presence",) if isinstance(mechanism, Count) else ("presence", "value"):
        with pytest.raises(NotCertifiableError) as refused:
            certify(mechanism, AttackerModel(**declared), protects=protects)
        offered = str(refused.value).partition("Each of these")[2]
        assert "release_threshold=" in offered
        assert "p_max" not in offered


def test_where_everybody_is_surely_counted_no_p_max_is_offered():
    with pytest.raises(NotCertifiableError) as refused:
        certify(Count(k=2), AttackerModel(p_min=1.0))
    assert "if p_max" not in str(refused.value)


@pytest.mark.parametrize("declared", [{"p_min": 0.3}, {"p_min": 0.3, "p_max": 0.5, "unknown": 50}, {}])
@pytest.mark.parametrize("protects", ["presence", "value"])
def test_of_people_in_several_cells_only_what_is_certified_is_offered(declared, protects):
    """Theorems on exact counts of unknown people are about one cell for each person."""
    with pytest.raises(NotCertifiableError) as refused:
        certify(Histogram(k=5, cells_per_unit=3), AttackerModel(**declared), protects=protects)
    text = str(refused.value)
    assert "unknown = " not in text.partition("Each of these")[2]
    k, p_max = re.search(r"no noise but k = (\d+) (?:with the declared|if) p_max = ([\d.]+)", text).groups()
    argued = {"p_max": float(p_max), "independent_cells": True}
    assert reaches(Histogram(k=int(k), cells_per_unit=3), argued, protects)
    assert not reaches(Histogram(k=int(k) - 1, cells_per_unit=3), argued, protects)


@pytest.mark.parametrize("declared", [{}, {"p_max": 0.2}])
@pytest.mark.parametrize(("k", "threshold"), [(5, None), (5, 3), (60, None), (60, 3)])
def test_noise_and_noised_small_counts_are_kept_where_thresholds_suffice(k, threshold, declared):
    below = "noise" if threshold is None else "noise_from_1"
    mechanism = Histogram(k=k, noise=NOISE, below=below, release_threshold=threshold)
    if threshold is None and k == 60 and declared:
        assert reaches(mechanism, declared, "presence")
        return
    with pytest.raises(NotCertifiableError) as refused:
        Target().hold(certify(mechanism, AttackerModel(**declared)))
    kept, _, rest = str(refused.value).partition("Each of these")[2].partition("; or with below left out, no k but ")
    assert "GeometricNoise(1)" in rest
    changed = {name: int(number) for name, number in re.findall(r"(k|release_threshold)=(\d+)", kept)}
    assert ("k" in changed, "release_threshold" in changed) == (k == 5, threshold is not None)
    argued = {"p_max": float(re.search(r"p_max = ([\d.]+)", kept)[1])}
    assert reaches(replace(mechanism, **changed), argued, "presence")
    for name, number in changed.items():
        assert not reaches(replace(mechanism, **changed | {name: number - 1}), argued, "presence")


@pytest.mark.parametrize(
    "mechanism",
    [
        Count(k=5, noise=GeometricNoise(0.3), release_threshold=9),
        Histogram(k=1, noise=GeometricNoise(0.3), release_threshold=20),
        Sum((-2, 9), GeometricNoise(0.4), release_threshold=30, cells_found=True),
    ],
)
def test_stronger_noise_than_is_needed_is_kept(mechanism):
    with pytest.raises(NotCertifiableError) as refused:
        Target().hold(certify(mechanism))
    (threshold,) = re.findall(r"1e-6: release_threshold=(\d+), whatever the attacker knows\. To", str(refused.value))
    kept = certify(replace(mechanism, release_threshold=int(threshold)))
    assert kept.delta(mechanism.noise.epsilon) <= 1e-6
    assert certify(replace(mechanism, release_threshold=int(threshold) - 1)).delta(mechanism.noise.epsilon) > 1e-6


def test_noise_in_the_place_of_k_has_no_threshold_where_cells_are_declared():
    declared = pkdp.AttackerModel(p_max=0.1)
    for mechanism in (Histogram(k=5), Histogram(k=5, display=pkdp.Rounding(5))):
        with pytest.raises(NotCertifiableError, match=r"or no k but noise=pkdp\.GeometricNoise\(1\), whatever"):
            certify(mechanism, AttackerModel(p_max=1.0), cells=2)
        context = Context(cells="declared")
        with pytest.raises(NotCertifiableError, match=r"or no k but noise=pkdp\.GeometricNoise\(1\), whatever"):
            Target().hold(replace(certify(mechanism, declared), context=context))
