"""Rule 7: other questions about the same people; what may be added up without evidence, and its one exception."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pkdp_pipeline.composition.part import Part, Total
from pkdp_pipeline.composition.schedule import trajectory, without_evidence
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.theorems import Applied
from pkdp_pipeline.theorems.beside_leakage import both_sides
from pkdp_pipeline.theorems.bound import Derived
from pkdp_pipeline.theorems.rounding import Array, float_above

__all__ = ["Shifted", "same_people"]

_TAKEN = "each release tells about the other people, whose uncertainty would protect a person in the others"


def same_people(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up worst-case guarantees; one exact count may stand beside parts whose noise leaves no δ."""
    total = without_evidence(parts, evidence)
    exact = [part for part in parts if part.worst is None]
    if total.worst is not None or total.partial or len(exact) != 1:
        return replace(total, reason=_TAKEN)
    beside = _substitution(parts, exact[0])
    if exact[0].times > 1 or not _is_exact_count(exact[0]) or beside is None:
        return replace(total, reason=_TAKEN)
    partial = tuple(
        Applied(bound=Shifted(theorem="same_people", one=applied.bound, by=beside), attack=applied.attack)
        for applied in exact[0].partial
    )
    return Total(rule="same_people", partial=partial, worst=None, protection=trajectory(parts, None))


def _is_exact_count(part: Part) -> bool:
    mechanism = part.mechanism
    if not isinstance(mechanism, Count):
        return False
    return mechanism.k is None and mechanism.k_complement is None and mechanism.noise is None


def _substitution(parts: tuple[Part, ...], exact: Part) -> float | None:
    """Return ε0 such that the noised parts are together (ε0, 0)-private when one person's record is replaced.

    What leaks beside them and not beside the exact count leaks with them.
    """
    spent = Fraction(0)
    for leak in {leak for part in parts for leak in part.leakage} - {*exact.leakage}:
        if leak.epsilon is None or leak.delta > 0.0:
            return None
        spent += Fraction(leak.epsilon)
    for part in parts:
        if part.worst is None:
            continue
        noise = None if part.mechanism is None else part.mechanism.noise
        if noise is None or part.worst.parameters[1] > 0.0:
            return None
        # Replacing a record changes one number of a count, two cells of a histogram.
        cells = 1 if isinstance(part.mechanism, Count) else 2
        spent += cells * Fraction(noise.epsilon) * part.times
    return float_above(spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifted(Derived):
    """The profile of an exact count beside noised releases: ``δ(ε) = δ1(ε - 2 ε0)``.

    Notes
    -----
    The other people's records given the count s, and given s - 1, can be coupled to differ in one record; that
    costs ε0, and the target's own record another. Below ``2 ε0`` the count's profile is read on the other side of 0:
    ``δ1(-x) = 1 - e^{-x} (1 - δ1(x))``. *Guarantee*: never below the divergence of the whole. *Rounding*: up.
    *Source*: `docs/composition.md`, rule 7.
    """

    by: float

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        left = np.nextafter(epsilons - math.nextafter(2.0 * self.by, math.inf), -np.inf)
        return np.zeros(len(epsilons)), np.minimum(1.0, both_sides(self.one, left))
