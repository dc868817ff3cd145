from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_samples import certificate, publish, publish_release, reserve, sealed, standing
from thorough import thinned

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError, LedgerError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.chain import GENESIS, Event, checked, event_hash
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import IndependentGivenHabits

FIELDS = {
    "dataset": "people",
    "position": 1,
    "kind": "reserved",
    "key": "key",
    "revision": 1,
    "standing": "{}",
    "certificate": "{}",
    "terms": "{}",
    "release_id": "id",
    "content": b"bytes",
    "created_at": "2013-01-02T03:04:05+00:00",
    "previous": GENESIS,
}


def chain(length):
    events, previous = [], GENESIS
    for position in range(1, length + 1):
        fields = {**FIELDS, "position": position, "previous": previous}
        previous = event_hash(**fields)
        events.append(Event(sequence=2 * position, hash=previous, **fields))
    return events


def test_the_hash_is_written_down_for_other_programs():
    plain = {**FIELDS, "content": hashlib.sha256(b"bytes").hexdigest()}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    assert event_hash(**FIELDS) == hashlib.sha256(text.encode()).hexdigest()
    assert event_hash(**FIELDS) == "a40cd4930247eb3aac6879df172c339f9f3eda1ac2a92f92fbe1645d56c0266a"


@given(name=st.sampled_from(sorted(FIELDS)), text=st.text(min_size=1), number=st.integers(2, 10**9))
def test_the_hash_covers_every_field(name, text, number):
    old = FIELDS[name]
    new = number if isinstance(old, int) else text.encode() if isinstance(old, bytes) else text
    if new != old:
        assert event_hash(**{**FIELDS, name: new}) != event_hash(**FIELDS)


def test_what_is_missing_differs_from_what_is_empty():
    for name in ("standing", "certificate", "terms", "release_id"):
        assert event_hash(**{**FIELDS, name: None}) != event_hash(**{**FIELDS, name: ""})
    assert event_hash(**{**FIELDS, "content": None}) != event_hash(**{**FIELDS, "content": b""})


@given(length=st.integers(0, 6), where=st.integers(0, 7))
def test_a_chain_is_accepted_with_any_of_its_heads(length, where):
    events = chain(length)
    heads = [GENESIS, *(event.hash for event in events)]
    head = heads[where % len(heads)]
    assert list(checked(events, dataset="people", head=head)) == events


@given(
    where=st.integers(0, 5),
    damage=st.sampled_from(["remove", "repeat", "swap", "edit", "resequence", "forge"]),
)
def test_a_damaged_chain_is_refused(where, damage):
    events = chain(7)
    if damage == "remove":
        del events[where]
    elif damage == "repeat":
        events.insert(where, events[where])
    elif damage == "swap":
        events[where : where + 2] = events[where + 1], events[where]
    elif damage == "edit":
        events[where] = replace(events[where], content=b"other bytes")
    elif damage == "resequence":
        events[where] = replace(events[where], sequence=99)
    else:  # an edited event with a hash that fits: the next one gives it away
        edited = replace(events[where], content=b"other bytes")
        events[where] = replace(edited, hash=edited.recomputed())
    with pytest.raises(LedgerError, match=r"broken|altered"):
        list(checked(events, dataset="people"))


@given(kept=st.integers(0, 6))
def test_a_cut_off_end_shows_only_by_a_head_from_outside(kept):
    events = chain(7)
    list(checked(events[:kept], dataset="people"))
    with pytest.raises(LedgerError, match="cut off"):
        list(checked(events[:kept], dataset="people", head=events[-1].hash))


def test_a_chain_of_another_data_set_is_refused():
    with pytest.raises(LedgerError, match="altered"):
        list(checked(chain(2), dataset="others"))


@pytest.fixture
def ledger(path):
    """A ledger with published, reserved, given back and recertified entries, as an attacker finds it."""
    with Ledger.open(path, evidence=IndependentGivenHabits()) as opened:
        for day in range(1, 6):
            publish_release(opened, f"key {day}", standing(period=f"2013-01-0{day}"))
        opened.give_back(reserve(opened, "back", standing(period="2014")))
        reserve(opened, "left", standing(period="2015"))
        text = certificate().with_caveats("Somebody else asked.").to_json()
        opened.recertify(opened.find("key 2"), text, sealed(text).id, sealed(text).to_bytes())
        yield opened


def attack(path, *statements, triggers=True):
    """Change the file as somebody with another program would."""
    raw = sqlite3.connect(path, isolation_level=None)
    kept = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in kept:
        raw.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        raw.execute(statement)
    for _, sql in kept if triggers else []:
        raw.execute(sql)
    raw.close()


def test_an_untouched_ledger_is_accepted(ledger):
    ledger.verify()
    for entry in ledger.entries():
        ledger.verify(entry.hash)
        ledger.verify(entry.head)
    ledger.verify(ledger.head())


@thinned(2)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET content = x'00' WHERE sequence = 2",
        "UPDATE event SET certificate = replace(certificate, '50', '51') WHERE sequence = 1",
        "UPDATE event SET standing = replace(standing, '2013-01-03', '2012-01-03') WHERE sequence = 5",
        "UPDATE event SET terms = '{}' WHERE sequence = 3",
        "UPDATE event SET release_id = 'other' WHERE sequence = 4",
        "UPDATE event SET created_at = '2000-01-01T00:00:00+00:00' WHERE sequence = 4",
        "UPDATE event SET key = 'other' WHERE sequence = 4",
        "UPDATE event SET revision = 2 WHERE sequence = 4",
        "UPDATE event SET dataset = 'other' WHERE sequence = 4",
        "UPDATE event SET hash = lower(hex(randomblob(32))) WHERE sequence = 13",
        "UPDATE event SET sequence = 100 WHERE sequence = 4",
        "DELETE FROM event WHERE sequence = 4",
        "DELETE FROM event WHERE sequence = 1",
        "DELETE FROM event WHERE sequence > 12",
    ],
)
def test_a_changed_event_is_found(path, ledger, statement):
    attack(path, "PRAGMA foreign_keys = OFF", statement)
    with pytest.raises(LedgerError):
        ledger.verify(contents=False)


@pytest.mark.parametrize("dataset", ["default", "other"])
def test_an_end_that_was_cut_off_with_care_shows_in_what_was_numbered(path, dataset):
    """Nothing is derived from a reservation given back but its entry: without both the chain is whole again."""
    with Ledger.open(path) as ledger:
        publish_release(ledger)
    with Ledger.open(path, dataset=dataset, evidence=IndependentGivenHabits()) as ledger:
        for number in range(3):
            ledger.give_back(reserve(ledger, f"key {number}", standing(period="2014")))
    attack(path, "DELETE FROM entry WHERE id > 2", "DELETE FROM event WHERE sequence > 2")
    attack(path, "DELETE FROM dataset WHERE name = 'other'")
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match="its end was cut off"):
        ledger.verify()


@thinned(3)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET state = 'reserved', published = NULL, content = NULL WHERE id = 1",
        "UPDATE entry SET content = 4 WHERE id = 1",
        "UPDATE entry SET certificate = 3 WHERE id = 1",
        "UPDATE entry SET key = 'other' WHERE id = 1",
        "UPDATE entry SET dataset = 'other' WHERE id = 1",
        "UPDATE entry SET last_day = last_day + 1 WHERE id = 1",
        "DELETE FROM entry WHERE id = 13",
        "UPDATE entry SET counts = 3 WHERE id = 1",
        "UPDATE entry SET part = lower(hex(randomblob(32))) WHERE id = 1",
        "UPDATE dataset SET name = 'other'",
        "UPDATE dataset SET folded = 'other'",
        "DELETE FROM dataset",
    ],
)
def test_a_changed_derived_table_is_found(path, ledger, statement):
    attack(path, statement)
    with pytest.raises(LedgerError):
        ledger.verify(contents=False)


def copied_row(ledger, **given):
    """Return the statement that copies an entry's row, columns that differ given."""
    columns = [row[1] for row in ledger.records.database.execute("PRAGMA table_info(entry)")]
    return f"INSERT INTO entry SELECT {', '.join(given.get(column, column) for column in columns)} FROM entry LIMIT 1"


def test_a_row_too_many_is_found(path, ledger):
    attack(path, copied_row(ledger, id="2", key="'x'"))
    with pytest.raises(LedgerError, match="altered"):
        ledger.verify(contents=False)


def test_rows_of_a_data_set_without_events_are_found(path, ledger):
    attack(path, copied_row(ledger, id="2", key="'k'", dataset="'ghost'"))
    with pytest.raises(LedgerError, match="no events"):
        ledger.verify(contents=False)


def test_an_entry_counts_with_the_boldest_certificate_it_had(path):
    with Ledger.open(path, evidence=IndependentGivenHabits()) as ledger:
        entry = publish_release(ledger, "key", standing(noised=True))
        for p_max in (0.3, 0.2):
            other = certify(entry.standing.mechanism, AttackerModel(p_max=p_max)).to_json()
            entry = ledger.recertify(entry, other, sealed(other).id, sealed(other).to_bytes())
        ledger.verify()
        assert ledger.total().epsilon(1e-6) >= certify(entry.standing.mechanism, AttackerModel(p_max=0.3)).epsilon(1e-6)


def test_a_chain_cut_off_as_a_whole_is_found_by_its_head(path, ledger):
    head = ledger.head()
    text = ledger.find("key 5").certificate
    attack(path, "DELETE FROM entry WHERE id > 10", "DELETE FROM event WHERE sequence > 10")
    with pytest.raises(LedgerError):  # the running totals still hold what was cut off
        ledger.verify(contents=False)
    assert text
    with pytest.raises(LedgerError, match="cut off"):
        ledger.verify(head, contents=False)


def test_missing_triggers_are_found(path, ledger):
    attack(path, triggers=False)
    with pytest.raises(LedgerError, match=r"event_is_never_changed.*was changed"):
        ledger.verify(contents=False)


def test_an_added_trigger_is_found(path, ledger):
    attack(path, "CREATE TRIGGER quiet AFTER INSERT ON event BEGIN DELETE FROM entry; END")
    with pytest.raises(LedgerError, match="quiet"):
        ledger.verify(contents=False)


@pytest.mark.parametrize("name", ["sqlitex_evil", "sqlite_evil"])
def test_an_added_trigger_with_a_name_like_those_of_sqlite_is_found(path, ledger, name):
    attack(
        path,
        "CREATE TRIGGER evil AFTER INSERT ON entry BEGIN DELETE FROM entry; END",
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET name = '{name}', sql = replace(sql, 'evil', '{name}') WHERE name = 'evil'",
    )
    with Ledger.open(path) as again, pytest.raises(LedgerError, match=name):
        again.verify(contents=False)


def test_statistics_for_the_query_planner_do_no_harm(path, ledger):
    attack(path, "ANALYZE")
    ledger.verify(contents=False)


def rewritten(path, change):
    """Change one event and make every hash after it fit again."""
    raw = sqlite3.connect(path)
    names = [column[1] for column in raw.execute("PRAGMA table_info(event)")]
    rows = [dict(zip(names, row, strict=True)) for row in raw.execute("SELECT * FROM event ORDER BY position")]
    raw.close()
    statements, previous = [], GENESIS
    for row in rows:
        change(row)
        row["previous"] = previous
        previous = event_hash(**{name: row[name] for name in FIELDS})
        content = "NULL" if row["content"] is None else f"x'{row['content'].hex()}'"
        statements.append(
            f"UPDATE event SET content = {content}, previous = '{row['previous']}', hash = '{previous}' "
            f"WHERE sequence = {row['sequence']}"
        )
    return statements


def test_a_rewritten_chain_is_found_by_its_head_and_by_its_releases(path, ledger):
    head = ledger.head()
    other = sealed(certificate().to_json(), count=61).to_bytes()

    def change(row):
        if row["sequence"] == 4:
            row["content"] = other

    attack(path, *rewritten(path, change))
    ledger.verify(contents=False)
    with pytest.raises(LedgerError, match="another release"):
        ledger.verify()
    with pytest.raises(LedgerError, match="cut off"):
        ledger.verify(head, contents=False)


@thinned(2)
@pytest.mark.parametrize(
    ("column", "text"),
    [("certificate", "[]"), ("certificate", "{}"), ("standing", "[]"), ("standing", '{"unit": 1}'), ("terms", "[]")],
)
def test_a_rewritten_chain_of_nonsense_is_a_ledger_error(path, ledger, column, text):
    def change(row):
        if row["sequence"] == 5:
            row[column] = text

    attack(path, f"UPDATE event SET {column} = '{text}' WHERE sequence = 5", *rewritten(path, change))
    with pytest.raises(LedgerError, match=r"cannot be read|running state"):
        ledger.verify(contents=False)


def test_comments_and_layout_of_the_schema_do_not_matter(path, ledger):
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA writable_schema = ON")
    raw.execute("UPDATE sqlite_master SET sql = replace(sql, 'days since', 'number of days since')")
    raw.execute("UPDATE sqlite_master SET sql = replace(sql, '\n', '  \n')")
    raw.close()
    ledger.verify(contents=False)


def test_a_release_that_is_none_is_found(path):
    with Ledger.open(path) as ledger:
        publish(ledger, content=b"bytes")
        with pytest.raises(LedgerError, match="cannot be replayed"):
            ledger.verify()


def test_a_release_with_another_certificate_than_was_charged_is_found(path):
    with Ledger.open(path) as ledger:
        reservation = reserve(ledger)
        release = sealed(certificate().with_caveats("Not the one.").to_json())
        ledger.publish(reservation, release.to_bytes(), release.id)
        with pytest.raises(LedgerError, match="another certificate"):
            ledger.verify()


def test_a_certificate_that_names_another_head_is_found(path):
    from pkdp_pipeline.model.context import Context

    with Ledger.open(path, evidence=IndependentGivenHabits()) as ledger:
        publish(ledger)
        offered = certificate().in_context(Context(period="2014", head="f" * 64))
        ledger.reserve("other", standing(period="2014"), lambda alone, head: offered)
        with pytest.raises(LedgerError, match="another head"):
            ledger.verify(contents=False)


@pytest.mark.parametrize("head", ["", "0" * 63, 5])
def test_a_head_that_is_none_is_refused(path, head):
    with Ledger.open(path) as ledger, pytest.raises(ArgumentError, match="64"):
        ledger.verify(head)


def test_an_empty_ledger_holds_only_the_first_head(path):
    with Ledger.open(path) as ledger:
        ledger.verify()
        ledger.verify(GENESIS)
        with pytest.raises(LedgerError, match="cut off"):
            ledger.verify("f" * 64)
