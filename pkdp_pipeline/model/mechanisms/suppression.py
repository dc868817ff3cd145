"""What counts and histograms share: thresholds, noise, and the order in which they act."""

from __future__ import annotations

from typing import Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import whole_number
from pkdp_pipeline.model.mechanisms.geometric_noise import GeometricNoise

_MOST = 10**10
"""More than there are people."""


def check_steps(mechanism: Any) -> None:
    """Store the checked thresholds and noise of a mechanism."""
    for name in ("k", "k_complement"):
        if hasattr(mechanism, name):
            object.__setattr__(mechanism, name, _threshold(name, getattr(mechanism, name)))
    noise = _noise(mechanism.noise)
    object.__setattr__(mechanism, "release_threshold", _release_threshold(mechanism.release_threshold, noise))


def _threshold(name: str, value: object) -> int | None:
    """Return a suppression threshold (published only when ``count >= value``) or None."""
    return None if value is None else _at_most(name, whole_number(name, value, least=1))


def _noise(value: object) -> GeometricNoise | None:
    """Return the noise or None; anything but a `GeometricNoise` is an error that shows how to write it."""
    if value is None or isinstance(value, GeometricNoise):
        return value
    raise ArgumentError(
        f"noise must be a GeometricNoise or None, not {type(value).__name__}: write noise=pkdp.GeometricNoise(0.5)."
    )


def _release_threshold(value: object, noise: GeometricNoise | None) -> int | None:
    """Return the threshold that acts after the noise; it needs noise to act after."""
    if value is None:
        return None
    if noise is None:
        raise ArgumentError(
            "release_threshold acts on the noisy count and needs noise; without noise, use k (published only "
            "when count >= k)."
        )
    return _at_most("release_threshold", whole_number("release_threshold", value, least=0))


def _at_most(name: str, value: int) -> int:
    """Return the threshold, unless no count of people could reach it."""
    if value > _MOST:
        raise ArgumentError(f"{name} must be at most {_MOST}: there are fewer people than that; choose a smaller one.")
    return value
