"""Thresholds: the smallest k, and the smallest release threshold after noise, at which a target holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, mechanism_name
from pkdp_pipeline.planning.guesses import guessed_k, guessed_threshold
from pkdp_pipeline.planning.searching import first_whole
from pkdp_pipeline.planning.target import read_attacker, read_target

__all__ = ["smallest_k", "smallest_release_threshold"]

_MOST = 10_000_000


def smallest_k(
    attacker: AttackerModel,
    *,
    epsilon: float,
    delta: float,
    protects: str = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
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
        What is declared so that they add up, see `compose`; needed when there is more than one.

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
    target = read_target(epsilon, delta, protects, days, evidence)
    controlled = attacker.known if isinstance(attacker, AttackerModel) else 0
    try:
        # Refused for every k or for none: a large k says which.
        certify(Histogram(k=_MOST + controlled), attacker, protects=protects)
    except NotCertifiableError:
        # The choices that a message offers are those beside the k it is about.
        certify(Histogram(k=controlled + 2), attacker, protects=protects)
        raise
    k = first_whole(
        lambda k: target.loss(Histogram(k=k), attacker), target.delta, 1, _MOST, guessed_k(attacker, target)
    )
    if k is None:
        raise NotCertifiableError(
            f"no threshold k up to {_MOST} reaches {target.words} against this attacker: allow a larger epsilon or "
            "delta, argue a smaller p_max, or add noise."
        )
    return k


def smallest_release_threshold(
    mechanism: Mechanism,
    attacker: AttackerModel | None = None,
    *,
    epsilon: float,
    delta: float,
    protects: str = "presence",
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
    epsilon : float
        At least 0 and finite.
    delta : float
        Above 0, at most 1.
    protects : {"presence", "value"}, default "presence"
    days : int, default 1
        How many equal releases are to reach the target together.
    evidence : Evidence or list of Evidence, optional
        What is declared so that they add up, see `compose`.

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
    target = read_target(epsilon, delta, protects, days, evidence)
    mechanism_name(mechanism)
    model = read_attacker(attacker)
    if mechanism.noise is None:
        raise ArgumentError("a release threshold acts after noise: give the mechanism noise=pkdp.GeometricNoise(0.5).")

    @cache
    def loss(threshold: int) -> float:
        return target.loss(replace(mechanism, release_threshold=threshold), model)

    if loss(0) <= target.delta:
        return 0
    start, most = mechanism.k or 0, (mechanism.k or 0) + _MOST
    least = None
    # What the largest threshold leaves is what the noise itself loses: no other does better.
    if loss(most) <= target.delta:
        # Below k every suppressed count would show; from k on, one step less likely with every step.
        least = first_whole(loss, target.delta, start, most, guessed_threshold(mechanism.noise, start, target))
    if least is None:
        raise NotCertifiableError(
            f"no release threshold reaches {target.words} with noise of epsilon {mechanism.noise.epsilon!r}: the noise "
            "itself is too narrow. Ask smallest_noise, or allow a larger epsilon or delta."
        )
    return least
