"""The claims about attackers: none of those who were tried learns more than the file says, whatever its theorems."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pkdp_pipeline.assurance.attacks.simulation import simulated
from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.closeness import SAME, Closest, above, stored_deltas
from pkdp_pipeline.assurance.verification.recomputing import Nested
from pkdp_pipeline.assurance.verification.together import together_claims
from pkdp_pipeline.assurance.verification.trying import Attained, Tried, simulable, tried_by_anyone, tried_by_declared
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate

__all__ = ["Effort", "attack_claims"]

_DECLARED = "No declared attacker who was tried by exact enumeration learns more than the file says."
_SIMULATED = "No declared attacker who was tried by simulation learns more than the file says."
_ANYONE = "No attacker who knows everybody else, tried by exact enumeration, learns more than the noise allows."

MOST = 12
"""So many different releases of a total are tried."""

MOST_SIMULATED = 3
"""So many of them by simulation, which takes longer."""


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
    part = effort.shared(2) if several else effort
    left = f" {more} more different releases were not tried." if more else ""
    if declared:
        about = f", in {_releases(len(declared))}" if several else ""
        yield _claim(f"{prefix}.enumerated", _DECLARED, declared, about, left, worst=False)
        yield from _simulations(declared, part, f"{prefix}.simulated", several=several)
    if anyone:
        about = f", in {_releases(len(anyone))}" if several else ""
        yield _claim(f"{prefix}.anyone", _ANYONE, anyone, about, left, worst=True)
    yield from together_claims(
        nested,
        f"{prefix}.together",
        draws=part.draws,
        confidence=part.confidence,
        generator=np.random.default_rng(effort.seed),
    )


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
    closest: Closest | None = None
    for same, listed in chosen:
        for epsilon, crowd in listed:
            mechanism = same[0].certificate.mechanism  # type: ignore[attr-defined]  # of a release
            trial = simulated(mechanism, crowd, epsilon, draws=effort.draws, confidence=share, generator=generator)
            lower = Attained(epsilon=epsilon, delta=Fraction(trial.lower), crowd=crowd)
            for one in same:
                delta = stored_deltas(one, worst=False).get(epsilon, 1.0)
                if lower.delta > Fraction(delta) * (1 + SAME):
                    yield failed(
                        key,
                        _SIMULATED,
                        above(one, lower.delta, epsilon, delta),
                        **evidence,
                        epsilon=epsilon,
                        stored=delta,
                    )
                    return
                if delta > 0.0:
                    reached = Closest.of(lower.delta, epsilon, delta)
                    closest = reached if closest is None else max(closest, reached, key=Closest.order)
    tight = ""
    if closest is not None:
        evidence |= {"percent": closest.percent, "epsilon": closest.epsilon}
        tight = f"; the closest reaches at least {closest.percent} % of it (ε = {closest.epsilon:g})"
    about = f", in {_releases(len(chosen))}" if several else ""
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


def _epsilons(same: Sequence[Nested], *, worst: bool) -> list[float]:
    return sorted({epsilon for one in same for epsilon in stored_deltas(one, worst=worst)})


def _claim(
    key: str, words: str, tried: Sequence[tuple[list[Nested], Tried]], about: str, left: str, *, worst: bool
) -> Claim:
    trials = sum(found.trials for _, found in tried)
    people = sum(len(found.crowds) for _, found in tried)
    skipped = sum(len(found.left) for _, found in tried)
    evidence: dict[str, Any] = {"trials": trials, "attackers": people, "too_large": skipped}
    closest: Closest | None = None
    for same, found in tried:
        for one in same:
            for epsilon, delta in stored_deltas(one, worst=worst).items():
                attained = found.best.get(epsilon)
                if attained is None:
                    continue
                if attained.delta > Fraction(delta) * (1 + SAME):
                    return failed(
                        key,
                        words,
                        above(one, attained.delta, epsilon, delta),
                        **evidence,
                        epsilon=epsilon,
                        stored=delta,
                    )
                if attained.delta:
                    reached = Closest.of(attained.delta, attained.epsilon, delta)
                    closest = reached if closest is None else max(closest, reached, key=Closest.order)
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
