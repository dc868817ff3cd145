"""The example reports as pages, each rendered once in a process."""

from __future__ import annotations

import functools

from example_report import auditor_report, day_report, hostile_report, noisy_report, year_report

from pkdp_pipeline.report.html import to_html

__all__ = ["REPORTS", "page"]

REPORTS = {
    "auditor": auditor_report,
    "day": day_report,
    "hostile": hostile_report,
    "noisy": noisy_report,
    "year": year_report,
}


@functools.cache
def page(name: str) -> str:
    return to_html(REPORTS[name]())
