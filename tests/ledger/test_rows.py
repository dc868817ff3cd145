"""A release that was certified several times counts with the pointwise largest of its promises, whatever the order."""

from __future__ import annotations

import itertools
from contextlib import suppress

import numpy as np
import pytest
from accounts_book import Book, certified
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from thorough import few, thinned

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.errors import BudgetExceededError, LedgerError, NotCertifiableError
from pkdp_pipeline.ledger import rows
from pkdp_pipeline.ledger.chain import Budget, Terms
from pkdp_pipeline.ledger.history import read_history
from pkdp_pipeline.model.attacker import AttackerModel, Leakage
from pkdp_pipeline.model.evidence import BoundedDependence, IndependentGivenHabits, OncePerUnit, OneDayProtected
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram

EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 1.7, 3.0, 6.0, 15.0])
CONTROLLING = AttackerModel(p_max=0.02, known=25, influence="active")
SURE = AttackerModel(p_max=0.6)


def charged(mechanism, attackers, evidence=(), **more):
    book = Book(Terms(evidence=evidence))
    entry = book.add(mechanism, "2013-01-01", attacker=attackers[0], **more)
    for attacker in attackers[1:]:
        book.recertify(entry, attacker)
    return book


def profile(total):
    return np.array([total.delta(EPSILONS), total.worst_case.delta(EPSILONS)])


def test_a_second_attacker_takes_nothing_off_a_total():
    mechanism = Count(k=30)
    alone = [certified(mechanism, attacker, "presence").epsilon(1e-6) for attacker in (CONTROLLING, SURE)]
    assert alone == pytest.approx([4.25, 2.80], abs=0.01)
    for attackers in itertools.permutations((CONTROLLING, SURE)):
        book = charged(mechanism, attackers)
        assert book.total().epsilon(1e-6) == alone[0]
        book.verify()
        assert Certificate.from_json(book.total().to_json()).verify()
        # What a page says of it is the same.
        (part,) = read_history(book.ledger).parts.values()
        assert part.epsilon(1e-6) == alone[0]
        assert {*read_history(book.ledger).attackers('["tailnum"]')} == {SURE, CONTROLLING}


def test_a_budget_holds_the_largest_promise():
    budget = Budget(3.0, 1e-6, part="partial_knowledge")
    book = Book(Terms(evidence=(IndependentGivenHabits(),)))
    entry = book.add(Count(k=30), "2013-01-01", attacker=CONTROLLING)
    book.recertify(entry, SURE)
    book.terms = Terms(evidence=(IndependentGivenHabits(),), budgets=(budget,))
    with pytest.raises(BudgetExceededError, match=r"prior: epsilon = 4\.26"):
        book.add(Count(k=30), "2013-01-02", attacker=AttackerModel(p_max=0.001))


def test_a_row_that_forgets_a_promise_is_found():
    book = charged(Count(k=30), (CONTROLLING, SURE))
    (text, milder) = (certified(Count(k=30), attacker, "presence").to_json() for attacker in (CONTROLLING, SURE))
    assert rows.counted([text, milder]) == rows.counted([milder, text])
    for part in map(rows.part_key, ([text], [milder])):
        book.database.execute("UPDATE entry SET part = :part", part=part)
        with pytest.raises(LedgerError, match="altered"):
            book.verify()
        with pytest.raises(LedgerError, match="altered"):
            book.ledger.total()


ATTACKERS = st.builds(
    AttackerModel,
    p_max=st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.5]),
    known=st.sampled_from([0, 0, 2, 4]),
    influence=st.sampled_from(["passive", "active"]),
    unknown_max=st.sampled_from([None, None, 20]),
    leakage=st.sampled_from([(), (), Leakage("a survey", epsilon=0.1)]),
)
MECHANISMS = st.sampled_from(
    [
        Count(k=8),
        Histogram(k=8),
        Histogram(k=8, noise=GeometricNoise(1.0), release_threshold=16),
        Count(noise=GeometricNoise(0.3)),
    ]
)


@given(MECHANISMS, st.lists(ATTACKERS, min_size=2, max_size=4), st.randoms(use_true_random=False))
@example(Count(k=30), [CONTROLLING, SURE], None)
@settings(max_examples=few(40, 3), deadline=None)
def test_a_total_is_the_largest_promise_in_any_order(mechanism, attackers, chance):
    try:
        alone = [profile(certified(mechanism, attacker, "presence")) for attacker in attackers]
    except NotCertifiableError:
        assume(False)
    largest = np.max(alone, axis=0)
    book, before = charged(mechanism, attackers[:1]), alone[0]
    for attacker in attackers[1:]:
        book.recertify(max(book.kept), attacker)
        total = profile(book.total())
        assert (total >= before * (1 - 1e-9)).all()
        before = total
    assert before == pytest.approx(largest, rel=1e-8)
    book.verify()
    if chance is not None:
        chance.shuffle(attackers)
    assert profile(charged(mechanism, attackers).total()) == pytest.approx(before, rel=1e-8)


@thinned(2)
@pytest.mark.parametrize(
    ("protects", "evidence"),
    [
        ("presence", IndependentGivenHabits()),
        ("presence", OncePerUnit()),
        ("presence", BoundedDependence(0.1)),
        pytest.param("value", OneDayProtected(), marks=pytest.mark.slow),
        pytest.param("value", OncePerUnit(), marks=pytest.mark.slow),
        pytest.param("value", IndependentGivenHabits(), marks=pytest.mark.slow),
    ],
)
def test_totals_of_days_do_not_fall_by_crossing_certificates(evidence, protects):
    mechanism = Histogram(k=30)
    attackers = (AttackerModel(p_max=0.295), AttackerModel(p_max=0.05, known=13, influence="active"))
    books = []
    for several in (attackers[:1], attackers[1:], attackers, attackers[::-1]):
        book = charged(mechanism, several, (evidence,), protects=protects)
        book.add(mechanism, "2013-01-02", attacker=AttackerModel(p_max=0.1), protects=protects)
        books.append(book)
    first, second, both, other = (book.total().delta(EPSILONS) for book in books)
    assert (first < second).any()
    assert (first > second).any()
    # Of two certificates the larger profile is added up, which is below the waiting times that one is added up by.
    slack = 5e-2 if protects == "value" and evidence == IndependentGivenHabits() else 1e-9
    assert (both >= np.maximum(first, second) * (1 - slack)).all()
    assert both == pytest.approx(other, rel=1e-9)
    assert books[2].total().protects == protects
    books[2].verify()


def test_beside_another_release_a_table_counts_with_its_noise():
    noised = Count(noise=GeometricNoise(0.3))
    attackers = (AttackerModel(p_min=0.3, p_max=0.5, unknown=50), AttackerModel(p_min=0.2, p_max=0.3, unknown=70))
    book = charged(noised, attackers)
    book.add(noised, "2013-01-01", attacker=AttackerModel(), label="y")
    assert book.total().worst_case.parameters == (0.6, 0.0)
    assert not book.total().has_partial_knowledge


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        ({"p_max": 0.1}, {"p_max": 0.2}, True),
        ({"p_max": 0.2}, {"p_max": 0.1}, False),
        ({"p_max": 0.2}, {}, True),
        ({}, {"p_max": 0.2}, False),
        ({"known": 3}, {"known": 4, "influence": "active"}, True),
        ({"known": 3, "influence": "active"}, {"known": 4}, False),
        ({"influence": "active"}, {}, True),
        ({"p_min": 0.2, "unknown": 9, "unknown_max": 20}, {"p_min": 0.1, "unknown": 8, "unknown_max": 21}, True),
        ({"unknown": 7}, {"unknown": 8}, False),
        ({"unknown_max": 21}, {"unknown_max": 20}, False),
        ({"independent_cells": True}, {}, True),
        ({}, {"independent_cells": True}, False),
        ({}, {"leakage": Leakage("a survey", epsilon=0.1)}, True),
        ({"leakage": Leakage("a survey", epsilon=0.1)}, {}, False),
        ({}, {"leakage": Leakage.total()}, False),
        ({"dependent": "household"}, {}, False),
        ({}, {"dependent": "household"}, False),
    ],
)
def test_an_attacker_fits_another_who_is_assumed_to_know_as_much(first, second, fits):
    assert AttackerModel(**first).fits(AttackerModel(**second)) is fits


def as_scanned(book, entry):
    """Return a release's certificates as a scan of all events finds them."""
    row = book.records.row(entry)
    events = [event for event in book.records.events() if (event.key, event.revision) == (row.key, row.revision)]
    return tuple(event.certificate for event in events if event.certificate and row.id <= event.sequence)


def test_certificates_are_found_after_a_transaction_that_was_rolled_back():
    """Events that were rolled back leave their numbers to others."""
    book = Book()
    first, second, third = (book.add(Count(k=30), f"2013-01-0{day}", check=False) for day in (1, 2, 3))
    for entry in (first, second):
        book.recertify(entry, SURE)
    with suppress(ZeroDivisionError), book.records.transaction():
        certificate = book.records.read(first).certificate
        book.records.record("recertified", "key 1", 1, certificate=certificate, release_id="id", content=b"bytes")
        assert len(book.records.certificates(book.records.row(first))) == 3
        raise ZeroDivisionError
    for entry, attacker in [(second, CONTROLLING), (first, AttackerModel(p_max=0.3)), (second, CONTROLLING)]:
        book.recertify(entry, attacker)
        for other in (first, second, third):
            assert book.records.certificates(book.records.row(other)) == as_scanned(book, other)
    assert [len(as_scanned(book, entry)) for entry in (first, second, third)] == [3, 4, 1]


def test_certificates_of_one_release_are_found_as_quickly_among_many():
    """Steps of SQLite's virtual machine, once the chain was read."""
    book, steps = Book(), []
    for releases in (5, 20):
        while len(book.kept) < releases:
            entry = book.add(Count(k=30), "2013-01-01", check=False)
            book.recertify(entry, SURE)
        first, counted = book.records.row(min(book.kept)), [0]
        assert len(book.records.certificates(first)) == 2

        def count(counted=counted):
            counted[0] += 1

        book.database._connection.set_progress_handler(count, 1)
        assert len(book.records.certificates(first)) == 2
        book.database._connection.set_progress_handler(None, 1)
        steps.append(counted[0])
    assert 0 < steps[0] == steps[1]
