"""Profiles beside a leakage, against exact pairs of small laws; which theorems are left, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.laws import coin_sum, hockey_stick, losses
from oracle.leaking import joint_losses_with, shown_table, total_present
from thorough import examples, thinned

from pkdp_pipeline import (
    ArgumentError,
    AttackerModel,
    Certificate,
    Count,
    GeometricNoise,
    Histogram,
    Leakage,
    NotCertifiableError,
    certify,
)
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.theorems.bound import WorstCase
from pkdp_pipeline.theorems.worst_case import BesidePrivate, GivenDependent, Leaked, NoiseCurve, WorstBesidePrivate

TOTAL = Leakage.total()
BESIDE = AttackerModel(p_max=0.1, leakage=TOTAL)
EPSILONS = (0.0, 0.1, 0.5, 1.0, 1.7, 3.0)


def growth(epsilon: float) -> Fraction:
    """Return a rational at or below e^ε, within one part in 2^50."""
    return Fraction(math.exp(epsilon)) * (1 - Fraction(1, 2**50))


def above(value: Fraction) -> float:
    rounded = float(value)
    return rounded if Fraction(rounded) >= value else math.nextafter(rounded, math.inf)


def worse(first: dict, second: dict, factor: Fraction) -> Fraction:
    return max(Fraction(side) for side in losses(first, second, factor))


@dataclass(frozen=True, kw_only=True)
class Exact(WorstCase):
    """The exact profile of one pair of laws, both orders, rounded up: what a theorem's bound would be at best."""

    first: tuple[tuple[object, Fraction], ...]
    second: tuple[tuple[object, Fraction], ...]
    theorem: str = "noise"
    known: tuple[float, float] = (1.0, 1.0)

    @property
    def parameters(self):
        return self.known

    def bracket(self, epsilons):
        deltas = [above(worse(dict(self.first), dict(self.second), growth(e))) for e in epsilons.tolist()]
        return np.zeros(len(epsilons)), np.minimum(1.0, np.array(deltas))

    def known_at(self, epsilon: float) -> Exact:
        delta = float(self.bracket(np.array([epsilon]))[1][0])
        return Exact(first=self.first, second=self.second, known=(epsilon, delta))


def laws(size: int):
    """Laws over `size` outcomes with rational weights, zeros included."""
    weights = st.lists(st.integers(0, 12), min_size=size, max_size=size).filter(any)
    return weights.map(lambda drawn: tuple(Fraction(weight, sum(drawn)) for weight in drawn))


def as_law(weights) -> dict:
    return dict(enumerate(weights))


def joined(first: dict, second: dict) -> dict:
    return {(x, y): p * q for x, p in first.items() for y, q in second.items()}


@examples(quick=10, full=2000)
def test_no_release_beside_a_private_leakage_exceeds_its_profile(examples):
    closest = [0.0]

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(laws(3), laws(3), laws(2), laws(2), st.sampled_from((0.0, 0.2, 0.9)), st.sampled_from(EPSILONS))
    def holds(m, m_other, leaked, leaked_other, private, epsilon):
        release, life = as_law(m), as_law(m_other)
        # The leakage is (ε2, δ2)-private between these two lives, exactly at this δ2.
        delta = above(worse(as_law(leaked), as_law(leaked_other), growth(private)))
        base = Exact(first=tuple(release.items()), second=tuple(life.items()))
        bound = BesidePrivate(theorem="noise", base=base, epsilon=private, delta=min(1.0, delta))
        truth = worse(joined(release, as_law(leaked)), joined(life, as_law(leaked_other)), growth(epsilon))
        claimed = float(bound.bracket(np.array([epsilon]))[1][0])
        assert truth <= Fraction(claimed)
        if 0.0 < claimed < 1.0:
            closest[0] = max(closest[0], float(truth) / claimed)

    holds()
    assert closest[0] > 0.9


@pytest.mark.parametrize("noise", [0.3, 1.0])
@pytest.mark.parametrize("private", [0.0, 0.2, 1.5])
def test_noise_beside_a_randomised_answer_attains_the_profile(noise, private):
    # Two noisy counts of one person each: the noise of the release, and randomised response as the leakage.
    share = 1.0 / (1.0 + math.exp(-private))
    alpha = math.exp(-noise)
    reach = range(-150, 151)
    counts = [np.array([(1 - alpha) / (1 + alpha) * alpha ** abs(o - c) for o in reach]) for c in (0, 1)]
    answers = [np.array([share, 1 - share]), np.array([1 - share, share])]
    bound = WorstBesidePrivate(theorem="noise", base=NoiseCurve(theorem="noise", noise=noise, cells=1), epsilon=private)
    for epsilon in (0.0, 0.1, 0.4, 1.0, 1.4):
        first, second = (np.outer(count, answer) for count, answer in zip(counts, answers, strict=True))
        truth = np.maximum(0.0, first - math.exp(epsilon) * second).sum()
        claimed = float(bound.bracket(np.array([epsilon]))[1][0])
        assert claimed == pytest.approx(truth, rel=1e-9, abs=1e-12)
    assert bound.parameters == pytest.approx((noise + private, 0.0))
    assert float(bound.bracket(np.array([bound.parameters[0]]))[1][0]) == 0.0


@examples(quick=10, full=2000)
def test_no_release_given_a_dependent_leakage_exceeds_theorem_9(examples):
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(
        laws(3),
        laws(3),
        st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=6, max_size=6),
        st.sampled_from((0.0, 0.1, 0.4)),
        st.sampled_from(EPSILONS),
        st.sampled_from((0.0, 0.5, 1.0)),
    )
    def holds(m, m_other, tells, dependence_epsilon, epsilon, end):
        lives = [as_law(m), as_law(m_other)]
        # What leaks depends on what is released, and on the life.
        chance = {
            (life, o): {0: Fraction(a, a + b), 1: Fraction(b, a + b)}
            for (life, o), (a, b) in zip(product((0, 1), range(3)), tells, strict=True)
        }
        given_leaked, dependence_delta = [], Fraction(0)
        for life, law in enumerate(lives):
            laws_given = {}
            for value in (0, 1):
                part = {o: weight * chance[life, o][value] for o, weight in law.items()}
                mass = sum(part.values())
                laws_given[value] = {o: weight / mass for o, weight in part.items()}
                dependence_delta = max(dependence_delta, worse(laws_given[value], law, growth(dependence_epsilon)))
            given_leaked.append(laws_given)
        base = Exact(first=tuple(lives[0].items()), second=tuple(lives[1].items())).known_at(end)
        bound = GivenDependent(
            theorem="noise", base=base, epsilon=dependence_epsilon, delta=min(1.0, above(dependence_delta))
        )
        claimed = float(bound.bracket(np.array([epsilon]))[1][0])
        for value in (0, 1):
            truth = worse(given_leaked[0][value], given_leaked[1][value], growth(epsilon))
            assert truth <= Fraction(claimed)

    holds()


def test_theorem_9_as_printed_and_its_limit():
    curve = NoiseCurve(theorem="noise", noise=1.0, cells=1, appears_at=10)
    dependence_epsilon, dependence_delta = 0.1, 1e-6
    bound = GivenDependent(theorem="noise", base=curve, epsilon=dependence_epsilon, delta=dependence_delta)
    epsilon, delta = curve.parameters
    assert bound.parameters[0] == pytest.approx(epsilon + 2 * dependence_epsilon)
    assert bound.parameters[1] == pytest.approx(
        (math.exp(dependence_epsilon + epsilon) + 1) * dependence_delta + math.exp(dependence_epsilon) * delta
    )
    none = GivenDependent(theorem="noise", base=curve, epsilon=0.0, delta=0.0)
    points = np.linspace(0.0, 2.0, 41)
    np.testing.assert_allclose(none.bracket(points)[1], curve.bracket(points)[1], rtol=1e-9)
    grown = bound.bracket(np.array([0.0, 0.1, 1.2, 5.0, 500.0, 1e300]))[1]
    assert (np.diff(grown) <= 0.0).all()
    assert (grown >= curve.bracket(np.array([0.0, 0.1, 1.2, 5.0, 500.0, 1e300]))[1]).all()


@pytest.mark.parametrize("private", [1e-300, 30.0, 1e5, 1e300])
def test_extreme_leakages_have_profiles(private):
    curve = NoiseCurve(theorem="noise", noise=0.5, moves=True)
    points = np.array([0.0, 1e-9, 1.0, 1e4, 1e301])
    for bound in (
        WorstBesidePrivate(theorem="noise", base=curve, epsilon=private, delta=1e-9),
        GivenDependent(theorem="noise", base=curve, epsilon=private, delta=1e-9),
    ):
        lower, upper = bound.bracket(points)
        assert (lower <= upper).all()
        assert (upper >= curve.bracket(points)[1] * (1 - 1e-12)).all()
        assert (upper <= 1.0).all()


# An exact count beside a leakage that is private by itself ------------------------------------------------------------


@examples(quick=6, full=200)
def test_no_attacker_exceeds_an_exact_count_beside_a_private_leakage(examples):
    """The leakage is a randomised answer to a question about everybody's records: whether at least `t` count."""
    for seed in range(examples):
        rng = np.random.default_rng([seed, 41])
        m = int(rng.integers(1, 6))
        low, high = sorted(Fraction(int(share), 16) for share in rng.integers(1, 16, 2))
        chances = [low + (high - low) * Fraction(int(x), 4) for x in rng.integers(0, 5, m)]
        private = float(rng.choice([0.1, 0.5]))
        share = Fraction(1 / (1 + math.exp(-private))) * (1 - Fraction(1, 2**40))
        least = int(rng.integers(0, m + 2))
        attacker = AttackerModel(
            p_min=float(low), p_max=float(high), unknown=m, leakage=Leakage("an answer", epsilon=private)
        )
        certificate = certify(Count(), attacker)
        assert certificate.theorems == ("counting_beside_leakage",)
        laws = [{}, {}]
        for life in (0, 1):
            for others, weight in enumerate(coin_sum(chances)):
                count = others + life
                right = share if count >= least else 1 - share
                laws[life][count, 1] = weight * right
                laws[life][count, 0] = weight * (1 - right)
        for epsilon in (0.0, 0.3, 1.0, 2.0):
            truth = worse(laws[0], laws[1], growth(epsilon))
            assert truth <= Fraction(certificate.delta(epsilon))
            assert certificate.delta_bounds(epsilon)[0] <= certificate.delta(epsilon)


def test_a_leakage_that_tells_nothing_costs_nothing():
    box = {"p_min": 0.2, "p_max": 0.6, "unknown": 50}
    bare, beside = (
        certify(Count(), AttackerModel(**box, leakage=leak)) for leak in ((), Leakage("a coin", epsilon=0.0))
    )
    for epsilon in (0.0, 0.5, 1.0):
        assert beside.delta(epsilon) == pytest.approx(bare.delta(epsilon), rel=1e-9)
    dearer = certify(Count(), AttackerModel(**box, leakage=Leakage("x", epsilon=0.1)))
    assert bare.delta(1.0) < dearer.delta(1.0) <= bare.delta(0.8) * (1 + 1e-9)


# What stays beside what follows from who is present -------------------------------------------------------------------


def test_theorem_c_and_options_stand_beside_a_total_with_their_numbers():
    for mechanism, fields, key in (
        (Histogram(k=20), {"p_max_between": 0.7, "known": 3}, "histogram_between"),
        (Histogram(k=20, noise=GeometricNoise(0.5), release_threshold=40), {"p_max_between": 0.7}, "histogram_between"),
        (Histogram(), {"p_min": 0.2, "unknown": 300}, "options"),
    ):
        bare = certify(mechanism, AttackerModel(**fields), protects="value")
        beside = certify(mechanism, AttackerModel(**fields, leakage=TOTAL), protects="value")
        assert key in beside.theorems
        points = np.array(EPSILONS)
        np.testing.assert_array_equal(beside.delta_bounds(points), bare.delta_bounds(points))


def test_theorem_c_is_attained_beside_the_total_by_exact_enumeration():
    k, p = 3, Fraction(3, 5)
    certificate = certify(Histogram(k=k), AttackerModel(p_max_between=0.6, leakage=TOTAL), protects="value")
    best = 0.0
    for m in range(2, 9):
        people = [[p, 1 - p, 0]] * m
        sides = joint_losses_with(people, (0, 0), (0, 1), growth(0.5), shown_table(k), total_present)
        truth = max(Fraction(side) for side in sides)
        assert truth <= Fraction(certificate.delta(0.5))
        best = max(best, float(truth))
    assert best == pytest.approx(certificate.delta(0.5), rel=0.02)


def test_a_dependent_leakage_takes_theorem_c_from_a_noised_table_only():
    leak = Leakage("x", tells="people_present", dependence_epsilon=0.1)
    attacker = AttackerModel(p_max_between=0.7, leakage=leak)
    assert certify(Histogram(k=20), attacker, protects="value").theorems == ("histogram_between",)
    noised = Histogram(k=20, noise=GeometricNoise(0.5), release_threshold=40)
    assert certify(noised, attacker, protects="value").theorems == ("noise_beside_leakage",)


def test_presence_beside_a_total_is_lost_and_refused():
    # Nobody else is surely in the only cell: five coins. Alone a threshold hides the target; with the total nothing.
    p = Fraction(1, 10)
    people = [[p, 1 - p]] * 5
    shown, nothing = shown_table(2), lambda counts: {None: 1}
    alone = max(Fraction(side) for side in joint_losses_with(people, (0,), (0, None), growth(1.0), shown, nothing))
    both = joint_losses_with([[0, 1]] * 5, (0,), (0, None), growth(1.0), shown, total_present)
    assert alone <= Fraction(certify(Histogram(k=2), AttackerModel(p_max=0.1)).delta(1.0))
    assert max(both) == 1
    for mechanism in (Histogram(k=2), Count(k=20), Count(), Histogram(noise=GeometricNoise(1.0))):
        with pytest.raises(NotCertifiableError, match="always tells whether a person is there"):
            certify(mechanism, AttackerModel(p_max=0.1, leakage=TOTAL))


# Noise, emptiness, the total itself -----------------------------------------------------------------------------------


def test_noise_given_a_total_keeps_its_numbers():
    for k, release in ((None, None), (5, 40)):
        mechanism = Histogram(k=k, noise=GeometricNoise(0.5), release_threshold=release)
        bare, beside = (certify(mechanism, AttackerModel(leakage=leak), protects="value") for leak in ((), TOTAL))
        assert beside.theorems == ("noise_beside_leakage",)
        assert beside.worst_case.parameters == bare.worst_case.parameters
        assert beside.delta(0.4) == bare.delta(0.4)


@pytest.mark.parametrize(
    ("leak", "protects", "left"),
    [
        (TOTAL, "value", True),
        (TOTAL, "presence", False),
        (Leakage("x"), "value", False),
        (Leakage("x", shared_by=("presence",)), "value", False),
        (Leakage("x", shared_by=("presence",)), "presence", True),
        (Leakage("x", tells="people_present", shared_by=("presence",)), "presence", True),
        (Leakage("x", epsilon=0.1), "presence", True),
        (Leakage("x", epsilon=0.1), "value", True),
        (Leakage("x", epsilon=0.1, delta=1.0), "value", False),
    ],
)
def test_what_no_two_lives_share_leaves_nothing(leak, protects, left):
    mechanism, attacker = Histogram(noise=GeometricNoise(0.5)), AttackerModel(leakage=leak)
    if left:
        assert certify(mechanism, attacker, protects=protects).worst_case.delta(5.0) < 1.0
    else:
        with pytest.raises(NotCertifiableError):
            certify(mechanism, attacker, protects=protects)


def test_the_total_itself_is_what_is_leaked():
    certificate = certify(Count(), AttackerModel(leakage=TOTAL), protects="value")
    assert certificate.theorems == ("leaked",)
    assert isinstance(certificate.worst_case_bound, Leaked)
    assert certificate.worst_case.parameters == (0.0, 0.0)
    assert "it does not protect whether she is included" in certificate.sentence()
    for mechanism, leak in (
        (Count(k=2), TOTAL),
        (Count(noise=GeometricNoise(1.0)), TOTAL),
        (Count(), ()),
        (Count(), Leakage("x", shared_by=("value",))),
        (Count(), Leakage("a noised total", tells="people_present", epsilon=1.0)),
        (Count(), Leakage("above 100 or not", tells="people_present", shared_by=("presence",))),
    ):
        with pytest.raises(ArgumentError, match="a Count has one number"):
            certify(mechanism, AttackerModel(leakage=leak), protects="value")
    with pytest.raises(NotCertifiableError, match="is not the number of people present"):
        certificate.in_context(Context(unit=("u",), where="age > 60"))


# Dependent units ------------------------------------------------------------------------------------------------------

BOX = {"p_min": 0.3, "p_max": 0.6, "unknown": 60}


@thinned(3)
@pytest.mark.parametrize(
    ("mechanism", "fields", "protects", "stands"),
    [
        (Count(), BOX, "presence", "counting"),
        (Count(noise=GeometricNoise(0.5)), BOX, "presence", "noisy_counting"),
        (Histogram(), {"p_min": 0.2, "unknown": 300}, "value", "options"),
        (Count(k=30), {"p_max": 0.1}, "presence", None),
        (Count(k_complement=30), {"p_min": 0.5}, "presence", None),
        (Histogram(k=30), {"p_max": 0.1}, "presence", None),
        (Histogram(k=30), {"p_max": 0.1}, "value", None),
        (Histogram(k=30), {"p_max_between": 0.6}, "value", None),
    ],
)
def test_dependent_people_are_hidden_by_the_larger_unit_or_given_their_fate(mechanism, fields, protects, stands):
    assert certify(mechanism, AttackerModel(**fields), protects=protects).has_partial_knowledge
    record = AttackerModel(**fields, dependent="household")
    given = AttackerModel(**fields, dependent="household", secret="conditional")
    if mechanism.noise is None:
        with pytest.raises(NotCertifiableError, match=r"make the household the privacy unit.*secret='conditional'"):
            certify(mechanism, record, protects=protects)
    else:
        assert not certify(mechanism, record, protects=protects).has_partial_knowledge
    if stands is None:
        with pytest.raises(NotCertifiableError, match="they move thresholds"):
            certify(mechanism, given, protects=protects)
        return
    certificate = certify(mechanism, given, protects=protects)
    assert stands in certificate.theorems
    assert certificate.delta(0.3) == certify(mechanism, AttackerModel(**fields), protects=protects).delta(0.3)
    assert "given those of all others of her household" in certificate.sentence()
    assert any("one unknown person at most" in text for text in certificate.assumptions)


def test_copies_of_a_record_break_what_independence_promises():
    # Four households of three people with one fate each, and the target's: an exact count tells it nearly surely.
    p = Fraction(1, 2)
    law = {3 * s: weight for s, weight in enumerate(coin_sum([p] * 4))}
    present, absent = ({count + shift: weight for count, weight in law.items()} for shift in (3, 0))
    promised = certify(Count(), AttackerModel(p_min=0.5, p_max=0.5, unknown=14)).delta(1.0)
    assert max(hockey_stick(present, absent, growth(1.0)), hockey_stick(absent, present, growth(1.0))) > promised
    # Given the other two of her household, and of each other household all but one, what is promised holds.
    laws = [dict(enumerate([0] * life + coin_sum([p] * 4))) for life in (0, 1)]
    given = AttackerModel(p_min=0.5, p_max=0.5, unknown=4, dependent="household", secret="conditional")
    assert worse(*laws, growth(1.0)) <= Fraction(certify(Count(), given).delta(1.0))


# What is written down -------------------------------------------------------------------------------------------------


def test_certificates_come_back_and_words_name_what_leaks():
    leaks = [TOTAL, Leakage("a noised count", epsilon=0.1, delta=1e-9, dependence_epsilon=0.1, dependence_delta=1e-9)]
    certificate = certify(Histogram(noise=GeometricNoise(0.5)), AttackerModel(leakage=leaks), protects="value")
    back = Certificate.from_json(certificate.to_json())
    assert back == certificate
    assert back.verify()
    assert hash(back) == hash(certificate)
    assert back.leakage == tuple(leaks)
    sentence = certificate.sentence()
    assert "against anyone at all, given the number of people present." in sentence
    assert "whatever they know" not in sentence
    assert (
        "what it tells by itself is not protected, nor are two possibilities for a person that it tells apart"
        in sentence
    )
    assert "A noised count may be known as well, and counts in these numbers." in sentence
    assumptions = " ".join(certificate.assumptions)
    for words in (
        "whichever cells they are in",
        "when one record is replaced by any other",
        "depends on the release's",
    ):
        assert words in assumptions
    only = certify(Histogram(k=40), AttackerModel(p_max_between=0.6, leakage=TOTAL), protects="value")
    assert "holds only if nothing else is published about these people, the number of people present aside" in (
        only.in_context(Context(unit=("u",))).sentence()
    )


def test_worst_case_only_keeps_the_leakage():
    attacker = AttackerModel(p_max_between=0.6, leakage=TOTAL)
    noised = Histogram(k=40, noise=GeometricNoise(0.5), release_threshold=70)
    only = certify(noised, attacker, protects="value").worst_case_only()
    assert only.attacker == AttackerModel(leakage=TOTAL)
    assert only.theorems == ("noise_beside_leakage",)


@pytest.mark.parametrize(
    ("mechanism", "attacker", "protects", "named", "left_out"),
    [
        (Histogram(k=9), AttackerModel(p_max=0.1, leakage=TOTAL), "presence", ["protects='value' and k="], ["noise"]),
        (
            Histogram(k=9),
            AttackerModel(p_max=0.1, leakage=TOTAL),
            "value",
            ["p_max_between = 0.75", "noise"],
            ["0.1 can"],
        ),
        (Count(k=9), AttackerModel(p_max=0.1, leakage=TOTAL), "presence", ["a histogram with"], ["no threshold but"]),
        (Count(), AttackerModel(leakage=Leakage("x")), "presence", ["with noise of its own"], ["Each of these"]),
        (Count(), AttackerModel(leakage=Leakage("x", epsilon=0.1)), "presence", ["(0.9)"], ["k = ", "unknown"]),
        (
            Count(noise=GeometricNoise(1.0)),
            AttackerModel(leakage=TOTAL),
            "presence",
            ["protects='value' and noise=pkdp.GeometricNoise(0.5)"],
            ["p_max", "k="],
        ),
        (Count(), AttackerModel(leakage=Leakage("x", epsilon=2.0)), "presence", ["more noise of its own"], ["k = "]),
        (Count(k=9), AttackerModel(p_max=0.1, dependent="family"), "presence", ["noise=", "unit"], ["k = "]),
    ],
)
def test_a_refusal_offers_nothing_that_the_leakage_makes_worthless(mechanism, attacker, protects, named, left_out):
    with pytest.raises(NotCertifiableError) as refused:
        certify(mechanism, attacker, protects=protects)
    message = str(refused.value)
    offered = message[message.index("Each of these") :] if "Each of these" in message else message
    assert all(text in message for text in named)
    assert not any(text in offered for text in left_out)
