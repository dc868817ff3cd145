"""A first run creates nothing before its day can be published, whatever is wrong and wherever it is found."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from thorough import thinned

from pkdp_pipeline.errors import ConfigError, InputCheckError, PkdpError, TemporaryError
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.dry_run import plan_job
from pkdp_pipeline.jobs.outputs.files import LOCK_FILE, job_lock
from pkdp_pipeline.jobs.session import JobSession, backfill, missed_days
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.reading import is_begun

DAY, NEXT_DAY = date(2020, 1, 1), date(2020, 1, 2)
SOURCE = {"job.toml", "visits.parquet"}


def names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def people(towns, **more):
    days = [DAY] * len(towns)
    return pd.DataFrame({"day": days, "person": [f"p{n}" for n in range(len(towns))], "town": towns} | more)


TOWNS = ["Ås"] * 8
FAILURES = {
    "no unit": ('missing_unit = "drop"', 'missing_unit = "error"', people(TOWNS, person=[None, *"abcdefg"])),
    "several cells": ("k = 5", "k = 5", people([*TOWNS, "Bø"], person=[*"abcdefgh", "a"])),
    "an undeclared cell": ("k = 5", 'k = 5\ndomain = ["Bø"]', people(TOWNS)),
    "an unreadable day": ("k = 5", "k = 5", people(TOWNS, day=["2020-01-01"] * 7 + ["no day"])),
    "too few rows": ("[output]", "[checks]\nrows = { min = 99 }\n\n[output]", people(TOWNS)),
    "another type": ("k = 5", 'k = 5\nwhere = "town == 3"', people(TOWNS)),
    "no column": ("k = 5", 'k = 5\nwhere = "nobody"', people(TOWNS)),
    "nothing certified": ("p_max = 0.5", "p_max = 1.0", people(TOWNS)),
}


@thinned(3)
@pytest.mark.parametrize("failure", sorted(FAILURES))
@pytest.mark.parametrize("place", ["file", pytest.param("database", marks=pytest.mark.postgres)])
def test_a_first_run_that_fails_leaves_nothing(job_file, basic, tmp_path, request, place, failure):
    old, new, frame = FAILURES[failure]
    if place == "database":
        basic = basic.replace("out/ledger.sqlite", request.getfixturevalue("postgres_url"))
    assert old in basic
    job = load_job(job_file(basic.replace(old, new), frame))
    plan_job(job, [DAY])
    assert missed_days(job, DAY) == ()
    for attempt in (run_job, lambda job, day: backfill(job, day, day)):
        with pytest.raises(PkdpError):
            attempt(job, DAY)
        assert names(tmp_path) == SOURCE
        assert not is_begun(job.ledger)
    # Once it is mended, it runs as if nothing had been.
    mended = run_job(load_job(job_file(basic, people(TOWNS))), DAY)
    with Ledger.open(mended.job.ledger, dataset="visits") as ledger:
        assert [event.kind for event in ledger.records.events()] == ["reserved", "published"]


def test_a_later_day_of_a_backfill_that_fails_keeps_what_was_published(job_file, basic):
    checked = basic.replace("[output]", "[checks]\nrows = { min = 1 }\n\n[output]")
    job = load_job(job_file('evidence = { kind = "one_day_protected" }\n' + checked, people(TOWNS)))
    with pytest.raises(InputCheckError):
        backfill(job, DAY, NEXT_DAY)
    assert Path(job.output.directory, "2020-01-01", "summary.md").exists()


def test_an_input_check_of_the_first_day_that_fails_lets_a_backfill_begin_with_the_next(job_file, basic):
    frame = people(TOWNS).assign(day=NEXT_DAY)
    job = load_job(job_file(basic.replace("[output]", "[checks]\nrows = { min = 1 }\n\n[output]"), frame))
    result = backfill(job, DAY, NEXT_DAY, keep_going=True)
    assert (len(result.failed), result.published) == (1, (NEXT_DAY,))
    with Ledger.open(job.ledger, dataset="visits") as ledger:
        assert [entry.period for entry in ledger.entries()] == ["2020-01-02"]


def test_a_ledger_that_another_run_makes_meanwhile_is_taken_as_it_is(job_file, basic, tmp_path, monkeypatch):
    job = load_job(job_file(basic))
    other = tmp_path / "other.toml"
    other.write_text(basic.replace('directory = "out"', 'directory = "elsewhere"'), encoding="utf-8")
    check = JobSession._check

    def checked(self, *args, **more):
        result = check(self, *args, **more)
        if self.job.output.directory == job.output.directory:
            run_job(load_job(other), DAY)
        return result

    monkeypatch.setattr(JobSession, "_check", checked)
    result = run_job(job, DAY)
    assert result.replayed
    with Ledger.open(job.ledger, dataset="visits") as ledger:
        assert [event.kind for event in ledger.records.events()] == ["reserved", "published"]
        ledger.verify()


def test_the_lock_and_the_places_of_a_first_run_come_before_its_source(job_file, basic, tmp_path):
    job = load_job(job_file(basic))
    Path(job.source.files[0]).unlink()
    folder = Path(job.output.directory)
    folder.mkdir()
    with job_lock(folder), pytest.raises(TemporaryError, match="another run is publishing"):
        run_job(job, DAY)
    (folder / LOCK_FILE).unlink(missing_ok=True)
    folder.rmdir()
    folder.write_text("a file", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be created"):
        run_job(job, DAY)
    assert names(tmp_path) == {"job.toml", "out"}
