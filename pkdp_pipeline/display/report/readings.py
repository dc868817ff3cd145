"""How to read a figure, in one or two sentences."""

from __future__ import annotations

import math

from pkdp_pipeline.certificates.statement import GuaranteeCurve, KnowledgeCurve
from pkdp_pipeline.display.content import ReleaseView
from pkdp_pipeline.model.wording import rounded_up

__all__ = ["attained_at", "reading_counts", "reading_guarantee", "reading_knowledge", "reading_spending"]

reading_spending = (
    "The line is the ε that is certified for everything published up to a date; where it ends, none is certified at "
    "this δ. Horizontal lines are the budgets, each at its own δ, beyond which the ledger refuses a release."
)


def reading_counts(release: ReleaseView) -> str:
    """Return how to read the bars of a table."""
    line = ""
    if release.k is not None and release.error is None:
        line = f" The line is at k = {release.k}: smaller counts are not published."
    elif release.k is not None:
        line = f" The line is at k = {release.k}, which a count has to reach before noise is added."
    hidden = " Where a count is suppressed there is no bar, whatever the count." if None in release.table.counts else ""
    return f"A bar is as long as the published count.{line}{hidden}"


def reading_guarantee(curve: GuaranteeCurve, whom: str) -> str:
    """Return how to read the guarantee curve; `whom` says against whom the noise alone holds."""
    mark = " The dot is the pair that the sentence names." if curve.mark is not None else ""
    anyone = f" The other line holds against {whom}." if curve.worst_case is not None else ""
    if any(curve.attained):
        lines = (
            "the upper line is the δ that no attacker within the assumptions exceeds, and the lower edge of the band "
            "is one that some of them attain; lower is better."
        )
    else:
        lines = (
            "the line is the δ that no attacker within the assumptions exceeds; lower is better. How much of it an "
            "attacker attains is not known."
        )
    return f"For a factor of e to the power ε, {lines}{mark}{anyone}"


def attained_at(curve: GuaranteeCurve, shown: str) -> float | None:
    """Return a δ that some attacker attains at an ε as it is shown; None where none is known.

    What is shown is rounded up, and less is attained there: it is what is attained at the next ε of the curve.
    """
    at = float(shown)
    attained = next(
        (delta for epsilon, delta in zip(curve.epsilons, curve.attained, strict=True) if epsilon >= at), 0.0
    )
    certified = min(delta for epsilon, delta in zip(curve.epsilons, curve.certified, strict=True) if epsilon <= at)
    return attained if attained or not certified else None


def reading_knowledge(curve: KnowledgeCurve) -> str:
    """Return how to read ε against what the attacker knows."""
    if curve.floor is not None and curve.floor < math.inf:
        end = f"; the line never goes above ε = {rounded_up(curve.floor)}, which the noise alone guarantees"
    else:
        end = "; where the line ends, no ε is certified at this δ"
    return f"The dot is the declared attacker. A stronger attacker makes ε grow{end}."
