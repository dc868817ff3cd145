"""The inverse questions: what to choose so that a target (ε, δ) holds."""

from __future__ import annotations

from pkdp_pipeline.planning.thresholds import smallest_k

__all__ = ["smallest_k"]
