"""Rule 4: bounded dependence of every release on all earlier ones, measured on small joint laws."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from oracle.dependence import measured_dependence
from oracle.joint import Day, independent, joint_laws, joint_losses, sticky, worst, xor_days
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.evidence import BoundedDependence


def coins(unknown, low=0.5, high=0.5):
    return pkdp.certify(pkdp.Count(), pkdp.AttackerModel(p_min=low, p_max=high, unknown=unknown))


def best_split(deltas, epsilon):
    """Return the least sum of two profiles over the splits of ε."""
    if epsilon < 0:
        return 1.0
    shares = np.linspace(0.0, epsilon, 401)
    return min(1.0, float(np.min(deltas[0](shares) + deltas[1](shares[::-1]))))


def profile(people):
    def delta(epsilons):
        return np.array([worst(people, [Day()], ((0,), (None,)), epsilon) for epsilon in epsilons])

    return delta


def random_crowd(rng, people, days):
    places = list(product((0, None), repeat=days))
    weights = [rng.dirichlet(np.full(len(places), rng.choice([0.5, 2.0, 8.0]))) for _ in range(people)]
    return [dict(zip(places, row.tolist(), strict=True)) for row in weights]


def part_for(people, day, place):
    """Certify one release for what these people do on that day alone."""
    chances = [sum(weight for life, weight in person.items() if life[place] == 0) for person in people]
    if day.k is not None:
        return pkdp.certify(pkdp.Count(k=day.k), pkdp.AttackerModel(p_max=min(1.0, max(chances) * (1 + 1e-12))))
    return coins(len(people), min(chances) * (1 - 1e-12), min(1.0, max(chances) * (1 + 1e-12)))


@thinned(3)
@pytest.mark.parametrize("seed", one_in(3, range(25)))
def test_the_sum_holds_for_the_dependence_there_is(seed):
    rng = np.random.default_rng(seed)
    days = [Day(k=int(rng.integers(2, 4)) if rng.random() < 0.4 else None) for _ in range(int(rng.integers(2, 4)))]
    people = random_crowd(rng, int(rng.integers(2, 5)), len(days))
    lives = tuple(tuple(0 if rng.random() < 0.5 else None for _ in days) for _ in range(2))
    first, second = joint_laws(people, days, lives, math.exp)
    parts = [part_for(people, day, place) for place, day in enumerate(days)]
    for spare in (0.0, 0.02, 0.1):
        needed = max(
            measured_dependence(law, other_law, place, spare)
            for law, other_law in ((first, second), (second, first))
            for place in range(1, len(days))
        )
        if math.isinf(needed):
            continue
        total = pkdp.compose(parts, BoundedDependence(epsilon=needed * (1 + 1e-9) + 1e-12, delta=spare))
        for epsilon in (0.0, needed, needed + 0.5, 2 * needed + 1.0, 8.0):
            true = max(joint_losses(people, days, lives, epsilon, math.exp))
            assert true <= total.delta(epsilon) * (1 + 1e-9) + 1e-12


def test_independent_releases_depend_on_nothing():
    people = [independent([[0.3], [0.6], [0.5]])] * 3
    first, second = joint_laws(people, [Day(k=2), Day(), Day()], ((0, 0, None), (None, 0, 0)), math.exp)
    assert max(measured_dependence(first, second, place) for place in (1, 2)) < 1e-12


def test_the_sum_is_attained():
    # One other person, on one of the two days or on none: published means that she and the target are there.
    first_day = second_day = 0.35
    person = {(0, None): first_day, (None, 0): second_day, (None, None): 1 - first_day - second_day}
    days, lives = [Day(k=2)] * 2, ((0, 0), (None, None))
    first, second = joint_laws([person], days, lives, math.exp)
    needed = max(measured_dependence(first, second, 1), measured_dependence(second, first, 1))
    assert 0.0 < needed < 1.0
    parts = [pkdp.certify(pkdp.Count(k=2), pkdp.AttackerModel(p_max=p)) for p in (first_day, second_day)]
    total = pkdp.compose(parts, BoundedDependence(epsilon=needed * (1 + 1e-12)))
    true = worst([person], days, lives, 40.0)
    assert true == pytest.approx(first_day + second_day, rel=1e-12)
    assert true * (1 - 1e-12) <= total.delta(40.0) <= true * (1 + 1e-6)


def test_numbers_add_up_as_declared():
    part = coins(400)
    total = pkdp.compose([(part, 3)], BoundedDependence(epsilon=0.2, delta=1e-5))
    for epsilon in (0.5, 1.0, 2.0):
        share = (epsilon - 0.4) / 3
        expected = 3 * part.delta(share) + 2e-5
        assert total.delta(epsilon) == pytest.approx(min(1.0, expected), rel=1e-6)
    assert total.delta(0.39) == 1.0
    assert pkdp.compose([part], BoundedDependence(epsilon=5.0, delta=0.5)).delta(1.0) == pytest.approx(part.delta(1.0))
    # Order and grouping make no difference.
    unlike = [coins(100), coins(900), coins(400)]
    deltas = [pkdp.compose(way, BoundedDependence(epsilon=0.1)).delta(2.0) for way in (unlike, unlike[::-1])]
    assert deltas[0] == pytest.approx(deltas[1], rel=1e-9)


def test_pairs_of_days_say_nothing_about_three():
    people = [xor_days(0.5, 0.5)] * 6
    # Every two days are independent …
    for two in ((0, 1), (0, 2), (1, 2)):
        pair = {}
        for life, weight in people[0].items():
            key = tuple(life[t] for t in two)
            pair[key] = pair.get(key, 0.0) + weight
        assert pair == independent([[0.5], [0.5]])
    # … so pairwise evidence would be (0, 0), but the third count depends on the first two jointly.
    lives = ((0, None, None), (None, None, None))
    first, second = joint_laws(people, [Day()] * 3, lives, math.exp)
    assert measured_dependence(first, second, 1) == pytest.approx(0.0, abs=1e-12)
    assert measured_dependence(first, second, 2) == math.inf
    assert measured_dependence(first, second, 2, spare=0.5) == math.inf
    true = worst(people, [Day()] * 3, lives, 1.0)
    assert true == 1.0
    misled = pkdp.compose([(coins(6), 3)], BoundedDependence(epsilon=0.0)).delta(1.0)
    assert misled < true
    assert "all earlier ones together" in BoundedDependence(epsilon=0.0).declares
    assert "consecutive" in (BoundedDependence.__doc__ or "")


def closeness(person):
    """Return the least c with every chance of day 2 given day 1 within e^{±c} of its unconditional value."""
    days = {t: {x: sum(w for life, w in person.items() if life[t] == x) for x in (0, None)} for t in (0, 1)}
    return max(
        abs(math.log(weight / days[0][life[0]] / days[1][life[1]])) for life, weight in person.items() if weight > 0
    )


def test_example_9_needs_four_times_c_where_both_days_differ():
    people, epsilon = [sticky(0.5, 0.9, 2)] * 2, 4.3
    c = closeness(people[0])
    assert c == pytest.approx(math.log(5))
    true = worst(people, [Day()] * 2, ((0, None), (None, 0)), epsilon)
    alone = profile([independent([[0.5]])] * 2)
    assert best_split([alone, alone], epsilon - 2 * c) == pytest.approx(0.632, abs=2e-3)
    assert true == pytest.approx(0.723, abs=1e-3)
    # The printed reading ε′ = 2c is exceeded, ε′ = 4c is not.
    part = coins(2)
    assert pkdp.compose([(part, 2)], BoundedDependence(epsilon=2 * c)).delta(epsilon) < true
    assert pkdp.compose([(part, 2)], BoundedDependence(epsilon=4 * c)).delta(epsilon) >= true


@pytest.mark.parametrize("seed", range(60))
def test_example_9_bounds_the_dependence_of_two_counts(seed):
    rng = np.random.default_rng([9, seed])
    people = random_crowd(rng, int(rng.integers(1, 5)), 2)
    days = [Day(k=int(rng.integers(2, 4)) if rng.random() < 0.5 else None) for _ in range(2)]
    c = max(map(closeness, people))
    for lives in product(product((0, None), repeat=2), repeat=2):
        if lives[0] == lives[1]:
            continue
        first, second = joint_laws(people, days, lives, math.exp)
        both = lives[0][0] != lives[1][0] and lives[0][1] != lives[1][1]
        assert measured_dependence(first, second, 1) <= (4 if both else 2) * c * (1 + 1e-9) + 1e-9
