from __future__ import annotations

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import textwrap
from dataclasses import FrozenInstanceError

import pytest

from pkdp_pipeline.errors import ArgumentError, DifferencingError, LedgerError, TemporaryError
from pkdp_pipeline.ledger import Ledger, Standing, sqlite_store


def standing(label="by carrier", *, period="2013-01-02", noiseless=True):
    return Standing(unit=("tailnum",), period=period, label=label, noiseless=noiseless)


def publish(ledger, key="key", what=None, content=b"bytes"):
    return ledger.publish(key, what or standing(), '{"a": 1}', content, "release")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


def test_a_published_entry_is_found_again_with_its_bytes(path):
    with Ledger.open(path, dataset="flights") as ledger:
        entry, replayed = publish(ledger, content=b"\x00\xff")
        assert not replayed
    with Ledger.open(path, dataset="flights") as ledger:
        assert ledger.find("key") == entry
        assert ledger.find("another") is None
    assert (entry.content, entry.state, entry.dataset, entry.unit) == (
        b"\x00\xff",
        "published",
        "flights",
        ("tailnum",),
    )
    with pytest.raises(FrozenInstanceError):
        entry.content = b""


def test_the_same_key_replays_the_first_bytes_and_charges_nothing(path):
    with Ledger.open(path) as ledger:
        first, _ = publish(ledger, content=b"first")
        second, replayed = publish(ledger, content=b"second")
        assert replayed
        assert second == first
        assert [entry.content for entry in ledger.entries()] == [b"first"]


def test_differencing_is_checked_again_inside_the_transaction(path):
    with Ledger.open(path) as one, Ledger.open(path) as other:
        one.check(standing("a"))
        other.check(standing("b"))
        publish(one, "a", standing("a"))
        with pytest.raises(DifferencingError):
            publish(other, "b", standing("b"))
        assert [entry.key for entry in other.entries()] == ["a"]


def test_check_looks_at_this_data_set_only(path):
    with Ledger.open(path, dataset="flights") as ledger:
        publish(ledger)
        with pytest.raises(DifferencingError):
            ledger.check(standing("another view"))
        assert [other.label for other in ledger.beside(standing("another view"))] == ["by carrier"]
    with Ledger.open(path, dataset="ships") as ledger:
        ledger.check(standing("another view"))
        assert ledger.beside(standing("another view")) == []
        assert list(ledger.entries()) == []


def test_entries_come_in_order_and_can_be_read_while_publishing(path):
    with Ledger.open(path) as ledger:
        for day in range(1, 4):
            publish(ledger, f"key {day}", standing(period=f"2013-01-0{day}"))
        seen = []
        for entry in ledger.entries():
            seen.append(entry.key)
            if len(seen) == 1:
                publish(ledger, "late", standing(period="2013-02-01"))
        assert seen == ["key 1", "key 2", "key 3", "late"]


def test_the_file_is_durable_and_append_only(path):
    with Ledger.open(path) as ledger:
        publish(ledger)
        connection = ledger._store._connection
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    for change in ("UPDATE entry SET content = x'00'", "DELETE FROM entry"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute(change)
    raw.close()


def test_a_locked_ledger_is_a_temporary_error_and_nothing_is_charged(path, monkeypatch):
    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
    Ledger.open(path).close()
    blocker = sqlite3.connect(path, isolation_level=None)
    with Ledger.open(path) as ledger:
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(TemporaryError, match="nothing was charged"):
            publish(ledger)
        blocker.execute("ROLLBACK")
        assert list(ledger.entries()) == []
        publish(ledger)
    blocker.close()


def test_publishing_takes_the_write_lock_before_it_looks(path, monkeypatch):
    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
    with Ledger.open(path) as one, Ledger.open(path) as other, one._store.transaction():
        with pytest.raises(TemporaryError):
            publish(other)
        assert other.find("key") is None


def test_a_new_ledger_behind_a_lock_is_a_temporary_error(path, monkeypatch):
    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    with pytest.raises(TemporaryError):
        Ledger.open(path)
    blocker.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(path):
    path.write_bytes(b"something else entirely, and long enough to be looked at" * 20)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_database_that_is_no_ledger_is_refused_and_left_alone(path):
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE mine (x)")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_an_unknown_schema_is_refused(path):
    Ledger.open(path).close()
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(LedgerError, match="schema 99"):
        Ledger.open(path)


@pytest.mark.parametrize("location", ["postgresql://host/db", "mysql://host/db"])
def test_other_stores_are_refused(location):
    with pytest.raises(LedgerError, match="SQLite"):
        Ledger.open(location)


def test_a_missing_folder_and_a_folder_are_refused(tmp_path):
    with pytest.raises(LedgerError, match="folder"):
        Ledger.open(tmp_path / "missing" / "ledger.sqlite")
    with pytest.raises(LedgerError):
        Ledger.open(tmp_path)


@pytest.mark.parametrize("dataset", ["", " ", None])
def test_the_data_set_needs_a_name(path, dataset):
    with pytest.raises(ArgumentError, match="dataset"):
        Ledger.open(path, dataset=dataset)


def test_a_closed_ledger_is_a_ledger_error(path):
    ledger = Ledger.open(path)
    ledger.close()
    with pytest.raises(LedgerError):
        ledger.find("key")


def test_a_ledger_in_memory_works():
    with Ledger.open(":memory:") as ledger:
        publish(ledger)
        assert publish(ledger)[1]


def test_a_malformed_entry_is_refused_whole(path):
    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerError):
            ledger.publish("key", standing(), "not json", b"bytes", "release")
        assert list(ledger.entries()) == []


def race(path, name, results):
    with Ledger.open(path) as ledger:
        entry, replayed = ledger.publish("key", standing(), "{}", name.encode(), "release")
        results.put((name, entry.content, replayed))


def test_of_many_processes_one_publishes_and_all_show_its_bytes(path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=race, args=(path, f"process {n}", results)) for n in range(4)]
    for process in processes:
        process.start()
    seen = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    winners = [name for name, _, replayed in seen if not replayed]
    assert len(winners) == 1
    assert {content for _, content, _ in seen} == {winners[0].encode()}


def test_a_process_that_dies_inside_the_transaction_leaves_nothing(path):
    program = f"""
        import os
        from pkdp_pipeline.ledger import Ledger, Standing, sqlite_store
        ledger = Ledger.open({str(path)!r})
        insert = ledger._store.insert
        def insert_and_die(**fields):
            insert(**fields)
            os._exit(9)
        ledger._store.insert = insert_and_die
        what = Standing(unit=("u",), period="2013-01-02", label="x", noiseless=True)
        ledger.publish("key", what, "{{}}", b"bytes", "release")
    """
    died = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=os.environ, check=False)
    assert died.returncode == 9
    with Ledger.open(path) as ledger:
        assert ledger.find("key") is None
        assert not publish(ledger)[1]
