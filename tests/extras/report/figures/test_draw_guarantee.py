"""The guarantee as it is drawn: its points are the values, and nothing of it is below what is certified."""

from __future__ import annotations

import dataclasses
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from figure_samples import axes, drawn, labels, texts
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.report.figures import draw_guarantee
from pkdp_pipeline.extras.report.figures.losses import above
from pkdp_pipeline.extras.report.statement import GuaranteeCurve

HALF = pkdp.AttackerModel(p_max=0.5)
NOISED = pkdp.Histogram(k=50, noise=pkdp.GeometricNoise(1.0), release_threshold=70)
CERTIFICATES = {
    "suppressed": (pkdp.Histogram(k=50), HALF),
    "noised": (NOISED, HALF),
    "weak": (pkdp.Histogram(k=12), pkdp.AttackerModel(p_max=0.3, known=2)),
    "counting": (pkdp.Count(), pkdp.AttackerModel(unknown=40, p_min=0.2, p_max=0.8)),
    "both": (pkdp.Count(noise=pkdp.GeometricNoise(0.9)), pkdp.AttackerModel(unknown=12, p_min=0.2, p_max=0.8)),
}


@cache
def certificate(name):
    return pkdp.certify(*CERTIFICATES[name])


@cache
def curve_of(name):
    return GuaranteeCurve.of(certificate(name))


def height(line, places):
    """Return how high a line drawn as steps is at these places, each value up to the next."""
    x, y = line.get_data()
    assert line.get_drawstyle() == "steps-post"
    return np.asarray(y)[np.searchsorted(x, places, side="right") - 1]


@thinned(2)
@pytest.mark.parametrize("name", CERTIFICATES)
def test_what_is_drawn_is_nowhere_below_what_is_certified(name):
    what = certificate(name)
    curve = curve_of(name)
    panel = axes()
    draw_guarantee(curve, panel)
    line = drawn(panel, "certified")
    bottom = panel.get_ylim()[0]
    places = {"both": 40, "noised": 40, "counting": 200}.get(name, few(700, 200))
    further = np.random.default_rng(1).uniform(0.0, curve.epsilons[-1], places)
    between = np.sort(np.append(further, curve.epsilons))
    # δ never rises with ε: what is certified at a smaller ε holds as well, and may be less by the slack of its bound.
    true = np.minimum.accumulate(what.delta(between))
    visible = true > bottom
    assert visible.sum() > 30
    # The bounds for noise and uncertainty together have more slack at some ε than at others, and the chord of two
    # points with less of it is certified, too. Never is it below what an attack attains.
    slack = 0.01 if name in ("both", "noised") else 1e-11
    assert (height(line, between)[visible] >= true[visible] * (1 - slack)).all()
    attained, _ = what.delta_bounds(between)
    assert (height(line, between)[visible] >= attained[visible] * (1 - 1e-11)).all()
    if curve.worst_case is not None:
        anyone = np.minimum.accumulate(what.worst_case.delta(between))
        visible_worst = anyone > bottom
        assert (height(drawn(panel, "worst case"), between)[visible_worst] >= anyone[visible_worst] * (1 - 1e-11)).all()


@pytest.mark.parametrize("name", CERTIFICATES)
def test_at_its_points_it_is_what_is_certified_and_attained(name):
    curve = curve_of(name)
    panel = axes()
    draw_guarantee(curve, panel)
    bottom = panel.get_ylim()[0]
    shown = np.array(curve.certified) > bottom
    assert np.array_equal(
        height(drawn(panel, "certified"), np.array(curve.epsilons))[shown], np.array(curve.certified)[shown]
    )
    if max(curve.attained) > 0.0:
        x, y = drawn(panel, "attained").get_data()
        visible = np.array(curve.attained) > bottom
        assert tuple(x) == curve.epsilons
        assert np.array_equal(np.asarray(y)[visible], np.array(curve.attained)[visible])
    else:
        assert "attained" not in labels(panel)
    if curve.mark is None:
        assert "mark" not in labels(panel)
    else:
        assert drawn(panel, "mark").get_data() == ([curve.mark[0]], [curve.mark[1]])


def test_the_mark_is_named_with_its_numbers_rounded_up():
    panel = axes()
    draw_guarantee(GuaranteeCurve.of(certificate("suppressed")), panel)
    assert "ε = 1.16 at δ = 1e-6" in texts(panel)
    panel = axes()
    draw_guarantee(GuaranteeCurve.of(certificate("suppressed"), 1e-8), panel)
    assert any(text.endswith("at δ = 1e-8") for text in texts(panel))


def test_the_noise_has_a_curve_of_its_own():
    panel = axes()
    draw_guarantee(GuaranteeCurve.of(certificate("noised")), panel)
    assert drawn(panel, "worst case").is_dashed()
    assert any("noise alone" in text for text in texts(panel))
    panel = axes()
    draw_guarantee(GuaranteeCurve.of(certificate("suppressed")), panel)
    assert "worst case" not in labels(panel)
    assert not any("noise" in text for text in texts(panel))


def test_what_is_attained_is_told_from_what_is_certified():
    for name, equal in [("suppressed", True), ("apart", False)]:
        curve = curve_of("suppressed" if name == "apart" else name)
        if name == "apart":
            curve = dataclasses.replace(curve, attained=tuple(0.5 * delta for delta in curve.certified))
        panel = axes()
        draw_guarantee(curve, panel)
        attained, certified = drawn(panel, "attained"), drawn(panel, "certified")
        assert attained.is_dashed()
        assert not certified.is_dashed()
        # Below the certified line, and seen beside it: no dash breaks what is full.
        assert attained.get_zorder() < certified.get_zorder()
        assert attained.get_linewidth() > certified.get_linewidth()
        beside = {text.get_text() for text in panel.texts}
        assert beside == (set() if equal else {"attained", "certified"})
        assert ("attained by an attack: equal to three digits" in texts(panel)) is equal


def test_where_nothing_is_certified_the_picture_says_so():
    nothing = SimpleNamespace(
        epsilons=(0.0, 1.0, 2.0), attained=(0.0,) * 3, certified=(1.0,) * 3, worst_case=None, mark=None
    )
    panel = axes()
    draw_guarantee(nothing, panel)
    assert texts(panel) == ["nothing is certified: δ = 1"]


@pytest.mark.parametrize("seed", range(5))
def test_chords_of_convex_functions_lie_above_them(seed):
    random = np.random.default_rng(seed)
    # A δ(ε) is an average of max(0, 1 - e^(ε - loss)).
    losses = random.normal(0.5, 1.0, 50)

    def delta(epsilon):
        return np.maximum(0.0, 1.0 - np.exp(np.subtract.outer(epsilon, losses))).mean(axis=-1)

    epsilons = np.sort(np.append(random.uniform(0.0, 3.0, 11), 0.0))
    fine, chords = above(epsilons, delta(epsilons), np.zeros(11, dtype=bool))
    assert fine.size == chords.size >= 241
    for share in (0.0, 0.3, 0.999):
        assert (chords[:-1] >= delta(fine[:-1] + share * np.diff(fine)) * (1 - 1e-12)).all()
    _, flat = above(epsilons, delta(epsilons), np.ones(11, dtype=bool))
    assert (flat >= chords).all()
    assert set(flat) == set(delta(epsilons))
