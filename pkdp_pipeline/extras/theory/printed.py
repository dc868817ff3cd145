"""Bounds as printed elsewhere, for comparison only: some are loose, some are wrong, and no certificate rests on them.

"The paper" is *Differential privacy with partial knowledge* by Desfontaines, Mohammadi, Krahmer and Basin, "the thesis"
is *Lowering the cost of anonymization* by Desfontaines. Plain floats, not rounded in any direction. Nothing else in the
package imports this room; `docs/findings.md` says what is wrong or loose, with checks to run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import stats


def theorem_3_condition(epsilon: float, n: int, least: float, *, success: float | None = None) -> float:
    """Return the δ of Theorem 3's numeric condition, ``P[X >= e^ε Y]`` for independent X, Y ~ Bin(n - 1, `least`).

    **Wrong.** The number of blanket records that say 1 and the number that say 0 are not independent: they share the
    records. The condition may be far below the truth (fair coins, n = 1000), and it never falls below P[Y = 0].

    Parameters
    ----------
    epsilon : float
    n : int
        Records, the target's included.
    least : float
        Every other record is 1 with a probability between this and one minus this.
    success : float, optional
        The success probability of X and Y in place of `least`. The thesis prints ``2 * least``, which for fair
        coins is 1 and makes the condition 0.
    """
    chance = least if success is None else success
    y = np.arange(n)
    at_least = np.ceil(np.minimum(math.exp(epsilon) * y, n))
    return float(stats.binom.pmf(y, n - 1, chance) @ stats.binom.sf(at_least - 1, n - 1, chance))


def theorem_3_closed_form(delta: float, n: int, least: float, *, numerator: Literal[1, 2] = 2) -> float:
    """Return the ε of Theorem 3's closed form, ``max(√(14 ln(2/δ)/(λ(n-1))), 27/(λ(n-1)))``; infinite above 1.

    **Sound and loose**, by orders of magnitude in δ. The paper prints ln(1/δ), the theorem that it rests on (Theorem
    3.1 of Balle, Bell, Gascón and Nissim, 2019) ln(2/δ); so ln(1/δ) has no proof.

    Parameters
    ----------
    delta : float
    n : int
        Records, the target's included.
    least : float
        λ: every other record is 1 with a probability between λ and 1 - λ.
    numerator : {1, 2}
        2 for the theorem as it is proved, 1 for the paper's print.
    """
    blanket = least * (n - 1)
    epsilon = max(math.sqrt(14.0 * math.log(numerator / delta) / blanket), 27.0 / blanket)
    return epsilon if epsilon <= 1.0 else math.inf


def theorem_3_closed_form_delta(epsilon: float, n: int, least: float) -> float:
    """Return the smallest δ that `theorem_3_closed_form` gives at an ε of at most `epsilon`; 1 where it gives none.

    **Sound and loose**, as that is. Beyond ε = 1 nothing is printed, and the δ at 1 stays.
    """
    blanket, point = least * (n - 1), min(epsilon, 1.0)
    return 1.0 if point < 27.0 / blanket else min(1.0, 2.0 * math.exp(-point * point * blanket / 14.0))


def proposition_7(chances: Sequence[float], delta_2: float, *, power: float = 1.5) -> tuple[float, float]:
    """Return the (ε, δ) of the paper's Proposition 7 (Grining and Klonowski, 2017); (inf, 1) where ε exceeds 1.

    ``ε = √(2 ln(1.25/δ2)/(n μ2))``, ``δ = 1.12 μ3/(√n μ2^power) (1 + e^ε) + δ2``.

    **Sound and loose**: a normal approximation, whose error keeps δ above about 1/√n whatever ε is. It is about one
    attacker with known chances, not about a family.

    Parameters
    ----------
    chances : sequence of float
        The probabilities of the records that the attacker does not know, without the target's.
    delta_2 : float
        The share of δ that the normal law is given; free.
    power : float
        The power of μ2, the mean variance. The theorem of Berry and Esseen gives 1.5; with 3, as the formula is
        also read, the error is at least eight times larger.
    """
    scale, error = _normal(chances, power)
    epsilon = math.sqrt(2.0 * math.log(1.25 / delta_2)) / scale
    if epsilon > 1.0:
        return math.inf, 1.0
    return epsilon, min(1.0, error * (1.0 + math.exp(epsilon)) + delta_2)


def proposition_7_delta(epsilon: float, chances: Sequence[float], *, power: float = 1.5) -> float:
    """Return the smallest δ that `proposition_7` gives at an ε of at most `epsilon`, over a grid of δ2.

    **Sound and loose**, as that is.
    """
    scale, error = _normal(chances, power)
    tried = np.linspace(0.0, min(epsilon, 1.0, 37.0 / scale), 65)
    shares = 1.25 * np.exp(-((tried * scale) ** 2) / 2.0)
    return float(np.minimum(1.0, error * (1.0 + np.exp(tried)) + shares).min())


def _normal(chances: Sequence[float], power: float) -> tuple[float, float]:
    """Return the standard deviation of the sum, and 1.12 μ3/(√n μ2^power)."""
    p = np.asarray(chances, dtype=float)
    second = float((p * (1.0 - p)).mean())
    third = float((p * (1.0 - p) * (p * p + (1.0 - p) ** 2)).mean())
    return math.sqrt(len(p) * second), 1.12 * third / (math.sqrt(len(p)) * second**power)


def _tail(count: int, trials: int, p: float) -> float:
    """Return the paper's bound of ``P[Bin(trials, p) >= count]``, pmf(count)/(1 - ratio), its Lemma 2; else 1."""
    if count <= 0:
        return 1.0
    ratio = p * trials / ((1.0 - p) * count)
    return 1.0 if ratio >= 1.0 else min(1.0, float(stats.binom.pmf(count, trials, p)) / (1.0 - ratio))


def theorem_4(n: int, p: float, threshold: int) -> tuple[float, float]:
    """Return the (ε, δ) of Theorem 4 without background knowledge; (inf, 1) where it says nothing.

    ``r = p(n-1)/((1-p)T)``, ``f = P[Bin(n-1, p) = T]``, ``δ = f/(1-r)``, ``ε = -ln(1-δ)``.

    **Sound and loose.** Every published number counts as a disclosure; and the ε is not needed: where T is above the
    mean, (0, f) holds.

    Parameters
    ----------
    n : int
        Records, the target's included.
    p : float
        Every other record is 1 with at most this probability.
    threshold : int
        T: a count is published when it is *above* T, so T is one less than our k.
    """
    delta = _tail(threshold, n - 1, p)
    return (-math.log1p(-delta), delta) if delta < 1.0 else (math.inf, 1.0)


def theorem_4_passive(n: int, p: float, threshold: int, known: int, split: int) -> tuple[float, float]:
    """Return the (ε, δ) of Theorem 4 against a passive attacker who knows `known` records; (inf, 1) if it has none.

    ``g = f(T-b; n-|B|-1, p)/(1-r')``, ``ε = -ln(1-g)``, ``δ = f(b; |B|, p)/(1-r_b) + g``.

    **Sound and loose.** `split` is the paper's b, which is free: fewer than b of the known records are 1, or the
    attacker is taken to have learnt everything.
    """
    known_tail = _tail(split, known, p)
    shown = _tail(threshold - split, n - known - 1, p)
    delta = known_tail + shown
    return (-math.log1p(-shown), delta) if delta < 1.0 else (math.inf, 1.0)


def theorem_4_passive_delta(epsilon: float, n: int, p: float, threshold: int, known: int) -> float:
    """Return the smallest δ of `theorem_4_passive` over b, at an ε of at most `epsilon`; 1 where there is none.

    **Sound and loose**, as that is.
    """
    splits = range(1, min(known + 1, threshold - 1) + 1)
    pairs = [theorem_4_passive(n, p, threshold, known, split) for split in splits]
    return min((delta for needed, delta in pairs if needed <= epsilon), default=1.0)


def theorem_5_presence(epsilon: float, n: int, least: float, threshold: int, *, numeric: bool = False) -> float:
    """Return the δ of Theorem 5's first step at `epsilon`: the target in a cell, or absent.

    The larger of Theorem 4's δ (cells that everybody is in with probability λ at most) and Theorem 3's (cells, and
    absence, that everybody is in with probability λ at least).

    **Sound and loose** with Theorem 3's closed form. **Wrong** with its numeric condition, as printed.

    Parameters
    ----------
    epsilon : float
    n : int
        Records, the target's included.
    least : float
        λ.
    threshold : int
        T: a cell is published when its count is above T, so T is one less than our k.
    numeric : bool
        Whether Theorem 3 stands as its numeric condition.
    """
    rare, thresholded = theorem_4(n, least, threshold)
    count = theorem_3_condition if numeric else theorem_3_closed_form_delta
    return 1.0 if rare > epsilon else max(thresholded, count(epsilon, n, least))


def theorem_5(epsilon: float, n: int, least: float, threshold: int, *, numeric: bool = False) -> tuple[float, float]:
    """Return the (2ε, 2δ) of Theorem 5 as printed: the target in one cell or in another, by way of absence.

    **Wrong** as a step: two pairs at (ε, δ) that share a law do not make a pair at (2ε, 2δ).
    """
    return 2.0 * epsilon, min(1.0, 2.0 * theorem_5_presence(epsilon, n, least, threshold, numeric=numeric))


def theorem_5_chained(
    epsilon: float, n: int, least: float, threshold: int, *, numeric: bool = False
) -> tuple[float, float]:
    """Return ``(2ε, (1 + e^ε)δ)``, what the first step of Theorem 5 does give.

    **Sound and loose** with Theorem 3's closed form, wrong with its numeric condition.
    """
    delta = theorem_5_presence(epsilon, n, least, threshold, numeric=numeric)
    return 2.0 * epsilon, min(1.0, (1.0 + math.exp(epsilon)) * delta)


Pair = tuple[float, float]


def theorem_6(first: Pair, second: Pair, dependence: Pair, *, thesis: bool = False) -> Pair:
    """Return ``(ε1 + ε2 + ε', δ1 + δ2 + δ')``, Theorem 6 of the paper; the thesis prints 2ε'.

    **Sound** where `dependence` is that of the new release on *all* earlier ones together; with 2ε' **loose**.

    Parameters
    ----------
    first, second : tuple of float
        (ε, δ) of each release.
    dependence : tuple of float
        (ε', δ').
    thesis : bool
        Whether 2ε' takes the place of ε'.
    """
    share = 2.0 if thesis else 1.0
    return first[0] + second[0] + share * dependence[0], first[1] + second[1] + dependence[1]


def advanced_composition(part: Pair, parts: int, slack: float, *, misprint: bool = False) -> Pair:
    """Return ``(ε√(2k ln(1/δ')) + kε(e^ε - 1), kδ + δ')``; misprinted, with e^(ε-1) in place of e^ε - 1.

    **Sound and loose**. The misprint, too, is never below the truth, but no textbook proves it: above ε = 0.46 it is
    smaller than the formula, and for small ε it grows like kε, which is what the formula is there to avoid.

    Parameters
    ----------
    part : tuple of float
        (ε, δ) of each part.
    parts : int
        k.
    slack : float
        δ'.
    misprint : bool
        Whether the formula stands as in Theorem 16 of *Bounded-leakage differential privacy*.
    """
    epsilon, delta = part
    growth = math.exp(epsilon - 1.0) if misprint else math.expm1(epsilon)
    spread = epsilon * math.sqrt(2.0 * parts * math.log(1.0 / slack))
    return spread + parts * epsilon * growth, parts * delta + slack


def private_leakage(given: Pair, leakage: Pair, values: int) -> Pair:
    """Return ``(ε1 + ε2, δ1 + (1 + |O'|) δ2)``: (ε1, δ1) given a leakage that is itself (ε2, δ2)-private.

    **Sound and loose**: ``δ1 + δ2`` is enough, whatever the leakage can say. (A remark in *Bounded-leakage
    differential privacy*, after the proof of Theorem 4.)

    Parameters
    ----------
    given : tuple of float
        (ε, δ) of the release, given the leakage.
    leakage : tuple of float
        (ε, δ) of the leakage itself.
    values : int
        |O'|: how many values of the leakage are possible in both of two neighbouring data sets.
    """
    return given[0] + leakage[0], given[1] + (1 + values) * leakage[1]
