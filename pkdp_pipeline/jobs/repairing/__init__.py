"""Repairing: the smallest change that makes a refused job certifiable, tried before it is offered."""

from __future__ import annotations

from pkdp_pipeline.jobs.repairing.mending import Mending, Target, mend
from pkdp_pipeline.jobs.repairing.offers import Offer

__all__ = ["Mending", "Offer", "Target", "mend"]
