"""Counting distinct units: one engine for each kind of frame, imported when it is given one.

All kinds of frames become the same rows: ``u0, u1, …`` (the unit), ``b0, b1, …`` (the cell), and what the one-cell
rule needs. They are aggregated where they are, or in memory: only counted cells leave the engine.
"""

from __future__ import annotations

from pkdp_pipeline.engines.question import ENGINES, CellCounts, Engine, Tally, Units, engine_for
from pkdp_pipeline.model.columns import Selection

__all__ = ["ENGINES", "CellCounts", "Engine", "Selection", "Tally", "Units", "engine_for"]
