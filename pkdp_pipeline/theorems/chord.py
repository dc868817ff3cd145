"""The chord of a profile: what a bound that is shifted to the right says below the shift."""

from __future__ import annotations

import math

import flint

from pkdp_pipeline.theorems.rounding import ball_above

__all__ = ["chord"]


def chord(epsilon: float, end: float, value: float) -> float:
    """Return at least the height at `epsilon` of the chord in e^ε from 1 at 0 to `value` at `end`.

    Every profile is convex in e^ε and at most 1 at 0, so one that is at most `value` at `end` lies below the chord.
    *Guarantee*: never below such a profile, for ε from 0 to `end`. *Rounding*: up.
    """
    with flint.ctx.workprec(128):
        share = flint.arb(epsilon).expm1() / flint.arb(math.nextafter(end, math.inf)).expm1()
        return min(1.0, ball_above(1 - share * (1 - flint.arb(value))))
