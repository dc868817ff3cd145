"""Beside a leakage, and between dependent records: which theorems are left, and what becomes of their profiles."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import flint
import numpy as np

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.leakage import Leakage, Lives
from pkdp_pipeline.theorems.bound import Bound, Derived, WorstCase
from pkdp_pipeline.theorems.record import Theorem
from pkdp_pipeline.theorems.rounding import Array, ball_above
from pkdp_pipeline.theorems.theorems import THEOREMS
from pkdp_pipeline.theorems.worst_case import NoiseCurve

_STEPS = 96
"""At so many smaller ε it is tried whether the sum of theorem 9 is smaller there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BesidePrivate(Derived):
    """The profile of a release together with a leakage that is itself (ε2, δ2)-private, given the release or not.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    one : Bound
        The release alone, in both orders.
    epsilon : float
        ε2, at least 0.
    delta : float
        δ2.

    Notes
    -----
    What is (ε2, δ2)-private is dominated by this pair: with probability δ2 the two lives are told apart, otherwise
    one bit is shown that is right with probability ``q = e^ε2/(1 + e^ε2)``. So the whole is dominated by the product
    of both pairs, with ``δ2 + (1 - δ2)(q δ1(ε - ε2) + (1 - q) δ1(ε + ε2))`` and, below 0,
    ``δ1(-x) = 1 - e^{-x}(1 - δ1(x))``. At ``ε1 + ε2`` that is at most ``δ1(ε1) + δ2``. *Guarantee*: never below the
    divergence of both together, or of one of them. *Rounding*: up. *Source*: `docs/leakage.md`; it sharpens Theorem 4
    of the bounded-leakage paper.
    """

    epsilon: float
    delta: float = 0.0

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.maximum(self.one.rounding(epsilons), self.one.rounding(epsilons + self.epsilon))

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        certified = _convolved(self.one, self.epsilon, self.delta, epsilons)
        # An attacker may leave the leakage aside. A bound that rests on the others' uncertainty has its own attack.
        attained = self.one.bracket(epsilons)[0] if isinstance(self.one, WorstCase) else np.zeros(len(epsilons))
        return np.minimum(attained, certified), certified


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstBesidePrivate(BesidePrivate, WorstCase):
    """`BesidePrivate` where the release alone is private against any attacker.

    Parameters
    ----------
    theorem : str
    one : WorstCase
    epsilon : float
    delta : float
    """

    one: WorstCase

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε1 + ε2, δ1 + δ2), rounded up."""
        epsilon, delta = self.one.parameters
        return _sum(epsilon, self.epsilon), min(1.0, _sum(delta, self.delta))

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        attained, certified = BesidePrivate.bracket(self, epsilons)
        # Where nothing is left, rounding leaves something.
        epsilon, delta = self.parameters
        certified = np.where(epsilons >= epsilon, np.minimum(certified, delta), certified)
        return np.minimum(attained, certified), certified


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDependent(Derived, WorstCase):
    """The profile of noise given a leakage that may depend on the noise: it is (ε′, δ′)-independent of the release.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    one : WorstCase
        The noise alone.
    epsilon : float
        ε′, at least 0.
    delta : float
        δ′.

    Notes
    -----
    For every real a, ``δ(a + 2ε′) ≤ (e^{ε′+a} + 1) δ′ + e^{ε′} δ1(a)``: from the release given the leaked value to
    the release alone, to the other life, and back. Above, the smallest over smaller a is taken; below, a chord in e^ε
    from δ = 1 at ε = 0, since every profile is convex there. *Guarantee*: never below the divergence given any
    leaked value that both lives can leak. *Rounding*: up. *Source*: `docs/leakage.md`; Theorem 9 of the
    bounded-leakage paper.
    """

    one: WorstCase
    epsilon: float
    delta: float

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (ε + 2ε′, (e^{ε′+ε} + 1) δ′ + e^{ε′} δ), rounded up."""
        epsilon, delta = self.one.parameters
        return _sum(epsilon, self.epsilon, self.epsilon), self._told(epsilon, delta)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        shift = _sum(self.epsilon, self.epsilon)
        # Beyond the end of the noise's profile its sum only grows.
        left = np.minimum(np.nextafter(epsilons - shift, -np.inf), self.one.parameters[0])
        told = [self._told(a, d) for a, d in zip(left.tolist(), both_sides(self.one, left).tolist(), strict=True)]
        points, smallest = _smallest_before(self)
        row = np.searchsorted(points, left, side="right") - 1
        certified = np.where(row >= 0, np.minimum(told, smallest[np.maximum(row, 0)]), told)
        end = smallest[0]
        below = np.flatnonzero(left < 0.0)
        certified[below] = [min(certified[at], chord(float(epsilons[at]), shift, end)) for at in below.tolist()]
        epsilon, delta = self.parameters
        certified = np.where(epsilons >= epsilon, np.minimum(certified, delta), np.minimum(1.0, certified))
        # Independence of the noise meets every declaration of a dependence.
        return np.minimum(self.one.bracket(epsilons)[0], certified), certified

    def _told(self, epsilon: float, delta: float) -> float:
        """Return what theorem 9 makes of one point of the noise's profile; `epsilon` may be below 0."""
        if delta == 0.0 and self.delta == 0.0:
            return 0.0
        with flint.ctx.workprec(128):
            near = flint.arb(self.epsilon)
            growth = (near + epsilon).exp() + 1
            return min(1.0, ball_above(growth * self.delta + near.exp() * delta))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaked(WorstCase):
    """The profile of what is leaked in any case, between lives that leak the same: nothing.

    *Guarantee*: the number of people present is the same wherever a person is. It says nothing else.
    """

    @property
    def parameters(self) -> tuple[float, float]:
        """Return (0, 0)."""
        return 0.0, 0.0

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        return np.zeros(len(epsilons)), np.zeros(len(epsilons))


@lru_cache(maxsize=64)
def _smallest_before(bound: GivenDependent) -> tuple[Array, Array]:
    """Return points from 0 to the end of the noise's profile, and the smallest sum of theorem 9 up to each."""
    points = np.linspace(0.0, bound.one.parameters[0], _STEPS)
    values = bound.one.bracket(points)[1]
    told = [bound._told(a, d) for a, d in zip(points.tolist(), values.tolist(), strict=True)]
    return points, np.minimum.accumulate(np.array(told))


def both_sides(one: Bound, epsilons: Array) -> Array:
    """Return the certified δ at ε of either sign: ``δ(-x) = 1 - e^{-x} (1 - δ(x))``, rounded up."""
    values = one.bracket(np.abs(epsilons))[1]
    for at in np.flatnonzero(epsilons < 0.0).tolist():
        values[at] = _mirrored(float(epsilons[at]), float(values[at]))
    return values


def _mirrored(epsilon: float, delta: float) -> float:
    with flint.ctx.workprec(128):
        return min(1.0, ball_above(1 - flint.arb(epsilon).exp() * (1 - flint.arb(delta))))


def _convolved(one: Bound, epsilon: float, delta: float, epsilons: Array) -> Array:
    # A smaller ε has a larger δ, so rounding ε down is rounding δ up.
    points = np.nextafter(np.concatenate([epsilons - epsilon, epsilons + epsilon]), -np.inf)
    if epsilon == 0.0:
        points = np.concatenate([epsilons, epsilons])
    nearer, farther = np.split(both_sides(one, points), 2)
    certified = np.ones(len(epsilons))
    with flint.ctx.workprec(128):
        right = 1 / (1 + (-flint.arb(epsilon)).exp())
        hidden = 1 - flint.arb(delta)
        for at in range(len(epsilons)):
            told = right * float(nearer[at]) + (1 - right) * float(farther[at])
            certified[at] = min(1.0, ball_above(delta + hidden * told))
    return certified


def _sum(*numbers: float) -> float:
    """Return the sum of numbers of at least 0, rounded up."""
    total = math.fsum(numbers)
    return total if sum(number > 0.0 for number in numbers) < 2 else math.nextafter(total, math.inf)


def chord(epsilon: float, end: float, value: float) -> float:
    """Return at least the height at `epsilon` of the chord in e^ε from 1 at 0 to `value` at `end`.

    Every profile is convex in e^ε and at most 1 at 0, so one that is at most `value` at `end` lies below the chord.
    *Guarantee*: never below such a profile, for ε from 0 to `end`. *Rounding*: up.
    """
    with flint.ctx.workprec(128):
        share = flint.arb(epsilon).expm1() / flint.arb(math.nextafter(end, math.inf)).expm1()
        return min(1.0, ball_above(1 - share * (1 - flint.arb(value))))


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
        leaks, dependent = self.attacker.leakage, self.attacker.dependent is not None
        on_noise = self.noised and any(leak.is_dependent for leak in leaks)
        present = not on_noise and all(leak.tells == "people_present" for leak in leaks)
        private = not on_noise and all(leak.is_private for leak in leaks)
        conditional = self.attacker.secret == "conditional"

        def is_left(theorem: Theorem) -> bool:
            beside = not leaks or (present and theorem.reveals_who) or (private and theorem.beside_private)
            return beside and (not dependent or (conditional and "unknown" in theorem.rests_on))

        return frozenset(key for key in _partial() if is_left(THEOREMS[key]))

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
        if self.theorems == _partial():
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


def _partial() -> frozenset[str]:
    """Return the keys of the theorems that rest on what the attacker does not know."""
    return frozenset(key for key, theorem in THEOREMS.items() if theorem.against is not None)


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
