"""Rule 8: every person appears once; the whole schedule is one histogram and costs one release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pkdp_pipeline.composition.maximum import Maximum, WorstMaximum, best_attack
from pkdp_pipeline.composition.part import Part, Total, has_cells
from pkdp_pipeline.composition.schedule import largest, plain_sum, worst_largest
from pkdp_pipeline.composition.sums import NoiseTotal, SmallerTotal
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.theorems import Applied, Bound, WorstCase
from pkdp_pipeline.theorems.thresholding import ValueThroughAbsence
from pkdp_pipeline.theorems.worst_case import NoiseCurve

__all__ = ["once_per_unit"]

_RULE = "once_per_unit"


def once_per_unit(parts: tuple[Part, ...], evidence: Sequence[Evidence]) -> Total:
    """Take the worst cell (presence), or the worst pair of cells (value), of the one histogram that all parts are."""
    others = [part for part in parts if not isinstance(part.mechanism, Histogram)]
    for part in others:
        if part.worst is None:
            raise NoEvidenceError(_NO_HISTOGRAM if part.mechanism is not None else _SEVERAL)
    if parts[0].aim == "presence":
        # Their noise holds told anything; their numbers are not about being in no release at all.
        told_apart = not any(part.partial for part in others)
        hidden = (
            "Protects whether a person is included in any of these releases; it does not protect in which release "
            f"{'or cell ' if has_cells(parts) else ''}she is once that is known."
        )
        partial = largest(_RULE, parts) if told_apart else ()
        reason = (
            "" if told_apart else "only the numbers of histograms are about being in a cell of a release or in none"
        )
        worst = worst_largest(_RULE, parts)
        return Total(rule=_RULE, partial=partial, worst=worst, protection=hidden, reason=reason)
    if any(part.leakage for part in parts):
        # Who moves from one release to another changes what leaks beside both: it no longer follows from who is in
        # the two cells.
        reason = (
            "what leaks beside a release tells in which release a person is, so that nothing is certified about "
            "people who may be in another one; leave this evidence out, or declare no leakage where none is"
        )
        return Total(rule=_RULE, partial=(), worst=None, protection="", reason=reason)
    between = _all_by("histogram_between", parts)
    # Theorem C with thresholds that differ: the worst of them.
    bounds: list[tuple[Bound, ...]] = [(one.bound,) for one in between] or _through_absence(parts)
    attack = best_attack(_RULE, between or _all_by("histogram_value", parts))
    total = Applied(bound=Maximum(theorem=_RULE, parts=tuple(dict.fromkeys(bounds))), attack=attack)
    # Theorem C reveals who is in all releases together, not who is in one of them.
    while_unknown = ", while it is not known exactly how many people are in any one release" if between else ""
    reason = (
        "the cells of different parts can be compared only where all of them rest on p_max, or all on p_max_between"
        if any(part.partial for part in parts)
        else ""
    )
    hidden = f"Protects in which release, and in which cell of it, a person is{while_unknown}."
    partial = (total,) if bounds else ()
    return Total(rule=_RULE, partial=partial, worst=_worst_pair(parts), protection=hidden, reason=reason)


_NO_HISTOGRAM = (
    "OncePerUnit adds up histograms: its numbers are about a cell of a release, told that the person is there or in no "
    "release at all, and the p_max of a Count is not such a number. Certify each part as a Histogram (a count is one "
    "with a single cell), with p_max for that condition."
)
_SEVERAL = (
    "OncePerUnit adds up one histogram for each period; several releases about one period count by their noise, and "
    "not all of these have a finite worst case. Publish one cross-tabulated histogram for each period, or put noise on "
    "all of them."
)


def _all_by(theorem: str, parts: tuple[Part, ...]) -> list[Applied]:
    """Return the bounds of all parts by one theorem; none where a part has none."""
    found = [[applied for applied in part.partial if applied.bound.theorem == theorem] for part in parts]
    return [applied for group in found for applied in group] if all(found) else []


def _through_absence(parts: tuple[Part, ...]) -> list[tuple[Bound, ...]]:
    """Theorem B for two cells of any two parts: both cells as telling as the worst of all.

    A person who is known is in one part only, so two cells of different parts may hold the known people of both.
    """
    applied = _all_by("histogram_value", parts)
    bounds = [one.bound for one in applied if isinstance(one.bound, ValueThroughAbsence)]
    if not bounds:
        return []
    caps = [bound.cap for bound in bounds if bound.cap is not None]
    worst = replace(
        bounds[0],
        k=min(bound.k for bound in bounds),
        p=max(bound.p for bound in bounds),
        cap=max(caps) if len(caps) == len(bounds) else None,
        known=max(bound.known for bound in bounds),
        active=any(bound.active for bound in bounds),
    )
    if worst.known == 0 or sum(part.times for part in parts) == 1:
        return [(worst,)]
    # The known people of one part may all be in one of the cells, those of the other part in the other.
    apart = replace(worst, k=max(1, min(bound.k - bound.known for bound in bounds)), known=0)
    return [(replace(worst, known=2 * worst.known), apart)]


def _worst_pair(parts: tuple[Part, ...]) -> WorstCase | None:
    """Noise against a move between any two parts: a change in each; or within one."""
    theorem = "worst_case_parts"
    everything = plain_sum(theorem, parts)
    if everything is None:
        return None
    bounds = [bound for bound, _ in everything.parts]
    if len(bounds) == 1 and isinstance(bounds[0], NoiseCurve) and bounds[0].cells == 2:
        return bounds[0]
    changes = tuple(replace(bound, cells=1) if isinstance(bound, NoiseCurve) else bound for bound in bounds)
    few = NoiseTotal(theorem=theorem, parts=((WorstMaximum(theorem=theorem, parts=changes), 2),))
    return SmallerTotal(theorem=theorem, few=few, everything=everything)
