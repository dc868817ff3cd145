"""An exact count, as printed: Theorem 3 of the paper in both its forms, and its Proposition 7."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import stats

__all__ = [
    "proposition_7",
    "proposition_7_delta",
    "theorem_3_closed_form",
    "theorem_3_closed_form_delta",
    "theorem_3_condition",
]


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
    blanket, at = least * (n - 1), min(epsilon, 1.0)
    return 1.0 if at < 27.0 / blanket else min(1.0, 2.0 * math.exp(-at * at * blanket / 14.0))


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
