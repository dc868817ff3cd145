"""Reading a privacy loss: ε and δ, Rényi, concentrated and other divergences of a pair, and conversions."""

from __future__ import annotations

from pkdp_pipeline.extras.theory.privacy_loss.loss import PrivacyLoss
from pkdp_pipeline.extras.theory.privacy_loss.pairs import (
    CHI_SQUARED,
    HELLINGER,
    JENSEN_SHANNON,
    KULLBACK_LEIBLER,
    TOTAL_VARIATION,
    ConvexFunction,
    alpha_divergence,
)

__all__ = [
    "CHI_SQUARED",
    "HELLINGER",
    "JENSEN_SHANNON",
    "KULLBACK_LEIBLER",
    "TOTAL_VARIATION",
    "ConvexFunction",
    "PrivacyLoss",
    "alpha_divergence",
]
