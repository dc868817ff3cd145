"""What survives of the theorems beside a leakage, and where people's records depend on one another."""

from __future__ import annotations

from dataclasses import dataclass, replace

import flint

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.leakage import Leakage, Lives
from pkdp_pipeline.theorems.beside_leakage import BesidePrivate, GivenDependent, WorstBesidePrivate
from pkdp_pipeline.theorems.bound import Bound, WorstCase
from pkdp_pipeline.theorems.rounding import ball_above
from pkdp_pipeline.theorems.theorems import THEOREMS
from pkdp_pipeline.theorems.worst_case import NoiseCurve

__all__ = ["Surviving", "emptied_by"]

_PARTIAL = frozenset(key for key, one in THEOREMS.items() if one.against is not None)
_REVEAL_WHO = frozenset(key for key, one in THEOREMS.items() if one.reveals_who)
_KNOWN_ARE_FREE = frozenset(key for key, one in THEOREMS.items() if "unknown" in one.rests_on)


@dataclass(frozen=True, slots=True)
class Surviving:
    """Which theorems are left for an attacker, and what becomes of their numbers.

    Parameters
    ----------
    attacker : AttackerModel
    noised : bool
        Whether the release has noise, on which a leakage can depend.
    """

    attacker: AttackerModel
    noised: bool

    @property
    def theorems(self) -> frozenset[str]:
        """The keys of the theorems on partial knowledge that are left."""
        found = _PARTIAL
        leaks = self.attacker.leakage
        if leaks:
            found = frozenset()
            if not (self.noised and any(leak.is_dependent for leak in leaks)):
                if all(leak.tells == "people_present" for leak in leaks):
                    found |= _REVEAL_WHO
                if all(leak.is_private for leak in leaks):
                    found |= {"counting"}
        if self.attacker.dependent is not None:
            found &= _KNOWN_ARE_FREE if self.attacker.secret == "conditional" else frozenset()
        return found

    def beside(self, bound: Bound) -> Bound:
        """Return a bound on the release and all leakages together, for one whose theorem is left."""
        if bound.theorem != "counting":
            return bound
        for leak in self.attacker.leakage:
            # The others' records given the count can be coupled to differ in one; the target's is another.
            assert leak.epsilon is not None
            delta = _two_steps(leak.epsilon, leak.delta)
            bound = BesidePrivate(theorem="counting_beside_leakage", one=bound, epsilon=2.0 * leak.epsilon, delta=delta)
        return bound

    def against_anyone(self, curve: NoiseCurve) -> WorstCase:
        """Return what noise gives beside all leakages, given those that are not private."""
        leaks = self.attacker.leakage
        if not leaks:
            return curve
        worst: WorstCase = replace(curve, theorem="noise_beside_leakage")
        for leak in leaks:
            if leak.is_dependent:
                worst = GivenDependent(
                    theorem=worst.theorem, one=worst, epsilon=leak.dependence_epsilon, delta=leak.dependence_delta
                )
        for leak in leaks:
            if leak.epsilon is not None:
                worst = WorstBesidePrivate(theorem=worst.theorem, one=worst, epsilon=leak.epsilon, delta=leak.delta)
        return worst

    @property
    def obstacle(self) -> str | None:
        """Why theorems on partial knowledge fell away, in words; None where none did."""
        attacker = self.attacker
        if self.theorems == _PARTIAL:
            return None
        if attacker.dependent is not None:
            return _dependent(attacker)
        names = " and ".join(leak.name for leak in attacker.leakage)
        start = f"{names} may tell about the other people, whose uncertainty would hide a person"
        if "histogram_between" in self.theorems:
            return (
                f"{start}: only proofs that reveal who is present keep their numbers, those of a histogram with "
                "protects='value' and p_max_between, or of several options with p_min and unknown"
            )
        if "counting" in self.theorems:
            return f"{start}: only an exact count with p_min, p_max and unknown keeps a guarantee beside it"
        return start


def emptied_by(attacker: AttackerModel, protects: Lives) -> Leakage | None:
    """Return a leakage that no two lives share which differ in what is protected, so that "given it" is empty."""
    return next((leak for leak in attacker.leakage if not leak.is_private and not leak.is_shared(protects)), None)


def _two_steps(epsilon: float, delta: float) -> float:
    """Return the δ of an (ε, δ)-private leakage where two records differ: ``(1 + e^ε) δ``, rounded up."""
    if delta == 0.0:
        return 0.0
    return min(1.0, ball_above((1 + flint.arb(epsilon).exp()) * delta))


def _dependent(attacker: AttackerModel) -> str:
    if attacker.secret == "conditional":
        return (
            f"the records of all others of a {attacker.dependent} are given, so these are known people, and they move "
            "thresholds: only exact or noised counts of unknown people are left, with p_min, p_max and unknown, and "
            f"exact counts of several options, with p_min and unknown; of each {attacker.dependent} one unknown person "
            "counts"
        )
    return (
        f"records of people of one {attacker.dependent} depend on one another, so that what is published about one "
        f"tells about another. Either make the {attacker.dependent} the privacy unit, and leave dependent out; or ask "
        "for secret='conditional', a person's record given the records of those who share her fate, where p_min, p_max "
        "and unknown hold given all of these"
    )
