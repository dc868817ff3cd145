"""The differencing rule: what may stand published together about the same people. It looks at no data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pkdp_pipeline.composition.evidence import (
    BoundedDependence,
    DisjointUnits,
    Evidence,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
    read_evidence,
)
from pkdp_pipeline.errors import DifferencingError
from pkdp_pipeline.ledger.overlap_cases import crossing, overlap
from pkdp_pipeline.ledger.period import Period
from pkdp_pipeline.ledger.standing import Standing

__all__ = [
    "Company",
    "allows_overlap",
    "check_differencing",
    "company_of",
    "covers_periods",
    "may_stand_together",
    "overlapping",
    "refuse_crossing",
    "refuse_overlap",
]

Company = Mapping[tuple[str, tuple[str, ...]], int]
"""How many releases there are of each `Standing.kind` and unit (its columns in order)."""

_NOISELESS = ("exact count", "noiseless")


def overlapping(standing: Standing, others: Iterable[Standing]) -> list[Standing]:
    """Return those of `others` whose period overlaps that of `standing`."""
    period = Period.parse(standing.period)
    return [other for other in others if period.overlaps(Period.parse(other.period))]


def company_of(standings: Iterable[Standing]) -> Counter[tuple[str, tuple[str, ...]]]:
    """Count releases by kind and unit."""
    return Counter((standing.kind, tuple(sorted(standing.unit))) for standing in standings)


def may_stand_together(company: Company) -> bool:
    """Return whether releases whose periods overlap, one leading to the next, may all stand without evidence.

    They may when there is one of them, when all are noised, or when a single exact count stands beside pure
    noise about the same unit (`docs/composition.md`, rule 7).
    """
    if sum(company.values()) <= 1 or not has_noiseless(company):
        return True
    exact = sum(number for (kind, _), number in company.items() if kind == "exact count")
    others_pure = all(kind in ("exact count", "pure noise") for kind, _ in company)
    return exact == 1 and others_pure and len({unit for _, unit in company}) == 1


def has_noiseless(company: Company) -> bool:
    """Return whether any of them has no noise that gives a finite worst case."""
    return any(kind in _NOISELESS for kind, _ in company)


def allows_overlap(evidence: Iterable[Evidence]) -> bool:
    """Return whether noiseless releases may overlap others: only the dependence itself being bounded allows it."""
    return any(isinstance(one, BoundedDependence) for one in evidence)


def covers_periods(evidence: Iterable[Evidence]) -> bool:
    """Return whether noiseless releases about different periods may be added up."""
    kinds = (OneDayProtected, DisjointUnits, OncePerUnit, IndependentGivenHabits, BoundedDependence)
    return any(isinstance(one, kinds) for one in evidence)


def check_differencing(
    standing: Standing, others: Iterable[Standing], *, dataset: str, evidence: object = None
) -> None:
    """Refuse a release that cannot stand beside the others of its data set.

    Releases about the same people in overlapping periods may stand together only when noise gives all of them
    a finite worst case, or when one exact count stands beside pure noise. A noiseless release is protected by
    what the attacker does not know about the other people, and any other release about them, noised or not,
    tells some of it. For the same reason a noiseless release in another period needs evidence about how
    people's periods depend on each other.

    Parameters
    ----------
    standing : Standing
        The release to be made.
    others : iterable of Standing
        Different releases of the same data set that stand already, or are to be made together with it.
    dataset : str
        The data set's name, for the message.
    evidence : optional
        What is declared about the data set; see `read_evidence`.

    Raises
    ------
    DifferencingError
        Naming both releases, the case and the ways out.

    Notes
    -----
    `docs/composition.md`, rule 7. People are the same when the data set is: predicates, columns and units are
    not compared to find out whether two releases concern different people.
    """
    declared = read_evidence(evidence)
    if allows_overlap(declared):
        return
    near, far = _connected(standing, list(others))
    everything = [standing, *near]
    if not may_stand_together(company_of(everything)):
        refuse_overlap(standing, near, dataset=dataset)
    if far and not covers_periods(declared) and has_noiseless(company_of([*everything, *far])):
        refuse_crossing(standing, far, dataset=dataset)


def refuse_overlap(standing: Standing, near: Sequence[Standing], *, dataset: str) -> None:
    """Raise the error for a release among `near`, whose periods lead to its own."""
    direct = overlapping(standing, near)
    pairs = [other for other in direct if not may_stand_together(company_of([standing, other]))]
    if pairs:
        raise DifferencingError(overlap(standing, pairs[0], dataset))
    first = next((other for other in near if other.noiseless), near[0])
    raise DifferencingError(overlap(standing, first, dataset, through=direct[0] if first not in direct else None))


def refuse_crossing(standing: Standing, far: Sequence[Standing], *, dataset: str) -> None:
    """Raise the error for a release beside those of other periods."""
    other = next((other for other in far if other.noiseless), far[0])
    raise DifferencingError(crossing(standing, other, dataset))


def _connected(standing: Standing, others: list[Standing]) -> tuple[list[Standing], list[Standing]]:
    """Split `others` into those whose periods lead to that of `standing`, and the rest."""
    periods = [Period.parse(other.period) for other in others]
    near: list[int] = []
    far = list(range(len(others)))
    reached = [Period.parse(standing.period)]
    while reached:
        period = reached.pop()
        found = [index for index in far if period.overlaps(periods[index])]
        far = [index for index in far if not period.overlaps(periods[index])]
        near += found
        reached += [periods[index] for index in found]
    return [others[index] for index in sorted(near)], [others[index] for index in far]
