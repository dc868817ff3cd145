"""Ledgers of schema 1: built from its SQL and from what version 0.1.0 wrote (``tests/data/ledger_schema_1.json``)."""

from __future__ import annotations

import base64
import copy
import json
import os
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest
from ledger_samples import publish, standing

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.errors import DifferencingError, LedgerError, TemporaryError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.former import Former, find_former, former_entry
from pkdp_pipeline.model.budget import Budget
from pkdp_pipeline.model.evidence import IndependentGivenHabits
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.releases.publish import publish as publish_request
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.releases.request import Request

ROOT = Path(__file__).resolve().parents[2]
ROWS = json.loads((ROOT / "tests" / "data" / "ledger_schema_1.json").read_text(encoding="utf-8"))
for _row in ROWS:
    _row["content"] = base64.b64decode(_row["content"])


@pytest.fixture
def old(path):
    """A ledger as version 0.1.0 left it."""
    build(path)
    return path


def build(path, rows=ROWS):
    raw = sqlite3.connect(path)
    raw.executescript((ROOT / "sql" / "ledger" / "schema_1.sql").read_text(encoding="utf-8"))
    raw.execute("PRAGMA journal_mode = WAL")
    names = ", ".join(rows[0])
    marks = ", ".join(f":{name}" for name in rows[0])
    raw.executemany(f"INSERT INTO entry ({names}) VALUES ({marks})", rows)
    raw.commit()
    raw.close()


def old_rows(path):
    """Return the rows of schema 1, or None when the file has another schema."""
    raw = sqlite3.connect(path)
    try:
        if raw.execute("PRAGMA user_version").fetchone() != (1,):
            return None
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        raw.row_factory = sqlite3.Row
        return [dict(row) for row in raw.execute("SELECT * FROM entry ORDER BY sequence")]
    finally:
        raw.close()


def check_migrated(path):
    seen = {}
    for dataset in ("Flights", "trains", "ships"):
        with Ledger.open(path, dataset=dataset) as ledger:
            ledger.verify(ledger.head())
            assert [event.kind for event in ledger._journal.events(dataset)] == ["reserved", "published"] * len(
                list(ledger.entries())
            )
            for entry in ledger.entries():
                assert ledger.find(entry.key) == entry
                seen[entry.key] = entry
    assert set(seen) == {row["key"] for row in ROWS}
    for row in ROWS:
        entry = seen[row["key"]]
        for name in ("release_id", "certificate", "content", "created_at", "label"):
            assert getattr(entry, name) == row[name]
        assert (entry.state, entry.revision) == ("published", 1)
        assert entry.unit == tuple(json.loads(row["unit"]))
        assert entry.noiseless == bool(row["noiseless"])
        assert Release.from_bytes(entry.content).id == row["release_id"]
        assert entry.standing.mechanism == Certificate.from_json(row["certificate"]).mechanism
        assert entry.standing.opaque
    return seen


def test_nothing_is_lost_and_everything_is_chained(old):
    assert old_rows(old) == ROWS
    Ledger.open(old).close()
    assert old_rows(old) is None
    entries = check_migrated(old)
    assert entries[ROWS[0]["key"]].standing.by == ("carrier",)
    assert entries[ROWS[2]["key"]].standing.by == ("carrier", "late")
    assert entries[ROWS[5]["key"]].standing.by is None
    raw = sqlite3.connect(old)
    names = {row[0] for row in raw.execute("SELECT name FROM sqlite_master")}
    raw.close()
    assert {"event", "entry", "dataset", "event_is_never_changed"} <= names
    assert "entry_of_schema_1" not in names


def test_two_spellings_become_one_data_set(old):
    with Ledger.open(old, dataset="FLIGHTS") as ledger:
        assert ledger.dataset == "Flights"
        assert [entry.period for entry in ledger.entries()] == ["2013-01-02", "2013-01-03", "2014-W01"]


def test_a_period_that_cannot_be_compared_any_more_overlaps_all_dates(old):
    with Ledger.open(old, dataset="trains") as ledger:
        first, second = ledger.entries()
        assert (first.period, second.period) == ("label of entry no. e", "wave 1")
        assert ledger.beside(standing(period="1999-01-01")) == [first, second]


def test_the_same_request_finds_what_version_1_published(old):
    with Ledger.open(old, dataset="flights") as ledger:
        for row, day in zip(ROWS, ("2013-01-02", "2013-01-03"), strict=False):
            request = Request(mechanism=Histogram(k=20), unit="uid", by="carrier", period=day)
            entry = ledger.find(request.key(ledger.dataset))
            assert entry is not None
            assert entry.content == row["content"]


def old_key(request, *, dataset, period):
    """Return the key that schema 1 gave: both names as they were written."""
    former = copy.copy(request)
    object.__setattr__(former, "period", period)
    return former.key(dataset)


def asked(number, **changes):
    """Return the request whose release row `number` of version 0.1.0 holds, as it is made today."""
    mechanism = Certificate.from_json(ROWS[number]["certificate"]).mechanism
    carriers = {"carrier": ["AA", "UA", "ÅØ"], "late": [True, False]}
    fields = {
        2: {"by": ["carrier", "late"], "domain": carriers, "period": "2014-W01"},
        3: {"where": "late", "label": "late ones", "period": "2013-02-01"},
        4: {"where": lambda frame: frame.late, "label": "late ones", "period": "wave 1"},
    }[number]
    return Request(mechanism=mechanism, unit="uid", **{**fields, **changes})


def found(ledger, request):
    assert ledger.find(request.key(ledger.dataset)) is None
    return find_former(ledger, request)


def test_a_release_under_another_spelling_of_the_data_set_is_found(old):
    with Ledger.open(old, dataset="Flights") as ledger:
        assert found(ledger, asked(2)).content == ROWS[2]["content"]
        # The same days in other words are another request, as they are without former names.
        assert found(ledger, asked(2, period="2013-12-30/2014-01-05")) is None
        assert found(ledger, asked(2, period="2014-W02")) is None
        assert found(ledger, asked(2, undeclared="absent")) is None


def test_publishing_replays_a_release_under_a_former_name(old):
    def unread():
        raise AssertionError("data were read")

    request = asked(2)
    attacker = Certificate.from_json(ROWS[2]["certificate"]).attacker
    with Ledger.open(old, dataset="Flights") as ledger:
        before = ledger.head()
        release = publish_request(unread, request, attacker=attacker, ledger=ledger)
        assert (release.replayed, release.to_bytes(), ledger.head()) == (True, ROWS[2]["content"], before)


@pytest.mark.parametrize(
    ("written", "today"),
    [
        ("20130103", "2013-01-03"),
        ("2013-W01-3", "2013-01-02"),
        ("2013-01-05T10:00", "2013-01-05"),
        (" 2013-02-01", "2013-02-01"),
        ("2013-02-03 / 2013-02-05", "2013-02-03/2013-02-05"),
        ("wave  1", "wave 1"),
    ],
)
def test_a_release_under_another_spelling_of_its_period_is_found(path, written, today):
    request = asked(3, period=today, label=None)
    key = old_key(request, dataset="trains", period=written)
    build(path, [{**ROWS[3], "key": key, "period": written}])
    with Ledger.open(path, dataset="trains") as ledger:
        entry = ledger._entries.read(former_entry(ledger._database, "trains", request))
        assert (entry.key, entry.period, entry.content) == (key, today, ROWS[3]["content"])
        assert former_entry(ledger._database, "trains", asked(3, period=today, where="not late")) is None
        assert former_entry(ledger._database, "trains", asked(3, period="2012")) is None
        ledger.verify()


def test_a_release_with_an_opaque_predicate_is_found_by_its_label(path):
    build(path, [ROWS[4]])
    with Ledger.open(path, dataset="trains") as ledger:
        assert found(ledger, asked(4)).content == ROWS[4]["content"]
        assert found(ledger, asked(4, label="others")) is None
        assert found(ledger, asked(4, period="Wave 1")) is None


@pytest.mark.parametrize(
    ("written", "today"),
    [("fl\u200bights", "Flights"), ("tra\x07ins", "trains"), ("\u200b", "unnamed"), (" ", "unnamed")],
)
def test_a_data_set_whose_name_cannot_be_seen_can_be_opened(path, written, today):
    row = {**ROWS[2], "sequence": 9, "dataset": written}
    row["key"] = old_key(asked(2), dataset=written, period=row["period"])
    build(path, [*ROWS[:2], row])
    with Ledger.open(path, dataset=today) as ledger:
        assert ledger.dataset == today
        assert found(ledger, asked(2)).content == row["content"]
        ledger.verify()


@pytest.mark.parametrize(
    ("written", "refused", "free"),
    [
        ("01/02/2013", ["2013-02-01", "2013", "2014-01", "wave 2"], ["2011-12-31", "2015-01-01"]),
        ("Q1 2013", ["2013-Q1"], ["2010"]),
        ("Jan 2011 - Mar 2013", ["2012-06-01"], ["2009-06-01"]),
        ("2.1.13", ["2013-01-02", "1999"], []),
    ],
)
def test_a_question_whose_former_period_cannot_be_compared_is_not_drawn_again(path, written, refused, free):
    row = {**ROWS[3], "period": written, "key": old_key(asked(3), dataset="trains", period=written)}
    build(path, [row])
    with Ledger.open(path, dataset="trains") as ledger:
        for period in refused:
            with pytest.raises(DifferencingError, match="revise=True") as raised:
                found(ledger, asked(3, period=period))
            assert repr(written) in str(raised.value)
            assert found(ledger, asked(3, period=period, where="not late")) is None
        for period in free:
            assert found(ledger, asked(3, period=period)) is None


def test_what_kept_its_names_records_no_former_ones(old):
    with Ledger.open(old, dataset="Flights") as ledger:
        assert [entry.standing.where is None for entry in ledger.entries()] == [True, True, False]
        assert Former.of(list(ledger.entries())[2].standing) == Former(dataset="flights ", period="2014-W01")


def test_what_is_published_counts_and_is_guarded_by_the_rules_of_today(old):
    with Ledger.open(old, dataset="Flights", evidence=IndependentGivenHabits()) as ledger:
        with pytest.raises(DifferencingError):
            publish(ledger, "another", standing(unit=("uid",)))
        publish(ledger, "next", standing(period="2013-01-05", unit=("uid",)))
        total = ledger.total("uid")
        one = Certificate.from_json(ROWS[0]["certificate"])
        assert total.delta(1.0) > one.delta(1.0)
        ledger.verify(contents=False)


def test_no_budget_refuses_what_is_published_already(old):
    budget = Budget(epsilon=1e-9, delta=1e-12, part="partial_knowledge")
    with Ledger.open(old, dataset="Flights", budget=budget) as ledger:
        assert len(list(ledger.entries())) == 3


def test_an_empty_ledger_is_brought_up_to_date(path):
    raw = sqlite3.connect(path)
    raw.executescript((ROOT / "sql" / "ledger" / "schema_1.sql").read_text(encoding="utf-8"))
    raw.close()
    with Ledger.open(path) as ledger:
        ledger.verify()
        assert not publish(ledger)[1]


@pytest.mark.parametrize(
    "change",
    [{"certificate": "{}"}, {"unit": '{"a": 1}'}, {"unit": "5"}],
    ids=["certificate", "unit", "unit that is a number"],
)
def test_a_row_that_cannot_be_read_is_named_and_nothing_changes(path, change):
    rows = [*ROWS[:2], {**ROWS[2], **change}]
    build(path, rows)
    with pytest.raises(LedgerError, match="entry 3 of the ledger's schema 1"):
        Ledger.open(path)
    assert old_rows(path) == rows


def test_bytes_that_are_no_release_are_kept_and_found_by_verify(path):
    build(path, [{**ROWS[0], "content": b"bytes"}])
    with Ledger.open(path, dataset="Flights") as ledger:
        assert ledger.find(ROWS[0]["key"]).content == b"bytes"
        ledger.verify(contents=False)
        with pytest.raises(LedgerError, match="cannot be replayed"):
            ledger.verify()


@pytest.mark.usefixtures("no_waiting")
def test_an_old_ledger_in_use_is_a_temporary_error(old):
    blocker = sqlite3.connect(old, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(TemporaryError):
        Ledger.open(old)
    blocker.execute("ROLLBACK")
    blocker.close()
    Ledger.open(old).close()


def open_and_die(path, statement):
    """Open in a forked process that is killed just before its n-th statement; return whether it got that far."""
    child = os.fork()
    if child == 0:
        connect, count = sqlite3.connect, iter(range(10**9))

        class Mortal(sqlite3.Connection):
            def execute(self, *arguments):
                if next(count) == statement:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().execute(*arguments)

        sqlite3.connect = lambda *arguments, **options: connect(*arguments, **options, factory=Mortal)
        try:
            Ledger.open(path).close()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_a_crash_anywhere_leaves_the_old_ledger_or_the_new_one(old, tmp_path, step):
    Certificate.from_json(ROWS[0]["certificate"])  # what the children need is loaded once
    died = 0
    for statement in range(0, 10_000, step):
        path = tmp_path / f"{statement}.sqlite"
        shutil.copy(old, path)
        if not open_and_die(path, statement):
            break
        died += 1
        kept = old_rows(path)
        assert kept in (ROWS, None)
        check_migrated(path)
        path.unlink()
    assert died * step > 100


def test_many_processes_bring_it_up_to_date_once(old):
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with Ledger.open(old, dataset="flights") as ledger:
                    status = int(len(list(ledger.entries())) != 3)
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6
    check_migrated(old)
