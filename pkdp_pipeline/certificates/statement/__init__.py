"""Statement: a certificate laid out as values that pages, notebooks and drawings show."""

from __future__ import annotations

from pkdp_pipeline.certificates.statement.knowledge import KnowledgeCurve, knowledge_curves
from pkdp_pipeline.certificates.statement.statement import GuaranteeCurve, Statement
from pkdp_pipeline.certificates.statement.what_if import Scenario, what_if

__all__ = ["GuaranteeCurve", "KnowledgeCurve", "Scenario", "Statement", "knowledge_curves", "what_if"]
