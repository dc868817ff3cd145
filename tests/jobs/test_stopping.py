from __future__ import annotations

import os
import signal
import sqlite3
import threading
from datetime import date
from pathlib import Path

import pytest

from pkdp_pipeline.jobs import JobSession, load_job, session
from pkdp_pipeline.jobs.steps import Stopped, Stopping
from pkdp_pipeline.ledger import Ledger


@pytest.fixture
def stopping():
    stopping_signals = Stopping()
    with stopping_signals.listening():
        yield stopping_signals


def begun(job) -> None:
    """Make the ledger that a session would make with its first release."""
    Path(job.ledger).parent.mkdir()
    Ledger.open(job.ledger, dataset=job.dataset).close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_takes_effect_at_once_while_data_are_read(stopping, number, code):
    done = []

    def read() -> None:
        os.kill(os.getpid(), number)
        done.append("went on")

    with pytest.raises(Stopped) as caught, stopping.reading():
        read()
    assert done == []
    assert caught.value.exit_code == code
    assert caught.value.signal.name in ("SIGTERM", "SIGINT")


def test_elsewhere_the_step_that_has_begun_is_finished(stopping):
    os.kill(os.getpid(), signal.SIGTERM)
    done = ["finished"]
    with pytest.raises(Stopped):
        stopping.check()
    assert done == ["finished"]
    with pytest.raises(Stopped), stopping.reading():
        done.append("read")
    assert done == ["finished"]


def test_a_second_signal_takes_effect_at_once(stopping):
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Stopped):
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_stop_that_a_library_makes_an_error_of_is_a_stop_all_the_same(stopping):
    def read() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except BaseException:
            raise RuntimeError("could not read 4711") from None

    with pytest.raises(Stopped), stopping.reading():
        read()


def test_an_error_without_a_signal_is_passed_on(stopping):
    with pytest.raises(RuntimeError, match="broken"), stopping.reading():
        raise RuntimeError("broken")
    stopping.check()


def test_no_signal_is_taken_for_an_error():
    assert not issubclass(Stopped, Exception)


def test_handlers_are_put_back_and_other_threads_left_alone():
    before = signal.getsignal(signal.SIGTERM)
    stopping = Stopping()
    with stopping.listening():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
    handlers = []

    def elsewhere() -> None:
        with Stopping().listening():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert handlers == [before]


def test_a_signal_ends_a_long_query_of_the_source_and_nothing_is_charged(stopping, tmp_path):
    import duckdb

    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute("CREATE TABLE rows AS SELECT i FROM range(3000000) r(i)")
    # Far more rows than can be counted in the time of a test.
    query = "SELECT DATE '2020-01-01' + (a.i * b.i % 2)::INT AS day, a.i AS person FROM rows a, rows b"
    (tmp_path / "job.toml").write_text(f"""
        dataset = "visits"
        source = {{ duckdb = "rows.duckdb", query = "{query}" }}
        period = {{ column = "day" }}
        unit = "person"
        ledger = "ledger.sqlite"
        release = [{{ name = "people", noise = {{ epsilon = 0.5 }} }}]
        output = {{ directory = "out" }}
    """)
    job = load_job(tmp_path / "job.toml")
    with JobSession(job, stopping=stopping) as session:
        timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        with pytest.raises(Stopped):
            session.run(date(2020, 1, 1))
        timer.join()
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert list(ledger.entries()) == []


@pytest.mark.parametrize("step", ["plan_job", "plan_day", "takewhile"])
def test_a_signal_takes_effect_at_once_while_periods_are_planned_and_looked_up(stopping, job_file, monkeypatch, step):
    real, done = getattr(session, step), []

    def told_to_stop(*arguments, **names):
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("went on")
        return real(*arguments, **names)

    monkeypatch.setattr(session, step, told_to_stop)
    job, day = load_job(job_file()), date(2020, 1, 1)
    with pytest.raises(Stopped), JobSession(job, day=day, stopping=stopping) as opened:
        opened.run(day)
    assert done == []
    assert not Path(job.ledger).exists()


def test_a_signal_ends_the_wait_for_a_ledger_that_is_locked(stopping, job_file):
    job = load_job(job_file())
    begun(job)
    with JobSession(job, stopping=stopping) as session:
        with sqlite3.connect(job.ledger, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
            timer.start()
            with pytest.raises(Stopped):
                session.run(date(2020, 1, 1))
            timer.join()
            other.execute("ROLLBACK")
        other.close()
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert list(ledger.entries()) == []


def test_a_wait_without_a_signal_ends_with_the_lock(stopping, job_file):
    job = load_job(job_file())
    begun(job)
    with JobSession(job, stopping=stopping) as session:
        other = sqlite3.connect(job.ledger, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.5, other.execute, ("ROLLBACK",))
        timer.start()
        assert not session.run(date(2020, 1, 1)).replayed
        timer.join()
        other.close()
