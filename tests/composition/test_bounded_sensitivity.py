"""Rule 9: noised counts and histograms of the same records, which one record changes by a few."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations, product

import flint
import jsonschema
import numpy as np
import pytest
from oracle.joint import Day, worst
from oracle.laws import exact_exp, hockey_stick, losses, lower_end
from oracle.pairs import product_divergence
from oracle.releases import noisy_cell
from thorough import examples, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.attacks.days import releases_in
from pkdp_pipeline.extras.assurance.attacks.schedules import worst_schedules
from pkdp_pipeline.extras.assurance.verification import verify
from pkdp_pipeline.schemas import schema as pkdp_schema
from pkdp_pipeline.theorems.numerics import sum_above

ANYONE = pkdp.AttackerModel()


def count(epsilon, k=None, release=None):
    return pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(epsilon), k=k, release_threshold=release), ANYONE)


def table(epsilon, protects="presence", k=None, release=None):
    mechanism = pkdp.Histogram(noise=pkdp.GeometricNoise(epsilon), k=k, release_threshold=release)
    return pkdp.certify(mechanism, ANYONE, protects=protects)


def noise_pair(epsilon):
    """Return the two atoms of one noised cell."""
    alpha = math.exp(-epsilon)
    return [(1 / (1 + alpha), alpha / (1 + alpha)), (alpha / (1 + alpha), 1 / (1 + alpha))]


# What is certified


def test_the_most_telling_numbers_count_exactly():
    total = pkdp.compose([count(e) for e in (0.5, 0.25, 1.0, 0.75)], pkdp.BoundedSensitivity(2)).worst_case
    assert total.parameters == (1.75, 0.0)
    assert total.delta(1.75) == 0.0
    for epsilon in (0.0, 0.1, 0.37, 0.9, 1.5):
        exact = product_divergence([noise_pair(1.0), noise_pair(0.75)], math.exp(epsilon))
        assert exact * (1 - 1e-12) <= total.delta(epsilon) <= exact * (1 + 1e-9) + 1e-15


def test_uneven_noise_stays_close_to_the_most_telling_numbers():
    noises = (0.31, 0.77, 0.4142, 0.11)
    total = pkdp.compose([count(e) for e in noises], pkdp.BoundedSensitivity(3)).worst_case
    for epsilon in (0.0, 0.2, 0.6, 1.3):
        exact = product_divergence([noise_pair(e) for e in sorted(noises)[1:]], math.exp(epsilon))
        assert exact * (1 - 1e-12) <= total.delta(epsilon) <= 1.02 * exact + 1e-4


def test_equal_certificates_are_several_numbers():
    many = pkdp.compose([(count(0.25), 40)], pkdp.BoundedSensitivity(4, "value"))
    four = pkdp.compose([(count(0.25), 4)])
    points = np.array([0.0, 0.3, 0.7, 1.0])
    assert many.worst_case.parameters == four.worst_case.parameters == (1.0, 0.0)
    assert (many.delta(points) == four.delta(points)).all()
    assert many.releases == 40


def test_more_than_there_are_is_all_of_them():
    parts = [count(0.5), count(0.25)]
    for changes in (2, 3, 10**9):
        total = pkdp.compose(parts, pkdp.BoundedSensitivity(changes))
        assert total.worst_case.parameters == pkdp.compose(parts).worst_case.parameters
        assert total.delta(0.3) == pkdp.compose(parts).delta(0.3)


def test_a_histogram_is_one_number_for_presence_and_two_for_the_value():
    there = pkdp.compose([(table(0.5), 3)], pkdp.BoundedSensitivity(5)).worst_case
    assert there.parameters == (1.5, 0.0)
    says = pkdp.compose([(table(0.5, "value"), 3)], pkdp.BoundedSensitivity(5, "value")).worst_case
    assert says.parameters == (2.5, 0.0)
    # A presence certificate beside a count, and evidence about what a record says.
    mixed = pkdp.compose([table(0.5), count(0.25)], pkdp.BoundedSensitivity(3, "value")).worst_case
    assert mixed.parameters == (1.25, 0.0)


def test_the_sums_take_the_largest_epsilons_and_the_largest_deltas():
    parts = [count(1.0, 2, 12), count(0.3, 2, 3), count(0.2), table(0.25, k=3, release=5)]
    pairs = [part.worst_case.parameters for part in parts]
    total = pkdp.compose(parts, pkdp.BoundedSensitivity(2)).worst_case
    assert total.parameters[0] == 1.3
    assert total.parameters[1] == sum_above([pairs[1][1], pairs[3][1]])
    # A record that moves within a table lets one of its cells appear, not both.
    moved = pkdp.compose([table(0.25, "value", k=3, release=5)], pkdp.BoundedSensitivity(2, "value")).worst_case
    assert moved.parameters == (0.5, pairs[3][1])


# Attackers


def kernel(mechanism, true, top, exp):
    noise = mechanism.noise.epsilon
    return noisy_cell(true, exp(-noise), top, mechanism.k, mechanism.release_threshold)


def joint_law(mechanisms, counts, top, exp):
    """Return the joint law of all numbers, the others being known."""
    law = {(): 1}
    for mechanism, true in zip(mechanisms, counts, strict=True):
        cell_law = kernel(mechanism, true, top, exp)
        law = {(*shown, o): p * q for shown, p in law.items() for o, q in cell_law.items()}
    return law


@examples(quick=30, full=3_000)
def test_no_record_of_a_random_family_tells_more_than_the_total(examples):
    rng = np.random.default_rng(20)
    closest = 0.0
    for _ in range(examples):
        columns = {"a": list(range(int(rng.integers(2, 5)))), "b": list(range(int(rng.integers(1, 4))))}
        records = list(product(*columns.values()))
        many = int(rng.integers(2, 5))
        queries = {f"q{j}": [record for record in records if rng.random() < 0.5] for j in range(many)}
        family = pkdp.CountingQueries.over(columns, queries)
        protects = "presence" if rng.random() < 0.5 else "value"
        hidden = [rng.random() < 0.3 for _ in range(many)]
        mechanisms = [
            pkdp.Count(
                noise=pkdp.GeometricNoise(float(rng.choice([0.25, 0.5, 1.0]))),
                k=2 if hide else None,
                release_threshold=int(rng.integers(2, 5)) if hide else None,
            )
            for hide in hidden
        ]
        total = pkdp.compose(
            [pkdp.certify(mechanism, ANYONE) for mechanism in mechanisms], family.evidence(protects)
        ).worst_case
        others = [records[int(i)] for i in rng.integers(len(records), size=int(rng.integers(0, 4)))]
        lives = [[records[int(rng.integers(len(records)))]], [records[int(rng.integers(len(records)))]]]
        if protects == "presence" or rng.random() < 0.3:
            lives[int(rng.integers(2))] = []
        counts = [[sum(x in set(queries[q]) for x in (*others, *life)) for q in queries] for life in lives]
        laws = [joint_law(mechanisms, true_counts, 5, math.exp) for true_counts in counts]
        for epsilon in (0.0, float(rng.uniform(0.0, 2.0))):
            true = max(losses(*laws, math.exp(epsilon)))
            certified = total.delta(epsilon)
            assert true <= certified + 1e-12
            closest = max(closest, true / certified if certified > 0 else 0.0)
    assert closest > 0.999


@pytest.mark.parametrize(("noises", "changes"), [((0.5, 0.25, 1.0), 2), ((0.5, 0.5, 0.5, 0.5), 3), ((1.0, 0.5), 1)])
def test_a_record_in_as_many_counts_as_declared_reaches_the_total(noises, changes):
    total = pkdp.compose([count(e) for e in noises], pkdp.BoundedSensitivity(changes)).worst_case
    mechanisms = [pkdp.Count(noise=pkdp.GeometricNoise(e)) for e in noises]
    for epsilon in (0.0, 0.3, 0.9):
        best = Fraction(0)
        with flint.ctx.workprec(320):
            for changed in combinations(range(len(noises)), changes):
                there = [1 + (j in changed) for j in range(len(noises))]
                laws = [joint_law(mechanisms, true_counts, 3, exact_exp) for true_counts in (there, [1] * len(noises))]
                best = max(best, lower_end(hockey_stick(*laws, exact_exp(epsilon))))
        certified = Fraction(total.delta(epsilon))
        assert best <= certified <= best * Fraction(1 + 1e-9)


def test_records_of_a_histogram_beside_counts():
    # Two cells and their total: a record that moves changes the two, one that appears a cell and the total.
    days = [Day(cells=2, k=2, noise=0.5, release=3), Day(noise=0.25)]
    parts = [table(0.5, k=2, release=3), count(0.25)]
    there = pkdp.compose(parts, pkdp.BoundedSensitivity(2)).worst_case
    says = pkdp.compose(parts, pkdp.BoundedSensitivity(2, "value")).worst_case
    for here, there_too in product(range(3), repeat=2):
        people = [{(0, 0): 1.0}] * here + [{(1, 0): 1.0}] * there_too
        for epsilon in (0.0, 0.3, 0.6, 0.9, 1.01):
            appears = worst(people, days, ((0, 0), (None, None)), epsilon)
            moves = worst(people, days, ((0, 0), (1, 0)), epsilon)
            assert appears <= there.delta(epsilon) * (1 + 1e-12)
            assert max(appears, moves) <= says.delta(epsilon) * (1 + 1e-12)
    # The bound for "there or not" is not one for what the record says: there both cells change.
    assert worst([], [Day(cells=2, noise=0.5)], ((0,), (1,)), 0.6) > 0.0
    assert pkdp.compose([table(0.5)], pkdp.BoundedSensitivity(1)).delta(0.6) == 0.0


@examples(quick=20, full=2_000)
def test_no_record_tells_more_where_histograms_stand_among_the_counts(examples):
    rng = np.random.default_rng(21)
    closest = 0.0
    for _ in range(examples):
        days, parts, columns = [], [], []
        protects = "presence" if rng.random() < 0.4 else "value"
        for _ in range(int(rng.integers(2, 4))):
            cells = 2 if rng.random() < 0.5 else 1
            hidden = rng.random() < 0.4
            noise, k = float(rng.choice([0.25, 0.5, 1.0])), int(rng.integers(1, 4)) if hidden else None
            release = int(rng.integers(1, 5)) if hidden else None
            days.append(Day(cells=cells, k=k, noise=noise, release=release))
            parts.append((table if cells == 2 else count)(noise, k=k, release=release))
            columns.append((0, 1) if cells == 2 else (0, None))
        # A record is in one cell of every table, and counted or not in every count.
        records = [tuple(c[int(rng.integers(2))] for c in columns) for _ in range(int(rng.integers(2, 5)))]
        absent = (None,) * len(days)

        def changes(first, second):
            return sum((a is not None) + (b is not None) for a, b in zip(first, second, strict=True) if a != b)

        lives = [absent, *records]
        pairs = [(record, absent) for record in records] if protects == "presence" else list(product(lives, repeat=2))
        most = max(changes(*pair) for pair in pairs)
        if most == 0:
            continue
        total = pkdp.compose(parts, pkdp.BoundedSensitivity(most, protects)).worst_case
        others = [{records[int(i)]: 1.0} for i in rng.integers(len(records), size=int(rng.integers(0, 4)))]
        pair = (
            max(pairs, key=lambda pair: changes(*pair)) if rng.random() < 0.5 else pairs[int(rng.integers(len(pairs)))]
        )
        for epsilon in (0.0, float(rng.uniform(0.0, 2.0))):
            true, certified = worst(others, days, pair, epsilon), total.delta(epsilon)
            assert true <= certified + 1e-12
            closest = max(closest, true / certified if certified > 0 else 0.0)
    assert closest > 0.999


def steps(life, strategy, shown, noises, exp, law, weight):
    """Follow a strategy: `strategy(shown)` is what the next number counts, None at the end."""
    counted = strategy(shown)
    if counted is None:
        law[shown] = law.get(shown, 0) + weight
        return
    answer_law = noisy_cell(1 + (life in counted), exp(-noises[len(shown)]), 3, None, None)
    for output, chance in answer_law.items():
        steps(life, strategy, (*shown, output), noises, exp, law, weight * chance)


@examples(quick=15, full=1_000)
def test_questions_may_be_chosen_after_seeing_answers(examples):
    rng = np.random.default_rng(5)
    records = ("x", "y", "z")
    kinds = [frozenset(c) for size in range(4) for c in combinations(records, size)]
    for _ in range(examples):
        noises = [float(rng.choice([0.25, 0.5, 1.0])) for _ in range(3)]
        plan = {}

        def strategy(shown, plan=plan):
            if len(shown) == 3:
                return None
            return plan.setdefault(shown, kinds[int(rng.integers(len(kinds)))])

        laws = {}
        for life in (*records, None):
            laws[life] = {}
            steps(life, strategy, (), noises, math.exp, laws[life], 1.0)
        # Theorem 5: a strategy is as sensitive as the most sensitive of its paths.
        paths = [[strategy(shown[:j]) for j in range(3)] for shown in laws[None]]
        changes = max(sum(life in counted for counted in path) for path in paths for life in records)
        if changes == 0:
            continue
        total = pkdp.compose([count(e) for e in noises], pkdp.BoundedSensitivity(changes)).worst_case
        for epsilon in (0.0, 0.4, 1.1):
            true = max(max(losses(laws[life], laws[None], math.exp(epsilon))) for life in records)
            assert true <= total.delta(epsilon) + 1e-12


FAMILIES = {
    "noise alone": ([count(0.5), count(0.75), count(0.25)], "presence"),
    "ranked": ([count(0.5, 2, 6), count(0.5, 3, 4), count(0.25)], "presence"),
    "not ranked": ([count(1.0, 2, 12), count(0.3, 2, 3), count(0.2)], "presence"),
    "a table": ([table(0.5, k=2, release=5), count(0.25), count(0.25)], "presence"),
    "a table, value": ([table(0.5, "value", 3, 5), table(0.25, "value", 3, 9)], "value"),
}


@thinned(4)
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("changes", [1, 2, 3, 4])
def test_a_total_with_evidence_is_never_above_one_without(name, changes):
    parts, protects = FAMILIES[name]
    points = np.array([0.0, 0.2, 0.5, 0.8, 1.2])
    evidence = pkdp.BoundedSensitivity(changes, protects)
    with_evidence, without_evidence = (pkdp.compose(parts, e).worst_case for e in (evidence, None))
    assert (with_evidence.delta(points) <= without_evidence.delta(points) * (1 + 1e-9)).all()
    assert with_evidence.epsilon(0.4) <= without_evidence.epsilon(0.4) * (1 + 1e-6)
    assert all(a <= b for a, b in zip(with_evidence.parameters, without_evidence.parameters, strict=True))


def test_the_sum_of_certificates_about_less_is_not_used():
    # Presence certificates of a table say nothing about a record that moves in it.
    parts = [table(0.5, k=1, release=12)]
    moved = pkdp.compose(parts, pkdp.BoundedSensitivity(2, "value")).worst_case
    assert moved.parameters[0] == 1.0
    people = [{(0,): 1.0}, {(1,): 1.0}] * 12
    true = worst(people, [Day(cells=2, k=1, noise=0.5, release=12)], ((0,), (1,)), 0.6)
    assert 10 * pkdp.compose(parts).delta(0.6) < true <= moved.delta(0.6)


def test_the_noise_of_a_family_never_adds_up_to_more_than_was_asked_for():
    rng = np.random.default_rng(3)
    for changes in (1, 2, 3, 5, 7, 11):
        family = pkdp.CountingQueries.over({"a": [0, 1]}, {f"q{j}": {"a": 1} for j in range(changes)})
        for epsilon in (1.0, 0.1, 0.3, float(rng.uniform(1e-9, 1e9)), 1e-300):
            noise = family.noise(epsilon)
            assert Fraction(noise.epsilon) * changes <= Fraction(epsilon)
            assert Fraction(math.nextafter(noise.epsilon, math.inf)) * changes > Fraction(epsilon)
            if epsilon < 1e3:
                parts = [(pkdp.certify(pkdp.Count(noise=noise), ANYONE), changes)]
                assert pkdp.compose(parts, family.evidence()).worst_case.parameters[0] <= epsilon


# What is refused, and what is said


def test_what_is_no_noise_of_a_release_is_refused():
    exact = pkdp.certify(pkdp.Count(k=20), pkdp.AttackerModel(p_max=0.2))
    with pytest.raises(pkdp.NoEvidenceError, match="without a finite worst case"):
        pkdp.compose([exact, count(0.5)], pkdp.BoundedSensitivity(1))
    inner = pkdp.compose([count(0.5), count(0.25)])
    with pytest.raises(pkdp.NoEvidenceError, match="certificates of the releases themselves"):
        pkdp.compose([inner, count(0.5)], pkdp.BoundedSensitivity(1))
    with pytest.raises(pkdp.NoEvidenceError, match='protects="value"'):
        pkdp.compose([table(0.5, "value")], pkdp.BoundedSensitivity(1))
    with pytest.raises(pkdp.ArgumentError, match="no rule takes"):
        pkdp.compose([count(0.5)], [pkdp.BoundedSensitivity(1), pkdp.BoundedParticipation(1)])


@pytest.mark.parametrize("given", [(0,), (1.5,), (True,), (2, "both"), ("2",)])
def test_evidence_out_of_range_is_an_error(given):
    with pytest.raises(pkdp.ArgumentError, match="BoundedSensitivity"):
        pkdp.BoundedSensitivity(*given)


def test_several_periods_are_refused():
    import pandas as pd

    ledger = pkdp.Ledger.open(":memory:", dataset="visits")
    frame = pd.DataFrame({"u": range(40), "day": ["2026-01-01"] * 20 + ["2026-01-02"] * 20})
    releases = [
        frame[frame["day"] == day].pkdp.count(
            where=None, unit="u", noise=pkdp.GeometricNoise(0.5), attacker=ANYONE, ledger=ledger, period=day
        )
        for day in ("2026-01-01", "2026-01-02")
    ]
    with pytest.raises(pkdp.NoEvidenceError, match="one period"):
        pkdp.compose([release.certificate for release in releases], pkdp.BoundedSensitivity(1))


def test_a_total_says_what_was_declared_and_what_it_does_not_protect():
    there = pkdp.compose([count(0.5), count(0.25)], pkdp.BoundedSensitivity(1))
    assert there.rule == "bounded_sensitivity"
    assert there.theorems[0] == "bounded_sensitivity"
    assert "by at most 1" in there.sentence()
    assert "it does not protect what the record says" in there.sentence()
    assert there.assumptions[0] == pkdp.BoundedSensitivity(1).declares
    says = pkdp.compose([count(0.5), count(0.25)], pkdp.BoundedSensitivity(2, "value"))
    assert "Protects what a person's record says in these releases, and whether it is there" in says.sentence()


def test_a_total_in_a_total_says_what_it_protects():
    day = pkdp.compose([count(0.25), count(0.5)], pkdp.BoundedSensitivity(1))
    week = pkdp.compose([(day, 7)])
    assert week.worst_case.parameters == (3.5, 0.0)
    assert "Where a bounded sensitivity was declared, it protects whether a person's record is there" in week.sentence()
    assert "does not protect what the record says" in week.sentence()


def test_given_the_number_of_people_presence_is_not_hidden():
    known = pkdp.AttackerModel(leakage=pkdp.Leakage.total())
    mechanism = pkdp.Histogram(noise=pkdp.GeometricNoise(0.5))
    tables = [(pkdp.certify(mechanism, known, protects="value"), 3)]
    total = pkdp.compose(tables, pkdp.BoundedSensitivity(2, "value"))
    assert total.worst_case.parameters == (1.0, 0.0)
    assert "it does not protect whether it is there" in total.sentence()
    assert "and whether it is there" not in total.protection()
    assert "given the number of people present" in total.sentence()


@pytest.mark.parametrize("kind", [pkdp.Count, pkdp.Histogram])
def test_what_a_record_says_is_not_hidden_beside_what_tells_it(kind):
    # Shared by a life with her and one without, never by two lives that differ in what her record says.
    leakage = pkdp.Leakage("how the oldest person answered", shared_by=("presence",))
    part = pkdp.certify(kind(noise=pkdp.GeometricNoise(0.5)), pkdp.AttackerModel(leakage=leakage))
    there = pkdp.compose([(part, 2)], pkdp.BoundedSensitivity(1))
    assert there.worst_case.parameters == (0.5, 0.0)
    with pytest.raises(pkdp.NoEvidenceError, match="how the oldest person answered"):
        pkdp.compose([(part, 2)], pkdp.BoundedSensitivity(2, "value"))


def test_a_leakage_that_is_itself_private_is_no_count():
    noisy = pkdp.Leakage("a noised total", epsilon=0.5)
    part = pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(0.5)), pkdp.AttackerModel(leakage=noisy))
    with pytest.raises(pkdp.NoEvidenceError, match="a noised total"):
        pkdp.compose([(part, 2)], pkdp.BoundedSensitivity(1))


def test_a_total_comes_back_from_json_and_is_verified(tmp_path):
    total = pkdp.compose([count(0.5), (count(0.25, 2, 5), 2)], pkdp.BoundedSensitivity(2, "value"))
    again = pkdp.Certificate.from_json(total.to_json())
    assert again == total
    assert again.verify()
    jsonschema.validate(json.loads(total.to_json()), pkdp_schema("certificate.v1"))
    # Its attackers differ in two numbers, not in three: with three they would be above what is certified.
    (schedule,) = set(map(releases_in, worst_schedules(total)))
    assert schedule == 2
    path = tmp_path / "total.json"
    path.write_text(total.to_json(), encoding="utf-8")
    verification = verify(path)
    assert verification.failures == ()


@pytest.mark.parametrize(("changes", "moved"), [(1, 0), (2, 1), (3, 1), (4, 2), (9, 3)])
def test_who_moves_in_a_table_makes_two_changes(tmp_path, changes, moved):
    total = pkdp.compose([(table(0.5, "value"), 3)], pkdp.BoundedSensitivity(changes, "value"))
    assert set(map(releases_in, worst_schedules(total))) == ({moved} if moved else set())
    path = tmp_path / "total.json"
    path.write_text(total.to_json(), encoding="utf-8")
    assert verify(path).failures == ()


def test_a_ledger_does_not_take_it():
    with pytest.raises(pkdp.ArgumentError, match="BoundedSensitivity"):
        pkdp.Ledger.open(":memory:", dataset="d", evidence=pkdp.BoundedSensitivity(1))
