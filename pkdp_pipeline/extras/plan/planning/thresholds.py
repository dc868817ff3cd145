"""The smallest whole numbers at which a goal holds: k, the release threshold after noise, the unknown people.

How sure an attacker may be: the largest p_max, or p_max_between, at which a target holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, Literal

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.extras.plan.planning.searching import (
    Goal,
    first_whole,
    guessed_k,
    guessed_share,
    guessed_threshold,
    guessed_unknown,
    last_float,
    read_goal,
)
from pkdp_pipeline.model.attacker import AttackerModel, read_attacker
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Counts, Histogram, Mechanism, Protects, cells_per_unit, mechanism_name
from pkdp_pipeline.model.wording import Worded, obstacles_of, reason_of, rounded_up

_MAX_K = 10_000_000
_MAX_PEOPLE = 100_000_000


def smallest_k(
    attacker: AttackerModel,
    *,
    epsilon: float,
    delta: float,
    protects: Protects = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
    cells_per_unit: int = 1,
) -> int:
    """Return the smallest threshold k at which one release, or `days` of them together, are certified.

    Parameters
    ----------
    attacker : AttackerModel
    epsilon : float
        At least 0 and finite.
    delta : float
        Above 0, at most 1.
    protects : {"presence", "value"}, default "presence"
        For presence the answer holds for a `Count` and for a `Histogram` alike.
    days : int, default 1
        How many equal releases are to be certified together.
    evidence : Evidence or list of Evidence, optional
        The evidence declared so that they add up, see `compose`; needed when there is more than one.
    cells_per_unit : int, default 1
        The most cells of a histogram that a person may be in; see `Histogram`.

    Returns
    -------
    int
        ``certify(Histogram(k=k), attacker, protects=protects).delta(epsilon) <= delta`` holds for it, and for
        `compose` of `days` such certificates; it fails for every smaller k.

    Raises
    ------
    NoEvidenceError
        If several releases are asked about without evidence by which noiseless ones add up.
    NotCertifiableError
        If no threshold up to ten million reaches the target, or none can be certified for this attacker.
    ArgumentError
        If a number is out of range.
    """
    bare, goal = Histogram(cells_per_unit=cells_per_unit), read_goal(epsilon, delta, protects, days, evidence)
    return least_k(attacker, replace(goal, cells_per_unit=cells_per_unit), bare)


def least_k(attacker: AttackerModel, goal: Goal, bare: Counts) -> int:
    """Return what `smallest_k` does, for exact counts of some kind."""
    controlled = attacker.known if isinstance(attacker, AttackerModel) else 0
    try:
        # Refused for every k or for none: a large k says which. What a refusal offers is for one release alone.
        certify(replace(bare, k=_MAX_K + controlled), attacker, protects=goal.protects)
    except NotCertifiableError as error:
        noise = f"Noise asks nothing of the attacker: smallest_noise says how much reaches {goal.words}."
        why = reason_of(error)
        raise NotCertifiableError(Worded(lambda _: f"{why} {noise}", why)) from None
    guess = guessed_k(attacker, goal)
    k = first_whole(lambda k: goal.loss(replace(bare, k=k), attacker), goal.delta, 1, _MAX_K, guess)
    if k is None:
        raise NotCertifiableError(
            f"no threshold k up to {_MAX_K} reaches {goal.words} against this attacker: allow a larger epsilon or "
            "delta, argue a smaller p_max, or add noise."
        )
    return k


def smallest_release_threshold(
    mechanism: Mechanism,
    attacker: AttackerModel | None = None,
    *,
    epsilon: float,
    delta: float,
    protects: Protects = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> int:
    """Return the smallest `release_threshold` at which noise after a `k` reaches the target.

    A count that has just reached `k` shows itself when its noisy value is published at all; the release threshold makes
    that rare.

    Parameters
    ----------
    mechanism : Count or Histogram
        With noise; whatever it says about `release_threshold` is not used.
    attacker : AttackerModel, optional
        None: nothing is declared, and the answer holds against anyone.
    epsilon, delta, protects, days, evidence
        See `smallest_k`.

    Returns
    -------
    int
        The target holds for it and fails for every smaller one. 0 where any reaches the target.

    Raises
    ------
    NotCertifiableError
        If none does: the noise is too narrow for the target, whatever is suppressed after it.
    NoEvidenceError
        If several releases are asked about that do not add up with what is declared.
    ArgumentError
        If an argument is malformed, or the mechanism has no noise.

    Notes
    -----
    *Guarantee*: the target holds at the answer, as certified. *Rounding*: up, to a whole number.
    """
    goal = read_goal(epsilon, delta, protects, days, evidence)
    return least_release_threshold(mechanism, read_attacker(attacker), goal)


def least_release_threshold(mechanism: Mechanism, attacker: AttackerModel, goal: Goal) -> int:
    """Return what `smallest_release_threshold` does."""
    mechanism_name(mechanism)
    if mechanism.noise is None:
        raise ArgumentError("a release threshold acts after noise: give the mechanism noise=pkdp.GeometricNoise(0.5).")

    @cache
    def loss(threshold: int) -> float:
        return goal.loss(replace(mechanism, release_threshold=threshold), attacker)

    if loss(0) <= goal.delta:
        return 0
    start, most = mechanism.k or 0, (mechanism.k or 0) + _MAX_K
    least = None
    # What the largest threshold leaves is what the noise itself loses: no other does better.
    if loss(most) <= goal.delta:
        # Below k every suppressed count would show; from k on, one step less likely with every step.
        least = first_whole(loss, goal.delta, start, most, guessed_threshold(mechanism.noise, start, goal))
    if least is None:
        raise NotCertifiableError(
            f"no release threshold reaches {goal.words} with noise of epsilon {mechanism.noise.epsilon!r}: the noise "
            "itself is too narrow. Ask smallest_noise, or allow a larger epsilon or delta."
        )
    return least


def smallest_unknown(
    mechanism: Mechanism,
    attacker: AttackerModel,
    *,
    epsilon: float,
    delta: float,
    protects: Protects = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> int:
    """Return the smallest number of unknown people at which a release, or `days` of them together, reach the target.

    Parameters
    ----------
    mechanism : Count or Histogram
    attacker : AttackerModel
        The other fields; whatever it says about `unknown` is not used. Unknown people help where `p_min` and `p_max`
        are declared; for a `Histogram` that protects the value, where `p_min` is.
    epsilon, delta, protects, days, evidence
        See `smallest_k`.

    Returns
    -------
    int
        ``certify(mechanism, attacker with this unknown, protects=protects).delta(epsilon) <= delta`` holds for it (with
        several days, for `compose` of them), and fails for one person less. 0 where a threshold or noise reaches the
        target by itself.

    Raises
    ------
    NotCertifiableError
        If no number up to a hundred million (or up to `unknown_max`) reaches the target; the message says what would.
    NoEvidenceError
        If several releases are asked about that do not add up with what is declared.
    ArgumentError
        If an argument is malformed.

    Notes
    -----
    *Guarantee*: the target holds at the answer, as certified. *Rounding*: up, to a whole number. The true δ never grows
    with the number of unknown people; the certified one follows it up to the search's slack of 1 % of δ. So a
    smaller number may reach the target too, within that slack, but none that the theorems place outside it.
    """
    goal = read_goal(epsilon, delta, protects, days, evidence)
    mechanism_name(mechanism)
    others = replace(read_attacker(attacker), unknown=None)
    most = _MAX_PEOPLE if others.unknown_max is None else min(_MAX_PEOPLE, others.unknown_max)

    @cache
    def loss(people: int) -> float:
        return goal.loss(mechanism, replace(others, unknown=people))

    if loss(0) <= goal.delta:
        return 0
    # What is refused for the largest number is refused for all: the refusal says why.
    certify(mechanism, replace(others, unknown=most), protects=goal.protects)
    people = first_whole(loss, goal.delta, 0, most, guessed_unknown(mechanism, others, goal))
    if people is None:
        raise NotCertifiableError(_too_few(mechanism, others, goal, most))
    return people


def _too_few(mechanism: Mechanism, others: AttackerModel, goal: Goal, most: int) -> str:
    """Say why no number is enough, and what would help, with numbers."""
    largest = replace(others, unknown=most)
    certificate = goal.together(certify(mechanism, largest, protects=goal.protects))
    start = (
        f"no number of unknown people up to {most} reaches {goal.words}: with {most} of them, "
        f"{goal.missed_by(certificate.delta(goal.epsilon))}"
    )
    reached = certificate.epsilon(goal.delta)
    nearest = "" if reached == math.inf else f", where epsilon = {rounded_up(reached)} can be had at this delta"
    fields = "p_min" if goal.protects == "value" else "p_min and p_max"
    return (
        f"{start}{nearest}. Declare {fields} (unknown people protect by them) where they can be argued, allow a larger "
        "epsilon or delta, choose a larger k, or add noise."
    )


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
