"""Rule 3: one day protected; nothing accumulates, and group privacy leads to the whole trajectory."""

from __future__ import annotations

from pkdp_pipeline.composition.disjoint_units import largest, worst_largest
from pkdp_pipeline.composition.group_privacy import GroupPrivacy
from pkdp_pipeline.composition.independent_given_habits import noise_total, trajectory
from pkdp_pipeline.composition.part import Part, Total, what_is_hidden
from pkdp_pipeline.composition.periods import at_once
from pkdp_pipeline.model.evidence import BoundedParticipation, Evidence
from pkdp_pipeline.theorems import Applied

__all__ = ["one_day_protected"]


def one_day_protected(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Take the largest guarantee; with `BoundedParticipation`, that of all the releases in which lives can differ."""
    single = largest("one_day_protected", parts)
    most = next((one.times for one in evidence if isinstance(one, BoundedParticipation)), None)
    if most is None:
        return Total(
            rule="one_day_protected",
            partial=single,
            worst=worst_largest("one_day_protected", parts),
            protection=(
                f"{what_is_hidden(parts, 'any one of these releases, whatever her other records are')} What several "
                "releases tell together about her is not protected."
            ),
        )
    steps = min(2 * most * at_once(parts), sum(part.times for part in parts))
    partial = tuple(
        Applied(bound=GroupPrivacy(theorem="one_day_protected", one=applied.bound, steps=steps), attack=applied.attack)
        for applied in single
    )
    return Total(
        rule="group_privacy",
        partial=partial,
        worst=noise_total("worst_case_parts", parts, most),
        protection=trajectory(parts, most),
    )
