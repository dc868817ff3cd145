"""The table ``[about]``: public words, which reports print, and nothing that only certificates may say."""

from __future__ import annotations

from datetime import date

import pytest

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.extras.report.content import About
from pkdp_pipeline.extras.report.job_report import report_of
from pkdp_pipeline.jobs import load_job, run_job


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
