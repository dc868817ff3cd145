"""Totals beside leakages: what leaks beside a part leaks beside the whole, and an exact total adds nothing new."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pkdp_pipeline.composition.part import Part, Total
from pkdp_pipeline.composition.rules import apply_rule
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.leakage import Leakage, leakages
from pkdp_pipeline.model.wording import Worded, listed
from pkdp_pipeline.theorems.beside_leakage import Leaked

__all__ = ["assumed_beside", "leakage_of", "total_beside"]


def leakage_of(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> tuple[Leakage, ...]:
    """Return all that leaks beside any of the parts.

    Raises
    ------
    NoEvidenceError
        If the leakages of different parts say nothing together, or not what the rule needs.
    """
    found = tuple(dict.fromkeys(leak for part in parts for leak in part.leakage))
    try:
        leakages(found)
    except ArgumentError as error:
        raise NoEvidenceError(f"the leakages beside the parts do not add up: {error}") from error
    many = sum(part.times for part in parts) > 1
    dependent = next((leak for leak in found if leak.is_dependent), None)
    if many and dependent is not None:
        raise NoEvidenceError(
            f"{dependent.name} may depend on the releases' noise: how much it does on each does not bound how much it "
            "does on all of them, as two noises and their sum show. Publish it with randomness of its own, or certify "
            "the releases one by one."
        )
    private = next((leak for leak in found if leak.is_private), None)
    if private is not None and any(one.key == "bounded_sensitivity" for one in evidence):
        raise NoEvidenceError(
            f"{private.name} may change with every record, whichever counts the record changes, so that a bound on the "
            "changes of the counts does not hold for it. Leave the evidence out: worst cases then add up, with it."
        )
    return found


def total_beside(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up parts by the rule for `evidence`; exact totals, which the other parts count with, are set aside.

    Raises
    ------
    NoEvidenceError
        If an exact total stands beside parts that were certified without it, or nothing follows.
    """
    aside = tuple(part for part in parts if isinstance(part.worst, Leaked))
    if not aside:
        return apply_rule(parts, evidence)
    others = tuple(part for part in parts if not isinstance(part.worst, Leaked))
    if not others:
        rule = "single" if len(parts) == 1 and parts[0].times == 1 else "worst_case_parts"
        return Total(
            rule=rule,
            partial=(),
            worst=aside[0].worst,
            protection=(
                "These releases are how many people are present, which may be known anyhow: they do not tell which "
                "cell a person is in, and they do not protect whether she is included."
            ),
            reason="they are part of what leaks",
        )
    if not all(part.knows_total for part in others):
        start = (
            "the exact number of people present is among the releases, and some of the others were certified without "
            "it: certify all of them with "
        )
        raise NoEvidenceError(Worded(lambda say: f"{start}{say.leakage_of_total}."))
    total = apply_rule(others, evidence)
    if total.partial and any(one.key == "bounded_dependence" for one in evidence):
        # Another day's total is a release that depends on earlier ones; the day's own counts as part of its table.
        counted = (*others, *(part for part in aside if not _is_beside(part, others)))
        total = replace(total, partial=apply_rule(counted, evidence).partial)
    if total.partial and not any(one.key in _COVER_PERIODS for one in evidence) and _are_of_others(aside, others):
        # Who is there in one period, or table, may depend on the cell a person is in in another.
        total = replace(total, partial=(), reason="an exact total is about another period or table than the rest")
        if total.worst is None:
            raise NoEvidenceError(f"these releases do not add up: {total.reason}, and not all of them are noised.")
    return replace(total, rule="worst_case_parts") if total.rule == "single" else total


def assumed_beside(
    parts: tuple[Part, ...], evidence: tuple[Evidence, ...], leakage: tuple[Leakage, ...]
) -> tuple[str, ...]:
    """Return what a total assumes about leakages, besides what its parts assume; as plain sentences."""
    if not leakage:
        return ()
    told = []
    # Worst cases, and rule 7, count with every leakage, whichever release names it.
    on_others = any(one.key not in ("same_people", "bounded_participation", "bounded_sensitivity") for one in evidence)
    if on_others and any(set(part.leakage) != set(leakage) for part in parts):
        told.append("What leaks beside one release tells nothing about the records of releases that do not name it.")
    keys = {one.key for one in evidence}
    if "bounded_dependence" in keys:
        told.append("What leaks beside a release counts as part of it where releases depend on earlier ones.")
    private = [leak.name for leak in leakage if leak.is_private]
    if private and sum(part.times for part in parts) > 1:
        told.append(_one_or_many(f"What is private by itself ({listed(private)})", keys))
    return tuple(told)


def _one_or_many(subject: str, keys: set[str]) -> str:
    """Say whether a private leakage is one thing beside all releases, or one beside each."""
    if "same_people" in keys:
        return f"{subject} is one and the same beside all of the releases."
    own = "follows from the records of one release alone, each release having its own, with randomness of its own"
    if "independent_given_habits" in keys:
        # One that follows from many days differs in as many records, and not independently from day to day.
        return f"{subject} {own}."
    return f"{subject} is so for everything that a person did in the releases, or {own}."


_COVER_PERIODS = frozenset({"disjoint_units", "independent_given_habits", "one_day_protected", "bounded_dependence"})
"""Evidence that says how the records of different periods depend on one another."""


def _are_of_others(aside: Iterable[Part], others: Iterable[Part]) -> bool:
    """Return whether an exact total is known to be about another period or table than one of the other parts."""
    totals = [context for part in aside for context in part.contexts]
    rest = [context for part in others for context in part.contexts]
    return any(
        one.table != other.table
        or (one.dataset != other.dataset and None not in (one.dataset, other.dataset))
        or (one.period != other.period and None not in (one.period, other.period))
        for one in totals
        for other in rest
    )


def _is_beside(total: Part, others: Iterable[Part]) -> bool:
    """Return whether an exact total is known to be about the same period and table as one of the other parts."""
    of_it, rest = (
        {(context.dataset, context.table, context.period) for part in some for context in part.contexts}
        for some in ((total,), others)
    )
    return bool(of_it) and of_it <= rest and all(period is not None for *_, period in of_it)
