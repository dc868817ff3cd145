"""``pkdp demo``: a job over invented data, in a folder of its own."""

import pandas as pd
import pytest
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli.main import app

pytestmark = pytest.mark.default_target


def ran(*arguments):
    return CliRunner().invoke(app, ["demo", *arguments])


def test_a_quarter_is_published_and_a_week_is_left(tmp_path):
    folder = tmp_path / "clinic"
    first = ran("--out", str(folder))
    assert first.exit_code == 0, first.output
    assert "The report of clinic" in first.output
    assert (folder / "report.html").stat().st_size > 10_000
    assert len(list((folder / "public").glob("2026-*"))) == 13

    week = CliRunner().invoke(app, first.output.splitlines()[-1].split()[1:])
    assert week.exit_code == 0, week.output
    assert len(list((folder / "public").glob("2026-*"))) == 14
    with pkdp.Ledger.open(folder / "ledger.sqlite", dataset="clinic") as ledger:
        assert ledger.total().releases == 14
        assert ledger.total().epsilon(1e-6) <= 1.0


def test_what_is_published_follows_from_the_visits(tmp_path):
    ran("--out", str(tmp_path))
    visits = pd.read_csv(tmp_path / "visits.csv", dtype=str)
    days = pd.to_datetime(visits["date"])
    week = visits[(days >= "2026-01-05") & (days < "2026-01-12")].dropna(subset=["patient"])
    most = week.groupby("district")["patient"].nunique()
    table = pd.read_parquet(tmp_path / "public" / "2026-W02" / "patients_by_district.parquet")
    shown = table.set_index("district")["count"]
    assert set(shown.index) == set(most[most >= 55].index) < set(most.index)
    assert (shown <= most[shown.index]).all()
    assert (shown >= 0.9 * most[shown.index]).all()


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    refused = ran("--out", str(tmp_path))
    assert refused.exit_code == 2
    assert "must be a new or an empty folder" in refused.output
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
