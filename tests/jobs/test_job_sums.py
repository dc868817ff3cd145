"""Jobs that publish sums: files, tables, report and summary; what a job file may say of them, and its hash."""

from __future__ import annotations

import datetime as dt

import duckdb
import pandas as pd
import pytest
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import read_job
from pkdp_pipeline.releases import public_table

JOB = """
dataset = "visits"
unit = "person"
source = { files = "visits.SUFFIX"TYPES }
period = { column = "day", time_zone = "UTC" }
ledger = "ledger.sqlite"

[output]
directory = "out"
formats = ["parquet", "csv"]
duckdb = "tables.duckdb"

[[release]]
name = "visits_by_clinic"
by = "clinic"
sum = "visits"
bounds = [0, 5]
noise = { epsilon = 1.0 }
domain = ["a", "b", "c"]

[[release]]
name = "rows_in_all"
rows = "count"
bounds = [0, 1]
noise = { epsilon = 0.5 }
"""
DAY = dt.date(2026, 1, 5)
VISITS = pd.DataFrame(
    {
        "person": ["p1", "p1", "p2", "p3"] * 2,
        "clinic": ["a", "a", "a", "b"] * 2,
        "visits": [1, 9, 2, -4] * 2,
        "day": [DAY] * 4 + [DAY + dt.timedelta(days=1)] * 4,
    }
)


@pytest.fixture
def job(tmp_path, request):
    suffix = getattr(request, "param", "parquet")
    VISITS.to_csv(tmp_path / "visits.csv", index=False)
    VISITS.to_parquet(tmp_path / "visits.parquet")
    path = tmp_path / "job.toml"
    types = ', types = { visits = "number", day = "date" }' if suffix == "csv" else ""
    path.write_text(JOB.replace("SUFFIX", suffix).replace("TYPES", types), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    monkeypatch.setattr(public_table, "add_noise", lambda counts, *_: list(counts))


def run(*arguments):
    done = CliRunner().invoke(cli.app, list(map(str, arguments)))
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("job", ["parquet", "csv"], indirect=True)
def test_a_job_publishes_sums(job):
    run("backfill", job, "--from", "2026-01-05", "--to", "2026-01-06")
    folder = job.parent / "out" / "2026-01-06"
    release = pkdp.read_release(folder / "visits_by_clinic.parquet")
    assert release.table.to_dict("list") == {"clinic": ["a", "b", "c"], "sum": [7, 0, 0]}
    assert pkdp.read_release(folder / "rows_in_all.parquet").value == 3
    assert (folder / "visits_by_clinic.csv").read_text().splitlines()[:2] == [
        '"period","clinic","sum"',
        '2026-01-06,"a",7',
    ]
    assert "Sum of visits by clinic: a person adds 0 to 5 to a cell" in (folder / "summary.md").read_text()
    with duckdb.connect(str(job.parent / "tables.duckdb")) as tables:
        assert tables.sql(
            "SELECT clinic, sum FROM visits_by_clinic WHERE period = '2026-01-05' ORDER BY clinic"
        ).fetchall() == [
            ("a", 7),
            ("b", 0),
            ("c", 0),
        ]
        assert str(tables.sql("SELECT sum FROM rows_in_all").types[0]) == "BIGINT"


def test_a_report_says_sum(job, monkeypatch):
    # Curves over what else may be assumed, and pictures, take nine tenths of a report's time.
    monkeypatch.setattr("pkdp_pipeline.extras.report.pages.gathering.knowledge_curves", lambda *_, **__: ())
    monkeypatch.setattr("pkdp_pipeline.extras.report.pages._drawn", lambda *_, **__: "")
    run("run", job, "--date", "2026-01-05")
    for name in ("report.html", "report.md"):
        run("report", job, "--date", "2026-01-05", "--out", job.parent / name)
        text = (job.parent / name).read_text(encoding="utf-8")
        assert "Sum of visits by clinic" in text
        assert "Distinct" not in text
        assert CliRunner().invoke(cli.app, ["verify", str(job.parent / name)]).exit_code == 0
    page = (job.parent / "report.html").read_text(encoding="utf-8")
    assert "Published counts of" not in page


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("bounds = [0, 5]", "", "a sum has bounds"),
        ("bounds = [0, 5]", "bounds = [5, 0]", "in order"),
        ("bounds = [0, 5]", "bounds = [0, 5, 6]", "bounds"),
        ('sum = "visits"', "", "either sum"),
        ('sum = "visits"', 'sum = "visits"\nrows = "count"', "either sum"),
        ('sum = "visits"', 'sum = "clinic"', "names people or cells"),
        ('sum = "visits"', 'sum = "visits"\nk = 5', "k is about counts"),
        ("noise = { epsilon = 1.0 }", "", "with noise alone"),
        ('domain = ["a", "b", "c"]', "", "release_threshold"),
        ('rows = "count"', 'rows = "all"', "count"),
    ],
)
def test_what_a_sum_cannot_mean_is_refused(job, old, new, words):
    with pytest.raises(ConfigError, match=words):
        read_job(job.read_text().replace(old, new, 1), job)


def test_a_column_that_is_not_there_or_of_another_type_is_refused(job):
    for old, words in (("visits", "strangers"), ("visits", "clinic_")):
        text = job.read_text().replace(f'sum = "{old}"', f'sum = "{words}"')
        (job.parent / "other.toml").write_text(text, encoding="utf-8")
        done = CliRunner().invoke(cli.app, ["run", str(job.parent / "other.toml"), "--date", "2026-01-05"])
        assert done.exit_code != 0
        assert words in done.stderr
    VISITS.assign(visits=VISITS["visits"] / 2).to_parquet(job.parent / "visits.parquet")
    done = CliRunner().invoke(cli.app, ["run", str(job), "--date", "2026-01-05"])
    assert done.exit_code != 0
    assert "whole numbers" in done.stderr
    assert not (job.parent / "out").exists()


def test_a_summed_column_of_a_csv_file_is_one_of_numbers(job):
    words = ["sum", job.parent / "visits.csv", "--unit", "person", "--bounds", "0,5", "--noise", "2", "--column"]
    assert "sum" in run(*words, "visits")
    assert "sum" in run(*words, "visits", "--type", "visits=number", "--type", "day=date")
    for further, message in (
        (["clinic"], "column 'clinic' must hold whole numbers"),
        (["strangers"], "sum names column 'strangers'"),
        (["visits", "--type", "visits=text"], "declare --type visits=number."),
        (["visits", "--type", "clinic=number"], "pkdp: column 'clinic' must hold whole numbers"),
    ):
        done = CliRunner().invoke(cli.app, [*map(str, words), *further])
        assert (done.exit_code, message in " ".join(done.stderr.split())) == (2, True), done.stderr
    text = job.read_text().replace('visits.parquet"', 'visits.csv", types = { day = "date" }')
    (job.parent / "texts.toml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(cli.app, ["run", str(job.parent / "texts.toml"), "--date", "2026-01-05"])
    assert 'types = { visits = "number" } in source' in done.stderr
    assert not (job.parent / "ledger.sqlite").exists()


def test_a_file_is_summed_from_the_command_line(job):
    words = ["sum", job.parent / "visits.csv", "--unit", "person", "--column", "visits", "--type", "visits=number"]
    shown = run(*words, "--bounds", "0,5", "--noise", "2", "--by", "clinic", "--cell", "b", "--cell", "a")
    assert "Sum" not in shown.partition("Private")[0]
    assert shown.partition("Private")[0].split()[-2:] == ["±7", "of"] or "sum" in shown
    out = job.parent / "one.parquet"
    run(
        "sum",
        job.parent / "visits.parquet",
        "--unit",
        "person",
        "--rows",
        "count",
        "--bounds",
        "-3,4",
        "--noise",
        "2",
        "--out",
        out,
    )
    assert pkdp.read_release(out).value == 4 + 2 + 2
