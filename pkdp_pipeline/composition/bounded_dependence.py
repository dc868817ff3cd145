"""Rule 4: bounded dependence of every release on all earlier ones."""

from __future__ import annotations

from pkdp_pipeline.composition.independent_given_habits import noise_total, trajectory
from pkdp_pipeline.composition.maximum import best_attack
from pkdp_pipeline.composition.part import Part, Total
from pkdp_pipeline.composition.split_sum import SplitSum
from pkdp_pipeline.model.evidence import BoundedDependence, Evidence
from pkdp_pipeline.theorems import Applied

__all__ = ["bounded_dependence"]


def bounded_dependence(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up all ε and δ, and ε′ and δ′ for every release after the first."""
    declared = next(one for one in evidence if isinstance(one, BoundedDependence))
    partial: tuple[Applied, ...] = ()
    if any(part.partial for part in parts):
        bound = SplitSum(
            theorem="bounded_dependence",
            parts=tuple((part.bounds, part.times) for part in parts),
            extra_epsilon=declared.epsilon,
            extra_delta=declared.delta,
        )
        attack = best_attack("bounded_dependence", (applied for part in parts for applied in part.partial))
        partial = (Applied(bound=bound, attack=attack),)
    return Total(
        rule="bounded_dependence",
        partial=partial,
        worst=noise_total("worst_case_parts", parts),
        protection=trajectory(parts, None),
    )
