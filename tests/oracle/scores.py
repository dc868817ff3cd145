"""Scores of a dominating pair itself: what a test of them attains bounds the looseness of a certified total."""

from __future__ import annotations

import numpy as np

from pkdp_pipeline.composition.score_attack import Scores, scores_of_atoms
from pkdp_pipeline.theorems.bound import Order
from pkdp_pipeline.theorems.numerics import TINY, UNIT
from pkdp_pipeline.theorems.waiting_pair import Pair

__all__ = ["scores_of_pair"]


def scores_of_pair(pair: Pair, order: Order, step: float) -> Scores:
    """Return the scores of a dominating pair in one order; a test of it bounds the certified side's looseness."""
    both_laws = pair.ratio > 0.0
    ratio, slack = pair.ratio[both_laws], 1.0 + 4.0 * pair.budget + 8.0 * UNIT
    below = np.maximum(0.0, pair.weight * (1.0 - 2.0 * pair.budget) - 2.0 * TINY)
    above, logs = pair.weight * slack, np.log(ratio)
    best = int(np.argmax(-logs if order == "right" else logs))
    if order == "right":
        second = above[both_laws] * ratio
        second[best] += pair.second_only
        return scores_of_atoms(
            -logs, below[both_laws], second, step, float(below[~both_laws].sum()) * (1.0 - 8.0 * UNIT)
        )
    # What the other law lacks speaks against it, wherever its score is put.
    second = above[both_laws]
    second[best] += float(above[~both_laws].sum()) + pair.first_only
    return scores_of_atoms(logs, below[both_laws] * ratio * (1.0 - 4.0 * pair.budget), second, step)
