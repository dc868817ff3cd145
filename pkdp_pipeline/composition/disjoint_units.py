"""Rule 1: parts about different people; the largest guarantee, not the sum."""

from __future__ import annotations

from pkdp_pipeline.composition.maximum import Maximum, WorstMaximum, best_attack
from pkdp_pipeline.composition.part import Part, Total, what_is_hidden
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.theorems import Applied

__all__ = ["disjoint_units", "largest", "worst_largest"]


def disjoint_units(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Take the largest guarantee: one part only concerns any given person, and the others are independent of it."""
    del evidence
    return Total(
        rule="disjoint_units",
        partial=largest("disjoint_units", parts),
        worst=worst_largest("disjoint_units", parts),
        protection=what_is_hidden(parts, "the one part that she belongs to, whatever the other parts publish"),
    )


def largest(theorem: str, parts: tuple[Part, ...]) -> tuple[Applied, ...]:
    """Return the pointwise largest profile; none where no part rests on the attacker model."""
    if not any(part.partial for part in parts):
        return ()
    bound = Maximum(theorem=theorem, parts=tuple(dict.fromkeys(part.bounds for part in parts)))
    attack = best_attack(theorem, (applied for part in parts for applied in part.partial))
    return (Applied(bound=bound, attack=attack),)


def worst_largest(theorem: str, parts: tuple[Part, ...]) -> WorstMaximum | None:
    """Return the pointwise largest worst-case guarantee; None where a part has none."""
    bounds = [part.worst for part in parts]
    if None in bounds:
        return None
    return WorstMaximum(theorem=theorem, parts=tuple(dict.fromkeys(bound for bound in bounds if bound is not None)))
