"""Exact integer noise, and what error to expect of it before anyone looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pkdp_pipeline.certificates.sentences import suppression
from pkdp_pipeline.model.mechanisms import GeometricNoise, Mechanism, check_noise, mean_absolute, noise_scale


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """How far a published count may be from the counted one; known before any data is read.

    Attributes
    ----------
    mean_absolute : float
        Mean absolute error of the noise, in units; 0 without noise.
    standard_deviation : float
    bound_95 : int
        The noise is at most this far from 0 with probability at least 95 %.
    suppression : str
        What is done to a count before it is published, in words. A suppressed count is not in these numbers.
    """

    mean_absolute: float
    standard_deviation: float
    bound_95: int
    suppression: str


def add_noise(counts: Sequence[int], noise: GeometricNoise) -> list[int]:
    """Return every count plus its own two-sided geometric noise.

    Drawn by OpenDP's exact sampler (no floating point) from the operating system's entropy; there is no seed.

    Parameters
    ----------
    counts : sequence of int
    noise : GeometricNoise

    Returns
    -------
    list of int
        As long as `counts`; values may be negative.

    Raises
    ------
    ArgumentError
        If the noise is too wide to be drawn.
    """
    check_noise(noise)
    if not counts:
        return []
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
    measurement = opendp.m.make_laplace(*space, scale=noise_scale(noise))
    return [int(value) for value in measurement([int(count) for count in counts])]


def expected_error(mechanism: Mechanism) -> ExpectedError:
    """Return the error to expect of `mechanism`, from its public parameters alone."""
    mean, deviation, bound = 0.0, 0.0, 0
    if mechanism.noise is not None:
        mean, deviation, bound = _noise_error(mechanism.noise.epsilon)
    return ExpectedError(
        mean_absolute=mean,
        standard_deviation=deviation,
        bound_95=bound,
        suppression=suppression(mechanism),
    )


def _noise_error(epsilon: float) -> tuple[float, float, int]:
    """Return E|Z|, the standard deviation of Z and the smallest b with P[|Z| > b] <= 0.05.

    With α = e^(-ε): Var Z = 2α / (1 - α)², P[|Z| > b] = 2α^(b+1) / (1 + α).
    """
    alpha, gap = math.exp(-epsilon), -math.expm1(-epsilon)
    deviation = math.sqrt(2.0 * alpha) / gap
    bound = max(0, math.ceil(math.log(2.0 / (0.05 * (1.0 + alpha))) / epsilon) - 1)
    return mean_absolute(GeometricNoise(epsilon)), deviation, bound
