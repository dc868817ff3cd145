"""The differencing rule: what may stand published together about the same people. It looks at no data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pkdp_pipeline.errors import DifferencingError
from pkdp_pipeline.ledger.account import Account
from pkdp_pipeline.ledger.overlap_cases import crossing, overlap, promised
from pkdp_pipeline.ledger.rows import Row
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import BoundedDependence, Evidence, read_evidence
from pkdp_pipeline.model.facts import Facts
from pkdp_pipeline.model.mechanisms import NOISELESS

FactsOf = Callable[[Row], Facts]

_NAMED_FIRST = {"noiseless": 0, "exact count": 1, "total": 1}


def allows_overlap(evidence: Iterable[Evidence]) -> bool:
    """Return whether noiseless releases may overlap others: only the dependence itself being bounded allows it."""
    return any(isinstance(one, BoundedDependence) for one in evidence)


def covers_periods(evidence: Iterable[Evidence]) -> bool:
    """Return whether noiseless releases about different periods may be added up."""
    return any(one.covers_periods for one in evidence)


def may_stand_together(releases: Sequence[Row]) -> bool:
    """Return whether releases whose periods overlap, one leading to the next, may all stand without evidence.

    They may when there is one of them, when all are noised, or when a single exact count stands beside pure
    noise about the same unit. One total may stand beside any of these but an exact count, where all are about the
    same unit, table and period, and about attackers who are told it (`docs/composition.md`, rule 7).
    """
    if len(releases) <= 1 or not any(one.kind in NOISELESS for one in releases):
        return True
    others = [one for one in releases if one.kind != "total"]
    exact = sum(one.kind == "exact count" for one in others)
    if len(others) < len(releases):
        same = len({(one.unit, one.source, one.span) for one in releases}) == 1
        given = same and not exact and all(one.told for one in releases)
        return given and len(releases) - len(others) == 1 and may_stand_together(others)
    pure = all(one.kind in ("exact count", "pure noise") for one in others)
    return exact == 1 and pure and len({one.unit for one in others}) == 1


def may_stand_apart(releases: Sequence[Row]) -> bool:
    """Return whether releases about different periods may stand without evidence about how periods depend.

    They may when all are noised. Totals may be among them where all are about one unit and about attackers who are
    told: what noise gives against anybody is then given all totals, and adds up.
    """
    if not any(one.kind in NOISELESS for one in releases):
        return True
    noised = all(one.kind == "total" or one.kind not in NOISELESS for one in releases)
    return noised and all(one.told for one in releases) and len({one.unit for one in releases}) == 1


def check_differencing(
    standing: Facts,
    others: Iterable[Facts | tuple[Facts, AttackerModel]],
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
    standing : Facts
        The release asked for.
    others : iterable of Facts or of (Facts, AttackerModel)
        Releases of the data set that are published or charged, each with the attacker it is certified
        against; without one it is an attacker who is not told who is there.
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
    listed = [(one, None) if isinstance(one, Facts) else one for one in others]
    releases = [
        Row.of(one, id=number, told=whom is not None and whom.total_is_known)
        for number, (one, whom) in enumerate(listed, start=1)
    ]
    asked = Row.of(standing, told=attacker is not None and attacker.total_is_known)
    near = [one for group in Account(releases).met(asked) for one in group]
    facts = [standing, *(one for one, _ in listed)]
    check_beside(asked, near, lambda: releases, read_evidence(evidence), lambda one: facts[one.id], dataset=dataset)


def check_beside(
    asked: Row,
    near: Sequence[Row],
    everything: Callable[[], Iterable[Row]],
    evidence: Iterable[Evidence],
    facts: FactsOf,
    *,
    dataset: str,
) -> None:
    """Refuse a release that cannot stand beside what is charged.

    Parameters
    ----------
    asked : Row
    near : sequence of Row
        What is charged in periods that lead to its own.
    everything : callable
        Returns all that is charged; called only where other periods matter.
    evidence : iterable of Evidence
    facts : callable
        Returns the facts of a row, those of `asked` too.
    dataset : str

    Raises
    ------
    DifferencingError
    """
    evidence = tuple(evidence)
    near = sorted(near, key=lambda one: one.id)
    if allows_overlap(evidence):
        untold = next((one for one in near if not one.told), None)
        if asked.kind == "total" and untold is not None:
            raise DifferencingError(promised(facts(asked), facts(untold)))
        return
    if not may_stand_together([asked, *near]):
        _refuse_overlap(asked, near, facts, dataset)
    if covers_periods(evidence):
        return
    charged = list(everything())
    known = {one.id for one in near}
    far = sorted((one for one in charged if one.id not in known), key=lambda one: _NAMED_FIRST.get(one.kind, 2))
    if far and not may_stand_apart([asked, *charged]):
        _refuse_crossing(asked, far, facts, dataset)


def _refuse_overlap(asked: Row, near: Sequence[Row], facts: FactsOf, dataset: str) -> None:
    """Raise the error for a release among `near`, whose periods lead to its own."""
    direct = [one for one in near if one.meets(asked)]
    for one in direct:
        if not may_stand_together([asked, one]):
            raise DifferencingError(overlap(facts(asked), facts(one), dataset, told=bool(asked.told and one.told)))
    first = next((one for one in near if one.kind in ("exact count", "noiseless")), near[0])
    through = facts(direct[0]) if first not in direct else None
    raise DifferencingError(overlap(facts(asked), facts(first), dataset, through=through, told=True))


def _refuse_crossing(asked: Row, far: Sequence[Row], facts: FactsOf, dataset: str) -> None:
    """Raise the error for a release beside those of other periods; it names the first that is in its way, if any."""
    in_the_way = (one for one in far if not may_stand_apart([asked, one]))
    noiseless = (one for one in far if one.kind in NOISELESS)
    other = next(in_the_way, None) or next(noiseless, far[0])
    raise DifferencingError(crossing(facts(asked), facts(other), dataset, told=bool(asked.told or other.told)))
