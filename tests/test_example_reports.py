"""The reports in ``docs/reports`` are what the example job makes today; ``make reports`` writes them anew."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / "docs" / "reports"


@pytest.fixture
def job(tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("out"))
    return tmp_path / "examples" / "daily_flights.toml"


def pkdp(*arguments: object) -> None:
    command = [sys.executable, "-m", "pkdp_pipeline.cli.main", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stable(report: Path) -> str:
    """Return a report without what is not the same everywhere.

    The hashes of a ledger's chain depend on when something was published, and the last digits of a number on the
    processor.
    """
    text = re.sub(r"\b[0-9a-f]{64}\b", "…", report.read_text(encoding="utf-8"))
    return re.sub(r"\d+\.\d{5,}(?:e-?\d+)?", lambda number: f"{float(number[0]):.4g}", text)


def test_the_report_of_a_day(job, tmp_path):
    fresh = tmp_path / "day.html"
    pkdp("run", job, "--date", "2013-01-02")
    pkdp("report", job, "--date", "2013-01-02", "--out", fresh)
    assert stable(fresh) == stable(REPORTS / "flights_2013-01-02.html"), "run: make reports"


@pytest.mark.slow
def test_the_report_of_the_year(job, tmp_path):
    fresh = tmp_path / "year.html"
    pkdp("backfill", job, "--from", "2013-01-01", "--to", "2013-12-31")
    pkdp("report", job, "--out", fresh)
    assert stable(fresh) == stable(REPORTS / "flights_2013.html"), "run: make reports"


def test_both_reports_are_of_one_edition():
    day, year = (
        (REPORTS / name).read_text(encoding="utf-8") for name in ("flights_2013-01-02.html", "flights_2013.html")
    )
    style = re.compile(r"<style>.*?</style>", re.DOTALL)
    assert style.findall(day)[:1] == style.findall(year)[:1] != []
    assert max(len(day), len(year)) < 1_000_000
