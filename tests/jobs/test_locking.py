from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import date

import pytest

from pkdp_pipeline.errors import ConfigError, LedgerError, TemporaryError
from pkdp_pipeline.jobs import JobSession, load_job, run_job
from pkdp_pipeline.jobs.outputs.files import LOCK_FILE, job_lock

DAY = date(2020, 1, 1)
HOLDER = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1], timeout=0, mode=0o644):  # as job_lock does; to import that takes a second
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of a folder."""
    folder = tmp_path / "out"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, folder / LOCK_FILE], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_run_at_the_same_time_is_temporary_and_leaves_no_trace(job_file, holder, tmp_path):
    job = load_job(job_file())
    with pytest.raises(TemporaryError, match="another run"):
        run_job(job, DAY)
    assert os.listdir(tmp_path / "out") == [LOCK_FILE]


def test_the_lock_of_a_run_that_was_killed_does_not_block(job_file, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    job = load_job(job_file())
    with JobSession(job):
        pass


def test_a_session_holds_the_lock_until_it_ends_and_after_an_error(job_file):
    job = load_job(job_file())
    run_job(job, DAY)  # a first run makes folder and lock when its day has passed its check
    with JobSession(job), pytest.raises(TemporaryError), JobSession(job):
        pass
    with pytest.raises(KeyError), JobSession(job):
        raise KeyError
    with JobSession(job):
        pass


def test_a_ledger_that_cannot_be_opened_leaves_no_lock_behind(job_file, tmp_path):
    job = load_job(job_file())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "ledger.sqlite").write_bytes(b"no ledger" * 100)
    with pytest.raises(LedgerError):
        run_job(job, DAY)
    with job_lock(tmp_path / "out"):
        pass


def test_a_folder_that_cannot_be_locked_is_a_config_error(tmp_path):
    (tmp_path / LOCK_FILE).mkdir()
    with pytest.raises(ConfigError, match="cannot be locked"), job_lock(tmp_path):
        pass


def test_two_jobs_with_folders_of_their_own_run_side_by_side(job_file, basic):
    first = load_job(job_file())
    other = load_job(job_file(basic.replace('directory = "out"', 'directory = "other"')))
    with JobSession(first), JobSession(other):
        pass
    assert not os.path.exists(first.ledger)
