"""Verification: the claims of a published file, each recomputed or attacked, with its outcome in plain words."""

from __future__ import annotations

from pkdp_pipeline.extras.assurance.verification.claims import Claim, Verification
from pkdp_pipeline.extras.assurance.verification.verify import CONFIDENCE, DRAWS, verify

__all__ = ["CONFIDENCE", "DRAWS", "Claim", "Verification", "verify"]
