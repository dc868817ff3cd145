"""Admission: what may stand published together about the same people, and what a certificate may claim there.

It looks at no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError, DifferencingError, TemporaryError
from pkdp_pipeline.ledger.account import Account
from pkdp_pipeline.ledger.chain import Terms
from pkdp_pipeline.ledger.overlap_cases import crossing, overlap, promised, untold
from pkdp_pipeline.ledger.records import Records
from pkdp_pipeline.ledger.rows import Row, certificate_of, describe
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.evidence import BoundedDependence, Evidence, read_evidence
from pkdp_pipeline.model.mechanisms import NOISELESS

FactsOf = Callable[[Row], Facts]

_NAMED_FIRST = {"noiseless": 0, "exact count": 1, "total": 1}


def allows_overlap(evidence: Iterable[Evidence]) -> bool:
    """Return whether noiseless releases may overlap others: only the dependence itself being bounded allows it."""
    return any(isinstance(declaration, BoundedDependence) for declaration in evidence)


def covers_periods(evidence: Iterable[Evidence]) -> bool:
    """Return whether noiseless releases about different periods may be added up."""
    return any(declaration.covers_periods for declaration in evidence)


def may_stand_together(releases: Sequence[Row]) -> bool:
    """Return whether releases whose periods overlap, one leading to the next, may all stand without evidence.

    They may when there is one of them, when all are noised, or when a single exact count stands beside pure
    noise about the same unit. One total may stand beside any of these but an exact count, where all are about the
    same unit, table and period, and about attackers who are told it (`docs/composition.md`, rule 7).
    """
    if len(releases) <= 1 or not any(release.kind in NOISELESS for release in releases):
        return True
    others = [release for release in releases if release.kind != "total"]
    exact = sum(release.kind == "exact count" for release in others)
    if len(others) < len(releases):
        same = len({(release.unit, release.source, release.span) for release in releases}) == 1
        given = same and not exact and all(release.told for release in releases)
        return given and len(releases) - len(others) == 1 and may_stand_together(others)
    pure = all(release.kind in ("exact count", "pure noise") for release in others)
    return exact == 1 and pure and len({release.unit for release in others}) == 1


def may_stand_apart(releases: Sequence[Row]) -> bool:
    """Return whether releases about different periods may stand without evidence about how periods depend.

    They may when all are noised. Totals may be among them where all are about one unit and about attackers who are
    told: what noise gives against anybody is then given all totals, and adds up.
    """
    if not any(release.kind in NOISELESS for release in releases):
        return True
    noised = all(release.kind == "total" or release.kind not in NOISELESS for release in releases)
    return noised and all(release.told for release in releases) and len({release.unit for release in releases}) == 1


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
    told it. Raises `DifferencingError`, naming both releases, the case and the ways out.

    `others` are all that is published or charged, with the attackers they are certified against, as `attacker` is that
    of the release asked for; without one it is an attacker who is not told who is there.

    Notes
    -----
    `docs/composition.md`, rule 7. People are the same when the data set is: predicates, columns and units are
    not compared to find out whether two releases concern different people.
    """
    listed = [(other, None) if isinstance(other, Facts) else other for other in others]
    totals = {frozenset(release.by or ()) for release in (standing, *(facts for facts, _ in listed)) if release.total}

    def knows_totals(whom: AttackerModel | None) -> bool:
        return whom is not None and whom.total_is_known and totals <= whom.totals_known

    releases = [
        Row.of(release, id=number, total_is_known=knows_totals(whom))
        for number, (release, whom) in enumerate(listed, start=1)
    ]
    requested = Row.of(standing, total_is_known=knows_totals(attacker))
    connected = [row for group in Account(releases).met(requested) for row in group]
    facts = [standing, *(release for release, _ in listed)]
    check_beside(
        requested, connected, lambda: releases, read_evidence(evidence), lambda row: facts[row.id], dataset=dataset
    )


def check_beside(
    requested: Row,
    connected: Sequence[Row],
    everything: Callable[[], Iterable[Row]],
    evidence: Iterable[Evidence],
    facts: FactsOf,
    *,
    dataset: str,
) -> None:
    """Refuse a release that cannot stand beside what is charged.

    Parameters
    ----------
    connected : sequence of Row
        The releases charged in periods that lead to its own.
    everything : callable
        Returns all that is charged; called only where other periods matter.
    facts : callable
        Returns the facts of a row, those of `requested` too.
    """
    evidence = tuple(evidence)
    connected = sorted(connected, key=lambda row: row.id)
    if allows_overlap(evidence):
        untold = next((row for row in connected if not row.told), None)
        if requested.kind == "total" and untold is not None:
            raise DifferencingError(promised(facts(requested), facts(untold)))
        return
    if not may_stand_together([requested, *connected]):
        _refuse_overlap(requested, connected, facts, dataset)
    if covers_periods(evidence):
        return
    charged = list(everything())
    known = {row.id for row in connected}
    apart = sorted((row for row in charged if row.id not in known), key=lambda row: _NAMED_FIRST.get(row.kind, 2))
    if apart and not may_stand_apart([requested, *charged]):
        _refuse_crossing(requested, apart, facts, dataset)


def _refuse_overlap(requested: Row, connected: Sequence[Row], facts: FactsOf, dataset: str) -> None:
    """Raise the error for a release among `connected` ones, whose periods lead to its own."""
    direct = [row for row in connected if row.meets(requested)]
    for row in direct:
        if not may_stand_together([requested, row]):
            raise DifferencingError(
                overlap(facts(requested), facts(row), dataset, total_known=bool(requested.told and row.told))
            )
    first = next((row for row in connected if row.kind in ("exact count", "noiseless")), connected[0])
    through = facts(direct[0]) if first not in direct else None
    raise DifferencingError(overlap(facts(requested), facts(first), dataset, through=through, total_known=True))


def _refuse_crossing(requested: Row, apart: Sequence[Row], facts: FactsOf, dataset: str) -> None:
    """Raise the error for a release beside those of other periods; it names the first that is in its way, if any."""
    conflicting = (row for row in apart if not may_stand_apart([requested, row]))
    noiseless = (row for row in apart if row.kind in NOISELESS)
    other = next(conflicting, None) or next(noiseless, apart[0])
    raise DifferencingError(
        crossing(facts(requested), facts(other), dataset, total_known=bool(requested.told or other.told))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The ledger's answer about a release that may be published.

    Attributes
    ----------
    alone : bool
        Whether no other charged release about these people has an overlapping period, a total that its attacker is
        told aside.
    claims : bool
        Whether its certificate may claim more than the worst case: when it is alone, when the declared dependence
        covers what overlaps, or when it is the one exact count beside pure noise.
    covered : bool
        Whether the declared dependence covers any release, whatever it overlaps.
    total : str or None
        The label of a release because of which its attacker must be told who is there: a total that stands beside
        it, or, for a total, a release that does.
    totals : frozenset of frozenset of str
        The columns by which its attacker must then be told how many people there are.
    """

    alone: bool
    claims: bool
    covered: bool = False
    total: str | None = None
    totals: frozenset[frozenset[str]] = frozenset()

    def check_told(self, certificate: Certificate) -> None:
        """Refuse a `certificate` about an attacker who is not told what a total tells.

        Raises
        ------
        DifferencingError
        """
        if self.total is None or not isinstance(certificate, ReleaseCertificate):
            return
        if not self.totals <= certificate.attacker.totals_known:
            raise DifferencingError(untold(self.total, sorted(frozenset[str]().union(*self.totals))))

    def check_claims(self, certificate: Certificate) -> None:
        """Refuse a new `certificate` of a charged release that claims more than is allowed by now.

        Raises
        ------
        DifferencingError
            If a total stands beside it, and the certificate is about an attacker who is not told it.
        TemporaryError
        """
        self.check_told(certificate)
        context = certificate.context if isinstance(certificate, ReleaseCertificate) else None
        overlooked = context is not None and not context.beside and not self.alone
        if overlooked or (certificate.has_partial_knowledge and not self.claims):
            raise TemporaryError(
                "other releases about these people stand beside it by now, and its new certificate overlooks them: run "
                "again."
            )


def admit(
    records: Records, standing: Facts, terms: Terms, *, total_is_known: bool = False, instead_of: int | None = None
) -> Admission:
    """Refuse a release that cannot stand beside what is charged; it needs no data.

    `total_is_known`: whether it is of the attacker that its certificate will be about. `instead_of`: an entry that is
    left out of account: the release takes its place.
    """
    if standing.time_zone is not None:  # None outside of jobs, where periods are given by hand
        check_time_zone(records, standing.time_zone, instead_of=instead_of)
    requested = Row.of(standing, total_is_known=total_is_known)
    connected = [row for group in records.account(requested).without(instead_of).met(requested) for row in group]

    if standing.total and standing.by:
        # A row says whether the number of people is known, not by which columns.
        connected = [
            row._replace(told=int(_all_know_totals(records, row.id, frozenset(standing.by)))) for row in connected
        ]

    def everything() -> Sequence[Row]:
        # Where all that is charged is noised, what other periods hold does not matter.
        query = "SELECT 1 FROM entry WHERE dataset = :dataset AND state <> 'given_back' AND kind IN "
        noiseless = f"({', '.join(map(repr, NOISELESS))}) LIMIT 1"
        if requested.kind not in NOISELESS and not records.execute(query + noiseless):
            return ()
        return records.account().without(instead_of).rows

    def facts(row: Row) -> Facts:
        return standing if row is requested else records.facts(row.id)

    check_beside(requested, connected, everything, terms.evidence, facts, dataset=records.dataset)
    return _admission(requested, connected, terms, facts)


def least_admission(records: Records, entry: int, alternatives: Iterable[Terms]) -> Admission:
    """Return what a charged release may claim now, beside all charged since, under each of several terms: the least."""
    own = records.row(entry)
    beside = [row for row in records.account(own).component(entry) if row.id != entry]
    admissions = [_admission(own, beside, terms, lambda row: records.facts(row.id)) for terms in alternatives]
    return min(admissions, key=lambda admission: (admission.claims, admission.covered))


def _all_know_totals(records: Records, entry: int, by: frozenset[str]) -> bool:
    """Return whether every certificate of a release is about attackers who know the totals by these columns."""
    certified = map(certificate_of, map(describe, records.read(entry).certificates))
    return all(by in certificate.attacker.totals_known for certificate in certified)


def _admission(own: Row, beside: Sequence[Row], terms: Terms, facts: FactsOf) -> Admission:
    """Return what a release may claim beside these."""
    covered, fits = allows_overlap(terms.evidence), may_stand_together([own, *beside])
    only_totals = own.kind != "total" and all(row.kind == "total" for row in beside)
    alone = not beside or (only_totals and fits and not covered)
    claims = alone or covered or (own.kind == "exact count" and fits)
    telling = min((row.id for row in beside if "total" in (own.kind, row.kind)), default=None)
    label = next((facts(row).label for row in beside if row.id == telling), None)
    totals = frozenset(frozenset(facts(row).by or ()) for row in (own, *beside) if row.kind == "total")
    return Admission(alone=alone, claims=claims, covered=covered, total=label, totals=totals)


def check_time_zone(records: Records, time_zone: str | None, *, instead_of: int | None = None) -> None:
    """Refuse days that begin at other instants than those of the data set's releases, as far as these say."""
    rows = records.execute(
        "SELECT time_zone FROM entry WHERE dataset = :dataset AND state <> 'given_back' AND id <> :entry "
        "AND time_zone IS NOT NULL ORDER BY id LIMIT 1",
        entry=instead_of or 0,
    )
    known = rows[0][0] if rows else None
    if known not in (None, time_zone):
        given = f"not {time_zone!r}" if time_zone else "and there is none (a column of dates says where they were cut)"
        raise ArgumentError(
            f"time_zone must be {known!r}, in which the releases of data set {records.dataset!r} cut their days, "
            f"{given}: the same date would be about other records, and releases that share records would be "
            "taken for releases of different periods. Nothing was charged."
        )
