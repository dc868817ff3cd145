"""The claims about attackers: none of those who were tried learns more than the file says, whatever its theorems."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.extras.assurance.attacks.days import (
    Schedule,
    enumerated_schedule,
    is_enumerated,
    is_simulated,
    lumped_schedule,
    releases_in,
    simulated_schedule,
    terms_of,
)
from pkdp_pipeline.extras.assurance.attacks.enumeration import LARGEST
from pkdp_pipeline.extras.assurance.attacks.schedules import (
    all_knowing,
    attackers,
    schedules,
    small_attackers,
    undisplayed,
    worst_schedules,
)
from pkdp_pipeline.extras.assurance.verification.claims import BrokenError, Claim, Nested, UncheckedError, claim_of
from pkdp_pipeline.ledger.history import number_of
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism, Protects
from pkdp_pipeline.model.wording import rounded_down, rounded_up

MAX_RELEASES_TRIED = 12
"""This many different releases of a total are tried."""

MAX_SIMULATED = 3
"""This many of them by simulation, which takes longer."""

SAME = Fraction(1, 10**9)
"""Relative difference at which two evaluations of the same number, on different machines, are the same."""

_NONE_LEARNS_MORE = "none learns more than is promised"
_USUAL_EPSILONS = (0.5, 1.0)
_EPSILONS_OF_TOTALS = (1.0, 0.5, 0.1)
_MAX_SCHEDULES = 20
"""This many schedules are tried at each ε; and of those who are drawn, this many in all:"""

_MAX_DRAWN = 4
_MAX_RELEASES_OF_TOTAL = 3000
"""Totals of more releases than this are not tried: drawing one of their trajectories takes as long as they are."""

_MAX_TERMS = {True: 1_000_000, False: 400_000}
"""How many terms are enumerated for one certificate, with a single cell and with several; about a second each."""

_MAX_TERMS_OF_TRIAL = {True: LARGEST, False: 130_000}
"""How many of them for one trial."""

_MAX_LUMPED_TERMS, _LUMPED_COST = 1_500, 4
"""This many terms for an attacker on several cells of a person, of which each takes as long as several others."""

_FIRST_EPSILONS = (1.0, 0.5, 2.0, 0.1)
"""Tried first, so that some ε is tried even where little can be."""

_MAX_EPSILON = 100.0

_SIMULATED_EPSILONS = (0.1, 0.5)
"""Where a few ten thousand draws can come close to what is certified."""

_SIMULATED_EACH = 2
_MAX_PEOPLE = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is simulated.

    `draws`: for every simulation. `error`: the probability with which all simulations together find something where
    nothing is, at most.
    """

    draws: int
    error: float
    seed: int

    def shared(self, between: int) -> Effort:
        """Return the effort for each of several, so that all of them together err as seldom."""
        return replace(self, error=self.error / max(1, between))

    @property
    def words(self) -> str:
        """How often its simulations err, as the end of a sentence."""
        return f"{self.draws:,} draws each, which find too much with probability {rounded_up(self.error)} at most"


@dataclass(slots=True, kw_only=True)
class _Attained:
    """The result of enumerating attackers.

    Parameters
    ----------
    best : dict of float to Fraction
        The most that was found to be attained, by ε.
    attackers : set of Schedule
        The attackers tried, on the release or on all of its cells in which a person may be.
    left : list of (float, Schedule)
        The attackers too large to try, in order of importance.
    """

    best: dict[float, Fraction] = field(default_factory=dict)
    trials: int = 0
    attackers: set[Schedule] = field(default_factory=set)
    left: list[tuple[float, Schedule]] = field(default_factory=list)


class _Tried(NamedTuple):
    """Releases of a certificate with the same terms: the δ that each of them states, by ε, and what was found."""

    stored: dict[str, dict[float, float]]
    attained: _Attained

    def drawable(self) -> list[tuple[float, Schedule]]:
        """Return which of the attackers who were too large to enumerate to simulate, and at which ε."""
        small = [
            (epsilon, schedule)
            for epsilon, schedule in self.attained.left
            if is_simulated(schedule, most_people=_MAX_PEOPLE)
        ]
        return [
            trial
            for epsilon in _SIMULATED_EPSILONS
            for trial in [pair for pair in small if pair[0] == epsilon][:_SIMULATED_EACH]
        ]


_Reached = tuple[Fraction, float, str, float]
"""The δ attained at least, its ε, the certificate, and the δ that it states there."""


def attack_claims(nested: Sequence[Nested], effort: Effort, prefix: str = "certificate") -> Iterator[Claim]:
    """Yield what attackers attain of every release in a certificate, held against the stored numbers."""
    alike: dict[tuple[Mechanism, AttackerModel, Protects, int | None], list[Nested]] = {}
    for entry in nested:
        certificate = entry.certificate
        if isinstance(certificate, ReleaseCertificate):
            about = certificate.mechanism, certificate.attacker, certificate.protects, certificate.cells
            alike.setdefault(about, []).append(entry)
    more = len(alike) - MAX_RELEASES_TRIED
    left = f" {number_of(more, 'more release')} not tried." if more > 0 else ""
    tried: dict[bool, list[_Tried]] = {False: [], True: []}
    for terms, releases in list(alike.items())[:MAX_RELEASES_TRIED]:
        first = releases[0].certificate
        for worst, stated in ((False, first.has_partial_knowledge), (True, first.worst_case_bound is not None)):
            if stated:
                stored = {release.path: _stored(release, worst=worst) for release in releases}
                chosen = {epsilon for deltas in stored.values() for epsilon in deltas if 0.0 <= epsilon <= _MAX_EPSILON}
                # The ε that matter most come first.
                ordered = [epsilon for epsilon in _FIRST_EPSILONS if epsilon in chosen] + sorted(
                    chosen - set(_FIRST_EPSILONS)
                )
                tried[worst].append(_Tried(stored, _enumerating(*terms, tuple(ordered), worst)))
    part = effort.shared(2) if len(nested) > 1 else effort
    drawn = [(group, group.drawable()) for group in tried[False][:MAX_SIMULATED]]
    if tried[False]:
        yield claim_of(f"{prefix}.enumerated", lambda: _enumerated(tried[False], left))
    if any(listed for _, listed in drawn):
        yield claim_of(f"{prefix}.simulated", lambda: _simulated(drawn, part))
    if tried[True]:
        yield claim_of(f"{prefix}.anyone", lambda: _enumerated(tried[True], left))
    if isinstance(nested[-1].certificate, ComposedCertificate):  # the total itself: its parts are tried one by one
        yield claim_of(f"{prefix}.together", lambda: _together(nested[-1], part))


def _judged(reached: Iterable[_Reached], evidence: dict[str, Any], *, least: str = "") -> str:
    """Return how much of the stored numbers was attained in the closest case, which becomes evidence too.

    Raises `BrokenError` if more is attained somewhere.
    """
    closest: tuple[int, bool, float] = (-1, False, 0.0)
    for lower, epsilon, path, delta in reached:
        if lower > Fraction(delta) * (1 + SAME):
            raise BrokenError(
                f"An attacker within the declaration attains δ = {rounded_down(lower, 6)} at ε = "
                f"{rounded_down(epsilon, 6)}, where {path} says {rounded_up(delta, 6)}.",
                **evidence,
                epsilon=epsilon,
                stored=delta,
            )
        if delta > 0.0:
            percent = math.floor(100 * min(lower / Fraction(delta), Fraction(1)))
            # Of equal shares, the ε that people read comes last.
            closest = max(closest, (percent, epsilon in _USUAL_EPSILONS, epsilon))
    if closest[0] < 0:
        return ""
    evidence |= {"percent": closest[0], "epsilon": closest[2]}
    return f"; the closest comes to {least}{closest[0]} % of it (at ε = {closest[2]:g})"


def _enumerated(tried: Sequence[_Tried], left: str) -> tuple[str, dict[str, Any]]:
    """Return what exact trials of attackers on single releases attain."""
    trials, people = (
        sum(group.attained.trials for group in tried),
        sum(len(group.attained.attackers) for group in tried),
    )
    skipped = sum(len(group.attained.left) for group in tried)
    evidence: dict[str, Any] = {"trials": trials, "attackers": people, "too_large": skipped}
    reached = (
        (group.attained.best[epsilon], epsilon, path, delta)
        for group in tried
        for path, stored in group.stored.items()
        for epsilon, delta in stored.items()
        if epsilon in group.attained.best
    )
    tight = _judged(reached, evidence)
    if not trials:
        why = "Every attacker who matters is too large to enumerate." if skipped else "There is nobody to try."
        raise UncheckedError(f"{why}{left}", **evidence)
    who, on = number_of(people, "simulated attacker"), number_of(len(tried), "kind")
    return (
        f"{who} in {number_of(trials, 'exact trial')} on releases of {on}: {_NONE_LEARNS_MORE}{tight}.{left}",
        evidence,
    )


def _simulated(
    drawn: Sequence[tuple[_Tried, list[tuple[float, Schedule]]]], effort: Effort
) -> tuple[str, dict[str, Any]]:
    """Return what is found of attackers who are too large to enumerate, by tables of floats or by draws."""
    number = sum(len(listed) for _, listed in drawn)
    # Each of them may err, and all of them together seldom do (Bonferroni).
    error, generator = effort.shared(number).error, np.random.default_rng(effort.seed)
    evidence: dict[str, Any] = {"simulations": number, "draws": effort.draws, "error": effort.error}

    def reached() -> Iterator[_Reached]:
        for group, listed in drawn:
            for epsilon, attacker in listed:
                lower = simulated_schedule(attacker, epsilon, draws=effort.draws, error=error, generator=generator)
                assert lower is not None
                for path, stored in group.stored.items():
                    yield Fraction(lower), epsilon, path, stored.get(epsilon, 1.0)

    tight = _judged(reached(), evidence, least="at least ")
    how = f"in tables of floats or of {effort.words}"
    return f"{number_of(number, 'simulation')}, {how}: {_NONE_LEARNS_MORE}{tight}.", evidence


def _together(total: Nested, effort: Effort) -> tuple[str, dict[str, Any]]:
    """Return what attackers on several releases attain of their total."""
    evidence: dict[str, Any] = {"trials": 0, "simulations": 0, "draws": effort.draws, "error": effort.error}
    error, generator = effort.shared(_MAX_DRAWN).error, np.random.default_rng(effort.seed)

    def reached() -> Iterator[_Reached]:
        for epsilon, schedule, delta in _chosen(total):
            exact = enumerated_schedule(schedule, epsilon)
            lower: Fraction | float | None = None if exact is None else exact.lower
            if exact is None and evidence["simulations"] < _MAX_DRAWN:
                evidence["simulations"] += 1
                lower = simulated_schedule(schedule, epsilon, draws=effort.draws, error=error, generator=generator)
            if lower is not None:
                evidence["trials"] += 1
                yield Fraction(lower), epsilon, total.path, delta

    tight = _judged(reached(), evidence, least="at least ")
    trials, drawn = evidence["trials"], evidence["simulations"]
    if not trials:
        raise UncheckedError("No attack on releases like these together is known, or they are too large.")
    how = f"{drawn} of them by {effort.words}" if drawn else "exact"
    return (
        f"{number_of(trials, 'trial')} of attackers on several releases, {how}: {_NONE_LEARNS_MORE}{tight}.",
        evidence,
    )


def _chosen(total: Nested) -> Iterator[tuple[float, Schedule, float]]:
    """Yield ε, a schedule, and the δ that is stored there: of those who are declared, then of those who know all."""
    certificate = total.certificate
    assert isinstance(certificate, ComposedCertificate)
    if certificate.releases > _MAX_RELEASES_OF_TOTAL:
        return
    for worst in (False, True):
        if certificate.worst_case_bound is None if worst else not certificate.has_partial_knowledge:
            continue
        stored = _stored(total, worst=worst)
        for epsilon in _EPSILONS_OF_TOTALS:
            if epsilon in stored:
                candidates = worst_schedules(certificate) if worst else schedules(certificate, epsilons=(epsilon,))
                # Those who look at most releases first.
                for schedule in sorted(candidates, key=releases_in, reverse=True)[:_MAX_SCHEDULES]:
                    yield epsilon, schedule, stored[epsilon]


def _stored(entry: Nested, *, worst: bool) -> dict[float, float]:
    """Return the stored δ, by ε: of the certificate, or of what holds against anyone."""
    about = entry.document["worst_case"]
    pairs = list(entry.document["grid"])
    if worst:
        # Where nothing rests on the attacker model, the certificate is one against anyone as a whole.
        pairs = [] if entry.certificate.has_partial_knowledge else pairs
        pairs += [] if about is None else [*about.get("grid", ()), {name: about[name] for name in ("epsilon", "delta")}]
    deltas: dict[float, float] = {}
    for pair in pairs:
        epsilon, delta = float(pair["epsilon"]), float(pair["delta"])
        deltas[epsilon] = min(delta, deltas.get(epsilon, 1.0))
    return deltas


@functools.lru_cache(maxsize=64)
def _enumerating(
    mechanism: Mechanism,
    attacker: AttackerModel,
    protects: Protects,
    cells: int | None,
    epsilons: tuple[float, ...],
    worst: bool,
) -> _Attained:
    """Try those whom the theorems are worst about and all vertices of small instances; or those who know all others.

    It is kept: the promises of a report are often about the same release, alone and as part of a total.
    """
    certificate = undisplayed(certify(mechanism, attacker, protects=protects, cells=cells))
    if worst:
        known = all_knowing(certificate)
        trials = [(epsilon, schedule) for epsilon in epsilons for schedule in known]
    else:
        trials = [(epsilon, schedule) for epsilon in epsilons for schedule in attackers(certificate, epsilon)]
        small = small_attackers(certificate)
        trials += [(epsilon, schedule) for epsilon in _USUAL_EPSILONS if epsilon in epsilons for schedule in small]
    attained, room = _Attained(), dict(_MAX_TERMS)
    fitting: dict[Schedule, list[float]] = {}
    for epsilon, candidate in trials:
        single = len(candidate) == 1 and candidate[0].times == candidate[0].crowd.cells == 1
        if releases_in(candidate) > 1:
            # In several cells a few steps of likelihood are told apart, and their products take longer.
            terms, fits = _MAX_LUMPED_TERMS * _LUMPED_COST, room[single] > 0 and is_enumerated(candidate)
        else:
            terms = terms_of(candidate)
            fits = terms <= min(_MAX_TERMS_OF_TRIAL[single], room[single])
        if not fits:
            attained.left.append((epsilon, candidate))
            continue
        room[single] -= terms
        attained.trials += 1
        fitting.setdefault(candidate, []).append(epsilon)
    attained.attackers |= fitting.keys()
    # What an attacker sees is enumerated once, for every ε at which she is tried.
    for candidate, tried in fitting.items():
        for epsilon in dict.fromkeys(tried):
            if releases_in(candidate) > 1:
                lower = lumped_schedule(candidate, epsilon, _MAX_LUMPED_TERMS)
            else:
                exact = enumerated_schedule(candidate, epsilon)
                lower = None if exact is None else exact.lower
            assert lower is not None
            attained.best[epsilon] = max(lower, attained.best.get(epsilon, lower))
    return attained
