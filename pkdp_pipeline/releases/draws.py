"""Draws for a release: noise, and values that a rule of display shows at random. There is no seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pkdp_pipeline.model.display import Bands, Display, Rounding
from pkdp_pipeline.model.mechanisms import GeometricNoise
from pkdp_pipeline.model.noise import check_noise, noise_scale


def add_noise(counts: Sequence[int], noise: GeometricNoise, sensitivity: int = 1) -> list[int]:
    """Return every count, which one person changes by at most `sensitivity`, plus its own two-sided geometric noise.

    Drawn by OpenDP's exact sampler (no floating point) from the operating system's entropy; there is no seed. As long
    as `counts`; values may be negative. Raises `ArgumentError` if the noise is too wide to be drawn.
    """
    check_noise(noise)
    if not counts:
        return []
    return [int(value) for value in _sampler(noise, sensitivity)([int(count) for count in counts])]


def shown_as(display: Display, count: int) -> int:
    """Return the number that stands for a count; a random one is drawn from the operating system's entropy."""
    if isinstance(display, Rounding | Bands):
        return display.shown(count)
    draw, chances = random.SystemRandom().random(), display.chances(count)
    for value, chance in chances:
        draw -= chance
        if draw < 0.0:
            return value
    return chances[-1][0]


@lru_cache(maxsize=64)
def _sampler(noise: GeometricNoise, sensitivity: int) -> Any:
    """Return what draws noise, which has no state."""
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
    return opendp.m.make_laplace(*space, scale=noise_scale(noise, sensitivity))
