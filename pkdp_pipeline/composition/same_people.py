"""Rules 7 to 9 and 11: the same people asked again, everybody once, counts that a record changes little, one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pkdp_pipeline.composition.part import (
    NoiseTotal,
    Part,
    SmallerTotal,
    Total,
    WorstMaximum,
    best_attack,
    first_of,
    has_cells,
    maximum,
    what_is_hidden,
)
from pkdp_pipeline.composition.schedule import largest, plain_sum, trajectory, without_evidence
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.model.evidence import BoundedSensitivity, Evidence, OncePerUnit
from pkdp_pipeline.model.mechanisms import Count, Histogram, cells_per_unit
from pkdp_pipeline.model.wording import Protection
from pkdp_pipeline.theorems.bound import Applied, Bound, Derived, WorstCase
from pkdp_pipeline.theorems.numerics import Array, float_above
from pkdp_pipeline.theorems.theorems import emptied_by
from pkdp_pipeline.theorems.thresholding import ValueThroughAbsence
from pkdp_pipeline.theorems.worst_case import NoiseCurve, SumCurve, both_sides

_TAKEN = "each release tells about the other people, whose uncertainty would protect a person in the others"


def same_people(parts: tuple[Part, ...], evidence: Sequence[Evidence]) -> Total:
    """Add up worst-case guarantees; one exact count may stand beside parts whose noise leaves no δ."""
    total = replace(without_evidence(parts, evidence), reason=_TAKEN)
    exact = [part for part in parts if part.worst is None]
    if total.worst is not None or total.partial or len(exact) != 1 or exact[0].times > 1:
        return total
    beside = _substitution(parts, exact[0])
    if beside is None or exact[0].mechanism != Count():
        return total
    partial = tuple(
        Applied(bound=Shifted(theorem="same_people", base=applied.bound, by=beside), attack=applied.attack)
        for applied in exact[0].partial
    )
    return Total(rule="same_people", partial=partial, worst=None, protection=trajectory(parts))


def _substitution(parts: tuple[Part, ...], exact: Part) -> float | None:
    """Return ε0 such that the noised parts are together (ε0, 0)-private when one person's record is replaced.

    Anything that leaks beside them and not beside the exact count leaks with them.
    """
    spent = Fraction(0)
    for leak in {leak for part in parts for leak in part.leakage} - {*exact.leakage}:
        if leak.epsilon is None or leak.delta > 0.0:
            return None
        spent += Fraction(leak.epsilon)
    for part in parts:
        if part.worst is None:
            continue
        if part.mechanism is None or (noise := part.mechanism.noise) is None or part.worst.parameters[1] > 0.0:
            return None
        # Replacing a record changes one number of a count; of a histogram the cells that it leaves and enters.
        changes = 1 if isinstance(part.mechanism, Count) else 2 * cells_per_unit(part.mechanism)
        spent += changes * Fraction(noise.epsilon) * part.times
    return float_above(spent)


def same_table(parts: tuple[Part, ...], evidence: Sequence[Evidence]) -> Total:
    """Take the pointwise largest of what several certificates promise of one table.

    Raises `NoEvidenceError` if the parts are known to be about different tables.

    Notes
    -----
    *Guarantee*: whoever fits the attacker of one of them is covered by it, and so by the largest; with other releases
    the largest composes as one profile. *Rounding*: none of its own. *Source*: `docs/composition.md`, rule 11.
    """
    known = [part.context for part in parts if part.context is not None]
    tables = {(context.unit, context.where, context.period, context.dataset, context.table) for context in known}
    if len({part.mechanism for part in parts}) > 1 or parts[0].mechanism is None or len(tables) > 1:
        raise NoEvidenceError(
            "SameTable is about certificates of one table, which have one mechanism, period and predicate: compose "
            "those of each table first, and then the totals."
        )
    own = tuple(part for part in parts if part.protects == parts[0].protects)
    total = largest("same_table", parts, what_is_hidden(own, "this release"))
    # Equal guarantees keep what else is known of them, such as their losses.
    if len({part.bounds for part in parts}) == 1:
        return replace(total, partial=parts[0].partial, worst=parts[0].worst)
    return replace(total, worst=parts[0].worst) if len({part.worst for part in parts}) == 1 else total


def table_part(part: Part) -> Part:
    """Return a table that has several certificates, its `inside`, as the release it is: their largest promise holds."""
    inside = part.inside
    if all(member.protects != part.aim for member in inside):
        inside = tuple(replace(member, aim=part.aim) for member in inside)
    # One that says nothing about what the whole is to protect leaves nothing.
    total = same_table(inside, ()) if all(member.bounds for member in inside) else None
    return replace(
        part,
        protects=part.aim,
        certified=() if total is None else total.partial,
        against_anyone=None if total is None else total.worst,
        mechanism=inside[0].mechanism,
        context=inside[0].context,
        inside=inside,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifted(Derived):
    """The profile of an exact count beside noised releases: ``δ(ε) = δ1(ε - 2 ε0)``.

    Notes
    -----
    The other people's records given the count s, and given s - 1, can be coupled to differ in one record; that
    costs ε0, and the target's own record another. Below ``2 ε0`` the count's profile is read on the other side of 0:
    ``δ1(-x) = 1 - e^{-x} (1 - δ1(x))``. *Guarantee*: never below the divergence of the whole. *Rounding*: up.
    *Source*: `docs/composition.md`, rule 7.
    """

    by: float

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        left = np.nextafter(epsilons - math.nextafter(2.0 * self.by, math.inf), -np.inf)
        return np.zeros(len(epsilons)), np.minimum(1.0, both_sides(self.base, left))


_SENSITIVITY = "bounded_sensitivity"


def bounded_sensitivity(parts: tuple[Part, ...], evidence: Sequence[Evidence]) -> Total:
    """Add up what the numbers tell that one record can change, the most telling ones.

    Raises `NoEvidenceError` if a part is no count or histogram with noise of its own, parts are about different
    periods, they protect the value and the evidence is about presence, or something leaks that tells what the evidence
    is about.
    """
    declared = next(item for item in evidence if isinstance(item, BoundedSensitivity))
    contexts = [part.context for part in parts if part.context is not None]
    if len({(context.dataset, context.period) for context in contexts if context.period is not None}) > 1:
        raise NoEvidenceError(
            "BoundedSensitivity is about counts of one data set and one period, and these are about several: compose "
            "those of each period first, and then the totals."
        )
    if parts[0].aim == "value" and declared.protects == "presence":
        raise NoEvidenceError(
            "the releases protect in which cell a person is, and the declared bound is about her being there: declare "
            'BoundedSensitivity(…, protects="value").'
        )
    telling = emptied_by((leak for part in parts for leak in part.leakage), "value")
    if declared.protects == "value" and telling is not None:
        raise NoEvidenceError(
            f"{telling.name} always tells what a record says to somebody who knows all others, so that given it "
            'nothing is said about it: declare BoundedSensitivity(…, protects="presence").'
        )
    numbers: dict[NoiseCurve, int] = {}
    for part in parts:
        if part.worst is None:
            reason = "how little a record changes them says nothing about releases without a finite worst case of noise"
            hidden = _hidden(parts, declared)
            return Total(rule=_SENSITIVITY, partial=(), worst=None, protection=hidden, reason=reason)
        for curve in _numbers(part, declared):
            numbers[curve] = numbers.get(curve, 0) + part.times
    worst = _not_above_the_sum(_most_telling(numbers, declared.changes), parts, declared)
    return Total(rule=_SENSITIVITY, partial=(), worst=worst, protection=_hidden(parts, declared))


def _numbers(part: Part, declared: BoundedSensitivity) -> list[NoiseCurve]:
    """Return what each number of a release tells that one record can change, by 1."""
    if part.mechanism is None or not isinstance(part.worst, NoiseCurve):
        raise NoEvidenceError(
            "BoundedSensitivity adds up counts and histograms by their noise alone: compose the certificates of the "
            "releases themselves, not totals of them, and none beside a leakage that may depend on its noise."
        )
    curve = replace(part.worst, cells=1, moves=False)
    # A record that moves within a histogram leaves cells and enters as many, and only the latter appear from below k.
    moves = declared.protects == "value" and not isinstance(part.mechanism, Count)
    return ([curve, replace(curve, appears_at=None)] if moves else [curve]) * part.worst.cells


def _most_telling(numbers: dict[NoiseCurve, int], changes: int) -> NoiseTotal:
    """Return the total of the `changes` most telling numbers."""
    ranked = sorted(numbers, key=lambda curve: curve.parameters, reverse=True)
    deltas = [curve.parameters[1] for curve in ranked]
    if deltas != sorted(deltas, reverse=True) and changes < sum(numbers.values()):
        # None is the worst in both ε and δ: every one is taken for the largest of all.
        return NoiseTotal(
            theorem=_SENSITIVITY, parts=tuple((curve, numbers[curve]) for curve in ranked), differing=changes
        )
    taken = first_of(((curve, numbers[curve]) for curve in ranked), changes)
    return NoiseTotal(theorem=_SENSITIVITY, parts=tuple(taken))


def _not_above_the_sum(few: NoiseTotal, parts: tuple[Part, ...], declared: BoundedSensitivity) -> WorstCase:
    """Return `few`, held to rule 6 where that covers the same lives and may be smaller."""
    ranked_by_noise = all(isinstance(bound, NoiseCurve) and bound.appears_at is None for bound, _ in few.parts)
    everything = plain_sum(_SENSITIVITY, parts)
    # A release's own certificate is about all lives that are declared, or its noise is.
    covers = (
        declared.protects == "presence" or part.protects == "value" or isinstance(part.mechanism, Count)
        for part in parts
    )
    if ranked_by_noise or everything is None or not all(covers):
        return few
    return SmallerTotal(theorem=_SENSITIVITY, few=few, everything=everything)


def _hidden(parts: tuple[Part, ...], declared: BoundedSensitivity) -> Protection:
    limit = f"as far as one record changes these counts, added up, by at most {declared.changes}"
    if declared.protects == "presence":
        return Protection(
            f"whether a person's record is there in these releases, {limit}",
            (
                "what the record says once it is known that it is there",
                "what a person's record says once it is known that there is one",
            ),
        )
    says = "what a person's record says in these releases"
    if any(part.leaks_presence for part in parts):
        return Protection(f"{says}, {limit}", ("whether it is there", "whether a person's record is there"))
    return Protection(f"{says}, and whether it is there, {limit}")


_RULE = OncePerUnit.key


def in_one_part(parts: tuple[Part, ...], evidence: Sequence[Evidence]) -> Total:
    """Take the worst cell (presence), or the worst pair of cells (value), of the one histogram that all parts are."""
    # Where she may be in several cells, that she is in one period only links her cells.
    others = [part for part in parts if not isinstance(part.mechanism, Histogram) or part.mechanism.cells_per_unit > 1]
    for part in others:
        if part.worst is None:
            several = isinstance(part.mechanism, Histogram) and _IN_SEVERAL_CELLS
            raise NoEvidenceError(several or (_NO_HISTOGRAM if part.mechanism is not None else _SEVERAL))
    if parts[0].aim == "presence":
        # Their noise holds told anything; their numbers are not about being in none of several releases.
        told_apart = sum(part.times for part in parts) == 1 or not any(part.partial for part in others)
        which = f"in which release {'or cell ' if has_cells(parts) else ''}"
        hidden = Protection(
            "whether a person is included in any of these releases",
            (f"{which}she is once that is known", f"{which}a person is once it is known that she is there"),
        )
        reason = "only the numbers of histograms are about being in a cell of a release or in none"
        whole = largest(_RULE, parts, hidden)
        return whole if told_apart else replace(whole, partial=(), reason=reason)
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
    bounds: list[tuple[Bound, ...]] = [(applied.bound,) for applied in between] or _through_absence(parts)
    attack = best_attack(_RULE, between or _all_by("histogram_value", parts))
    total = Applied(bound=maximum(_RULE, bounds), attack=attack)
    # Theorem C reveals who is in all releases together, not who is in one of them.
    while_unknown = (
        ", while it is not known exactly how many people are in each of them; who is present means present in any of "
        "them"
        if between
        else ""
    )
    reason = (
        "the cells of different parts can be compared only where all of them rest on p_max, or all on p_max_between"
        if any(part.partial for part in parts)
        else ""
    )
    hidden = Protection(f"in which release, and in which cell of it, a person is{while_unknown}")
    partial = (total,) if bounds else ()
    return Total(rule=_RULE, partial=partial, worst=_worst_pair(parts), protection=hidden, reason=reason)


_NO_HISTOGRAM = (
    "OncePerUnit adds up histograms: its numbers are about a cell of a release, told that the person is there or in no "
    "release at all, and the p_max of a Count is not such a number. Certify each part as a Histogram (a count is one "
    "with a single cell), with p_max for that condition."
)
_IN_SEVERAL_CELLS = (
    "OncePerUnit says that a person appears in one release only, which makes her cells in different releases depend on "
    "one another; for people in several cells they have to be independent. Put noise on them, or count each person in "
    "one cell."
)
_SEVERAL = (
    "OncePerUnit adds up one histogram for each period; several releases about one period count by their noise, and "
    "not all of these have a finite worst case. Publish one cross-tabulated histogram for each period, or put noise on "
    "all of them."
)


def _all_by(theorem: str, parts: tuple[Part, ...]) -> list[Applied]:
    """Return the bounds of all parts by one theorem; none where a part has none."""
    several = (promise for part in parts for promise in part.promises)
    by_promise = [[applied for applied in promise.partial if applied.bound.theorem == theorem] for promise in several]
    return [applied for group in by_promise for applied in group] if all(by_promise) else []


def _through_absence(parts: tuple[Part, ...]) -> list[tuple[Bound, ...]]:
    """Theorem B for two cells of any two parts: both cells as telling as the worst of all.

    A person who is known is in one part only, so two cells of different parts may hold the known people of both.
    """
    applied = _all_by("histogram_value", parts)
    bounds = [entry.bound for entry in applied if isinstance(entry.bound, ValueThroughAbsence)]
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
    """Noise against a move between any two parts, a change in each, and within one (`docs/composition.md`, rule 8)."""
    theorem = "worst_case_parts"
    everything = plain_sum(theorem, parts)
    if everything is None:
        return None
    bounds = [bound for bound, _ in everything.parts]
    of_cells = [bound for bound in bounds if isinstance(bound, NoiseCurve | SumCurve)]
    if len(bounds) == len(of_cells) == 1 and of_cells[0].moves:
        (own,) = of_cells
        if own.table is None or own.table >= 2 * own.cells:  # to leave all cells for others is to move
            return own
    others = (bound for bound in bounds if not isinstance(bound, NoiseCurve | SumCurve))
    changes = dict.fromkeys([*(replace(bound, moves=False, table=None) for bound in of_cells), *others])
    few: WorstCase = NoiseTotal(theorem=theorem, parts=((WorstMaximum(theorem=theorem, parts=tuple(changes)), 2),))
    # What somebody adds to one cell may change by more than her being there: within a sum that is no two changes.
    if within := tuple(bound for bound in bounds if isinstance(bound, SumCurve)):
        few = WorstMaximum(theorem=theorem, parts=(few, *within))
    return SmallerTotal(theorem=theorem, few=few, everything=everything)
