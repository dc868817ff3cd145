"""Statement: a certificate laid out as values that pages, notebooks and drawings show."""

from __future__ import annotations

from pkdp_pipeline.extras.report.statement.knowledge import KnowledgeCurve, knowledge_curves
from pkdp_pipeline.extras.report.statement.statement import GuaranteeCurve, Statement
from pkdp_pipeline.extras.report.statement.what_if import Scenario, what_if

__all__ = ["GuaranteeCurve", "KnowledgeCurve", "Scenario", "Statement", "knowledge_curves", "what_if"]
