"""Rule 9: noised counts of the same people which one record changes, all together, by a few only."""

from __future__ import annotations

from pkdp_pipeline.composition.part import Part, Total
from pkdp_pipeline.composition.schedule import plain_sum
from pkdp_pipeline.composition.worst_case_parts import NoiseTotal, SmallerTotal
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.model.evidence import BoundedSensitivity, Evidence
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.theorems import WorstCase
from pkdp_pipeline.theorems.worst_case import NoiseCurve

__all__ = ["bounded_sensitivity"]

_THEOREM = "bounded_sensitivity"

Numbers = list[tuple[NoiseCurve, int]]
"""What one published number tells when a record changes it by 1, and how many such numbers there are."""


def bounded_sensitivity(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up what the numbers tell that one record can change, the most telling ones.

    Raises
    ------
    NoEvidenceError
        If a part is no count or histogram with noise of its own, parts are about different periods, they protect the
        value and the evidence is about presence, or something leaks that tells what the evidence is about.
    """
    declared = next(one for one in evidence if isinstance(one, BoundedSensitivity))
    _one_period(parts)
    if parts[0].aim == "value" and declared.protects == "presence":
        raise NoEvidenceError(
            "the releases protect in which cell a person is, and the declared bound is about her being there: declare "
            'BoundedSensitivity(…, protects="value").'
        )
    _no_telling_leakage(parts, declared)
    numbers: Numbers = []
    for part in parts:
        if part.worst is None:
            break
        numbers += _numbers(part, declared)
    else:
        worst = _not_above_the_sum(_worst(numbers, declared.changes), parts, declared)
        return Total(rule=_THEOREM, partial=(), worst=worst, protection=_hidden(parts, declared))
    return Total(
        rule=_THEOREM,
        partial=(),
        worst=None,
        protection=_hidden(parts, declared),
        reason="how little a record changes them says nothing about releases without a finite worst case of noise",
    )


def _one_period(parts: tuple[Part, ...]) -> None:
    contexts = [part.context for part in parts]
    named = {(one.dataset, one.period) for one in contexts if one is not None and one.period is not None}
    if len(named) > 1:
        raise NoEvidenceError(
            "BoundedSensitivity is about counts of one data set and one period, and these are about several: compose "
            "those of each period first, and then the totals."
        )


def _no_telling_leakage(parts: tuple[Part, ...], declared: BoundedSensitivity) -> None:
    """Refuse a statement about what records say where something leaks that no two such lives share."""
    leaks = (one for part in parts for one in part.leakage)
    telling = next((one for one in leaks if not one.is_private and not one.is_shared("value")), None)
    if declared.protects == "value" and telling is not None:
        raise NoEvidenceError(
            f"{telling.name} is shared by no two lives that differ in what a record says, so that given it nothing is "
            'said about them: declare BoundedSensitivity(…, protects="presence").'
        )


def _numbers(part: Part, declared: BoundedSensitivity) -> Numbers:
    """Return what a release publishes, number by number, as far as one record can change it."""
    if part.mechanism is None or not isinstance(part.worst, NoiseCurve):
        raise NoEvidenceError(
            "BoundedSensitivity adds up counts and histograms by their noise alone: compose the certificates of the "
            "releases themselves, not totals of them, and none beside a leakage that may depend on its noise."
        )
    curve = part.worst
    one = NoiseCurve(theorem=curve.theorem, noise=curve.noise, cells=1, appears_at=curve.appears_at)
    if isinstance(part.mechanism, Count) or declared.protects == "presence":
        return [(one, part.times)]
    # A record that moves within a histogram changes two of its cells, of which one at most appears from below k.
    return [(one, part.times), (NoiseCurve(theorem=curve.theorem, noise=curve.noise, cells=1), part.times)]


def _worst(numbers: Numbers, changes: int) -> NoiseTotal:
    """Return the total of the `changes` most telling numbers."""
    often: dict[NoiseCurve, int] = {}
    for curve, times in numbers:
        often[curve] = often.get(curve, 0) + times
    ranked = sorted(often, key=lambda curve: curve.parameters, reverse=True)
    deltas = [curve.parameters[1] for curve in ranked]
    if deltas != sorted(deltas, reverse=True) and changes < sum(often.values()):
        # None is the worst in both ε and δ: every one is taken for the largest of all.
        return NoiseTotal(theorem=_THEOREM, parts=tuple((one, often[one]) for one in ranked), changes=changes)
    taken: Numbers = []
    for curve in ranked:
        if changes > 0:
            taken.append((curve, min(changes, often[curve])))
            changes -= taken[-1][1]
    return NoiseTotal(theorem=_THEOREM, parts=tuple(taken))


def _not_above_the_sum(few: NoiseTotal, parts: tuple[Part, ...], declared: BoundedSensitivity) -> WorstCase:
    """Return `few`, held to rule 6 where that covers the same lives and may be smaller."""
    ranked_by_noise = all(isinstance(one, NoiseCurve) and one.appears_at is None for one, _ in few.parts)
    everything = plain_sum(_THEOREM, parts)
    if ranked_by_noise or everything is None or not all(_covers(part, declared) for part in parts):
        return few
    return SmallerTotal(theorem=_THEOREM, few=few, everything=everything)


def _covers(part: Part, declared: BoundedSensitivity) -> bool:
    """Return whether a release's own certificate is about all lives that are declared."""
    return declared.protects == "presence" or part.protects == "value" or isinstance(part.mechanism, Count)


def _hidden(parts: tuple[Part, ...], declared: BoundedSensitivity) -> str:
    limit = f"as far as one record changes these counts, added up, by at most {declared.changes}"
    if declared.protects == "presence":
        return (
            f"Protects whether a person's record is there in these releases, {limit}; it does not protect what the "
            "record says once it is known that it is there."
        )
    if any(part.leaks_presence for part in parts):
        return (
            f"Protects what a person's record says in these releases, {limit}; it does not protect whether it is there."
        )
    return f"Protects what a person's record says in these releases, and whether it is there, {limit}."
