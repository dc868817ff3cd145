"""The differencing rule: what may stand published together about the same people. It looks at no data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pkdp_pipeline.errors import DifferencingError
from pkdp_pipeline.ledger.overlap_cases import crossing, overlap
from pkdp_pipeline.ledger.overlap_rules import Member, may_stand_apart, may_stand_together
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    DisjointUnits,
    Evidence,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
    read_evidence,
)
from pkdp_pipeline.model.period import Period

__all__ = [
    "Beside",
    "allows_overlap",
    "check_differencing",
    "covers_periods",
    "overlapping",
    "refuse_crossing",
    "refuse_overlap",
]

Beside = tuple[Standing, bool]
"""A release and whether its certificate is about an attacker to whom `total_is_known`."""


def overlapping(standing: Standing, others: Iterable[Standing]) -> list[Standing]:
    """Return those of `others` whose period overlaps that of `standing`."""
    period = Period.parse(standing.period)
    return [other for other in others if period.overlaps(Period.parse(other.period))]


def allows_overlap(evidence: Iterable[Evidence]) -> bool:
    """Return whether noiseless releases may overlap others: only the dependence itself being bounded allows it."""
    return any(isinstance(one, BoundedDependence) for one in evidence)


def covers_periods(evidence: Iterable[Evidence]) -> bool:
    """Return whether noiseless releases about different periods may be added up."""
    kinds = (OneDayProtected, DisjointUnits, OncePerUnit, IndependentGivenHabits, BoundedDependence)
    return any(isinstance(one, kinds) for one in evidence)


def check_differencing(
    standing: Standing,
    others: Iterable[Standing | tuple[Standing, AttackerModel]],
    *,
    dataset: str,
    evidence: object = None,
    attacker: AttackerModel | None = None,
) -> None:
    """Refuse a release that cannot stand beside the others of its data set.

    Releases about the same people in overlapping periods may stand together only when noise gives all of them
    a finite worst case, or when one exact count stands beside pure noise. A noiseless release is protected by
    what the attacker does not know about the other people, and any other release about them, noised or not,
    tells some of it. For the same reason a noiseless release in another period needs evidence about how
    people's periods depend on each other. A total may stand beside what is certified against attackers who are
    told it.

    Parameters
    ----------
    standing : Standing
        The release to be made.
    others : iterable of Standing, or of (Standing, AttackerModel)
        Different releases of the same data set that stand already, or are to be made together with it; where a
        total may be among them, with the attackers they are certified against.
    dataset : str
        The data set's name, for the message.
    evidence : optional
        What is declared about the data set; see `read_evidence`.
    attacker : AttackerModel, optional
        Whom the release is to be certified against. None: one who is not told who is there.

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
    listed = [(one, False) if isinstance(one, Standing) else (one[0], one[1].total_is_known) for one in others]
    asked = (standing, attacker is not None and attacker.total_is_known)
    near, far = _connected(standing, listed)
    if not may_stand_together(_company([asked, *near])):
        refuse_overlap(asked, near, dataset=dataset)
    if far and not covers_periods(declared) and not may_stand_apart(_company([asked, *listed])):
        refuse_crossing(asked, far, dataset=dataset)


def refuse_overlap(asked: Beside, near: Sequence[Beside], *, dataset: str) -> None:
    """Raise the error for a release among `near`, whose periods lead to its own."""
    standing = asked[0]
    direct = overlapping(standing, [one for one, _ in near])
    pairs = [one for one in near if one[0] in direct and not may_stand_together(_company([asked, one]))]
    if pairs:
        raise DifferencingError(overlap(standing, pairs[0][0], dataset, told=asked[1] and pairs[0][1]))
    known = [one for one, _ in near]
    first = next((other for other in known if other.noiseless and not other.total), known[0])
    through = direct[0] if first not in direct else None
    raise DifferencingError(overlap(standing, first, dataset, through=through, told=True))


def refuse_crossing(asked: Beside, far: Iterable[Beside], *, dataset: str) -> None:
    """Raise the error for a release beside those of other periods; it names the first that is in its way, if any."""
    listed: list[Beside] = []
    for one in far:
        listed.append(one)
        if not may_stand_apart(_company([asked, one])):
            raise DifferencingError(crossing(asked[0], one[0], dataset, told=asked[1] or one[1]))
    other = next((one for one in listed if one[0].noiseless), listed[0])
    raise DifferencingError(crossing(asked[0], other[0], dataset, told=asked[1] or other[1]))


def _company(members: Iterable[Beside]) -> Counter[Member]:
    return Counter(Member.of(standing, told=told) for standing, told in members)


def _connected(standing: Standing, others: list[Beside]) -> tuple[list[Beside], list[Beside]]:
    """Split `others` into those whose periods lead to that of `standing`, and the rest."""
    periods = [Period.parse(other.period) for other, _ in others]
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
