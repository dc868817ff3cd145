"""Tables that could not be read: the chain knows them, and nothing else of the ledger changes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import jsonschema
import pytest
from ledger_samples import reserve
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.chain import GENESIS
from pkdp_pipeline.ledger.reading import copied, replay
from pkdp_pipeline.ledger.sqlite_database import SqliteDatabase

SCHEMA = json.loads((Path(pkdp.__file__).parent / "schemas" / "ledger.v1.json").read_text(encoding="utf-8"))


def marked(path: Path) -> str:
    with Ledger.open(path, dataset="people") as ledger:
        for table in ("events", "events", "side.events"):
            ledger.mark_unreadable(table)
        ledger.verify()
        assert ledger.total().delta(0.0) == 0
        return ledger.head()


def test_it_is_recorded_once_for_one_data_set(path):
    marked(path)
    with Ledger.open(path, dataset="People") as ledger, Ledger.open(path, dataset="others") as others:
        assert ledger.unreadable() == {"events", "side.events"}
        assert ledger.dataset == "people"
        assert list(ledger.entries(given_back=True)) == []
        assert others.unreadable() == frozenset()


def test_a_copy_has_it_too(path):
    head = marked(path)
    with copied(str(path), dataset="people") as ledger:
        assert ledger.unreadable() == {"events", "side.events"}
    with Ledger.open(path, dataset="people") as ledger:
        target = SqliteDatabase(":memory:")
        replay(ledger.records, target)
        with Ledger(target, dataset="people") as copy:
            assert copy.head() == head
            copy.verify()


def test_it_is_part_of_the_chain(path):
    head = marked(path)
    with sqlite3.connect(path) as database:
        database.execute("DROP TRIGGER event_is_never_removed")
        database.execute("DELETE FROM event WHERE key = 'side.events'")
    database.close()
    with Ledger.open(path, dataset="people") as ledger, pytest.raises(LedgerError):
        ledger.verify(head)


def test_the_commands_show_it(path):
    marked(path)
    document = json.loads(CliRunner().invoke(cli.app, ["ledger", "export", str(path)]).stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert [(event["kind"], event["key"]) for event in document["events"]] == [
        ("unreadable", "events"),
        ("unreadable", "side.events"),
    ]
    shown = CliRunner(env={"COLUMNS": "120"}).invoke(cli.app, ["ledger", "verify", str(path)])
    assert shown.exit_code == 0
    assert "No gate answers about 'events', 'side.events'" in " ".join(shown.output.split())


def test_what_stands_first_in_a_chain_is_no_certificate(path):
    with Ledger.open(path, dataset="people") as ledger:
        ledger.mark_unreadable("events")
        head = ledger.head()
        reserve(ledger, "key")
        certificates = ledger.records.certificates_after([GENESIS, head, "f" * 64])
        assert {where: len(texts) for where, texts in certificates.items()} == {head: 1}
        assert json.loads(certificates[head][0])["mechanism"]
