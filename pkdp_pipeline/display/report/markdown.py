"""A report as Markdown: complete, readable as it is, and safe where a page is made of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pkdp_pipeline.certificates.statement import KnowledgeCurve, Statement
from pkdp_pipeline.display.content import LedgerAccount, Promise, PublishedTable, ReleaseView, Report, Series
from pkdp_pipeline.display.report.json_form import carrying
from pkdp_pipeline.display.report.plain_words import noise_sentence, rounded_down, whom
from pkdp_pipeline.display.report.readings import attained_at
from pkdp_pipeline.model.plain_text import in_markdown, printable, table_line
from pkdp_pipeline.model.wording import rounded_up

__all__ = ["to_markdown"]

_POINTS = 9
"""So many points of the guarantee's curve are listed, beside those at round ε."""


def to_markdown(report: Report) -> str:
    """Return the report as Markdown; equal reports have equal bytes."""
    return "\n".join(_lines(report)).rstrip("\n") + f"\n\n{carrying(report)}\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {in_markdown(report.title)}, {in_markdown(report.period)}"
    yield ""
    if report.lead is None:
        yield f"No one number holds for all of it: {in_markdown(report.lead_reason)}"
        yield ""
    else:
        yield in_markdown(report.lead.sentence)
        yield ""
        yield from _list("It assumes:", report.lead.assumptions)
        yield from _list("What it protects, and what limits it:", report.lead.limits)
    yield from _list("What else the ledger holds:", report.ledger.remarks)
    for release in report.releases:
        yield from _release(report, release)
    for series in report.series:
        yield from _series(series)
    for promise in report.promises:
        yield from _promise(promise, report.lead)
    yield from _ledger(report.ledger)
    yield from _checks(report)
    yield from _provenance(report)


def _release(report: Report, release: ReleaseView) -> Iterator[str]:
    again = f", revision {release.revision}" if release.revision > 1 else ""
    yield f"## {in_markdown(release.name)}, {in_markdown(release.period)}{again}"
    yield ""
    yield in_markdown(release.asked)
    yield ""
    yield from _table(release.table)
    yield ""
    if release.error is not None:
        yield (
            f"{noise_sentence(release.error)} The mean absolute error of the noise is "
            f"{rounded_up(release.error.mean_absolute)}."
        )
        yield ""
    if report.lead is None or release.sentence != report.lead.sentence:
        yield in_markdown(release.sentence)
        yield ""
    files = f" Files: {', '.join(map(in_markdown, release.files))}." if release.files else ""
    yield f"Release `{release.id}`.{files}"
    yield ""


def _table(table: PublishedTable) -> Iterator[str]:
    header = [*map(in_markdown, table.columns), "count"]
    yield table_line(header)
    yield table_line(["---"] * len(table.columns) + ["---:"])
    for key, count in zip(table.keys, table.counts, strict=True):
        yield table_line([*map(in_markdown, key), "suppressed" if count is None else str(count)])
    if not table.keys:
        yield ""
        yield "Nothing reached the rule for publishing."
    if table.more:
        yield ""
        yield f"{table.more} rows more are in the files."


def _series(series: Series) -> Iterator[str]:
    yield f"## {in_markdown(series.name)}, all dates"
    yield ""
    yield table_line(["date", *map(in_markdown, series.cells)])
    yield table_line(["---"] + ["---:"] * len(series.cells))
    for period, counts in zip(series.periods, series.counts, strict=True):
        yield table_line([in_markdown(period), *("–" if count is None else str(count) for count in counts)])
    yield ""
    left_out = [
        *([f"{series.more_cells} cells that are published least often"] if series.more_cells else []),
        *([f"{series.more_periods} earlier dates"] if series.more_periods else []),
    ]
    also = f" Left out for their number: {' and '.join(left_out)}; they are in the files." if left_out else ""
    yield f"– means that nothing is published about a cell on that date.{also}"
    yield ""


def _promise(promise: Promise, lead: Statement | None) -> Iterator[str]:
    statement = promise.statement
    yield f"## The promise: {in_markdown(promise.name)}"
    yield ""
    if statement != lead:  # which has been said
        yield in_markdown(statement.sentence)
        yield ""
    yield from _numbers(promise)
    yield "What is left if the attacker is not as declared:"
    yield ""
    yield table_line(["if the attacker …", f"ε at δ = {rounded_up(statement.delta)}", "δ at ε = 1", "what is left"])
    yield table_line(["---", "---:", "---:", "---"])
    for one in promise.scenarios:
        numbers = (_epsilon(one.epsilon), rounded_up(one.delta_at_one))
        yield table_line([in_markdown(one.words), *numbers, in_markdown(one.verdict)])
    yield ""
    for curve in promise.knowledge:
        yield from _knowledge(curve)
    if statement != lead:
        yield from _list("It assumes:", statement.assumptions)
        yield from _list("What it protects, and what limits it:", statement.limits)
    yield from _list("It rests on:", [f"{title} ({citation})" for title, citation in statement.theorems])


def _numbers(promise: Promise) -> Iterator[str]:
    """Yield the guarantee at some ε: what is certified, what some attacker reaches, what holds against anyone.

    An ε is rounded up, and a δ is shown that holds there: what is certified (reached) at the nearest smaller (larger)
    ε of the curve.
    """
    curve, last = promise.curve, len(promise.curve.epsilons) - 1
    places = {round(step * last / (_POINTS - 1)) for step in range(_POINTS)}
    rows = {float(rounded_up(curve.epsilons[place], 4)): curve.certified[place] for place in places}
    rows |= dict(promise.statement.numbers)
    yield table_line(["ε", "δ certified", "δ that some attacker reaches", f"δ against {whom(promise.statement)}"])
    yield table_line(["---:"] * 4)
    for epsilon, delta in sorted(rows.items()):
        below = max(place for place in range(last + 1) if curve.epsilons[place] <= epsilon)
        shown = rounded_up(epsilon, 4)
        attained = attained_at(curve, shown)
        reached = "not known" if attained is None else rounded_down(attained)
        if curve.worst_case is None:
            anyone = "none"
        else:
            anyone = rounded_up(delta if curve.worst_case == curve.certified else curve.worst_case[below])
        yield table_line([shown, rounded_up(delta), reached, anyone])
    yield ""


def _knowledge(curve: KnowledgeCurve) -> Iterator[str]:
    rounded = rounded_up if curve.field == "unknown" else rounded_down

    def shown(value: float) -> str:
        return f"{value:.0f}" if value == int(value) else rounded(value, 6)

    yield f"How ε depends on {in_markdown(curve.words)} (declared: {shown(curve.declared)}):"
    yield ""
    yield table_line([in_markdown(curve.words), f"ε at δ = {rounded_up(curve.delta)}"])
    yield table_line(["---:", "---:"])
    for value, epsilon in zip(curve.values, curve.epsilons, strict=True):
        yield table_line([shown(value), _epsilon(epsilon)])
    yield ""
    if curve.floor is not None and curve.floor < math.inf:
        yield f"The noise alone keeps ε at or below {rounded_up(curve.floor)}, whatever the attacker knows."
        yield ""


def _ledger(ledger: LedgerAccount) -> Iterator[str]:
    yield "## The ledger"
    yield ""
    waiting = f", {ledger.waiting} of them not public yet" if ledger.waiting else ""
    yield f"Privacy unit: one value of {in_markdown(ledger.unit)}. Releases charged: {ledger.releases}{waiting}."
    yield ""
    if ledger.total is None:
        yield f"They do not add up: {in_markdown(ledger.reason)}"
    else:
        yield in_markdown(ledger.total.sentence)
    yield ""
    yield from _list("Declared about how they depend on one another:", ledger.declared)
    if ledger.budgets:
        yield table_line(["budget", "spent"])
        yield table_line(["---", "---:"])
        for one in ledger.budgets:
            yield table_line([in_markdown(one.words), "not known" if one.spent is None else _epsilon(one.spent)])
        yield ""
    if ledger.points:
        at = rounded_up(ledger.delta)
        yield table_line(["up to", "releases", f"ε at δ = {at}", f"ε against {whom(ledger.total)}"])
        yield table_line(["---", "---:", "---:", "---:"])
        for point in ledger.points:
            numbers = (str(point.releases), _epsilon(point.epsilon), _epsilon(point.worst_case))
            yield table_line([in_markdown(point.period), *numbers])
        yield ""
    yield f"Head of the chain: `{ledger.head}`. To check it:"
    yield ""
    yield from (f"    {line}" for line in ledger.verify.splitlines())
    yield ""


def _checks(report: Report) -> Iterator[str]:
    yield "## The input checks"
    yield ""
    if report.audience == "public":
        yield (
            "Which rules the data were held to is left out here: that they were kept tells about the data. A report "
            "for an auditor lists them."
        )
    for one in report.checks:
        yield f"- {'kept' if one.passed else 'NOT kept'}: {in_markdown(one.rule)}"
    yield ""


def _provenance(report: Report) -> Iterator[str]:
    made = report.provenance
    yield "## Where this comes from"
    yield ""
    digest = f", SHA-256 of what its file says: `{made.digest}`" if made.digest else ""
    yield f"- Job {in_markdown(printable(made.job))}{digest}."
    yield f"- pkdp\\_pipeline {made.version}."
    yield f"- The last of these releases in the ledger's chain: `{made.head}`."
    yield ""


def _list(title: str, sentences: Sequence[str]) -> Iterator[str]:
    if not sentences:
        return
    if title:
        yield title
        yield ""
    for sentence in sentences:
        yield f"- {in_markdown(sentence)}"
    yield ""


def _epsilon(epsilon: float) -> str:
    return "none" if epsilon == math.inf else rounded_up(epsilon)
