"""Reading a privacy loss: ε and δ, Rényi, concentrated and other divergences of a pair, and conversions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.theory.privacy_loss.pairs import (
    CHI_SQUARED,
    HELLINGER,
    JENSEN_SHANNON,
    KULLBACK_LEIBLER,
    TOTAL_VARIATION,
    ConvexFunction,
    Law,
    alpha_divergence,
    certified_sides,
    divergence_above,
    explicit_sides,
)
from pkdp_pipeline.extras.theory.privacy_loss.renyi import concentration, lowered, renyi_above, smallest_rho, whole_law
from pkdp_pipeline.extras.theory.privacy_loss.side import LossSide, crossing, exceeding_above, read_number
from pkdp_pipeline.model.wording import choice, probability
from pkdp_pipeline.theorems.numerics import UNIT, Array

__all__ = [
    "CHI_SQUARED",
    "HELLINGER",
    "JENSEN_SHANNON",
    "KULLBACK_LEIBLER",
    "TOTAL_VARIATION",
    "ConvexFunction",
    "PrivacyLoss",
    "alpha_divergence",
]

Order = Literal["either", "first", "second"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PrivacyLoss:
    """The privacy loss ``log(P/Q)`` of one pair of output laws, and what it says in other terms than ε and δ.

    Made by `PrivacyLoss.of` from a certificate, or by `PrivacyLoss.between` from two laws. A reading takes the worse of
    the two orders of the laws, because every definition quantifies over both lives; ``order="first"`` reads P against Q
    alone, ``order="second"`` Q against P.

    Attributes
    ----------
    first : LossSide
        Losses above 0 of P against Q.
    second : LossSide
        Losses above 0 of Q against P.
    dominating : bool
        Whether it stands for every pair that it dominates, as that of a certificate does, or for itself alone.

    Notes
    -----
    *Guarantee*: no reading is below the exact value; where the pair dominates others, not below theirs either, but for
    `pair_exceeding` and `pair_mean_concentrated`, which are about the pair itself. *Rounding*: up. *Source*:
    `docs/privacy_loss.md`.
    """

    first: LossSide
    second: LossSide
    dominating: bool = False

    @classmethod
    def of(cls, certificate: Certificate) -> PrivacyLoss:
        """Return the loss of a pair that dominates everything the certificate speaks of.

        Parameters
        ----------
        certificate : Certificate
            Of one release or of several together.

        Notes
        -----
        *Guarantee*: whatever the attacker that is declared, and whichever two lives are protected, readings are not
        below those of the release. They hold under the certificate's assumptions and limits, and no others. *Rounding*:
        up. The pair itself is known for thresholds, for noise and for noisy counts together; elsewhere it is the one
        whose profile is the convex hull of the certified δ(ε).
        """
        if not isinstance(certificate, Certificate):
            raise ArgumentError(
                f"certificate must be a Certificate, not {type(certificate).__name__}: pkdp.certify and pkdp.compose "
                "return one. For two laws use PrivacyLoss.between."
            )
        first, second = certified_sides(certificate)
        return cls(first=first, second=second, dominating=True)

    @classmethod
    def between(cls, first: Law, second: Law) -> PrivacyLoss:
        """Return the loss between two laws that are given outcome by outcome.

        Parameters
        ----------
        first, second : list or dict of numbers
            Probabilities, in the same order of outcomes or by outcome. Floats and Fractions are taken as they are;
            floats that sum up to 1 but for 1e-9 are scaled so that they do.

        Notes
        -----
        *Guarantee*: ratios and sums are exact; readings are about this pair. *Rounding*: up, of the logarithms only.
        """
        first_side, second_side = explicit_sides(first, second)
        return cls(first=first_side, second=second_side)

    def reversed(self) -> PrivacyLoss:
        """Return the loss with the two laws exchanged."""
        return PrivacyLoss(first=self.second, second=self.first, dominating=self.dominating)

    @property
    def losses(self) -> Array:
        """The finite losses of P against Q, in order; at 0 lies what the two laws have in common."""
        return whole_law(self.first, self.second)[0]

    @property
    def masses(self) -> Array:
        """The P-masses of `losses`; rounded up, so that they may sum up to a little more than 1."""
        return np.exp(whole_law(self.first, self.second)[1])

    @property
    def infinite(self) -> float:
        """The P-mass of outcomes that Q excludes: the loss is infinite."""
        return self.first.infinite

    @property
    def other_only(self) -> float:
        """The Q-mass of outcomes that P excludes."""
        return self.second.infinite

    def delta(self, epsilon: float, *, order: Order = "either") -> float:
        """Return δ at `epsilon`: the pair is (ε, δ)-indistinguishable.

        Parameters
        ----------
        epsilon : float
            At least 0 and finite.
        order : {"either", "first", "second"}, default "either"
            The order of the two lives; "either" takes the worse one.

        Notes
        -----
        *Guarantee*: never below the hockey-stick divergence. *Rounding*: up.
        """
        point = read_number("epsilon", epsilon)
        return self._worse(order, lambda first, _: first.delta(point))

    def epsilon(self, delta: float, *, order: Order = "either") -> float:
        """Return the smallest ε at `delta`, or `math.inf`.

        Parameters
        ----------
        delta : float in [0, 1]
        order : {"either", "first", "second"}, default "either"
            The order of the two lives; "either" takes the worse one.

        Notes
        -----
        *Guarantee*: ``self.delta(self.epsilon(delta)) <= delta``. *Rounding*: up.
        """
        target = probability("delta", delta)
        return 0.0 if target >= 1.0 else crossing((first for first, _ in self._orders(order)), target)

    def exceeding(self, epsilon: float, *, order: Order = "either") -> float:
        """Return how probable a loss above `epsilon` can be: (ε, δ)-probabilistic differential privacy.

        Parameters
        ----------
        epsilon : float
            At least 0 and finite.
        order : {"either", "first", "second"}, default "either"
            The order of the two lives; "either" takes the worse one.

        Notes
        -----
        Putting outcomes together can make a loss above ε *more* probable, so what one pair shows does not bound what
        it dominates. *Guarantee*: for a dominating pair, at or above ``P[L > ε]`` of everything it dominates, and no
        better bound follows from it; for the pair of two given laws, that pair's own. *Rounding*: up.
        """
        point = read_number("epsilon", epsilon, 0.0)
        if not self.dominating:
            return self.pair_exceeding(point, order=order)
        return self._worse(order, lambda first, second: exceeding_above(first, second, point))

    def pair_exceeding(self, epsilon: float, *, order: Order = "either") -> float:
        """Return ``P[L > ε]`` of this very pair, which for a certificate is *no* bound on what is released.

        Parameters
        ----------
        epsilon : float
            At least 0 and finite.
        order : {"either", "first", "second"}, default "either"
            The order of the two lives; "either" takes the worse one.

        Notes
        -----
        *Guarantee*: not below the pair's own value. *Rounding*: up.
        """
        point = read_number("epsilon", epsilon, 0.0)
        return self._worse(order, lambda first, _: first.above(point))

    def kl(self, *, order: Order = "either") -> float:
        """Return the Kullback–Leibler divergence, the mean loss, in nats.

        Parameters
        ----------
        order : {"either", "first", "second"}, default "either"
            The order of the two lives; "either" takes the worse one.

        Notes
        -----
        *Guarantee*: not below that of anything the pair dominates. *Rounding*: up.
        """
        return self._worse(order, lambda first, second: renyi_above(first, second, 0.0))

    def renyi(self, alpha: float, *, order: Order = "either") -> float:
        """Return the Rényi divergence of order `alpha`; 1 is `kl`, `math.inf` the largest loss.

        Parameters
        ----------
        alpha : float
            At least 1; `math.inf` is allowed.
        order : {"either", "first", "second"}

        Notes
        -----
        *Guarantee*: not below that of anything the pair dominates. *Rounding*: up.
        """
        if isinstance(alpha, float) and math.isinf(alpha) and alpha > 0.0:
            return self._worse(order, lambda first, _: first.largest)
        renyi_order = read_number("alpha", alpha, 1.0)
        # The divergence grows with its order, so rounding that up is sound.
        more = renyi_order - 1.0 if renyi_order <= 2.0 else math.nextafter(renyi_order - 1.0, math.inf)
        return self._worse(order, lambda first, second: renyi_above(first, second, more))

    def zero_concentrated(self, xi: float = 0.0, *, order: Order = "either") -> float:
        """Return the smallest ρ with ``D_α ≤ ξ + ρ α`` for all α > 1: (ξ, ρ)-zero-concentrated differential privacy.

        Parameters
        ----------
        xi : float, default 0.0
            The most by which a Rényi divergence may exceed ``ρ α``.
        order : {"either", "first", "second"}, default "either"
            The order of the two lives; "either" takes the worse one.

        Notes
        -----
        *Guarantee*: holds for all α, not only for those that were looked at, and for everything the pair dominates.
        *Rounding*: up, within one part in 1e7; in 1e5 for thousands of losses, and in 1e3 where all losses are far
        below 0.01.
        """
        given = read_number("xi", xi, 0.0)
        return self._worse(order, lambda first, second: smallest_rho(first, second, given))

    def approximately_zero_concentrated(self, delta: float, xi: float = 0.0, *, order: Order = "either") -> float:
        """Return a ρ with ``D_α ≤ ξ + ρ α`` for all α > 1 after outcomes of probability `delta` have been set aside.

        Parameters
        ----------
        delta : float in [0, 1]
        xi : float, default 0.0
        order : {"either", "first", "second"}

        Notes
        -----
        Both laws are cut down where the other one is exceeded most, the infinite loss first, until mass `delta` is
        gone: that is the best choice for every α at once among all that take mass `delta` from both. *Guarantee*:
        everything the pair dominates is δ-approximately (ξ, ρ)-zero-concentrated. *Rounding*: up.
        """
        given, dropped = read_number("xi", xi, 0.0), probability("delta", delta)
        whole = self.zero_concentrated(given, order=order) if max(self.infinite, self.other_only) == 0.0 else math.inf
        first, second = lowered(self.first, dropped), lowered(self.second, dropped)
        if first is None or second is None:
            return whole
        left = PrivacyLoss(first=first, second=second, dominating=self.dominating)
        return min(whole, left.zero_concentrated(given, order=order))

    def mean_concentrated(self, *, order: Order = "either") -> tuple[float, float]:
        """Return (μ, τ): the mean loss is at most μ, and the loss strays from its mean as one that is τ-subgaussian.

        Parameters
        ----------
        order : {"either", "first", "second"}, default "either"
            The order of the two lives; "either" takes the worse one.

        Notes
        -----
        This notion is not closed under post-processing. *Guarantee*: for a dominating pair it holds for everything
        that is dominated, by Hoeffding's lemma: τ is half the distance between the least and the largest loss. For
        the pair of two given laws it is that pair's own. *Rounding*: up.
        """
        if not self.dominating:
            return self.pair_mean_concentrated(order=order)
        first, second = self.first.largest, self.second.largest
        half = first if first == second else 0.5 * (first + second) * (1.0 + 4.0 * UNIT)
        return self.kl(order=order), half

    def pair_mean_concentrated(self, *, order: Order = "either") -> tuple[float, float]:
        """Return (μ, τ) of this very pair, which for a certificate is *no* statement about what is released.

        Parameters
        ----------
        order : {"either", "first", "second"}, default "either"
            The order of the two lives; "either" takes the worse one.

        Notes
        -----
        *Guarantee*: neither is too small for the pair. *Rounding*: up.
        """
        moments = [concentration(first, second) for first, second in self._orders(order)]
        return max(mean for mean, _ in moments), max(deviation for _, deviation in moments)

    def total_variation(self) -> float:
        """Return the largest difference in the probability of any event, which is δ(0).

        *Guarantee*: not below that of anything the pair dominates. *Rounding*: up.
        """
        # It is the same in both orders, so the smaller of two upper bounds holds.
        return min(self.first.delta(0.0), self.second.delta(0.0))

    def divergence(self, function: ConvexFunction, *, order: Order = "either") -> float:
        """Return ``Σ Q f(P/Q)`` for a convex function f, or `math.inf`.

        Parameters
        ----------
        function : ConvexFunction
            One of those in `pkdp_pipeline.theory.privacy_loss`, or your own.
        order : {"either", "first", "second"}

        Notes
        -----
        *Guarantee*: not below that of anything the pair dominates, provided that `f` is convex. *Rounding*: up, in
        balls.
        """
        if not isinstance(function, ConvexFunction):
            raise ArgumentError(
                "function must be a ConvexFunction: one of pkdp_pipeline.theory.privacy_loss, such as HELLINGER, "
                "or your own with its limits at 0 and infinity."
            )
        return self._worse(order, lambda first, second: divergence_above(first, second, function))

    def _orders(self, order: Order) -> tuple[tuple[LossSide, LossSide], ...]:
        wanted = choice("order", order, ("either", "first", "second"))
        pairs = ((self.first, self.second), (self.second, self.first))
        if wanted == "either":
            return pairs if self.first is not self.second else pairs[:1]
        return pairs[:1] if wanted == "first" else pairs[1:]

    def _worse(self, order: Order, reading: Callable[[LossSide, LossSide], float]) -> float:
        return max(reading(first, second) for first, second in self._orders(order))

    def __repr__(self) -> str:
        kind = "dominating" if self.dominating else "exact"
        sides = " / ".join(f"{len(side.losses)} losses up to {side.largest:.6g}" for side in (self.first, self.second))
        return f"<PrivacyLoss, {kind}: {sides}>"
