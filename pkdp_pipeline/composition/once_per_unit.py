"""Rule 8: every person appears once; the whole schedule is one histogram and costs one release."""

from __future__ import annotations

from dataclasses import replace

from pkdp_pipeline.composition.maximum import Maximum, WorstMaximum, best_attack
from pkdp_pipeline.composition.part import Part, Total, has_cells
from pkdp_pipeline.composition.schedule import largest, plain_sum, worst_largest
from pkdp_pipeline.composition.worst_case_parts import NoiseTotal, SmallerTotal
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.theorems import Applied, Bound, WorstCase
from pkdp_pipeline.theorems.thresholding import Thresholding, ValueThroughAbsence
from pkdp_pipeline.theorems.worst_case import NoiseCurve

__all__ = ["once_per_unit"]


def once_per_unit(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Take the worst cell (presence), or the worst pair of cells (value), of the one histogram that all parts are."""
    del evidence
    others = tuple(part for part in parts if not isinstance(part.mechanism, Histogram))
    for part in others:
        if part.worst is None:
            raise NoEvidenceError(_no_histogram(part))
    # Their noise holds told anything; their numbers are not about being in no release at all.
    told_apart = not any(part.partial for part in others)
    if not parts or parts[0].aim == "presence":
        return Total(
            rule="once_per_unit",
            partial=largest("once_per_unit", parts) if told_apart else (),
            worst=worst_largest("once_per_unit", parts),
            protection=(
                "Protects whether a person is included in any of these releases; it does not protect in which release "
                f"{'or cell ' if has_cells(parts) else ''}she is once that is known."
            ),
            reason=""
            if told_apart
            else "only the numbers of histograms are about being in a cell of a release or in none",
        )
    if any(part.leakage for part in parts):
        # Who moves from one release to another changes what leaks beside both: it no longer follows from who is in
        # the two cells.
        return Total(
            rule="once_per_unit",
            partial=(),
            worst=None,
            protection="",
            reason=(
                "what leaks beside a release tells in which release a person is, so that nothing is certified about "
                "people who may be in another one; leave this evidence out, or declare no leakage where none is"
            ),
        )
    between = _between(parts)
    partial = between or _through_absence(parts)
    # Theorem C reveals who is in all releases together, not who is in one of them.
    while_unknown = ", while it is not known exactly how many people are in any one release" if between else ""
    return Total(
        rule="once_per_unit",
        partial=partial,
        worst=_worst_pair(parts),
        protection=f"Protects in which release, and in which cell of it, a person is{while_unknown}.",
        reason=(
            "the cells of different parts can be compared only where all of them rest on p_max, or all on p_max_between"
            if any(part.partial for part in parts)
            else ""
        ),
    )


def _no_histogram(part: Part) -> str:
    if part.mechanism is not None:
        return (
            "OncePerUnit adds up histograms: its numbers are about a cell of a release, told that the person is "
            "there or in no release at all, and the p_max of a Count is not such a number. Certify each part as a "
            "Histogram (a count is one with a single cell), with p_max for that condition."
        )
    return (
        "OncePerUnit adds up one histogram for each period; several releases about one period count by their noise, "
        "and not all of these have a finite worst case. Publish one cross-tabulated histogram for each period, or put "
        "noise on all of them."
    )


def _bounds_of(part: Part, kind: type[Bound], theorem: str) -> tuple[Applied, ...]:
    return tuple(
        applied for applied in part.partial if isinstance(applied.bound, kind) and applied.bound.theorem == theorem
    )


def _between(parts: tuple[Part, ...]) -> tuple[Applied, ...]:
    """Theorem C with thresholds that differ: the worst of them."""
    found = [_bounds_of(part, Thresholding, "histogram_between") for part in parts]
    if not all(found):
        return ()
    return _largest_of([applied for group in found for applied in group])


def _through_absence(parts: tuple[Part, ...]) -> tuple[Applied, ...]:
    """Theorem B for two cells of any two parts: both cells as telling as the worst of all.

    A person who is known is in one part only, so two cells of different parts may hold the known people of both.
    """
    found = [_bounds_of(part, ValueThroughAbsence, "histogram_value") for part in parts]
    if not all(found):
        return ()
    applied = [one for group in found for one in group]
    bounds = [one.bound for one in applied if isinstance(one.bound, ValueThroughAbsence)]
    caps = [bound.cap for bound in bounds]
    worst = replace(
        bounds[0],
        k=min(bound.k for bound in bounds),
        p=max(bound.p for bound in bounds),
        cap=None if None in caps else max(cap for cap in caps if cap is not None),
        known=max(bound.known for bound in bounds),
        active=any(bound.active for bound in bounds),
    )
    ways: tuple[Bound, ...] = (worst,)
    if worst.known and sum(part.times for part in parts) > 1:
        # The known people of one part may all be in one of the cells, those of the other part in the other.
        apart = replace(worst, k=max(1, min(bound.k - bound.known for bound in bounds)), known=0)
        ways = (replace(worst, known=2 * worst.known), apart)
    (total,) = _largest_of(applied)
    return (Applied(bound=Maximum(theorem="once_per_unit", parts=(ways,)), attack=total.attack),)


def _largest_of(applied: list[Applied]) -> tuple[Applied, ...]:
    bounds = tuple(dict.fromkeys((one.bound,) for one in applied))
    attack = best_attack("once_per_unit", applied)
    return (Applied(bound=Maximum(theorem="once_per_unit", parts=bounds), attack=attack),)


def _worst_pair(parts: tuple[Part, ...]) -> WorstCase | None:
    """Noise against a move between any two parts: a change in each; or within one."""
    bounds = tuple(dict.fromkeys(part.worst for part in parts if part.worst is not None))
    everything = plain_sum("worst_case_parts", parts)
    if everything is None or (len(bounds) == 1 and isinstance(bounds[0], NoiseCurve) and bounds[0].cells == 2):
        return None if everything is None else bounds[0]
    changes = tuple(replace(bound, cells=1) if isinstance(bound, NoiseCurve) else bound for bound in bounds)
    single = WorstMaximum(theorem="worst_case_parts", parts=changes)
    few = NoiseTotal(theorem="worst_case_parts", parts=((single, 2),))
    return SmallerTotal(theorem="worst_case_parts", few=few, everything=everything)
