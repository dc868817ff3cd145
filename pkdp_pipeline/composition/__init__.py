"""How guarantees add up: one file per rule."""

from __future__ import annotations

from pkdp_pipeline.certificates.compose import compose
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.composition.basic_sum import basic_sum

__all__ = ["ComposedCertificate", "basic_sum", "compose"]
