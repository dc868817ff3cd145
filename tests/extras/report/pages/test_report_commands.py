from __future__ import annotations

import datetime
import gc
import json
import os
import sys
import textwrap
import warnings
from pathlib import Path

import pandas as pd
import pytest
from thorough import thinned
from typer.testing import CliRunner
from visit_jobs import BASIC, DAY, dates, visits

from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.extras.report import pages as forms
from pkdp_pipeline.extras.report import pages as room
from pkdp_pipeline.extras.report.pages import gathering
from pkdp_pipeline.jobs import load_job, run_job

REPORTING = BASIC.replace('directory = "out"', 'directory = "out"\n    report = true')


def pkdp(*arguments):
    return CliRunner(env={"COLUMNS": "80"}).invoke(cli.app, list(map(str, arguments)))


@pytest.fixture(autouse=True)
def no_curves(monkeypatch):
    """Leave out the curves over what else may be assumed, which take nine tenths of a report's time."""
    monkeypatch.setattr(gathering, "knowledge_curves", lambda *_, **__: ())


def written(folder: Path, text: str, frame: pd.DataFrame) -> Path:
    frame.to_parquet(folder / "visits.parquet")
    path = folder / "job.toml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The file of a job that has published two days; no test changes what is there."""
    path = written(tmp_path_factory.mktemp("ran"), BASIC, visits())
    for day in dates(2):
        run_job(load_job(path), day)
    return path


@pytest.fixture(scope="module")
def far_apart(tmp_path_factory):
    """The file of a job that writes reports, with two days published more than a year apart; one town is in Japan."""
    frame = visits(1, {"Ås": 37, "東京": 25})
    later = frame.assign(day=datetime.date(2021, 2, 15))
    folder = tmp_path_factory.mktemp("far_apart")
    path = written(folder, BASIC, pd.concat([frame, later]))
    for day in (DAY, datetime.date(2021, 2, 15)):
        run_job(load_job(path), day)
    return written(folder, REPORTING, pd.concat([frame, later]))


@thinned(2)
@pytest.mark.parametrize(
    "command",
    [
        ("run", "--date", "2021-02-15"),
        pytest.param(("backfill", "--from", "2021-02-15", "--to", "2021-02-15"), marks=pytest.mark.slow),
        ("report", "--out", "report.html"),
    ],
)
def test_success_is_silent_on_the_error_stream(far_apart, command, monkeypatch, caplog):
    monkeypatch.chdir(far_apart.parent)
    original = forms._drawn

    def counts_and_dates(draw, *values, **named):
        """Draw what has letters and dates of its own; curves take most of the time."""
        return "" if draw in ("draw_guarantee", "draw_knowledge") else original(draw, *values, **named)

    monkeypatch.setattr(forms, "_drawn", counts_and_dates)
    gc.collect()  # what earlier tests left behind warns here, not among what is recorded
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        done = pkdp(command[0], far_apart, *command[1:])
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    assert [str(remark.message) for remark in remarks] == []
    assert caplog.records == []


@thinned(2)
@pytest.mark.parametrize(
    ("form", "start"), [("md", "# visits, 2020-01-02\n"), ("json", '{\n "schema": "pkdp-report/1"')]
)
def test_markdown_and_json_are_printed(ran, form, start):
    done = pkdp("report", ran, "--date", "2020-01-02", "--format", form)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(start)
    assert done.stderr == ""


@pytest.mark.parametrize(("name", "start"), [("page.md", "# visits\n"), ("page.JSON", '{\n "schema"'), ("page", "<!")])
def test_the_suffix_of_a_file_says_its_format(ran, tmp_path, name, start):
    done = pkdp("report", ran, "--for", "officer", "--out", tmp_path / name)
    assert done.exit_code == 0, done.output
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


@pytest.mark.usefixtures("undrawn")
def test_html_is_written_to_a_file_and_one_line_says_so(ran, tmp_path):
    done = pkdp("report", ran, "--out", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert done.stdout == f"The report of visits, 2020-01-01 to 2020-01-02, is in {tmp_path / 'page.html'}.\n"
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    refused = pkdp("report", ran)
    assert refused.exit_code == 2
    assert "--out" in refused.stderr


def test_two_pages_are_for_the_officer(ran, tmp_path):
    for form, start in (("html", "<!DOCTYPE html>"), ("md", "# visits\n")):
        out = tmp_path / f"officer.{form}"
        done = pkdp("report", ran, "--for", "officer", "--format", form, "--out", out)
        assert done.exit_code == 0, done.output
        text = out.read_text(encoding="utf-8")
        assert text.startswith(start)
        assert "If an assumption is wrong" in text
        # Markdown of an officer ends where the page does: the report is what carries its content.
        assert pkdp("verify", out).exit_code == {"html": 0, "md": 2}[form]
    refused = pkdp("report", ran, "--for", "boss", "--format", "md")
    assert refused.exit_code == 2
    assert "--for must be one of" in refused.stderr


def test_the_options_reach_the_report(ran, tmp_path):
    out = tmp_path / "report.json"
    done = pkdp("report", ran, "--format", "json", "--audience", "auditor", "--delta", "1e-4", "--out", out)
    assert done.exit_code == 0, done.output
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["audience"] == "auditor"
    assert document["checks"]
    assert document["lead"]["delta"] == 1e-4


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--format", "pdf"], "--format must be"),
        (["--audience", "press", "--format", "md"], "--audience must be"),
        (["--date", "2020-1-1", "--format", "md"], "YYYY-MM-DD"),
        (["--date", "2019-12-31", "--format", "md"], "2020-01-01 to 2020-01-02"),
        (["--out", "missing/page.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_reported_is_exit_code_2_and_says_why(ran, options, words, monkeypatch):
    monkeypatch.chdir(ran.parent)
    done = pkdp("report", ran, *options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_a_job_that_has_not_run_is_exit_code_2(job_file):
    done = pkdp("report", job_file(), "--format", "md")
    assert done.exit_code == 2
    assert "pkdp run" in done.stderr


def test_what_the_job_lives_on_is_not_overwritten(ran):
    folder = ran.parent
    (folder / "link.html").unlink(missing_ok=True)
    (folder / "link.html").symlink_to(folder / "ledger" / "visits.sqlite")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files = [path for path in before if path.parent.parent.name == "out" and path.suffix != ".html"]
    assert {path.suffix for path in files} >= {".parquet", ".json", ".md"}
    names = ("ledger/visits.sqlite", "link.html", "job.toml", "visits.parquet", "out/../visits.parquet", *files)
    for name in names:
        done = pkdp("report", ran, "--format", "md", "--out", folder / name)
        assert done.exit_code == 2, name
        assert "--out is" in done.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_a_pipe_is_written_to_and_a_link_is_followed(ran, tmp_path):
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.md", tmp_path / "target.md"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert pkdp("report", ran, "--format", "md", "--out", pipe).exit_code == 0
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    assert pkdp("report", ran, "--format", "md", "--out", link).exit_code == 0
    assert os.read(reader, 1_000_000).decode() == target.read_text(encoding="utf-8") != "old"
    os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_without_the_extra_html_is_refused_and_the_message_says_what_to_install(ran, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = pkdp("report", ran, "--out", tmp_path / "page.html")
    assert done.exit_code == 2
    assert "pip install '.[report]' in the checkout" in " ".join(done.stderr.split())
    assert pkdp("report", ran, "--format", "md").exit_code == 0


def test_a_run_and_a_backfill_name_their_reports_and_so_do_their_dry_runs(job_file, monkeypatch):
    monkeypatch.setattr(room, "render", lambda report, form: "page")
    path = job_file(REPORTING)
    out = Path(path.parent, "out")
    planned = pkdp("run", path, "--date", DAY, "--dry-run")
    assert "report.html of 2020-01-01, in output.directory, would be written anew" in " ".join(planned.stdout.split())
    planned = pkdp("backfill", path, "--from", DAY, "--to", "2020-01-02", "--dry-run")
    assert "report.html about everything published, in output.directory" in " ".join(planned.stdout.split())
    assert not out.exists()
    done = pkdp("run", path, "--date", DAY)
    assert done.exit_code == 0, done.output
    assert f"Report: {out / '2020-01-01' / 'report.html'}\n" in done.stdout
    done = pkdp("backfill", path, "--from", DAY, "--to", "2020-01-02")
    assert done.exit_code == 0, done.output
    assert "report.html there" in done.stdout
    assert (out / "report.html").read_text(encoding="utf-8") == "page"


@pytest.mark.slow
def test_a_backfill_whose_report_cannot_be_drawn_has_published_and_says_so(job_file, monkeypatch):
    def render(report, form):
        raise ValueError

    monkeypatch.setattr(room, "render", render)
    stopping = REPORTING + "\n    [checks]\n    rows = { min = 1 }\n"
    done = pkdp("backfill", job_file(stopping), "--from", DAY, "--to", "2020-01-05")
    assert done.exit_code == 3  # a day without rows stopped it; that is what is told
    done = pkdp("backfill", job_file(stopping), "--from", DAY, "--to", "2020-01-05", "--keep-going")
    assert done.exit_code == 3
    assert "cannot be drawn" in done.stderr
    done = pkdp("backfill", job_file(REPORTING), "--from", DAY, "--to", "2020-01-02")
    assert done.exit_code == 2
    assert "charged once" in done.stderr
    assert "2 days" in done.stdout
