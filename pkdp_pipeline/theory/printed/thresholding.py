"""A count that is suppressed when it is small, as printed: Theorem 4 of the paper."""

from __future__ import annotations

import math

from scipy import stats

__all__ = ["theorem_4", "theorem_4_passive", "theorem_4_passive_delta"]


def _tail(at: int, trials: int, p: float) -> float:
    """Return the paper's bound of ``P[Bin(trials, p) >= at]``, pmf(at)/(1 - ratio), its Lemma 2; 1 if it has none."""
    if at <= 0:
        return 1.0
    ratio = p * trials / ((1.0 - p) * at)
    return 1.0 if ratio >= 1.0 else min(1.0, float(stats.binom.pmf(at, trials, p)) / (1.0 - ratio))


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
    seen = _tail(split, known, p)
    shown = _tail(threshold - split, n - known - 1, p)
    delta = seen + shown
    return (-math.log1p(-shown), delta) if delta < 1.0 else (math.inf, 1.0)


def theorem_4_passive_delta(epsilon: float, n: int, p: float, threshold: int, known: int) -> float:
    """Return the smallest δ of `theorem_4_passive` over b, at an ε of at most `epsilon`; 1 where there is none.

    **Sound and loose**, as that is.
    """
    splits = range(1, min(known + 1, threshold - 1) + 1)
    pairs = [theorem_4_passive(n, p, threshold, known, split) for split in splits]
    return min((delta for at, delta in pairs if at <= epsilon), default=1.0)
