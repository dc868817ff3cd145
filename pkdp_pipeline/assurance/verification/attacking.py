"""The claims about attackers: none of those who were tried learns more than the file says, whatever its theorems."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pkdp_pipeline.assurance.attacks import LARGEST, Crowd, enumerated, knowing_all, matching, size, vertices
from pkdp_pipeline.assurance.attacks.enumeration import Enumerated
from pkdp_pipeline.assurance.attacks.schedules import (
    Schedule,
    enumerated_schedule,
    schedules,
    simulated_schedule,
    worst_schedules,
)
from pkdp_pipeline.assurance.attacks.simulation import Simulated, simulated
from pkdp_pipeline.assurance.verification.certificates import Nested
from pkdp_pipeline.assurance.verification.claims import BrokenError, Claim, UncheckedError, claim_of
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.model.wording import rounded_down, rounded_up
from pkdp_pipeline.theorems import Protects

_DECLARED = "No declared attacker who was tried by exact enumeration learns more than the file says."
_SIMULATED = "No declared attacker who was tried by simulation learns more than the file says."
_ANYONE = "No attacker who knows everybody else, tried by exact enumeration, learns more than the noise allows."
_TOGETHER = "No attacker who was tried on several releases together learns more than the total says."

MOST = 12
"""So many different releases of a total are tried."""

MOST_SIMULATED = 3
"""So many of them by simulation, which takes longer."""

SAME = Fraction(1, 10**9)
"""Relative difference at which two evaluations of the same number, on different machines, are the same."""

_READ = (0.5, 1.0)
_AT = (1.0, 0.5, 0.1)
_MOST = 20
"""So many schedules are tried at each ε; and of those who are drawn, so many in all:"""

_MOST_DRAWN = 4
_LARGEST_TOTAL = 3000
"""Totals of more releases than this are not tried: drawing one of their trajectories takes as long as they are."""


_ONE_CELL = 1_000_000
_SEVERAL_CELLS = 400_000
"""How many terms are enumerated for one certificate; either takes about a second."""

_ONE_TRIAL = {True: LARGEST, False: 130_000}
"""How many of them for one trial, with a single cell and with several."""

_FIRST = (1.0, 0.5, 2.0, 0.1)
"""Tried first, so that some ε is tried even where little can be."""

_VERTICES_AT = (0.5, 1.0)
_FARTHEST = 100.0

_SIMULATED_AT = (0.1, 0.5)
"""Where a few ten thousand draws can come close to what is certified."""

_SIMULATED_EACH = 2
_MOST_PEOPLE = 10_000_000


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

    @property
    def evidence(self) -> dict[str, Any]:
        """Return it as numbers behind a claim."""
        return {"draws": self.draws, "confidence": self.confidence}


@dataclass(slots=True, kw_only=True)
class _Tried:
    """What enumerating attackers has found.

    Parameters
    ----------
    best : dict of float to Fraction
        The most that was found to be attained, by ε.
    trials : int
    crowds : set of Crowd
        Who was tried.
    left : list of (float, Crowd)
        Who was too large, in the order of importance.
    """

    best: dict[float, Fraction] = field(default_factory=dict)
    trials: int = 0
    crowds: set[Crowd] = field(default_factory=set)
    left: list[tuple[float, Crowd]] = field(default_factory=list)


_Same = list[Nested]
"""Releases of a certificate with the same mechanism and attacker."""

_Reached = tuple[Fraction, float, Nested, float]
"""What is attained at least, at which ε, of which certificate, and the δ that it states there."""


def attack_claims(nested: Sequence[Nested], effort: Effort, prefix: str = "certificate") -> Iterator[Claim]:
    """Yield what attackers attain of every release in a certificate, held against the stored numbers."""
    several = len(nested) > 1
    releases, more = _different(nested)
    declared: list[tuple[_Same, _Tried]] = []
    anyone: list[tuple[_Same, _Tried]] = []
    for same in releases:
        certificate = same[0].certificate
        assert isinstance(certificate, ReleaseCertificate)
        if certificate.has_partial_knowledge:
            declared.append((same, _tried_by_declared(certificate, _epsilons(same, worst=False))))
        if certificate.worst_case_bound is not None:
            anyone.append((same, _tried_by_anyone(certificate, _epsilons(same, worst=True))))
    part = effort.shared(2) if several else effort
    left = f" {more} more different releases were not tried." if more else ""
    drawn = [(same, _drawable(found)) for same, found in declared[:MOST_SIMULATED]]
    totals = [one for one in nested if isinstance(one.certificate, ComposedCertificate)]
    if declared:
        enumerate_ = functools.partial(_enumerated, declared, several, left, worst=False)
        yield claim_of(f"{prefix}.enumerated", _DECLARED, enumerate_)
    if any(listed for _, listed in drawn):
        yield claim_of(f"{prefix}.simulated", _SIMULATED, functools.partial(_simulated, drawn, part, several))
    if anyone:
        enumerate_ = functools.partial(_enumerated, anyone, several, left, worst=True)
        yield claim_of(f"{prefix}.anyone", _ANYONE, enumerate_)
    if totals:  # the total itself: its parts are tried one by one
        yield claim_of(f"{prefix}.together", _TOGETHER, functools.partial(_together, totals[-1], part))


def _judged(reached: Iterable[_Reached], evidence: dict[str, Any], *, least: str = "") -> str:
    """Return how much of the stored numbers was attained in the closest case, which becomes evidence too.

    Raises
    ------
    BrokenError
        If more is attained somewhere.
    """
    closest: tuple[int, bool, float] | None = None
    for lower, epsilon, one, delta in reached:
        if lower > Fraction(delta) * (1 + SAME):
            raise BrokenError(
                f"An attacker within the declaration attains δ = {rounded_down(lower, 6)} at ε = {epsilon:g}, where "
                f"{one.path} says {rounded_up(delta, 6)}.",
                **evidence,
                epsilon=epsilon,
                stored=delta,
            )
        if delta > 0.0:
            percent = math.floor(100 * min(lower / Fraction(delta), Fraction(1)))
            # Of equal shares, the ε that people read comes last.
            closest = max(closest or (0, False, 0.0), (percent, epsilon in _READ, epsilon))
    if closest is None:
        return ""
    evidence |= {"percent": closest[0], "epsilon": closest[2]}
    return f"; the closest reaches {least}{closest[0]} % of it (ε = {closest[2]:g})"


def _enumerated(
    tried: Sequence[tuple[_Same, _Tried]], several: bool, left: str, *, worst: bool
) -> tuple[str, dict[str, Any]]:
    """Return what exact trials of attackers on single releases attain."""
    trials, people = sum(found.trials for _, found in tried), sum(len(found.crowds) for _, found in tried)
    skipped = sum(len(found.left) for _, found in tried)
    evidence: dict[str, Any] = {"trials": trials, "attackers": people, "too_large": skipped}
    tight = _judged(
        (
            (found.best[epsilon], epsilon, one, delta)
            for same, found in tried
            for one in same
            for epsilon, delta in _stored(one, worst=worst).items()
            if epsilon in found.best
        ),
        evidence,
    )
    if not trials:
        why = "Every attacker who matters is too large to enumerate." if skipped else "There is nobody to try."
        raise UncheckedError(f"{why}{left}", **evidence)
    return f"{trials} exact trials of {people} attackers{_about(several, tried)}: none above{tight}.{left}", evidence


def _simulated(chosen: Sequence[tuple[_Same, Any]], effort: Effort, several: bool) -> tuple[str, dict[str, Any]]:
    """Return what is found by drawing attackers who are too large to enumerate."""
    number = sum(len(listed) for _, listed in chosen)
    # Each of them may err, and all of them together seldom do (Bonferroni).
    share = effort.shared(number).confidence
    generator = np.random.default_rng(effort.seed)
    evidence: dict[str, Any] = {"simulations": number, **effort.evidence}

    def reached() -> Iterator[_Reached]:
        for same, listed in chosen:
            for epsilon, crowd in listed:
                mechanism = same[0].certificate.mechanism  # type: ignore[attr-defined]  # of a release
                trial = simulated(mechanism, crowd, epsilon, draws=effort.draws, confidence=share, generator=generator)
                for one in same:
                    yield Fraction(trial.lower), epsilon, one, _stored(one, worst=False).get(epsilon, 1.0)

    tight = _judged(reached(), evidence, least="at least ")
    return (
        f"{number} {'simulation' if number == 1 else 'simulations'} of {effort.draws:,} draws{_about(several, chosen)}"
        f": none above, with confidence {effort.confidence:g} for all together{tight}.",
        evidence,
    )


def _together(one: Nested, effort: Effort) -> tuple[str, dict[str, Any]]:
    """Return what attackers on several releases attain of their total."""
    evidence: dict[str, Any] = {"trials": 0, "simulations": 0, **effort.evidence}
    share, generator = effort.shared(_MOST_DRAWN).confidence, np.random.default_rng(effort.seed)

    def reached() -> Iterator[_Reached]:
        for epsilon, schedule, delta in _chosen(one):
            trial: Enumerated | Simulated | None = enumerated_schedule(schedule, epsilon)
            if trial is None:
                if evidence["simulations"] == _MOST_DRAWN:
                    continue
                evidence["simulations"] += 1
                trial = simulated_schedule(schedule, epsilon, draws=effort.draws, confidence=share, generator=generator)
            if trial is not None:
                evidence["trials"] += 1
                yield Fraction(trial.lower), epsilon, one, delta

    tight = _judged(reached(), evidence, least="at least ")
    trials, drawn = evidence["trials"], evidence["simulations"]
    if not trials:
        raise UncheckedError("No attack on releases like these together is known, or they are too large.")
    how = ", exact"
    if drawn:
        how = f", {drawn} of them by {effort.draws:,} draws with confidence {effort.confidence:g} for all together"
    return f"{trials} {'trial' if trials == 1 else 'trials'}{how}: none above{tight}.", evidence


def _chosen(one: Nested) -> Iterator[tuple[float, Schedule, float]]:
    """Yield ε, a schedule, and the δ that is stored there: of those who are declared, then of those who know all."""
    certificate = one.certificate
    assert isinstance(certificate, ComposedCertificate)
    if certificate.releases > _LARGEST_TOTAL:
        return
    for worst in (False, True):
        if certificate.worst_case_bound is None if worst else not certificate.has_partial_knowledge:
            continue
        stored = _stored(one, worst=worst)
        for epsilon in _AT:
            if epsilon in stored:
                found = worst_schedules(certificate) if worst else schedules(certificate, epsilons=(epsilon,))
                # Those who look at most releases first.
                for schedule in sorted(found, key=lambda each: -each.releases)[:_MOST]:
                    yield epsilon, schedule, stored[epsilon]


def _different(nested: Sequence[Nested]) -> tuple[list[_Same], int]:
    """Return the releases of a certificate, those with the same mechanism and attacker together, and how many more."""
    found: dict[str, _Same] = {}
    for one in nested:
        if isinstance(one.certificate, ReleaseCertificate):
            same = json.dumps([one.document[name] for name in ("mechanism", "attacker", "protects")], sort_keys=True)
            found.setdefault(same, []).append(one)
    groups = list(found.values())
    return groups[:MOST], max(0, len(groups) - MOST)


def _epsilons(same: _Same, *, worst: bool) -> list[float]:
    return sorted({epsilon for one in same for epsilon in _stored(one, worst=worst)})


def _about(several: bool, tried: Sequence[Any]) -> str:
    if not several:
        return ""
    return ", in 1 release" if len(tried) == 1 else f", in {len(tried)} different releases"


def _stored(one: Nested, *, worst: bool) -> dict[float, float]:
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


def _tried_by_declared(certificate: ReleaseCertificate, epsilons: Sequence[float]) -> _Tried:
    """Try the attackers whom the certificate's theorems are worst about, and all vertices of small instances."""
    return _by_declared(certificate.mechanism, certificate.attacker, certificate.protects, tuple(_in_order(epsilons)))


@functools.lru_cache(maxsize=64)
def _by_declared(
    mechanism: Mechanism, attacker: AttackerModel, protects: Protects, epsilons: tuple[float, ...]
) -> _Tried:
    # The promises of a report are often about the same release, alone and as part of a total.
    certificate = certify(mechanism, attacker, protects=protects)

    def trials() -> Iterator[tuple[float, Crowd]]:
        for epsilon in epsilons:
            yield from ((epsilon, crowd) for crowd in matching(certificate, epsilon))
        small = vertices(certificate)
        for epsilon in _VERTICES_AT:
            yield from ((epsilon, crowd) for crowd in small if epsilon in epsilons)

    return _tried(certificate, trials())


def _tried_by_anyone(certificate: ReleaseCertificate, epsilons: Sequence[float]) -> _Tried:
    """Try attackers who know everybody but the target."""
    crowds = knowing_all(certificate)
    return _tried(certificate, ((epsilon, crowd) for epsilon in _in_order(epsilons) for crowd in crowds))


def _in_order(epsilons: Iterable[float]) -> list[float]:
    """Return the ε that can be tried, the ones that matter most first."""
    chosen = {float(epsilon) for epsilon in epsilons if 0.0 <= epsilon <= _FARTHEST}
    return [epsilon for epsilon in _FIRST if epsilon in chosen] + sorted(chosen - set(_FIRST))


def _drawable(found: _Tried) -> list[tuple[float, Crowd]]:
    """Return which of the attackers who were too large to enumerate to simulate, and at which ε."""

    def at(epsilon: float) -> list[tuple[float, Crowd]]:
        people = ((trial, (*trial[1].unknown, *trial[1].known)) for trial in found.left if trial[0] == epsilon)
        return [trial for trial, groups in people if sum(group.people for group in groups) <= _MOST_PEOPLE]

    return [trial for epsilon in _SIMULATED_AT for trial in at(epsilon)[:_SIMULATED_EACH]]


def _tried(certificate: ReleaseCertificate, trials: Iterable[tuple[float, Crowd]]) -> _Tried:
    found, mechanism = _Tried(), certificate.mechanism
    room = {True: _ONE_CELL, False: _SEVERAL_CELLS}
    for epsilon, crowd in trials:
        terms, single = size(mechanism, crowd), crowd.cells == 1
        if terms > min(_ONE_TRIAL[single], room[single]):
            found.left.append((epsilon, crowd))
            continue
        room[single] -= terms
        trial = enumerated(mechanism, crowd, epsilon)
        if trial is None:
            found.left.append((epsilon, crowd))
            continue
        found.trials += 1
        found.crowds.add(crowd)
        found.best[epsilon] = max(trial.lower, found.best.get(epsilon, trial.lower))
    return found
