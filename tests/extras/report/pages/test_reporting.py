"""What a job adds to a report, and when a run or a backfill writes one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from thorough import thinned
from visit_jobs import BASIC, DAY, NOISY, dates, visits

from pkdp_pipeline.errors import BudgetExceededError, ConfigError, InputCheckError
from pkdp_pipeline.extras.report import job_report as module
from pkdp_pipeline.extras.report import pages as room
from pkdp_pipeline.extras.report.job_report import report_of, report_place
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.checks import stated_rules
from pkdp_pipeline.jobs.session import JobSession, backfill
from pkdp_pipeline.ledger import Ledger

REPORTING = BASIC.replace('directory = "out"', 'directory = "out"\n    report = true')


@pytest.fixture
def drawn(monkeypatch):
    """Every report that is rendered; how HTML looks is tested elsewhere."""
    reports = []

    def render(report, form):
        reports.append(report)
        return f"{form}: {report.title}, {report.period}, {report.ledger.releases}"

    monkeypatch.setattr(room, "render", render)
    return reports


def ids(job) -> list[str | None]:
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        return [entry.release_id for entry in ledger.entries()]


def test_a_run_writes_the_report_of_its_date_beside_the_summary(job, drawn):
    read = job(REPORTING)
    result = run_job(read, DAY)
    assert result.report == report_place(read, DAY) == result.summary.with_name("report.html")
    assert result.report.read_text(encoding="utf-8") == "html: visits, 2020-01-01, 1"
    assert [report.audience for report in drawn] == ["public"]
    Path(result.report).unlink()
    again = run_job(read, DAY)
    assert again.replayed
    assert again.report.read_text(encoding="utf-8") == "html: visits, 2020-01-01, 1"
    assert not report_place(read, None).exists()


def test_a_revision_writes_the_report_of_everything_again(job, drawn, tmp_path):
    noisy = NOISY.replace("noise = { epsilon = 0.5 }", "noise = { epsilon = 0.25 }")
    read = job(noisy.replace("[output]", "[output]\n    report = true"), visits())
    backfill(read, DAY, DAY)
    run_job(read, DAY)
    assert [len(report.releases) for report in drawn] == [2, 2]
    visits(towns={"Ås": 400}).to_parquet(tmp_path / "visits.parquet")
    run_job(read, DAY, revise=True)
    assert report_place(read, None).read_text(encoding="utf-8") == "html: visits, 2020-01-01, 4"


def test_without_being_asked_for_there_is_none(job, drawn):
    read = job()
    assert run_job(read, DAY).report is None
    assert backfill(read, DAY, DAY).report is None
    assert drawn == []


def test_the_record_of_a_run_lists_its_report(job, drawn, tmp_path):
    read = job(REPORTING + '\n    [records]\n    directory = "runs"\n')
    result = run_job(read, DAY)
    (record,) = (json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "runs").glob("*.json"))
    assert record["files"][-1] == str(result.report)


def test_a_backfill_writes_one_report_about_everything_at_its_end(job, drawn):
    read = job(REPORTING)
    run_job(read, DAY)
    result = backfill(read, *dates(3)[1:])
    assert result.report == report_place(read, None) == Path(read.output.directory, "report.html")
    assert result.report.read_text(encoding="utf-8") == "html: visits, 2020-01-01 to 2020-01-03, 3"
    assert [report.period for report in drawn] == ["2020-01-01", "2020-01-01 to 2020-01-03"]
    assert not report_place(read, dates(2)[1]).exists()


def test_a_backfill_that_a_day_stops_reports_what_there_is(job, drawn):
    frame = visits()
    read = job(REPORTING + "\n    [checks]\n    rows = { min = 1 }\n", frame[frame["day"] != dates(3)[2]])
    with pytest.raises(InputCheckError):
        backfill(read, *dates(3)[::2])
    assert report_place(read, None).read_text(encoding="utf-8") == "html: visits, 2020-01-01 to 2020-01-02, 2"


def test_a_backfill_that_publishes_nothing_reports_nothing(job, drawn):
    read = job(REPORTING.replace("epsilon = 9.0", "epsilon = 0.1"))
    with pytest.raises(BudgetExceededError):
        backfill(read, *dates(2))
    assert drawn == []
    assert not report_place(read, None).exists()


@pytest.mark.slow
def test_a_session_reports_each_date_and_everything_when_asked(job, drawn):
    read = job(REPORTING)
    with JobSession(read) as session:
        assert session.write_report() is None
        assert session.run(DAY).report == report_place(read, DAY)
        assert session.run(dates(2)[1], report=False).report is None
        assert session.write_report() == report_place(read, None)


def test_without_the_extra_nothing_is_read_or_charged(job, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    read = job(REPORTING)
    (tmp_path / "visits.parquet").unlink()
    with pytest.raises(ConfigError, match=r"pip install '\.\[report\]'"):
        run_job(read, DAY)
    assert not Path(read.ledger).exists()


@thinned(2)
@pytest.mark.parametrize("error", [TypeError("secret"), ImportError("no such module")])
def test_what_cannot_be_drawn_is_published_and_charged_once(job, monkeypatch, error):
    def render(report, form):
        raise error

    read = job(REPORTING)
    monkeypatch.setattr(room, "render", render)
    with pytest.raises(ConfigError, match=r"cannot be drawn.*published, and charged once") as failed:
        run_job(read, DAY)
    assert "secret" not in str(failed.value)
    assert len(ids(read)) == 1
    assert report_place(read, DAY).with_name("summary.md").exists()
    monkeypatch.undo()
    monkeypatch.setattr(room, "render", lambda report, form: "page")
    assert run_job(read, DAY).report.read_text(encoding="utf-8") == "page"
    assert len(ids(read)) == 1


def test_what_cannot_be_written_is_published_and_charged_once(job, drawn, monkeypatch):
    def refuse(path, content):
        raise ConfigError(f"the output file {path.name!r} cannot be written: No space left on device.")

    read = job(REPORTING)
    monkeypatch.setattr(module, "write_atomically", refuse)
    with pytest.raises(ConfigError, match=r"'report\.html' cannot be written.*charged once"):
        run_job(read, DAY)
    assert len(ids(read)) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_a_run_without_a_stand_in_writes_a_page(job):
    result = run_job(job(REPORTING), DAY)
    page = result.report.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert result.releases[0].release.id in page
    before = result.report.stat().st_mtime_ns
    assert run_job(job(REPORTING), DAY).report.stat().st_mtime_ns == before  # equal bytes are left as they are


CHECKED = """
    [checks]
    rows = { min = 5 }
    columns = { town = "text" }
    fresh = { column = "day", days = 0 }

    [[checks.expect]]
    type = "expect_column_values_to_not_be_null"
    column = "town"

    [[checks.expect]]
    type = "expect_column_values_to_be_in_set"
    column = "town"
    value_set = ["Ås"]
    severity = "warning"
"""


@pytest.mark.usefixtures("great_expectations")
def test_the_rules_are_those_that_a_day_is_held_to_and_stop_it(job, job_file, tmp_path):
    text = BASIC.replace("[output]", f"{CHECKED}\n    [output]").replace(
        "k = 20", 'k = 20\n    domain = { town = ["Ås", "Bø", "Secretville"] }'
    )
    read = job(text + '\n    [records]\n    directory = "runs"\n')
    run_job(read, DAY)
    (record,) = (json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "runs").glob("*.json"))
    looked_at = {check["rule"]: check["passed"] for check in record["checks"]}
    assert list(looked_at.values()).count(False) == 1
    assert stated_rules(read, DAY) == [rule for rule, passed in looked_at.items() if passed]
    # The record knows the rule that only warned; without one, the rules that stop are known to have been kept.
    recorded = {check.rule: check.passed for check in report_of(read, audience="auditor").checks}
    assert recorded == looked_at
    plain = load_job(job_file(text))
    stated = report_of(plain, audience="auditor").checks
    assert [check.rule for check in stated] == stated_rules(plain, DAY)
    assert all(check.passed for check in stated)
