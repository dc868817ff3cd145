"""Laws that follow one another in steps: group privacy, and a mechanism that depends on what leaks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import flint

from pkdp_pipeline.model.arguments import whole_number
from pkdp_pipeline.theorems.rounding import float_above, sum_above
from pkdp_pipeline.theory.bounded_leakage.numbers import BITS, exact_end, read_guarantee

__all__ = ["along_path", "chained", "given_leakage"]

_STEP_BY_STEP = 1000
"""Longer paths use the closed form, which is larger only where it comes near 1."""


def chained(steps: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return (ε, δ) between the first and the last of several laws, known in steps.

    Parameters
    ----------
    steps : iterable of (float, float)
        (ε_i, δ_i) between law i − 1 and law i, in both orders; ε at least 0 (``inf`` allowed), δ in [0, 1]. The first
        step is that of the law whose probabilities are bounded.

    Returns
    -------
    epsilon, delta : float
        ``Σ ε_i`` and ``f_1(f_2(… f_n(0)))`` with ``f_i(t) = min(1, e^ε_i t + δ_i, 1 - e^{-ε_i}(1 - δ_i - t))``;
        ``(0.0, 0.0)`` for no steps.

    Raises
    ------
    ArgumentError
        If a step is not such a pair.

    Notes
    -----
    *Guarantee*: ``P_0(S) ≤ e^ε P_n(S) + δ`` for every event S. No smaller δ holds at this ε for all such laws. The
    order of the steps matters. *Rounding*: up, in ball arithmetic. *Source*: `docs/bounded_leakage.md`, "Steps".
    """
    listed = [read_guarantee("a step", step) for step in steps]
    epsilon = sum_above(one for one, _ in listed)
    reached = Fraction(0)
    for step in reversed(listed):
        reached = _after(reached, *step)
    return epsilon, float_above(reached)


def _after(reached: Fraction, epsilon: float, delta: float) -> Fraction:
    """Return at or above ``f(reached)``: the most an event can have one step before."""
    if reached >= 1 or delta >= 1.0:
        return Fraction(1)
    if reached == 0:
        # f(0) is δ: the other two are at least that.
        return Fraction(delta)
    if math.isinf(epsilon):
        return Fraction(1)
    if epsilon == 0.0:
        return min(Fraction(1), reached + Fraction(delta))
    with flint.ctx.workprec(BITS):
        before, extra = flint.arb(flint.fmpq(reached.numerator, reached.denominator)), flint.arb(delta)
        falling = 1 - (-flint.arb(epsilon)).exp() * (1 - extra - before)
        ends = [Fraction(1), exact_end(falling.upper())]
        # Above that, the rising line is above 1 whatever it starts from that is not tiny.
        if epsilon < 1e6:
            ends.append(exact_end((flint.arb(epsilon).exp() * before + extra).upper()))
    return min(ends)


def given_leakage(guarantee: tuple[float, float], dependence: tuple[float, float] = (0.0, 0.0)) -> tuple[float, float]:
    """Return what a differentially private mechanism promises given a leakage.

    Parameters
    ----------
    guarantee : (float, float)
        (ε, δ) of the mechanism by itself.
    dependence : (float, float)
        (ε′, δ′)-independence of the mechanism's output and the leakage (Definition 8); (0, 0), the default: the
        leakage is a function of the data, or uses randomness of its own.

    Returns
    -------
    epsilon, delta : float
        ``ε + 2ε′``, and at most ``(e^{ε′+ε} + 1) δ′ + e^{ε′} δ``; the guarantee itself for (0, 0).

    Raises
    ------
    ArgumentError
        If an argument is not such a pair.

    Notes
    -----
    Lemma 7 and Theorem 9. By Theorem 12 the same numbers hold for the output together with the leaked value
    (Corollaries 13 and 14). Where the printed δ is not small it comes near 1 or passes it; this one is the smallest
    that holds at ``ε + 2ε′`` for all such mechanisms and leakages.

    *Guarantee*: the output is (ε, δ)-bounded-leakage private with respect to the leakage, which is worth nothing where
    no two neighbours share a leaked value. *Rounding*: up. *Source*: `docs/bounded_leakage.md`, "A private mechanism,
    given a leakage".
    """
    private = read_guarantee("guarantee", guarantee)
    depends = read_guarantee("dependence", dependence)
    return chained([depends, private, depends])


def along_path(guarantee: tuple[float, float], steps: int) -> tuple[float, float]:
    """Return what is promised about two databases that are several records apart (Theorem 22).

    Parameters
    ----------
    guarantee : (float, float)
        (ε, δ) given the leaked value, for neighbours.
    steps : int
        Length of a path of neighbours from one to the other, all of which may leak this value; at least 1.
        `LeakagePair.path` looks for one.

    Returns
    -------
    epsilon, delta : float
        ``k ε``, and at most ``δ (e^{kε} - 1)/(e^ε - 1)``.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Notes
    -----
    Without such a path nothing is promised: with the parity of all records leaked, databases two records apart share
    the leaked value and no path of it.

    *Guarantee*: the output of the two, given this leaked value, is (ε, δ)-close in both orders; up to 1000 steps no
    smaller δ holds at this ε for all mechanisms. *Rounding*: up. *Source*: `docs/bounded_leakage.md`, "Groups".
    """
    private = read_guarantee("guarantee", guarantee)
    often = whole_number("steps", steps, least=1)
    if often <= _STEP_BY_STEP:
        return chained([private] * often)
    total = sum_above([private[0]], [often])
    return total, _closed(*private, often)


def _closed(epsilon: float, delta: float, steps: int) -> float:
    """Return at or above ``δ (e^{kε} - 1)/(e^ε - 1)``, at most 1."""
    if delta == 0.0:
        return 0.0
    if epsilon == 0.0:
        return min(1.0, float_above(Fraction(delta) * steps))
    if epsilon * steps > 1e6:
        return 1.0
    with flint.ctx.workprec(BITS):
        one = flint.arb(epsilon)
        return min(1.0, float_above(exact_end((flint.arb(delta) * (steps * one).expm1() / one.expm1()).upper())))
