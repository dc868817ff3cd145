from __future__ import annotations

import os
from datetime import date, timedelta
from pathlib import Path

import pandas as pd
import pytest

from pkdp_pipeline.certificates import release_certificate
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.errors import BudgetExceededError, DifferencingError, LedgerError
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.dry_run import plan_job
from pkdp_pipeline.jobs.session import backfill
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.reading import copied, replay
from pkdp_pipeline.ledger.sqlite_database import SqliteDatabase
from pkdp_pipeline.releases.publish import Publication

DAYS = tuple(date(2020, 1, 1) + timedelta(days=number) for number in range(9))
NOISED = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    ledger = "out/ledger.sqlite"
    budget = { epsilon = 2.0, delta = 0.0, part = "worst_case", window_days = 4 }

    [[release]]
    name = "people"
    noise = { epsilon = 0.25 }

    [[release]]
    name = "people_in_town"
    where = "town == 'Ås'"
    noise = { epsilon = 0.25 }

    [output]
    directory = "out"
"""


def visits() -> pd.DataFrame:
    return pd.DataFrame([(day, f"{n}", "Ås") for day in DAYS for n in range(8)], columns=["day", "person", "town"])


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def tightened(text: str) -> str:
    return text.replace("window_days = 4", "window_days = 5")


def test_it_says_what_would_happen_and_touches_nothing(job_file, tmp_path):
    job = load_job(job_file(NOISED, visits()))
    backfill(job, DAYS[0], DAYS[1])
    Path(job.source.files[0]).unlink()
    before = everything(tmp_path)
    plan = plan_job(job, DAYS)
    assert everything(tmp_path) == before
    assert [day.day for day in plan.days] == list(DAYS)
    outcomes = [{release.outcome for release in day.releases} for day in plan.days]
    assert outcomes == [{"replay"}] * 2 + [{"publish"}] * 7
    for release in (release for day in plan.days for release in day.releases):
        assert release.epsilon == pytest.approx(0.25, abs=1e-5)
    assert (plan.refused, plan.unreached) == (None, 0)
    assert plan.before.worst_case.parameters == (1.0, 0.0)
    assert plan.after.worst_case.parameters == plan.period.worst_case.parameters == (4.5, 0.0)


def test_it_computes_no_numbers_that_nobody_reads(job_file, monkeypatch):
    job = load_job(job_file(NOISED, visits()))
    whole = plan_job(job, DAYS[:2])
    monkeypatch.setattr(Certificate, "_document", None)
    release_certificate._document_of.cache_clear()
    assert plan_job(job, DAYS[:2]) == whole
    with pytest.raises(TypeError):
        run_job(job, DAYS[0])


def test_what_it_says_comes_true_with_the_same_error(job_file):
    job = load_job(job_file(tightened(NOISED), visits()))
    plan = plan_job(job, DAYS)
    assert not Path(job.output.directory).exists()
    assert plan.refused.day == DAYS[4]
    assert plan.unreached == 4
    assert plan.after.worst_case.parameters == (2.0, 0.0)
    with pytest.raises(BudgetExceededError) as caught:
        backfill(job, DAYS[0], DAYS[-1])
    assert str(caught.value) == str(plan.refused.refused)
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert len(list(ledger.entries(given_back=True))) == 8


def test_a_ledger_with_a_log_that_a_killed_run_left_is_read_as_it_is(job_file, tmp_path):
    job = load_job(job_file(NOISED, visits()))
    run_job(job, DAYS[0])
    open_all_the_time = Ledger.open(job.ledger, dataset=job.dataset)
    run_job(job, DAYS[1])
    assert Path(f"{job.ledger}-wal").stat().st_size > 0
    before = {name: content for name, content in everything(tmp_path).items() if not name.endswith("-shm")}
    plan = plan_job(job, DAYS[:3])
    after = {name: content for name, content in everything(tmp_path).items() if not name.endswith("-shm")}
    assert [day.releases[0].outcome for day in plan.days] == ["replay", "replay", "publish"]
    assert after == before
    open_all_the_time.close()


def test_a_revision_is_planned_as_another_charge(job_file):
    job = load_job(job_file(NOISED, visits()))
    run_job(job, DAYS[0])
    plan = plan_job(job, DAYS[:1], revise=True)
    assert {release.outcome for release in plan.days[0].releases} == {"publish"}
    assert plan.after.worst_case.parameters == (1.0, 0.0)


def test_releases_that_cannot_stand_together_are_refused_as_in_a_run(job_file, basic):
    two = basic.replace("[output]", '[[release]]\nname = "people"\nk = 5\n\n[output]')
    with pytest.raises(DifferencingError, match="cross-tabulated"):
        plan_job(load_job(job_file(two)), DAYS)


def test_a_file_that_is_no_ledger_is_an_error_and_stays(job_file, tmp_path):
    job = load_job(job_file(NOISED, visits()))
    (tmp_path / "out").mkdir()
    Path(job.ledger).write_bytes(b"no ledger" * 100)
    with pytest.raises(LedgerError, match="ledger"):
        plan_job(job, DAYS)
    assert os.listdir(tmp_path / "out") == ["ledger.sqlite"]


def test_a_copy_made_from_the_events_is_the_same_ledger(job_file):
    job = load_job(job_file(NOISED.replace("epsilon = 2.0", "epsilon = 9.0"), visits()))
    backfill(job, DAYS[0], DAYS[3])
    run_job(job, DAYS[0], revise=True)
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        source, target = ledger.records, SqliteDatabase(":memory:")
        # A reservation that was given back, too.
        (publication, _) = job.publications(DAYS[5])
        reserved = Publication(
            question=publication.question, attacker=job.attacker_model(), ledger=ledger, alone=False
        ).reserve()
        ledger.give_back(reserved)
        with source.snapshot():
            replay(source, target)
        with Ledger(target, dataset=job.dataset) as copy:
            copy.verify()
            assert copy.head() == ledger.head()
            assert copy.total(job.unit).worst_case.parameters == ledger.total(job.unit).worst_case.parameters
            assert [entry.hash for entry in copy.entries(given_back=True)] == [
                entry.hash for entry in ledger.entries(given_back=True)
            ]


def test_a_copied_ledger_can_be_charged_while_the_real_one_stays(job_file):
    job = load_job(job_file(NOISED, visits()))
    run_job(job, DAYS[0])
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger, copied(job.ledger, dataset=job.dataset) as copy:
        assert copy.head() == ledger.head()
        copy.verify()


@pytest.mark.postgres
def test_a_postgres_ledger_is_read_in_one_transaction_and_stays_as_it_is(job_file, postgres_url):
    text = NOISED.replace('ledger = "out/ledger.sqlite"', f'ledger = "{postgres_url}"')
    job = load_job(job_file(tightened(text), visits()))
    backfill(job, DAYS[0], DAYS[1])
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        head = ledger.head()
        plan = plan_job(job, DAYS)
        assert plan.refused.day == DAYS[4]
        assert [day.releases[0].outcome for day in plan.days[:3]] == ["replay", "replay", "publish"]
        assert ledger.head() == head
