"""The report as pages: one self-contained HTML page, without script or request; and Markdown. Templates say it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.display.content import Promise, Report
from pkdp_pipeline.display.figures.style import CSS_DARK, CSS_LIGHT
from pkdp_pipeline.display.ledger.words import amount
from pkdp_pipeline.display.report import plain_words
from pkdp_pipeline.display.report.json_form import carrying
from pkdp_pipeline.model.plain_text import exactly, in_markdown, printable, table_line
from pkdp_pipeline.model.wording import rounded_down, rounded_up

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.axes import Axes

_NARROW = 328.0
"""Every picture is drawn for a page with room and for a telephone, so wide; the style sheet shows one of them."""


def to_html(report: Report) -> str:
    """Return the page; equal reports have equal bytes. It needs matplotlib."""
    from markupsafe import Markup

    numbers: Counter[str] = Counter()

    def number(kind: str) -> int:
        numbers[kind] += 1
        return numbers[kind]

    return _filled(
        "report.html.jinja",
        report,
        content=Markup(carrying(report)),
        drawn=_drawn,
        number=number,
        drawn_above=lambda promise: _drawn_above(promise, report.promises),
        said={report.lead and report.lead.sentence, *(release.sentence for release in report.releases)},
    )


def to_markdown(report: Report) -> str:
    """Return the report as Markdown, safe where a page is made of it; equal reports have equal bytes."""
    text = re.sub(r"\n{3,}", "\n\n", _filled("report.md.jinja", report)).rstrip("\n")
    return f"{text}\n\n{carrying(report)}\n"


def _filled(template: str, report: Report, **more: Any) -> str:
    def about(promise: Promise) -> str:
        """Return what tells a promise's figures and tables from those of others; empty where there is one."""
        return f" ({promise.name})" if len(report.promises) > 1 else ""

    return _environment().get_template(template).render(report=report, about=about, **more)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("pkdp_pipeline.display.report"),
        autoescape=lambda name: name is None or name.endswith(".html.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "down": rounded_down,
        "epsilon": amount,
        "exact": exactly,
        "literal": json.dumps,
        "md": in_markdown,
        "plain": plain_words.plain_number,
        "printable": printable,
        "up": rounded_up,
        "whole": lambda number: f"{number:,}".replace("-", "\N{MINUS SIGN}"),
    }
    environment.globals |= {name: value for name, value in vars(plain_words).items() if name[0] != "_"}
    environment.globals |= {"float": float, "infinity": math.inf, "points_of": _points, "row": table_line}
    colours = {
        name: "\n".join(f"  {variable}: {value};" for variable, value in values.items())
        for name, values in (("light", CSS_LIGHT), ("dark", CSS_DARK))
    }
    # The colours of the figures, which the whole page uses.
    environment.globals["stylesheet"] = Markup(environment.get_template("report.css").render(colours))
    return environment


def _drawn(
    draw: str, *values: Any, name: str, title: str, description: str, height: float, wide: float, **named: Any
) -> Markup:
    """Return a picture by one of the figures' functions, wide and narrow."""
    from markupsafe import Markup

    from pkdp_pipeline.display import figures

    def onto(axes: Axes) -> None:
        getattr(figures, draw)(*values, axes, **named)

    made = []
    for kind, width in (("wide", wide), ("narrow", _NARROW)):
        svg = figures.inline_svg(
            onto, name=f"{name}-{kind}", title=title, description=description, width=width, height=height
        )
        made.append(f'<div class="{kind}">{svg}</div>')
    return Markup("".join(made))


def _drawn_above(promise: Promise, promises: tuple[Promise, ...]) -> str:
    """Return the name of an earlier promise with equal curves, as one day's is that of every day; empty without one."""

    def shape(one: Promise) -> object:
        return one.curve, [(curve.field, curve.values, curve.epsilons, curve.floor) for curve in one.knowledge]

    earlier = promises[: next(place for place, one in enumerate(promises) if one is promise)]
    return next((one.name for one in earlier if shape(one) == shape(promise)), "")


def _points(promise: Promise, most: int = 9) -> list[tuple[float, float, float | None]]:
    """Return some ε, what is certified there, and what holds against anyone, at `most` ε and those that are round.

    An ε is rounded up, and a δ is one that holds there: what is certified at the nearest smaller ε of the curve.
    """
    curve, last = promise.curve, len(promise.curve.epsilons) - 1
    places = {round(step * last / (most - 1)) for step in range(most)}
    rows = {float(rounded_up(curve.epsilons[place], 4)): curve.certified[place] for place in places}
    rows |= dict(promise.statement.numbers)
    found = []
    for epsilon, delta in sorted(rows.items()):
        anyone = None
        if curve.worst_case is not None:
            below = max(place for place in range(last + 1) if curve.epsilons[place] <= epsilon)
            anyone = delta if curve.worst_case == curve.certified else curve.worst_case[below]
        found.append((epsilon, delta, anyone))
    return found
