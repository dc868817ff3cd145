"""How guarantees add up: one file per rule."""

from __future__ import annotations

from pkdp_pipeline.composition.basic_sum import basic_sum
from pkdp_pipeline.composition.compose import compose
from pkdp_pipeline.composition.composed import ComposedCertificate

__all__ = ["ComposedCertificate", "basic_sum", "compose"]
