"""The loss of several noisy counts together: a product of two-point losses ±ε0, exactly where it stays small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import flint
import numpy as np

from pkdp_pipeline.theorems.rounding import UNIT, Array, ball_above
from pkdp_pipeline.theory.privacy_loss.side import LossSide, thinned

__all__ = ["MOST_COUNTS", "noise_side"]

MOST_COUNTS = 20_000
"""More counts than this are not multiplied out."""

_ATOMS = 4096

_PRODUCTS = 2_000_000
"""So many sums of two losses are looked at, at once."""


def noise_side(parts: Sequence[tuple[float, int]]) -> LossSide:
    """Return the losses above 0 of independent counts with two-sided geometric noise, which all differ by 1.

    Parameters
    ----------
    parts : sequence of (float, int)
        ε0 and how many counts have it; at most `MOST_COUNTS` in all.

    Notes
    -----
    The loss of one count is ε0 with probability ``1/(1 + e^{-ε0})`` and -ε0 otherwise, so that of n is ``(2j - n)
    ε0`` with binomial weights. Masses are kept as logarithms: none is lost, however small. The pair is its own mirror
    image. *Guarantee*: the profile is nowhere below that of the product. *Rounding*: up; products of several ε0 with
    more than `_ATOMS` losses have neighbours put together, see `LossSide.shorter`, and so have two factors with more
    than `_PRODUCTS` sums of losses.
    """
    often: dict[float, int] = {}
    for epsilon, times in parts:
        often[epsilon] = often.get(epsilon, 0) + times
    losses, logs = np.zeros(1), np.zeros(1)
    end = Fraction(0)
    for epsilon, times in sorted(often.items()):
        more, weights = _repeated(epsilon, times)
        end += times * Fraction(epsilon)
        if len(losses) == 1:
            losses, logs = more, weights
            continue
        if len(losses) * len(more) > _PRODUCTS:
            losses, logs = thinned(losses, logs, max(math.isqrt(_PRODUCTS), _PRODUCTS // len(more)))
            more, weights = thinned(more, weights, _PRODUCTS // len(losses))
        slack = 4.0 * UNIT * float(np.abs(losses).max() + np.abs(more).max())
        # Rounding lifts no loss above the largest one.
        losses = np.minimum((losses[:, None] + more[None, :]).ravel() + slack, _float_above(end))
        logs = (logs[:, None] + weights[None, :]).ravel()
        logs = logs + 4.0 * UNIT * np.abs(logs)
        order = np.argsort(losses, kind="stable")
        losses, logs = thinned(losses[order], logs[order], _ATOMS)
    above = losses > 0.0
    order = np.argsort(losses[above], kind="stable")
    return LossSide(losses=losses[above][order], log_masses=logs[above][order], infinite=0.0)


def _repeated(epsilon: float, times: int) -> tuple[Array, Array]:
    exact = Fraction(epsilon)
    losses = np.array([_float_above((2 * j - times) * exact) for j in range(times + 1)])
    with flint.ctx.workprec(160):
        factorials = [flint.arb(0)]
        for number in range(1, times + 1):
            factorials.append(factorials[-1] + flint.arb(number).log())
        # 1/(1 + e^{-ε0}) for a loss of ε0, e^{-ε0} times that for -ε0.
        one = flint.arb(epsilon)
        likely = -(-one).exp().log1p()
        logs = [
            ball_above(factorials[times] - factorials[j] - factorials[times - j] + times * likely - (times - j) * one)
            for j in range(times + 1)
        ]
    return losses, np.array(logs)


def _float_above(exact: Fraction) -> float:
    number = float(exact)
    return number if Fraction(number) >= exact else math.nextafter(number, math.inf)
