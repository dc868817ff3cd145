"""Rule 5: nobody takes part in more than a few of the releases."""

from __future__ import annotations

from pkdp_pipeline.composition.independent_given_habits import noise_total, trajectory
from pkdp_pipeline.composition.part import Part, Total
from pkdp_pipeline.composition.same_people import without_evidence
from pkdp_pipeline.model.evidence import BoundedParticipation, Evidence

__all__ = ["bounded_participation"]

_REASON = (
    "bounded participation alone says nothing about how people's records depend on one another: declare as well that "
    "they are independent given people's habits, for the data after any capping"
)


def bounded_participation(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up the worst-case guarantees of as many periods as two lives can differ in.

    Noiseless parts need `IndependentGivenHabits` or `OneDayProtected` as well; alone the rule gives several of them
    nothing, and a single one is what it is.
    """
    if len(parts) == 1 and parts[0].times == 1:
        return without_evidence(parts, evidence)
    most = next(one.times for one in evidence if isinstance(one, BoundedParticipation))
    worst = noise_total("worst_case_parts", parts, most)
    return Total(
        rule="bounded_participation",
        partial=(),
        worst=worst,
        protection=trajectory(parts, most),
        reason=_REASON if worst is None or any(part.partial for part in parts) else "",
    )
