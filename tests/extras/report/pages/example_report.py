"""Real reports for tests that look at pages: each is gathered from a ledger that a job has filled in a scratch folder.

Every function returns the same report however often it is called in a process.
"""

from __future__ import annotations

import datetime
import functools
import json
import tempfile
import textwrap
from pathlib import Path
from unittest.mock import patch

import pandas as pd

from pkdp_pipeline.extras.report.content import Report
from pkdp_pipeline.extras.report.job_report import report_of
from pkdp_pipeline.extras.start import commands
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.jobs.session import backfill

__all__ = ["HOSTILE", "auditor_report", "clinic_report", "day_report", "hostile_report", "noisy_report", "year_report"]

DATA = Path(__file__).resolve().parents[4] / "examples" / "data" / "flights_2013.parquet"
FIRST = datetime.date(2013, 1, 1)

DAILY = f"""
    dataset = "flights"
    source = {json.dumps(str(DATA))}
    period = {{ column = "date" }}
    unit = "tailnum"
    missing_unit = "drop"
    ledger = "ledger.sqlite"
    evidence = {{ kind = "one_day_protected" }}
    budget = {{ epsilon = 1.2, delta = 1e-6, part = "partial_knowledge" }}

    [attacker]
    p_max = 0.5

    [[release]]
    name = "aircraft_by_carrier"
    by = "carrier"
    k = 50

    [output]
    directory = "out"
    formats = ["parquet", "csv"]
"""

NOISY = f"""
    dataset = "flights"
    source = {json.dumps(str(DATA))}
    period = {{ column = "date" }}
    unit = "tailnum"
    missing_unit = "drop"
    one_cell = "most_frequent"
    ledger = "ledger.sqlite"

    [[budget]]
    epsilon = 7.0
    delta = 1e-5
    part = "worst_case"
    window_days = 7

    [[budget]]
    epsilon = 20.0
    delta = 1e-4

    [[release]]
    name = "aircraft"
    noise = {{ epsilon = 0.5 }}

    [[release]]
    name = "aircraft_by_carrier_and_origin"
    by = ["carrier", "origin"]
    domain = {{ carrier = ["AA", "B6", "DL", "EV", "OO", "UA"], origin = ["EWR", "JFK", "LGA"] }}
    undeclared = "absent"
    k = 20
    noise = {{ epsilon = 0.5 }}
    release_threshold = 50

    [output]
    directory = "out"
"""

HOSTILE = (
    "<script>alert(1)</script>",
    "</svg><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "[link](http://example.org) **bold** `code` | pipe \\ & &amp; www.example.org",
    "' onmouseover='alert(1)' \" onfocus=\"alert(1)",
    "a\u202eright-to-left override\u202c\x07\x1b[31m\nnew line\ttab",
    "أبجد هوز 1234 שלום",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u00a0",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 3,
    "-->]]>]]&gt;<!--",
)
"""What a cell may be called by somebody who wishes no good."""

WIDE = """
    dataset = "people <b>& others</b>"
    source = "people.parquet"
    period = { column = "day" }
    unit = "person"
    ledger = "ledger.sqlite"
    evidence = { kind = "one_day_protected" }

    [attacker]
    p_max = 0.2
    known = 1
    influence = "active"

    [[release]]
    name = "people_by_everything"
    by = ["name", "what the place is called in the language of those who live there", "hour", "<i>kind</i>", "x", "y"]
    k = 20

    [output]
    directory = "out"
"""


@functools.cache
def day_report() -> Report:
    """One day of one noiseless histogram, as the public reads it; the ledger holds three days."""
    return _report(DAILY, 3, day=FIRST + datetime.timedelta(days=1))


@functools.cache
def auditor_report() -> Report:
    """The same for an auditor, with the input checks."""
    return _report(DAILY, 3, day=FIRST + datetime.timedelta(days=1), audience="auditor")


@functools.cache
def year_report() -> Report:
    """Thirty days of it: everything the job has published."""
    return _report(DAILY, 30)


@functools.cache
def noisy_report() -> Report:
    """Seven days of two noised releases, one with a declared domain and suppressed cells; three budget lines."""
    return _report(NOISY, 7)


@functools.cache
def clinic_report() -> Report:
    """A quarter of the invented clinic, whose job says who publishes and who argued."""
    with tempfile.TemporaryDirectory() as scratch, patch.object(commands, "hook", lambda *_: lambda *_, **__: None):
        commands.demo(out=Path(scratch))
        return report_of(load_job(Path(scratch, "clinic.toml")))


@functools.cache
def hostile_report() -> Report:
    """Three days of 60 cells with six wide columns, and names that no page may take for anything but text."""
    rows = []
    for day in range(3):
        for cell in range(60):
            name = HOSTILE[cell % len(HOSTILE)]
            key = (
                f"{name} {cell}" if cell >= len(HOSTILE) else name,
                name,
                cell % 24,
                "<i>",
                cell / 7,
                None if cell % 3 else "y",
            )
            rows += [(FIRST + datetime.timedelta(days=day), f"{cell}-{person}", *key) for person in range(20 + cell)]
    by = ["name", "what the place is called in the language of those who live there", "hour", "<i>kind</i>", "x", "y"]
    return _report(WIDE, 3, frame=pd.DataFrame(rows, columns=["day", "person", *by]))


def _report(text: str, days: int, frame: pd.DataFrame | None = None, **options: object) -> Report:
    with tempfile.TemporaryDirectory() as scratch:
        if frame is not None:
            frame.to_parquet(Path(scratch, "people.parquet"))
        file = Path(scratch, "example.toml")
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        job = load_job(file)
        backfill(job, FIRST, FIRST + datetime.timedelta(days=days - 1))
        return report_of(job, **options)
