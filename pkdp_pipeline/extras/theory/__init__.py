"""The rest of the papers: bounded leakage, readings of a privacy loss, counting queries and printed bounds.

The names here are those of finite models: acceptable attackers, and the dependence of one release on the earlier ones.
"""

from __future__ import annotations

from pkdp_pipeline.extras.theory.dependence import bounded_dependence, bounded_influence, dependency
from pkdp_pipeline.extras.theory.finite_models import FiniteModel, acceptable, crowd, knows_more, markov_chain

__all__ = [
    "FiniteModel",
    "acceptable",
    "bounded_dependence",
    "bounded_influence",
    "crowd",
    "dependency",
    "knows_more",
    "markov_chain",
]
