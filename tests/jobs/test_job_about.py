"""The table ``[about]``: public words, which reports print, and nothing that only certificates may say."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
from moved_clock import clock_at

from pkdp_pipeline.cli.job_views import print_plan
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.extras.report.content import About
from pkdp_pipeline.extras.report.job_report import report_of
from pkdp_pipeline.extras.report.pages import render, report_of_document
from pkdp_pipeline.extras.report.pages.plain_words import argued
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.dry_run import plan_job
from pkdp_pipeline.jobs.job import _without_news


@pytest.fixture
def about(job_file, basic):
    """Return how to read a job with some lines of ``[about]``."""

    def read(lines):
        return load_job(job_file(f"{basic}\n[about]\n{lines}\n"))

    return read


def test_what_is_said_is_in_the_report(about):
    job = about(
        'title = "Visits"\npublisher = "The town"\ncontact = "data@town.example"\nargued_by = "A registrar"\n'
        'argued_on = 2019-12-01\nargument = """\nFew   come,\n and nobody\tlooks."""'
    )
    run_job(job, date(2020, 1, 1))
    report = report_of(job)
    assert report.about == About(
        title="Visits",
        publisher="The town",
        contact="data@town.example",
        argued_by="A registrar",
        argued_on="2019-12-01",
        argument="Few come, and nobody looks.",
    )
    assert (report.heading, report.title) == ("Visits", job.dataset)


def test_a_date_may_be_a_text(about):
    assert about('argued_on = "2019-12-01"').about.argued_on == date(2019, 12, 1).isoformat()


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("", "is empty: say who publishes, or remove it"),
        ('titel = "Visits"', "title"),
        ('title = ""', "about.title"),
        ('title = " \\t "', "must hold words"),
        ("title = 7", "about.title"),
        ("argued_on = 2019-12-01T10:00:00", "about.argued_on"),
        ('argued_on = "last winter"', "must be a date, such as 2025-12-01"),
        ('argument = "It is private at epsilon = 0.1."', "leave ε, δ and whom they hold against to the certificate"),
        ('title = "Tables with ε = 0.1, δ = 0"', "leave ε, δ and whom they hold against to the certificate"),
    ],
)
def test_what_is_refused(about, lines, complaint):
    with pytest.raises(ConfigError) as refused:
        about(lines)
    assert complaint in str(refused.value)
    assert "0.1" not in str(refused.value)
    assert "winter" not in str(refused.value)


def test_a_job_that_says_nothing_of_a_check_has_the_hash_it_had(about):
    said = about('title = "Visits"')
    content = said.model_dump(mode="json", by_alias=True)
    assert "checked_on" not in _without_news(content)["about"]
    assert about('title = "Visits"\nchecked_on = 2026-01-05').digest != said.digest


@pytest.mark.parametrize(("made_on", "outdated"), [("2027-01-05", False), ("2027-01-06", False), ("2027-01-07", True)])
def test_a_check_of_more_than_a_year_ago_is_said_to_be(about, made_on, outdated):
    job = about('argued_by = "A registrar"\nchecked_on = 2026-01-05')
    run_job(job, date(2020, 1, 1))
    report = report_of(job, today=date.fromisoformat(made_on))
    assert (report.about.checked_on, report.about.outdated) == ("2026-01-05", outdated)
    words = "Argued by A registrar. Last checked on 2026-01-05"
    assert argued(report.about).startswith(words)
    for text in (render(report, "md"), render(report, "md", "officer"), render(report, "html", "officer")):
        assert "Last checked on " in text
        assert ("more than a year before this report" in text) == outdated
    assert report_of_document(json.loads(render(report, "json"))) == report


@pytest.mark.parametrize(("year", "said"), [(2026, False), (2027, True)])
def test_a_dry_run_says_that_the_last_check_is_old(about, capsys, year, said):
    job = about("checked_on = 2026-01-05")
    with clock_at(datetime(year, 6, 1, tzinfo=UTC), "UTC"):
        print_plan(job, plan_job(job, [date(2020, 1, 1)]))
    assert ("last checked on 2026-01-05, more than a year ago" in capsys.readouterr().out) == said
