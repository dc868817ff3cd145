"""What one question may use: time, memory, cells. Nobody else waits for it, and it says nothing about the data."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from analyst import count, database, histogram, policy, rows
from forked_worker import Forked

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import Target
from pkdp_pipeline.errors import ArgumentError, ConfigError, NotCertifiableError, PkdpError, TemporaryError
from pkdp_pipeline.extras.gate import worker as worker_module
from pkdp_pipeline.extras.gate.gate import Gate
from pkdp_pipeline.extras.gate.policy import Limits
from pkdp_pipeline.extras.gate.worker import Job, Worker
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.releases.publish import Certifying
from pkdp_pipeline.releases.release import Release


@contextmanager
def kept_workers(path: Path) -> Iterator[Callable[[int], None]]:
    """Let gates of this database have the processes that others did not need; give what starts so many beforehand.

    To start one takes longer than most of what is asked of it.
    """
    idle: list[Kept] = []

    class Kept(Forked):
        works = False

        def do(self, *arguments: Any, **limits: Any) -> Any:
            self.works = True
            answer = super().do(*arguments, **limits)
            self.works = False
            return answer

        def end(self) -> None:
            if self.works or not self.alive:
                super().end()
            elif self not in idle:
                idle.append(self)

    def started(database: Path, memory: str) -> Worker:
        assert (database, memory) == (path.resolve(), Limits().memory)
        return idle.pop() if idle else Kept(database, memory)

    def start(number: int) -> None:
        while len(idle) < number:
            idle.append(Kept(path.resolve(), Limits().memory))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker_module, "Worker", started)
        yield start
    for worker in idle:
        Worker.end(worker)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Callable[[int], None]]]:
    """A database with a second table, `slowly`, which reads a file beside it."""
    path = database(tmp_path_factory.mktemp("people"))
    let_hang(path, hang=False)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE VIEW slowly AS SELECT uid, flag AND yes AS flag FROM events, read_csv("
            f"'{path.with_name('yes.csv')}', auto_detect = false, header = true, columns = {{'yes': 'BOOLEAN'}})"
        )
    with kept_workers(path) as start:
        yield path, start


@pytest.fixture
def path(people: tuple[Path, Callable[[int], None]]) -> Path:
    """That database, which no test changes, and a process that reads it."""
    path, start = people
    let_hang(path, hang=False)
    start(1)
    return path


def let_hang(path: Path, *, hang: bool) -> None:
    """Make the table `slowly` wait for rows that never come, or not any more."""
    file = path.with_name("yes.csv")
    file.unlink(missing_ok=True)
    if hang:
        os.mkfifo(file)
    else:
        file.write_text("yes\ntrue\n", encoding="utf-8")


def rules(folder: Path, **limits: Any) -> dict[str, Any]:
    tables = {**policy()["tables"], "slowly": {"unit": "uid", "columns": ["flag"], "k": 20}}
    budget = {"epsilon": 2.0, "delta": 1e-6, "part": "worst_case"}
    return policy(tables=tables, budget=budget, ledger=str(folder / "ledger.sqlite"), period="2020", limits=limits)


HANGING = {"table": "slowly", "histogram": "flag", "noise": 0.2, "release_threshold": 90}


def charged(folder: Path) -> list[str]:
    """Return what the ledger says of its entries, seen from outside."""
    with Ledger.open(folder / "ledger.sqlite") as ledger:
        return [entry.state for entry in ledger.entries(given_back=True)]


def until(fact: Callable[[], object]) -> None:
    ends = time.monotonic() + 300
    while not fact():
        assert time.monotonic() < ends
        time.sleep(0.1)


@pytest.fixture
def out_of_time(people: tuple[Path, Callable[[int], None]], monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The moment at which the time of every question that is being counted is over, and not before."""
    _, start = people
    start(2)
    over, received = threading.Event(), Worker._received

    def waiting(worker: Worker, seconds: float | None) -> object:
        while not (worker._connection.poll(0.02) or over.is_set()):
            pass
        return received(worker, 0.0 if over.is_set() else None)

    monkeypatch.setattr(Worker, "_received", waiting)
    return over


def test_a_question_that_hangs_is_ended_hangs_nobody_and_condemns_no_table(
    path: Path, tmp_path: Path, out_of_time: threading.Event
) -> None:
    raised: list[PkdpError] = []
    with Gate(path, policy=rules(tmp_path, seconds=600.0)) as gate:
        let_hang(path, hang=True)

        def hang() -> None:
            with pytest.raises(PkdpError, match="was not answered; ask the curator") as caught:
                gate.ask(HANGING)
            raised.append(caught.value)

        asking = threading.Thread(target=hang)
        asking.start()
        until(lambda: charged(tmp_path))  # it is being counted
        gate.ask(count(noise=0.3))
        assert asking.is_alive()
        out_of_time.set()
        asking.join(timeout=300)
        assert type(raised[0]) is PkdpError
        assert gate.unreadable == ()
        assert charged(tmp_path) == ["reserved", "published"]
        out_of_time.clear()
        let_hang(path, hang=False)
        # Asked again it takes over what is charged; its certificate is made anew, beside what came between.
        assert [row[0] for row in rows(gate.ask(HANGING))] == [False, True]
        assert [state for state in charged(tmp_path) if state != "given_back"] == ["published"] * 2
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.verify()


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[tuple[Gate, Path]]:
    """A gate with little memory, of which a file says how many people are in its table."""
    path, csv = database(tmp_path), tmp_path / "people.csv"
    csv.write_text("n\n10\n", encoding="utf-8")
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE VIEW many AS SELECT hash(i) AS uid, true AS flag FROM range((SELECT n FROM '{csv}')) t(i)"
        )
    tables = {"many": {"unit": "uid", "columns": ["flag"], "k": 2}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker_module, "Worker", Worker)
        with Gate(path, policy=policy(tables=tables, limits={"memory": "10MB"})) as gate:
            yield gate, csv


def test_running_out_of_memory_is_not_told_and_condemns_no_table(crowded: tuple[Gate, Path]) -> None:
    gate, csv = crowded
    csv.write_text("n\n1000000\n", encoding="utf-8")
    with pytest.raises(PkdpError, match="was not answered") as failure:
        gate.ask({"table": "many", "count": True, "k": 2})
    assert type(failure.value) is PkdpError
    assert gate.unreadable == ()
    assert [entry.state for entry in gate._ledger.entries()] == ["reserved"]
    # A gate that is opened says so, and condemns it as little.
    with pytest.raises(ConfigError, match=r"table 'many' cannot be read with limits\.memory = '10MB'"):
        gate._read_tables()
    assert gate.unreadable == ()


def test_a_worker_that_is_killed_while_it_counts_says_nothing_about_the_table(path: Path, tmp_path: Path) -> None:
    with Gate(path, policy=rules(tmp_path)) as gate:
        let_hang(path, hang=True)

        def kill() -> None:
            until(lambda: charged(tmp_path))
            for worker in gate._workers._all:
                os.kill(worker._process.pid, signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        with pytest.raises(PkdpError, match="was not answered"):
            gate.ask(HANGING)
        killing.join()
        assert gate.unreadable == ()
        gate.ask(count(noise=0.3))


@pytest.fixture
def other_gate(path: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A gate in a process of its own, which names the process that reads for it, and asks when it is told to."""
    script = (
        "import sys, threading, time, pkdp_pipeline.duckdb as d\n"
        f"gate = d.Gate({str(path)!r}, policy={rules(tmp_path)!r})\n"
        "print(*[worker._process.pid for worker in gate._workers._all], flush=True)\n"
        "input()\n"
        f"gate.ask({HANGING!r})\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        until(lambda: process.stdout in select.select([process.stdout], [], [], 0)[0])
        yield process


def test_a_worker_ends_with_its_gate_also_while_it_counts(
    path: Path, tmp_path: Path, other_gate: subprocess.Popen[str]
) -> None:
    assert other_gate.stdin is not None
    assert other_gate.stdout is not None
    worker = int(other_gate.stdout.readline())
    let_hang(path, hang=True)
    other_gate.stdin.write("\n")
    other_gate.stdin.flush()
    until(lambda: charged(tmp_path))
    time.sleep(0.3)
    other_gate.kill()
    until(lambda: not Path(f"/proc/{worker}").exists() or " Z " in Path(f"/proc/{worker}/stat").read_text())
    # What was reserved when it was killed is taken over.
    let_hang(path, hang=False)
    with Gate(path, policy=rules(tmp_path)) as gate:
        assert [row[0] for row in rows(gate.ask(HANGING))] == [False, True]
        assert charged(tmp_path) == ["published"]


def test_a_gate_whose_workers_all_count_is_busy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Gate(path, policy=policy(limits={"seconds": 0.2})) as gate:
        for _ in range(4):
            gate._workers._places.acquire()
        head = gate._ledger.head()
        with pytest.raises(TemporaryError, match="busy"):
            gate.ask(histogram())
        assert gate._ledger.head() == head  # nothing is charged
        gate._workers._places.release()
        monkeypatch.setattr(Worker, "do", lambda *_, **__: pytest.fail("a replay needs no data"))


def test_combinations_of_public_values_are_counted_before_they_are_made(path: Path) -> None:
    """A few columns with many public values each have more combinations than memory has room for."""
    many = [str(value) for value in range(3_000)]
    table = {"unit": "uid", "columns": ["country", "note"], "k": 20, "domains": {"country": many, "note": many}}
    with Gate(path, policy=policy(tables={"events": table})) as gate:
        with pytest.raises(ArgumentError, match="more than the 100000 cells that the policy allows"):
            gate.ask(histogram(["country", "note"]))
        assert len(gate.ask(histogram()).table) == 3_000
    with pytest.raises(ConfigError, match=r"domains\.country has more values than the 2999 of limits\.cells"):
        Gate(path, policy=policy(tables={"events": table}, limits={"cells": 2_999}))


@pytest.fixture(scope="module")
def noisy(people: tuple[Path, Callable[[int], None]]) -> Iterator[Gate]:
    """A gate that answers many questions."""
    path, _ = people
    budget = {"epsilon": 50.0, "delta": 1e-6, "part": "worst_case"}
    with Gate(path, policy=policy(limits={"seconds": 600.0}, budget=budget)) as gate:
        yield gate


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1_500 + "flag" + ")" * 1_500,
        "NOT " * 900 + "flag",
        "flag" + " OR flag" * 400,
        " AND ".join(f"(country = '{number}' OR flag)" for number in range(120)),
        "country IN (" + ", ".join(f"'{number}'" for number in range(700)) + ")",
        "country = '" + "%a" * 1_900 + "'",
        "country = '" + "\\" * 1_900 + "'''",
        "country = 'a\x00b'",
        "country = '\ud800'",
        "flag " + "x" * 100_000,
    ],
)
def test_a_hostile_filter_harms_nobody(noisy: Gate, text: str) -> None:
    began = time.process_time()
    with suppress(PkdpError):
        noisy.ask(count(filter=text, noise=0.5))
    assert time.process_time() - began < 20
    assert noisy.unreadable == ()
    assert noisy.ask(count(noise=0.5)).table is not None


def test_numbers_whose_certificates_take_for_ever_are_refused(path: Path) -> None:
    with Gate(path, policy=policy()) as gate:
        for further in ({"k": 10**9}, {"k": 10**400}, {"k": 25, "k_complement": 10**9}):
            with pytest.raises(ArgumentError, match="at most 100000000"):
                gate.ask(count(**further))


def test_a_certificate_is_the_work_of_a_worker_and_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process computes none; one that takes too long charges nothing and condemns no table."""
    do, work = Worker.do, []

    def unhurried(worker: Worker, job: Any, *, seconds: float | None) -> Any:
        work.append(job)
        if not isinstance(job, Certifying):
            return do(worker, job, seconds=seconds)
        os.kill(worker._process.pid, signal.SIGSTOP)  # it cannot be quicker than no time
        return do(worker, job, seconds=0.0)

    with Gate(path, policy=policy()) as gate:
        head = gate._ledger.head()
        with monkeypatch.context() as patched:
            patched.setattr(Worker, "do", unhurried)
            with pytest.raises(NotCertifiableError, match=r"in time: .* Nothing was read or charged"):
                gate.ask(histogram())
        assert not any(isinstance(job, Job) and job.task == "count" for job in work)
        assert (gate._ledger.head(), gate.unreadable) == (head, ())
        for module, name in ((Certificate, "_document"), (Target, "hold"), (Certificate, "sentence")):
            monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("computed outside of a worker"))
        release = gate.ask(histogram())
        assert gate.ask(histogram()).to_bytes() == release.to_bytes()
        assert gate.total().to_json()
    assert release.certificate.to_json()


def test_nobody_waits_for_a_certificate(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one is computed, other questions are answered, replayed and refused, and so are totals."""
    do, computing, goes_on = Worker.do, threading.Event(), threading.Event()
    released: list[Release] = []

    def held_up(worker: Worker, job: Any, **limits: Any) -> Any:
        if isinstance(job, Certifying) and job.mechanism.k == 21:
            computing.set()
            assert goes_on.wait(60)
        return do(worker, job, **limits)

    budget = {"epsilon": 2.0, "delta": 1e-6, "part": "worst_case"}
    with Gate(path, policy=policy(budget=budget)) as gate:
        released.append(gate.ask(count(noise=0.5)))
        monkeypatch.setattr(Worker, "do", held_up)
        slow_question = histogram("flag", k=21, noise=0.5, release_threshold=60)
        asking = threading.Thread(target=lambda: released.append(gate.ask(slow_question)))
        asking.start()
        assert computing.wait(60)
        with pytest.raises(ArgumentError, match="at least 20"):
            gate.ask(count(k=1))
        assert gate.ask(count(noise=0.5)).replayed
        gate.ask(count(noise=0.25))
        assert gate.total().worst_case.epsilon(0.0) == pytest.approx(0.75)
        assert asking.is_alive()
        goes_on.set()
        asking.join(60)
        # Its certificate names the head of the ledger as it was when it was charged.
        entries = list(gate._ledger.entries())
        assert [entry.state for entry in entries] == ["published"] * 3
        assert entries[-1].head == Release.from_bytes(released[-1].to_bytes()).certificate.context.head
        gate._ledger.verify()


def test_a_defect_in_a_certificate_condemns_no_table(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Worker, job: Any, **limits: Any) -> Any:
        return do(self, partial(os._exit, 3) if isinstance(job, Certifying) else job, **limits)

    do = Worker.do
    with Gate(path, policy=policy()) as gate:
        monkeypatch.setattr(Worker, "do", broken)
        with pytest.raises(PkdpError, match="was not answered"):
            gate.ask(histogram())
        assert gate.unreadable == ()
        assert list(gate._ledger.entries()) == []
