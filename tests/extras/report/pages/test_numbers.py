"""The first screen: what is shown of each cell, with which marks, and when a change is one."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from pages import REPORTS

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.report.content import ReleaseView, Report, Series
from pkdp_pipeline.extras.report.pages import _filled, to_html
from pkdp_pipeline.extras.report.pages.numbers import UNSEEN, Number, bound_of_two, numbers_of
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.releases.derived import expected_error
from pkdp_pipeline.releases.printed import bands_of

NOISE = pkdp.GeometricNoise(1.0)  # 95 % within 3; of the difference of two, within 4
BELOW = pkdp.Histogram(k=30, noise=NOISE, below="noise")
MINUS = "\N{MINUS SIGN}"


def report_of(mechanism: Mechanism, *periods: dict[str, int | None], marks: bool = False) -> tuple[ReleaseView, Report]:
    """Return a report of some periods of one release; with `marks` counts are exact from `k` on."""
    report = REPORTS["year"]()
    (release,) = report.releases
    cells, k = tuple(periods[-1]), mechanism.k or 0
    counts = tuple(tuple(period[cell] for cell in cells) for period in periods)
    exact = tuple(tuple(None if n is None else n >= k for n in of_period) for of_period in counts) if marks else None
    names = tuple(f"2026-{month:02}" for month in range(1, len(periods) + 1))
    bands = bands_of(mechanism)
    table = replace(
        release.table,
        columns=("town",),
        keys=tuple((cell,) for cell in cells),
        counts=counts[-1],
        exact=exact and exact[-1],
        bands=bands,
    )
    error = None if mechanism.noise is None else expected_error(mechanism)
    shown = replace(release, name="towns", period=names[-1], table=table, k=mechanism.k, error=error)
    series = Series(name="towns", cells=cells, periods=names, counts=counts, exact=exact, bands=bands)
    certificate = json.loads(pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.1)).to_json())
    promises = [replace(each, certificate=certificate) for each in report.promises]
    return shown, replace(report, releases=(shown,), series=(series,), promises=tuple(promises))


def deviation(epsilon: float) -> float:
    return expected_error(pkdp.Histogram(noise=pkdp.GeometricNoise(epsilon))).standard_deviation


def changes(mechanism: Mechanism, *pairs: tuple[int | None, int | None], marks: bool = False) -> list[str]:
    former, latter = ({str(cell): pair[side] for cell, pair in enumerate(pairs)} for side in (0, 1))
    return [row.change for row in numbers_of(*report_of(mechanism, former, latter, marks=marks)).rows]


def test_exact_counts_change_by_their_difference_and_hidden_ones_by_nothing():
    differences = changes(pkdp.Histogram(k=20), (20, 1320), (1320, 20), (25, 25), (None, 30), (30, None), (None, None))
    assert differences == ["+1,300", f"{MINUS}1,300", "0", "", "", ""]


def test_a_noised_change_is_shown_only_past_the_noise_of_both():
    noised = pkdp.Histogram(noise=NOISE)
    assert bound_of_two(deviation(1.0)) == 4
    assert changes(noised, (20, 24), (20, 25), (20, 15), (20, 16), (-3, 2)) == [
        UNSEEN,
        "≈ +5",
        f"≈ {MINUS}5",
        UNSEEN,
        "≈ +5",
    ]


def test_beside_an_exact_count_a_noised_one_is_below_the_threshold():
    assert changes(BELOW, (29, 30), (30, 31), (31, 29), (26, 29), (20, 29), (None, 31), marks=True) == [
        "≈ +1",
        "+1",
        f"≈ {MINUS}2",
        UNSEEN,
        "≈ +9",
        "",
    ]


def test_displayed_numbers_change_only_where_their_counts_do():
    rounded = pkdp.Histogram(k=20, display=pkdp.Rounding(5))
    assert changes(rounded, (20, 25), (25, 25), (40, 20)) == ["≈ +5", UNSEEN, f"≈ {MINUS}20"]
    random = pkdp.Histogram(k=20, display=pkdp.RandomRounding(3))  # 21 is 19 to 23, and 24 is 22 to 26
    assert changes(random, (21, 24), (21, 27)) == [UNSEEN, "≈ +6"]
    banded = pkdp.Histogram(k=20, display=pkdp.Bands([0, 20, 50]))
    assert changes(banded, (20, 20), (20, 50), (50, 20), (50, 50)) == [UNSEEN, "higher", "lower", UNSEEN]


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
def test_a_change_that_is_none_is_shown_in_at_most_5_percent_of_cases(epsilon):
    alpha, numbers = math.exp(-epsilon), np.arange(-800, 801)
    law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(numbers)
    both, sizes = np.convolve(law, law), np.abs(np.arange(-1600, 1601))
    bound = bound_of_two(deviation(epsilon))
    assert both[sizes > bound].sum() <= 0.05 + 1e-12
    assert bound == 0 or both[sizes >= bound].sum() > 0.05


def test_the_bound_of_two_noises_of_any_width():
    assert bound_of_two(deviation(50.0)) == 0
    assert bound_of_two(deviation(1e-15)) == pytest.approx(4.117e15, rel=1e-3)


def test_every_number_carries_what_it_may_stand_for():
    screen = numbers_of(*report_of(BELOW, {"a": 29, "b": 2, "c": 30}, {"a": 28, "b": -1, "c": 1234}, marks=True))
    numbers = [row.numbers[-1] for row in screen.rows]
    assert [(number.text, number.exact, number.low, number.high) for number in numbers] == [
        ("≈ 28", False, 25.0, 29.0),
        (f"≈ {MINUS}1", False, 0.0, 2.0),
        ("1,234", True, 1234.0, 1234.0),
    ]
    banded = pkdp.Histogram(k=20, display=pkdp.Bands([0, 20, 50]))
    (row,) = numbers_of(*report_of(banded, {"a": 20}, {"a": 50})).rows
    assert [(number.text, number.exact, number.low, number.high) for number in row.numbers] == [
        ("20–49", False, 20.0, 49.0),
        ("50 or more", False, 50.0, math.inf),
    ]


def test_the_first_screen_has_the_largest_cells_and_the_latest_periods():
    cells = {f"{cell:02}": None if cell == 40 else 100 + cell for cell in range(41)}
    screen = numbers_of(*report_of(pkdp.Histogram(k=20), *[cells] * 9))
    assert [row.names for row in screen.rows] == [(f"{cell:02}",) for cell in range(10, 40)]
    assert {len(row.numbers) for row in screen.rows} == {6}
    assert (screen.more_cells, screen.more_periods) == (11, 3)
    assert [row.names for row in screen.panels] == [(f"{cell:02}",) for cell in range(32, 40)]
    assert {len(row.numbers) for row in screen.panels} == {9}
    assert screen.scale == (0.0, 139.0)
    (release, report) = report_of(pkdp.Histogram(k=20), cells)
    alone = numbers_of(release, report)
    assert (alone.series, alone.more_cells, alone.more_periods, alone.panels) == (None, 11, 0, ())


@pytest.mark.parametrize("marks", [False, True])
def test_every_noised_number_of_the_page_is_marked(marks):
    mechanism = BELOW if marks else pkdp.Histogram(noise=NOISE)
    cells = {f"{cell:02}": 8001 + cell for cell in range(40)} | {f"{cell}": 7 for cell in range(40, 42)}
    text = to_html(report_of(mechanism, cells, cells, marks=marks)[1]).replace("\xa0", " ").replace("&nbsp;", " ")
    assert len(re.findall("<td[^>]*>≈ 7</td>", text)) >= 2 * 3
    assert len(re.findall("<td[^>]*>7</td>", text)) == 0
    assert bool(re.findall("<td[^>]*>8,001</td>", text)) == marks


def strokes(outline: str) -> int:
    return len(re.findall("M", outline))


def test_nothing_is_drawn_where_nothing_is_published_and_nothing_noised_as_exact():
    counts = [40, 41, None, 43, 29, 28, None]
    (row,) = numbers_of(*report_of(BELOW, *({"a": count} for count in counts), marks=True)).panels
    drawn = {part: strokes(outline) for part, outline in row.outlines.items()}
    # From 40 to 41, one line; to 29 and to 28 dashed ones; nothing to or from what is not published.
    assert drawn == {"base": 1, "line": 1, "none": 2, "dot": 3, "dashed": 2, "range": 2, "ring": 2, "hole": 2}
    assert row.numbers[-1] is None
    (row,) = numbers_of(*report_of(pkdp.Histogram(k=20), {"a": 20}, {"a": None}, {"a": 40})).panels
    dots = re.findall(r"M([\d.]+) ([\d.]+)h0", row.outlines["dot"])
    assert dots == [("5.0", "28.0"), ("235.0", "4.0")]


def test_a_missing_period_breaks_the_line():
    release, report = report_of(pkdp.Histogram(k=20), *[{"a": 40}] * 6)
    whole = numbers_of(release, report).panels[0].outlines["line"]
    names = ("2026-01", "2026-02", "2026-03", "2026-08", "2026-09", "2026-10")
    broken = replace(report, series=(replace(report.series[0], periods=names),))
    release = replace(release, period=names[-1])
    assert strokes(whole) == 5
    assert strokes(numbers_of(release, broken).panels[0].outlines["line"]) == 4


def test_numbers_are_told_apart_by_more_than_their_place():
    kinds = [
        Number(value=5, text="5", noised=noised, least=5.0, most=most, low=5.0, high=most)
        for noised, most in itertools.product((False, True), (5.0, 6.0))
    ]
    assert [number.exact for number in kinds] == [True, False, False, False]


def test_a_rule_of_display_is_not_taken_for_counts_as_they_are():
    rounded = pkdp.Rounding(5, "down")
    mechanisms = {
        pkdp.Histogram(k=20, display=rounded): "as counted",
        pkdp.Histogram(noise=NOISE, display=rounded): "as likely to be too high",
        pkdp.Histogram(noise=NOISE, release_threshold=22, display=rounded): "none is below",
    }

    def words(mechanism):
        return _filled("error.html.jinja", report_of(mechanism, {"Ely": 25})[1], number=len)

    for mechanism, untrue in mechanisms.items():
        assert "every published number is shown rounded down to 5" in words(mechanism)
        assert untrue not in words(mechanism)
        assert untrue in words(replace(mechanism, display=None))
