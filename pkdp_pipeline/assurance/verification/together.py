"""The claim about attackers who look at several releases of a total and add up what each of them says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from numpy.random import Generator

from pkdp_pipeline.assurance.attacks.schedules import (
    Schedule,
    enumerated_schedule,
    schedules,
    simulated_schedule,
    worst_schedules,
)
from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.closeness import SAME, Closest, above, stored_deltas
from pkdp_pipeline.assurance.verification.recomputing import Nested
from pkdp_pipeline.certificates.composed import ComposedCertificate

__all__ = ["together_claims"]

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
