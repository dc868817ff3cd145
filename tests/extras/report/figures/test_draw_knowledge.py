"""ε against knowledge as it is drawn: never below between two points, and marked where nothing is certified."""

from __future__ import annotations

import math

import pytest
from figure_samples import axes, drawn, knowledge, labels, texts
from thorough import one_in

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.report.figures import draw_knowledge
from pkdp_pipeline.extras.report.statement import knowledge_curves


def test_the_steps_hold_the_value_at_which_more_is_known():
    panel = axes()
    draw_knowledge(knowledge((1.0, 1.5, 2.5)), panel)
    line = drawn(panel, "certified")
    assert [list(side) for side in line.get_data()] == [[0.0, 1.0, 2.0], [1.0, 1.5, 2.5]]
    assert line.get_drawstyle() == "steps-pre"  # from one point to the next it is as high as the next
    assert panel.get_xlim() == (0.0, 2.0)


def test_the_axis_of_people_known_starts_at_nobody():
    panel = axes()
    draw_knowledge(knowledge((1.0, 1.5, 2.5), values=(20, 21, 22), declared=20), panel)
    assert [list(side) for side in drawn(panel, "certified").get_data()] == [[0, 20, 21, 22], [1.0, 1.0, 1.5, 2.5]]
    assert panel.get_xlim() == (0.0, 22.0)
    assert drawn(panel, "mark").get_data() == ([20], [1.0])


def test_fewer_unknown_people_are_more_knowledge():
    panel = axes()
    draw_knowledge(knowledge((9.0, 3.0, 1.0), field="unknown", values=(10, 50, 100), declared=100), panel)
    assert [list(side) for side in drawn(panel, "certified").get_data()] == [[100.0, 50.0, 10.0], [1.0, 3.0, 9.0]]
    assert panel.get_xlim() == (100.0, 10.0)


def test_where_nothing_is_certified_the_curve_leaves_the_picture():
    panel = axes()
    draw_knowledge(knowledge((1.0, 2.0, math.inf, math.inf)), panel)
    x, y = drawn(panel, "certified").get_data()
    assert list(x) == [0.0, 1.0, 1.0]
    assert list(y[:2]) == [1.0, 2.0]
    assert y[2] > panel.get_ylim()[1]
    (area,) = [patch for patch in panel.patches if patch.get_label() == "nothing"]
    assert (area.get_x(), area.get_x() + area.get_width()) == (1.0, 3.0)
    assert "no ε is certified" in texts(panel)


def test_where_everything_is_certified_nothing_is_shaded():
    panel = axes()
    draw_knowledge(knowledge((1.0, 2.0)), panel)
    assert "nothing" not in {patch.get_label() for patch in panel.patches}
    assert "no ε is certified" not in texts(panel)
    assert "floor" not in labels(panel)


def test_the_noise_takes_over():
    panel = axes()
    draw_knowledge(knowledge((1.0, 1.5, 1.999, 1.999), floor=1.999), panel)
    assert list(drawn(panel, "floor").get_ydata()) == [1.999, 1.999]
    assert any(text.startswith("the noise alone: ε = 2") for text in texts(panel))


def test_the_declared_attacker_is_marked():
    panel = axes()
    draw_knowledge(knowledge((1.0, 1.1511, 2.0), declared=1), panel)
    assert drawn(panel, "mark").get_data() == ([1], [1.1511])
    assert "declared: ε = 1.16" in texts(panel)
    panel = axes()
    draw_knowledge(knowledge((math.inf, math.inf)), panel)
    assert "declared: no ε is certified" in texts(panel)
    assert drawn(panel, "certified").get_xdata().size == 0


def test_a_declared_value_between_two_points_has_the_worse_one():
    panel = axes()
    draw_knowledge(knowledge((1.0, 2.0, 4.0), values=(0.1, 0.2, 0.4), declared=0.3, field="p_max"), panel)
    assert drawn(panel, "mark").get_data() == ([0.3], [4.0])
    panel = axes()
    draw_knowledge(knowledge((4.0, 2.0, 1.0), values=(10, 20, 40), declared=15, field="unknown"), panel)
    assert drawn(panel, "mark").get_data() == ([15], [4.0])


def test_large_differences_have_a_logarithmic_scale():
    panel = axes()
    draw_knowledge(knowledge((0.5, 3.0, 40.0)), panel)
    assert panel.get_yscale() == "log"
    assert "log scale" in panel.get_title(loc="left")
    panel = axes()
    draw_knowledge(knowledge((0.5, 0.8, 2.0)), panel)
    assert (panel.get_yscale(), panel.get_ylim()[0]) == ("linear", 0.0)


@pytest.mark.parametrize("noise", one_in(2, [None, pkdp.GeometricNoise(1.0)]))
def test_curves_of_a_certificate_are_drawn(noise):
    mechanism = pkdp.Histogram(k=50, noise=noise, release_threshold=None if noise is None else 70)
    what = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.3))
    for curve in knowledge_curves(what):
        panel = axes()
        draw_knowledge(curve, panel)
        x, y = drawn(panel, "certified").get_data()
        certified = dict(zip(curve.values, curve.epsilons, strict=True))
        assert all(certified[value] == high for value, high in zip(x, y, strict=True) if high <= panel.get_ylim()[1])
        assert " ".join(panel.get_xlabel().split()).startswith(curve.words)
