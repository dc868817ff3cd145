"""Counts per cell of a public domain, each cell published on its own merits."""

from __future__ import annotations

from dataclasses import dataclass

from pkdp_pipeline.model.mechanisms.geometric_noise import GeometricNoise
from pkdp_pipeline.model.mechanisms.suppression import check_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts per cell; every privacy unit is in one cell or absent.

    In every cell the steps act in this order: count, suppress below `k`, add `noise`, suppress below
    `release_threshold`. A suppressed cell looks exactly like a cell nobody is in. No total of the people
    present is published, unless everything is noised.

    Parameters
    ----------
    k : int, optional
        A cell is published only when its ``count >= k``.
    noise : GeometricNoise, optional
        Independent noise in every cell. One person changes a cell by 1.
    release_threshold : int, optional
        A cell is published only when its ``noisy count >= release_threshold``; needs noise.

    Raises
    ------
    ArgumentError
        If a threshold is not a whole number in range, or `release_threshold` comes without noise.
    """

    k: int | None = None
    noise: GeometricNoise | None = None
    release_threshold: int | None = None

    def __post_init__(self) -> None:
        check_steps(self)
