"""``pkdp demo``: a job over invented data, in a folder of its own."""

import pandas as pd
import pytest
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates import release_certificate
from pkdp_pipeline.cli.main import app
from pkdp_pipeline.extras.report import pages as forms
from pkdp_pipeline.extras.start import commands

pytestmark = pytest.mark.default_target


def ran(*arguments):
    return CliRunner().invoke(app, ["demo", *arguments])


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder of a demo of a quarter, of which two weeks are published, and what was printed."""
    assert commands._WEEKS == 13
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(commands, "_WEEKS", 2)
        patched.setattr(release_certificate, "DEFAULT_TARGET", release_certificate.Target())
        folder = tmp_path_factory.mktemp("demo") / "clinic"
        return folder, ran("--out", str(folder))


def test_a_quarter_is_published_and_a_week_is_left(demo, monkeypatch):
    folder, first = demo
    assert first.exit_code == 0, first.output
    assert "The report of clinic" in first.output
    assert (folder / "report.html").stat().st_size > 10_000
    assert len(list((folder / "public").glob("2026-*"))) == 2

    monkeypatch.setattr(forms, "_drawn", lambda *_, **__: "")  # its pictures were drawn once
    week = CliRunner().invoke(app, first.output.splitlines()[-1].split()[1:])
    assert week.exit_code == 0, week.output
    assert len(list((folder / "public").glob("2026-*"))) == 3
    with pkdp.Ledger.open(folder / "ledger.sqlite", dataset="clinic") as ledger:
        assert ledger.total().releases == 3
        assert ledger.total().epsilon(1e-6) <= 1.0


def test_what_is_published_follows_from_the_visits(demo):
    folder, _ = demo
    visits = pd.read_csv(folder / "visits.csv", dtype=str)
    days = pd.to_datetime(visits["date"])
    week = visits[(days >= "2026-01-05") & (days < "2026-01-12")].dropna(subset=["patient"])
    most = week.groupby("district")["patient"].nunique()
    table = pd.read_parquet(folder / "public" / "2026-W02" / "patients_by_district.parquet")
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
