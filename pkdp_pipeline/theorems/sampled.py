"""Theorem S: a secret sample hides everybody of the population from somebody who knows all records, but not the draw.

With `P` and `Q` the laws of what is published with the target among those drawn and without her, and β the chance to
be drawn, the pair is ``((1 - β) Q + β P, Q)``. By the lemma of mixtures its divergences are, with
``a = β - (1 - β)(e^ε - 1)``,

    β H_ε'(P ‖ Q),  e^ε' = 1 + (e^ε - 1)/β;       a H_ε''(Q ‖ P),  e^ε'' = β e^ε / a;  0 where a ≤ 0.

*Rounding*: where a may be above 0, ``(1 - β)(e^ε - 1)`` is at most β and errs by 6 units of it, so a is raised by 16
units of β; ε' and ε'' are lowered by 16 units of their size, which raises δ; products are raised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram, Mechanism, Protects, noised_below
from pkdp_pipeline.model.wording import ELSEWHERE, Protection
from pkdp_pipeline.theorems import words
from pkdp_pipeline.theorems.bound import Applied, Bound, Derived, Theorem
from pkdp_pipeline.theorems.hull import hull_pair
from pkdp_pipeline.theorems.numerics import UNIT, Array, left_tails, lowered, raised, right_tails
from pkdp_pipeline.theorems.thresholding import Thresholding
from pkdp_pipeline.theorems.waiting_pair import Pair, product_above, waiting_pair
from pkdp_pipeline.theorems.without_suppression import exact_from_k
from pkdp_pipeline.theorems.worst_case import NoiseCurve

_BUDGET, _MAX_GROWTH = 64.0 * UNIT, 1e300


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled(Derived):
    """Privacy profile of the presence in a population of which a secret sample is published.

    Parameters
    ----------
    theorem : str
        Which statement uses the profile.
    base : Bound
        Of what is published, against somebody to whom all others are drawn with a chance of β at most: theorem A, I or
        noise.
    sampled : float
        β: everybody is drawn independently with at most this chance.

    Notes
    -----
    *Guarantee*: the certified side is never below the divergence of any declared attacker, in either order; of a
    threshold and of noise it is attained. *Rounding*: outward. *Source*: `docs/mathematics.md`, theorem S.
    """

    sampled: float

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        return np.maximum(*(self.base.rounding(points) for points in self._points(epsilons, 1.0)[:2]))

    def _points(self, epsilons: Array, sign: float) -> tuple[Array, Array, Array]:
        """Return ε', ε'' and a, or 0: these at or below and a at or above for a sign of 1, the reverse for -1."""
        epsilons, share = np.minimum(epsilons, 700.0), self.sampled
        growth = np.expm1(epsilons)
        rest = np.maximum(0.0, share - (1.0 - share) * growth + sign * 16.0 * UNIT * share)
        with np.errstate(
            over="ignore", divide="ignore"
        ):  # a quotient beyond floats is one above 1e300, where it is cut
            right = np.log1p(np.minimum(growth / share, _MAX_GROWTH))
            left = np.minimum(700.0, epsilons + np.log(share / rest))
        right, left = (np.maximum(0.0, points - sign * 16.0 * UNIT * (1.0 + points)) for points in (right, left))
        return right, left, rest

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        if self.sampled == 0.0:
            return np.zeros(len(epsilons)), np.zeros(len(epsilons))
        (*above, rest_above), (*below, rest_below) = (self._points(epsilons, sign) for sign in (1.0, -1.0))
        upper, lower = self._orders(*above)[1], self._orders(*below)[0]
        certified = np.maximum(raised(self.sampled * upper[0], _BUDGET), raised(rest_above * upper[1], _BUDGET))
        attained = np.maximum(lowered(self.sampled * lower[0], _BUDGET), lowered(rest_below * lower[1], _BUDGET))
        # Where a quotient is cut nothing is attained.
        attained *= epsilons < math.log(_MAX_GROWTH * self.sampled)
        certified = np.minimum(1.0, np.where(upper.max(axis=0) > 0.0, certified, 0.0))
        return np.minimum(attained, certified), certified

    def _orders(self, right: Array, left: Array) -> tuple[Array, Array]:
        """Return (attained, certified) of the base, shape (2, n) each: at ε' in one order, at ε'' in the other."""
        if isinstance(self.base, Thresholding) and self.base.cap is None and 0.0 < self.base.p < 1.0 < self.base.k:
            cutoffs = [self.base.k - 1] * len(right)
            sides = (right_tails(cutoffs, self.base.p, right), left_tails(cutoffs, self.base.p, left))
        else:
            sides = (self.base.bracket(right), self.base.bracket(left))
        lower, upper = zip(*sides, strict=True)
        return np.stack(lower), np.stack(upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledValue(Sampled):
    """Privacy profile of the cell that a person of the population is in; see `Sampled`.

    Notes
    -----
    Given everybody's records the cells are independent, so the law is the product of the two cells' pairs in opposite
    orders. *Guarantee*: never below the divergence of any declared attacker. The attained side is that of somebody who
    looks at the one cell; two crowds come closer. *Rounding*: outward. *Source*: `docs/mathematics.md`, theorem S.
    """

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`: that of atoms and their ratios."""
        return np.full((2, len(epsilons)), 1e-6)

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        if self.sampled == 0.0:
            return np.zeros(len(epsilons)), np.zeros(len(epsilons))
        if isinstance(self.base, Thresholding):
            pair = waiting_pair(self.base.k - 1, self.base.p, self.base.cap, 1e-60)
        else:
            pair = hull_pair(self.base)
        mixed = self._mixed(pair)
        certified = np.array([product_above(mixed, mixed, epsilon) for epsilon in epsilons.tolist()])
        attained = Sampled.bracket(self, epsilons)[0]
        return np.minimum(attained, certified), certified

    def _mixed(self, pair: Pair) -> Pair:
        """Return the pair ``((1 - β) Q + β P, Q)``."""
        drawn, spared = self.sampled, 1.0 - self.sampled
        shares = spared * pair.ratio + drawn
        return Pair(
            weight=pair.weight * shares,
            ratio=pair.ratio / shares,
            budget=pair.budget + 8.0 * UNIT,
            # What only one law has counts as disclosed.
            first_only=(drawn * pair.first_only + spared * pair.second_only) * (1.0 + 8.0 * UNIT),
            second_only=pair.second_only,
        )


def _sampled(
    theorem: str, kind: type[Sampled | SampledValue], mechanism: Mechanism, attacker: AttackerModel, _: frozenset[str]
) -> Applied | str | None:
    if attacker.sampled is None:
        return None
    base = _base(theorem, mechanism, attacker, attacker.sampled)
    if isinstance(base, str):
        return base
    bound = kind(theorem=theorem, base=base, sampled=attacker.sampled)
    behind = isinstance(base, Thresholding) and mechanism.noise is not None
    return Applied(bound=bound, attack=None if behind else bound)


def _base(theorem: str, mechanism: Mechanism, attacker: AttackerModel, sampled: float) -> Bound | str:
    """Return the bound against somebody who sees others drawn with this chance, or why there is none."""
    k, noise, known = mechanism.k, mechanism.noise, attacker.known
    if getattr(mechanism, "k_complement", None) is not None:
        return "k_complement takes as public how many people are in the data, which tells who was drawn: leave it out"
    if k is None and noise is None:
        return "an exact count shows that somebody was drawn, whoever she is: give k, or noise"
    if k is None and noise is not None:
        return NoiseCurve(theorem="noise", noise=noise.epsilon)
    assert k is not None
    if k - known <= 1:
        return (
            f"k = {k} is not above known + 1 = {known + 1}: whoever knows {known} of those who were drawn sees the "
            "target cross the threshold"
        )
    if noised_below(mechanism):
        return exact_from_k(theorem, mechanism, k=k, p=sampled, known=known, active=True)
    return Thresholding(theorem=theorem, k=k - known, p=sampled)


_DRAWN = (
    "Everybody in the population was drawn independently of everybody else, with no more than the stated chance, and "
    "who was drawn is secret. That is false for samples of a fixed size, quotas, clusters and systematic draws, and "
    "where the number of those drawn is published."
)
DRAWN_FOR_SURE = "from somebody who knows that she was drawn", "somebody who is known to have been drawn"
_HIDES = {
    "presence": "whether a person is in the population",
    "value": "which of two published cells a person of the population is in",
}

_ROWS: tuple[tuple[type[Count | Histogram], Protects, str, str], ...] = (
    (Count, "presence", "sampled_count", "Theorem S: a count of a secret sample"),
    (Histogram, "presence", "sampled_presence", "Theorem S: a histogram of a secret sample"),
    (Histogram, "value", "sampled_value", "Theorem S, value: a histogram of a secret sample"),
)

SAMPLED = tuple(
    Theorem(
        key=key,
        title=title,
        citation="docs/mathematics.md, section 6, theorem S",
        formal=words.SAMPLED_VALUE if aim == "value" else words.SAMPLED,
        against=words.sampled,
        assumes=(_DRAWN,),
        protection=Protection(
            f"{_HIDES[aim]}, from somebody who does not know who was drawn", DRAWN_FOR_SURE, ELSEWHERE
        ),
        rests_on=("sampled",),
        noised_below=True,
        hides_presence_too=aim == "value",
        about=(kind, aim),
        rule=partial(_sampled, key, SampledValue if aim == "value" else Sampled),
    )
    for kind, aim, key, title in _ROWS
)
"""Its records."""
