"""How much noise: the least at which a target holds, for one release or for several together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import NoEvidenceError, NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Mechanism, mechanism_name
from pkdp_pipeline.model.mechanisms.noise_law import SMALLEST_EPSILON
from pkdp_pipeline.planning.guesses import guessed_noise, guessed_noise_alone
from pkdp_pipeline.planning.searching import last_float
from pkdp_pipeline.planning.target import Target, read_attacker, read_target
from pkdp_pipeline.planning.thresholds import smallest_release_threshold

__all__ = ["noise_after", "smallest_noise"]


_NARROWEST = math.nextafter(math.inf, 0.0)
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_EVALUATIONS = 40
_ROUNDS = 8

_CLOSE = 1e-3
"""Several noisy counts, or one of very many unknown people, take long: there it is enough to fail soon above."""

_MANY_UNKNOWN = 1_000


def smallest_noise(
    mechanism: Mechanism,
    attacker: AttackerModel | None = None,
    *,
    epsilon: float,
    delta: float,
    protects: str = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> GeometricNoise | None:
    """Return the least noise (that of the largest ε) at which a release, or `days` of them together, reach the target.

    Parameters
    ----------
    mechanism : Count or Histogram
        With its thresholds; whatever it says about noise is not used. A `k` needs a `release_threshold` as well:
        give one together with any noise, for instance that of `smallest_release_threshold`.
    attacker : AttackerModel, optional
        What the attacker does not know can take the place of some of the noise: for a `Count` without `k` whose
        `p_min`, `p_max` and `unknown` are declared, sum and noise are certified together. None: nothing is
        declared, and the answer holds against anyone.
    epsilon : float
        At least 0 and finite.
    delta : float
        Above 0, at most 1.
    protects : {"presence", "value"}, default "presence"
        A person who changes cells changes two of them, which takes about twice the noise.
    days : int, default 1
        How many equal releases are to reach the target together.
    evidence : Evidence or list of Evidence, optional
        What is declared so that they add up, see `compose`; what noise guarantees by itself needs none.

    Returns
    -------
    GeometricNoise or None
        The target holds with it, and fails at the next larger ε (for a count without `k` against an attacker whose
        `p_min`, `p_max` and `unknown` are declared, where there are several releases or more than a thousand unknown
        people: at an ε that is larger by at most 0.1 %). None where the mechanism reaches the target without any noise.

    Raises
    ------
    NotCertifiableError
        If no noise reaches the target; the message names what would.
    NoEvidenceError
        If several releases are asked about that do not add up with what is declared.
    ArgumentError
        If an argument is malformed.

    Notes
    -----
    *Guarantee*: the target holds with the answer, as certified. *Rounding*: the ε of the noise is rounded down, to a
    float. What noise certifies by itself grows with its ε. Where attackers are searched (`p_min` and `unknown`
    declared), or many releases are added up on a grid, the certified δ follows the true one with a slack, up to 1 %;
    there slightly less noise may reach the target too.
    """
    target = read_target(epsilon, delta, protects, days, evidence)
    mechanism_name(mechanism)
    model = read_attacker(attacker)
    exact = replace(mechanism, noise=None, release_threshold=None)
    try:
        if target.loss(exact, model) <= target.delta:
            return None
    except NoEvidenceError:
        pass  # noise adds up without evidence

    @cache
    def loss(noise: float) -> float:
        return target.loss(replace(mechanism, noise=GeometricNoise(noise)), model)

    suppressed = mechanism.k is not None or (isinstance(mechanism, Count) and mechanism.k_complement is not None)
    if suppressed:
        found = _after_suppression(loss, mechanism, model.against_anyone(), target)
    else:
        helped = guessed_noise(model, target) if isinstance(mechanism, Count) else None
        long = helped is not None and (target.days > 1 or (model.unknown or 0) > _MANY_UNKNOWN)
        found = _alone(loss, target, helped or guessed_noise_alone(target), _CLOSE if long else 0.0)
    if found is None:
        if model.leakage:
            # What is known besides may leave nothing to promise, whatever the noise.
            certify(replace(mechanism, noise=GeometricNoise(1.0)), model, protects=protects)
        raise NotCertifiableError(_unreachable(mechanism, target, model.against_anyone()))
    return GeometricNoise(found)


def _alone(
    loss: Callable[[float], float], target: Target, helped: float | None = None, close: float = 0.0
) -> float | None:
    """Return the largest ε of noise before which nothing is suppressed: the narrower it is, the less it hides.

    It lies about at `helped`, where less noise will do than the sum over the releases needs.
    """
    bracket = _bracket(loss, target, helped)
    if bracket is None:
        return None
    holds, fails = bracket
    return holds if fails == math.inf else _last(loss, target, holds, fails, close)


def _bracket(loss: Callable[[float], float], target: Target, helped: float | None) -> tuple[float, float] | None:
    """Return an ε that reaches the target and a larger one that does not, infinity where all do; None where none."""
    sure = _first_guess(target)
    holds, fails, stride = sure, math.inf, 2.0**-20
    if helped is not None and helped > sure:
        if loss(helped) <= target.delta:
            holds, stride = helped, 0.03
        else:
            fails = helped
    if fails < math.inf:
        # Come down by ever larger strides, to what the noise alone makes sure.
        shrink = 0.97
        while fails * shrink > sure and not loss(fails * shrink) <= target.delta:
            fails, shrink = fails * shrink, shrink * shrink
        holds = max(fails * shrink, sure)
    if holds == sure:
        while not loss(holds) <= target.delta:
            holds, fails = 0.5 * holds, holds
            if holds < SMALLEST_EPSILON:
                return None
    while fails == math.inf:
        probe = min(holds * (1.0 + stride), _NARROWEST)
        if not loss(probe) <= target.delta:
            return holds, probe
        holds, stride = probe, 32.0 * stride
        if holds == _NARROWEST:
            return holds, fails
    return holds, fails


def _after_suppression(
    loss: Callable[[float], float], mechanism: Mechanism, attacker: AttackerModel, target: Target
) -> float | None:
    """Return the largest ε of noise after a `k`: too wide noise lifts what has just reached k over the threshold."""
    if mechanism.release_threshold is None or getattr(mechanism, "k_complement", None) is not None:
        return None
    bare = type(mechanism)()
    alone = _alone(
        lambda noise: target.loss(replace(bare, noise=GeometricNoise(noise)), attacker),
        target,
        guessed_noise_alone(target),
    )
    if alone is None:
        return None
    if loss(alone) <= target.delta:
        return alone
    reached = _some_noise(loss, target, alone)
    return None if reached is None else _last(loss, target, reached, alone)


def _some_noise(loss: Callable[[float], float], target: Target, most: float) -> float | None:
    """Return an ε below `most` that reaches the target: golden-section search for the smallest δ, up to the first."""
    low, high = math.log(most) - 3.0, math.log(most)
    near, far = low + _GOLDEN * (high - low), high - _GOLDEN * (high - low)
    losses = {point: loss(math.exp(point)) for point in (far, near)}
    for _ in range(_EVALUATIONS):
        best = min(losses, key=lambda point: losses[point])
        if losses[best] <= target.delta:
            return math.exp(best)
        if losses[far] <= losses[near]:
            high, near = near, far
            far = high - _GOLDEN * (high - low)
            losses[far] = loss(math.exp(far))
        else:
            low, far = far, near
            near = low + _GOLDEN * (high - low)
            losses[near] = loss(math.exp(near))
    return None


def _first_guess(target: Target) -> float:
    """Return an ε that one release's noise may have: exact for one release, the sum's share for several."""
    cells = _cells(target)
    share, delta = target.epsilon / target.days, target.delta / target.days
    if delta >= 1.0:
        return max(share / cells, 1.0)
    growth = math.exp(min(share, 700.0))
    if cells == 1:
        guess = math.log((growth + delta) / (1.0 - delta))
    else:
        # The positive root of α²(e^ε + δ) + 2δα + δ - 1.
        root = math.sqrt(delta * delta + (1.0 - delta) * (growth + delta))
        guess = math.log((growth + delta) / (root - delta))
    return max(guess * (1.0 - 2.0**-40), 2.0 * SMALLEST_EPSILON)


def _last(loss: Callable[[float], float], target: Target, holds: float, fails: float, close: float = 0.0) -> float:
    """Narrow a bracket; below the share of ε that every release has when δ is 0, none is lost."""
    free = target.epsilon / (target.days * _cells(target))
    start = free if free < holds else 0.0

    def forward(noise: float) -> float:
        return math.log(noise - start)

    def backward(height: float) -> float:
        return start + math.exp(min(height, 709.0))

    return last_float(loss, target.delta, holds, fails, scale=(forward, backward), close=close)


def _cells(target: Target) -> int:
    return 2 if target.protects == "value" else 1


def _unreachable(mechanism: Mechanism, target: Target, anyone: AttackerModel) -> str:
    """Say why no noise reaches the target, and what would, with numbers."""
    start = f"no noise reaches {target.words}: "
    if getattr(mechanism, "k_complement", None) is not None:
        return start + "noise guarantees nothing after k_complement. Leave k_complement out."
    if mechanism.k is None and any(one.is_private for one in anyone.leakage):
        return start + "what leaks besides counts as part of it. Allow a larger epsilon or delta."
    if mechanism.k is None:
        return start + "it would be too wide to be drawn. Allow a larger epsilon or delta."
    offered, offer = noise_after(replace(mechanism, noise=None, release_threshold=None), target, anyone), ""
    if offered is not None and offered.noise is not None:
        offer = (
            f", for instance release_threshold = {offered.release_threshold} with noise of epsilon "
            f"{offered.noise.epsilon!r}"
        )
    if mechanism.release_threshold is None:
        return (
            f"{start}after k = {mechanism.k} it guarantees nothing without a release threshold. Give the mechanism "
            f"release_threshold and any noise{offer}."
        )
    return (
        f"{start}with release_threshold = {mechanism.release_threshold}, a count that has just reached k = "
        f"{mechanism.k} shows itself too often. Raise release_threshold{offer}."
    )


def noise_after(mechanism: Mechanism, target: Target, anyone: AttackerModel) -> Mechanism | None:
    """Return the mechanism, which has a `k`, with noise and a release threshold that reach the target for `anyone`.

    The noise is the least that it needs by itself, where a threshold can be had beside it; else it leaves half of δ
    to the threshold, or loses no δ at all, and is then the least that goes with that threshold.
    """
    asked: dict[str, Any] = {"attacker": anyone, "epsilon": target.epsilon, "protects": target.protects}
    asked |= {"days": target.days, "evidence": target.evidence}
    for delta in (target.delta, 0.5 * target.delta, 0.0):
        try:
            if delta > 0.0:
                noise = smallest_noise(type(mechanism)(), delta=delta, **asked)
            else:
                # A little less than an equal share of ε, so that the sum of the shares is not rounded above it.
                share = target.epsilon / (target.days * _cells(target)) * (1.0 - 2.0**-40)
                noise = GeometricNoise(share) if share > SMALLEST_EPSILON else None
            if noise is None:
                continue
            return _settled(replace(mechanism, noise=noise), target, asked)
        except NotCertifiableError:
            continue
    return None


def _settled(mechanism: Mechanism, target: Target, asked: dict[str, Any]) -> Mechanism:
    """Return the mechanism with the least threshold for its noise, and with less noise as long as that lowers it."""
    least = None
    for _ in range(_ROUNDS):
        threshold = smallest_release_threshold(mechanism, delta=target.delta, **asked)
        if threshold == least:
            return mechanism
        least = threshold
        mechanism = replace(mechanism, release_threshold=threshold)
        noise = smallest_noise(mechanism, delta=target.delta, **asked)
        if noise is None or noise == mechanism.noise:
            return mechanism
        mechanism = replace(mechanism, noise=noise)
    return mechanism
