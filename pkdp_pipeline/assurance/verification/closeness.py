"""Closeness: how much of a stored δ an attacker attains, and what to say where that is more than all of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction

from pkdp_pipeline.assurance.verification.recomputing import Nested
from pkdp_pipeline.certificates.sentences import rounded_up

__all__ = ["SAME", "Closest", "above", "stored_deltas"]

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
