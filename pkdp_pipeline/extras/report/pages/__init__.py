"""Report: what a job has published and what that promises, as one page, as Markdown or as JSON."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from pkdp_pipeline.certificates.sentences import the_attacker_is
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.report import environment
from pkdp_pipeline.extras.report.content import About, BudgetLine, Promise, Report, Series
from pkdp_pipeline.extras.report.figures import need_matplotlib
from pkdp_pipeline.extras.report.figures.style import CSS_DARK, CSS_LIGHT
from pkdp_pipeline.extras.report.pages import numbers, officer, plain_words
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.ledger.history import Point, amount
from pkdp_pipeline.model.period import exactly, in_markdown, printable, table_line
from pkdp_pipeline.model.wording import choice, rounded_down, rounded_up
from pkdp_pipeline.releases.printed import PublishedTable, corrected, noise_sentence, shown_count

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.axes import Axes

    from pkdp_pipeline.extras.report.statement import KnowledgeCurve

__all__ = ["FORMATS", "READERS", "Format", "Reader", "render"]

Format = Literal["html", "md", "json"]

FORMATS: tuple[Format, ...] = ("html", "md", "json")
"""The formats of a report; HTML needs the extra ``report``."""


READERS: tuple[Reader, ...] = ("everybody", "officer")
"""The readers a page is for."""


def render(report: Report, format: Format, reader: Reader = "everybody") -> str:
    """Return a report as a text.

    Parameters
    ----------
    report : Report
    format : {"html", "md", "json"}
        One page of HTML without scripts from elsewhere; Markdown; or JSON, as
        ``pkdp_pipeline/schemas/report.v1.json`` describes it.
    reader : {"everybody", "officer"}, default "everybody"
        For the officer two pages without pictures, which carry their content in HTML only; and the same JSON.

    Raises
    ------
    ArgumentError
        If there is no such format, or no such reader.
    ConfigError
        If pictures are asked for and the extra ``report`` is not installed.
    """
    choice("reader", reader, READERS)
    if format == "json":
        return to_json(report)
    if format not in FORMATS:
        raise ArgumentError(f"format must be html, md or json, got {format!r}.")
    if reader == "officer":
        return for_officer(report, format)
    if format == "md":
        return to_markdown(report)
    need_matplotlib()
    return to_html(report)


SCHEMA = "pkdp-report/1"
"""Name and version of the form."""

_BEGIN, _END = "<!-- pkdp-report ", " -->"
"""A comment holds the content of a page: of every one in HTML, and of the report in Markdown."""
_OFFICER = "for officer "
"""Before the content of a page for the officer."""

Reader = Literal["everybody", "officer"]

_PAIRS = {(float, float): ("epsilon", "delta"), (str, str): ("title", "citation")}
"""Names of the two parts of a tuple, by their types."""


def to_json(report: Report) -> str:
    """Return the report as JSON; equal reports have equal bytes. An ε that does not exist is null."""
    return json.dumps(document_of(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def carrying(report: Report, reader: Reader = "everybody") -> str:
    """Return the comment in which a page carries its content; nothing in it can end the comment."""
    text = json.dumps(document_of(report), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for mark, written in (("<", "\\u003c"), (">", "\\u003e"), ("--", "-\\u002d")):
        text = text.replace(mark, written)
    return f"{_BEGIN}{_OFFICER if reader == 'officer' else ''}{text}{_END}"


def carried(page: str) -> tuple[str, Reader] | None:
    """Return the content that a page carries, as JSON, and whom the page is for; None where it carries none."""
    _, begin, rest = page.rpartition(_BEGIN)
    text, end, _ = rest.partition(_END)
    if not (begin and end):
        return None
    return text.removeprefix(_OFFICER), "officer" if text.startswith(_OFFICER) else "everybody"


def document_of(value: Any) -> Any:
    """Return a report, or a part of it that is a dataclass or None, as JSON-ready values."""
    return _written(type(value), value)


def report_of_document(document: dict[str, Any]) -> Report:
    """Return the report of which `document_of` made a document that follows the schema."""
    report: Report = _value_of(Report, document)
    return report


_hints: Any = cache(get_type_hints)


def _written(kind: Any, value: Any) -> Any:
    """Return a value of a field's type as JSON has it."""
    inner = get_args(kind)
    if value is None or value in (math.inf, {}):  # an ε that does not exist, a certificate that is withheld
        return None
    if NoneType in inner:
        return _written(next(alternative for alternative in inner if alternative is not NoneType), value)
    if is_dataclass(kind):
        document = {name: _written(hint, getattr(value, name)) for name, hint in _hints(kind).items()}
        if kind is Report:
            if value.about is None:
                del document["about"]
            return {"schema": SCHEMA, **document}
        if kind is About:
            document = {name: of for name, of in document.items() if of or name not in ("checked_on", "outdated")}
        if kind in (PublishedTable, Series):
            usual = {"exact": None, "bands": None, "number": "count", "reading": None}
            document = {name: of for name, of in document.items() if name not in usual or of != usual[name]}
        if kind is Point:
            del document["at_one"]
        if kind is Statement:
            ordinary = {field.name for field in fields(kind) if getattr(value, field.name) == field.default}
            ordinary |= set() if value.named[1] == 0.0 < value.delta else {"named"}
            document = {name: of for name, of in document.items() if name not in ordinary}
        if kind is BudgetLine:
            state = "not known" if value.spent is None else "none" if value.spent == math.inf else "certified"
            document["spent_state"] = state
        return document
    if inner in _PAIRS:
        return dict(zip(_PAIRS[inner], value, strict=True))
    return [_written(inner[0], item) for item in value] if get_origin(kind) is tuple else value


def _value_of(kind: Any, value: Any) -> Any:
    """Return a JSON value as the type that a field of a report has: what `_written` does, undone."""
    inner = get_args(kind)
    if NoneType in inner:
        return (
            None
            if value is None
            else _value_of(next(alternative for alternative in inner if alternative is not NoneType), value)
        )
    if is_dataclass(kind):
        members = {name: _value_of(hint, value[name]) for name, hint in _hints(kind).items() if name in value}
        if kind is Statement:
            members.setdefault("named", (members["epsilon"], members["delta"]))
        if kind is BudgetLine and value["spent_state"] == "none":
            members["spent"] = math.inf
        return kind(**members)  # type: ignore[operator]
    if inner in _PAIRS:
        return tuple(value.values())
    if get_origin(kind) is tuple:
        return tuple(_value_of(inner[0], item) for item in value)
    if kind is float and value is None:
        return math.inf
    return {} if value is None else value


_NARROW_WIDTH = 328.0
"""Every picture is drawn for a page with room and for a telephone, so wide; the style sheet shows one of them."""


def to_html(report: Report) -> str:
    """Return the page; equal reports have equal bytes. It needs matplotlib."""
    from markupsafe import Markup

    last: Counter[str] = Counter()
    described = plain_words.attackers(report.lead)
    declared = described[0] if len(described) == 1 else None  # of several each is about some of the releases

    def number(kind: str) -> int:
        last[kind] += 1
        return last[kind]

    text = _filled(
        "report.html.jinja",
        report,
        content=Markup(carrying(report)),
        drawn=_drawn,
        number=number,
        drawn_above=lambda promise: _drawn_above(promise, report.promises),
        said={report.lead and report.lead.sentence, *(release.sentence for release in report.releases)},
        whom_declared=declared,
        briefly=lambda text: _briefly(text, declared),
        last_certified=_last_certified,
    )
    return _bound(text)


def to_markdown(report: Report) -> str:
    """Return the report as Markdown, safe where a page is made of it; equal reports have equal bytes."""
    return f"{_tidied(_filled('report.md.jinja', report))}\n{carrying(report)}\n"


def for_officer(report: Report, form: Literal["html", "md"]) -> str:
    """Return the pages for somebody who answers for the protection of data; see `officer`."""
    from markupsafe import Markup

    who = plain_words.publishing(report)
    heading = [*who, ("Period", report.period), ("A person is", f"one value of {report.ledger.unit}")]
    more = {"sections": officer.sections(report, form), "heading": heading}
    if form == "md":  # for people to read and to send, all of it: what it says is checked with the report
        return _tidied(_filled("officer.md.jinja", report, **more))
    return _bound(_filled("officer.html.jinja", report, **more, content=Markup(carrying(report, "officer"))))


_PIECES = re.compile(
    r"<!--.*?-->|<(head|svg)\b.*?</\1>|<t[dh]\b[^>]*>[\w.,%±-]*</t[dh]>|<[^>]*>|"
    r"[εδk] = [\w.-]*\w|\d[\d.]* %|\b\d[\d.]*e-\d+|(?<![\w-])\d{4}-(?:Q\d|W?\d\d(?:-\d\d)?)(?![\w-])",
    re.DOTALL,
)
"""The parts of a page that are left as they are; and in its texts, numbers and dates within which no line may end."""


def _bound(page: str) -> str:
    return _PIECES.sub(lambda match: match[0] if match[0][0] == "<" else f'<span class="n">{match[0]}</span>', page)


def _briefly(assumption: str, whom: str | None) -> Markup:
    """Return an assumption; of the attacker, whose description the page has once, that it is there."""
    from markupsafe import Markup, escape

    if whom is None or assumption != the_attacker_is(whom):
        return escape(assumption)
    return Markup(the_attacker_is('<a href="#attacker">as described above</a>'))


def _last_certified(curve: KnowledgeCurve) -> float | None:
    """Return the most knowledge against which an ε is certified, where there is more of it; else None."""
    certified = [value for value, epsilon in zip(curve.values, curve.epsilons, strict=True) if epsilon < math.inf]
    if not certified or len(certified) == len(curve.values):
        return None
    return min(certified) if curve.field == "unknown" else max(certified)


def _tidied(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).rstrip("\n") + "\n"


def _filled(template: str, report: Report, **more: Any) -> str:
    def about(promise: Promise) -> str:
        """Return what tells a promise's figures and tables from those of others; empty where there is one."""
        return f" ({plain_words.titled(promise, report)})" if len(report.promises) > 1 else ""

    return _environment().get_template(template).render(report=report, about=about, **more)


@cache
def _environment() -> Environment:
    from markupsafe import Markup

    filling = environment("pages/templates")
    filling.filters |= {
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
    filling.globals |= {name: value for name, value in vars(plain_words).items() if name[0] != "_"}
    filling.globals |= {name: value for name, value in vars(numbers).items() if name[0] != "_"}
    filling.globals |= {
        "float": float,
        "corrected": corrected,
        "infinity": math.inf,
        "noise_sentence": noise_sentence,
        "points_of": _points,
        "row": table_line,
        "shown_count": shown_count,
    }
    colours = {
        name: "\n".join(f"  {variable}: {value};" for variable, value in values.items())
        for name, values in (("light", CSS_LIGHT), ("dark", CSS_DARK))
    }
    # The colours of the figures, which the whole page uses.
    filling.globals["stylesheet"] = Markup(filling.get_template("report.css").render(colours))
    return filling


def _drawn(
    draw: str, *values: Any, name: str, title: str, description: str, height: float, wide: float, **named: Any
) -> Markup:
    """Return a picture by one of the figures' functions, wide and narrow."""
    from markupsafe import Markup

    from pkdp_pipeline.extras.report import figures

    def onto(axes: Axes) -> None:
        getattr(figures, draw)(*values, axes, **named)

    pictures = []
    for kind, width in (("wide", wide), ("narrow", _NARROW_WIDTH)):
        svg = figures.inline_svg(
            onto, name=f"{name}-{kind}", title=title, description=description, width=width, height=height
        )
        pictures.append(f'<div class="{kind}">{svg}</div>')
    return Markup("".join(pictures))


def _drawn_above(promise: Promise, promises: tuple[Promise, ...]) -> Promise | None:
    """Return an earlier promise with equal numbers, as one day's are those of every day; None without one."""

    def shape(candidate: Promise) -> object:
        curves = [(curve.field, curve.values, curve.epsilons, curve.floor) for curve in candidate.knowledge]
        return candidate.curve, curves, [(row.kind, row.epsilon, row.delta_at_one) for row in candidate.scenarios]

    earlier = promises[: next(place for place, candidate in enumerate(promises) if candidate is promise)]
    return next((candidate for candidate in earlier if shape(candidate) == shape(promise)), None)


def _points(promise: Promise, most: int = 9) -> list[tuple[float, float, float | None]]:
    """Return some ε, what is certified there, and what holds against anyone, at `most` ε and those that are round.

    An ε is rounded up, and a δ is one that holds there: what is certified at the nearest smaller ε of the curve.
    """
    curve, last = promise.curve, len(promise.curve.epsilons) - 1
    places = {round(step * last / (most - 1)) for step in range(most)}
    rows = {float(rounded_up(curve.epsilons[place], 4)): curve.certified[place] for place in places}
    rows |= dict(promise.statement.numbers)
    points = []
    for epsilon, delta in sorted(rows.items()):
        anyone = None
        if curve.worst_case is not None:
            below = max(place for place in range(last + 1) if curve.epsilons[place] <= epsilon)
            anyone = delta if curve.worst_case == curve.certified else curve.worst_case[below]
        points.append((epsilon, delta, anyone))
    return points
