"""How sure an attacker may be: the largest p_max, or p_max_between, at which a target holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, Literal

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.extras.plan.planning.searching import Goal, guessed_share, last_float, read_goal
from pkdp_pipeline.extras.plan.planning.thresholds import least_k
from pkdp_pipeline.model.attacker import AttackerModel, read_attacker
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, Protects, cells_per_unit, mechanism_name
from pkdp_pipeline.model.wording import obstacles_of, rounded_up

Sureness = Literal["p_max", "p_max_between"]

_GAPS = (2.0**-3, 2.0**-6, 2.0**-12, 2.0**-24, 2.0**-53)
_WIDTHS = (0.03, 0.3, 1.5)
"""How far from a guess the answer is looked for, in log odds."""

_MIN_SHARE = 1e-12
"""Nobody argues for less, and δ hardly depends on it down there."""


def largest_p_max(
    mechanism: Mechanism,
    attacker: AttackerModel | None = None,
    *,
    epsilon: float,
    delta: float,
    protects: Protects = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> float:
    """Return the largest `p_max` at which a release, or `days` of them together, reach the goal.

    Parameters
    ----------
    mechanism : Count or Histogram
    attacker : AttackerModel, optional
        The other fields; whatever it says about `p_max` is not used. None: nothing else is declared.
    epsilon, delta, protects, days, evidence
        See `smallest_k`.

    Returns
    -------
    float
        ``certify(mechanism, attacker with this p_max, protects=protects).delta(epsilon) <= delta`` holds for it (with
        several days, for `compose` of them), and fails for the next larger float. 1.0 where even an attacker who may
        be certain is held off: by noise, or by `unknown_max`. 0.0 where everything from 1e-12 on fails, because `k`
        is too small for the target: at 0.0 the attacker knows that nobody else can be in any cell.

    Raises
    ------
    NotCertifiableError
        If no `p_max` reaches the target; the message names what would.
    NoEvidenceError
        If several releases are asked about that do not add up with what is declared.
    ArgumentError
        If an argument is malformed.

    Notes
    -----
    *Guarantee*: the target holds at the answer, as certified. *Rounding*: down, to a float. For thresholds the
    certified δ grows with `p_max`, so nothing above the answer reaches the goal. For counts whose attackers are
    searched (`p_min` and `unknown` declared) it grows up to the search's slack of 1 % of δ; there a larger `p_max`
    within that slack may reach the target too.
    """
    return _largest("p_max", mechanism, attacker, read_goal(epsilon, delta, protects, days, evidence))


def largest_p_max_between(
    mechanism: Mechanism,
    attacker: AttackerModel | None = None,
    *,
    epsilon: float,
    delta: float,
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> float:
    """Return the largest `p_max_between` at which a histogram hides who is in which cell, as well as is asked.

    For censuses and elections, where nobody is absent; it is `largest_p_max` with ``protects="value"`` for the other
    declaration.

    Parameters
    ----------
    mechanism : Histogram
    attacker : AttackerModel, optional
        The other fields; whatever it says about `p_max_between` is not used.
    epsilon, delta, days, evidence
        See `smallest_k`.

    Returns
    -------
    float
        In [1/2, 1]; the target holds for it and fails for the next larger float. 1.0 where even an attacker who may be
        certain is held off, by noise or by another declaration.

    Raises
    ------
    NotCertifiableError
        If not even 1/2 reaches the target; the message names what would.
    NoEvidenceError
        If several releases are asked about that do not add up with what is declared.
    ArgumentError
        If an argument is malformed, or the mechanism is a count.

    Notes
    -----
    *Guarantee*: the target holds at the answer, as certified. *Rounding*: down, to a float.
    """
    return _largest("p_max_between", mechanism, attacker, read_goal(epsilon, delta, "value", days, evidence))


def _largest(name: Sureness, mechanism: Mechanism, attacker: AttackerModel | None, goal: Goal) -> float:
    mechanism_name(mechanism)
    others = _with(read_attacker(attacker), name, None)
    least = 0.5 if name == "p_max_between" else others.p_min or 0.0

    @cache
    def loss(share: float) -> float:
        return goal.loss(mechanism, _with(others, name, share))

    guess = guessed_share(mechanism, others, goal, between=name == "p_max_between")
    bracket = None if guess is None or guess <= least else _around(loss, goal.delta, guess, least)
    if bracket is not None:
        return last_float(loss, goal.delta, *bracket, scale=(_odds, _share))
    if loss(1.0) <= goal.delta:
        return 1.0
    reached = loss(least)
    if not reached <= goal.delta:
        raise NotCertifiableError(_unreachable(name, mechanism, others, goal, least, reached))
    if least == 0.0:
        if not loss(_MIN_SHARE) <= goal.delta:
            return 0.0
        least = _MIN_SHARE
    # Certificates at the very ends take longest: come near to 1 only as far as the goal still holds.
    for share in (1.0 - gap for gap in _GAPS if 1.0 - gap > least):
        if not loss(share) <= goal.delta:
            return last_float(loss, goal.delta, least, share, scale=(_odds, _share))
        least = share
    return least


def _around(loss: Callable[[float], float], delta: float, guess: float, least: float) -> tuple[float, float] | None:
    """Return a share that reaches the target and a larger one that does not, near a guess; None where not near."""
    holds = loss(guess) <= delta
    previous = guess
    for width in _WIDTHS:
        probe = max(least, _share(_odds(guess) + (width if holds else -width)))
        if (loss(probe) <= delta) != holds:
            return (previous, probe) if holds else (probe, previous)
        previous = probe
    return None


def _with(attacker: AttackerModel, name: Sureness, share: float | None) -> AttackerModel:
    declared: dict[str, Any] = {name: share}
    return replace(attacker, **declared)


def _odds(share: float) -> float:
    return math.log(share) - math.log1p(-share)


def _share(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0


def _unreachable(
    name: Sureness, mechanism: Mechanism, others: AttackerModel, goal: Goal, least: float, reached: float
) -> str:
    """Say why no answer exists, and what would help, with numbers."""
    start = f"no {name} reaches {goal.words}: even at {name} = {least!r}, {goal.missed_by(reached)}"
    if reached == math.inf:
        try:
            certify(mechanism, _with(others, name, least), protects=goal.protects)
        except NotCertifiableError as error:
            start += f", because {'; and '.join(obstacles_of(error))}"
    model = _with(others, name, max(least, 0.1))
    end = "allow a larger epsilon or delta."
    try:
        k = least_k(model, goal, Histogram(cells_per_unit=cells_per_unit(mechanism)))
    except (NotCertifiableError, ArgumentError):
        return f"{start}. Add noise, which protects whatever the attacker knows, or {end}"
    return f"{start}. k = {k} would reach it at {name} = {rounded_up(getattr(model, name))}; or add noise, or {end}"
