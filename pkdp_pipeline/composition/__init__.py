"""How guarantees add up: one file per rule."""

from __future__ import annotations

from pkdp_pipeline.composition.basic_sum import basic_sum

__all__ = ["basic_sum"]
