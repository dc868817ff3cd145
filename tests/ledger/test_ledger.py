from __future__ import annotations

import json
import threading
import warnings
from dataclasses import FrozenInstanceError, replace

import pandas as pd
import pytest
from ledger_samples import (
    NOISED,
    certificate,
    publish,
    publish_release,
    reserve,
    sealed,
    standing,
)

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    DifferencingError,
    LedgerError,
    NotCertifiableError,
    TemporaryError,
)
from pkdp_pipeline.ledger import Entry, Ledger, Reservation
from pkdp_pipeline.ledger.admission import Admission, admit
from pkdp_pipeline.ledger.chain import GENESIS, Budget
from pkdp_pipeline.ledger.reading import charging_together
from pkdp_pipeline.ledger.sqlite_database import SqliteDatabase
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.evidence import IndependentGivenHabits
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram

HABITS = IndependentGivenHabits()


def kinds(ledger):
    return [event.kind for event in ledger.records.events()]


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
    assert (entry.revision, entry.period, entry.label, entry.noiseless) == (1, "2013-01-02", "by carrier", True)
    assert (entry.evidence, entry.head) == ((), GENESIS)
    with pytest.raises(FrozenInstanceError):
        entry.content = b""


def test_a_release_is_charged_before_it_is_published(path):
    with Ledger.open(path) as ledger:
        reservation = reserve(ledger)
        assert isinstance(reservation, Reservation)
        charged = reservation.charged
        assert (charged.key, charged.revision, charged.head, charged.sequence) == ("key", 1, GENESIS, 1)
        assert (charged.dataset, reservation.certificate) == ("default", certificate())
        assert ledger.find("key") is None
        (entry,) = ledger.entries()
        assert (entry.state, entry.content, entry.release_id) == ("reserved", None, None)
        assert ledger.beside(standing("another")) == []
        with pytest.raises(DifferencingError):
            reserve(ledger, "another", standing("another"))
        published, replayed = ledger.publish(reservation, b"bytes", "release")
        assert not replayed
        assert ledger.find("key") == published
        assert kinds(ledger) == ["reserved", "published"]


def test_the_same_key_replays_the_first_bytes_and_charges_nothing(path):
    with Ledger.open(path) as ledger:
        first, _ = publish(ledger, content=b"first")
        second, replayed = publish(ledger, content=b"second")
        assert replayed
        assert second == first
        assert [entry.content for entry in ledger.entries()] == [b"first"]
        assert kinds(ledger) == ["reserved", "published"]


def test_a_reservation_that_was_left_is_taken_over_and_charged_once(path):
    with Ledger.open(path) as ledger:
        left = reserve(ledger)
    with Ledger.open(path) as ledger:
        assert reserve(ledger) == left
        assert kinds(ledger) == ["reserved"]
        ledger.publish(left, b"bytes", "release")
        assert kinds(ledger) == ["reserved", "published"]


def test_of_two_runs_with_one_reservation_the_first_publishes(path):
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        mine, theirs = reserve(ledger), reserve(other)
        assert mine == theirs
        first, replayed = other.publish(theirs, b"theirs", "theirs")
        assert not replayed
        assert ledger.publish(mine, b"mine", "mine") == (first, True)
        assert first.content == b"theirs"
        assert not ledger.give_back(mine)
        assert ledger.find("key") == first


def test_what_was_given_back_is_charged_no_more_and_can_be_asked_again(path):
    with Ledger.open(path) as ledger:
        reservation = reserve(ledger)
        assert ledger.give_back(reservation)
        assert ledger.give_back(reservation)
        assert kinds(ledger) == ["reserved", "given_back"]
        assert list(ledger.entries()) == []
        assert [entry.state for entry in ledger.entries(given_back=True)] == ["given_back"]
        reserve(ledger, "another", standing("another"))
        with pytest.raises(DifferencingError):
            reserve(ledger)


def test_a_release_whose_reservation_was_given_back_is_not_published(path):
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        mine = reserve(ledger)
        other.give_back(reserve(other))
        with pytest.raises(TemporaryError, match="gave its reservation back"):
            ledger.publish(mine, b"bytes", "release")
        again = reserve(other)
        assert (again.charged.revision, again.charged.sequence > mine.charged.sequence) == (1, True)
        with pytest.raises(TemporaryError):
            ledger.publish(mine, b"bytes", "release")
        other.publish(again, b"again", "release")
        assert ledger.find("key").content == b"again"
        ledger.verify(contents=False)


def test_a_revision_is_one_more_release_of_the_same_key(path):
    what = standing(noised=True)
    with Ledger.open(path) as ledger:
        publish(ledger, what=what, content=b"first")
        second, replayed = publish(ledger, what=what, content=b"second", revise=True)
        assert (second.revision, replayed) == (2, False)
        assert ledger.find("key") == second
        assert publish(ledger, what=what)[0] == second
        left = reserve(ledger, what=what, revise=True)
        assert left.charged.revision == 3
        assert ledger.find("key") == second
        assert publish(ledger, what=what) == (second, True)
        assert reserve(ledger, what=what, revise=True) == left
        ledger.give_back(left)
        third = reserve(ledger, what=what, revise=True)
        assert third.charged.revision == 3
        ledger.publish(third, b"third", "release")
        assert [entry.revision for entry in ledger.entries()] == [1, 2, 3]
        ledger.verify(contents=False)


def test_a_revision_without_noise_is_refused(path):
    with Ledger.open(path) as ledger:
        publish(ledger)
        with pytest.raises(DifferencingError):
            publish(ledger, revise=True)
        assert kinds(ledger) == ["reserved", "published"]


def test_an_offer_is_told_what_it_may_claim_and_where_the_chain_is(path):
    offered = []

    def offer(admission, head):
        offered.append((admission, head))
        return certificate(NOISED).worst_case_only()

    with Ledger.open(path) as ledger:
        for label in "ab":
            head = ledger.head()
            reservation = ledger.reserve(label, standing(label, noised=True), offer)
            first = label == "a"
            assert offered[-1] == (Admission(alone=first, claims=first), head)
            assert reservation.charged.head == head
            ledger.publish(reservation, b"bytes", "release")
        assert [entry.head for entry in ledger.entries()] == [head for _, head in offered]


def test_an_offer_that_fails_charges_nothing(path):
    def offer(admission, head):
        raise NotCertifiableError("no")

    with Ledger.open(path) as ledger:
        with pytest.raises(NotCertifiableError):
            ledger.reserve("key", standing(), offer)
        assert kinds(ledger) == []
        assert not publish(ledger)[1]


def test_an_offer_may_read_the_ledger_but_not_change_it(path):
    with Ledger.open(path, evidence=HABITS) as ledger:

        def offer(admission, head):
            assert ledger.find("key") is None
            reserve(ledger, "inner", standing(period="2014"))

        with pytest.raises(ArgumentError, match="from inside"):
            ledger.reserve("key", standing(), offer)
        assert kinds(ledger) == []


def test_differencing_is_checked_again_inside_the_transaction(path):
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        assert admit(ledger.records, standing("a"), ledger.terms) == Admission(alone=True, claims=True)
        assert admit(other.records, standing("b"), other.terms).alone
        publish(ledger, "a", standing("a"))
        with pytest.raises(DifferencingError):
            publish(other, "b", standing("b"))
        assert [entry.key for entry in other.entries()] == ["a"]


def test_data_sets_do_not_see_each_other(path):
    with Ledger.open(path, dataset="flights", evidence=HABITS) as ledger:
        publish(ledger)
        with pytest.raises(DifferencingError):
            admit(ledger.records, standing("another view"), ledger.terms)
        assert [other.label for other in ledger.beside(standing("another view"))] == ["by carrier"]
        reservation = reserve(ledger, "later", standing(period="2014"))
    with Ledger.open(path, dataset="ships") as ledger:
        assert admit(ledger.records, standing("another view"), ledger.terms).alone
        assert ledger.beside(standing("another view")) == []
        assert list(ledger.entries()) == []
        assert ledger.find("key") is None
        assert ledger.head() == GENESIS
        with pytest.raises(ArgumentError, match="flights"):
            ledger.publish(reservation, b"bytes", "release")
        publish(ledger)
        ledger.verify(contents=False)


def test_the_first_spelling_of_a_data_set_is_kept(path):
    with Ledger.open(path, dataset="Flights of  2013") as ledger:
        publish(ledger)
    with Ledger.open(path, dataset="  flights OF 2013 ") as ledger:
        assert ledger.dataset == "Flights of 2013"
        assert publish(ledger)[1]
        ledger.verify(contents=False)


def test_a_spelling_that_comes_second_is_refused_once_and_then_known(path):
    with Ledger.open(path, dataset="Flights") as ledger, Ledger.open(path, dataset="flights") as other:
        publish(ledger)
        with pytest.raises(TemporaryError, match="'Flights'"):
            publish(other, "key")
        assert other.dataset == "Flights"
        assert publish(other, "key") == (ledger.find("key"), True)
        assert [entry.key for entry in ledger.entries()] == ["key"]


def test_a_ledger_opened_under_another_spelling_sees_what_is_published_later(path):
    with Ledger.open(path, dataset="Flights") as ledger, Ledger.open(path, dataset="flights") as other:
        assert other.total().delta(0.0) == 0.0
        publish(ledger, what=standing(noised=True))
        assert other.total() == ledger.total()
        assert [entry.key for entry in other.entries()] == ["key"]
        assert (other.dataset, other.head(), other.terms) == ("Flights", ledger.head(), ledger.terms)
        assert other.find("key") == ledger.find("key")
        other.verify(contents=False)


def test_a_spelling_is_not_kept_where_nothing_was_charged(path):
    def offer(admission, head):
        assert other.dataset == "flights"
        raise NotCertifiableError("no")

    with Ledger.open(path, dataset="Flights") as ledger, Ledger.open(path, dataset="flights") as other:
        with pytest.raises(NotCertifiableError):
            other.reserve("key", standing(), offer)
        publish(ledger)
        assert other.dataset == "Flights"
        assert other.find("key") == ledger.find("key")


@pytest.mark.parametrize("period", ["2013-01-02", "2013-W01", "2012-12-31/2013-01-02", "2013", "first wave"])
def test_beside_finds_what_overlaps(path, period):
    with Ledger.open(path) as ledger:
        publish(ledger, "day", standing("day", noised=True))
        publish(ledger, "other day", standing("other day", period="2014-05-01", noised=True))
        publish(ledger, "label", standing("label", period="First  wave", noised=True))
        overlapping_keys = {entry.key for entry in ledger.beside(standing(period=period))}
    assert overlapping_keys == ({"day", "label"} if period != "first wave" else {"day", "other day", "label"})


def test_a_label_overlaps_no_other_label(path):
    with Ledger.open(path) as ledger:
        publish(ledger, "first", standing(period="first wave"))
        assert ledger.beside(standing(period="second wave")) == []


def test_entries_come_in_order_and_can_be_read_while_publishing(path):
    with Ledger.open(path, evidence=HABITS) as ledger:
        for day in range(1, 41):
            publish(
                ledger, f"key {day}", standing(period=f"2013-02-{day:02d}" if day < 29 else f"2013-03-{day - 28:02d}")
            )
        read_keys = []
        for entry in ledger.entries():
            read_keys.append(entry.key)
            if len(read_keys) == 1:
                publish(ledger, "late", standing(period="2012-02-01"))
        assert read_keys == [f"key {day}" for day in range(1, 41)] + ["late"]


def test_a_table_can_be_certified_again_and_keeps_both_certificates(path):
    with Ledger.open(path) as ledger:
        first = publish_release(ledger)
        other = certificate().with_caveats("Somebody else asked.").to_json()
        release = sealed(other)
        again = ledger.recertify(first, other, release.id, release.to_bytes())
        assert (again.certificate, again.content, again.release_id) == (other, release.to_bytes(), release.id)
        assert (again.sequence, again.revision, again.created_at) == (first.sequence, 1, first.created_at)
        assert again.hash == ledger.head() != first.hash
        assert ledger.find("key") == again
        assert kinds(ledger) == ["reserved", "published", "recertified"]
        assert ledger.recertify(first, other, release.id, release.to_bytes()) == again
        assert kinds(ledger) == ["reserved", "published", "recertified"]
        with pytest.raises(TemporaryError):
            ledger.recertify(first, first.certificate, first.release_id, first.content)
        ledger.verify()


def test_what_is_not_published_is_not_certified_again(path):
    with Ledger.open(path) as ledger:
        reserve(ledger)
        (entry,) = ledger.entries()
        with pytest.raises(ArgumentError, match="published"):
            ledger.recertify(entry, entry.certificate, "release", b"bytes")


def test_terms_are_those_given_or_else_those_of_the_last_reservation(path):
    budget = Budget(epsilon=9.0, delta=0.1, part="partial_knowledge")
    with Ledger.open(path, budget=budget, evidence=HABITS) as ledger:
        publish(ledger)
    with Ledger.open(path) as ledger:
        assert (ledger.terms.budgets, ledger.terms.evidence) == ((budget,), (HABITS,))
        assert ledger.find("key").evidence == (HABITS,)
    with Ledger.open(path, budget=()) as ledger:
        assert (ledger.terms.budgets, ledger.terms.evidence) == ((), (HABITS,))
        publish(ledger, "next", standing(period="2014"))
    with Ledger.open(path) as ledger:
        assert ledger.terms.budgets == ()
        ledger.verify(contents=False)


def test_the_total_is_of_what_is_charged(path):
    with Ledger.open(path) as ledger:
        assert ledger.total().delta(0.0) == 0.0
        left = reserve(ledger, what=standing(noised=True))
        assert ledger.total().worst_case.epsilon(0.0) == pytest.approx(certificate(NOISED).worst_case.epsilon(0.0))
        assert ledger.total("tailnum").worst_case.epsilon(0.0) == ledger.total().worst_case.epsilon(0.0)
        ledger.give_back(left)
        assert ledger.total().delta(0.0) == 0.0


@pytest.mark.parametrize("dataset", ["", " ", None, "a\x00b"])
def test_the_data_set_needs_a_name(path, dataset):
    with pytest.raises(ArgumentError, match="dataset"):
        Ledger.open(path, dataset=dataset)
    assert not path.exists()


def test_a_closed_ledger_is_a_ledger_error(path):
    ledger = Ledger.open(path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.find("key")


def test_a_ledger_in_memory_works():
    with Ledger.open(":memory:") as ledger:
        publish(ledger)
        assert publish(ledger)[1]
        ledger.verify(contents=False)


def test_a_malformed_entry_is_refused_whole(path):
    class Broken:
        def written(self):
            return self

        def to_json(self):
            return "not json"

    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerError):
            ledger.reserve("key", standing(), lambda admission, head: Broken())
        with pytest.raises(ArgumentError, match="content"):
            ledger.publish(reserve(ledger), "text", "release")
        assert kinds(ledger) == ["reserved"]


def test_another_ledger_does_not_hold_the_reservation(path, tmp_path):
    with Ledger.open(path) as ledger, Ledger.open(tmp_path / "other.sqlite") as other:
        reservation = reserve(ledger)
        with pytest.raises(LedgerError, match="does not hold the reservation"):
            other.publish(reservation, b"bytes", "release")


def test_threads_may_share_a_ledger(path):
    outcomes = []
    with Ledger.open(path, evidence=HABITS) as ledger:

        def work(number):
            entry, replayed = publish(ledger, "key", content=str(number).encode())
            outcomes.append((entry.content, replayed))
            publish(ledger, f"own {number}", standing(period=f"200{number}"))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(replayed for _, replayed in outcomes) == [False] + [True] * 7
        assert len({content for content, _ in outcomes}) == 1
        assert len(list(ledger.entries())) == 9
        ledger.verify(contents=False)


def test_an_entry_is_written_down_completely(path):
    what = standing('text with "quotes" and ünï', noised=True)
    with Ledger.open(path) as ledger:
        reserve(ledger, "kéy", what)
        (entry,) = ledger.entries()
    assert isinstance(entry, Entry)
    assert entry.standing == what
    assert json.loads(entry.certificate) == json.loads(certificate(NOISED).to_json())


def test_budgets_and_evidence_may_be_given_as_an_iterator(path):
    budget = Budget(epsilon=0.1, delta=0.0)
    with Ledger.open(path, budget=iter([budget]), evidence=(kind for kind in [HABITS])) as ledger:
        assert (ledger.terms.budgets, ledger.terms.evidence) == ((budget,), (HABITS,))


def test_a_new_certificate_does_not_overlook_what_was_charged_meanwhile(path):
    mechanism = Count(noise=GeometricNoise(epsilon=0.1))
    what = replace(standing("counted"), mechanism=mechanism, by=None)
    attacker = AttackerModel(p_min=0.2, p_max=0.8, unknown=100)
    claim = certify(mechanism, attacker)
    assert claim.has_partial_knowledge
    with Ledger.open(path) as ledger:
        first = publish(ledger, what=what, content=b"first")[0]
        assert ledger.admission(first) == Admission(alone=True, claims=True)
        publish(ledger, "other", standing("other", noised=True))
        assert ledger.admission(first) == Admission(alone=False, claims=False)
        silent = claim.worst_case_only().in_context(Context(period=what.period))
        for text in (claim.to_json(), silent.to_json()):
            with pytest.raises(TemporaryError, match="beside"):
                ledger.recertify(first, text, "release", b"again")
        assert ledger.find("key") == first


def noised(label, epsilon, period="2013-01-02"):
    mechanism = Histogram(noise=GeometricNoise(epsilon=epsilon))
    return replace(standing(label, period=period), mechanism=mechanism)


def worst_case_budget(epsilon):
    return Budget(epsilon=epsilon, delta=0.0, part="worst_case")


def test_a_reservation_is_taken_over_under_the_budget_now_in_force(path):
    what = noised("big", 2.0)
    with Ledger.open(path, budget=worst_case_budget(5.0)) as ledger:
        left = reserve(ledger, what=what)
    with Ledger.open(path, budget=worst_case_budget(1.0)) as ledger:
        head, total = ledger.head(), ledger.total()
        with pytest.raises(BudgetExceededError):
            reserve(ledger, what=what)
        assert (ledger.head(), ledger.total()) == (head, total)
        assert [entry.state for entry in ledger.entries()] == ["reserved"]
        ledger.verify()
    with Ledger.open(path, budget=worst_case_budget(3.0)) as ledger:
        again = reserve(ledger, what=what)
        assert (again.charged.revision, again.charged.sequence > left.charged.sequence) == (1, True)
        assert kinds(ledger) == ["reserved", "given_back", "reserved"]
        assert ledger.total().worst_case.parameters == total.worst_case.parameters
        with pytest.raises(TemporaryError, match="gave its reservation back"):
            ledger.publish(left, b"bytes", "release")
        (entry,) = ledger.entries()
        assert entry.terms.budgets == (worst_case_budget(3.0),)
        ledger.verify()


def test_a_reservation_is_taken_over_beside_what_was_charged_meanwhile(path):
    what = replace(standing("counted"), mechanism=Count(noise=GeometricNoise(epsilon=0.1)), by=None)
    with Ledger.open(path) as ledger:
        left = reserve(ledger, what=what)
        publish(ledger, "other", standing("other", noised=True))
        offered = []

        def offer(admission, head):
            offered.append((admission, head))
            return certify(what.mechanism, AttackerModel()).in_context(Context(period=what.period, head=head))

        again = ledger.reserve("key", what, offer)
        assert {admission for admission, _ in offered} == {Admission(alone=False, claims=False)}
        assert again.charged.head == offered[-1][1] == json.loads(again.certificate.to_json())["context"]["head"]
        assert again != left
        assert ledger.reserve("key", what, offer) == again
        assert kinds(ledger) == ["reserved", "reserved", "published", "given_back", "reserved"]
        ledger.verify(contents=False)


def test_a_reservation_that_may_not_stand_any_more_stays_charged(path):
    with Ledger.open(path, evidence=HABITS) as ledger:
        reserve(ledger, "one", standing("one"))
        reserve(ledger, "two", standing("two", period="2014"))
    with Ledger.open(path, evidence=()) as ledger:
        head = ledger.head()
        with pytest.raises(DifferencingError):
            reserve(ledger, "one", standing("one"))
        assert ledger.head() == head
        assert [entry.state for entry in ledger.entries()] == ["reserved", "reserved"]
        ledger.verify()


def test_taking_over_leaves_the_running_state_as_it_was(path):
    with Ledger.open(path) as ledger:
        for label, period in (("a", "2013-01-01/2013-01-05"), ("b", "2013-01-04/2013-01-09"), ("c", "2013-01-08")):
            reserve(ledger, label, noised(label, 0.5, period))
        total = ledger.total()
        for label, period in (("b", "2013-01-04/2013-01-09"), ("a", "2013-01-01/2013-01-05")):
            assert reserve(ledger, label, noised(label, 0.5, period)).charged.revision == 1
            assert ledger.total() == total
            ledger.verify()
        assert kinds(ledger) == ["reserved"] * 3


def test_a_day_is_held_to_the_terms_that_others_recorded_while_it_waited(path, monkeypatch):
    noised, plain = standing(noised=True), SqliteDatabase.transaction
    with Ledger.open(path, budget=Budget(9, 0, part="worst_case")) as ledger:
        publish(ledger, "first", noised)

    def transaction(self, dataset):
        monkeypatch.setattr(SqliteDatabase, "transaction", plain)
        with Ledger.open(path, budget=Budget(0.5, 0, part="worst_case")) as other:
            reserve(other, "second", noised)
        return plain(self, dataset)

    with Ledger.open(path) as ledger:
        monkeypatch.setattr(SqliteDatabase, "transaction", transaction)
        with charging_together(ledger) as inside:
            reserve(inside, "third", noised)
        first, second, third = ledger.entries()
    assert first.terms != second.terms == third.terms


def test_a_head_may_be_written_in_capitals(path):
    with Ledger.open(path) as ledger:
        publish(ledger)
        ledger.verify(ledger.head().upper(), contents=False)


def test_the_total_of_a_data_set_that_is_not_there_names_those_that_are(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path, dataset="visits") as ledger, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ledger.total().releases == 0  # a new one: nothing to be confused with
        release = {"unit": "person", "noise": pkdp.GeometricNoise(1.0), "ledger": ledger, "period": "2013-01-02"}
        pkdp.count(pd.DataFrame({"person": ["a"]}), **release)
    with Ledger.open(path) as ledger, pytest.warns(UserWarning, match="'default' has nothing in .* holds 'visits'"):
        assert ledger.total().releases == 0
