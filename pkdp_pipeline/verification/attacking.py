"""The claims about attackers: none of those who were tried learns more than the file says, whatever its theorems."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

import numpy as np

from pkdp_pipeline.attacks.simulation import simulated
from pkdp_pipeline.release_certificate import ReleaseCertificate
from pkdp_pipeline.sentences import rounded_up
from pkdp_pipeline.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.verification.recomputing import Nested
from pkdp_pipeline.verification.trying import Attained, Tried, simulable, tried_by_anyone, tried_by_declared

__all__ = ["Effort", "attack_claims"]

_DECLARED = "No declared attacker who was tried by exact enumeration learns more than the file says."
_SIMULATED = "No declared attacker who was tried by simulation learns more than the file says."
_ANYONE = "No attacker who knows everybody else, tried by exact enumeration, learns more than the noise allows."

_SAME = Fraction(1, 10**9)
"""Relative difference at which two evaluations of the same number, on different machines, are the same."""

MOST = 12
"""So many different releases of a total are tried."""

MOST_SIMULATED = 3
"""So many of them by simulation, which takes longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closest:
    """How much of a stored δ was attained where it is most."""

    percent: int
    epsilon: float

    @classmethod
    def of(cls, attained: Attained, delta: float) -> _Closest:
        share = attained.delta / Fraction(delta)
        return cls(percent=math.floor(100 * min(share, Fraction(1))), epsilon=attained.epsilon)

    def order(self) -> tuple[int, bool, float]:
        """Return what sorts by the share; of equals, the ε that people read comes last."""
        return self.percent, self.epsilon in (0.5, 1.0), self.epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is simulated.

    Parameters
    ----------
    draws : int
        For every simulation.
    confidence : float
        With which all simulations together find nothing where nothing is.
    seed : int
    """

    draws: int
    confidence: float
    seed: int

    def shared(self, certificates: int) -> Effort:
        """Return the effort for each of several certificates, so that all of them together have the confidence."""
        return replace(self, confidence=1.0 - (1.0 - self.confidence) / max(1, certificates))


def attack_claims(nested: Sequence[Nested], effort: Effort, prefix: str = "certificate") -> Iterator[Claim]:
    """Yield what attackers attain of every release in a certificate, held against the stored numbers."""
    several = len(nested) > 1
    releases, more = _different(nested)
    declared: list[tuple[list[Nested], Tried]] = []
    anyone: list[tuple[list[Nested], Tried]] = []
    for same in releases:
        certificate = same[0].certificate
        assert isinstance(certificate, ReleaseCertificate)
        if certificate.has_partial_knowledge:
            declared.append((same, tried_by_declared(certificate, _epsilons(same, worst=False))))
        if certificate.worst_case_bound is not None:
            anyone.append((same, tried_by_anyone(certificate, _epsilons(same, worst=True))))
    left = f" {more} more different releases were not tried." if more else ""
    if declared:
        about = f", in {_releases(len(declared))}," if several else ""
        yield _claim(f"{prefix}.enumerated", _DECLARED, declared, about, left, worst=False)
        yield from _simulations(declared, effort, f"{prefix}.simulated", several=several)
    if anyone:
        about = f", in {_releases(len(anyone))}," if several else ""
        yield _claim(f"{prefix}.anyone", _ANYONE, anyone, about, left, worst=True)


def _simulations(
    tried: Sequence[tuple[list[Nested], Tried]], effort: Effort, key: str, *, several: bool
) -> Iterator[Claim]:
    """Yield what simulating finds of attackers who are too large to enumerate; nothing where nobody is."""
    chosen = [(same, simulable(found)) for same, found in tried[:MOST_SIMULATED]]
    number = sum(len(listed) for _, listed in chosen)
    if not number:
        return
    # Each of them may err, and all of them together seldom do (Bonferroni).
    share = 1.0 - (1.0 - effort.confidence) / number
    generator = np.random.default_rng(effort.seed)
    evidence: dict[str, Any] = {"simulations": number, "draws": effort.draws, "confidence": effort.confidence}
    closest: _Closest | None = None
    for same, listed in chosen:
        for epsilon, crowd in listed:
            mechanism = same[0].certificate.mechanism  # type: ignore[attr-defined]  # of a release
            trial = simulated(mechanism, crowd, epsilon, draws=effort.draws, confidence=share, generator=generator)
            lower = Attained(epsilon=epsilon, delta=Fraction(trial.lower), crowd=crowd)
            for one in same:
                delta = _stored(one, worst=False).get(epsilon, 1.0)
                if lower.delta > Fraction(delta) * (1 + _SAME):
                    yield failed(key, _SIMULATED, _above(one, lower, delta), **evidence, epsilon=epsilon, stored=delta)
                    return
                if delta > 0.0:
                    reached = _Closest.of(lower, delta)
                    closest = reached if closest is None else max(closest, reached, key=_Closest.order)
    tight = ""
    if closest is not None:
        evidence |= {"percent": closest.percent, "epsilon": closest.epsilon}
        tight = f"; the closest reaches at least {closest.percent} % of it (ε = {closest.epsilon:g})"
    about = f", in {_releases(len(chosen))}," if several else ""
    yield passed(
        key,
        _SIMULATED,
        f"{number} {'simulation' if number == 1 else 'simulations'} of {effort.draws:,} draws{about}: none above, with "
        f"confidence {effort.confidence:g} for all together{tight}.",
        **evidence,
    )


def _different(nested: Sequence[Nested]) -> tuple[list[list[Nested]], int]:
    """Return the releases of a certificate, those with the same mechanism and attacker together, and how many more."""
    found: dict[str, list[Nested]] = {}
    for one in nested:
        if isinstance(one.certificate, ReleaseCertificate):
            same = json.dumps([one.document[name] for name in ("mechanism", "attacker", "protects")], sort_keys=True)
            found.setdefault(same, []).append(one)
    groups = list(found.values())
    return groups[:MOST], max(0, len(groups) - MOST)


def _stored(one: Nested, *, worst: bool) -> dict[float, float]:
    """Return the stored δ, by ε: of the certificate, or of what holds against anyone."""
    about = one.document["worst_case"]
    pairs = list(one.document["grid"])
    if worst:
        # Where nothing rests on the attacker model, the certificate is one against anyone as a whole.
        pairs = [] if one.certificate.has_partial_knowledge else pairs
        pairs += (
            [] if about is None else [*about.get("grid", ()), {"epsilon": about["epsilon"], "delta": about["delta"]}]
        )
    found: dict[float, float] = {}
    for pair in pairs:
        epsilon, delta = float(pair["epsilon"]), float(pair["delta"])
        found[epsilon] = min(delta, found.get(epsilon, 1.0))
    return found


def _epsilons(same: Sequence[Nested], *, worst: bool) -> list[float]:
    return sorted({epsilon for one in same for epsilon in _stored(one, worst=worst)})


def _claim(
    key: str, words: str, tried: Sequence[tuple[list[Nested], Tried]], about: str, left: str, *, worst: bool
) -> Claim:
    trials = sum(found.trials for _, found in tried)
    people = sum(len(found.crowds) for _, found in tried)
    skipped = sum(len(found.left) for _, found in tried)
    evidence: dict[str, Any] = {"trials": trials, "attackers": people, "too_large": skipped}
    closest: _Closest | None = None
    for same, found in tried:
        for one in same:
            for epsilon, delta in _stored(one, worst=worst).items():
                attained = found.best.get(epsilon)
                if attained is None:
                    continue
                if attained.delta > Fraction(delta) * (1 + _SAME):
                    return failed(key, words, _above(one, attained, delta), **evidence, epsilon=epsilon, stored=delta)
                if attained.delta:
                    reached = _Closest.of(attained, delta)
                    closest = reached if closest is None else max(closest, reached, key=_Closest.order)
    if not trials:
        why = "Every attacker who matters is too large to enumerate." if skipped else "There is nobody to try."
        return not_checked(key, words, f"{why}{left}", **evidence)
    tight = "; none of them learns anything"
    if closest is not None:
        evidence |= {"percent": closest.percent, "epsilon": closest.epsilon}
        tight = f"; the closest reaches {closest.percent} % of it (ε = {closest.epsilon:g})"
    return passed(
        key, words, f"{trials} exact trials of {people} attackers{about}: none above{tight}.{left}", **evidence
    )


def _releases(number: int) -> str:
    return "1 release" if number == 1 else f"{number} different releases"


def _above(one: Nested, attained: Attained, delta: float) -> str:
    return (
        f"An attacker within the declaration attains δ = {_rounded_down(attained.delta)} at ε = {attained.epsilon:g}, "
        f"where {one.path} says {rounded_up(delta, 6)}."
    )


def _rounded_down(share: Fraction, digits: int = 6) -> str:
    """Return a δ that is attained as text, rounded down."""
    down, up = Context(prec=digits, rounding=ROUND_FLOOR), Context(prec=60, rounding=ROUND_CEILING)
    wide = Context(prec=60, rounding=ROUND_FLOOR)
    return f"{down.divide(wide.create_decimal(share.numerator), up.create_decimal(share.denominator)):g}"
