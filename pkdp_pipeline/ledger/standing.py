"""Standing: what the ledger knows of a question and compares releases by."""

from __future__ import annotations

from pkdp_pipeline.model.facts import Facts as Standing

__all__ = ["Standing"]
