"""The example reports as pages, each rendered once in a process."""

from __future__ import annotations

import functools

from example_report import auditor_report, clinic_report, day_report, hostile_report, noisy_report, year_report

from pkdp_pipeline.display.content import Promise, Report
from pkdp_pipeline.display.report.forms import for_officer, to_html

__all__ = ["REPORTS", "drawn", "page"]

REPORTS = {
    "auditor": auditor_report,
    "day": day_report,
    "hostile": hostile_report,
    "noisy": noisy_report,
    "year": year_report,
}


@functools.cache
def page(name: str) -> str:
    """Return the page of a report; ``officer`` is that of the clinic for somebody who answers for data protection."""
    if name == "officer":
        return for_officer(clinic_report(), "html")
    return to_html(REPORTS[name]())


def drawn(report: Report) -> dict[int, Promise]:
    """Return the promises that have figures of their own, by their number: not those with an earlier one's numbers."""
    found: dict[int, Promise] = {}
    for number, promise in enumerate(report.promises, start=1):
        if all(_numbers(earlier) != _numbers(promise) for earlier in found.values()):
            found[number] = promise
    return found


def _numbers(promise: Promise) -> object:
    rows = [(one.kind, one.epsilon, one.delta_at_one) for one in promise.scenarios]
    return promise.curve, [(one.values, one.epsilons) for one in promise.knowledge], rows
