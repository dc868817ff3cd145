"""SVG: a figure as part of a page, in the page's colours and letters, with a title and a description."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Tree

from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.frame import need_matplotlib
from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["inline_svg"]

_NAMESPACE = "http://www.w3.org/2000/svg"
_COLOURS = ("fill", "stroke", "stop-color")
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_IDLE = {("stroke-linejoin", "miter"), ("stroke-linejoin", "round"), ("text-anchor", "start"), ("stroke-width", "1")}
_LONG = 60_000  # characters; a picture of so many points needs less of each
_LETTERS = ("font-family", "font")


def inline_svg(
    draw: Callable[[Axes], None], *, name: str, title: str, description: str, width: float, height: float
) -> str:
    """Return a picture as an ``<svg>`` element to be put into a page; the same bytes for the same picture.

    Parameters
    ----------
    draw : callable
        Draws into the axes it is given, in colours of `pkdp_pipeline.display.figures.style` only.
    name : str
        Starts every id in it: a different one for each picture of a page. ASCII letters, digits, ``-`` and ``_``.
    title, description : str
        What a screen reader says.
    width, height : float
        In px, as of the page's text: letters have 11 and 12 px where the picture is shown at this size. It is
        shown smaller where the page is narrower.

    Returns
    -------
    str
        Its colours are the CSS variables of `display.figures.style.CSS_LIGHT`; its letters are the page's.

    Raises
    ------
    ArgumentError
        If an argument is malformed, or `draw` uses another colour.
    ConfigError
        If matplotlib is not installed.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise ArgumentError("name must start with a letter and hold letters, digits, '-' and '_' only: it starts ids.")
    if not all(isinstance(text, str) and text.strip() for text in (title, description)):
        raise ArgumentError("title and description must be non-empty texts: they are what a screen reader says.")
    if not (100.0 <= width <= 4000.0 and 100.0 <= height <= 4000.0):
        raise ArgumentError("width and height must be px, from 100 to 4000.")
    text = _drawn(draw, width, height)
    root = Tree.fromstring(text)
    picture = Tree.Element("svg", {"xmlns": _NAMESPACE, "role": "img"})
    picture.set("aria-labelledby", f"{name}-title {name}-description")
    picture.set("viewBox", f"0 0 {width:g} {height:g}")
    picture.set("width", f"{width:g}")
    picture.set("style", "max-width:100%;height:auto")
    picture.set("stroke-linejoin", "round")
    for tag, part, said in (("title", "title", title), ("desc", "description", description)):
        line = "".join(letter if letter.isprintable() else " " for letter in said)
        Tree.SubElement(picture, tag, {"id": f"{name}-{part}"}).text = line
    decimals = 2 if len(text) < _LONG else 1
    names = {old: f"{name}-{number}" for number, old in enumerate(_referenced(root), start=1)}
    for child in root:
        picture.extend(list(_rewritten(child, names, decimals)))
    return Tree.tostring(picture, encoding="unicode")


def _drawn(draw: Callable[[Axes], None], width: float, height: float) -> str:
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with matplotlib.rc_context():
        # What the caller has set is theirs, and comes back: the same picture has the same bytes everywhere.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "pkdp", "path.simplify": False})
        figure = Figure(
            figsize=(width / 72.0, height / 72.0), dpi=72, layout=ConstrainedLayoutEngine(w_pad=2 / 72, h_pad=2 / 72)
        )
        axes = figure.add_subplot()
        draw(axes)
        figure.patch.set_visible(False)
        axes.patch.set_visible(False)
        content = io.StringIO()
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    return content.getvalue()


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _referenced(root: Tree.Element) -> list[str]:
    """Return the ids that something refers to, in the order of the document."""
    used = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            used.update(_REFERENCE.findall(value))
            if _local(key) == "href":
                used.add(value.removeprefix("#"))
    return [one for element in root.iter() if (one := element.get("id")) in used and one is not None]


def _rewritten(element: Tree.Element, names: dict[str, str], decimals: int) -> Iterator[Tree.Element]:
    """Yield what stands for an element: itself without what a page does not need, its children, or nothing."""
    tag = _local(element.tag)
    if tag in ("metadata", "style"):
        return
    made = Tree.Element(tag)
    made.text = element.text if tag == "text" else None
    for key, value in _attributes(element, decimals):
        if key == "id":
            if value in names:
                made.set("id", names[value])
        elif key == "href":
            made.set("href", f"#{names[value.removeprefix('#')]}")
        else:
            made.set(key, _REFERENCE.sub(lambda found: f"url(#{names[found[1]]})", value))
    for child in element:
        made.extend(list(_rewritten(child, names, decimals)))
    if tag in ("g", "defs") and not len(made):
        return
    _hoist(made)
    if tag == "g" and not made.attrib:
        yield from made
        return
    yield made


def _hoist(group: Tree.Element) -> None:
    """Say once for a group of markers what is the same for all of them."""
    styles = {child.get("style") for child in group}
    if group.tag == "g" and len(styles) == 1 and all(child.tag == "use" for child in group):
        shared = styles.pop()
        if shared is not None and group.get("style") is None:
            group.set("style", shared)
            for child in group:
                del child.attrib["style"]


def _attributes(element: Tree.Element, decimals: int) -> Iterator[tuple[str, str]]:
    for key, value in element.attrib.items():
        local = _local(key)
        if local == "style":
            declared = ";".join(f"{name}:{_value(name, text)}" for name, text in _declared(value))
            if declared:
                yield "style", declared
        elif local == "transform" and re.fullmatch(r"rotate\(-?0 .*\)", value):
            continue
        elif local == "d":
            yield "d", _path(value, decimals)
        elif local in _COLOURS:
            yield local, _colour(value)
        elif local in ("x", "y", "width", "height", "transform"):
            yield local, _NUMBER.sub(lambda found: _short(found[0]), value)
        else:
            yield local, value


def _declared(text: str) -> Iterator[tuple[str, str]]:
    for one in text.split(";"):
        name, _, value = (piece.strip() for piece in one.partition(":"))
        if name and name not in _LETTERS and (name, value) not in _IDLE:
            yield name, value


def _value(name: str, text: str) -> str:
    return _colour(text) if name in _COLOURS else _NUMBER.sub(lambda found: _short(found[0]), text)


def _colour(text: str) -> str:
    if text == "none" or text.startswith("url("):
        return text
    if text.lower() not in style.VARIABLES:
        raise ArgumentError(
            f"draw uses the colour {text}: a page can only show those of pkdp_pipeline.display.figures.style."
        )
    return f"var({style.VARIABLES[text.lower()]})"


def _short(number: str) -> str:
    return f"{round(float(number), 2) + 0.0:g}" if abs(float(number)) < 1e4 else f"{float(number):.1f}"


def _path(text: str, decimals: int) -> str:
    """Return a path in few letters: few decimals, straight lines by how far they go, ``h`` and ``v`` along the axes."""
    found: list[str] = []
    x = y = 0.0
    for command, inner in re.findall(r"([MLCQSz])([^MLCQSz]*)", text):
        numbers = [round(float(one), decimals) for one in inner.split()]
        if command != "L":
            found.append(command + _joined(numbers))
        elif (across := numbers[0] - x, down := numbers[1] - y) == (0.0, 0.0):
            continue
        elif down == 0.0:
            found.append("h" + _joined([across]))
        elif across == 0.0:
            found.append("v" + _joined([down]))
        else:
            found.append("l" + _joined([across, down]))
        if numbers:
            x, y = numbers[-2:]
    return "".join(found)


def _joined(numbers: list[float]) -> str:
    """Return numbers in two decimals, with blanks where they are needed."""
    written = ""
    for number in numbers:
        text = f"{round(number, 2) + 0.0:.2f}".rstrip("0").rstrip(".").replace("0.", ".", 1 if abs(number) < 1.0 else 0)
        written += text if not written or text.startswith("-") else f" {text}"
    return written
