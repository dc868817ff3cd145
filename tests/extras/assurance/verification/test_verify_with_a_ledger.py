"""With the ledger, a certificate that is consistent for other assumptions is told from the one that was published."""

from __future__ import annotations

import json

import pytest
from published_files import altered, frame, outcome, resealed, written

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.extras.assurance.verification import verify

ATTACKER = pkdp.AttackerModel(p_max=0.1)


@pytest.fixture
def book(tmp_path):
    """A ledger with two published days, and what was published."""
    place = tmp_path / "clinic.sqlite"
    with pkdp.Ledger.open(place, dataset="clinic", evidence=pkdp.OneDayProtected()) as ledger:
        released = [publish(ledger, f"2020-01-0{day}") for day in (1, 2)]
        total = ledger.total().to_json()
    return place, released, total


def publish(ledger, period, attacker=ATTACKER):
    return frame().pkdp.histogram("town", unit="person", k=20, attacker=attacker, period=period, ledger=ledger)


def test_what_was_published_is_held(tmp_path, book):
    place, released, total = book
    for release in released:
        verification = verify(written(tmp_path, release.to_bytes()), ledger=place)
        assert verification.passed, str(verification)
        for key in ("ledger.chain", "ledger.head", "ledger.holds", "ledger.standing"):
            assert outcome(verification, key).outcome == "pass"
        assert not verification.unchecked
        assert verify(written(tmp_path, release.certificate.to_json()), ledger=place).passed
    assert outcome(verify(written(tmp_path, total), ledger=place), "ledger.holds").outcome == "pass"


def test_assumptions_edited_consistently_are_found(tmp_path, book):
    place, (release, _), _ = book
    weaker = pkdp.certify(release.certificate.mechanism, pkdp.AttackerModel(p_max=0.09))
    text = weaker.in_context(release.certificate.context).to_json()
    forged = resealed(release.to_bytes(), certificate=lambda _: json.loads(text))
    for content in (forged, text):
        path = written(tmp_path, content)
        assert verify(path, draws=100).passed
        verification = verify(path, ledger=place, draws=100)
        assert outcome(verification, "ledger.holds").outcome == "fail"


def test_another_table_with_its_own_id_is_found(tmp_path, book):
    place, (release, _), _ = book

    def changed(table):
        table.loc[0, "count"] = 36
        return table

    path = written(tmp_path, resealed(release.to_bytes(), table=changed))
    assert verify(path).passed
    assert outcome(verify(path, ledger=place), "ledger.holds").outcome == "fail"


def test_a_total_that_has_grown_since_is_not_held(tmp_path, book):
    place, _, total = book
    with pkdp.Ledger.open(place, dataset="clinic") as ledger:
        publish(ledger, "2020-01-03", pkdp.AttackerModel(p_max=0.2))
    verification = verify(written(tmp_path, total), ledger=place)
    assert "has grown since" in outcome(verification, "ledger.holds").detail


def test_a_newer_certificate_is_mentioned(tmp_path, book):
    place, (_, release), _ = book
    with pkdp.Ledger.open(place, dataset="clinic") as ledger:
        again = publish(ledger, "2020-01-02", pkdp.AttackerModel(p_max=0.09))
    assert (
        "newer certificate"
        in outcome(verify(written(tmp_path, release.to_bytes()), ledger=place), "ledger.holds").detail
    )
    assert "newer" not in outcome(verify(written(tmp_path, again.to_bytes()), ledger=place), "ledger.holds").detail


def test_a_newer_certificate_that_promises_less_undoes_the_older_one(tmp_path, book):
    place, (_, release), _ = book
    path = written(tmp_path, release.to_bytes())
    assert verify(path, ledger=place).passed
    with pkdp.Ledger.open(place, dataset="clinic") as ledger:
        again = publish(ledger, "2020-01-02", pkdp.AttackerModel(p_max=0.12))
    verification = verify(path, ledger=place)
    assert outcome(verification, "ledger.holds").outcome == "pass"
    assert "promises less" in outcome(verification, "ledger.standing").detail
    assert not verification.passed
    assert verify(written(tmp_path, again.to_bytes()), ledger=place).passed


def test_another_head_is_found(tmp_path, book):
    place, (_, release), _ = book
    forged = altered(json.loads(release.certificate.to_json()), "context", "head", to="f" * 64)
    verification = verify(written(tmp_path, forged), ledger=place)
    assert outcome(verification, "ledger.head").outcome == "fail"
    assert outcome(verification, "ledger.holds").outcome == "fail"


def test_what_stands_beside_it_since_undoes_it(tmp_path):
    place, people = tmp_path / "noise.sqlite", frame()
    box = pkdp.AttackerModel(p_min=0.3, p_max=0.3, unknown=300)
    options = {"unit": "person", "noise": pkdp.GeometricNoise(0.5), "period": "2020"}
    with pkdp.Ledger.open(place, dataset="clinic") as ledger:
        first = people.pkdp.count(attacker=box, ledger=ledger, **options)
        path = written(tmp_path, first.to_bytes())
        assert verify(path, ledger=place).passed
        people.pkdp.count(where="town == 'Bø'", attacker=box, ledger=ledger, **options)
    verification = verify(path, ledger=place)
    assert outcome(verification, "ledger.holds").outcome == "pass"
    assert outcome(verification, "ledger.standing").outcome == "fail"


def test_a_ledger_that_was_altered_or_is_another_one(tmp_path, book):
    import sqlite3

    place, (release, _), _ = book
    path = written(tmp_path, release.to_bytes())
    with pytest.raises(LedgerError):
        verify(path, ledger=tmp_path / "none.sqlite")
    other = tmp_path / "other.sqlite"
    with pkdp.Ledger.open(other, dataset="another") as ledger:
        publish(ledger, "2020-01-01")
    assert outcome(verify(path, ledger=other), "ledger.holds").outcome == "fail"
    with sqlite3.connect(place) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{trigger}"')
        connection.execute("UPDATE event SET created_at = '2000-01-01T00:00:00+00:00' WHERE position = 2")
    assert outcome(verify(path, ledger=place), "ledger.chain").outcome == "fail"
