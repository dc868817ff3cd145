"""The rules by which guarantees add up: which evidence calls which, and what each refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from pkdp_pipeline.composition.bounded_sensitivity import bounded_sensitivity
from pkdp_pipeline.composition.maximum import WorstMaximum
from pkdp_pipeline.composition.once_per_unit import once_per_unit
from pkdp_pipeline.composition.part import Part, Total
from pkdp_pipeline.composition.same_people import same_people
from pkdp_pipeline.composition.schedule import (
    bounded_dependence,
    bounded_participation,
    disjoint_units,
    independent_given_habits,
    one_day_protected,
    without_evidence,
)
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.model.evidence import KINDS, BoundedParticipation, Evidence
from pkdp_pipeline.model.wording import Speech, Worded

__all__ = ["RULES", "apply_rule"]

Rule = Callable[[tuple[Part, ...], tuple[Evidence, ...]], Total]

_REGISTRY: dict[frozenset[str], Rule] = {
    frozenset[str](): without_evidence,
    frozenset({"disjoint_units"}): disjoint_units,
    frozenset({"independent_given_habits"}): independent_given_habits,
    frozenset({"independent_given_habits", "bounded_participation"}): independent_given_habits,
    frozenset({"one_day_protected"}): one_day_protected,
    frozenset({"one_day_protected", "bounded_participation"}): one_day_protected,
    frozenset({"bounded_dependence"}): bounded_dependence,
    frozenset({"bounded_participation"}): bounded_participation,
    frozenset({"same_people"}): same_people,
    frozenset({"once_per_unit"}): once_per_unit,
    frozenset({"bounded_sensitivity"}): bounded_sensitivity,
}
RULES: Mapping[frozenset[str], Rule] = MappingProxyType(_REGISTRY)
"""What was declared → the rule that uses it."""


def apply_rule(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up `parts` by the rule for `evidence`.

    Raises
    ------
    NoEvidenceError
        If neither a partial-knowledge nor a worst-case total follows.
    """
    if not parts:
        nothing = WorstMaximum(theorem="worst_case_parts", parts=())
        return Total(rule="nothing", partial=(), worst=nothing, protection="Nothing can be told from nothing.")
    for part in parts:
        if not part.bounds:
            raise NoEvidenceError(
                "the parts protect different things: a part that hides which cell a person is in says nothing about "
                "whether she is there. Certify all parts with the same protects."
            )
    total = RULES[frozenset(one.key for one in evidence)](parts, evidence)
    if not total.partial and total.worst is None:
        reason = total.reason or "no rule makes a total of them"
        declared = frozenset(type(one) for one in evidence)
        excepted = bool(same_people(parts, ()).partial)
        raise NoEvidenceError(Worded(partial(_unsummed, reason, declared, excepted)))
    return total


def _unsummed(reason: str, declared: frozenset[type[Evidence]], excepted: bool, say: Speech) -> str:
    # What was declared and led nowhere is no choice; bounded participation is one beside other evidence.
    choices = ", ".join(
        f"{say.evidence(kind)} ({kind.holds})"
        for kind in KINDS.values()
        if kind.holds and kind not in declared - {BoundedParticipation}
    )
    beside = say.same_people if excepted else ""
    return (
        f"these releases do not add up: {reason}, and not all of them are noised with a finite worst case. Declare "
        f"evidence that holds: {choices}{beside}. Or put noise on all of them; or publish one cross-tabulated "
        "histogram, its cells declared in domain, and derive the others from it."
    )
