"""The inverse questions: what to choose so that a target (ε, δ) holds."""

from __future__ import annotations

from pkdp_pipeline.extras.plan.planning.certainty import largest_p_max, largest_p_max_between
from pkdp_pipeline.extras.plan.planning.choices import Choice, choices
from pkdp_pipeline.extras.plan.planning.noise_width import SumChoice, smallest_noise, sum_choices
from pkdp_pipeline.extras.plan.planning.public_counts import PublicCounts
from pkdp_pipeline.extras.plan.planning.thresholds import smallest_k, smallest_release_threshold, smallest_unknown

__all__ = [
    "Choice",
    "PublicCounts",
    "SumChoice",
    "choices",
    "largest_p_max",
    "largest_p_max_between",
    "smallest_k",
    "smallest_noise",
    "smallest_release_threshold",
    "smallest_unknown",
    "sum_choices",
]
