from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest
from ledger_samples import publish, reserve, standing

from pkdp_pipeline.errors import ArgumentError, LedgerError, TemporaryError
from pkdp_pipeline.ledger import Ledger, sqlite_database
from pkdp_pipeline.ledger.database import schema_script, while_waiting
from pkdp_pipeline.ledger.reading import copied
from pkdp_pipeline.ledger.records import open_database
from pkdp_pipeline.ledger.sqlite_database import SqliteDatabase, split_statements


def in_child(work):
    """Run `work` in a forked process and return what it returns, as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_the_file_is_durable_and_append_only(path, monkeypatch):
    monkeypatch.setattr(SqliteDatabase, "_prepare", SqliteDatabase._prepare.__wrapped__)  # as it is outside tests
    with Ledger.open(path) as ledger:
        publish(ledger)
        assert ledger.records.database.execute("PRAGMA synchronous") == [(2,)]
        assert ledger.records.database.execute("PRAGMA foreign_keys") == [(1,)]
        for change in ("UPDATE event SET content = x'00'", "DELETE FROM event"):
            with pytest.raises(LedgerError, match="append-only"):
                ledger.records.database.execute(change)
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    for change in ("UPDATE event SET key = 'x'", "DELETE FROM event"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute(change)
    raw.close()


@pytest.mark.parametrize(
    "columns",
    [
        "'reserved', NULL, '{}', '{}', NULL, NULL",
        "'reserved', '{}', 'no json', '{}', NULL, NULL",
        "'published', NULL, NULL, NULL, NULL, x'00'",
        "'published', NULL, NULL, NULL, 'id', 'text'",
        "'given_back', '{}', NULL, NULL, NULL, NULL",
        "'invented', NULL, NULL, NULL, NULL, NULL",
    ],
)
def test_a_malformed_event_is_refused_by_the_tables(path, columns):
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match="constraint"):
        ledger.records.database.execute(
            "INSERT INTO event (kind, standing, certificate, terms, release_id, content, dataset, position, key, "
            f"revision, created_at, previous, hash) VALUES ({columns}, 'd', 1, 'k', 1, 'now', :link, :link)",
            link="0" * 64,
        )


@pytest.mark.usefixtures("no_waiting")
def test_a_locked_ledger_is_a_temporary_error_and_nothing_is_charged(path):
    Ledger.open(path).close()
    blocker = sqlite3.connect(path, isolation_level=None)
    with Ledger.open(path) as ledger:
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(TemporaryError, match="changed nothing"):
            reserve(ledger)
        assert ledger.find("key") is None
        blocker.execute("ROLLBACK")
        assert list(ledger.entries()) == []
        reservation = reserve(ledger)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(TemporaryError):
            ledger.publish(reservation, b"bytes", "release")
        blocker.execute("ROLLBACK")
        assert not publish(ledger)[1]
    blocker.close()


@pytest.mark.usefixtures("no_waiting")
def test_the_write_lock_is_taken_before_anything_is_looked_at(path):
    with Ledger.open(path) as ledger, Ledger.open(path) as other, ledger.records.database.transaction("default"):
        with pytest.raises(TemporaryError):
            publish(other)
        assert other.find("key") is None


@pytest.mark.usefixtures("no_waiting")
def test_a_new_ledger_behind_a_lock_is_a_temporary_error(path):
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    with pytest.raises(TemporaryError):
        Ledger.open(path)
    blocker.close()


def test_a_lock_is_waited_for(path):
    with Ledger.open(path) as ledger:
        blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        blocker.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, lambda: blocker.execute("ROLLBACK"))
        release.start()
        assert not publish(ledger)[1]
        release.join()
        blocker.close()


def test_threads_that_read_do_not_wait_for_the_lock_of_another_process(path):
    waits = threading.Event()

    def charging():
        with while_waiting(waits.set):
            publish(ledger)

    with Ledger.open(path) as ledger:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=charging)
        thread.start()
        assert waits.wait(300)
        assert ledger.find("key") is None
        assert thread.is_alive()  # it waits still
        blocker.execute("ROLLBACK")
        thread.join()
        assert ledger.find("key") is not None
        blocker.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(path):
    path.write_bytes(b"something else entirely, and long enough to be looked at" * 20)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="no ledger, or it is damaged"):
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


@pytest.mark.parametrize("version", [0, 2, 99])
def test_an_unknown_schema_is_refused(path, version):
    Ledger.open(path).close()
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA user_version = {version}")
    raw.close()
    with pytest.raises(LedgerError, match=f"schema {version},"):
        Ledger.open(path)


def test_an_empty_file_is_no_new_ledger(path):
    """What a full disk or a failed copy leaves of a ledger must not begin another one."""
    path.touch()
    with pytest.raises(LedgerError, match="is an empty file, not a ledger"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="is an empty file, not a ledger"), copied(str(path), dataset="flights"):
        pass
    assert path.read_bytes() == b""
    path.unlink()
    with closing(sqlite3.connect(path)) as raw:  # a header, and no tables: a cut file can look like this
        raw.execute("VACUUM")
    with pytest.raises(LedgerError, match="is an empty file, not a ledger"):
        Ledger.open(path)


def test_a_new_ledger_appears_whole_or_not_at_all(path, monkeypatch):
    def fail(_):
        assert not path.exists()
        raise ZeroDivisionError

    monkeypatch.setattr(sqlite_database, "schema_script", fail)
    with pytest.raises(ZeroDivisionError):
        Ledger.open(path)
    assert list(path.parent.iterdir()) == []
    monkeypatch.undo()
    Ledger.open(path).close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_ledger_is_made_where_files_cannot_be_linked(path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(sqlite_database.os, "link", refuse)
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        publish(ledger)
        assert publish(other)[1]


def test_a_link_to_nothing_becomes_a_ledger_where_it_leads(path, tmp_path):
    path.symlink_to(tmp_path / "elsewhere.sqlite")
    with Ledger.open(path) as ledger:
        publish(ledger)
    assert path.is_symlink()
    with Ledger.open(tmp_path / "elsewhere.sqlite") as ledger:
        assert publish(ledger)[1]


@pytest.mark.parametrize("location", ["mysql://host/db", "sqlite:///x", "https://host/ledger.sqlite"])
def test_other_stores_are_refused(location):
    with pytest.raises(LedgerError, match="postgresql://"):
        Ledger.open(location)


@pytest.mark.parametrize("location", ["", "  ", "a\x00b", None, b"ledger.sqlite", 5])
def test_what_is_no_path_is_refused(location):
    with pytest.raises(ArgumentError, match="path"):
        open_database(location)


def test_a_missing_folder_and_a_folder_are_refused(tmp_path):
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger.open(tmp_path / "missing" / "ledger.sqlite")
    with pytest.raises(LedgerError, match="is a folder"):
        Ledger.open(tmp_path)


def test_a_missing_driver_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"'\.\[postgres\]'") as raised:
        Ledger.open("postgresql://user:sesame@host/database")
    assert "sesame" not in str(raised.value)


def test_no_driver_is_imported_for_a_file(path):
    code = (
        "import sys; from pkdp_pipeline.ledger import Ledger; Ledger.open(sys.argv[1]).close(); "
        "print({'psycopg'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, text=True, stdout=subprocess.PIPE)
    assert done.stdout.strip() == "set()"


def test_an_old_sqlite_is_named(path, monkeypatch):
    monkeypatch.setattr(sqlite_database.sqlite3, "sqlite_version_info", (3, 31, 1))
    with pytest.raises(LedgerError, match=r"needs SQLite 3\.35"):
        Ledger.open(path)


def test_a_ledger_is_not_carried_over_a_fork(path):
    with Ledger.open(path) as ledger:
        assert "ArgumentError: this ledger was opened by the parent" in in_child(lambda: publish(ledger))
        assert in_child(ledger.close) == "None"
        assert not publish(ledger)[1]
        assert in_child(lambda: publish(Ledger.open(path))[1]) == "True"


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_ledger_that_is_taken_away_while_open_charges_nothing(path, tmp_path, how):
    with Ledger.open(path) as ledger:
        reservation = reserve(ledger)
        path.rename(tmp_path / "moved.sqlite")
        if how == "replaced":
            Ledger.open(path).close()
        with pytest.raises(LedgerError, match="removed or replaced"):
            ledger.publish(reservation, b"bytes", "release")
        with pytest.raises(LedgerError, match="removed or replaced"):
            reserve(ledger, "another", standing("another"))


def test_a_snapshot_sees_one_state_and_holds_nobody_up(path):
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        with ledger.records.database.snapshot():
            assert list(ledger.entries()) == []
            publish(other)
            assert list(ledger.entries()) == []
            with pytest.raises(LedgerError, match="readonly"):
                ledger.records.database.execute("DELETE FROM dataset")
        assert len(list(ledger.entries())) == 1
        assert publish(ledger)[1]


def test_a_failed_transaction_leaves_nothing_open(path):
    def fail(database):
        with database.transaction("default"):
            database.execute("INSERT INTO dataset VALUES ('a', 'a')")
            raise ZeroDivisionError

    with Ledger.open(path) as ledger:
        with pytest.raises(ZeroDivisionError):
            fail(ledger.records.database)
        assert ledger.records.database.execute("SELECT * FROM dataset") == []
        assert not publish(ledger)[1]


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000 + "b"])
def test_a_path_that_no_file_system_takes_is_a_ledger_error(name):
    with pytest.raises(LedgerError, match=r"too long|does not exist"):
        Ledger.open(name)


def test_a_folder_that_is_gone_is_a_ledger_error(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger.open("ledger.sqlite")


def test_a_relative_path_stays_the_same_file_when_the_process_moves(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with Ledger.open(path.name) as ledger:
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert not publish(ledger)[1]
        os.rename(path, tmp_path / "other")
        with pytest.raises(LedgerError, match="removed or replaced"):
            publish(ledger, "next")
        os.rename(tmp_path / "other", path)
        assert publish(ledger)[1]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_path_that_looks_like_a_uri_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Ledger.open("file:name?mode=memory") as ledger:
        publish(ledger)
    assert (tmp_path / "file:name?mode=memory").is_file()


@pytest.mark.parametrize(
    "dataset", ["fl\u200bights", "\u200b", "a\x07", "so\u00adft", "\u3164", "a\ufe0f", "\ud800", "\u202ea"]
)
def test_a_data_set_has_no_name_that_cannot_be_seen(path, dataset):
    with pytest.raises(ArgumentError, match="invisible characters"):
        Ledger.open(path, dataset=dataset)
    assert not path.exists()


def test_statements_are_split_where_they_end():
    statements = split_statements(schema_script("sqlite"))
    assert all(sqlite3.complete_statement(statement) for statement in statements)
    assert sum("CREATE TRIGGER" in statement for statement in statements) == 2
    raw = sqlite3.connect(":memory:")
    for statement in statements:
        raw.execute(statement)
    raw.close()


def test_look_ups_use_an_index(path, monkeypatch):
    with Ledger.open(path) as ledger:
        publish(ledger)
        execute, statements = ledger.records.database.execute, []

        def recorded(sql, **parameters):
            statements.append((sql, parameters))
            return execute(sql, **parameters)

        monkeypatch.setattr(ledger.records.database, "execute", recorded)
        ledger.find("key")
        ledger.head()
        _ = ledger.terms
        ledger.beside(standing())
        ledger.beside(standing(period="a label"))
        reserve(ledger, what=standing(noised=True))
        assert len(statements) >= 8
        for sql, parameters in statements:
            plan = " ".join(row[3] for row in execute("EXPLAIN QUERY PLAN " + sql, **parameters))
            assert "SCAN" not in plan, sql
            assert "TEMP B-TREE" not in plan, sql
            if "key = :key" in sql:
                assert "INDEX entry_key " in plan, sql
