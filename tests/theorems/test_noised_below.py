"""Theorem I: exact from k on, noised below. Never below any attacker by enumeration, and reached."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.theorems import noised_below
from pkdp_pipeline.theorems.hull import TwoCells
from pkdp_pipeline.theorems.noised_below import NoisedBelow
from pkdp_pipeline.theorems.thresholding import Thresholding

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "rules.json").read_text(encoding="utf-8")
)
Law = list[Any]


def counted(chances: list[Any]) -> Law:
    """Return the law of how many people count."""
    law: Law = [1]
    for chance in chances:
        law = [a * (1 - chance) + b * chance for a, b in zip([*law, 0], [0, *law], strict=True)]
    return law


def kernel(k: int, alpha: Any, release: int | None, from_one: bool, most: int) -> list[dict[Any, Any]]:
    """Return what is published of each count; noised values beyond 0, k and the threshold are merged."""
    first, last = min(0, (release or 0) - 1), max(k, release or 0)
    rows = []
    for count in range(most + 1):
        row: dict[Any, Any] = {}
        if count >= k:
            row["exact", count] = 1
        elif count == 0 and from_one:
            row["hidden"] = 1
        else:
            for value in range(first, last + 1):
                if value == first:
                    mass = alpha ** (count - value) / (1 + alpha)
                elif value == last:
                    mass = alpha ** (value - count) / (1 + alpha)
                else:
                    mass = (1 - alpha) / (1 + alpha) * alpha ** abs(value - count)
                name = "hidden" if release is not None and value < release else ("noised", value)
                row[name] = row.get(name, 0) + mass
        rows.append(row)
    return rows


def published(law: Law, rows: list[dict[Any, Any]]) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for weight, row in zip(law, rows, strict=False):
        for name, mass in row.items():
            out[name] = out.get(name, 0) + weight * mass
    return out


def divergence(first: dict[Any, Any], second: dict[Any, Any], growth: Any) -> Any:
    return sum(max(0, first.get(name, 0) - growth * second.get(name, 0)) for name in {*first, *second})


def presence(chances: list[Any], rows: list[dict[Any, Any]], growth: Any) -> Any:
    """Return the larger divergence of the two orders."""
    law = counted(chances)
    absent, present = published(law, rows), published([0, *law], rows)
    return max(divergence(present, absent, growth), divergence(absent, present, growth))


@pytest.mark.parametrize("kind", ["hybrid_declared", "hybrid_found"])
def test_exact_vectors_are_reproduced_and_never_undercut(kind: str) -> None:
    for case in VECTORS[kind]:
        bound = NoisedBelow(
            theorem="noised_below",
            k=case["k"],
            p=case["p_max"],
            noise=case["noise"],
            release_threshold=case.get("release_threshold"),
            from_one=kind == "hybrid_found",
        )
        (attained,), (certified,) = bound.bracket(np.array([case["epsilon"]]))
        assert case["delta"] * (1 - 1e-9) <= certified <= case["delta"] * 1.015, case
        assert case["delta"] * 0.99 <= attained <= case["delta"] * (1 + 1e-9), case


@thinned(2)
@pytest.mark.parametrize(("k", "release", "from_one"), [(2, None, False), (3, 2, False), (4, 2, True), (3, 5, True)])
def test_no_attacker_by_exact_enumeration_exceeds_it(k: int, release: int | None, from_one: bool) -> None:
    # With noise of ε0 = log 2 and e^ε rational, everything is a fraction. A float above log 2 has less noise.
    alpha = Fraction(1, 2)
    for p in (Fraction(1, 4), Fraction(3, 4)):
        bound = NoisedBelow(
            theorem="noised_below",
            k=k,
            p=float(p),
            noise=math.nextafter(math.log(2.0), 1.0),
            release_threshold=release,
            from_one=from_one,
        )
        rows = kernel(k, alpha, release, from_one, 9)
        for growth in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)):
            epsilon = math.nextafter(math.log(growth), 9.0) if growth > 1 else 0.0
            exact = max(
                presence([p] * people + [p / 3] * others, rows, growth)
                for people, others in product(range(6), range(3))
            )
            certified = float(bound.certified(np.array([epsilon]))[0])
            assert Fraction(certified) >= exact * (1 - Fraction(1, 10**12)), (p, growth)


@st.composite
def attackers(draw: st.DrawFn) -> tuple[NoisedBelow, list[float], float]:
    k, p = draw(st.integers(2, 6)), draw(st.floats(0.02, 0.97))
    noise = draw(st.sampled_from([0.2, 0.7, 1.5, 3.0]))
    release = draw(st.none() | st.integers(-1, k + 2))
    from_one = release is not None and draw(st.booleans())
    chances = draw(st.lists(st.floats(0.0, 1.0).map(lambda share: share * p), max_size=12))
    epsilon = noise * draw(st.sampled_from([0.0, 0.3, 0.9, 0.995, 1.0, 1.2, 2.5]))
    bound = NoisedBelow(theorem="noised_below", k=k, p=p, noise=noise, release_threshold=release, from_one=from_one)
    return bound, chances, epsilon


@settings(max_examples=few(40 * 10, 40 // 2))
@given(attackers())
def test_people_of_different_chances_never_tell_more(case: tuple[NoisedBelow, list[float], float]) -> None:
    bound, chances, epsilon = case
    rows = kernel(bound.k, math.exp(-bound.noise), bound.release_threshold, bound.from_one, len(chances) + 1)
    exact = presence(chances, rows, math.exp(epsilon))
    assert float(bound.certified(np.array([epsilon]))[0]) >= exact * (1 - 1e-9) - 1e-14


@settings(max_examples=few(25 * 10, 25 // 2))
@given(attackers(), st.integers(1, 3), st.booleans())
def test_known_people_are_counted_in(case: tuple[NoisedBelow, list[float], float], known: int, active: bool) -> None:
    base, chances, epsilon = case
    k, growth = base.k + known, math.exp(epsilon)
    same = {"theorem": "noised_below", "k": k, "p": base.p, "noise": base.noise, "from_one": base.from_one}
    bound = NoisedBelow(**same, release_threshold=base.release_threshold, known=known, active=active)
    alpha = math.exp(-base.noise)
    rows = kernel(k, alpha, base.release_threshold, base.from_one, len(chances) + known + 1)

    def beside(others: int) -> float:
        law = [*([0.0] * others), *counted(chances)]
        absent, present = published(law, rows), published([0.0, *law], rows)
        return max(divergence(present, absent, growth), divergence(absent, present, growth))

    if active:
        exact = max(beside(others) for others in range(known + 1))
    else:
        # The attacker sees how many of the known people count; both orders have the same number of unknown ones.
        chance = counted([base.p] * known)
        laws = [[*([0.0] * others), *counted(chances)] for others in range(known + 1)]
        pairs = [(published(law, rows), published([0.0, *law], rows)) for law in laws]
        exact = max(
            sum(weight * divergence(*pair[::way], growth) for weight, pair in zip(chance, pairs, strict=True))
            for way in (1, -1)
        )
    assert float(bound.certified(np.array([epsilon]))[0]) >= exact * (1 - 1e-9) - 1e-14


@pytest.mark.parametrize(("k", "p", "noise"), [(5, 0.5, 0.3), (30, 0.1, 1.0), (31, 0.6, 0.4), (100, 0.02, 0.5)])
def test_it_promises_what_hiding_does_from_the_noise_on(k: int, p: float, noise: float) -> None:
    epsilons = noise * np.array([1.0 + 1e-12, 1.3, 2.0, 4.0])
    attained, certified = NoisedBelow(theorem="noised_below", k=k, p=p, noise=noise).bracket(epsilons)
    hidden = Thresholding(theorem="thresholding", k=k, p=p).bracket(epsilons)
    np.testing.assert_allclose(certified, hidden[1], rtol=1e-9)
    np.testing.assert_allclose(attained, hidden[0], rtol=1e-9)


@pytest.mark.parametrize(("k", "p", "noise"), [(4, 0.5, 0.5), (12, 0.1, 1.0), (20, 0.3, 0.2)])
def test_below_the_noise_an_attacker_reaches_it(k: int, p: float, noise: float) -> None:
    bound = NoisedBelow(theorem="noised_below", k=k, p=p, noise=noise)
    attained, certified = bound.bracket(noise * np.array([0.0, 0.2, 0.5, 0.8, 0.99]))
    assert (certified <= attained * 1.01).all()
    assert (np.diff(certified) <= 0.0).all()


def test_the_inversion_returns_a_certified_epsilon() -> None:
    bound = NoisedBelow(theorem="noised_below", k=30, p=0.1, noise=1.0)
    for target in (1e-9, 1e-6, 1e-3, 0.2):
        epsilon = bound.smallest_epsilon(target)
        assert float(bound.certified(np.array([epsilon]))[0]) <= target
        assert float(bound.certified(np.array([epsilon * (1 - 1e-6)]))[0]) > target * (1 - 1e-3)


@thinned(2)
@pytest.mark.parametrize(
    "more",
    [
        {"release_threshold": 16, "from_one": True},
        {"release_threshold": 16, "from_one": True, "known": 3, "active": True},
        {"release_threshold": 12, "known": 4},
        {"cap": 40},
    ],
)
def test_every_inversion_is_as_small_as_its_profile(more: dict[str, Any]) -> None:
    bound = NoisedBelow(theorem="noised_below", k=20, p=0.1, noise=0.8, **more)
    for target in (1e-5, 0.02):
        epsilon = bound.smallest_epsilon(target)
        assert math.isfinite(epsilon)
        before, here = bound.certified(np.array([epsilon * (1.0 - 1e-3), epsilon])).tolist()
        assert here <= target < before


@st.composite
def two_cells(draw: st.DrawFn) -> tuple[Any, list[tuple[float, float]], float]:
    k, noise = draw(st.integers(2, 4)), draw(st.sampled_from([0.5, 1.0, 2.0]))
    release = draw(st.none() | st.integers(0, k + 1))
    same: dict[str, Any] = {
        "theorem": "noised_below",
        "k": k,
        "noise": noise,
        "release_threshold": release,
        "from_one": release is not None and draw(st.booleans()),
    }
    p = draw(st.floats(0.5, 0.9))
    shares = draw(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), max_size=7))
    if draw(st.booleans()):
        people = [(q, 1.0 - q) for q in ((1.0 - p) + share * (2.0 * p - 1.0) for share, _ in shares)]
        bound: Any = NoisedBelow(**same, p=p, looks=2)
    else:
        odds = p / (1.0 - p)
        people = [(a * odds / (1.0 + (a + b) * odds), b * odds / (1.0 + (a + b) * odds)) for a, b in shares]
        bound = TwoCells(theorem="noised_below_value", presence=NoisedBelow(**same, p=p))
    return bound, people, noise * draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]))


@settings(max_examples=few(20 * 10, 20 // 2))
@given(two_cells())
def test_the_value_is_covered_in_both_models(case: tuple[Any, list[tuple[float, float]], float]) -> None:
    bound, people, epsilon = case
    cell = bound if isinstance(bound, NoisedBelow) else bound.presence
    law = {(0, 0): 1.0}
    for first, second in people:
        step: dict[tuple[int, int], float] = {}
        for (v, w), weight in law.items():
            for move, chance in (((v, w), 1.0 - first - second), ((v + 1, w), first), ((v, w + 1), second)):
                step[move] = step.get(move, 0.0) + weight * max(0.0, chance)
        law = step
    rows = kernel(cell.k, math.exp(-cell.noise), cell.release_threshold, cell.from_one, len(people) + 1)
    lives: list[dict[Any, float]] = [{}, {}]
    for (v, w), weight in law.items():
        for life, (a, b) in zip(lives, ((v + 1, w), (v, w + 1)), strict=True):
            for (x, mass), (y, other) in product(rows[a].items(), rows[b].items()):
                life[x, y] = life.get((x, y), 0.0) + weight * mass * other
    exact = max(divergence(*pair, math.exp(epsilon)) for pair in (lives, lives[::-1]))
    assert float(bound.certified(np.array([epsilon]))[0]) >= exact * (1 - 1e-9) - 1e-14


@pytest.mark.parametrize("more", [{}, {"unknown_max": 10**9}, {"known": 2}])
def test_tiny_chances_promise_what_small_ones_do(more: dict[str, Any]) -> None:
    mechanism = pkdp.Histogram(k=20, noise=pkdp.GeometricNoise(1.0), below="noise")
    small, tiny = (pkdp.certify(mechanism, pkdp.AttackerModel(p_max=p, **more)) for p in (1e-9, 1e-20))
    for epsilon in (0.5, 1.0, 2.0):
        assert tiny.delta(epsilon) <= small.delta(epsilon) * (1 + 1e-9)


def test_a_threshold_beyond_all_people_is_certified_without_a_search() -> None:
    mechanism = pkdp.Count(k=10**10, noise=pkdp.GeometricNoise(1.0), below="noise")
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.999))
    assert certificate.delta(0.5) <= (math.e - math.exp(0.5)) / (math.e - 1.0) * (1 + 1e-9)


def test_only_theorem_i_and_exact_counts_say_anything_of_it() -> None:
    mechanism = pkdp.Histogram(k=30, noise=pkdp.GeometricNoise(1.0), below="noise")
    certificate = pkdp.certify(mechanism, pkdp.AttackerModel(p_max=0.1))
    assert certificate.theorems == ("noised_below_presence",)
    assert certificate.delta(0.5) > 0.2  # theorem A alone would say 9e-4
    assert pkdp.Certificate.from_json(certificate.to_json()).verify()
    with pytest.raises(pkdp.NotCertifiableError):
        pkdp.certify(mechanism)


def test_at_an_epsilon_beyond_use_nothing_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noised_below, "_largest_left", None)
    assert noised_below.left_bound((1.0,), (100,), 0.1, None, 700.0, 1e-99) == 1e-99
    with pytest.raises(TypeError):
        noised_below.left_bound((1.0,), (100,), 0.1, None, 1.0, 1e-17)


def test_what_breaks_a_search_does_not_break_the_certificate() -> None:
    """Nobody beside people controlled, a zero told apart, very little told, and much noise: all were wrong once."""
    noise = pkdp.GeometricNoise(1.0)
    alone = pkdp.AttackerModel(p_max=0.0, known=3, influence="active")
    counted = pkdp.certify(pkdp.Count(k=5, noise=noise, below="noise", release_threshold=4), alone)
    assert counted.delta_bounds(0.0) == pytest.approx([math.tanh(0.5)] * 2, rel=1e-9)  # 3 are counted, or 4
    with pytest.raises(pkdp.NotCertifiableError):  # a zero has no row, a count of 1 always has
        pkdp.certify(pkdp.Histogram(k=5, noise=noise, below="noise_from_1"), pkdp.AttackerModel(p_max=0.3))

    def bracket(epsilon: float, **shape: Any) -> tuple[float, float]:
        sides = NoisedBelow(theorem="noised_below", **shape).bracket(np.array([epsilon]))
        return float(sides[0][0]), float(sides[1][0])

    for epsilon in (0.999, 3.0):
        nobody = bracket(epsilon, k=5, p=1.0, noise=1.0, release_threshold=2, from_one=True, cap=0)
        assert math.exp(-1.0) / (1.0 + math.exp(-1.0)) <= nobody[1] * (1.0 + 1e-12)
    for epsilon, shape in (
        (2.895, {"k": 200, "p": 0.1, "noise": 3.0, "release_threshold": -2}),
        (9.98, {"k": 10, "p": 0.1, "noise": 10.0, "release_threshold": 2}),
        (28.5, {"k": 10, "p": 0.1, "noise": 30.0, "release_threshold": 20}),
    ):
        attained, certified = bracket(epsilon, **shape)
        assert 0.0 < attained <= certified <= attained * (1.0 + 1e-3)
    assert bracket(30.0, k=10, p=0.1, noise=30.0)[1] <= 2e-9


@pytest.mark.slow
def test_campaign() -> None:
    """A hundred thousand seeded comparisons with enumerations: none is below."""
    random = np.random.default_rng(20261129)
    for _ in range(12_500):
        k, people = int(random.integers(2, 9)), int(random.integers(0, 40))
        p, noise = float(random.uniform(0.02, 0.97)), float(random.choice([0.1, 0.4, 1.0, 2.5]))
        release = None if random.random() < 0.5 else int(random.integers(0, k + 3))
        from_one = release is not None and random.random() < 0.5
        chances = [p] * people if random.random() < 0.5 else (p * random.random(people)).tolist()
        bound = NoisedBelow(theorem="noised_below", k=k, p=p, noise=noise, release_threshold=release, from_one=from_one)
        rows = kernel(k, math.exp(-noise), release, from_one, people + 1)
        epsilons = noise * np.array([0.0, 0.3, 0.8, 0.995, 1.0, 1.1, 1.7, 3.0])
        certified = bound.certified(epsilons)
        for epsilon, delta in zip(epsilons.tolist(), certified.tolist(), strict=True):
            assert delta >= presence(chances, rows, math.exp(epsilon)) * (1 - 1e-9) - 1e-14
