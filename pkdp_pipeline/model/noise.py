"""Two-sided geometric noise: the declaration, its errors, and the scale at which it is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import positive_real


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    """Two-sided geometric noise: ``P[Z = z] = (1-α)/(1+α) · α^|z|`` with ``α = exp(-epsilon)``.

    Parameters
    ----------
    epsilon : float
        Above 0. The noise alone gives `epsilon`-differential privacy to a number that one person changes by
        at most 1. Certificates are computed at exactly this value; the sampler may add slightly more noise,
        never less.

    Raises
    ------
    ArgumentError
        If `epsilon` is not a finite number above 0.

    Notes
    -----
    Desfontaines et al., Definition 19; `docs/mathematics.md`, section "Two-sided geometric noise".
    """

    epsilon: float = field(metadata={"examples": [0.5]})
    """The smaller, the more noise; one person changes a cell by 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_real("noise epsilon", self.epsilon))


#: Below this epsilon a draw could leave the 64-bit integers; above it that has probability below 1e-4000.
SMALLEST_EPSILON = 1e-15
#: Above this epsilon fewer than one draw in 1e21 differs from 0.
LARGEST_EPSILON = 50.0


def check_noise(noise: GeometricNoise | None, *, published: bool = False) -> None:
    """Raise `ArgumentError` where noise does not fit 64-bit integers, or would change no count that is `published`."""
    if noise is not None and published and noise.epsilon > LARGEST_EPSILON:
        raise ArgumentError(
            f"noise epsilon must be at most {LARGEST_EPSILON:g} to be published, got {noise.epsilon!r}: it "
            "would change no count in a lifetime. Write noise with epsilon = 1, or leave noise out."
        )
    if noise is not None and noise.epsilon < SMALLEST_EPSILON:
        raise ArgumentError(
            f"noise epsilon must be at least {SMALLEST_EPSILON!r} to be drawn, got {noise.epsilon!r}: wider noise does "
            "not fit 64-bit integers."
        )


def mean_absolute(noise: GeometricNoise) -> float:
    """Return ``E|Z| = 2α / (1 - α²)`` with ``α = exp(-epsilon)``."""
    alpha, gap = math.exp(-noise.epsilon), -math.expm1(-noise.epsilon)
    return 2.0 * alpha / (gap * (1.0 + alpha))


def chance_of_at_least(noise: GeometricNoise, least: int) -> float:
    """Return ``P[Z >= least]``."""
    if least > 0:
        return math.exp(-noise.epsilon * least) / (1.0 + math.exp(-noise.epsilon))
    return 1.0 - chance_of_at_least(noise, 1 - least)


def mean_absolute_where_at_least(noise: GeometricNoise, least: int) -> float:
    """Return ``E[|Z|; Z >= least]``, not divided by the chance of it."""
    if least <= 0:
        # By symmetry: all of it but what lies below `least`.
        return mean_absolute(noise) - mean_absolute_where_at_least(noise, 1 - least)
    alpha, gap = math.exp(-noise.epsilon), -math.expm1(-noise.epsilon)
    return math.exp(-noise.epsilon * least) * (least * gap + alpha) / (gap * (1.0 + alpha))


def noise_scale(noise: GeometricNoise, sensitivity: int = 1) -> float:
    """Return the sampler's scale, ``sensitivity / epsilon`` rounded up.

    *Rounding*: ``scale * epsilon >= sensitivity`` exactly, by less than one part in 2^50, for the float and for the
    decimal it is written as, so the noise drawn is never less than declared. Certificates hold for every noise within
    that leeway (`pkdp_pipeline.theorems.worst_case.SAMPLER_LEEWAY`).
    """
    scale = sensitivity / noise.epsilon
    least = min(Fraction(noise.epsilon), Fraction(repr(noise.epsilon)))
    while Fraction(scale) * least < sensitivity:
        scale = math.nextafter(scale, math.inf)
    return scale
