"""What goes wrong at night: processes that race or are killed, disks that fill, files that are damaged.

Quick versions always run; the long ones are marked slow.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from ledger_samples import NOISED, certificate, offer_for, publish, reserve, standing
from thorough import thinned

from pkdp_pipeline import clock
from pkdp_pipeline.errors import BudgetExceededError, LedgerError, PkdpError, TemporaryError
from pkdp_pipeline.ledger import Ledger, Reservation
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.model.evidence import IndependentGivenHabits

HABITS = IndependentGivenHabits()
slow = pytest.mark.slow
postgres = [pytest.mark.postgres, pytest.mark.xdist_group("postgres")]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=postgres)])
def location(request):
    """Where a new ledger may be made."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        Ledger.open(url).close()  # what the children need is imported once
        return url
    return request.getfixturevalue("path")


def fork(work, *arguments):
    """Run `work` in a child of this warm process; its status is 0 when it returned."""
    child = os.fork()
    if child:
        return child
    try:
        work(*arguments)
        os._exit(0)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)


def period(number):
    return (datetime.date(1990, 1, 1) + datetime.timedelta(days=number)).isoformat()


# -- Many processes ---------------------------------------------------------------------------------------------

RELEASES = 10
BUDGET = Budget(epsilon=0.1 * RELEASES + 0.05, delta=1e-9, part="worst_case")


def spend(location, folder, name, keys):
    """Publish under the budget, in an order of one's own, and write down what was shown to the world."""
    order = random.Random(name)
    order.shuffle(keys)
    with Ledger.open(location, budget=BUDGET) as ledger:
        for key in keys:
            what = standing(period=period(int(key)), noised=True)
            with contextlib.suppress(BudgetExceededError):
                entry, _ = retried(lambda key=key, what=what: publish(ledger, key, what, f"{name} {key}".encode()))
                Path(folder, f"{key} {name}").write_bytes(entry.content)


def retried(call):
    while True:
        with contextlib.suppress(TemporaryError):
            return call()


@pytest.mark.parametrize(("processes", "attempts"), [(6, 12), pytest.param(16, 200, marks=slow)])
def test_many_processes_never_exceed_the_budget(location, tmp_path, processes, attempts):
    out = tmp_path / "out"
    out.mkdir()
    certificate(NOISED).to_json()
    shared, keys = ["0", "1"], iter(range(2, 10_000))
    children = [
        fork(
            spend,
            location,
            out,
            f"process {number}",
            [*shared, *(str(next(keys)) for _ in range(attempts // processes))],
        )
        for number in range(processes)
    ]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * processes
    with Ledger.open(location) as ledger:
        entries = list(ledger.entries())
        ledger.verify(contents=False)
        assert ledger.total().worst_case.epsilon(0.0) <= BUDGET.epsilon
        assert [entry.state for entry in entries] == ["published"] * RELEASES
        assert len({entry.key for entry in entries}) == RELEASES
        stands = {entry.key: entry.content for entry in entries}
    shown = {file.name.split()[0]: set() for file in out.iterdir()}
    for file in out.iterdir():
        shown[file.name.split()[0]].add(file.read_bytes())
    assert shown == {key: {content} for key, content in stands.items()}


def race(location, name, folder):
    with Ledger.open(location) as ledger:
        entry, replayed = retried(lambda: publish(ledger, content=name.encode()))
        Path(folder, name).write_bytes(entry.content + str(replayed).encode())


def test_of_many_processes_one_publishes_and_all_show_its_bytes(location, tmp_path):
    certificate().to_json()
    children = [fork(race, location, f"process{number:02d}", tmp_path) for number in range(8)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    outputs = [file.read_bytes() for file in tmp_path.glob("process*")]
    winners = [said for said in outputs if said.endswith(b"False")]
    assert len(outputs) == 8
    assert len(winners) == 1
    assert {said[:9] for said in outputs} == {winners[0][:9]}
    with Ledger.open(location) as ledger:
        assert [event.kind for event in ledger.records.events()] == ["reserved", "published"]


# -- kill -9 ----------------------------------------------------------------------------------------------------


def cycle(location, folder, number, step=lambda: None):
    """Make one release from opening the ledger to writing its file, as a nightly run does; call `step` often."""
    key, what = f"key {number}", standing(period=period(number))
    with Ledger.open(location, evidence=HABITS) as ledger:
        execute = ledger.records.database.execute

        def stepping(sql, **parameters):
            step()
            rows = execute(sql, **parameters)
            step()
            return rows

        ledger.records.database.execute = stepping
        entry = ledger.find(key)
        if entry is None:
            entry = ledger.reserve(key, what, offer_for(what))
            step()
            if isinstance(entry, Reservation):
                content = random.randbytes(20)  # noise: another run would draw other bytes
                step()
                entry, _ = ledger.publish(entry, content, "release")
        step()
        with Path(folder, key).open("wb", buffering=0) as file:
            step()
            file.write(entry.content)
            step()


def killed_at(location, folder, number, countdown):
    """Run a cycle that kills itself at one of its steps."""
    left = [countdown]

    def step():
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    return fork(cycle, location, folder, number, step)


def check_after_a_crash(location, folder, number):
    """Nothing was shown without a charge, and running again charges nothing twice and shows what stands."""
    key, file = f"key {number}", Path(folder, f"key {number}")
    with Ledger.open(location) as ledger:
        entry = ledger.find(key)
        if file.exists():
            assert entry is not None
            assert file.read_bytes() in (entry.content, b"")
    cycle(location, folder, number)
    with Ledger.open(location) as ledger:
        again = ledger.find(key)
        assert again.content == file.read_bytes()
        if entry is not None:
            assert again == entry


def check_in_the_end(location, numbers):
    with Ledger.open(location) as ledger:
        entries = list(ledger.entries(given_back=True))
        assert sorted(entry.key for entry in entries) == sorted(f"key {number}" for number in numbers)
        assert {(entry.state, entry.revision) for entry in entries} == {("published", 1)}
        ledger.verify(ledger.head(), contents=False)


def steps_of_a_cycle(location, folder):
    cycle(location, folder, 0)  # the first of a data set takes a step more
    count = []
    cycle(location, folder, 1, lambda: count.append(1))
    return len(count)


@pytest.mark.parametrize("kills", [6, pytest.param(1000, marks=slow)])
def test_killed_at_every_step_of_a_release(location, tmp_path, kills):
    steps = steps_of_a_cycle(location, tmp_path)
    assert steps > 40
    stride = max(1, steps // kills)
    for number in range(2, kills + 2):
        child = killed_at(location, tmp_path, number, number * stride % steps)
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status)
        check_after_a_crash(location, tmp_path, number)
    check_in_the_end(location, range(kills + 2))


@pytest.mark.parametrize("kills", [5, pytest.param(500, marks=slow)])
def test_killed_at_any_moment(location, tmp_path, kills):
    cycle(location, tmp_path, 0)
    start = time.monotonic()
    assert os.waitpid(fork(cycle, location, tmp_path, 1), 0)[1] == 0
    usual = time.monotonic() - start
    draw, died, number = random.Random(5), 0, 1
    # Where the load changes, many are done before they are killed.
    while died < kills // 2:
        number += 1
        assert number <= 10 * kills, "no process was killed before it was done"
        child = fork(cycle, location, tmp_path, number)
        time.sleep(draw.uniform(0.0, usual))
        os.kill(child, signal.SIGKILL)
        died += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        check_after_a_crash(location, tmp_path, number)
    check_in_the_end(location, range(number + 1))


@pytest.fixture(params=[2, pytest.param(1000, marks=slow)])
def campaign(request, tmp_path):
    """How often publications of another process were killed, and what it said in the end."""
    script = Path(__file__).with_name("publication_campaign.py")
    command = [sys.executable, str(script), str(tmp_path), str(request.param)]
    return request.param, subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_publication_killed_at_any_line(campaign):
    kills, done = campaign
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{kills} kills over ")


def test_killed_while_giving_back(path):
    with Ledger.open(path) as ledger:
        reserve(ledger)
    for countdown in range(100):

        def work(countdown=countdown):
            left = [countdown]
            with Ledger.open(path) as ledger:
                reservation = reserve(ledger)
                execute = ledger.records.database.execute

                def stepping(sql, **parameters):
                    if left[0] == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    left[0] -= 1
                    return execute(sql, **parameters)

                ledger.records.database.execute = stepping
                ledger.give_back(reservation)

        survived = os.waitpid(fork(work), 0)[1] == 0
        with Ledger.open(path) as ledger:
            assert [entry.state for entry in ledger.entries(given_back=True)] == [
                "given_back" if survived else "reserved"
            ]
            ledger.verify(contents=False)
        if survived:
            break
    assert countdown > 4  # one for each statement


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_a_server_that_crashes_keeps_what_was_charged(cluster, postgres_url):
    with Ledger.open(postgres_url, evidence=HABITS) as ledger:
        first, _ = publish(ledger, "first")
        left = reserve(ledger, "left", standing(period="2014"))
        cluster.stop("immediate")
        with pytest.raises(TemporaryError, match="Run again later"):
            ledger.publish(left, b"bytes", "release")
        with pytest.raises(TemporaryError):
            Ledger.open(postgres_url)
        cluster.start()
        assert ledger.find("first") == first
        assert not ledger.publish(left, b"bytes", "release")[1]
        ledger.verify(contents=False)


# -- Full disks -------------------------------------------------------------------------------------------------


def fill(location, report):
    """Publish until there is no room, and say how far it came and what the error was."""
    with Ledger.open(location, evidence=HABITS) as ledger:
        fill_up(ledger, report)


def fill_up(ledger, report):
    number = 0
    try:
        for number in range(10_000):
            publish(ledger, f"key {number}", standing(period=period(number)), b"x" * 3000)
    except LedgerError as error:
        report.write_text(f"{number} {error}", encoding="utf-8")


def check_full(location, report):
    text = report.read_text(encoding="utf-8")
    reached = int(text.split()[0])
    assert "full" in text
    assert "nothing is charged twice" in text
    with Ledger.open(location, evidence=HABITS) as ledger:
        ledger.verify(ledger.head(), contents=False)
        entries = list(ledger.entries())
        assert len([entry for entry in entries if entry.state == "published"]) == reached
        assert len(entries) <= reached + 1
        for number in (reached, reached + 1):  # there is room again
            publish(ledger, f"key {number}", standing(period=period(number)), b"x" * 3000)
        assert len(list(ledger.entries())) == reached + 2
        ledger.verify(contents=False)


@pytest.mark.parametrize("room", [200_000, 290_000, 400_001])
def test_a_limit_on_the_file_size_loses_nothing(path, tmp_path, room):
    Ledger.open(path).close()

    def work():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        fill(path, tmp_path / "report")

    # The report goes through the same limit, and is small.
    certificate().to_json()
    assert os.waitpid(fork(work), 0)[1] == 0
    check_full(path, tmp_path / "report")


@thinned(2)
@pytest.mark.parametrize("pages", [70, 71, 72, 90])
def test_a_full_database_loses_nothing(path, tmp_path, pages):
    with Ledger.open(path, evidence=HABITS) as ledger:
        ledger.records.database.execute(f"PRAGMA max_page_count = {pages}")
        fill_up(ledger, tmp_path / "report")
        assert (tmp_path / "report").exists()
    check_full(path, tmp_path / "report")


def test_a_full_disk_loses_nothing(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = (
        os.getuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)], check=False, stderr=subprocess.DEVNULL
        ).returncode
    )
    if not mounted:
        pytest.skip("a small disk cannot be mounted here; the limits above stand for it")
    try:
        with Ledger.open(disk / "ledger.sqlite", evidence=HABITS) as ledger:
            fill_up(ledger, tmp_path / "report")
        for file in disk.iterdir():
            shutil.copy(file, tmp_path)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    check_full(tmp_path / "ledger.sqlite", tmp_path / "report")


# -- Files that are read-only, damaged, cut off, exchanged ------------------------------------------------------


def without_rights(work):
    """Run `work` as a user whom permissions bind, and return what it raised."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as report:

        def unprivileged():
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            try:
                work()
            except PkdpError as error:
                report.write(f"{type(error).__name__}: {error}")
                report.flush()

        certificate().to_json()
        assert os.waitpid(fork(unprivileged), 0)[1] == 0
        report.seek(0)
        return report.read()


@pytest.fixture
def open_folder():
    """A folder that every user can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="pkdp-faults-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


def test_a_read_only_file_is_named_as_such(open_folder):
    path = open_folder / "ledger.sqlite"
    with Ledger.open(path, evidence=HABITS) as ledger:
        publish(ledger)
        path.chmod(0o444)
        open_folder.chmod(0o555)

        def work():
            with Ledger.open(path) as ledger:
                assert ledger.find("key") is not None
                reserve(ledger, "next", standing(period="2014"))

        said = without_rights(work)
        assert said.startswith("LedgerError")
        assert "write" in said
        assert len(list(ledger.entries())) == 1


def test_a_folder_without_rights_is_named_as_such(open_folder):
    open_folder.chmod(0o555)
    said = without_rights(lambda: Ledger.open(open_folder / "ledger.sqlite"))
    assert said.startswith("LedgerError")
    assert "Let this process read and write the file and its folder" in said


@pytest.fixture
def filled(path):
    """A closed ledger with some entries, its head and its entries."""
    with Ledger.open(path, evidence=HABITS) as ledger:
        for number in range(12):
            publish(ledger, f"key {number}", standing(period=period(number)), random.Random(number).randbytes(3000))
        kept = ledger.head(), list(ledger.entries())
    assert not Path(f"{path}-wal").exists()
    return kept


def examine(path, head):
    """Read everything, as strictly as can be."""
    with Ledger.open(path) as ledger:
        ledger.verify(head, contents=False)
        return list(ledger.entries())


@thinned(2)
@pytest.mark.parametrize("part", [0, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_a_truncated_ledger_is_refused(path, filled, part):
    size = path.stat().st_size
    os.truncate(path, int(part * size))
    with pytest.raises(LedgerError):
        examine(path, filled[0])


@pytest.mark.parametrize("tries", [60, pytest.param(5000, marks=slow)])
def test_damaged_bytes_are_found_or_do_not_matter(path, filled, tmp_path, tries):
    head, entries = filled
    sound, draw, detected = path.read_bytes(), random.Random(7), 0
    for number in range(tries):
        damaged = bytearray(sound)
        start = draw.randrange(len(sound))
        for place in range(start, min(start + draw.choice((1, 8, 600)), len(sound))):
            damaged[place] = draw.randrange(256)
        path.write_bytes(damaged)
        try:
            assert examine(path, head) == entries, number
        except LedgerError:
            detected += 1
        for beside in tmp_path.glob("ledger.sqlite-*"):
            beside.unlink()
    assert detected > tries // 4


def test_a_copy_without_its_log_shows_its_cut_end(path, tmp_path):
    with Ledger.open(path, evidence=HABITS) as ledger:
        publish(ledger)
        ledger.records.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        publish(ledger, "next", standing(period="2014"))
        head = ledger.head()
        shutil.copy(path, tmp_path / "copy.sqlite")
    with Ledger.open(tmp_path / "copy.sqlite") as ledger:
        assert ledger.find("next") is None
        ledger.verify(contents=False)
        with pytest.raises(LedgerError, match="cut off"):
            ledger.verify(head, contents=False)


def test_an_edited_release_is_not_replayed_unnoticed(path, filled):
    raw = sqlite3.connect(path)
    raw.execute("DROP TRIGGER event_is_never_changed")
    raw.execute("UPDATE event SET content = zeroblob(3000) WHERE kind = 'published' AND key = 'key 5'")
    raw.commit()
    raw.close()
    with pytest.raises(LedgerError, match="event_is_never_changed"):
        examine(path, filled[0])


# -- Clocks -----------------------------------------------------------------------------------------------------


def test_a_clock_that_goes_backwards_does_not_matter(location, monkeypatch):
    moments = (datetime.datetime(2020 - year, 1, 1, tzinfo=datetime.UTC) for year in range(100))
    monkeypatch.setattr(clock, "_read", lambda zone: next(moments))
    with Ledger.open(location) as ledger:
        what = standing(noised=True)
        for number in range(3):
            publish(ledger, "key", what, f"revision {number}".encode(), revise=True)
        entries = list(ledger.entries())
        assert [entry.revision for entry in entries] == [1, 2, 3]
        assert sorted(entries, key=lambda entry: entry.created_at) == entries[::-1]
        assert ledger.find("key").content == b"revision 2"
        ledger.verify(ledger.head(), contents=False)
