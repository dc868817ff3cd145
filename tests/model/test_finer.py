"""Two displays of one question: which one determines which, against a plain enumeration of what both show."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.question import determines, shown_coarser

NOISE = pkdp.GeometricNoise(1.0)
NEAREST, DOWN, MIDPOINT = (
    [pkdp.Rounding(base, mode) for base in range(2, 13)] for mode in ("nearest", "down", "midpoint")
)
BANDS = [pkdp.Bands(edges) for edges in ([0, 3], [0, 3, 8, 13], [0, 5, 10, 15, 20], [0, 10], [0, 1, 2, 3, 40], [0, 8])]
DISPLAYS = [None, *NEAREST, *DOWN, *MIDPOINT, *BANDS]
#: From 30 on only roundings go on, to bases up to 12: two of them repeat together every 12 * 11 numbers, or sooner.
WINDOW = 30 + 2 * 132


def shown(mechanism, count):
    """Return what a table shows of a count without noise, and of a noised number, as the steps say."""
    if mechanism.noise is None and mechanism.k is not None and count < mechanism.k:
        return None
    return count if mechanism.display is None else mechanism.display.shown(count)


def is_function(finer, coarser, numbers):
    """Return whether equal symbols of the first are equal symbols of the second, by looking at all numbers."""
    symbols = {}
    return all(symbols.setdefault(shown(finer, n), shown(coarser, n)) == shown(coarser, n) for n in numbers)


def check(finer, coarser, numbers):
    determined = determines(finer, coarser)
    assert determined == is_function(finer, coarser, numbers), (finer, coarser)
    if determined:
        for number in numbers[:100]:
            assert shown_coarser(finer, coarser, shown(finer, number)) == shown(coarser, number)
    return determined


@thinned(6)
@pytest.mark.parametrize("display", DISPLAYS, ids=str)
def test_every_rule_against_every_rule(display):
    coarser = [(k, other) for k, other in product((None, 1, 3, 8), DISPLAYS[1::3]) if other is not None]
    determined = 0
    for k, (other_k, other) in product((None, 1, 3, 8), coarser):
        finer = pkdp.Histogram(k=k, display=display)
        determined += check(finer, pkdp.Histogram(k=other_k, display=other), range(WINDOW))
    assert determined or isinstance(display, pkdp.Rounding)


RULES = st.one_of(
    st.none(),
    st.builds(pkdp.Rounding, st.integers(2, 12), st.sampled_from(["nearest", "down", "midpoint"])),
    st.lists(st.integers(1, 30), min_size=1, max_size=6, unique=True).map(lambda e: pkdp.Bands([0, *sorted(e)])),
)
KS = st.one_of(st.none(), st.integers(1, 30))


@given(RULES, RULES.filter(bool), KS, KS)
@settings(max_examples=60)
def test_without_noise(display, other, k, other_k):
    check(pkdp.Count(k=k, display=display), pkdp.Count(k=other_k, display=other), range(WINDOW))


@given(RULES, RULES.filter(bool), st.one_of(st.none(), st.integers(0, 20)))
@settings(max_examples=60)
def test_with_noise(display, other, threshold):
    finer, coarser = (pkdp.Count(noise=NOISE, release_threshold=threshold, display=rule) for rule in (display, other))
    check(finer, coarser, range(-WINDOW if threshold is None else threshold, WINDOW))
    below = {"k": 15, "below": "noise", "noise": NOISE, "release_threshold": threshold}
    finer, coarser = (pkdp.Histogram(display=rule, **below) for rule in (display, other))
    check(finer, coarser, range(-WINDOW if threshold is None else min(threshold, 15), WINDOW))


@given(RULES, RULES.filter(bool), st.integers(1, 20))
@settings(max_examples=40)
def test_beside_k_complement_what_is_hidden_stays_hidden(display, other, k):
    finer, coarser = (pkdp.Count(k=k, k_complement=5, display=rule) for rule in (display, other))
    check(finer, coarser, range(k, WINDOW))
    if determines(finer, coarser):
        assert shown_coarser(finer, coarser, None) is None
    assert not determines(pkdp.Count(k=k + 1, k_complement=5, display=display), coarser)


@pytest.mark.parametrize(
    ("finer", "coarser", "determined"),
    [
        (None, pkdp.Rounding(5), True),
        (pkdp.Rounding(5), pkdp.Rounding(10), False),  # 3 and 5 are shown as 5; to the nearest 10 they are 0 and 10
        (pkdp.Rounding(5), pkdp.Rounding(15), True),
        (pkdp.Rounding(5, "down"), pkdp.Rounding(10, "down"), True),
        (pkdp.Rounding(5, "down"), pkdp.Rounding(10), True),
        (pkdp.Rounding(6, "midpoint"), pkdp.Rounding(6, "down"), True),
        (pkdp.Rounding(5), pkdp.Bands([0, 13, 23]), True),
        (pkdp.Rounding(5), pkdp.Bands([0, 10, 20]), False),
        (pkdp.Bands([0, 5, 10, 20]), pkdp.Bands([0, 10]), True),
        (pkdp.Bands([0, 10]), pkdp.Bands([0, 5, 10]), False),
        (pkdp.Bands(range(0, 100, 5)), pkdp.Rounding(5, "down"), False),
        (pkdp.Rounding(5), None, False),
        (None, None, False),
        (None, pkdp.RandomRounding(3), False),
        (pkdp.RandomRounding(3), pkdp.Bands([0, 20]), False),
        (None, pkdp.PerturbationTable([(0, 0, 1.0)]), False),
    ],
)
def test_known_pairs(finer, coarser, determined):
    assert determines(pkdp.Histogram(display=finer), pkdp.Histogram(display=coarser)) is determined


def test_another_question_is_never_determined():
    plain = pkdp.Histogram(k=8, display=pkdp.Rounding(5, "down"))
    for other in (
        {"noise": NOISE},
        {"cells_per_unit": 2},
        {"noise": NOISE, "release_threshold": 3},
        {"noise": NOISE, "below": "noise"},
    ):
        changed = pkdp.Histogram(**{"k": 8, "display": pkdp.Rounding(10, "down")} | other)
        assert not determines(plain, changed)
        assert not determines(changed, plain)
    assert not determines(pkdp.Count(k=8), plain)
    noised = [pkdp.Count(k=k, noise=NOISE, display=pkdp.Rounding(5)) for k in (8, 9)]
    assert not determines(*noised)
    assert determines(pkdp.Count(k=8, noise=NOISE), noised[0])
