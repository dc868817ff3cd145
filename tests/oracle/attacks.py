"""Setting random attackers on certificates, exactly (few) or vectorised (many)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import pkdp_pipeline as pkdp
from oracle.families import FAMILIES, Case, RandomDice
from oracle.laws import BITS, exact_exp, lower_end
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate

__all__ = ["certificate_of", "exact_truths", "search", "sweep"]


class HypothesisDice:
    """Declarations drawn by hypothesis, so that a failure shrinks to a small one."""

    def __init__(self, data: st.DataObject, seed: int) -> None:
        self.data, self.rng = data, np.random.default_rng(seed)

    def whole(self, least: int, most: int) -> int:
        return self.data.draw(st.integers(least, most))

    def real(self, least: float, most: float) -> float:
        return self.data.draw(st.floats(least, most, allow_subnormal=False))


def certificate_of(case: Case) -> Any:
    """Certify the release of `case` against what it declares."""
    noise = None if case.noise is None else pkdp.GeometricNoise(case.noise)
    kind = pkdp.Count if case.count else pkdp.Histogram
    mechanism = kind(**case.mechanism, noise=noise)
    # Also where nothing is promised, which `certify` refuses.
    return ReleaseCertificate(mechanism=mechanism, attacker=pkdp.AttackerModel(**case.attacker), protects=case.protects)


def exact_truths(case: Case, column: int, epsilon: float) -> Fraction:
    """Return the larger divergence of one attacker of the batch, never above the truth."""
    numbers = np.vectorize(flint.arb, otypes=[object])(case.chances[..., column])
    with flint.ctx.workprec(BITS):
        sides = case.losses(numbers, epsilon, exact_exp)
        return max(lower_end(flint.arb(side)) for side in sides)


def search(family: str, *, examples: int, batch: int) -> tuple[int, float]:
    """Compare attackers found by hypothesis with their certificate, without any margin.

    Returns
    -------
    (attackers, worst truth/certified) : the latter where there is something to hide, 0 < certified < 0.9
    """
    attackers, worst = 0, 0.0

    @settings(max_examples=examples)
    @given(st.data(), st.integers(0, 2**32 - 1))
    def attack(data: st.DataObject, seed: int) -> None:
        nonlocal attackers, worst
        case = FAMILIES[family](HypothesisDice(data, seed), batch)
        certified = certificate_of(case).delta(np.array(case.epsilons))
        # Without unknown people all attackers of a batch are the same one.
        columns = batch if case.chances.size else 1
        for column in range(columns):
            for epsilon, bound in zip(case.epsilons, certified.tolist(), strict=True):
                truth = exact_truths(case, column, epsilon)
                assert truth <= Fraction(bound), (
                    f"{family}: {case.mechanism}, noise {case.noise}, {case.attacker}, {case.protects}, ε = {epsilon}: "
                    f"the attacker {case.chances[..., column].tolist()} reaches {float(truth)!r}, certified {bound!r}"
                )
                if 0.0 < bound < 0.9:
                    worst = max(worst, float(truth / Fraction(bound)))
        attackers += columns

    attack()
    return attackers, worst


def sweep(
    family: str, *, declarations: int, batch: int, seed: int, note: Callable[[Case, int, float, float], None]
) -> tuple[int, float, int]:
    """Compare many attackers in float64 and recheck whatever comes close, exactly.

    Returns
    -------
    (attackers decided, worst truth/certified where 1e-9 < certified < 0.9, comparisons rechecked)

    Notes
    -----
    Of those too close to tell in float64, the 25 likeliest of a batch are decided exactly; the others count as
    decided only if they are at another ε.
    """
    rng, worst, rechecked, attackers = np.random.default_rng(seed), 0.0, 0, 0
    for _ in range(declarations):
        case = FAMILIES[family](RandomDice(rng), batch)
        certified = certificate_of(case).delta(np.array(case.epsilons))
        decided = np.zeros(batch, dtype=bool)
        for epsilon, bound in zip(case.epsilons, certified.tolist(), strict=True):
            truth = np.maximum(*case.losses(case.chances, epsilon, np.exp)) + np.zeros(batch)
            # Differences of probabilities err by some 1e-15 in float64.
            close = truth + 1e-14 > bound * (1.0 - 1e-9)
            telling = 1e-9 < bound < 0.9
            if telling:
                worst = max(worst, float((truth[~close] / bound).max(initial=0.0)))
            likeliest = np.argsort(-truth, kind="stable")[: min(25, int(close.sum()))]
            decided |= ~close
            decided[likeliest] = True
            for column in likeliest.tolist():
                exact = exact_truths(case, column, epsilon)
                rechecked += 1
                if telling:
                    worst = max(worst, float(exact / Fraction(bound)))
                if exact > Fraction(bound):
                    note(case, column, epsilon, bound)
        attackers += int(decided.sum()) if case.chances.size else 1
    return attackers, worst, rechecked
