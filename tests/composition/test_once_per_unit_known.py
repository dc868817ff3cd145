"""Rule 8 with people whom the attacker knows: those of two releases may all be in the two cells compared."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from thorough import thinned

import pkdp_pipeline as pkdp


def divergence(k: int, known: tuple[int, int], people: int, p: Fraction, epsilon: float) -> float:
    """Return the larger one of `divergences`."""
    return float(max(divergences(k, known, people, p, epsilon)))


def divergences(k: int, known: tuple[int, int], people: int, p: Fraction, epsilon: float) -> list[Fraction]:
    """Return the divergences, in both orders, for a target in one cell or in the other, of two cells.

    Everybody else is in the first cell or in no release (half of them), or in the second or in none. The known
    people are all there, `known[0]` of them in the first cell and `known[1]` in the second.
    """

    def cell(fixed: int) -> dict[int, Fraction]:
        law: dict[int, Fraction] = {}
        for ones in range(people + 1):
            count = ones + fixed
            shown = count if count >= k else 0
            law[shown] = law.get(shown, Fraction(0)) + math.comb(people, ones) * p**ones * (1 - p) ** (people - ones)
        return law

    growth = Fraction(math.exp(epsilon))
    there, absent = cell(known[0] + 1), cell(known[0])
    elsewhere, here = cell(known[1]), cell(known[1] + 1)
    first = {(x, y): there[x] * elsewhere[y] for x in there for y in elsewhere}
    second = {(x, y): absent[x] * here[y] for x in absent for y in here}
    orders = ((first, second), (second, first))
    return [
        sum((max(Fraction(0), left[o] - growth * right.get(o, Fraction(0))) for o in left), Fraction(0))
        for left, right in orders
    ]


@thinned(6)
@pytest.mark.parametrize("influence", ["active", "passive"])
@pytest.mark.parametrize(("k", "known", "p"), [(5, 3, 0.1), (5, 3, 0.3), (8, 2, 0.2), (6, 1, 0.5)])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.0])
def test_known_people_of_both_releases_count(k, known, p, epsilon, influence):
    attacker = pkdp.AttackerModel(p_max=p, known=known, influence=influence)
    part = pkdp.certify(pkdp.Histogram(k=k), attacker, protects="value")
    total = pkdp.compose([(part, 2)], pkdp.OncePerUnit())
    # Half of the unknown people can be in the first cell, the other half in the second.
    if influence == "active":
        for people in (1, 2, 4, 8, 16):
            true = divergence(k, (known, known), people, Fraction(p), epsilon)
            assert total.delta(epsilon) >= true * (1 - 1e-9)
    single = pkdp.compose([part], pkdp.OncePerUnit())
    if influence == "passive":
        # Those who are known are in the first cell or absent, as half of the unknown people.
        law = [math.comb(known, b) * Fraction(p) ** b * (1 - Fraction(p)) ** (known - b) for b in range(known + 1)]
        for people in (1, 4, 16):
            tells = [divergences(k, (b, 0), people, Fraction(p), epsilon) for b in range(known + 1)]
            true = max(sum(chance * both[o] for chance, both in zip(law, tells, strict=True)) for o in (0, 1))
            assert single.delta(epsilon) >= float(true) * (1 - 1e-9)
    assert total.delta(epsilon) >= single.delta(epsilon)
    assert single.delta(epsilon) == part.delta(epsilon)


def test_the_example_that_a_single_count_of_known_people_missed():
    attacker = pkdp.AttackerModel(p_max=0.1, known=3, influence="active")
    part = pkdp.certify(pkdp.Histogram(k=5), attacker, protects="value")
    true = max(divergence(5, (3, 3), people, Fraction(1, 10), 1.0) for people in range(1, 20))
    assert part.delta(1.0) < true
    assert true <= pkdp.compose([(part, 2)], pkdp.OncePerUnit()).delta(1.0) < 1.0
