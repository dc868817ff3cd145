"""Words: a mechanism in a few of them."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal

from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.planning import Choice

__all__ = ["estimate", "mechanism_phrase", "offered", "typed"]


def mechanism_phrase(mechanism: Mechanism) -> str:
    """Return what is published, in few words."""
    if mechanism.noise is None:
        return "no noise, every count" if mechanism.k is None else f"no noise, k = {mechanism.k}"
    noise = f"noise of ε = {typed(mechanism.noise.epsilon)}"
    return noise if mechanism.release_threshold is None else f"{noise}, from {mechanism.release_threshold}"


def typed(epsilon: float) -> str:
    """Return the ε of a noise, rounded down: whoever types what is shown gets a little more noise, not less."""
    short = Context(prec=4, rounding=ROUND_FLOOR).create_decimal(Decimal(epsilon))
    return f"{float(short):g}"


def offered(choice: Choice) -> str:
    """Return a choice as it is offered to somebody who did not ask for it."""
    error = choice.mean_absolute_error
    off = "" if error is None else f" (a number is off by {estimate(error)} on average)"
    threshold = choice.mechanism.release_threshold
    noise = mechanism_phrase(choice.mechanism).partition(", from")[0]
    return f"{noise}{off}" if threshold is None else f"{noise} and release_threshold = {threshold}{off}"


def estimate(value: float) -> str:
    """Return an expected error; an estimate, and no claim."""
    return f"{value:.3g}" if value < 1000.0 else f"{value:,.0f}"
