"""Certificates given a leakage, against the joint law of what is published and what leaks; and what fails beside it."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from oracle.laws import BITS, exact_exp, losses, lower_end
from oracle.leaking import geometric, given_value, joint_losses_with, joint_with, shown_table, total_present

import pkdp_pipeline as pkdp

TOTAL = pkdp.Leakage.total()


def attacker(**fields):
    return pkdp.AttackerModel(leakage=TOTAL, **fields)


def ends(rng, size, least, most):
    """Return numbers in a range, mostly at its ends."""
    drawn = rng.uniform(least, most, size)
    at_end = rng.random(size) < rng.choice([0.3, 0.7, 1.0])
    return np.where(at_end, np.where(rng.random(size) < 0.5, least, most), drawn)


def share_reached(certificate, people, fixed, lives, epsilons, shown, leaked, known=()):
    """Compare both divergences with what is certified, exactly; return the largest part of it that is reached."""
    reached = 0.0
    with flint.ctx.workprec(BITS):
        for epsilon in epsilons:
            sides = joint_losses_with(people, fixed, lives, exact_exp(epsilon), shown, leaked, known)
            truth = max(lower_end(flint.arb(side)) for side in sides)
            bound = Fraction(certificate.delta(epsilon))
            assert truth <= bound, (certificate.mechanism, certificate.attacker, epsilon, float(truth), float(bound))
            if 0 < bound < Fraction(9, 10):
                reached = max(reached, float(truth / bound))
    return reached


def arbs(rows):
    """Return people whose cells have these chances, exactly as the numbers are; the rest is absence."""
    with flint.ctx.workprec(BITS):
        exact = [[flint.arb(flint.fmpq(*chance.as_integer_ratio())) for chance in row] for row in rows]
        return [[*row, 1 - sum(row, flint.arb(0))] for row in exact]


def between_cells(rng, people, cells, most):
    """Return chances that keep to ``P[v | v or w] ≤ most``, also as floats; absence is anything."""
    odds = most / (1 - most) * (1 - 1e-12)
    weights = np.exp(ends(rng, (people, cells), 0.0, math.log(odds)) if odds > 1 else np.zeros((people, cells)))
    there = ends(rng, (people, 1), 0.0, 1.0)
    return (there * weights / weights.sum(axis=1, keepdims=True) * (1 - 1e-12)).tolist()


def epsilons_of(rng):
    return (0.0, float(rng.uniform(0.05, 0.8)), float(rng.uniform(0.8, 3.0)))


# What stays ----------------------------------------------------------------------------------------------------------


def test_theorem_c_keeps_its_numbers_beside_the_total():
    reached = 0.0
    for seed in range(60):
        rng = np.random.default_rng([seed, 1])
        cells, k, m = int(rng.integers(2, 4)), int(rng.integers(2, 5)), int(rng.integers(0, 5))
        most = float(rng.choice([0.5, 0.6, rng.uniform(0.5, 0.95)]))
        known = int(rng.integers(0, k - 1)) if rng.random() < 0.5 else 0
        active = bool(rng.random() < 0.5)
        fields = {"p_max_between": most, "known": known, "influence": "active" if active else "passive"}
        if rng.random() < 0.3:
            fields["unknown_max"] = m
        certificate = pkdp.certify(pkdp.Histogram(k=k), attacker(**fields), protects="value")
        rows = arbs(between_cells(rng, m + known, cells, most))
        places = rng.integers(0, cells, known).tolist() if active else []
        fixed = tuple(places.count(cell) for cell in range(cells))
        reached = max(
            reached,
            share_reached(
                certificate,
                rows[:m],
                fixed,
                (0, 1),
                epsilons_of(rng),
                shown_table(k),
                total_present,
                () if active else rows[m:],
            ),
        )
    assert reached > 0.9


def test_theorem_c_beside_the_whole_list_of_who_is_present():
    # Not only how many: who is there at all. Then the others' presence is certain, and nothing else changes.
    for seed in range(20):
        rng = np.random.default_rng([seed, 2])
        k, m, most = int(rng.integers(2, 4)), int(rng.integers(1, 6)), 0.7
        certificate = pkdp.certify(
            pkdp.Histogram(k=k),
            pkdp.AttackerModel(
                p_max_between=most, leakage=pkdp.Leakage("the list of who is there", tells="people_present")
            ),
            protects="value",
        )
        rows = np.array(between_cells(rng, m, 2, most))
        rows = rows[rows.sum(axis=1) > 0.0]
        there = rows / rows.sum(axis=1, keepdims=True) * (1 - 1e-12)
        sure = [[*map(flint.arb, row), 0] for row in there.tolist()]
        share_reached(certificate, sure, (0, 0), (0, 1), epsilons_of(rng), shown_table(k), total_present)


def test_options_keep_their_numbers_beside_the_total():
    reached = 0.0
    for seed in range(40):
        rng = np.random.default_rng([seed, 3])
        cells, m = int(rng.integers(2, 4)), int(rng.integers(1, 5))
        least = float(rng.choice([1 / cells, rng.uniform(0.05, 1 / cells)])) * (1 - 1e-12)
        certificate = pkdp.certify(pkdp.Histogram(), attacker(p_min=least, unknown=m), protects="value")
        rows = []
        for _ in range(m):
            # What p_min leaves over goes to one cell, or is spread over all of them and absence.
            free = 1 - cells * Fraction(least)
            weights = np.eye(cells + 1)[rng.integers(cells)] if rng.random() < 0.5 else rng.integers(0, 9, cells + 1)
            shares = [Fraction(int(weight), max(1, int(weights.sum()))) for weight in weights]
            rows.append([Fraction(least) + free * share for share in shares[:-1]])
        held_at = epsilons_of(rng)
        reached = max(
            reached, share_reached(certificate, arbs(rows), (0,) * cells, (0, 1), held_at, shown_table(), total_present)
        )
    assert reached > 0.9


def test_noise_between_two_cells_keeps_its_numbers_beside_the_total():
    # Noise alone: whoever knows everybody else, and the total, learns no more of the cell than the noise allows.
    for seed in range(12):
        rng = np.random.default_rng([seed, 4])
        noise, k = float(rng.uniform(0.3, 2.0)), int(rng.integers(1, 4)) if rng.random() < 0.5 else None
        release = int(rng.integers(1, 6)) if k is not None else None
        mechanism = pkdp.Histogram(k=k, noise=pkdp.GeometricNoise(noise), release_threshold=release)
        certificate = pkdp.certify(mechanism, attacker(), protects="value")
        with flint.ctx.workprec(BITS):
            alpha = exact_exp(-noise)
            fixed = tuple(rng.integers(0, 4, 2).tolist())
            people = arbs(rng.dirichlet([1, 1, 1], 1)[:, :2].tolist())
            shown = shown_table(k, alpha, release, top=sum(fixed) + 3)
            share_reached(certificate, people, fixed, (0, 1), (0.0, noise, 1.9 * noise), shown, total_present)


# What fails --------------------------------------------------------------------------------------------------


def test_presence_beside_the_total_is_given_away_and_refused():
    people, fixed = [[Fraction(1, 10), Fraction(9, 10)]] * 5, (0,)
    plain = pkdp.certify(pkdp.Histogram(k=3), pkdp.AttackerModel(p_max=0.1))
    alone = joint_losses_with(people, fixed, (0, None), 1, shown_table(3), lambda counts: {(): 1})
    assert max(alone) <= Fraction(plain.delta(0.0)) < Fraction(1, 2)
    # Whoever knows how many others are present reads the target off the total: everybody else here is certain.
    beside = joint_losses_with([], (7,), (0, None), 10**9, shown_table(3), total_present)
    assert max(beside) == 1
    for mechanism in (pkdp.Histogram(k=3), pkdp.Histogram(noise=pkdp.GeometricNoise(0.5)), pkdp.Count(k=3)):
        with pytest.raises(pkdp.NotCertifiableError):
            pkdp.certify(mechanism, attacker(p_max=0.1))


def test_theorem_b_between_cells_is_undone_by_the_total():
    # Absence hid which suppressed cell the target is in. The total less the published cell is the suppressed one.
    people, k = [[0.4, 0, 0.6]] * 40, 10
    certificate = pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(p_max=0.4), protects="value")
    rows = [[row[0], 0, row[2]] for row in people]
    alone = joint_losses_with(rows, (0, 0), (0, 1), math.e, shown_table(k), lambda counts: {(): 1})
    beside = joint_losses_with(rows, (0, 0), (0, 1), math.e, shown_table(k), total_present)
    assert max(alone) <= certificate.delta(1.0) < 0.5
    assert max(beside) > 0.95
    with pytest.raises(pkdp.NotCertifiableError):
        pkdp.certify(pkdp.Histogram(k=k), attacker(p_max=0.4), protects="value")


def test_a_small_table_beside_its_total_gives_everything_away():
    # δ = 1, exactly: three cells' counts are published or empty, so the total says whether one more is there.
    lives = joint_losses_with([[0, Fraction(1), 0]], (3, 0), (0, None), 10**12, shown_table(2), total_present)
    assert max(lives) == 1
    # With noise on the table, too: the leaked total is exact.
    noisy = shown_table(noise=0.5, top=6)
    assert max(joint_losses_with([], (2, 1), (0, None), 1e12, noisy, total_present)) == pytest.approx(1.0)


def test_a_threshold_on_a_count_is_undone_by_what_leaks():
    # Anything that leaks and is not private: the bounds that rest on doubt fall away.
    leak = pkdp.Leakage("the count of another office")
    for mechanism, fields in (
        (pkdp.Count(k=5), {"p_max": 0.1}),
        (pkdp.Count(), {"p_min": 0.2, "p_max": 0.8, "unknown": 50}),
    ):
        assert pkdp.certify(mechanism, pkdp.AttackerModel(**fields)).has_partial_knowledge
        with pytest.raises(pkdp.NotCertifiableError):
            pkdp.certify(mechanism, pkdp.AttackerModel(**fields, leakage=leak))
    # The same count from somewhere else, without the threshold: nothing is left of it.
    lives = joint_losses_with([], (3,), (0, None), 10**9, shown_table(5), total_present)
    assert max(lives) == 1


def periods(people, k, totals):
    """Return what two periods' tables tell of when and where somebody appeared, with or without their totals."""

    def shown(counts):
        days = counts[:2], counts[2:]
        tables = tuple(tuple(x if x >= k else None for x in day) for day in days)
        return {(tables, tuple(map(sum, days)) if totals else sum(counts)): 1}

    return joint_losses_with(people, (0,) * 4, (0, 3), 1, shown, lambda counts: {(): 1})


def test_once_per_person_beside_the_totals_of_each_period_is_no_single_histogram():
    # Everybody appears in one of two periods, in one of two cells. As one histogram theorem C holds, beside the
    # total of both periods; the totals of each period are not a function of who is in the two cells compared.
    rare, k = Fraction(1, 4), 3
    people = [[rare] * 4 + [Fraction(0)]] * 6
    part = pkdp.certify(pkdp.Histogram(k=k), attacker(p_max_between=0.5), protects="value")
    plain = pkdp.certify(pkdp.Histogram(k=k), pkdp.AttackerModel(p_max_between=0.5), protects="value")
    once_total = pkdp.compose([plain, plain], pkdp.OncePerUnit())
    assert max(periods(people, k, totals=False)) <= Fraction(once_total.delta(0.0))
    # Few others, as unsure as declared: where the target is alone, the two totals say in which period she was.
    assert max(periods([], k, totals=False)) == 0
    assert max(periods([], k, totals=True)) == 1
    assert max(periods(people[:2], 9, totals=True)) == Fraction(1, 2)
    certified = pkdp.certify(pkdp.Histogram(k=9), pkdp.AttackerModel(p_max_between=0.5), protects="value")
    assert certified.delta(0.0) < 0.3
    with pytest.raises(pkdp.NoEvidenceError, match="tells in which release a person is"):
        pkdp.compose([part, part], pkdp.OncePerUnit())


# Leakages that are themselves private ---------------------------------------------------------------------------------


def test_an_exact_count_beside_a_private_leakage():
    reached = 0.0
    for seed in range(40):
        rng = np.random.default_rng([seed, 5])
        m, private = int(rng.integers(1, 6)), float(rng.uniform(0.02, 0.5))
        low, high = sorted(rng.uniform(0.05, 0.95, 2).tolist())
        leak = pkdp.Leakage("a noisy count of the same people", epsilon=private)
        declared = {"p_min": low, "p_max": high, "unknown": m}
        certificate = pkdp.certify(pkdp.Count(), pkdp.AttackerModel(**declared, leakage=leak))
        people = arbs([[p] for p in ends(rng, m, low, high).tolist()])
        with flint.ctx.workprec(BITS):
            alpha = exact_exp(-private)
            # The leak may be about the others only, or about everybody; it is noised enough for one record.
            leaked = lambda counts, alpha=alpha, m=m: geometric(counts[0], alpha, m + 2)  # noqa: E731
            reached = max(
                reached,
                share_reached(certificate, people, (0,), (0, None), (0.0, 2 * private, 1.5), shown_table(), leaked),
            )
    assert reached > 0.3


def test_an_exact_count_beside_noise_about_the_others_alone():
    # Noise that never depended on the target still tells about the others, whose doubt protects her.
    for seed in range(15):
        rng = np.random.default_rng([seed, 6])
        m, private = int(rng.integers(1, 6)), float(rng.uniform(0.05, 1.0))
        leak = pkdp.Leakage("a noisy count of the others", epsilon=private)
        chance = float(rng.uniform(0.2, 0.8))
        certificate = pkdp.certify(
            pkdp.Count(), pkdp.AttackerModel(p_min=chance, p_max=chance, unknown=m, leakage=leak)
        )
        with flint.ctx.workprec(BITS):
            alpha, p = exact_exp(-private), flint.arb(chance)
            for epsilon in (0.0, private, 2 * private + 0.3):
                sides = ({}, {})
                for s in range(m + 1):
                    weight = math.comb(m, s) * p**s * (1 - p) ** (m - s)
                    for value, part in geometric(s, alpha, m + 2).items():
                        for life, side in zip((1, 0), sides, strict=True):
                            side[s + life, value] = weight * part
                truth = max(lower_end(flint.arb(side)) for side in losses(*sides, exact_exp(epsilon)))
                assert truth <= Fraction(certificate.delta(epsilon))


def test_noise_beside_a_private_leakage_adds_up():
    closest = 0.0
    for seed in range(12):
        rng = np.random.default_rng([seed, 7])
        noise, private = float(rng.uniform(0.3, 1.5)), float(rng.uniform(0.1, 1.0))
        leak = pkdp.Leakage("a noisy count of the same people", epsilon=private)
        certificate = pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(noise)), pkdp.AttackerModel(leakage=leak))
        with flint.ctx.workprec(BITS):
            shown = shown_table(noise=exact_exp(-noise), top=4)
            beside = exact_exp(-private)
            leaked = lambda counts, alpha=beside: geometric(counts[0], alpha, 4)  # noqa: E731
            reached = share_reached(
                certificate, [], (2,), (0, None), (0.0, private, noise, noise + private), shown, leaked
            )
        closest = max(closest, reached)
        assert certificate.worst_case.epsilon(0.0) == pytest.approx(noise + private, rel=1e-9)
    assert closest > 0.9


# Theorem 9: a leakage that depends on the noise -----------------------------------------------------------------------


def dependent_joint(count, alpha, lean, reach):
    """Return the law of (a noisy count, a bit that leans towards whether the noise is positive)."""
    joint = {}
    for noise in range(-reach, reach + 1):
        if abs(noise) < reach:
            weight = (1 - alpha) / (1 + alpha) * alpha ** abs(noise)
        else:
            weight = alpha ** abs(noise) / (1 + alpha)
        for bit in (0, 1):
            towards = lean if (noise > 0) == bool(bit) else 1 - lean
            joint[count + noise, bit] = weight * towards
    return joint


def test_theorem_9_bounds_a_leakage_that_depends_on_the_noise():
    reached = 0.0
    for lean in (0.5, 0.55, 0.7):
        for noise in (0.4, 1.0):
            alpha = math.exp(-noise)
            joint = dependent_joint(3, alpha, lean, 60)
            alone: dict[int, float] = {}
            for (output, _), weight in joint.items():
                alone[output] = alone.get(output, 0.0) + weight
            # How far the release given the leaked bit is from the release alone.
            dependence = max(
                abs(math.log(given[output] / alone[output]))
                for given in (given_value(joint, bit) for bit in (0, 1))
                for output in alone
            )
            leak = pkdp.Leakage(
                "whether the figure was rounded up",
                shared_by=("presence", "value"),
                dependence_epsilon=dependence + 1e-12,
            )
            certificate = pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(noise)), pkdp.AttackerModel(leakage=leak))
            other = dependent_joint(4, alpha, lean, 60)
            for bit in (0, 1):
                first_law, second_law = given_value(joint, bit), given_value(other, bit)
                assert first_law is not None
                assert second_law is not None
                inside = [{o: w for o, w in law.items() if -50 <= o <= 55} for law in (first_law, second_law)]
                for epsilon in (0.0, 0.5 * noise, noise, noise + dependence, noise + 2 * dependence):
                    truth = max(losses(*inside, math.exp(epsilon)))
                    bound = certificate.worst_case.delta(epsilon)
                    assert truth <= bound + 1e-12
                    if 1e-6 < bound < 0.9:
                        reached = max(reached, truth / bound)
    assert reached > 0.2


def test_what_no_two_lives_share_is_refused_as_empty():
    # Parity of the number present, say: whoever comes or goes changes it, so "given it" compares nothing.
    parity = pkdp.Leakage("whether the number present is odd", shared_by=("value",))
    noisy = pkdp.GeometricNoise(1.0)
    with pytest.raises(pkdp.NotCertifiableError) as refusal:
        pkdp.certify(pkdp.Count(noise=noisy), pkdp.AttackerModel(leakage=parity))
    assert "a guarantee given it would say nothing" in str(refusal.value)
    for bit in (0, 1):
        laws = [joint_with([], (n,), None, shown_table(noise=0.4, top=6), lambda c: {c[0] % 2: 1}) for n in (2, 3)]
        assert sum(given_value(law, bit) is not None for law in laws) == 1
    # Two cells share it, and there the promise stands as it is.
    between = pkdp.certify(pkdp.Histogram(noise=noisy), pkdp.AttackerModel(leakage=parity), protects="value")
    assert between.worst_case.epsilon(0.0) == pytest.approx(2.0)
