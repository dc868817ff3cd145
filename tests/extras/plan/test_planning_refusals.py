"""What the planner says where there is no answer, where any answer does, and how far answers are minimal."""

from __future__ import annotations

import math
from random import Random

import pytest
from thorough import few, thinned

from pkdp_pipeline import (
    ArgumentError,
    AttackerModel,
    Count,
    GeometricNoise,
    Histogram,
    IndependentGivenHabits,
    NoEvidenceError,
    NotCertifiableError,
    certify,
    largest_p_max,
    largest_p_max_between,
    smallest_k,
    smallest_noise,
    smallest_release_threshold,
    smallest_unknown,
)

TARGET = {"epsilon": 1.0, "delta": 1e-6}
NOISE = GeometricNoise(1.0)
BOX = AttackerModel(p_min=0.1, p_max=0.9)


def test_values_that_are_known():
    # δ(1) = 6.2e-10 at k = 50 and p_max = 0.1; about 1.1e-9 at k = 100 and p_max = 0.5.
    assert largest_p_max(Histogram(k=50), epsilon=1.0, delta=6.3e-10) == pytest.approx(0.1, abs=1e-3)
    assert largest_p_max(Histogram(k=100), epsilon=1.0, delta=1.1e-9) == pytest.approx(0.5, abs=2e-3)
    # (1 - α e^ε)/(1 + α) = δ, solved for the noise.
    noise = smallest_noise(Count(), **TARGET)
    assert noise.epsilon == pytest.approx(math.log((math.e + 1e-6) / (1.0 - 1e-6)), rel=1e-13)
    # α^(r - k)/(1 + α) ≤ δ.
    gap = math.log(1e6 / (1.0 + math.exp(-1.0)))
    assert smallest_release_threshold(Histogram(k=5, noise=NOISE), **TARGET) == 5 + math.ceil(gap)


def test_noise_answers_for_everybody():
    for mechanism in (Histogram(noise=NOISE), Histogram(k=5, noise=NOISE, release_threshold=40)):
        assert largest_p_max(mechanism, **TARGET) == 1.0
        assert smallest_unknown(mechanism, AttackerModel(), **TARGET) == 0
    assert largest_p_max_between(Histogram(noise=GeometricNoise(0.5)), **TARGET) == 1.0
    assert largest_p_max(Histogram(noise=NOISE), epsilon=30.0, delta=1e-6, days=30) == 1.0


def test_a_threshold_that_enough_people_cannot_reach_answers_for_everybody():
    assert largest_p_max(Count(k=20), AttackerModel(unknown_max=5), **TARGET) == 1.0


def test_a_threshold_alone_needs_nobody_unknown():
    assert smallest_unknown(Count(k=30), AttackerModel(p_max=0.1, p_min=0.05), **TARGET) == 0


def test_no_noise_is_needed():
    assert smallest_noise(Histogram(k=30), AttackerModel(p_max=0.1), **TARGET) is None
    assert smallest_noise(Count(), AttackerModel(p_min=0.1, p_max=0.9, unknown=345), **TARGET) is None
    assert smallest_noise(Count(), AttackerModel(p_min=0.1, p_max=0.9, unknown=344), **TARGET) is not None


def test_fields_that_are_asked_for_are_not_read():
    assert largest_p_max(Histogram(k=50), AttackerModel(p_max=0.9), **TARGET) == largest_p_max(
        Histogram(k=50), **TARGET
    )
    assert smallest_unknown(Count(), AttackerModel(p_min=0.1, p_max=0.9, unknown=7), **TARGET) == 345
    assert smallest_noise(Histogram(noise=GeometricNoise(9.0)), **TARGET) == smallest_noise(Histogram(), **TARGET)


def test_k_is_too_small_for_any_p_max_above_0():
    assert largest_p_max(Histogram(k=4), **TARGET) == 0.0


@thinned(4)
@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: largest_p_max(Histogram(k=1), **TARGET), "publishes the count of a single person.*k = 30 would"),
        (lambda: largest_p_max(Histogram(), **TARGET), "histogram without k publishes how many.*k = 30 would"),
        (lambda: largest_p_max(Count(), **TARGET), "p_min and unknown declared"),
        (
            lambda: largest_p_max(Histogram(k=20), AttackerModel(p_min=0.4), **TARGET),
            r"even at p_max = 0.4, delta = \S+ is certified. k = 49 would reach it at p_max = 0.4",
        ),
        (
            lambda: largest_p_max_between(Histogram(k=20), **TARGET),
            r"no p_max_between reaches.*even at p_max_between = 0.5.* k = \d+ would",
        ),
        (lambda: smallest_unknown(Histogram(), AttackerModel(p_max=0.5), **TARGET), "publishes how many"),
        (
            lambda: smallest_unknown(Histogram(), AttackerModel(p_min=0.1, p_max=0.9, unknown_max=9), **TARGET),
            "no number of unknown people up to 9 reaches.*Declare p_min and p_max",
        ),
        (lambda: smallest_unknown(Count(), AttackerModel(p_max=0.5), **TARGET), "p_min .*declared"),
        (
            lambda: smallest_unknown(Count(), BOX, epsilon=0.0, delta=1e-6),
            r"with 100000000 of them, delta = 0.000\d+ is certified, where epsilon = 0.000\d+ can be had",
        ),
        (
            lambda: smallest_unknown(Count(), AttackerModel(p_min=0.1, p_max=0.9, unknown_max=300), **TARGET),
            "no number of unknown people up to 300",
        ),
        (lambda: smallest_noise(Histogram(k=5), **TARGET), "release_threshold = 19 with noise"),
        (
            lambda: smallest_noise(Histogram(k=5, noise=NOISE, release_threshold=9), **TARGET),
            "k = 5 shows itself too often. Raise release_threshold, for instance release_threshold = 19",
        ),
        (lambda: smallest_noise(Count(k=5, k_complement=5), **TARGET), "Leave k_complement out"),
        (
            lambda: smallest_release_threshold(Histogram(k=5, noise=GeometricNoise(2.0)), **TARGET),
            "noise itself is too narrow",
        ),
        (lambda: smallest_k(AttackerModel(p_max=0.5), epsilon=0.0, delta=1e-100), "no threshold k up to"),
    ],
)
def test_no_answer_says_why_and_what_would_do(ask, words):
    with pytest.raises(NotCertifiableError, match=words):
        ask()


def test_what_a_refusal_offers_does():
    with pytest.raises(NotCertifiableError, match=r"release_threshold = 19 with noise of epsilon 1\.0000013678798734"):
        smallest_noise(Histogram(k=5), **TARGET)
    offered = Histogram(k=5, noise=GeometricNoise(1.0000013678798734), release_threshold=19)
    assert certify(offered, AttackerModel()).delta(1.0) <= 1e-6
    least = smallest_noise(offered, **TARGET)
    assert least.epsilon >= offered.noise.epsilon


def test_several_days_need_evidence():
    for ask in (
        lambda: largest_p_max(Histogram(k=500), **TARGET, days=7),
        lambda: smallest_unknown(Count(), BOX, **TARGET, days=7),
        lambda: largest_p_max_between(Histogram(k=500), **TARGET, days=7),
    ):
        with pytest.raises(NoEvidenceError, match="IndependentGivenHabits"):
            ask()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: largest_p_max(Histogram(k=5), {"known": 3}, **TARGET), "attacker must be an AttackerModel"),
        (lambda: smallest_unknown(Count(), {"p_min": 0.1}, **TARGET), "attacker must be an AttackerModel"),
        (lambda: largest_p_max("histogram", **TARGET), "mechanism must be one of"),
        (lambda: smallest_unknown(None, BOX, **TARGET), "mechanism must be one of"),
        (lambda: smallest_noise(None, **TARGET), "mechanism must be one of"),
        (lambda: smallest_release_threshold(None, **TARGET), "mechanism must be one of"),
        (lambda: smallest_release_threshold(Histogram(k=5), **TARGET), "GeometricNoise"),
        (lambda: largest_p_max(Histogram(k=5), epsilon=1.0, delta=0.0), "delta must be above 0"),
        (lambda: largest_p_max(Histogram(k=5), epsilon=[1.0], delta=0.1), "epsilon must be one number"),
        (lambda: smallest_noise(Histogram(), epsilon=-1.0, delta=0.1), "epsilon"),
        (lambda: smallest_noise(Histogram(), **TARGET, days=0), "days"),
        (lambda: largest_p_max(Histogram(k=5), **TARGET, protects="both"), "protects"),
        (lambda: largest_p_max_between(Count(k=5), **TARGET), "a Count has one number"),
        (lambda: smallest_unknown(Histogram(), AttackerModel(p_min=0.6), **TARGET, protects="value"), "p_min"),
    ],
)
def test_arguments_are_checked(ask, words):
    with pytest.raises(ArgumentError, match=words):
        ask()


def test_nothing_above_the_largest_holds_either():
    draw = Random(5)
    for _ in range(12):
        k, goal = draw.randrange(8, 200), {"epsilon": draw.uniform(0.5, 2.0), "delta": 10 ** draw.uniform(-8, -2)}
        largest = largest_p_max(Histogram(k=k), **goal)
        for share in (draw.uniform(largest, 1.0) for _ in range(10)):
            if largest < share < 1.0:
                attacker = AttackerModel(p_max=share)
                assert certify(Histogram(k=k), attacker).delta(goal["epsilon"]) > goal["delta"]


def test_fewer_unknown_people_hold_within_the_slack_at_most():
    draw = Random(6)
    for _ in range(few(12)):
        low = draw.uniform(0.05, 0.5)
        attacker = AttackerModel(p_min=low, p_max=draw.uniform(low, 0.95))
        goal = {"epsilon": draw.uniform(0.3, 2.0), "delta": 10 ** draw.uniform(-7, -2)}
        least = smallest_unknown(Count(), attacker, **goal)
        for people in {draw.randrange(1, least) for _ in range(few(16))} if least > 1 else ():
            fewer = AttackerModel(p_min=attacker.p_min, p_max=attacker.p_max, unknown=people)
            assert certify(Count(), fewer).delta(goal["epsilon"]) > goal["delta"] / 1.01


def test_a_year_in_few_evaluations(monkeypatch):
    from pkdp_pipeline.extras.plan.planning.searching import Goal

    evaluations = []
    whole = Goal.loss
    monkeypatch.setattr(Goal, "loss", lambda self, *rest: evaluations.append(rest) or whole(self, *rest))
    year = {"epsilon": 8.0, "delta": 1e-6, "days": 365, "evidence": IndependentGivenHabits()}
    assert smallest_k(AttackerModel(p_max=0.1), **year) == 176
    assert len(evaluations) <= 6
    evaluations.clear()
    smallest_noise(Histogram(), **year)
    assert len(evaluations) <= 40
    evaluations.clear()
    assert largest_p_max(Histogram(k=176), **year) >= 0.1
    assert len(evaluations) <= 45
