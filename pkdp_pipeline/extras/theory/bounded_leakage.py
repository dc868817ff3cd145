"""Bounded leakage: what is still promised when something about the same people is known exactly, or leaks.

The theorems as certified numbers; mechanisms with a leakage on a small universe stand beside, exactly. Certificates are
conditioned on a leakage elsewhere. Every function raises `ArgumentError` where an argument is out of range, or is not a
pair (ε, δ) where one is asked for. `docs/bounded_leakage.md` defines, proves and shows them at work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import flint

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.theory.counting_queries import ExponentialMechanism
from pkdp_pipeline.extras.theory.leakage_pair import LeakagePair, one_record_apart
from pkdp_pipeline.extras.theory.privacy_loss.side import (
    BITS,
    ball_of,
    exact_above,
    exact_end,
    growth_above,
    growth_below,
    read_epsilon,
    read_guarantee,
)
from pkdp_pipeline.model.wording import probability, whole_number
from pkdp_pipeline.theorems.numerics import float_above, sum_above

__all__ = [
    "ExponentialMechanism",
    "LeakagePair",
    "advanced_composition",
    "along_path",
    "basic_composition",
    "beside_private_leakage",
    "best_composition",
    "big_world",
    "chained",
    "given_leakage",
    "growth_above",
    "growth_below",
    "one_record_apart",
]

_MAX_EXACT_STEPS = 1000
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

    Notes
    -----
    *Guarantee*: ``P_0(S) ≤ e^ε P_n(S) + δ`` for every event S. No smaller δ holds at this ε for all such laws. The
    order of the steps matters. *Rounding*: up, in ball arithmetic. *Source*: `docs/bounded_leakage.md`, "Steps".
    """
    listed = [read_guarantee("a step", step) for step in steps]
    epsilon = sum_above(value for value, _ in listed)
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
        before, extra = ball_of(reached), flint.arb(delta)
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

    Notes
    -----
    Without such a path nothing is promised: with the parity of all records leaked, databases two records apart share
    the leaked value and no path of it.

    *Guarantee*: the output of the two, given this leaked value, is (ε, δ)-close in both orders; up to 1000 steps no
    smaller δ holds at this ε for all mechanisms. *Rounding*: up. *Source*: `docs/bounded_leakage.md`, "Groups".
    """
    private = read_guarantee("guarantee", guarantee)
    often = whole_number("steps", steps, least=1)
    if often <= _MAX_EXACT_STEPS:
        return chained([private] * often)
    (epsilon, delta), total = private, sum_above([private[0]], [often])
    if delta == 0.0:
        return total, 0.0
    if epsilon == 0.0:
        return total, min(1.0, float_above(Fraction(delta) * often))
    if epsilon * often > 1e6:
        return total, 1.0
    with flint.ctx.workprec(BITS):
        exact = flint.arb(epsilon)
        return total, min(1.0, exact_above(flint.arb(delta) * (often * exact).expm1() / exact.expm1()))


_MAX_TERMS = 100_000
"""Sums of more terms are not computed."""

_MAX_EPSILON = 1e6
"""Larger ε hide nothing that a sum could show."""

_MAX_EXACT_FACTORS = 32
"""Products of this many rationals are exact; of more they are balls."""


def basic_composition(parts: Iterable[tuple[float, float]], times: Iterable[int] | None = None) -> tuple[float, float]:
    """Add up promises given leakages (Theorem 26, Corollary 28; adaptively by Theorem 31).

    Parameters
    ----------
    parts : iterable of (float, float)
        (ε_i, δ_i) of each output given its leakage, with fresh randomness in every part.
    times : iterable of int, optional
        How often each part occurs; once where it is left out.

    Returns
    -------
    epsilon, delta : float
        ``Σ ε_i`` and ``1 - Π (1 - δ_i)``, which is at most ``Σ δ_i``.

    Notes
    -----
    *Guarantee*: all outputs together are (ε, δ)-bounded-leakage private with respect to all leakages together, also
    when each part is chosen after seeing earlier outputs. No smaller δ holds at this ε for all parts with these
    numbers. *Rounding*: up. *Source*: `docs/bounded_leakage.md`, "Composition".
    """
    listed = [read_guarantee("a part", part) for part in parts]
    often = [1] * len(listed) if times is None else [whole_number("times", number, least=1) for number in times]
    if len(often) != len(listed):
        raise ArgumentError("times must have one number for each part.")
    epsilon = sum_above([value for value, _ in listed], often)
    return epsilon, _disclosed_by_any([(delta, number) for (_, delta), number in zip(listed, often, strict=True)])


def advanced_composition(part: tuple[float, float], times: int, slack: float) -> tuple[float, float]:
    """Add up many equal promises given leakages by advanced composition (Theorems 16 and 31).

    Parameters
    ----------
    part : (float, float)
        (ε, δ) of every output given its leakage; ε finite.
    times : int
        k, at least 1.
    slack : float
        δ′ in (0, 1]: what the smaller ε costs.

    Returns
    -------
    epsilon, delta : float
        ``ε √(2 k ln(1/δ′)) + k ε (e^ε - 1)/(e^ε + 1)`` and ``1 - (1 - δ)^k (1 - δ′)``. Where ``k ε`` is not larger:
        that, and ``1 - (1 - δ)^k``.

    Notes
    -----
    The theorem is printed with ``k ε e^{ε-1}``, a misprint of ``k ε (e^ε - 1)``. Both are larger than what is returned
    here, which the same proof gives.

    *Guarantee*: all outputs together are (ε, δ)-bounded-leakage private with respect to all leakages together, also
    when each part is chosen after seeing earlier outputs. *Rounding*: up. *Source*: `docs/bounded_leakage.md`,
    "Composition".
    """
    (epsilon, delta), often = _equal_parts(part, times)
    if probability("slack", slack) == 0.0:
        raise ArgumentError("slack must be above 0: it is the δ that advanced composition pays; write 1e-9.")
    with flint.ctx.workprec(BITS):
        exact = flint.arb(epsilon)
        spread = (2 * often * -flint.arb(slack).log()).sqrt() if slack < 1.0 else flint.arb(0)
        total = exact_above(exact * (spread + often * (exact / 2).tanh()))
    plain = sum_above([epsilon], [often])
    if plain <= total:
        return plain, _disclosed_by_any([(delta, often)])
    return total, _disclosed_by_any([(delta, often), (float(slack), 1)])


def best_composition(part: tuple[float, float], times: int, epsilon: float) -> float:
    """Return the smallest δ at `epsilon` that holds for all equal promises with these numbers together.

    Parameters
    ----------
    part : (float, float)
        (ε, δ) of every output given its leakage; ε finite.
    times : int
        k, from 1 to 100 000.
    epsilon : float
        Where δ is read, at least 0.

    Returns
    -------
    float
        ``1 - (1 - δ)^k (1 - h)`` with ``h = Σ_l C(k, l) max(0, e^{(k-l) ε} - e^{l ε} e^epsilon)/(1 + e^ε)^k``.

    Notes
    -----
    *Guarantee*: as for `basic_composition`. *Rounding*: up, in ball arithmetic. *Source*: `docs/bounded_leakage.md`,
    "Composition"; for differential privacy without leakage: Kairouz, Oh and Viswanath, "The Composition Theorem for
    Differential Privacy", 2015.
    """
    (single, delta), often = _equal_parts(part, times)
    target = read_epsilon("epsilon", epsilon)
    if often > _MAX_TERMS:
        raise ArgumentError(f"times must be at most {_MAX_TERMS}: use advanced_composition for more.")
    plain = sum_above([single], [often])
    if target >= plain:
        return _disclosed_by_any([(delta, often)])
    if single > _MAX_EPSILON:
        return 1.0
    with flint.ctx.workprec(BITS):
        right, wrong = (1 / (1 + (sign * flint.arb(single)).exp()) for sign in (-1, 1))
        total = flint.arb(0)
        for errors in range(often + 1):
            apart = -(flint.arb(target) - (often - 2 * errors) * flint.arb(single)).expm1()
            if apart < 0:
                break
            term = math.comb(often, errors) * right ** (often - errors) * wrong**errors * apart
            # Where the sign is open, the upper end is at or above the positive part.
            total += term if apart > 0 else flint.arb(term.upper())
        if not total < 1:
            return 1.0
        logarithm = (-total).log1p() + (often * (-flint.arb(delta)).log1p() if 0.0 < delta < 1.0 else 0)
        return 1.0 if delta == 1.0 else min(1.0, exact_above(-logarithm.expm1()))


def _equal_parts(part: object, times: int) -> tuple[tuple[float, float], int]:
    epsilon, delta = read_guarantee("part", part)
    if math.isinf(epsilon):
        raise ArgumentError("epsilon of part must be finite: add such parts up with basic_composition.")
    return (epsilon, delta), whole_number("times", times, least=1)


def _disclosed_by_any(chances: list[tuple[float, int]]) -> float:
    """Return at or above ``1 - Π (1 - δ_i)^k_i``, at most 1."""
    telling = [(delta, times) for delta, times in chances if delta > 0.0]
    if any(delta == 1.0 for delta, _ in telling):
        return 1.0
    if sum(times for _, times in telling) <= _MAX_EXACT_FACTORS:
        kept = Fraction(1)
        for delta, times in telling:
            kept *= (1 - Fraction(delta)) ** times
        return float_above(1 - kept)
    with flint.ctx.workprec(BITS):
        logarithm = sum((times * (-flint.arb(delta)).log1p() for delta, times in telling), flint.arb(0))
        return min(1.0, exact_above(-logarithm.expm1()))


def big_world(
    study: tuple[float, float],
    participation: int,
    *,
    studies: int | None = None,
    absent_throughout: bool = False,
    slack: float | None = None,
) -> tuple[float, float]:
    """Return what all studies together promise a person, given that she took part in at most this many (Theorem 17).

    Parameters
    ----------
    study : (float, float)
        (ε, δ) of every study, when one participant's data change, and when she is left out.
    participation : int
        t, the leaked value: she took part in at most t of the studies; at least 0.
    studies : int, optional
        How many studies there were, if that is known.
    absent_throughout : bool
        The two lives that are compared: any two, or, if true, one and a life in which she took part in no study.
    slack : float, optional
        δ′ in (0, 1] to compose as in `advanced_composition`; without it ε and δ are added up.

    Returns
    -------
    epsilon, delta : float
        The joint promise of s releases, s = 2t, or t if `absent_throughout`, and never more than `studies`: ``s ε``
        and ``1 - (1 - δ)^s``, at most ``s δ``; ``(0.0, 0.0)`` for t = 0.

    Notes
    -----
    The participation of others must not depend on her data, nor on which studies she is in; her own participation
    may depend on her data in any way. Every study uses fresh randomness.

    *Guarantee*: given the leaked t, all outputs together in two of her lives are (ε, δ)-close. *Rounding*: up.
    *Source*: `docs/bounded_leakage.md`, "Big world".
    """
    private = read_guarantee("study", study)
    differing = whole_number("participation", participation, least=0) * (1 if absent_throughout else 2)
    if studies is not None:
        differing = min(differing, whole_number("studies", studies, least=1))
    if differing == 0:
        return 0.0, 0.0
    if slack is not None:
        return advanced_composition(private, differing, slack)
    return basic_composition([private], [differing])


def beside_private_leakage(given: tuple[float, float], leakage: tuple[float, float]) -> tuple[float, float]:
    """Return the differential privacy of an output together with the value that leaks beside it (Theorem 4).

    Parameters
    ----------
    given : (float, float)
        (ε1, δ1): what the mechanism promises given the leakage; see `given_leakage`.
    leakage : (float, float)
        (ε2, δ2): the differential privacy of the leakage.

    Returns
    -------
    epsilon, delta : float
        ``ε1 + ε2`` and ``δ1 + δ2 - δ1 δ2``.

    Notes
    -----
    The theorem is printed for δ2 = 0 and the output alone; a remark adds ``(1 + n) δ2`` where n values can leak. The
    proof here holds for any number of values, and for output and leaked value together.

    *Guarantee*: the pair (output, leaked value), and so either of them, is (ε, δ)-differentially private,
    unconditionally. No smaller δ holds at this ε for all mechanisms and leakages. *Rounding*: up, from exact numbers.
    *Source*: `docs/bounded_leakage.md`, "A leakage that is private itself".
    """
    (first, delta), (second, more) = read_guarantee("given", given), read_guarantee("leakage", leakage)
    epsilon = sum_above([first, second])
    return epsilon, float_above(1 - (1 - Fraction(delta)) * (1 - Fraction(more)))
