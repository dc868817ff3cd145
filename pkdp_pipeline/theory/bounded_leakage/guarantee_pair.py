"""A guarantee as two numbers, (ε, δ): how it is read."""

from __future__ import annotations

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import probability
from pkdp_pipeline.theory.bounded_leakage.growth import read_epsilon

__all__ = ["read_guarantee"]


def read_guarantee(name: str, value: object) -> tuple[float, float]:
    """Return `value` as a pair of floats, ε at least 0 (``inf`` allowed) and δ in [0, 1], or raise `ArgumentError`."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise ArgumentError(f"{name} must be a pair (epsilon, delta), such as (1.0, 1e-6).")
    return read_epsilon(f"epsilon of {name}", value[0]), probability(f"delta of {name}", value[1])
