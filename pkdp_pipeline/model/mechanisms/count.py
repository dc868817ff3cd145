"""One published number: how many privacy units satisfy a predicate."""

from __future__ import annotations

from dataclasses import dataclass

from pkdp_pipeline.model.mechanisms.geometric_noise import GeometricNoise
from pkdp_pipeline.model.mechanisms.suppression import check_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A count, published exactly, thresholded, noised, or both.

    The steps act in this order: count, suppress below `k` (and near the full population, see
    `k_complement`), add `noise`, suppress below `release_threshold`. A suppressed count shows no reason.

    Parameters
    ----------
    k : int, optional
        Published only when ``count >= k``.
    k_complement : int, optional
        Published only when ``n - count >= k_complement``, where `n`, the number of privacy units in the
        population, is public. Counts near 100 % disclose as counts near 0 do.
    noise : GeometricNoise, optional
    release_threshold : int, optional
        Published only when ``noisy count >= release_threshold``; needs noise.

    Raises
    ------
    ArgumentError
        If a threshold is not a whole number in range, or `release_threshold` comes without noise.
    """

    k: int | None = None
    k_complement: int | None = None
    noise: GeometricNoise | None = None
    release_threshold: int | None = None

    def __post_init__(self) -> None:
        check_steps(self)
