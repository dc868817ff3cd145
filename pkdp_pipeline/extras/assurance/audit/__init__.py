"""The differential audit: the real operators on sampled neighbouring data sets, compared with what is certified."""

from __future__ import annotations

from pkdp_pipeline.extras.assurance.audit.findings import Audit, Finding
from pkdp_pipeline.extras.assurance.audit.running import audit

__all__ = ["Audit", "Finding", "audit"]
