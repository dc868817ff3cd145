"""The exact number of people as a release: what it may stand beside, what still adds up, and what it takes away."""

from __future__ import annotations

import pandas as pd
import pytest
from accounts_book import ATTACKER, Book, standing
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.errors import ArgumentError, BudgetExceededError, DifferencingError, NoEvidenceError, PkdpError
from pkdp_pipeline.ledger import Budget, Entry, Period, check_differencing
from pkdp_pipeline.ledger.chain import Terms
from pkdp_pipeline.model.attacker import Leakage
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
)
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.publish import Publication, publish

TOTAL = Leakage.total()
SURE, TOLD = pkdp.AttackerModel(p_max_between=0.6), pkdp.AttackerModel(p_max_between=0.6, leakage=TOTAL)
NOISY = Leakage("the noised number of people present", tells="people_present", epsilon=0.1)
ROUGHLY = Leakage("whether it is a large town", tells="people_present", shared_by=("presence",))
TABLE, NOISED = Histogram(k=50), Histogram(noise=GeometricNoise(0.5))
THRESHOLDED = Histogram(k=5, noise=GeometricNoise(0.5), release_threshold=30)
DAY = "2021-03-01"
HISTOGRAM = {"unit": "id", "by": "cell", "period": DAY, "protects": "value"}
PEOPLE = pd.DataFrame({"id": range(170), "cell": ["a"] * 90 + ["b"] * 60 + ["c"] * 20})


@pytest.fixture
def ledger():
    with pkdp.Ledger.open(":memory:", dataset="census") as opened:
        yield opened


def total(ledger, attacker=TOLD, **more):
    terms = {"unit": "id", "period": DAY, "protects": "value", **more}
    return PEOPLE.pkdp.count(attacker=attacker, ledger=ledger, **terms)


def table(ledger, attacker=TOLD, **more):
    terms = {"unit": "id", "period": DAY, "protects": "value", "k": 50, **more}
    return PEOPLE.pkdp.histogram("cell", attacker=attacker, ledger=ledger, **terms)


def noised(ledger, attacker=TOLD, **more):
    return table(ledger, attacker, k=None, noise=pkdp.GeometricNoise(0.5), domain=["a", "b", "c"], **more)


def same(first, second):
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        assert first.delta(epsilon) == second.delta(epsilon)
        assert first.worst_case.delta(epsilon) == second.worst_case.delta(epsilon)


def unchanged(ledger, act, error=DifferencingError):
    before = (ledger.head(), [(entry.sequence, entry.hash) for entry in ledger.entries(given_back=True)])
    with pytest.raises(error) as caught:
        act()
    assert before == (ledger.head(), [(entry.sequence, entry.hash) for entry in ledger.entries(given_back=True)])
    return str(caught.value)


# A census day -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("total_first", [True, False])
def test_a_census_day_promises_what_theorem_c_does(ledger, total_first):
    releases = [total(ledger), table(ledger)] if total_first else [table(ledger), total(ledger)]
    number, histogram = releases if total_first else releases[::-1]
    alone = certify(TABLE, SURE, protects="value")
    assert number.table["count"].tolist() == [170]
    same(histogram.certificate, alone)
    same(ledger.total(), alone)
    assert ledger.total().releases == 2
    assert not histogram.certificate.context.beside
    for words in (histogram.certificate.sentence(), ledger.total().sentence()):
        assert "the number of people present" in words.lower()
        assert "not protect" in words
    assert number.certificate.worst_case.parameters == (0.0, 0.0)
    assert "it does not protect whether she is included" in number.certificate.sentence()
    assert [entry.standing.kind for entry in ledger.entries()] == ["total", "noiseless"][:: 1 if total_first else -1]
    ledger.verify()


def test_a_total_by_itself_is_published_as_what_is_known(ledger):
    release = total(ledger)
    assert release.certificate.epsilon(0.0) == 0.0
    same(ledger.total(), release.certificate)
    assert next(iter(ledger.entries())).label == "total"


@pytest.mark.parametrize(
    ("attacker", "protects"), [(pkdp.AttackerModel(p_max=0.1), "presence"), (SURE, "value"), (ATTACKER, "presence")]
)
def test_what_is_certified_without_the_total_keeps_it_out_and_stays_out(ledger, attacker, protects):
    with pkdp.Ledger.open(":memory:") as other:
        total(other)
        words = unchanged(other, lambda: table(other, attacker, protects=protects))
        assert "leakage=pkdp.Leakage.total()" in words
    table(ledger, attacker, protects=protects)
    words = unchanged(ledger, lambda: total(ledger))
    for way in ("exact total", "leakage=pkdp.Leakage.total()", "before the first of them is published"):
        assert way in words


def test_the_old_refusal_names_the_way_out(ledger):
    table(ledger)
    words = unchanged(ledger, lambda: total(ledger, ATTACKER, protects="presence"))
    for way in ("leakage=pkdp.Leakage.total()", 'protects="value"', "p_max_between", "whether a person is there"):
        assert way in words


@pytest.mark.parametrize("leakage", [(), NOISY, ROUGHLY, Leakage("the list of prizes", shared_by=("value",))])
def test_another_leakage_is_not_the_exact_total(ledger, leakage):
    """A noised total, or one that somebody's coming leaves as it is, does not let the exact one in."""
    attacker = pkdp.AttackerModel(leakage=leakage)
    noised(ledger, attacker)
    assert "exact total" in unchanged(ledger, lambda: total(ledger))
    unchanged(ledger, lambda: total(ledger, attacker), error=PkdpError)


@thinned(2)
@pytest.mark.parametrize(
    ("attacker", "protects"), [(pkdp.AttackerModel(p_max=0.1), "presence"), (SURE, "value"), (ATTACKER, "presence")]
)
@pytest.mark.parametrize("period", [DAY, "2021-03-02"])
def test_what_was_promised_once_is_not_taken_back(ledger, attacker, protects, period):
    """A table certified without the total, and again given it, has promised what the total makes false."""
    make = table if period == DAY else noised
    first = make(ledger, attacker, protects=protects)
    again = make(ledger)
    assert again.replayed
    assert again.table.equals(first.table)
    assert again.certificate.attacker.total_is_known
    assert make(ledger, pkdp.AttackerModel(p_max_between=0.7, leakage=(TOTAL,))).replayed
    words = unchanged(ledger, lambda: total(ledger, period=period))
    assert "keeps what any of its certificates promised" in words
    ledger.verify()


def test_a_promise_in_between_counts_too(ledger):
    table(ledger)
    table(ledger, SURE)
    table(ledger)
    unchanged(ledger, lambda: total(ledger))


def test_a_reservation_that_nobody_saw_has_promised_nothing(ledger):
    terms = {"mechanism": TABLE, "unit": "id", "by": "cell", "period": DAY, "protects": "value"}
    Publication(question=Question(**terms), attacker=SURE, ledger=ledger).reserve()
    table(ledger)
    assert total(ledger).table["count"].tolist() == [170]
    assert len(list(ledger.entries(given_back=True))) == 3


@pytest.mark.parametrize("make", [table, noised])
@pytest.mark.parametrize("attacker", [SURE, pkdp.AttackerModel(leakage=NOISY), pkdp.AttackerModel(leakage=ROUGHLY)])
def test_beside_a_total_nothing_is_certified_anew_without_it(ledger, make, attacker):
    stored = make(ledger)
    total(ledger)
    unchanged(ledger, lambda: make(ledger, attacker), error=PkdpError)
    assert make(ledger).to_bytes() == stored.to_bytes()


def test_recertifications_that_know_the_total_pass(ledger):
    table(ledger)
    total(ledger)
    bolder = pkdp.AttackerModel(p_max_between=0.7, leakage=(TOTAL,))
    other = table(ledger, bolder)
    same(ledger.total(), certify(TABLE, pkdp.AttackerModel(p_max_between=0.7), protects="value"))
    more = pkdp.AttackerModel(p_max_between=0.6, leakage=(TOTAL, Leakage.total("the list of names")))
    assert "the list of names" in table(ledger, more).certificate.sentence()
    assert table(ledger, bolder).to_bytes() == other.to_bytes()
    assert total(ledger, bolder).replayed
    assert [entry.state for entry in ledger.entries()] == ["published", "published"]
    ledger.verify()


def test_replays_and_revisions(ledger):
    releases = [total(ledger), noised(ledger)]
    assert [release.to_bytes() for release in (total(ledger), noised(ledger))] == [
        release.to_bytes() for release in releases
    ]
    assert "let the first release stand" in unchanged(ledger, lambda: total(ledger, revise=True))
    noised(ledger, revise=True)
    assert ledger.total().worst_case.epsilon(0.0) == 2.0
    unchanged(ledger, lambda: table(ledger))


def test_an_exact_count_is_another_request_than_the_total(ledger):
    counted = {"mechanism": Count(), "unit": "id", "period": DAY}
    question, other = Question(**counted), Question(**counted, protects="value")
    assert question.key("census") != other.key("census")
    total(ledger)
    exact = pkdp.AttackerModel(p_min=0.1, p_max=0.9, unknown=1000)
    unchanged(ledger, lambda: total(ledger, exact, protects="presence"))


@pytest.mark.parametrize("total_first", [True, False])
def test_a_reservation_that_is_pending_counts(ledger, total_first):
    def pending(mechanism, **more):
        question = Question(mechanism=mechanism, unit="id", period=DAY, protects="value", **more)
        return Publication(question=question, **terms).reserve()

    terms = {"attacker": TOLD, "ledger": ledger}
    if total_first:
        pending(Count())
        unchanged(ledger, lambda: table(ledger, SURE))
        table(ledger)
        assert total(ledger).table["count"].tolist() == [170]
    else:
        pending(TABLE, by="cell")
        total(ledger)
        # Taken over, it would stand without what it was admitted with.
        unchanged(ledger, lambda: table(ledger, SURE))
        table(ledger)
    assert [entry.state for entry in ledger.entries()] == ["published", "published"]
    same(ledger.total(), certify(TABLE, SURE, protects="value"))
    ledger.verify()


def test_a_total_that_is_given_back_leaves_no_trace(ledger):
    table(ledger)
    with pytest.raises(pkdp.InputCheckError):
        publish(
            lambda: PEOPLE.assign(id=None),
            Publication(
                question=Question(mechanism=Count(), unit="id", period=DAY, protects="value"),
                attacker=TOLD,
                ledger=ledger,
            ),
        )
    assert [entry.state for entry in ledger.entries()] == ["published"]
    table(ledger, SURE)
    ledger.verify()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"unit": "cell"}, "different units"),
        ({"period": "2021"}, "in one period may depend on the cell"),
        ({"period": "2021-03-01/2021-03-07"}, "the total of the very period"),
        ({"period": "census"}, "in one period may depend on the cell"),
    ],
)
@pytest.mark.parametrize("total_first", [True, False])
def test_a_total_of_other_people_is_refused(ledger, more, words, total_first):
    first, second = (total, noised) if total_first else (noised, total)
    first(ledger)
    assert words in unchanged(ledger, lambda: second(ledger, **more))


def test_tables_of_a_data_set_have_totals_of_their_own():
    book = Book()
    book.add(Count(), DAY, attacker=TOLD, protects="value", table="births")
    with pytest.raises(DifferencingError, match="the total of the very table"):
        book.add(NOISED, DAY, attacker=TOLD, protects="value", table="deaths")
    book.add(NOISED, DAY, attacker=TOLD, protects="value", table="births")


@pytest.mark.parametrize("where", ["cell == 'a'", lambda frame: frame["id"] < 5])
def test_a_total_has_no_predicate(ledger, where):
    words = unchanged(
        ledger,
        lambda: PEOPLE.pkdp.count(
            where, unit="id", attacker=TOLD, protects="value", ledger=ledger, period=DAY, label="some"
        ),
        error=ArgumentError,
    )
    assert "may depend on the cell" in words
    with pytest.raises(ArgumentError, match="may depend on the cell"):
        standing(Count(), DAY, protects="value", where="cell == 'a'")
    with pytest.raises(ArgumentError, match="may depend on the cell"):
        standing(Count(), DAY, protects="value", opaque=True)


def test_a_total_that_nobody_is_told_is_refused_with_the_way_out(ledger):
    words = unchanged(ledger, lambda: total(ledger, SURE), error=ArgumentError)
    assert "declare leakage=pkdp.Leakage.total()" in words
    with pytest.raises(ArgumentError) as caught:
        certify(Count(k=5), SURE, protects="value")
    assert "leakage" not in str(caught.value)


@pytest.mark.parametrize("mechanism", [Count(k=5), Count(k_complement=5), Count(noise=GeometricNoise(1.0))])
def test_only_the_exact_number_is_a_total(mechanism):
    with pytest.raises(ArgumentError, match="protects"):
        certify(mechanism, TOLD, protects="value")
    assert standing(mechanism, DAY, protects="value").kind != "total"


def test_a_noised_table_says_what_may_stand_beside_it(ledger):
    plain = publish(
        lambda: PEOPLE, Publication(question=Question(mechanism=THRESHOLDED, **HISTOGRAM), attacker=SURE, ledger=ledger)
    )
    assert "only while nothing else is published" in plain.certificate.sentence()
    with pkdp.Ledger.open(":memory:") as other:
        given_it = publish(
            lambda: PEOPLE,
            Publication(question=Question(mechanism=THRESHOLDED, **HISTOGRAM), attacker=TOLD, ledger=other),
        )
    words = "only while nothing else than the number of people present is published"
    assert words in given_it.certificate.sentence()


# What adds up -------------------------------------------------------------------------------------------------


def added(book, mechanism, period=DAY, attacker=TOLD):
    return book.add(mechanism, period, attacker=attacker, protects="value")


@thinned(3)
@pytest.mark.parametrize("several", [(NOISED,), (NOISED, NOISED), (THRESHOLDED, NOISED), (THRESHOLDED,), (TABLE,)])
@pytest.mark.parametrize("place", [0, -1])
def test_a_total_takes_nothing_from_what_is_given_it(several, place):
    with_total, without = Book(), Book()
    if place == 0:
        added(with_total, Count())
    for number, mechanism in enumerate(several):
        for book in (with_total, without):
            added(book, mechanism, attacker=pkdp.AttackerModel(p_max_between=0.6 + number / 10, leakage=TOTAL))
    if place == -1:
        added(with_total, Count())
    same(with_total.total(), without.total())
    assert with_total.total().has_partial_knowledge is (len(several) == 1 and several != (NOISED,))
    with_total.verify()


def test_nothing_else_may_stand_beside_a_table_because_a_total_does():
    for mechanism in (TABLE, NOISED, THRESHOLDED):
        book = Book()
        added(book, TABLE)
        added(book, Count())
        with pytest.raises(DifferencingError):
            book.add(mechanism, DAY, attacker=TOLD, protects="value", by=("other",))


@pytest.mark.parametrize("days", [1, 3])
def test_days_of_totals_and_tables_add_up_under_habits(days):
    book, tables = (Book(Terms(evidence=(IndependentGivenHabits(),))) for _ in range(2))
    for day in range(1, days + 1):
        added(book, Count(), f"2021-03-{day:02d}")
        for account in (book, tables):
            added(account, TABLE, f"2021-03-{day:02d}")
    if days > 1:  # a single table's own numbers need no convolution
        same(book.total(), tables.total())
    same(book.total(evidence=OneDayProtected()), tables.total(evidence=OneDayProtected()))
    assert book.total().releases == 2 * days
    assert "does not protect in which releases she is included" in book.total().sentence()
    if days > 1:
        with pytest.raises(NoEvidenceError):
            book.total(evidence=())
        with pytest.raises(NoEvidenceError):
            book.total(evidence=BoundedParticipation(1))
        with pytest.raises(NoEvidenceError):
            book.total(evidence=OncePerUnit())


def test_noised_days_with_totals_need_no_evidence_and_claim_what_noise_gives():
    """Another day's total may tell in which cell a person is on this one, so only the noise is left."""
    book = Book()
    added(book, THRESHOLDED, "2021-03-01")
    assert book.total().has_partial_knowledge
    added(book, Count(), "2021-03-02")
    assert not book.total().has_partial_knowledge
    same(book.total(), certify(THRESHOLDED, TOLD.against_anyone(), protects="value"))
    added(book, NOISED, "2021-03-02")
    expected = Book()
    added(expected, THRESHOLDED, "2021-03-01")
    added(expected, NOISED, "2021-03-02")
    same(book.total(), expected.total())
    with pytest.raises(DifferencingError, match="one after the other"):
        book.add(NOISED, "2021-03-03")
    with pytest.raises(DifferencingError, match="one after the other"):
        added(book, TABLE, "2021-03-03")
    with pytest.raises(DifferencingError, match="one after the other"):
        book.add(NOISED, "2021-03-03", attacker=TOLD, protects="value", unit=("owner",))
    book.verify()


def test_what_stands_on_other_days_keeps_knowing_the_totals(ledger):
    """Without evidence all of them add up as given; one that is not would take the total of everything away."""
    stored = noised(ledger, period="2021-02-28")
    total(ledger)
    unchanged(ledger, lambda: noised(ledger, pkdp.AttackerModel(), period="2021-02-28"), error=NoEvidenceError)
    unchanged(ledger, lambda: noised(ledger, pkdp.AttackerModel(), period="2021-02-27"))
    unasked = standing(NOISED, "2021-02-27", unit=("id",), protects="value")
    plain = certify(NOISED, pkdp.AttackerModel(), protects="value")
    unchanged(ledger, lambda: ledger.reserve("key", unasked, lambda *_: plain), error=NoEvidenceError)
    same_day = standing(NOISED, DAY, unit=("id",), protects="value")
    unchanged(ledger, lambda: ledger.reserve("key", same_day, lambda *_: plain))
    ledger.reserve("key", same_day, lambda *_: certify(NOISED, TOLD.against_anyone(), protects="value"))
    assert ledger.total().worst_case.epsilon(0.0) == 2.0
    assert noised(ledger, period="2021-02-28").to_bytes() == stored.to_bytes()
    ledger.verify()


def test_the_refusal_across_days_names_the_release_that_is_in_the_way(ledger):
    """Two totals may stand apart: it is the table, or what is not told, that keeps another day's total out."""
    total(ledger)
    table(ledger)
    words = unchanged(ledger, lambda: total(ledger, period="2021-03-02"))
    assert "'total' (exact total, period 2021-03-02) and 'histogram by cell' (noiseless, period 2021-03-01)" in words
    assert "IndependentGivenHabits" in words
    assert "OncePerUnit" not in words  # beside what is told nothing adds up by it
    for more, way in (({"attacker": SURE}, "is published; a release"), ({"unit": "cell"}, "different units")):
        with pkdp.Ledger.open(":memory:") as other:
            noised(other, period="2021-03-03")
            noised(other, **more)
            words = unchanged(other, lambda opened=other: total(opened, period="2021-03-02"))
            assert "'histogram by cell' (noised, period 2021-03-01)" in words
            assert way in words
            assert ("leakage=pkdp.Leakage.total()" in words) is (way == "is published; a release")
            named = [(entry.standing, SURE if entry.period == DAY else TOLD) for entry in other.entries()]
            new_standing = standing(Count(), "2021-03-02", unit=("id",), protects="value")
            with pytest.raises(DifferencingError, match=way):
                check_differencing(new_standing, named, dataset="census", attacker=TOLD)


def test_bounded_dependence_counts_a_total_like_any_release():
    book = Book(Terms(evidence=(BoundedDependence(0.25),)))
    added(book, TABLE)
    added(book, Count())
    assert book.total().releases == 2
    with pytest.raises(NoEvidenceError):
        book.total(evidence=OncePerUnit())
    same(book.total(evidence=()), certify(TABLE, TOLD, protects="value"))


def test_bounded_dependence_takes_back_no_promise():
    """Neither does a total make a first certificate false, nor is one given that is false from the start."""
    bounded = {"dataset": "census", "evidence": BoundedDependence(0.25)}
    absent = pkdp.AttackerModel(p_max=0.1)
    with pkdp.Ledger.open(":memory:", **bounded) as ledger:
        table(ledger, absent, protects="presence")
        table(ledger)
        assert "a certificate of 'histogram by cell'" in unchanged(ledger, lambda: total(ledger))
    with pkdp.Ledger.open(":memory:", **bounded) as ledger:
        table(ledger)
        total(ledger)
        unchanged(ledger, lambda: table(ledger, absent, protects="presence"))
        unchanged(ledger, lambda: table(ledger, SURE))
        unchanged(ledger, lambda: noised(ledger, pkdp.AttackerModel()))
        assert ledger.total().releases == 2


def test_what_bounded_dependence_let_in_does_not_add_up_without_it():
    book = Book(Terms(evidence=(BoundedDependence(0.25),)))
    added(book, Count())
    with pytest.raises(DifferencingError):
        book.add(TABLE, DAY, attacker=SURE, protects="value")
    added(book, TABLE)
    added(book, TABLE)
    with pytest.raises(NoEvidenceError, match="do not add up"):
        book.total(evidence=())


def test_a_total_is_free_of_charge():
    """Two times the noise is the budget to the last bit; the total is nothing on top."""
    book = Book(Terms(budgets=(Budget(2.0, 0.0),)))
    for mechanism in (NOISED, Count(), NOISED):
        added(book, mechanism)
    assert book.total().worst_case.epsilon(0.0) == 2.0
    with pytest.raises(BudgetExceededError):
        added(book, NOISED)
    strict = Book(Terms(budgets=(Budget(0.9, 1e-6, part="partial_knowledge"),)))
    exact = Histogram(k=90)
    added(strict, exact)
    added(strict, Count())
    assert strict.total().epsilon(1e-6) <= 0.9
    small = Book(Terms(budgets=(Budget(0.8, 1e-6, part="partial_knowledge"),)))
    added(small, Count())
    with pytest.raises(BudgetExceededError):
        added(small, exact)


def test_without_leakage_a_charge_does_not_grow_with_the_ledger():
    """Whether anything leaks is asked of the few different certificates, not of every release."""
    book, steps, days = Book(), [0], iter(range(1, 400))

    def charge(number):
        for _ in range(number):
            added(book, NOISED, f"{2000 + next(days)}-01-01", attacker=SURE)

    def work():
        steps[0] = 0
        charge(1)
        return steps[0]

    def step():
        steps[0] += 1
        return 0

    book.database._connection.set_progress_handler(step, 10)
    charge(10)
    first = work()
    charge(300)
    assert work() <= 1.5 * first


# The rule itself ----------------------------------------------------------------------------------------------

PRESENT = pkdp.AttackerModel(p_max=0.1)
ASKED = st.sampled_from(
    [
        ("total", Count(), TOLD, "value"),
        ("total", Count(), TOLD, "value"),
        ("count", Count(), ATTACKER, "presence"),
        ("table", TABLE, TOLD, "value"),
        ("table", TABLE, SURE, "value"),
        ("table", TABLE, PRESENT, "presence"),
        ("pure", NOISED, TOLD, "value"),
        ("pure", NOISED, TOLD, "value"),
        ("pure", NOISED, SURE, "value"),
        ("pure", NOISED, PRESENT, "presence"),
        ("noised", THRESHOLDED, TOLD, "value"),
        ("noised", THRESHOLDED, SURE, "value"),
    ]
)
PERIODS = st.sampled_from(["2021-03-01"] * 4 + ["2021-03-02", "2021-03-01/2021-03-02", "census"])
PLACES = st.tuples(PERIODS, st.sampled_from([("id",)] * 6 + [("owner",)]), st.sampled_from([None] * 6 + ["births"]))


def allowed(new, standing_by, *, covered):
    """Return what the rule says, group by group and release by release; nothing of the library's is used but dates."""
    group, rest = [new], list(standing_by)
    while overlapping := [request for request in rest if any(overlaps(request, other) for other in group)]:
        group, rest = group + overlapping, [request for request in rest if request not in overlapping]
    kinds = [kind for kind, *_ in group]
    others = [kind for kind in kinds if kind != "total"]
    if len(group) > 1:
        if "total" in kinds:
            if kinds.count("total") > 1 or "count" in kinds or not all(request[2].leakage for request in group):
                return False
            if len({request[4] for request in group}) > 1:
                return False
            if "table" in others and len(others) > 1:
                return False
        elif "table" in kinds:
            return False
        several = kinds.count("count") > 1 or "noised" in kinds or len({request[4][1] for request in group}) > 1
        if "count" in kinds and several:
            return False
    if covered or not rest:
        return True
    everything = group + rest
    if any(kind in ("table", "count") for kind, *_ in everything):
        return False
    if all(kind != "total" for kind, *_ in everything):
        return True
    return all(request[2].leakage for request in everything) and len({request[4][1] for request in everything}) == 1


def overlaps(first, second):
    return Period.parse(first[4][0]).overlaps(Period.parse(second[4][0]))


@examples(quick=10, full=1500)
@pytest.mark.parametrize("evidence", [(), (IndependentGivenHabits(),)])
def test_the_rule_is_what_a_small_oracle_says(examples, evidence):
    @given(st.lists(st.tuples(ASKED, PLACES), max_size=7))
    @settings(max_examples=examples, deadline=None, database=None)
    def run(sequence):
        book, stand = Book(Terms(evidence=evidence)), []
        for (kind, mechanism, attacker, protects), place in sequence:
            period, unit, table = place
            request = (kind, mechanism, attacker, protects, place)
            new = standing(mechanism, period, unit=unit, table=table, protects=protects)
            before = book.state()
            expected = allowed(request, stand, covered=bool(evidence))
            beside = [(present, other) for present, other in ((other[5], other[2]) for other in stand)]
            try:
                check_differencing(new, beside, dataset="flights", evidence=evidence, attacker=attacker)
            except DifferencingError:
                assert not expected, request
            else:
                assert expected, request
            try:
                book.add(mechanism, period, attacker=attacker, protects=protects, unit=unit, table=table)
            except DifferencingError:
                assert not expected, request
                assert book.state() == before
            except NoEvidenceError:
                assert expected
                # Without evidence, only what is told and what protects presence do not add up.
                assert evidence or {bool(present[2].leakage) for present in (*stand, request)} == {True, False}
                assert book.state() == before
            else:
                assert expected, request
                stand.append((*request, new))
        book.verify()
        for unit in {present[4][1] for present in stand} if not evidence else ():
            of_unit = book.total(unit)
            own = [present for present in stand if present[4][1] == unit and present[0] != "total"]
            if any(present[0] == "total" for present in stand) and len(own) > 1:
                assert not of_unit.has_partial_knowledge
            for kind, mechanism, attacker, protects, *_ in own:
                if kind in ("pure", "noised"):
                    # All of them tell no less than the noise of one does.
                    worst = certify(mechanism, attacker.against_anyone(), protects=protects).worst_case
                    assert of_unit.worst_case_bound is None or of_unit.worst_case.delta(0.0) >= worst.delta(0.0) * (
                        1 - 1e-9
                    )

    run()


# Whatever happens ---------------------------------------------------------------------------------------------

BOLDER = pkdp.AttackerModel(p_max_between=0.7, leakage=TOTAL)
QUESTIONS = {"total": {}, "table": {"by": "cell"}, "noised": {"by": "cell", "domain": ["a", "b", "c"]}}
STEPS = st.tuples(
    st.sampled_from(["total", "table", "noised", "noised"]),
    st.sampled_from([TOLD, TOLD, TOLD, BOLDER, SURE, PRESENT]),
    st.sampled_from(["publish", "publish", "publish", "revise", "reserve", "give back"]),
)


def step(ledger, kind, attacker, what):
    mechanism = {"total": Count(), "table": TABLE, "noised": THRESHOLDED}[kind]
    protects = "presence" if attacker == PRESENT and kind != "total" else "value"
    request = Question(mechanism=mechanism, unit="id", period=DAY, protects=protects, **QUESTIONS[kind])
    if what in ("publish", "revise"):
        publish(
            lambda: PEOPLE, Publication(question=request, attacker=attacker, ledger=ledger, revise=what == "revise")
        )
        return
    reserved = Publication(question=request, attacker=attacker, ledger=ledger).reserve()
    if what == "give back" and not isinstance(reserved, Entry):
        ledger.give_back(reserved)


@pytest.mark.slow  # the rule itself is held to a small oracle above
def test_whatever_happens_nothing_is_claimed_that_a_total_takes():
    """Requests, revisions, new certificates, reservations left and given back: in any order."""

    @given(st.lists(STEPS, max_size=8))
    @settings(max_examples=400, deadline=None, database=None)
    def run(steps):
        with pkdp.Ledger.open(":memory:", dataset="census") as ledger:
            for drawn_step in steps:
                before = [(entry.sequence, entry.hash) for entry in ledger.entries()]
                try:
                    step(ledger, *drawn_step)
                except PkdpError:
                    assert before == [(entry.sequence, entry.hash) for entry in ledger.entries()]
                check(ledger)
            ledger.verify()

    run()


def check(ledger):
    """Hold what is charged to the rule, and its total to what is left, at least that of the newest certificates."""
    charged = [ReleaseCertificate.from_json(entry.certificate) for entry in ledger.entries()]
    if not charged:
        return
    totals = [certificate for certificate in charged if isinstance(certificate.mechanism, Count)]
    others = [certificate for certificate in charged if not isinstance(certificate.mechanism, Count)]
    assert len(totals) <= 1
    if totals and others:
        assert all(certificate.attacker.total_is_known and certificate.protects == "value" for certificate in charged)
    assert len(others) <= 1 or all(other.mechanism == THRESHOLDED for other in others)
    if len({certificate.protects for certificate in charged}) > 1:
        return
    composed = ledger.total("id")
    if len(others) == 1:  # it counts with the boldest certificate that it ever had
        assert all(composed.delta(epsilon) >= others[0].delta(epsilon) for epsilon in (0.0, 0.3, 1.0, 2.0))
    elif others:
        assert not composed.has_partial_knowledge
        assert composed.worst_case.parameters[0] >= (1 - 1e-9) * sum(other.worst_case.parameters[0] for other in others)
    else:
        assert composed.worst_case.parameters == (0.0, 0.0)
    for certificate in others:
        assert not certificate.has_partial_knowledge or len(others) == 1 or not certificate.context.beside
