from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from pkdp_pipeline.errors import BudgetExceededError, ConfigError, InputCheckError, TemporaryError
from pkdp_pipeline.exit_codes import exit_code
from pkdp_pipeline.jobs import JobSession, load_job, run_job
from pkdp_pipeline.ledger import Ledger

DAY = date(2020, 1, 1)
NEXT_DAY = date(2020, 1, 2)
NOISED = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    missing_unit = "drop"
    ledger = "out/ledger.sqlite"
    budget = { epsilon = 1.25, delta = 0.0, part = "worst_case" }

    [[release]]
    name = "people"
    noise = { epsilon = 0.5 }

    [[release]]
    name = "people_in_town"
    where = "town == 'Ås'"
    noise = { epsilon = 0.5 }

    [output]
    directory = "out"
"""


def events(job) -> list[str]:
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        return [f"{entry.label} {entry.state}" for entry in ledger.entries(given_back=True)]


def test_a_day_that_does_not_fit_the_budget_as_a_whole_is_refused_before_data_are_read(job_file):
    job = load_job(job_file(NOISED))
    run_job(job, DAY)
    Path(job.source.files[0]).unlink()
    with pytest.raises(BudgetExceededError):
        run_job(job, NEXT_DAY)
    assert events(job) == ["people published", "people_in_town published"]


def test_a_failed_check_leaves_no_trace_in_the_ledger(job_file):
    job = load_job(job_file(NOISED))
    with pytest.raises(InputCheckError):
        run_job(job, date(2021, 1, 1))
    assert events(job) == []
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert ledger.head() == "0" * 64


def test_a_source_that_vanishes_between_two_days_is_a_config_error_and_charges_nothing(job_file, basic):
    job = load_job(job_file('evidence = { kind = "one_day_protected" }\n' + basic))
    with JobSession(job) as session:
        session.run(DAY)
        Path(job.source.files[0]).unlink()
        with pytest.raises(ConfigError) as caught:
            session.run(NEXT_DAY)
        assert exit_code(caught.value) == 2
        assert session.run(DAY).replayed
    assert events(job) == ["people_by_town published"]


def test_outputs_that_cannot_be_written_are_told_to_be_published_and_charged(job_file):
    job = load_job(job_file())
    Path(job.output.directory).mkdir()
    (Path(job.output.directory) / "2020-01-01").write_bytes(b"in the way")
    with pytest.raises(ConfigError) as caught:
        run_job(job, DAY)
    assert "published, and charged once: run again" in str(caught.value)
    assert events(job) == ["people_by_town published"]
    (Path(job.output.directory) / "2020-01-01").unlink()
    run_job(job, DAY)
    assert events(job) == ["people_by_town published"]


def test_a_full_disk_is_for_somebody_to_repair_and_the_next_run_writes_the_files(job_file, monkeypatch):
    job = load_job(job_file())

    def full(*arguments):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("pkdp_pipeline.jobs.outputs.files.os.replace", full)
        with pytest.raises(ConfigError) as caught:
            run_job(job, DAY)
    assert exit_code(caught.value) == 2
    assert "published, and charged once: run again" in str(caught.value)
    assert events(job) == ["people_by_town published"]
    Path(job.source.files[0]).unlink()
    assert run_job(job, DAY).replayed
    assert len(list(Path(job.output.directory).glob("2020-01-01/*"))) == 3


def test_a_ledger_that_cannot_be_reached_is_temporary(job_file):
    text = NOISED.replace('"out/ledger.sqlite"', '"postgresql://nobody@127.0.0.1:1/none?connect_timeout=1"')
    job = load_job(job_file(text))
    with pytest.raises(TemporaryError) as caught:
        run_job(job, DAY)
    assert exit_code(caught.value) == 75


def test_sessions_give_what_single_runs_give(job_file, basic):
    job = load_job(job_file('evidence = { kind = "one_day_protected" }\n' + basic))
    with JobSession(job) as session:
        days = [session.run(day) for day in (DAY, NEXT_DAY)]
        assert [one.new_ledger for one in days] == [True, False]
        assert session.total().releases == 2
    assert [run_job(job, one.day).releases[0].release.id for one in days] == [
        one.releases[0].release.id for one in days
    ]


def test_a_release_that_the_ledger_does_not_know_is_not_published_over(job_file):
    first = run_job(load_job(job_file(NOISED)), DAY)
    before = {file: file.read_bytes() for one in first.releases for file in one.files}
    misspelt = load_job(job_file(NOISED.replace("out/ledger", "out/leger").replace("1.25", "9.0")))
    with JobSession(misspelt) as session:
        session.run(NEXT_DAY)  # this folder holds nothing of that day; a remark has said what is odd
        assert "the ledger knows of none" in session.remarks[0]
        with pytest.raises(ConfigError, match="the ledger does not know it"):
            session.run(DAY)
    assert {file: file.read_bytes() for file in before} == before
    assert {event.period for event in entries(misspelt)} == {NEXT_DAY.isoformat()}
    # What the ledger knows may be followed by another question under the same name.
    asked = NOISED.replace("epsilon = 0.5 }\n\n    [output]", "epsilon = 0.25 }\n\n    [output]")
    assert not run_job(load_job(job_file(asked.replace("1.25", "2.0"))), DAY).replayed


def entries(job):
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        return list(ledger.entries())
