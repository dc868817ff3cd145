"""The example reports as pages, each rendered once in a process."""

from __future__ import annotations

import functools
from dataclasses import replace

from example_report import auditor_report, clinic_report, day_report, hostile_report, noisy_report, year_report

from pkdp_pipeline.extras.report.content import Promise, Report
from pkdp_pipeline.extras.report.pages import for_officer, to_html

__all__ = ["OFFICERS", "REPORTS", "drawn", "page"]

REPORTS = {
    "auditor": auditor_report,
    "day": day_report,
    "hostile": hostile_report,
    "noisy": noisy_report,
    "year": year_report,
}


def _much(tables: int, rows: int, argument: int) -> Report:
    """Return the clinic's report with more of everything: so many tables, rows in each, and times its argument."""
    report = clinic_report()
    (release,) = report.releases
    keys, counts = tuple((f"district {row}",) for row in range(rows)), tuple(range(100, 100 + rows))
    release = replace(release, table=replace(release.table, keys=keys, counts=counts))
    about = replace(report.about, argument=" ".join([report.about.argument] * argument))
    return replace(report, releases=(release,) * tables, about=about)


def _little() -> Report:
    """Return a report of one number."""
    report = noisy_report()
    ledger = replace(report.ledger, budgets=(), remarks=())
    return replace(report, releases=report.releases[:1], series=(), ledger=ledger)


OFFICERS = {
    "officer": clinic_report,
    "officer, noisy": noisy_report,
    "officer, hostile": hostile_report,
    "officer, three tables": lambda: _much(3, 500, 1),
    "officer, a long argument": lambda: _much(1, 500, 5),
    "officer, much of everything": lambda: _much(20, 500, 5),
    "officer, little": _little,
}


@functools.cache
def page(name: str) -> str:
    """Return the page of a report; those of `OFFICERS` are for somebody who answers for data protection."""
    if name in OFFICERS:
        return for_officer(OFFICERS[name](), "html")
    return to_html(REPORTS[name]())


def drawn(report: Report) -> dict[int, Promise]:
    """Return the promises that have figures of their own, by their number: not those with an earlier one's numbers."""
    by_number: dict[int, Promise] = {}
    for number, promise in enumerate(report.promises, start=1):
        if all(_numbers(earlier) != _numbers(promise) for earlier in by_number.values()):
            by_number[number] = promise
    return by_number


def _numbers(promise: Promise) -> object:
    rows = [(scenario.kind, scenario.epsilon, scenario.delta_at_one) for scenario in promise.scenarios]
    return promise.curve, [(curve.values, curve.epsilons) for curve in promise.knowledge], rows
