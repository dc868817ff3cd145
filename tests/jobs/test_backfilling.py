from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from moved_clock import clock_at

from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    DifferencingError,
    InputCheckError,
    TemporaryError,
)
from pkdp_pipeline.jobs import JobSession, load_job, run_job, session
from pkdp_pipeline.jobs.session import backfill, days_of, missed_days
from pkdp_pipeline.jobs.sources.relations import RelationSource
from pkdp_pipeline.ledger import Ledger

DAYS = tuple(date(2020, 1, 30) + timedelta(days=number) for number in range(6))
NOISED = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    ledger = "out/ledger.sqlite"
    budget = { epsilon = 2.0, delta = 0.0, part = "worst_case" }

    [[release]]
    name = "people"
    noise = { epsilon = 0.5 }

    [output]
    directory = "out"
"""


def visits(days=DAYS) -> pd.DataFrame:
    rows = [(day, f"person {number}", "Ås") for day in days for number in range(8)]
    return pd.DataFrame(rows, columns=["day", "person", "town"])


@pytest.fixture
def evident(basic):
    return 'evidence = { kind = "one_day_protected" }\n' + basic


@pytest.fixture
def asking_for_rows(evident):
    return evident + "\n[checks]\nrows = { min = 1 }\n"


def entries(job):
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        return [(entry.period, entry.state, entry.revision) for entry in ledger.entries(given_back=True)]


def test_a_backfill_publishes_in_order_and_says_what_it_did(job_file, evident):
    job = load_job(job_file(evident, visits()))
    run_job(job, DAYS[2])
    reported = []
    done = backfill(job, DAYS[0], DAYS[-1], progress=reported.append)
    assert done.published == (*DAYS[:2], *DAYS[3:])
    assert done.replayed == (DAYS[2],)
    assert done.failed == ()
    assert (done.total.releases, done.total.rule) == (6, "one_day_protected")
    assert [period.day for period in reported] == list(DAYS)
    assert [period for period, _, _ in entries(job)] == [f"{day}" for day in (DAYS[2], *DAYS[:2], *DAYS[3:])]


def test_what_is_published_is_replayed_without_data_and_files_are_left_alone(job_file, evident):
    job = load_job(job_file(evident, visits()))
    backfill(job, DAYS[0], DAYS[-1])
    folder = Path(job.output.directory)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("2020-*/*")}
    lost, damaged = sorted(before)[0], sorted(before)[4]
    lost.unlink()
    damaged.write_bytes(b"half")
    Path(job.source.files[0]).unlink()
    assert backfill(job, DAYS[0], DAYS[-1]).replayed == DAYS
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("2020-*/*")}
    assert {path: content for path, (content, _) in after.items()} == {path: old for path, (old, _) in before.items()}
    assert {path for path in after if after[path][1] != before[path][1]} == {lost, damaged}


def test_it_stops_at_the_first_day_that_fails(job_file, asking_for_rows):
    job = load_job(job_file(asking_for_rows, visits([day for day in DAYS if day != DAYS[2]])))
    reported = []
    with pytest.raises(InputCheckError, match="2020-02-01"):
        backfill(job, DAYS[0], DAYS[-1], progress=reported.append)
    assert [period.error is not None for period in reported] == [False, False, True]
    assert [period for period, _, _ in entries(job)] == ["2020-01-30", "2020-01-31"]


def test_with_keep_going_a_day_whose_input_check_fails_is_left_out_and_named(job_file, asking_for_rows):
    job = load_job(job_file(asking_for_rows, visits([day for day in DAYS if day not in (DAYS[0], DAYS[2])])))
    done = backfill(job, DAYS[0], DAYS[-1], keep_going=True)
    assert [failure.day for failure in done.failed] == [DAYS[0], DAYS[2]]
    assert all(isinstance(failure.error, InputCheckError) for failure in done.failed)
    assert len(done.published) == 4
    assert [state for _, state, _ in entries(job)] == ["published"] * 4  # nothing was charged for the others


def test_keep_going_does_not_go_on_after_a_refusal(job_file):
    job = load_job(job_file(NOISED, visits()))
    with pytest.raises(BudgetExceededError):
        backfill(job, DAYS[0], DAYS[-1], keep_going=True)
    assert len(entries(job)) == 4


def test_a_backfill_that_broke_goes_on_where_it_was(job_file, evident, monkeypatch):
    job = load_job(job_file(evident, visits()))
    publish, calls = session.publish, []

    def locked_at_the_third(*arguments, **names):
        calls.append(1)
        if len(calls) == 3:
            raise TemporaryError("locked")
        return publish(*arguments, **names)

    with monkeypatch.context() as patch:
        patch.setattr(session, "publish", locked_at_the_third)
        with pytest.raises(TemporaryError):
            backfill(job, DAYS[0], DAYS[-1])
    done = backfill(job, DAYS[0], DAYS[-1])
    assert (done.replayed, done.published) == (DAYS[:2], DAYS[2:])


@pytest.mark.slow
def test_a_noised_backfill_can_be_revised_and_is_charged_again(job_file):
    text = NOISED.replace("epsilon = 2.0", "epsilon = 2.5")
    job = load_job(job_file(text, visits()))
    backfill(job, DAYS[0], DAYS[1])
    late = pd.concat([visits(), pd.DataFrame({"day": [DAYS[0]], "person": ["late"], "town": ["Ås"]})])
    job = load_job(job_file(text, late))
    done = backfill(job, DAYS[0], DAYS[1], revise=True)
    assert done.published == DAYS[:2]
    assert done.total.worst_case.parameters == (2.0, 0.0)
    assert [revision for _, _, revision in entries(job)] == [1, 1, 2, 2]
    with pytest.raises(BudgetExceededError):
        backfill(job, DAYS[0], DAYS[1], revise=True)


def test_late_data_of_a_noiseless_release_are_refused(job_file, evident):
    job = load_job(job_file(evident, visits()))
    run_job(job, DAYS[0])
    with pytest.raises(DifferencingError):
        run_job(job, DAYS[0], revise=True)
    assert len(entries(job)) == 1


def test_the_days_that_a_schedule_missed(job_file, evident):
    job = load_job(job_file(evident, visits()))
    assert missed_days(job, DAYS[3]) == ()
    assert not Path(job.ledger).exists()
    run_job(job, DAYS[0])
    assert missed_days(job, DAYS[3]) == DAYS[1:3]
    assert missed_days(job, DAYS[1]) == ()
    run_job(job, DAYS[2])
    assert missed_days(job, DAYS[5]) == DAYS[3:5]  # a day before the latest one was left out on purpose
    assert missed_days(job, DAYS[0]) == ()


def test_days_without_rows_are_published_and_passed_over_like_others(job_file, evident):
    job = load_job(job_file(evident, visits([DAYS[0], DAYS[4]])))
    backfill(job, DAYS[0], DAYS[1])
    assert missed_days(job, DAYS[4]) == DAYS[2:4]
    done = backfill(job, *missed_days(job, DAYS[4]))
    assert (done.published, done.failed) == (DAYS[2:4], ())
    assert missed_days(job, DAYS[4]) == ()


def test_what_another_job_has_published_is_not_what_this_one_did(job_file, evident):
    run_job(load_job(job_file(evident, visits())), DAYS[0])
    other = load_job(job_file(evident.replace("k = 5", "k = 6"), visits()))
    assert missed_days(other, DAYS[3]) == ()


def test_the_last_day_is_not_before_the_first(job_file):
    with pytest.raises(ArgumentError, match="swap"):
        backfill(load_job(job_file()), DAYS[1], DAYS[0])


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (date(26, 1, 1), date(2020, 1, 1), "0026-01-01 to 2020-01-01 are more than 100 years"),
        (date(26, 1, 1), date(2999, 1, 1), "2999-01-01 is not over"),
        (DAYS[0], date(2999, 1, 1), "2999-01-01 is not over"),
        (DAYS[0], date(2020, 2, 4), r"2020-02-04 is not over .* the latest that is over \(date 2020-02-03\)"),
    ],
)
def test_a_span_is_checked_before_anything_is_opened(job_file, evident, tmp_path, first, last, words):
    job = load_job(job_file(evident, visits()))
    Path(job.source.files[0]).unlink()
    with clock_at(datetime(2020, 2, 4, 22, 59, tzinfo=UTC), "Europe/Oslo"), pytest.raises(ArgumentError, match=words):
        backfill(job, first, last)
    assert os.listdir(tmp_path) == ["job.toml"]


@pytest.mark.slow
def test_a_hundred_years_are_not_too_many_and_a_closed_end_is_passed_over(job_file, evident):
    text = evident.replace('"day"', '"day", closed = ["saturday", "sunday"]')
    job = load_job(job_file(text, visits()))
    with clock_at(datetime(2020, 2, 1, 12, tzinfo=UTC), "UTC"):  # a Saturday
        days = days_of(job, date(1920, 2, 2), date(2020, 2, 2))
    assert (days[0], days[-1]) == (date(1920, 2, 2), date(2020, 1, 31))


def test_many_periods_are_looked_up_a_part_at_a_time(job_file, evident, monkeypatch):
    job = load_job(job_file(evident, visits()))
    monkeypatch.setattr(session, "_MAX_PERIODS_TOGETHER", 2)
    together = []
    monkeypatch.setattr(RelationSource, "together", lambda self, period, days: together.append(days))
    assert backfill(job, DAYS[0], DAYS[4]).published == DAYS[:5]
    assert together == [DAYS[:2], DAYS[2:4], DAYS[4:5]]


def test_a_session_says_where_a_job_declares_other_terms_than_the_ledger_has(job_file):
    job = load_job(job_file(NOISED, visits()))
    with JobSession(job) as first:
        assert first.remarks == ()
        first.run(DAYS[0])
    with JobSession(load_job(job_file(NOISED, visits()))) as same:
        assert same.remarks == ()
    changed = NOISED.replace("epsilon = 2.0", "epsilon = 9.0")
    with JobSession(load_job(job_file(changed, visits()))) as other:
        (remark,) = other.remarks
        assert "another budget" in remark


def test_a_session_says_where_days_of_the_ledger_may_begin_elsewhere(job_file):
    run_job(load_job(job_file(NOISED, visits())), DAYS[0])
    zoned = load_job(job_file(NOISED.replace('"day"', '"day", time_zone = "Asia/Tokyo"'), visits()))
    for remarks in (1, 0):
        with JobSession(zoned) as session:
            assert len(session.remarks) == remarks
            session.run(DAYS[1])


def test_a_session_asks_about_a_day_before_the_ledger_begins_and_never_whether_it_has_rows(job_file):
    job = load_job(job_file(NOISED, visits([DAYS[1], DAYS[2]])))
    run_job(job, DAYS[1])
    for day in (DAYS[1], DAYS[2], DAYS[3]):  # the last has no rows
        with JobSession(job, day=day) as session:
            assert session.remarks == ()
    for frame in (visits([DAYS[1]]), visits([DAYS[0], DAYS[1]])):
        with JobSession(load_job(job_file(NOISED, frame)), day=DAYS[0]) as session:
            (remark,) = session.remarks
            assert remark.startswith(f"{DAYS[0]} is before {DAYS[1]}, the earliest period of data set 'visits'")
