"""AuditLog: lines that stay, for the curator alone, without data; no answer where they cannot be written."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
import time

import pytest

from pkdp_pipeline.errors import ConfigError, TemporaryError
from pkdp_pipeline.extras.gate.records import AuditLog, verify_audit_log


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit.jsonl"


def test_a_line_says_when_who_what_and_with_which_outcome(path):
    log = AuditLog(path)
    question = {"table": "ö\n", "count": True}
    log.write("asked", request="1", token="ana", question=question)
    log.write("answered", request="1", token="ana", release="a", status=200)
    question_line, answer_line = lines(path)
    assert question_line.pop("time").endswith("+00:00")
    assert question_line.pop("previous") == "0" * 64
    assert question_line == {"outcome": "asked", "request": "1", "token": "ana", "question": question}
    assert answer_line.pop("time") >= "2013"
    assert answer_line.pop("previous") == hashlib.sha256(path.read_bytes().splitlines()[0]).hexdigest()
    assert answer_line == {"outcome": "answered", "request": "1", "token": "ana", "release": "a", "status": 200}


def test_the_owner_alone_reads_and_writes_it(path):
    before = os.umask(0)
    try:
        AuditLog(path).write("asked")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_log_that_others_can_open_is_refused(path, mode):
    path.touch()
    path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        AuditLog(path)


def test_what_is_there_is_kept_and_a_line_cut_off_stays_alone(path):
    path.write_text('{"outcome": "old"}\n{"outcome": "cut o')
    path.chmod(0o600)
    AuditLog(path).write("new")
    first, cut, last = path.read_text().splitlines()
    assert json.loads(first) == {"outcome": "old"}
    assert cut == '{"outcome": "cut o'
    assert json.loads(last)["outcome"] == "new"


def test_a_log_that_was_renamed_is_begun_anew(path):
    log = AuditLog(path)
    log.write("one")
    path.rename(path.with_suffix(".1"))
    log.write("two")
    assert [line["outcome"] for line in lines(path)] == ["two"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_line_is_on_the_disk_when_write_returns(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    log = AuditLog(path)
    log.write("one")
    log.write("two")
    sizes = [len(line) + 1 for line in path.read_text().splitlines()]
    assert synced == [sizes[0], sum(sizes)]


def test_lines_of_many_threads_do_not_mix(path):
    logs = [AuditLog(path), AuditLog(path)]
    text = "x" * 5000

    def write(number):
        for turn in range(20):
            logs[number % 2].write("asked", request=f"{number}-{turn}", question=text)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = lines(path)
    assert {line["request"] for line in written} == {f"{number}-{turn}" for number in range(6) for turn in range(20)}
    assert {line["question"] for line in written} == {text}


@pytest.mark.parametrize("full", [False, True])
def test_lines_of_threads_that_wait_share_a_sync_and_its_failure(path, monkeypatch, full):
    log, syncs, outcomes = AuditLog(path), [], []
    entered, go = threading.Event(), threading.Event()

    def sync(_):
        syncs.append(len(log._waiting))
        entered.set()
        assert go.wait(300)
        if full and len(syncs) == 2:
            raise OSError(28, "No space left on device")

    def write(number):
        try:
            log.store(log.line("asked", request=number), log.line("answered", request=number))
            outcomes.append("stored")
        except TemporaryError:
            outcomes.append("lost")

    monkeypatch.setattr(os, "fsync", sync)
    threads = [threading.Thread(target=write, args=(number,)) for number in range(5)]
    threads[0].start()
    assert entered.wait(300)  # the others come while the first line is on its way to the disk
    for thread in threads[1:]:
        thread.start()
    while len(log._waiting) < 4:
        time.sleep(0.001)
    assert outcomes == []
    go.set()
    for thread in threads:
        thread.join()
    assert len(syncs) == 2
    assert sorted(outcomes) == ["lost"] * 4 * full + ["stored"] * (5 - 4 * full)
    log.write("asked", request=5)
    assert verify_audit_log(path)[0] == 11
    written = lines(path)
    assert {line["request"] for line in written} == set(range(6))
    pairs = [(first["request"], second["request"]) for first, second in zip(written[:-1:2], written[1::2], strict=True)]
    assert all(first == second for first, second in pairs)


def failed_on(value):
    try:
        try:
            raise KeyError(value)
        except KeyError as error:
            raise ValueError(f"cannot convert {value}") from error
    except ValueError as error:
        return error


def test_an_unexpected_error_is_written_without_its_text(path):
    error = failed_on("secret value")
    AuditLog(path).write("failed", request="7", error=error, incident="7")
    assert "secret" not in path.read_text()
    line = lines(path)[0]
    assert (line["error"], line["incident"]) == ("ValueError", "7")
    assert [frame.split(" ")[0] for frame in line["where"]] == ["ValueError", "KeyError"]
    assert all("test_audit_log.py:" in frame for frame in line["where"])


def test_causes_in_a_circle_end(path):
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    AuditLog(path).write("failed", error=first, incident="7")
    assert lines(path)[0]["where"] == ["ValueError", "KeyError"]


def test_the_chain_goes_through_writers_crashes_and_rotated_files(path):
    log, other = AuditLog(path), AuditLog(path)
    log.write("one")
    before = path.with_suffix(".1")
    path.rename(before)
    log.write("two")
    assert lines(path)[0]["previous"] == verify_audit_log(before)[1]
    other.write("three")
    log.write("four")
    whole = path.read_bytes()
    for cut in (3, 40, 100):  # a crash in the middle of a line
        path.write_bytes(whole)
        AuditLog(path).write("five")
        torn = path.read_bytes()[: len(whole) + cut]
        path.write_bytes(torn)
        assert verify_audit_log(path)[0] == 4
        AuditLog(path).write("six")
        assert path.read_bytes().startswith(torn + b"\n")
        last = path.read_bytes().splitlines()[-1]
        assert verify_audit_log(path) == (5, hashlib.sha256(last).hexdigest())


def test_every_change_of_a_log_is_seen(path):
    log = AuditLog(path)
    for number in range(5):
        log.write("asked", request=str(number))
    whole = path.read_bytes().splitlines(keepends=True)
    assert verify_audit_log(path)[0] == 5
    changes = [
        *([*whole[:n], *whole[n + 1 :]] for n in range(1, 4)),  # a line removed
        *([*whole[:n], whole[n].replace(b"asked", b"other"), *whole[n + 1 :]] for n in range(4)),
        *([*whole[:n], whole[n][:20] + b"\n", *whole[n + 1 :]] for n in range(4)),
        *([*whole[:n], b"\n", *whole[n:]] for n in range(5)),
        *([*whole[:n], whole[n], *whole[n:]] for n in range(5)),
        [whole[0], whole[2], whole[1], *whole[3:]],
    ]
    for changed in changes:
        path.write_bytes(b"".join(changed))
        with pytest.raises(ConfigError, match="does not follow"):
            verify_audit_log(path)


@pytest.mark.parametrize("make", ["folder", "link", "pipe", "missing folder"])
def test_only_a_plain_file_can_be_a_log(tmp_path, make):
    path = tmp_path / "log"
    if make == "folder":
        path.mkdir()
    elif make == "link":
        (tmp_path / "elsewhere").touch(0o600)
        path.symlink_to(tmp_path / "elsewhere")
    elif make == "pipe":
        os.mkfifo(path, 0o600)
    else:
        path = tmp_path / "nowhere" / "log"
    with pytest.raises(ConfigError):
        AuditLog(path)


def test_what_cannot_be_written_is_said(path, monkeypatch):
    log = AuditLog(path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TemporaryError):
        log.write("asked", question="x")


def test_a_new_file_of_the_same_size_is_another_file(path):
    """Two services write to one log, and it is moved away between their lines."""
    first, second = AuditLog(path), AuditLog(path)
    first.write("asked", question="x")
    path.rename(path.with_suffix(".1"))
    second.write("asked", question="y")
    assert path.stat().st_size == path.with_suffix(".1").stat().st_size
    first.write("asked", question="z")
    assert verify_audit_log(path)[0] == 2
