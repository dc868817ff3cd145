"""Rule 5: nobody takes part in more than a few of the releases."""

from __future__ import annotations

from pkdp_pipeline.composition.evidence import BoundedParticipation, Evidence
from pkdp_pipeline.composition.independent_given_habits import noise_total, trajectory
from pkdp_pipeline.composition.part import Part, Total

__all__ = ["bounded_participation"]


def bounded_participation(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up the worst-case guarantees of as many releases as two lives can differ in.

    Noiseless parts need `IndependentGivenHabits` or `OneDayProtected` as well; alone the rule gives them nothing.
    """
    most = next(one.times for one in evidence if isinstance(one, BoundedParticipation))
    return Total(
        rule="bounded_participation",
        partial=(),
        worst=noise_total("worst_case_parts", parts, most),
        protection=trajectory(parts, most),
        reason=(
            "bounded participation alone says nothing about how people's records depend on one another: declare as "
            "well that they are independent given people's habits, for the data after any capping"
        ),
    )
