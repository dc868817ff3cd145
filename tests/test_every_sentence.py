"""Every kind of sentence, as people read it, in one file: ``tests/data/sentences.txt``.

After a change of the words, write the file anew with ``python -m tests.test_every_sentence``, read it aloud, and
commit it with the change.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from thorough import ALL, one_in

from pkdp_pipeline import (
    AttackerModel,
    BoundedDependence,
    BoundedParticipation,
    BoundedSensitivity,
    Certificate,
    Count,
    DisjointUnits,
    GeometricNoise,
    Histogram,
    IndependentDraws,
    IndependentGivenHabits,
    Leakage,
    NotCertifiableError,
    OncePerUnit,
    OneDayProtected,
    SamePeople,
    SameTable,
    Sum,
    certify,
    compose,
)
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.sentences import NOTHING_ASSUMED
from pkdp_pipeline.composition.rules import RULES
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.theorems.theorems import THEOREMS

FILE = Path(__file__).parent / "data" / "sentences.txt"

NOISE = GeometricNoise(0.5)
ABSENCE, BETWEEN = AttackerModel(p_max=0.1), AttackerModel(p_max_between=0.9)
BOX = AttackerModel(p_min=0.05, p_max=0.1, unknown=5000)
ANYONE = AttackerModel()
TOTAL = Leakage.total()
GROUPS = Leakage.totals(by=["region", "year"])
PRIVATE = Leakage(name="a noisy total", tells="people_present", epsilon=0.1, delta=0.0)
DEPENDENT = Leakage(
    name="a rounded total", dependence_epsilon=0.1, dependence_delta=0.0, shared_by=("presence", "value")
)

COUNTED, TABLE = certify(Count(k=50), ABSENCE), certify(Histogram(k=50), ABSENCE)
CELLS = certify(Histogram(k=50), ABSENCE, protects="value")
WHICH = certify(Histogram(k=100), AttackerModel(p_max_between=0.6), protects="value")
NOISY = certify(Histogram(noise=NOISE), ANYONE)
SUMMED = certify(Sum((0, 5), NOISE))
BOTH = certify(Count(k=20, noise=NOISE, release_threshold=60), ABSENCE)
KNOWN = {
    "7 known": {"known": 7},
    "7 controlled": {"known": 7, "influence": "active"},
    "few unknown": {"unknown_max": 60},
}
PERIODS = {
    "no period": None,
    "a day": "2026-03-01",
    "a week": "2026-W03",
    "a month": "2026-03",
    "a quarter": "2026-Q1",
    "a year": "2026",
    "a label": "wave 2",
}
EVIDENCE = {
    "no evidence": None,
    "disjoint units": DisjointUnits(),
    "independent given habits": IndependentGivenHabits(),
    "independent given habits, at most 2": [IndependentGivenHabits(), BoundedParticipation(2)],
    "one day protected": OneDayProtected(),
    "one day protected, at most 2": [OneDayProtected(), BoundedParticipation(2)],
    "bounded dependence": BoundedDependence(0.1, 1e-9),
    "bounded participation": BoundedParticipation(2),
    "once per unit": OncePerUnit(),
    "same people": SamePeople(),
    "bounded sensitivity": BoundedSensitivity(3),
}
ALONE = "count, noise and a release threshold, in a box"
"""Its noise says as much against anyone as the thresholds do."""
PARTLY = {
    "disjoint_units",
    "independent_given_habits",
    "one_day_protected",
    "bounded_dependence",
    "once_per_unit",
}
"""Evidence that adds up releases without noise."""


def one_release() -> Iterator[tuple[str, Certificate]]:
    """Yield every theorem and mechanism."""
    for title, known in {"nobody known": {}, **KNOWN}.items():
        yield f"count, k, {title}", certify(Count(k=50), AttackerModel(p_max=0.1, **known))
        yield f"count, k of the rest, {title}", certify(Count(k_complement=50), AttackerModel(p_min=0.9, **known))
        yield f"histogram, presence, {title}", certify(Histogram(k=50), AttackerModel(p_max=0.1, **known))
        yield (
            f"histogram, value through absence, {title}",
            certify(Histogram(k=50), AttackerModel(p_max=0.1, **known), protects="value"),
        )
        yield (
            f"histogram, value between cells, {title}",
            certify(Histogram(k=200), AttackerModel(p_max_between=0.7, **known), protects="value"),
        )
    yield "count, k, an attacker who may be certain", certify(Count(k=50), AttackerModel(p_max=1.0, unknown_max=5))
    yield "count, both thresholds", certify(Count(k=50, k_complement=80), AttackerModel(p_min=0.4, p_max=0.5))
    for title, known in {"nobody known": {}, **KNOWN}.items():
        box = AttackerModel(p_min=0.2, p_max=0.6, unknown=40, **known)
        yield f"count, k, in a box, {title}", certify(Count(k=20), box)
    yield (
        "count, k of the rest, in a box",
        certify(Count(k_complement=20), AttackerModel(p_min=0.4, p_max=0.8, unknown=40)),
    )
    box = AttackerModel(p_min=0.2, p_max=0.6, unknown=40)
    yield "count, both thresholds, in a box", certify(Count(k=12, k_complement=12), box)
    yield (
        "count, noise and a release threshold, in a box",
        certify(Count(noise=NOISE, release_threshold=20), AttackerModel(p_min=0.2, p_max=0.6, unknown=40)),
    )
    yield (
        "count, k, noise and a release threshold, in a box",
        certify(Count(k=20, noise=NOISE, release_threshold=40), AttackerModel(p_min=0.2, p_max=0.6, unknown=40)),
    )
    yield "count, no ε", certify(Count(k=3), AttackerModel(p_max=0.5))
    yield "count, exact", certify(Count(), BOX)
    yield (
        "count, exact, beside a private leakage",
        certify(Count(), AttackerModel(p_min=0.05, p_max=0.1, unknown=5000, leakage=PRIVATE)),
    )
    yield (
        "count, exact, of households",
        certify(
            Count(), AttackerModel(p_min=0.05, p_max=0.1, unknown=5000, dependent="household", secret="conditional")
        ),
    )
    yield "count, noise", certify(Count(noise=NOISE), ANYONE)
    yield (
        "count, noise, records depend on one another",
        certify(Count(noise=NOISE), AttackerModel(dependent="household")),
    )
    yield "count, noise and uncertainty", certify(Count(noise=NOISE), BOX)
    yield "count, k and noise", BOTH
    below = {"k": 50, "noise": NOISE, "below": "noise"}
    yield "count, exact from k on, noised below", certify(Count(**below), ABSENCE)
    yield "histogram, presence, exact from k on, noised below", certify(Histogram(**below), ABSENCE)
    yield (
        "histogram, value through absence, exact from k on, noised below",
        certify(Histogram(**below), ABSENCE, protects="value"),
    )
    yield (
        "histogram, value between cells, exact from k on, noised below",
        certify(Histogram(**{**below, "k": 200}), AttackerModel(p_max_between=0.7), protects="value"),
    )
    yield "histogram, presence, noise", NOISY
    yield (
        "histogram, presence, noise and thresholds",
        certify(Histogram(k=5, noise=NOISE, release_threshold=60), ANYONE),
    )
    yield (
        "histogram, presence, k, noise and thresholds",
        certify(Histogram(k=20, noise=NOISE, release_threshold=60), ABSENCE),
    )
    yield (
        "histogram, value, k and noise",
        certify(Histogram(k=20, noise=NOISE, release_threshold=60), ABSENCE, protects="value"),
    )
    yield (
        "histogram, value, both theorems",
        certify(Histogram(k=100), AttackerModel(p_max=0.1, p_max_between=0.6), protects="value"),
    )
    yield "histogram, value, options", certify(Histogram(), AttackerModel(p_min=0.1, unknown=3000), protects="value")
    yield (
        "histogram, value between cells, k and noise",
        certify(
            Histogram(k=6, noise=GeometricNoise(1.0), release_threshold=18),
            AttackerModel(p_max_between=0.6),
            protects="value",
        ),
    )
    yield (
        "histogram, value, options with noise",
        certify(Histogram(noise=NOISE), AttackerModel(p_min=0.1, unknown=3000), protects="value"),
    )
    yield "histogram, presence, exact", certify(Histogram(), BOX)
    yield "histogram, presence, noise and uncertainty", certify(Histogram(noise=NOISE), BOX)
    yield "histogram, value, noise", certify(Histogram(noise=NOISE), ANYONE, protects="value")
    yield (
        "histogram, value, beside an exact total",
        certify(Histogram(k=100), AttackerModel(p_max_between=0.6, leakage=TOTAL), protects="value"),
    )
    yield (
        "histogram, value, beside exact totals of groups",
        certify(Histogram(k=100), AttackerModel(p_max_between=0.6, leakage=GROUPS), protects="value"),
    )
    yield (
        "several options, beside exact totals of groups",
        certify(Histogram(), AttackerModel(p_min=0.2, unknown=500, leakage=GROUPS), protects="value"),
    )
    yield (
        "histogram, noise, given an exact total",
        certify(Histogram(noise=NOISE), AttackerModel(leakage=TOTAL), protects="value"),
    )
    yield (
        "histogram, noise, beside what depends on it",
        certify(Histogram(noise=NOISE), AttackerModel(leakage=DEPENDENT)),
    )
    yield "exact total", certify(Count(), AttackerModel(leakage=TOTAL), protects="value")
    yield "exact totals of groups", certify(Histogram(totals=True), AttackerModel(leakage=GROUPS), protects="value")
    for title, known in {"nobody known": {}, **KNOWN}.items():
        apart = AttackerModel(p_max=0.1, independent_cells=True, **known)
        yield f"histogram, several cells, {title}", certify(Histogram(k=100, cells_per_unit=3), apart)
        yield (
            f"histogram, several cells, value, {title}",
            certify(Histogram(k=100, cells_per_unit=3), apart, protects="value"),
        )
    for title, known in {"nobody known": {}, "people known": {"known": 7}}.items():
        sample = AttackerModel(sampled=0.1, **known)
        yield f"secret sample, count, {title}", certify(Count(k=20), sample)
        yield f"secret sample, presence, {title}", certify(Histogram(k=20), sample)
        yield f"secret sample, value, {title}", certify(Histogram(k=20), sample, protects="value")
    yield "secret sample, noise", certify(Count(noise=NOISE), AttackerModel(sampled=0.1))
    yield (
        "secret sample, noised below",
        certify(Histogram(k=20, noise=NOISE, below="noise"), AttackerModel(sampled=0.1)),
    )
    yield "histogram, several cells, noise", certify(Histogram(noise=NOISE, cells_per_unit=3))
    yield "histogram, several cells, noise, value", certify(Histogram(noise=NOISE, cells_per_unit=3), protects="value")
    yield "sum", SUMMED
    yield "sum, value", certify(Sum((-3, 5), NOISE), protects="value", cells=1)
    found_cells = Sum((0, 5), NOISE, release_threshold=300, cells_per_unit=3).of_found_cells()
    yield "sum, cells that are found", certify(found_cells, ABSENCE)
    yield (
        "sum, value, beside exact totals of groups",
        certify(Sum((0, 5), NOISE), AttackerModel(leakage=GROUPS), protects="value"),
    )


def periods() -> Iterator[tuple[str, Certificate]]:
    """Yield every kind of period, and what else a context says."""
    for title, period in PERIODS.items():
        named = {} if period is None else {"dataset": "clinic", "period": period}
        yield f"period: {title}", TABLE.in_context(Context(unit=("patient",), cells="found", **named))
    yield "period: with noise", BOTH.in_context(Context(unit=("patient",), dataset="clinic", period="2026-W03"))
    yield (
        "period: beside others",
        TABLE.in_context(Context(unit=("patient",), dataset="clinic", period="2026-W03", beside=True)),
    )
    yield (
        "period: part of the rows",
        COUNTED.in_context(
            Context(
                unit=("patient",),
                where="age >= 65",
                missing_unit="drop",
                dataset="clinic",
                table="visits",
                period="2026-W03",
            )
        ),
    )
    yield (
        "period: all cells of a person",
        certify(Histogram(k=100, cells_per_unit=3), AttackerModel(p_max=0.1, independent_cells=True)).in_context(
            Context(unit=("patient",), cells="found", cells_per_unit=3, dataset="clinic", period="2026-W03")
        ),
    )
    yield (
        "period: some cells of a person",
        certify(Histogram(k=5, noise=NOISE, release_threshold=90, cells_per_unit=3)).in_context(
            Context(
                unit=("patient",), one_cell="hash", cells="found", cells_per_unit=3, dataset="clinic", period="2026-W03"
            )
        ),
    )
    yield "period: every row is a person", COUNTED.in_context(Context(dataset="clinic", period="2026-W03"))
    yield "no period: exact totals beside it", WHICH.in_context(Context(unit=("patient",), cells="declared"))


BOXES = tuple(AttackerModel(p_min=0.2, p_max=0.6, unknown=unknown) for unknown in (3, 40))
ATTACKERS = (ABSENCE, BETWEEN, *BOXES, AttackerModel(p_max=0.6, known=7), AttackerModel(p_max=1.0, unknown_max=5))
NOISED = (
    Count(noise=NOISE),
    Count(noise=NOISE, release_threshold=20),
    Count(k=3, noise=NOISE, release_threshold=15),
    Count(k=20, noise=NOISE, release_threshold=60),
    Histogram(noise=NOISE),
    Histogram(k=3, noise=NOISE, release_threshold=15),
    Histogram(k=20, noise=GeometricNoise(2.0), release_threshold=40),
)


def two_promises(mechanism: Mechanism, aim: str) -> Iterator[Certificate]:
    """Yield what is certified both against an attacker and against anyone: one release, and totals of several."""
    for attacker in ATTACKERS:
        with suppress(NotCertifiableError):
            certificate = certify(mechanism, attacker, protects=aim)
            if certificate.has_partial_knowledge and certificate.worst_case_bound is not None:
                yield certificate
                yield compose([(certificate, 3)], DisjointUnits())
                yield compose([certificate, certify(mechanism, AttackerModel(p_max=0.05), protects=aim)], SameTable())
                if attacker.unknown is None:  # in a box the sums take long
                    yield compose([(certificate, 3)], IndependentGivenHabits())
                    yield compose([(certificate, 3)], BoundedDependence(0.1, 1e-9))


def totals() -> Iterator[tuple[str, Certificate]]:
    """Yield every evidence, for releases with noise, without it, and mixed."""
    for title, evidence in EVIDENCE.items():
        yield f"total, noise alone: {title}", compose([(NOISY, 4)], evidence)
        keys = {kind.key for kind in (evidence if isinstance(evidence, list) else [evidence] if evidence else [])}
        if keys & PARTLY:
            yield f"total, presence: {title}", compose([(TABLE, 4)], evidence)
            yield f"total, value through absence: {title}", compose([(CELLS, 4)], evidence)
            yield f"total, value between cells: {title}", compose([(WHICH, 4)], evidence)
    yield "total, k and noise: no evidence", compose([(BOTH, 2)])
    yield "total, k and noise: independent given habits", compose([(BOTH, 2)], IndependentGivenHabits())
    yield (
        "total, one exact count beside noise: same people",
        compose([certify(Count(), BOX), certify(Count(noise=GeometricNoise(0.05)), ANYONE)], SamePeople()),
    )
    yield (
        "total, value: bounded sensitivity",
        compose([(certify(Histogram(noise=NOISE), ANYONE, protects="value"), 4)], BoundedSensitivity(3, "value")),
    )
    yield (
        "total, two attackers",
        compose([(TABLE, 3), (certify(Count(k=80), AttackerModel(p_max=0.2)), 1)], IndependentGivenHabits()),
    )
    drawn = certify(Histogram(k=20), AttackerModel(sampled=0.1))
    yield "total, secret samples: independent draws", compose([(drawn, 4)], IndependentDraws())
    table = compose([TABLE, certify(TABLE.mechanism, AttackerModel(p_max=0.01, known=25))], SameTable())
    yield "one table, two attackers", table
    yield "total, tables with two attackers", compose([(table, 3)], IndependentGivenHabits())
    yield (
        "total, many attackers",
        compose(
            [certify(Count(k=80), AttackerModel(p_max=p)) for p in (0.1, 0.2, 0.25, 0.3)], IndependentGivenHabits()
        ),
    )
    yield "total, no ε", compose([(certify(Count(k=4), AttackerModel(p_max=0.3)), 2)], IndependentGivenHabits())
    yield (
        "total, periods of several releases",
        compose([compose([NOISY, certify(Count(noise=NOISE), ANYONE)], SamePeople()), NOISY], OneDayProtected()),
    )
    yield "total, exact totals alone", compose([(certify(Count(), AttackerModel(leakage=TOTAL), protects="value"), 2)])
    yield (
        "total, beside exact totals",
        compose([(certify(Histogram(noise=NOISE), AttackerModel(leakage=TOTAL), protects="value"), 4)]),
    )
    yield "total, one release", compose([TABLE])
    yield "total, a sum beside counts", compose([SUMMED, NOISY, NOISY], SamePeople())
    yield "total, counts: once per unit", compose([(certify(Count(noise=NOISE), ANYONE), 4)], OncePerUnit())
    yield "total, counts: disjoint units", compose([(COUNTED, 4)], DisjointUnits())
    yield "total, nothing", compose([])


def every() -> dict[str, Certificate]:
    """Return all of them by title."""
    listed = [*one_release(), *periods(), *totals()]
    by_title = dict(listed)
    assert len(by_title) == len(listed)
    return by_title


def written(sentences: dict[str, str]) -> str:
    """Return the file's text."""
    blocks = (
        f"## {title}\n{textwrap.fill(sentence, 110, break_long_words=False, break_on_hyphens=False)}\n"
        for title, sentence in sentences.items()
    )
    return "\n".join(blocks)


DEAR = {
    "count, k and noise",
    "count, exact",
    "count, k, in a box, nobody known",
    "count, k, in a box, 7 known",
    "count, k, noise and a release threshold, in a box",
    "count, noise and a release threshold, in a box",
    "count, noise and uncertainty",
    "histogram, presence, k, noise and thresholds",
    "histogram, several cells, nobody known",
    "histogram, several cells, 7 known",
    "histogram, value, k and noise",
    "histogram, value, options with noise",
    "histogram, value through absence, 7 known",
    "secret sample, noised below",
    "total, many attackers",
    "total, tables with two attackers",
    "total, value through absence: one day protected, at most 2",
}
"""Sentences whose numbers take half of the time: others have all their words, and the slow run alone compares them."""


def read() -> dict[str, str]:
    """Return the file's blocks by title."""
    blocks = FILE.read_text(encoding="utf-8").removeprefix("## ").split("\n\n## ")
    return {block.partition("\n")[0]: block.partition("\n")[2].rstrip("\n") for block in blocks}


@pytest.fixture(scope="module")
def certificates() -> dict[str, Certificate]:
    return every()


@pytest.fixture(scope="module")
def sentences(certificates) -> dict[str, str]:
    return {title: certificate.sentence() for title, certificate in certificates.items() if ALL or title not in DEAR}


def test_every_sentence_is_as_it_was_read(certificates, sentences):
    blocks = read()
    assert list(blocks) == list(certificates)
    kept = (f"## {title}\n{block}\n" for title, block in blocks.items() if title in sentences)
    assert written(sentences) == "\n".join(kept), f"if this is meant: {__doc__}"


def test_what_is_written_in_the_slow_run_alone_has_the_words_of_others():
    def phrases(titles):
        said = (re.sub(r"\d[\d.,e-]*", "#", " ".join(blocks[title].split())) for title in titles)
        return {phrase for sentence in said for phrase in re.split(r"(?<=[.:;]) ", sentence)}

    blocks = read()
    assert set(blocks) >= DEAR
    assert phrases(DEAR) <= phrases(set(blocks) - DEAR)


def test_every_theorem_and_every_rule_is_in_the_file(certificates):
    assert {key for certificate in certificates.values() for key in certificate.theorems} == set(THEOREMS)
    declared = {
        frozenset(each.key for each in certificate.evidence)
        for certificate in certificates.values()
        if isinstance(certificate, ComposedCertificate)
    }
    assert declared == set(RULES)


@pytest.mark.parametrize("word", ["day", "ask for", "100 %", "part of what is known", "who is there"])
def test_no_sentence_says_what_does_not_hold_or_helps_nobody(sentences, word):
    assert [title for title, sentence in sentences.items() if word in sentence] == []


def test_what_was_declared_is_said_once_and_of_counts_no_cells(sentences):
    for title, sentence in sentences.items():
        assert sentence.count("Declared: ") <= 1, title
    counts = compose([(COUNTED, 2)], IndependentGivenHabits())
    assert not re.search(r"\bcells?\b", counts.sentence())


def test_a_promise_that_rests_on_others_says_that_their_records_are_independent(certificates, sentences):
    for title, sentence in sentences.items():
        if "independent" not in sentence and "sample" not in title:
            assert not certificates[title].stated().has_partial_knowledge, title


STRENGTHENS = (
    "The attacker may ",
    "Beside this the attacker may ",
    "δ includes the chance of what ",
    "Against anyone at all",
    "The noise alone gives ",
    "No ε reaches ",
    "Nothing is assumed about how the releases depend ",
    "In ",  # some of the releases: one of "these descriptions"
    "Anyone who ",  # one of "these descriptions" of one table
    "Or: Anyone who ",
    "Declared: ",
)


def test_the_sentence_that_names_the_number_says_all_that_limits_the_attacker(certificates, sentences):
    """It is quoted alone: what follows it tells more of what holds, or is about the data."""
    for title, sentence in sentences.items():
        if certificates[title].has_partial_knowledge:
            promise, _, _ = sentence.partition("Protects ")
            _, *more = re.split(r"(?<=\.) (?=[A-ZΔδ])", promise.strip())
            assert [text for text in more if not text.startswith(STRENGTHENS)] == [], title


def test_a_delta_that_is_certified_to_be_zero_is_said_to_be_zero(sentences):
    assert "δ = 0 " in sentences["count, k, an attacker who may be certain"]
    assert "ε = 2, δ = 0 " in sentences["total, noise alone: no evidence"]


PAIR = re.compile(r"ε ?= ?([0-9.]+(?:e[+-]?[0-9]+)?), ?δ ?= ?([0-9.]+(?:e[+-]?[0-9]+)?)")
NO_CLAIM = re.compile(
    r"No ε reaches δ = [0-9.e-]+\.|δ includes the chance of what (?:her record says|their records say)"
)


@pytest.mark.parametrize("part", one_in(3, range(6)))
def test_every_number_of_every_sentence_is_certified_and_can_be_read_by_others(certificates, sentences, part):
    spare = 1.0001
    for title, text in list(sentences.items())[part::6]:
        certificate = certificates[title]
        declared = {
            match.groups() for each in getattr(certificate, "evidence", ()) for match in PAIR.finditer(each.declares)
        }
        pairs = list(PAIR.finditer(text))
        assert pairs, title
        left = NO_CLAIM.sub("", PAIR.sub("", text))
        assert not {"ε", "δ"} & set(left), title
        for pair in pairs:
            before, after = text[: pair.start()], text[pair.end() :]
            if before.endswith("at most ") and pair.groups() in declared:
                continue  # what is declared about dependence, no guarantee
            noise = "noise alone" in before[-60:].rpartition(".")[2]
            anyone = noise or after.lstrip().startswith("against anyone at all")
            epsilon, delta = map(float, pair.groups())
            assert (certificate.worst_case if anyone else certificate).delta(epsilon * spare) <= delta * spare, title


def promises(text: str) -> list[tuple[float, float]]:
    """Return the pairs (ε, δ) that a sentence promises, and none that it declares."""
    said, _, _ = text.partition("Protects ")
    listed = [pair for pair in PAIR.finditer(said) if not said[: pair.start()].endswith("at most ")]
    return [tuple(float(number.rstrip(".")) for number in pair.groups()) for pair in listed]


def is_said_of_anyone_alone(certificate: Certificate, delta: float = 1e-6) -> bool:
    """Return whether noise alone is stated, and check that no promise stated beside another one follows from it."""
    text, said = certificate.sentence(delta), Statement.of(certificate, delta)
    noise = said.worst_case and tuple(float(rounded_up(number)) for number in said.worst_case)
    pairs = promises(text)
    assert noise is None or noise in pairs, text
    if certificate.stated(delta) is not certificate:
        assert pairs == [noise], text
        assert text.startswith(certificate.stated(delta).sentence(delta))
        assert certificate.stated(delta).worst_case == certificate.worst_case
        assert NOTHING_ASSUMED in said.assumptions
        assert not any(
            "independent" in assumption or "The attacker is" in assumption for assumption in said.assumptions
        )
        return True
    if noise is not None:
        (other,) = [pair for pair in pairs if pair != noise] or [noise]
        assert len(pairs) == 2, text
        assert not (noise[0] <= other[0] and noise[1] <= other[1]), text
    return False


@pytest.mark.parametrize("part", one_in(3, range(6)))
def test_of_two_promises_neither_follows_from_the_other(certificates, part):
    """Noise that says as much against anyone is all that is said then, with its assumptions and nobody else's."""
    both = [
        title
        for title, certificate in certificates.items()
        if certificate.has_partial_knowledge and certificate.worst_case_bound
    ][part::6]
    assert both
    for title in both:
        assert is_said_of_anyone_alone(certificates[title]) == (title == ALONE), title


def test_of_one_release_both_promises_follow_from_the_noise(certificates):
    assert is_said_of_anyone_alone(certificates[ALONE])


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", NOISED, ids=repr)
def test_of_two_promises_of_any_noise_neither_follows_from_the_other(mechanism):
    outcomes = {
        is_said_of_anyone_alone(certificate, delta)
        for aim in ("presence", "value")[: 1 + isinstance(mechanism, Histogram)]
        for certificate in two_promises(mechanism, aim)
        for delta in (1e-12, 1e-6, 1e-3)
    }
    assert outcomes == {True, False}


@pytest.mark.parametrize("unknown", [3, 250])
def test_noise_that_says_as_much_against_anyone_is_stated_alone(unknown):
    box = AttackerModel(p_min=0.2, p_max=0.6, unknown=unknown, dependent="household", secret="conditional")
    certificate = certify(Count(noise=NOISE), box)
    assert is_said_of_anyone_alone(certificate) == (unknown == 3)
    assert "The secret is a person's record" in certificate.sentence()
    days = compose([(certificate, 3)], DisjointUnits())
    assert is_said_of_anyone_alone(days) == (unknown == 3)
    assert Statement.of(compose([certificate])).worst_case == Statement.of(certificate).worst_case == (0.5, 0.0)


@pytest.mark.parametrize(
    ("title", "named"),
    [("count, both thresholds", {"p_min": 0.4}), ("histogram, value, both theorems", {"p_max": 0.1})],
)
def test_of_several_bounds_the_number_holds_against_whom_the_sentence_names(certificates, title, named):
    both = certificates[title]
    certificate = certify(both.mechanism, AttackerModel(**named), protects=both.protects)
    assert certificate.epsilon(1e-6) == both.epsilon(1e-6)
    beginning, _, others = both.sentence().partition(" Other numbers of this certificate")
    assert certificate.sentence() == beginning
    assert others == " hold against anyone who fits everything declared about the attacker."


if __name__ == "__main__":
    FILE.write_text(
        written({title: certificate.sentence() for title, certificate in every().items()}), encoding="utf-8"
    )
