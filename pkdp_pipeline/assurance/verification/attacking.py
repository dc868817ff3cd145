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
from numpy.random import Generator

from pkdp_pipeline.assurance.attacks.schedules import (
    Schedule,
    enumerated_schedule,
    schedules,
    simulated_schedule,
    worst_schedules,
)
from pkdp_pipeline.assurance.attacks.simulation import simulated
from pkdp_pipeline.assurance.verification.certificates import Nested
from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.trying import Attained, Tried, simulable, tried_by_anyone, tried_by_declared
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.model.wording import rounded_up

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


_TOGETHER = "No attacker who was tried on several releases together learns more than the total says."

_AT = (1.0, 0.5, 0.1)
_MOST = 20
"""So many schedules are tried at each ε; and of those who are drawn, so many in all:"""

_MOST_DRAWN = 4
_LARGEST_TOTAL = 3000
"""Totals of more releases than this are not tried: drawing one of their trajectories takes as long as they are."""


def together_claims(
    nested: Sequence[Nested], key: str, *, draws: int, confidence: float, generator: Generator
) -> Iterator[Claim]:
    """Yield what attackers on several releases attain of the totals in a certificate; nothing where there is none."""
    totals = [one for one in nested if isinstance(one.certificate, ComposedCertificate)]
    if not totals:
        return
    trials = drawn = 0
    closest: Closest | None = None
    for one in totals[-1:]:  # the total itself: its parts are tried one by one
        for epsilon, schedule, worst in _chosen(one):
            delta = stored_deltas(one, worst=worst)[epsilon]
            exact = enumerated_schedule(schedule, epsilon)
            if exact is not None:
                lower = exact.lower
            elif drawn < _MOST_DRAWN:
                drawn += 1
                share = 1.0 - (1.0 - confidence) / _MOST_DRAWN
                trial = simulated_schedule(schedule, epsilon, draws=draws, confidence=share, generator=generator)
                if trial is None:
                    continue
                lower = Fraction(trial.lower)
            else:
                continue
            trials += 1
            if lower > Fraction(delta) * (1 + SAME):
                yield failed(key, _TOGETHER, above(one, lower, epsilon, delta), epsilon=epsilon, stored=delta)
                return
            if delta > 0.0:
                reached = Closest.of(lower, epsilon, delta)
                closest = reached if closest is None else max(closest, reached, key=Closest.order)
    evidence: dict[str, Any] = {"trials": trials, "simulations": drawn, "draws": draws, "confidence": confidence}
    if not trials:
        yield not_checked(key, _TOGETHER, "No attack on releases like these together is known, or they are too large.")
        return
    tight = ""
    if closest is not None:
        evidence |= {"percent": closest.percent, "epsilon": closest.epsilon}
        tight = f"; the closest reaches at least {closest.percent} % of it (ε = {closest.epsilon:g})"
    how = (
        f", {drawn} of them by {draws:,} draws with confidence {confidence:g} for all together" if drawn else ", exact"
    )
    yield passed(
        key, _TOGETHER, f"{trials} {'trial' if trials == 1 else 'trials'}{how}: none above{tight}.", **evidence
    )


def _chosen(one: Nested) -> Iterator[tuple[float, Schedule, bool]]:
    """Yield ε, a schedule, and whether it is of attackers who know everybody."""
    certificate = one.certificate
    assert isinstance(certificate, ComposedCertificate)
    if certificate.releases > _LARGEST_TOTAL:
        return
    for worst in (False, True):
        if worst and certificate.worst_case_bound is None:
            continue
        if not worst and not certificate.has_partial_knowledge:
            continue
        stored = stored_deltas(one, worst=worst)
        for epsilon in _AT:
            if epsilon in stored:
                found = worst_schedules(certificate) if worst else schedules(certificate, epsilons=(epsilon,))
                # Those who look at most releases first.
                for schedule in sorted(found, key=lambda each: -each.releases)[:_MOST]:
                    yield epsilon, schedule, worst


SAME = Fraction(1, 10**9)
"""Relative difference at which two evaluations of the same number, on different machines, are the same."""

_READ = (0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closest:
    """How much of a stored δ was attained, in whole percent rounded down, and where."""

    percent: int
    epsilon: float

    @classmethod
    def of(cls, attained: Fraction, epsilon: float, delta: float) -> Closest:
        """Return how much of `delta` is attained at `epsilon`."""
        return cls(percent=math.floor(100 * min(attained / Fraction(delta), Fraction(1))), epsilon=epsilon)

    def order(self) -> tuple[int, bool, float]:
        """Return what sorts by the share; of equals, the ε that people read comes last."""
        return self.percent, self.epsilon in _READ, self.epsilon


def stored_deltas(one: Nested, *, worst: bool) -> dict[float, float]:
    """Return the stored δ, by ε: of the certificate, or of what holds against anyone."""
    about = one.document["worst_case"]
    pairs = list(one.document["grid"])
    if worst:
        # Where nothing rests on the attacker model, the certificate is one against anyone as a whole.
        pairs = [] if one.certificate.has_partial_knowledge else pairs
        pairs += [] if about is None else [*about.get("grid", ()), {name: about[name] for name in ("epsilon", "delta")}]
    found: dict[float, float] = {}
    for pair in pairs:
        epsilon, delta = float(pair["epsilon"]), float(pair["delta"])
        found[epsilon] = min(delta, found.get(epsilon, 1.0))
    return found


def above(one: Nested, attained: Fraction, epsilon: float, delta: float) -> str:
    """Return that more is attained than is stored, in words."""
    return (
        f"An attacker within the declaration attains δ = {_rounded_down(attained)} at ε = {epsilon:g}, where "
        f"{one.path} says {rounded_up(delta, 6)}."
    )


def _rounded_down(share: Fraction, digits: int = 6) -> str:
    """Return a δ that is attained as text, rounded down."""
    down, up = Context(prec=digits, rounding=ROUND_FLOOR), Context(prec=60, rounding=ROUND_CEILING)
    wide = Context(prec=60, rounding=ROUND_FLOOR)
    return f"{down.divide(wide.create_decimal(share.numerator), up.create_decimal(share.denominator)):g}"
