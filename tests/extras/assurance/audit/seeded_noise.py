"""Two-sided geometric noise with a seed: an audit in a test is then the same every time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pkdp_pipeline.model.mechanisms import GeometricNoise
from pkdp_pipeline.releases import public_table as shipped

_GENERATOR = np.random.default_rng(0)


def start_anew() -> None:
    """Begin the sequence of draws again."""
    global _GENERATOR
    _GENERATOR = np.random.default_rng(20130102)


def seeded_noise(counts: Sequence[int], noise: GeometricNoise, sensitivity: int = 1) -> list[int]:
    """Return every count plus the difference of two geometric numbers."""
    first, second = _GENERATOR.geometric(-math.expm1(-1.0 / shipped.noise_scale(noise, sensitivity)), (2, len(counts)))
    return [int(value) for value in np.asarray(counts) + first - second]
