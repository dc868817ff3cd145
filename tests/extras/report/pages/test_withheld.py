"""Suppressed counts beside exact totals: every page says what follows of them, and that nothing more is assumed."""

from __future__ import annotations

import json
import tempfile
import textwrap
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner
from visit_jobs import DAY

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.sentences import NOTHING_ASSUMED
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.extras.report.job_report import report_of
from pkdp_pipeline.extras.report.pages import render
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.releases.printed import PublishedTable, published_table, withheld

JOB = """
    dataset = "survey"
    source = "survey.parquet"
    period = { column = "day" }
    unit = "person"
    ledger = "survey.sqlite"

    [attacker]
    p_max_between = 0.6

    [[attacker.leakage]]
    name = "the number of people in each region"
    tells = "people_present"
    by = ["region"]

    [[release]]
    name = "answers"
    by = ["region", "answer"]
    domain = { region = ["north", "south"], answer = ["b", "a", "c"] }
    protects = "value"
    k = 50

    [[release]]
    name = "regions"
    by = "region"
    domain = ["north", "south"]
    protects = "value"

    [output]
    directory = "out"
"""
COUNTS = {("north", "a"): 90, ("north", "b"): 60, ("north", "c"): 27, ("south", "a"): 80, ("south", "b"): 45}
WORDS = ["", "", "suppressed: 27 follows exactly", "suppressed: 0 to 45", "", "suppressed: 0 to 45"]
EXACT = "suppressed: 27 follows exactly"


@cache
def ran():
    """Return what the run prints, its summary and the report."""
    rows = [(DAY, *cell) for cell, number in COUNTS.items() for _ in range(number)]
    frame = pd.DataFrame(rows, columns=["day", "region", "answer"])
    with tempfile.TemporaryDirectory() as folder:
        frame.assign(person=range(len(frame))).to_parquet(Path(folder, "survey.parquet"))
        file = Path(folder, "job.toml")
        file.write_text(textwrap.dedent(JOB), encoding="utf-8")
        done = CliRunner(env={"COLUMNS": "120"}).invoke(cli.app, ["run", str(file), "--date", DAY.isoformat()])
        assert done.exit_code == 0, done.output
        summary = Path(folder, "out", DAY.isoformat(), "summary.md").read_text(encoding="utf-8")
        return done.stdout, summary, report_of(load_job(file))


def test_what_follows_from_printed_totals_is_said_everywhere(undrawn):
    printed, summary, report = ran()
    pages = [render(report, form, reader) for form in ("html", "md") for reader in ("everybody", "officer")]
    for page in (printed, summary, *pages):
        assert page.count(EXACT) >= 1
        assert page.count("suppressed: 0 to 45") >= 2
    for page in (pages[0], pages[1], pages[3]):
        assert "there are fewer than 50. The numbers beside the word follow from exact totals of this report." in page
        assert "possibly none" not in page


def test_exact_totals_beside_a_table_assume_nothing_of_their_own(undrawn):
    _, _, report = ran()
    assert [assumption.startswith("The attacker is ") for assumption in report.lead.assumptions].count(True) == 1
    for form in ("html", "md"):
        page, _, _ = render(report, form, "officer").partition("<!-- pkdp-report")
        assert NOTHING_ASSUMED not in page
        assert "the number of people in each region" in page
    assert NOTHING_ASSUMED not in report.lead.assumptions


ATTACKER = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.totals(by="region"))
READING = "0" * 64
CELLS = {"region": ["north", "south"], "answer": ["b", "a", "c"]}


def people(**columns):
    rows = [cell for cell, number in COUNTS.items() for _ in range(number)]
    frame = pd.DataFrame(rows, columns=["region", "answer"])
    return frame.assign(person=range(len(frame)), **columns)


def shown(by, **options):
    domain = {name: CELLS[name] for name in by} if len(by) > 1 else CELLS[by[0]]
    options = {"unit": "person", "protects": "value", "attacker": ATTACKER, "domain": domain, **options}
    release = people(x=1).pkdp.histogram(by, **options)
    return replace(published_table(release), reading=READING), json.loads(release.certificate.to_json())


def test_bounds_of_several_totals_are_taken_together():
    table = shown(["region", "answer"], k=50)
    assert withheld(*table, [shown(["region"])]) == WORDS
    everybody = people().pkdp.count(
        unit="person", protects="value", attacker=pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.total())
    )
    count = replace(published_table(everybody), reading=READING), json.loads(everybody.certificate.to_json())
    assert count[0] == PublishedTable(columns=(), keys=((),), counts=(302,), reading=READING)
    assert [word for word in withheld(*table, [count]) if word] == ["suppressed"] * 3  # 72 in all: from 0 to 49 each
    assert withheld(*table, [count, table, shown(["region"])]) == WORDS


@pytest.mark.parametrize(
    "other",
    [
        {"where": "x == 1"},
        {"k": None, "noise": pkdp.GeometricNoise(9.0)},
        {"undeclared": "absent"},
        {"missing_unit": "drop"},
    ],
)
def test_what_is_of_other_people_or_inexact_tells_nothing(other):
    plain = ["suppressed" if word else "" for word in WORDS]
    table = shown(["region", "answer"], k=50)
    totals = shown(["region"])
    assert withheld(*table, []) == plain
    odd = shown(["region", "answer"], **{"k": 50, **other})
    expected = ["suppressed" if count is None else "" for count in odd[0].counts]
    assert withheld(*odd, [totals]) == expected
    assert withheld(table[0], table[1], [(replace(totals[0], more=1), totals[1])]) == plain
    assert withheld(replace(table[0], more=1), table[1], [totals]) == plain


def test_a_table_beside_totals_that_only_others_print_says_that_they_may_tell(undrawn):
    _, _, report = ran()
    alone = replace(report, releases=report.releases[:1])
    page = render(alone, "md", "officer")
    assert "as long as the number of people in each region tell no more" in page
    assert EXACT not in page
