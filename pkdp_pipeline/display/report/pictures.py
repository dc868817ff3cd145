"""The report's pictures as inline SVG, each with a title and a description for those who cannot see it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pkdp_pipeline.display.content import Promise, ReleaseView, Report
from pkdp_pipeline.display.report.plain_words import epsilon_text, given, plain_number, whom
from pkdp_pipeline.model.plain_text import exactly
from pkdp_pipeline.model.wording import rounded_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from markupsafe import Markup
    from matplotlib.axes import Axes

__all__ = ["Picture", "Pictures", "about"]

_WIDE, _NARROW = 600.0, 328.0
"""For a page with room, and for a telephone; the style sheet shows one of them, the wide one somewhat enlarged."""

_BESIDE = 420.0
"""The width of a picture that has a table at its side."""

_BELOW = "The numbers are in the table below the figure."


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture as HTML that may stand in a page as it is, wide and narrow, and its title."""

    title: str
    svg: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """The pictures of one report, drawn when a template asks for them; numbers count from 1, as loops do."""

    report: Report

    def counts(self, release: int) -> Picture:
        """Return the bars of a published table."""
        from pkdp_pipeline.display.figures.counts import counts_height, draw_counts

        shown = self.report.releases[release - 1]
        return _drawn(
            lambda axes: draw_counts(shown.table, shown.k, axes),
            name=f"counts-{release}",
            title=f"Published counts of {shown.name}, {shown.period}",
            description=_counts_description(shown),
            height=counts_height(shown.table),
            wide=_BESIDE,
        )

    def series(self, series: int) -> Picture:
        """Return the lines of a release over time."""
        from pkdp_pipeline.display.figures import draw_series

        shown = self.report.series[series - 1]
        return _drawn(
            lambda axes: draw_series(shown, axes),
            name=f"series-picture-{series}",
            title=f"Published counts of {shown.name} over time",
            description=f"Lines for {', '.join(shown.cells)}, from {shown.periods[0]} to {shown.periods[-1]}. {_BELOW}",
            height=280.0,
        )

    def guarantee(self, promise: int) -> Picture:
        """Return a promise's guarantee curve."""
        from pkdp_pipeline.display.figures import draw_guarantee

        promised = self.report.promises[promise - 1]
        curve, known = promised.curve, bool(given(promised.statement))
        marked = ""
        if curve.mark is not None:
            marked = f" It passes through ε = {rounded_up(curve.mark[0])}, δ = {rounded_up(curve.mark[1])}."
        return _drawn(
            lambda axes: draw_guarantee(curve, axes, given=known),
            name=f"guarantee-picture-{promise}",
            title="The guarantee curve: δ at each ε" + self._about(promise),
            description=f"A curve that falls from δ = {rounded_up(curve.certified[0])} at ε = 0 to "
            f"{rounded_up(curve.certified[-1])} at ε = {rounded_up(curve.epsilons[-1])}.{marked} {_BELOW}",
            height=280.0,
        )

    def knowledge(self, promise: int, curve: int) -> Picture:
        """Return how a promise's ε grows as the attacker knows more."""
        from pkdp_pipeline.display.figures import draw_knowledge

        promised = self.report.promises[promise - 1]
        shown, known = promised.knowledge[curve - 1], bool(given(promised.statement))
        at = shown.values.index(shown.declared)
        floor = ""
        if shown.floor is not None and shown.floor < math.inf:
            floor = f" The noise alone keeps it at {rounded_up(shown.floor)} or below."
        return _drawn(
            lambda axes: draw_knowledge(shown, axes, given=known),
            name=f"knowledge-picture-{promise}-{curve}",
            title=f"ε at δ = {rounded_up(shown.delta)}, by {shown.words}" + self._about(promise),
            description=f"As declared, at {exactly(shown.declared)}, ε is {epsilon_text(shown.epsilons[at])}; at the "
            f"right end, at {plain_number(shown.values[-1])}, it is {epsilon_text(shown.epsilons[-1])}.{floor} "
            f"{_BELOW}",
            height=280.0,
        )

    def spending(self) -> Picture:
        """Return what the ledger's releases add up to, period by period, and the budgets."""
        from pkdp_pipeline.display.figures import draw_spending

        ledger = self.report.ledger
        last, known = ledger.points[-1], bool(given(ledger.total))
        anyone = epsilon_text(last.worst_case)
        budgets = "".join(f" A budget allows {budget.words}." for budget in ledger.budgets)
        return _drawn(
            lambda axes: draw_spending(ledger.points, ledger.budgets, axes, delta=ledger.delta, given=known),
            name="spending-picture",
            title=f"What all releases up to a date add up to: ε at δ = {rounded_up(ledger.delta)}",
            description=f"Up to {last.period}, {last.releases} releases add up to ε = {epsilon_text(last.epsilon)} "
            f"against the declared attacker, and {anyone} against {whom(ledger.total)}.{budgets} {_BELOW}",
            height=280.0,
        )

    def _about(self, promise: int) -> str:
        return about(self.report, self.report.promises[promise - 1])


def about(report: Report, promise: Promise) -> str:
    """Return what tells a promise's figures and tables from those of others; empty where there is one."""
    return f" ({promise.name})" if len(report.promises) > 1 else ""


def _counts_description(release: ReleaseView) -> str:
    rule = f", with a line at k = {release.k}" if release.k is not None else ""
    return f"One bar for each published count{rule}. The numbers are in the table of this release."


def _drawn(
    draw: Callable[[Axes], None], *, name: str, title: str, description: str, height: float, wide: float = _WIDE
) -> Picture:
    from markupsafe import Markup

    from pkdp_pipeline.display.figures import inline_svg

    made = []
    for kind, width in (("wide", wide), ("narrow", _NARROW)):
        svg = inline_svg(draw, name=f"{name}-{kind}", title=title, description=description, width=width, height=height)
        made.append(f'<div class="{kind}">{svg}</div>')
    return Picture(title=title, svg=Markup("".join(made)))
