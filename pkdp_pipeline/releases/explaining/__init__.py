"""Explaining: what a release would be, before anything is read, charged or published."""

from __future__ import annotations

from pkdp_pipeline.releases.explaining.asking import explain
from pkdp_pipeline.releases.explaining.explanation import BudgetUse, Explanation

__all__ = ["BudgetUse", "Explanation", "explain"]
