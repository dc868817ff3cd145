"""The figures of the paper: in every panel what is certified is a bound, and at most what is printed and sound."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle.releases import count_losses, table_losses

pytestmark = pytest.mark.xdist_group("paper_figures")

EXAMPLE = Path(__file__).parents[1] / "examples" / "paper_figures.py"
#: The same figures of few people, so that they are computed and enumerated at once.
SMALL: dict[str, dict[str, Any]] = {
    "figure_2": {"n": 12, "least": 0.3, "points": 4},
    "figure_3": {"delta": 1e-2, "most": 2.0, "points": 1},
    "figure_4": {"n": 24, "p": 0.1, "known": 6, "most": 9},
    "figure_5": {"n": 24, "least": 0.3, "delta": 0.02, "points": 6},
    "figure_6": {"people": 9, "least": 0.3, "points": 5},
    "theorem_5": {"n": 7, "least": 0.3, "k": 3, "points": 4},
}


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("paper_figures_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def small(example) -> dict[str, Any]:
    assert [make.__name__ for make in example.FIGURES] == list(SMALL)
    return {name: getattr(example, name)(**SMALL[name]) for name in SMALL}


def assert_bounds(drawn: Any) -> int:
    """Compare all lines of a panel that are about the same attackers; return how many comparisons that are."""
    compared = 0
    for panel in drawn.panels:
        for line in panel.lines:
            assert line.y.shape == panel.x.shape
            for other in panel.lines:
                if line.group != other.group:
                    continue
                at_most = {"exact": ("certified", "sound", "noise"), "certified": ("sound", "noise")}.get(line.kind, ())
                if other.kind in at_most:
                    shown = np.isfinite(other.y)
                    assert (line.y[shown] <= other.y[shown] * (1 + 1e-9) + 1e-15).all(), (line.label, other.label)
                    compared += 1
    return compared


def truth(unknown: list[float], known: list[float], epsilon: float, **release: Any) -> float:
    return float(max(count_losses(unknown, known, epsilon, math.exp, **release)))


def vertices(people: int, least: float) -> list[list[float]]:
    return [[least] * (people - j) + [1 - least] * j for j in range(people + 1)]


def assert_not_below(certified: np.ndarray, true: list[float]) -> None:
    assert (np.array(true) <= certified * (1 + 1e-9) + 1e-12).all()
    assert max(true) > 0.0


@pytest.mark.parametrize("name", SMALL)
def test_certified_lines_lie_between_the_exact_ones_and_what_is_printed_and_sound(small, name):
    assert assert_bounds(small[name]) >= 1


def test_small_counts_are_enumerated(small):
    n, least = SMALL["figure_2"]["n"], SMALL["figure_2"]["least"]
    for panel, low in zip(small["figure_2"].panels, (least, least, 0.5), strict=True):
        people = vertices(n - 1, low)
        worst = [max(truth(chances, [], epsilon) for chances in people) for epsilon in panel.x.tolist()]
        assert_not_below(panel.lines[0].y, worst)
        # The printed condition is no bound; what is printed as exact is one of the declared attackers'.
        assert panel.lines[1].kind == "exact"


def test_the_exact_lines_are_exact(small):
    panel = small["figure_2"].panels[0]
    chances = [0.3] + [0.5] * 10
    assert panel.lines[1].y == pytest.approx([truth(chances, [], epsilon) for epsilon in panel.x.tolist()], rel=1e-9)
    panel = small["figure_4"].panels[1]
    passive = [truth([0.1] * 17, [0.1] * 6, 0.5, k=int(k)) for k in panel.x.tolist()]
    assert panel.lines[1].y == pytest.approx(passive, rel=1e-6, abs=1e-15)
    panel = small["figure_6"].panels[0]
    noised = [truth([0.3] * 9, [], epsilon, noise=0.7) for epsilon in panel.x.tolist()]
    assert panel.lines[1].y == pytest.approx(noised, rel=1e-6, abs=1e-12)


def test_an_epsilon_of_figure_3_hides_everybody_at_its_delta(small):
    panel = small["figure_3"].panels[0]
    assert panel.x.tolist() == [100.0]
    for line, least in zip(panel.lines[::2], (0.01, 0.1, 0.5), strict=True):
        if math.isfinite(line.y[0]):
            people = vertices(99, least)[:: 1 if least < 0.5 else 99]
            assert max(truth(chances, [], float(line.y[0])) for chances in people[::7]) <= 1e-2 * (1 + 1e-9)
    assert math.isfinite(panel.lines[4].y[0])


def test_thresholds_of_figure_4_are_enumerated(small):
    left, right = small["figure_4"].panels
    for line, epsilon, most in zip(left.lines[:3], (0.0, 0.5, 0.5), (23, 23, 200), strict=True):
        crowds = range(most + 1) if most < 100 else range(0, most, 9)
        worst = [max(truth([0.1] * m, [], epsilon, k=int(k)) for m in crowds) for k in left.x.tolist()]
        assert_not_below(line.y, worst)
    known = [
        max(truth([0.1] * m, [0.1] * b, 0.5, k=k) for m in (5, 12, 17) for b in (0, 3, 6))
        for k in map(int, right.x.tolist())
    ]
    assert_not_below(right.lines[0].y, known)


def test_an_epsilon_of_figure_5_hides_everybody_at_its_delta(small):
    panel = small["figure_5"].panels[0]
    plain, noised = panel.lines[:2]
    finite = 0
    for share, without, with_noise in zip(panel.x.tolist(), plain.y.tolist(), noised.y.tolist(), strict=True):
        people = vertices(round(share * 24), 0.3)
        if math.isfinite(without):
            assert max(truth(chances, [], without) for chances in people) <= 0.02 * (1 + 1e-9)
            finite += 1
        assert max(truth(chances, [], with_noise, noise=1.0) for chances in people[::4]) <= 0.02 * (1 + 1e-9)
        assert with_noise <= min(without, 1.0) * (1 + 1e-9)
    assert finite >= 2


def test_noise_of_figure_6_is_enumerated(small):
    panel = small["figure_6"].panels[0]
    people = vertices(9, 0.3)
    for line, release in ((panel.lines[0], {"noise": 0.7}), (panel.lines[2], {})):
        worst = [max(truth(chances, [], epsilon, **release) for chances in people) for epsilon in panel.x.tolist()]
        assert_not_below(line.y, worst)
    known = [truth([], [], epsilon, noise=0.7) for epsilon in panel.x.tolist()]
    assert_not_below(panel.lines[3].y, known)


def test_histograms_for_theorem_5_are_enumerated(small):
    # Absence has 0.3 at least: the rare cell has 0.3 at most, the common one 0.3 at least.
    alike = ([0.3, 0.4, 0.3], [0.0, 0.7, 0.3], [0.2, 0.3, 0.5])
    crowds = [*([person] * 6 for person in alike), [[0.3, 0.3, 0.4], [0.1, 0.6, 0.3]] * 3]
    panel = small["theorem_5"].panels[0]
    worst = [
        max(float(max(table_losses(people, [], e, math.exp, cells=2, lives=(0, 1), k=3))) for people in crowds)
        for e in panel.x.tolist()
    ]
    assert_not_below(panel.lines[0].y, worst)


@pytest.mark.slow
def test_a_figure_is_drawn_with_its_legends_and_its_caption(example, small, tmp_path):
    for name in ("figure_2", "figure_5"):
        drawn = small[name]
        figure = example.draw(drawn)
        figure.savefig(tmp_path / f"{name}.png", dpi=50)
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000
        # Constrained layout puts every legend below its axes, and everything inside the picture.
        shown = [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
        for panel in drawn.panels:
            assert all(line.label in shown for line in panel.lines)
        assert any(text.replace("\n", " ") == drawn.caption for text in shown)
        whole = figure.bbox
        for place in figure.subfigs[0].subfigs:
            (axes,), (legend,) = place.axes, place.legends
            box = legend.get_window_extent()
            assert box.y1 <= axes.get_window_extent().y0
            assert whole.x0 <= box.x0 < box.x1 <= whole.x1
            assert whole.y0 <= box.y0


def test_the_pictures_of_the_documentation_are_small_and_named_as_they_are_made():
    pictures = sorted((EXAMPLE.parents[1] / "docs" / "_static" / "paper").iterdir())
    assert pictures
    for picture in pictures:
        assert picture.stem in SMALL
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size < 60_000
        assert f"(_static/paper/{picture.name})" in (EXAMPLE.parents[1] / "docs" / "findings.md").read_text()


@pytest.mark.slow
def test_the_example_draws_all_figures(example, tmp_path, capsys):
    for make in example.FIGURES:
        assert assert_bounds(make()) >= 1
    example.main(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == list(SMALL)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.{end}" for name in SMALL for end in ("png", "svg")}
