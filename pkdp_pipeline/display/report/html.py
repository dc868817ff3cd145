"""The report as one self-contained HTML page: no script, no request, text that is escaped."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from pkdp_pipeline.display.content import BudgetLine, Promise, ReleaseView, Report
from pkdp_pipeline.display.figures.style import CSS_DARK, CSS_LIGHT
from pkdp_pipeline.display.report import plain_words
from pkdp_pipeline.display.report.json_form import carrying
from pkdp_pipeline.display.report.pictures import Pictures, about
from pkdp_pipeline.display.report.plain_words import selected_from
from pkdp_pipeline.display.report.readings import (
    attained_at,
    reading_counts,
    reading_guarantee,
    reading_knowledge,
    reading_spending,
)
from pkdp_pipeline.model.plain_text import exactly, printable
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["to_html"]


def to_html(report: Report) -> str:
    """Return the page; equal reports have equal bytes. It needs jinja2 and matplotlib."""
    from markupsafe import Markup

    numbers: Counter[str] = Counter()

    def number(kind: str) -> int:
        numbers[kind] += 1
        return numbers[kind]

    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            report=report,
            content=Markup(carrying(report)),
            pictures=Pictures(report=report),
            number=number,
            about=lambda promise: about(report, promise),
            contents=_contents(report),
            drawn_above=lambda promise: _drawn_above(promise, report.promises),
            noised=[release for release in report.releases if release.error is not None],
            exact=[release for release in report.releases if release.error is None],
            said={report.lead and report.lead.sentence, *(release.sentence for release in report.releases)},
            note=lambda release: _note(release, report.promises),
            parquet=next(
                (name for release in report.releases for name in release.files if name.endswith(".parquet")), ""
            ),
        )
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("pkdp_pipeline.display.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "down": plain_words.rounded_down,
        "epsilon": plain_words.epsilon_text,
        "first_sentence": _first_sentence,
        "literal": json.dumps,
        "plain": plain_words.plain_number,
        "printable": printable,
        "up": rounded_up,
        "whole": _whole,
    }
    environment.globals |= {
        "anyone": plain_words.anyone,
        "attained_at": attained_at,
        "given": plain_words.given,
        "infinity": math.inf,
        "meaning": plain_words.meaning,
        "named": plain_words.named,
        "protected": plain_words.protected,
        "reading_counts": reading_counts,
        "reading_guarantee": reading_guarantee,
        "reading_knowledge": reading_knowledge,
        "reading_spending": reading_spending,
        "selected_from": selected_from,
        "spent": _spent,
        "stylesheet": Markup(_stylesheet(environment)),
        "whom": plain_words.whom,
        "worst_meaning": plain_words.worst_meaning,
    }
    return environment


def _stylesheet(environment: Environment) -> str:
    """Return the style sheet with the colours of the figures, which the whole page uses."""
    colours = {
        name: "\n".join(f"  {variable}: {value};" for variable, value in values.items())
        for name, values in (("light", CSS_LIGHT), ("dark", CSS_DARK))
    }
    return environment.get_template("report.css").render(colours)


def _contents(report: Report) -> list[tuple[str, str]]:
    sections = [("promise", "What is promised"), ("published", "What was published")]
    if report.series:
        sections.append(("series", "Over time"))
    return [
        *sections,
        ("strength", "How strong the promise is"),
        ("error", "How exact the counts are"),
        ("ledger", "The ledger"),
        ("checks", "Input checks"),
        ("provenance", "Where this comes from, and how to check it"),
        ("glossary", "Words"),
    ]


def _drawn_above(promise: Promise, promises: tuple[Promise, ...]) -> str:
    """Return the name of an earlier promise with equal curves, as one day's is that of every day; empty without one."""
    for earlier in promises:
        if earlier is promise:
            break
        if _shape(earlier) == _shape(promise):
            return earlier.name
    return ""


def _shape(promise: Promise) -> object:
    return promise.curve, [(one.field, one.values, one.epsilons, one.floor) for one in promise.knowledge]


def _first_sentence(text: str) -> tuple[str, str]:
    first, dot, rest = text.partition(". ")
    return (f"{first}.", rest) if dot else (text, "")


def _whole(number: int) -> str:
    """Return a whole number with its thousands apart, and a minus sign that is one."""
    return f"{number:,}".replace("-", "\N{MINUS SIGN}")


def _spent(budget: BudgetLine, anyone: str) -> str:
    allowed = f"{exactly(budget.epsilon)} at δ = {exactly(budget.delta)}"
    against = anyone if budget.part == "worst_case" else "the declared attacker"
    over = "" if budget.window_days is None else f" in any {budget.window_days} days"
    if budget.spent is None:
        return f"ε = {allowed} allowed against {against}{over}"
    spent = "no ε certified" if budget.spent == math.inf else f"ε = {rounded_up(budget.spent)} spent"
    return f"{spent} of {allowed} allowed against {against}{over}"


def _note(release: ReleaseView, promises: tuple[Promise, ...]) -> str:
    """Return what a reader of the table has to know about what is not in it; never how much of it there is."""
    several = release.rule.count("published only when") > 1
    if release.k is not None and release.error is None and not several:
        means = f"there are fewer than {release.k}, possibly none"
    elif several:
        means = "the table does not tell which of the reasons it is, nor whether anybody is there"
    else:
        means = "the table does not tell whether anybody is there"
    if None in release.table.counts:
        return f"“Suppressed” says that this rule is not met: {means}."
    if release.table.columns and _cells(promises[release.promise]) != "declared":
        return f"Cells that do not meet this rule leave no trace; where a cell is not listed, {means}."
    return ""


def _cells(promise: Promise) -> str | None:
    context = promise.certificate.get("context")
    return context.get("cells") if isinstance(context, dict) else None
