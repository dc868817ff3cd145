"""SVG for a page: well formed, described, in the page's colours, with ids of its own, the same every time."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from xml.etree import ElementTree as Tree

import matplotlib as mpl
import numpy as np
import pytest
from figure_samples import budget, knowledge, points, series, table
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.report import figures
from pkdp_pipeline.extras.report.figures.style import CSS_DARK, CSS_LIGHT, INK, SERIES, VARIABLES
from pkdp_pipeline.extras.report.statement import GuaranteeCurve

CURVE = GuaranteeCurve.of(
    pkdp.certify(
        pkdp.Histogram(k=50, noise=pkdp.GeometricNoise(1.0), release_threshold=70), pkdp.AttackerModel(p_max=0.5)
    )
)
NAMES = tuple((name,) for name in ("A & B", "<script>", "$x^2$", "5 $ to 6 $ \\alpha"))
DRAWINGS = {
    "guarantee": lambda axes: figures.draw_guarantee(CURVE, axes),
    "knowledge": lambda axes: figures.draw_knowledge(knowledge((1.0, 2.0, np.inf), floor=2.5), axes),
    "spending": lambda axes: figures.draw_spending(
        points([1.0, 2.0, 3.0], [2.0, 4.0, np.inf]), [budget(5.0), budget(6.0, window_days=3)], axes, delta=1e-6
    ),
    "counts": lambda axes: figures.draw_counts(table([5, None, -3, 900], keys=NAMES), 4, axes),
    "series": lambda axes: figures.draw_series(
        series([tuple(range(day, day + 9)) for day in range(5)]), axes
    ),
}  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


@cache
def picture(kind, *, name=None, width=720.0):
    return figures.inline_svg(
        DRAWINGS[kind], name=name or kind, title=f"A <{kind}>", description="What & how.", width=width, height=380.0
    )


def ids(root):
    return [element.get("id") for element in root.iter() if element.get("id")]


@thinned(3)
@pytest.mark.parametrize("width", [720.0, 344.0])
@pytest.mark.parametrize("kind", DRAWINGS)
def test_it_is_one_described_element(kind, width):
    text = picture(kind, width=width)
    root = Tree.fromstring(text)
    assert text.startswith("<svg ")
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("viewBox") == f"0 0 {width:g} 380"
    assert root.get("height") is None
    assert "max-width:100%;height:auto" in root.get("style")
    title, description = root[0], root[1]
    assert (title.tag, title.text) == (f"{SVG}title", f"A <{kind}>")
    assert (description.tag, description.text) == (f"{SVG}desc", "What & how.")
    assert root.get("aria-labelledby").split() == [title.get("id"), description.get("id")]


@thinned(2)
@pytest.mark.parametrize("kind", DRAWINGS)
def test_colours_are_variables_of_the_page(kind):
    root = Tree.fromstring(picture(kind))
    used = set()
    for element in root.iter():
        said = [element.get("fill"), element.get("stroke")]
        for declaration in (element.get("style") or "").split(";"):
            name, _, value = declaration.partition(":")
            assert name not in ("font-family", "font")
            if name in ("fill", "stroke"):
                said.append(value)
        for colour in said:
            if colour is not None and colour != "none":
                assert colour.startswith(("var(--", "url(#")), colour
                used.add(colour)
    assert used <= {f"var({name})" for name in CSS_LIGHT} | {colour for colour in used if colour.startswith("url(#")}
    assert "var(--ink)" in used
    assert "#" not in "".join(element.get("style") or "" for element in root.iter()).replace("url(#", "")


@pytest.mark.parametrize("kind", DRAWINGS)
def test_texts_are_texts_and_nothing_is_loaded(kind):
    text = picture(kind)
    root = Tree.fromstring(text)
    assert [element.text for element in root.iter(f"{SVG}text")]
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert {element.tag for element in root.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "title", "desc", "g", "defs", "path", "use", "clipPath", "rect", "text")
    }  # fmt: skip
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
    assert len(text) < 45_000


def test_ids_do_not_meet_on_a_page():
    first, second = Tree.fromstring(picture("series", name="a")), Tree.fromstring(picture("series", name="b"))
    assert len({*ids(first), *ids(second)}) == len(ids(first)) + len(ids(second))
    for root in (first, second):
        for element in root.iter():
            if element.get("href"):
                assert element.get("href").removeprefix("#") in ids(root)
            if element.get("clip-path"):
                assert element.get("clip-path").removeprefix("url(#").removesuffix(")") in ids(root)


def test_names_of_cells_are_written_as_they_are():
    shown = [element.text for element in Tree.fromstring(picture("counts")).iter(f"{SVG}text")]
    assert {name for (name,) in NAMES} <= set(shown)


PICTURE = (
    "from types import SimpleNamespace\nfrom pkdp_pipeline.extras.report import figures\n"
    "marks = dict(exact=None, bands=None, number='count')\n"
    "table = SimpleNamespace(columns=('a',), keys=(('x',), ('y',)), counts=(5, None), more=0, **marks)\n"
    "made = figures.inline_svg(lambda axes: figures.draw_counts(table, 4, axes), name='a', title='t',"
    " description='d', width=720, height=400)\n"
)


@pytest.fixture(scope="module")
def elsewhere():
    """What a process of its own ended with that draws, and looks whether anything global changes."""
    program = (
        "import sys, matplotlib as mpl; before = dict(mpl.rcParams); backend = mpl.rcParams._get('backend')\n"
        f"{PICTURE}import pkdp_pipeline as pkdp\n"
        "pkdp.certify(pkdp.Histogram(k=50), pkdp.AttackerModel(p_max=0.5)).plot()._repr_png_()\n"
        "assert mpl.rcParams._get('backend') == backend, 'backend'\n"
        "assert before == dict(mpl.rcParams), 'rcParams'\n"
        "import matplotlib.pyplot as plt; assert plt.get_fignums() == []\n"
        "sys.stdout.buffer.write(made.encode())"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_nothing_global_changes(elsewhere):
    assert elsewhere.returncode == 0, elsewhere.stderr


def test_the_bytes_are_the_same_in_every_process(elsewhere):
    here: dict[str, object] = {}
    exec(PICTURE, here)
    assert elsewhere.stdout == here["made"]
    assert elsewhere.stdout.startswith("<svg")


def test_the_callers_settings_change_nothing_and_stay():
    plain = picture("guarantee")
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "axes.grid": True, "svg.fonttype": "path"}):
        before = dict(mpl.rcParams)
        assert picture.__wrapped__("guarantee") == plain
        assert dict(mpl.rcParams) == before


def test_numbers_have_two_decimals_and_keep_their_places():
    def draw(axes):
        axes.set_axis_off()
        axes.plot([0, 1, 1, 3], [0, 0, 2, 3], color=INK)

    root = Tree.fromstring(figures.inline_svg(draw, name="a", title="t", description="d", width=200, height=100))
    (path,) = [element for element in root.iter(f"{SVG}path") if element.get("clip-path")]
    numbers = [word for word in path.get("d").split() if word not in "ML"]
    assert max(len(number.partition(".")[2]) for number in numbers) == 2
    x, y = np.array(numbers, dtype=float).reshape(-1, 2).T
    assert x[1] == pytest.approx(x[2], abs=0.02)
    assert x[3] - x[0] == pytest.approx(3 * (x[1] - x[0]), abs=0.06)
    assert y[0] - y[3] == pytest.approx(1.5 * (y[0] - y[2]), abs=0.06)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "1a"},
        {"name": "a b"},
        {"name": "é"},
        {"title": " "},
        {"description": ""},
        {"width": 6.4},
        {"height": float("nan")},
    ],
)
def test_malformed_arguments_are_refused(change):
    given = {"name": "a", "title": "t", "description": "d", "width": 720.0, "height": 400.0}
    with pytest.raises(ArgumentError):
        figures.inline_svg(DRAWINGS["counts"], **{**given, **change})


def test_a_colour_that_no_page_knows_is_refused():
    with pytest.raises(ArgumentError, match="a page can only show"):
        figures.inline_svg(
            lambda axes: axes.plot([0, 1], color="red"), name="a", title="t", description="d", width=300, height=200
        )


def luminance(colour):
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour, background):
    low, high = sorted((luminance(colour), luminance(background)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [CSS_LIGHT, CSS_DARK], ids=["light", "dark"])
def test_colours_can_be_read(colours):
    # Every one of them is the colour of some text, on the paper or on an area.
    for name in ("--ink", "--muted", "--accent", "--warn", "--series-2", "--series-3", "--series-4"):
        assert contrast(colours[name], colours["--surface"]) >= 4.5, name
    assert contrast(colours["--warn"], colours["--warn-soft"]) >= 4.5
    assert contrast(colours["--ink"], colours["--accent-soft"]) >= 4.5
    assert contrast(colours["--ink"], colours["--warn-soft"]) >= 4.5


def test_both_pages_have_all_colours():
    assert set(CSS_DARK) == set(CSS_LIGHT) == set(VARIABLES.values())
    assert len(VARIABLES) == len(CSS_LIGHT)
    assert set(SERIES) <= set(VARIABLES)
