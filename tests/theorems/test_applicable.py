"""Which theorems apply to which mechanism and attacker, and what is said where none does."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pkdp_pipeline import ArgumentError, AttackerModel, Count, GeometricNoise, Histogram
from pkdp_pipeline.theorems.reached import Reached
from pkdp_pipeline.theorems.theorems import THEOREMS, _is_silent, bounds_of

NOISE = GeometricNoise(0.5)
BOX = {"p_min": 0.2, "p_max": 0.6, "unknown": 50}
BEHIND_NOISE = ["thresholding", "noisy_thresholding"]


def bounds_for(mechanism, protects="presence", **attacker):
    return bounds_of(mechanism, AttackerModel(**attacker), protects)


@pytest.mark.parametrize(
    ("mechanism", "attacker", "protects", "theorems", "worst"),
    [
        (Count(), BOX, "presence", ["counting"], False),
        (Count(noise=NOISE), BOX, "presence", ["noisy_counting", "counting"], True),
        (Count(noise=NOISE, release_threshold=9), BOX, "presence", ["thresholding_in_box", "counting"], True),
        (
            Count(noise=NOISE, release_threshold=9),
            {**BOX, "known": 8},
            "presence",
            ["noisy_counting", "counting"],
            True,
        ),
        (Count(k=9), BOX, "presence", ["thresholding", "thresholding_in_box"], False),
        (Count(k=9), {**BOX, "known": 7}, "presence", ["thresholding", "thresholding_in_box"], False),
        (Count(k=9), {**BOX, "known": 8}, "presence", ["thresholding", "counting"], False),
        (Count(k=9), {**BOX, "p_max": 1.0, "unknown_max": 60}, "presence", [], False),
        (Count(k=1), BOX, "presence", ["counting"], False),
        (Count(k=9), {"p_max": 0.6}, "presence", ["thresholding"], False),
        (
            Count(k=9, noise=NOISE),
            BOX,
            "presence",
            ["thresholding", "noisy_thresholding", "noisy_thresholding_in_box", "thresholding_in_box"],
            False,
        ),
        (
            Count(k=9, noise=NOISE, release_threshold=9),
            BOX,
            "presence",
            ["thresholding", "noisy_thresholding", "noisy_thresholding_in_box", "thresholding_in_box"],
            True,
        ),
        (
            Count(k=9, noise=NOISE),
            {**BOX, "unknown": 500, "known": 8},
            "presence",
            ["thresholding", "noisy_thresholding", "noisy_counting", "counting"],
            False,
        ),
        (Count(k=1, noise=NOISE, release_threshold=9), {"p_max": 0.6}, "presence", [], True),
        (
            Count(k=9, noise=NOISE),
            {"p_max": 0.6, "known": 2},
            "presence",
            ["thresholding", "noisy_thresholding"],
            False,
        ),
        (Count(k=19, noise=NOISE), {"p_max": 0.6, "known": 9}, "presence", ["thresholding"], False),
        (
            Count(k=9, noise=NOISE),
            {"p_max": 0.1, "known": 9},
            "presence",
            ["thresholding", "noisy_thresholding"],
            False,
        ),
        (Count(k=9, noise=NOISE), {"p_max": 0.6, "known": 14}, "presence", ["thresholding"], False),
        (Count(k=4, noise=NOISE), {"p_max": 0.6, "known": 6}, "presence", ["thresholding"], False),
        (Count(k=9, k_complement=9, noise=NOISE), {"p_max": 0.6}, "presence", ["thresholding"], False),
        (Histogram(k=9, noise=NOISE), {"p_max": 0.5}, "presence", ["histogram_presence", "noisy_presence"], False),
        (Count(k_complement=9), {"p_min": 0.2}, "presence", ["thresholding_complement"], False),
        (
            Count(k=9, k_complement=9),
            BOX,
            "presence",
            ["thresholding", "thresholding_complement", "two_thresholds_in_box"],
            False,
        ),
        (
            Count(k=9, k_complement=9),
            {**BOX, "unknown_max": 60},
            "presence",
            [
                "thresholding",
                "thresholding_complement",
                "thresholding_in_box",
                "complement_in_box",
                "two_thresholds_in_box",
            ],
            False,
        ),
        (
            Count(k=9, k_complement=5),
            {**BOX, "known": 4},
            "presence",
            ["thresholding", "thresholding_complement", "thresholding_in_box"],
            False,
        ),
        (Count(k_complement=9), BOX, "presence", ["thresholding_complement", "complement_in_box"], False),
        (Count(k=9, k_complement=9), {"p_max": 0.5}, "presence", ["thresholding"], False),
        (Count(k=9, k_complement=9), {"p_min": 0.5}, "presence", ["thresholding_complement"], False),
        (Count(k_complement=9, noise=NOISE), {"p_min": 0.2}, "presence", ["thresholding_complement"], False),
        (Count(noise=NOISE), {}, "presence", [], True),
        (Histogram(k=9), {"p_max": 0.5}, "presence", ["histogram_presence"], False),
        (Histogram(k=9), {"p_max": 0.5}, "value", ["histogram_value"], False),
        (Histogram(k=9), {"p_max_between": 0.5}, "value", ["histogram_between"], False),
        (
            Histogram(k=9),
            {"p_max": 0.5, "p_max_between": 0.5},
            "value",
            ["histogram_value", "histogram_between"],
            False,
        ),
        (Histogram(k=9), {"p_max": 1.0, "p_max_between": 0.5}, "value", ["histogram_between"], False),
        (Histogram(), {"p_min": 0.2, "unknown": 50}, "value", ["options"], False),
        (Histogram(k=9), {"p_min": 0.2, "unknown": 50, "p_max": 0.9}, "value", ["histogram_value", "options"], False),
        (Histogram(noise=NOISE), {"p_min": 0.2, "unknown": 50}, "value", ["options", "noisy_options"], True),
        (
            Histogram(k=2, noise=NOISE, release_threshold=9),
            {"p_min": 0.2, "unknown": 50},
            "value",
            ["options", "noisy_options"],
            True,
        ),
        (
            Histogram(k=9, noise=NOISE, release_threshold=30),
            {"p_max_between": 0.6},
            "value",
            ["histogram_between", "noisy_between"],
            True,
        ),
        (
            Histogram(k=90, noise=NOISE, release_threshold=99),
            {"p_max_between": 0.6},
            "value",
            ["histogram_between"],
            True,
        ),
        (Histogram(), BOX, "presence", ["cell_counting"], False),
        (Histogram(k=9), BOX, "presence", ["histogram_presence", "cell_counting"], False),
        (Histogram(noise=NOISE), BOX, "presence", ["cell_counting", "noisy_cell_counting"], True),
        (Histogram(k=9), BOX, "value", ["histogram_value", "options"], False),
        (Histogram(noise=NOISE), {}, "presence", [], True),
    ],
)
def test_the_theorems_that_apply(mechanism, attacker, protects, theorems, worst):
    result = bounds_for(mechanism, protects, **attacker)
    assert [applied.bound.theorem for applied in result.partial] == theorems
    assert set(theorems) <= set(THEOREMS)
    assert (result.worst is not None) == worst


@pytest.mark.parametrize(
    ("mechanism", "attacker", "protects", "words"),
    [
        (Count(), {}, "presence", "p_min, p_max and unknown declared"),
        (Count(), {"p_max": 0.5}, "presence", "p_min and unknown declared"),
        (Count(), {"p_min": 0.0, "p_max": 0.5, "unknown": 9}, "presence", "p_min = 0 lets the attacker be certain"),
        (Count(), {"p_min": 0.1, "p_max": 1.0, "unknown": 9}, "presence", "p_max = 1 lets the attacker be certain"),
        (Count(), {"p_min": 0.1, "p_max": 0.5, "unknown": 0}, "presence", "unknown = 0"),
        (Count(k=9), {}, "presence", "p_max < 1 is declared"),
        (Count(k=9), {"p_max": 1.0}, "presence", "p_max = 1 lets the attacker be certain"),
        (Count(k=1), {"p_max": 0.5}, "presence", "k must be at least 2"),
        (Count(k=9), {"p_max": 0.5, "known": 8, "influence": "active"}, "presence", "known + 1 = 9"),
        (Count(k_complement=9), {}, "presence", "p_min > 0 is declared"),
        (Count(k_complement=9), {"p_min": 0.0}, "presence", "1 - p_min = 1"),
        (Count(k_complement=1), {"p_min": 0.5}, "presence", "k_complement must be at least 2"),
        (Histogram(), {"p_max": 0.5}, "presence", "protects='value'"),
        (Histogram(k=9), {}, "presence", "told that a person is either in it or absent"),
        (Histogram(k=9), {"p_max": 1.0}, "presence", "nobody is ever absent"),
        (Histogram(k=9), {}, "value", "p_max_between < 1 is declared"),
        (Histogram(k=9), {"p_max_between": 1.0}, "value", "p_max_between = 1"),
        (Histogram(k=9), {"p_max_between": 0.6, "known": 8}, "value", "known + 1 = 9"),
        (Histogram(k=9), {"p_max": 1.0}, "value", "declare p_max_between instead"),
        (Histogram(), {}, "value", "p_min > 0"),
        (Histogram(), {"p_min": 0.0, "unknown": 5}, "value", "p_min = 0 or unknown = 0"),
    ],
)
def test_why_a_theorem_does_not_apply(mechanism, attacker, protects, words):
    result = bounds_for(mechanism, protects, **attacker)
    assert result.partial == ()
    assert result.worst is None
    assert any(words in obstacle for obstacle in result.obstacles), result.obstacles


def test_a_count_has_no_value_to_protect():
    with pytest.raises(ArgumentError, match=r"protects=.value. means .* Count has one number"):
        bounds_for(Count(k=9), "value", p_max=0.1)


def test_at_least_two_options_cannot_all_be_likely():
    with pytest.raises(ArgumentError, match=r"p_min = 0\.6 cannot hold"):
        bounds_for(Histogram(), "value", p_min=0.6, unknown=10)


def test_a_certain_attacker_is_harmless_where_nobody_can_reach_the_threshold():
    result = bounds_for(Count(k=9), p_max=1.0, unknown_max=7)
    assert result.partial[0].bound.bracket(np.array([0.0]))[1][0] == 0.0
    assert bounds_for(Count(k=9), p_max=1.0, unknown_max=8).partial == ()
    assert bounds_for(Count(k=9), p_max=1.0, unknown_max=7, known=1).partial == ()


def points(mechanism, protects="presence", **attacker):
    result = bounds_for(mechanism, protects, **attacker)
    return np.min([applied.bound.bracket(np.array([0.1, 0.5, 1.0]))[1] for applied in result.partial], axis=0)


def test_a_controlled_person_lowers_the_threshold():
    active = points(Count(k=30), p_max=0.1, known=7, influence="active")
    assert active == pytest.approx(points(Count(k=23), p_max=0.1), rel=1e-12)
    passive = points(Count(k=30), p_max=0.1, known=7)
    assert np.all(points(Count(k=30), p_max=0.1) <= passive)
    assert np.all(passive <= active)


@pytest.mark.parametrize("influence", ["active", "passive"])
def test_theorem_c_counts_everybody_known(influence):
    given = points(Histogram(k=60), "value", p_max_between=0.6, known=9, influence=influence)
    assert given == pytest.approx(points(Histogram(k=51), "value", p_max_between=0.6), rel=1e-12)


def test_the_complement_is_the_threshold_seen_from_the_other_side():
    mirrored = points(Count(k_complement=30), p_min=0.75)
    assert mirrored == pytest.approx(points(Count(k=30), p_max=0.25), rel=1e-12)


def test_a_value_costs_more_than_presence():
    presence = points(Histogram(k=30), "presence", p_max=0.2)
    assert np.all(points(Histogram(k=30), "value", p_max=0.2) >= presence)


@pytest.mark.parametrize(
    ("mechanism", "attacker", "attack"),
    [
        (Count(k=9), {"p_max": 0.3}, True),
        (Count(k=9, noise=NOISE), {"p_max": 0.3}, False),
        (Count(k=9, k_complement=5), {"p_max": 0.3}, True),
        (Count(k=9, k_complement=5), {"p_max": 0.3, "p_min": 0.2}, False),
        (Histogram(k=9), {"p_max": 0.3}, True),
        (Histogram(k=9), {"p_max": 0.3, "p_min": 0.1}, False),
    ],
)
def test_an_attack_is_claimed_only_where_this_release_suffers_it(mechanism, attacker, attack):
    named = bounds_for(mechanism, **attacker).partial[0].attack
    assert (named is not None and not isinstance(named, Reached)) == attack


def test_a_rule_that_is_not_asked_has_nothing_to_say():
    """Beside a threshold k, where something that a theorem needs is not declared."""
    steps, silent = ({}, {"noise": NOISE}, {"noise": NOISE, "below": "noise"}), 0
    for *declared, known, step in product((None, 0.05), (None, 0.2), (None, 30), (None, 0.6), (0, 2), steps):
        names = ("p_min", "p_max", "unknown", "p_max_between")
        attacker = AttackerModel(**dict(zip(names, declared, strict=True)), known=known)
        for theorem in THEOREMS.values():
            if theorem.about is None or theorem.rule is None:
                continue
            mechanism = theorem.about[0](k=20, **step)
            if _is_silent(theorem, mechanism, attacker):
                silent += 1
                assert theorem.rule(mechanism, attacker, frozenset(THEOREMS)) is None
    assert silent > 500
