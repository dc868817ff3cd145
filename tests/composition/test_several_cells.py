"""Rule 10, people in several cells: against enumeration of all cells together, and what it makes of the other rules."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.joint import Day, capped, independent, joint_losses, mixed, worst
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline import ArgumentError, AttackerModel, GeometricNoise, Histogram, certify, compose
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.theorems.worst_case import NoiseCurve

HABITS = pkdp.IndependentGivenHabits()
APART = AttackerModel(p_max=0.3, independent_cells=True)


def delta(mechanism, attacker, protects, epsilon):
    """Return what is certified; 1 where nothing is."""
    try:
        return certify(mechanism, attacker, protects=protects).delta(epsilon)
    except pkdp.NotCertifiableError:
        return 1.0 if isinstance(epsilon, float) else np.ones(len(epsilon))


def lives_of(cells, protects, most):
    """Return pairs of what a person may be in: none or up to `most` cells; for the value none of them absent."""
    sets = [life for life in itertools.product([None, 0], repeat=cells) if life.count(0) <= most]
    absent = (None,) * cells
    if protects == "presence":
        return [(life, absent) for life in sets if life != absent]
    return [pair for pair in itertools.combinations(sets, 2) if absent not in pair]


@st.composite
def crowds(draw, cells):
    """People each of whose cells is entered by herself, with any chance up to 3/10."""
    chance = st.sampled_from([0.0, 0.05, 0.15, 0.3])
    return [independent([[draw(chance)] for _ in range(cells)]) for _ in range(draw(st.integers(0, 4)))]


@pytest.mark.parametrize("protects", ["presence", "value"])
@given(data=st.data())
def test_no_attacker_tells_more_than_is_certified(protects, data):
    cells = data.draw(st.integers(2, 3))
    most, k = data.draw(st.integers(1, cells)), data.draw(st.integers(2, 4))
    epsilon = data.draw(st.sampled_from([0.0, 0.3, 1.0, 2.0]))
    lives = data.draw(st.sampled_from(lives_of(cells, protects, most)))
    truth = worst(data.draw(crowds(cells)), [Day(k=k)] * cells, lives, epsilon)
    # With one cell each the certificate is theorem B's, of whom a person's cells exclude one another.
    mechanism = Histogram(k=k, cells_per_unit=max(most, 2))
    assert truth <= delta(mechanism, APART, protects, epsilon) * (1 + 1e-12)


@thinned(2)
@pytest.mark.parametrize("influence", ["active", "passive"])
@given(data=st.data())
def test_nor_one_who_knows_people(influence, data):
    k, known = data.draw(st.integers(3, 5)), data.draw(st.integers(1, 2))
    epsilon = data.draw(st.sampled_from([0.0, 0.5, 1.5]))
    lives = data.draw(st.sampled_from(lives_of(2, "presence", 2) + lives_of(2, "value", 2)))
    chances = data.draw(st.lists(st.sampled_from([0.0, 0.3]), min_size=2, max_size=2))
    sure = data.draw(st.lists(st.booleans(), min_size=2, max_size=2))
    person = [[float(chance)] for chance in sure] if influence == "active" else [[chance] for chance in chances]
    known_people = [independent(person)] * known
    days, people = [Day(k=k)] * 2, data.draw(crowds(2))
    truth = float(max(joint_losses(people, days, lives, epsilon, math.exp, known_people)))
    attacker = AttackerModel(p_max=0.3, known=known, influence=influence, independent_cells=True)
    protects = "presence" if (None, None) in lives else "value"
    assert truth <= delta(Histogram(k=k, cells_per_unit=2), attacker, protects, epsilon) * (1 + 1e-12)


def largest(people, day, cells, protects, most, epsilon):
    """Return the largest divergence of two lives in a table of so many cells, nobody in more than `most` of them."""
    lives = lives_of(cells, protects, most)
    return max((worst(people, [day] * cells, pair, epsilon) for pair in lives), default=0.0)


TABLES = [(1, 1), (1, 3), (2, 2), (2, 5), (3, 2), (3, 4)]


@pytest.mark.parametrize("protects", ["presence", "value"])
@pytest.mark.parametrize(("cells", "most"), TABLES)
@pytest.mark.parametrize(("k", "release_threshold"), [(None, None), (2, 3), (None, 1)])
@pytest.mark.parametrize("epsilon", [0.0, 0.6, 1.3])
def test_a_table_has_no_more_cells_than_are_declared(k, release_threshold, epsilon, cells, most, protects):
    """Against anybody: whoever else is there is known, so that the target appears, or not, where nobody was before."""
    steps = {"k": k, "noise": GeometricNoise(0.7), "release_threshold": release_threshold}
    certificate = certify(Histogram(**steps, cells_per_unit=most), protects=protects, cells=cells)
    day = Day(k=k, noise=0.7, release=release_threshold)
    others = itertools.combinations_with_replacement([0, 1, 2] if k else [0], cells)
    known = [[{tuple(0 if n < each else None for each in other): 1.0} for n in range(2)] for other in others]
    truth = max(largest(people, day, cells, protects, min(cells, most), epsilon) for people in known)
    attained, certified = certificate.delta_bounds(epsilon)
    assert attained == pytest.approx(truth, rel=1e-9, abs=1e-12)
    assert truth <= certified * (1 + 1e-9)
    if protects == "presence" or (cells > 1 and k is None) or most < cells:
        assert certified == pytest.approx(truth, rel=1e-9, abs=1e-12)


@thinned(6)
@pytest.mark.parametrize("protects", ["presence", "value"])
@pytest.mark.parametrize(("cells", "most"), TABLES)
@pytest.mark.parametrize("epsilon", [0.0, 0.7])
def test_nor_where_nothing_is_added(epsilon, cells, most, protects):
    certificate = certify(Histogram(k=2, cells_per_unit=most), APART, protects=protects, cells=cells)
    attained, certified = certificate.delta_bounds(epsilon)
    crowds_of = [[independent([[0.3]] * cells)] * n for n in range(1, 5)]
    truth = max(largest(people, Day(k=2), cells, protects, min(cells, most), epsilon) for people in crowds_of)
    assert attained <= truth * (1 + 1e-9)
    assert truth <= certified * (1 + 1e-12)
    if protects == "presence":
        assert certified <= truth * 1.35
    if most > cells:
        assert certified < certify(Histogram(k=2, cells_per_unit=most), APART, protects=protects).delta(epsilon)


def test_exactly_one_small_case():
    people = [independent([[Fraction(3, 10)], [Fraction(3, 10)]])] * 3
    lives = ((0, 0), (None, None))
    truth = max(joint_losses(people, [Day(k=3)] * 2, lives, 1.0, lambda x: Fraction(math.exp(x))))
    bounds = certify(Histogram(k=3, cells_per_unit=2), APART).delta_bounds(1.0)
    assert bounds[0] <= bounds[1]
    assert truth <= Fraction(bounds[1])
    assert truth > Fraction(bounds[1]) * Fraction(6, 10)


@pytest.mark.parametrize("cells", [2, 3, 5, 10])
def test_an_attacker_comes_close(cells):
    """The best sum of scores; what it needs in ε beside what is certified."""
    certificate = certify(Histogram(k=50, cells_per_unit=cells), APART)
    epsilon = certificate.epsilon(1e-6)
    reached = certificate.delta_bounds(epsilon * np.array([0.80, 0.9]))[0]
    assert reached[0] > 1e-6


@given(data=st.data())
def test_more_cells_never_tell_less(data):
    protects = data.draw(st.sampled_from(["presence", "value"]))
    k, cells = data.draw(st.integers(2, 30)), data.draw(st.integers(2, 6))
    attacker = AttackerModel(p_max=data.draw(st.floats(0.01, 0.9)), independent_cells=True)
    deltas = [
        delta(Histogram(k=k, cells_per_unit=many), attacker, protects, [0.1, 1.0, 3.0]) for many in (cells, cells + 1)
    ]
    assert np.all(deltas[0] <= deltas[1] * (1 + 1e-6))
    presence = delta(Histogram(k=k, cells_per_unit=cells), attacker, "presence", [0.1, 1.0, 3.0])
    assert np.all(presence <= deltas[0] * (1 + 1e-6)) or protects == "presence"


def test_capping_without_noise_gives_a_person_away():
    """Twenty people who would be in both cells, each kept in one of them: the total tells of the target."""
    person = capped(mixed([(0.5, {(0, None): 1.0}), (0.5, {(None, 0): 1.0})]), 1)
    divergence = worst([person] * 20, [Day(k=5)] * 2, ((0, None), (None, None)), 1.0)
    assert divergence > 0.98
    product = certify(Histogram(k=5, cells_per_unit=2), AttackerModel(p_max=0.5, independent_cells=True))
    assert product.delta(1.0) < 0.9


@pytest.mark.parametrize("noise", [None, GeometricNoise(1.0)])
def test_capping_without_a_guarantee_is_refused(noise):
    mechanism = Histogram(k=5, noise=noise, release_threshold=noise and 9, cells_per_unit=2)
    with pytest.raises(ArgumentError, match="one_cell = 'first' with cells_per_unit") as caught:
        Question(mechanism=mechanism, unit="u", by="c", one_cell="first", order_by="o")
    assert "Leave one_cell out" in str(caught.value)
    with pytest.raises(ArgumentError, match="without noise nothing may be left out"):
        Question(mechanism=Histogram(k=5, cells_per_unit=2), unit="u", by="c", one_cell="hash")
    with pytest.raises(ArgumentError, match="where each row is a person"):
        Question(mechanism=Histogram(k=5, cells_per_unit=2), unit=pkdp.EACH_ROW, by="c")


@pytest.mark.parametrize("protects", ["presence", "value"])
def test_without_independence_it_is_refused_and_what_would_do_is_named(protects):
    with pytest.raises(pkdp.NotCertifiableError, match="declare independent_cells") as caught:
        certify(Histogram(k=69, cells_per_unit=3), AttackerModel(p_max=0.1), protects=protects)
    k = int(str(caught.value).split("no noise but k = ")[1].split(" ")[0])
    argued = AttackerModel(p_max=0.1, independent_cells=True)
    reached = [
        certify(Histogram(k=threshold, cells_per_unit=3), argued, protects=protects).delta(1.0) <= 1e-6
        for threshold in (k, k - 1)
    ]
    assert reached == [True, False]
    _, offered = str(caught.value).split("no k but noise=pkdp.GeometricNoise(")
    epsilon, threshold = offered.split(") with release_threshold=")
    noise = GeometricNoise(float(epsilon))
    noisy = Histogram(noise=noise, release_threshold=int(threshold.split(",")[0]), cells_per_unit=3)
    assert certify(noisy, protects=protects).epsilon(1e-6) <= 1.0


def test_noise_leaves_only_what_holds_against_anybody():
    noisy = Histogram(k=5, noise=GeometricNoise(0.25), release_threshold=60, cells_per_unit=4)
    certificate = certify(noisy, AttackerModel(p_max=0.1, independent_cells=True))
    assert not certificate.has_partial_knowledge
    assert certificate.worst_case.parameters[0] == 1.0
    with pytest.raises(pkdp.NotCertifiableError, match="release_threshold"):
        certify(Histogram(k=5, noise=GeometricNoise(0.25), cells_per_unit=4), AttackerModel(p_max=0.1))


def cell_laws(noise, appears_at, change):
    """Return the pairs of laws that one cell can have, without and with a person: (noise as ±ε0) or (appearing)."""
    alpha = (-flint.arb(noise)).exp()
    coin = {0: 1 / (1 + alpha), 1: alpha / (1 + alpha)}, {0: alpha / (1 + alpha), 1: 1 / (1 + alpha)}
    kinds = [coin]
    if appears_at is not None:
        law = {z: (1 - alpha) / (1 + alpha) * alpha ** abs(z) for z in range(appears_at, appears_at + 400)}
        shown = sum(law.values(), flint.arb(0))
        kinds.append(({0: 1 - shown, 1: shown}, {0: flint.arb(1), 1: flint.arb(0)}))
    return kinds if change > 0 else [(absent, there) for there, absent in kinds]


@thinned(6)
@pytest.mark.parametrize("appears_at", one_in(2, [None, 0, 3, 12, -2]))
@pytest.mark.parametrize(("cells", "moves"), [(1, False), (2, False), (3, False), (5, False), (1, True), (2, True)])
@pytest.mark.parametrize(
    ("noise", "epsilon"), one_in(2, [(0.2, 0.0), (0.2, 0.3), (0.7, 1.0), (0.7, 2.2), (2.0, 3.9), (2.0, 9.0)])
)
def test_noise_is_exact(cells, moves, noise, epsilon, appears_at):
    """Against the product of all cells, each as telling as it can be: not one by one."""
    curve = NoiseCurve(theorem="noise", noise=noise, cells=cells, moves=moves, appears_at=appears_at)
    lower, upper = (float(side[0]) for side in curve.bracket(np.array([epsilon])))
    with flint.ctx.workprec(300):
        exact, growth = flint.arb(0), flint.arb(epsilon).exp()
        changes = [1] * cells + [-1] * cells * moves
        ways = {tuple(sorted(way)) for way in itertools.product(range(1 if appears_at is None else 2), repeat=cells)}
        for entered, left in itertools.product(ways, ways if moves else [()]):
            pairs = [
                cell_laws(noise, appears_at, sign)[kind] for kind, sign in zip((*entered, *left), changes, strict=True)
            ]
            for first, second in (0, 1), (1, 0):
                excess = flint.arb(0)
                for outcome in itertools.product((0, 1), repeat=len(pairs)):
                    masses = [flint.arb(1), flint.arb(1)]
                    for value, pair in zip(outcome, pairs, strict=True):
                        masses = [mass * law[value] for mass, law in zip(masses, pair, strict=True)]
                    excess += (masses[first] - growth * masses[second]).max(flint.arb(0))
                exact = exact.max(excess)
        assert not flint.arb(upper) < exact
        assert not flint.arb(lower) > exact * (1 + flint.arb(1e-12))
        assert flint.arb(upper) <= exact * (1 + flint.arb(1e-11)) + flint.arb(1e-300)
    assert curve.parameters[0] >= cells * (1 + moves) * noise


def test_a_noised_cell_is_no_more_than_its_coin():
    """The coins ±ε0 of `cell_laws` are what a noised count that is always shown tells, and no less."""
    certificate = certify(Histogram(noise=GeometricNoise(0.7)), AttackerModel())
    alpha = math.exp(-0.7)
    assert certificate.delta(0.3) == pytest.approx((1 - alpha * math.exp(0.3)) / (1 + alpha), rel=1e-12)


def test_a_schedule_of_several_cells_is_one_of_as_many_releases():
    single = certify(Histogram(k=60), APART)
    several = certify(Histogram(k=60, cells_per_unit=3), APART)
    assert compose([(several, 5)], HABITS).epsilon(1e-6) == compose([(single, 15)], HABITS).epsilon(1e-6)
    limited = [HABITS, pkdp.BoundedParticipation(2)]
    assert compose([(several, 9)], limited).epsilon(1e-6) == compose(
        [(single, 27)], [HABITS, pkdp.BoundedParticipation(6)]
    ).epsilon(1e-6)
    # A period's total has the cells of its release.
    nested, plain = (compose([(part, 9)], limited).epsilon(1e-6) for part in (compose([several]), several))
    assert plain <= nested <= 1.05 * plain
    assert compose([(several, 5)], pkdp.OneDayProtected()).epsilon(1e-6) == several.epsilon(1e-6)
    value = certify(Histogram(k=60, cells_per_unit=3), APART, protects="value")
    everything = compose([(value, 5)], HABITS)
    assert everything.epsilon(1e-6) >= compose([(several, 5)], HABITS).epsilon(1e-6)
    assert compose([(value, 5)], HABITS).epsilon(1e-6) == pytest.approx(
        compose([(certify(Histogram(k=60), APART, protects="value"), 15)], HABITS).epsilon(1e-6), rel=1e-6
    )


def test_two_days_of_two_cells_against_enumeration():
    people = [independent([[0.3]] * 4)] * 3
    total = compose([(certify(Histogram(k=2, cells_per_unit=2), APART), 2)], HABITS)
    for lives in [
        ((0, 0, 0, 0), (None,) * 4),
        ((0, 0, None, None), (None, None, 0, 0)),
        ((0, None, 0, 0), (None,) * 4),
    ]:
        for epsilon in (0.3, 1.0, 2.5):
            assert worst(people, [Day(k=2)] * 4, lives, epsilon) <= total.delta(epsilon) * (1 + 1e-12)


def test_once_per_unit_says_nothing_about_several_cells():
    several = certify(Histogram(k=60, cells_per_unit=3), APART)
    with pytest.raises(pkdp.NoEvidenceError, match="appears in one release only"):
        compose([(several, 3)], pkdp.OncePerUnit())
    noisy = certify(Histogram(noise=GeometricNoise(0.1), cells_per_unit=3))
    once = compose([(noisy, 3)], pkdp.OncePerUnit())
    assert once.worst_case.parameters[0] == pytest.approx(0.3)
    assert compose([(noisy, 3)]).worst_case.parameters[0] == pytest.approx(0.9)


@pytest.mark.parametrize("protects", ["presence", "value"])
def test_bounded_sensitivity_counts_every_cell(protects):
    noisy = certify(Histogram(noise=GeometricNoise(0.1), cells_per_unit=4), protects=protects)
    most = 8 if protects == "value" else 4
    for changes, spent in ((3, 3), (6, min(6, most)), (20, most)):
        total = compose([noisy], pkdp.BoundedSensitivity(changes, protects))
        assert total.worst_case.parameters[0] == pytest.approx(0.1 * spent)


@pytest.mark.parametrize("cells", [0, -1, 101, True, 2.0, "3", None])
def test_cells_per_unit_is_checked(cells):
    with pytest.raises(ArgumentError, match=r"^cells_per_unit must be"):
        Histogram(k=5, cells_per_unit=cells)


def test_independent_cells_is_checked():
    with pytest.raises(ArgumentError, match=r"^independent_cells must be True or False"):
        AttackerModel(p_max=0.1, independent_cells=1)
