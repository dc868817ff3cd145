"""Statement: a certificate laid out as values that pages, notebooks and drawings show."""

from __future__ import annotations

from pkdp_pipeline.statement.curve import GuaranteeCurve
from pkdp_pipeline.statement.knowledge import KnowledgeCurve
from pkdp_pipeline.statement.statement import Statement
from pkdp_pipeline.statement.what_if import Scenario

__all__ = ["GuaranteeCurve", "KnowledgeCurve", "Scenario", "Statement"]
