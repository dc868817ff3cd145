"""Admission: whether a release may stand beside what is charged, and what its certificate may claim there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError, DifferencingError, TemporaryError
from pkdp_pipeline.ledger.account import Holding, read_account
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.differencing import allows_overlap, check_beside, may_stand_together
from pkdp_pipeline.ledger.entries import Entries
from pkdp_pipeline.ledger.overlap_cases import untold
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.model.facts import Facts
from pkdp_pipeline.model.mechanisms import NOISELESS


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What the ledger says of a release that may be published.

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
    """

    alone: bool
    claims: bool
    covered: bool = False
    total: str | None = None


def admit(
    db: Database, dataset: str, standing: Facts, terms: Terms, *, told: bool = False, instead_of: int | None = None
) -> Admission:
    """Refuse a release that cannot stand beside what is charged; it needs no data.

    Parameters
    ----------
    db : Database
    dataset : str
    standing : Facts
    terms : Terms
    told : bool, default False
        Whether its certificate will be about an attacker to whom `total_is_known`.
    instead_of : int, optional
        An entry that is left out of account: the release takes its place.

    Raises
    ------
    ArgumentError
        See `check_time_zone`.
    DifferencingError
        See `check_differencing`.
    """
    if standing.time_zone is not None:  # outside of jobs, periods are said by hand
        check_time_zone(db, dataset, standing.time_zone, instead_of=instead_of)
    asked, entries = Holding.of(standing, told=told), Entries(db)
    near = [one for group in read_account(db, dataset, asked.span).without(instead_of).met(asked.span) for one in group]

    def everything() -> Sequence[Holding]:
        # Where all that is charged is noised, what other periods hold does not matter.
        some = "SELECT 1 FROM entry WHERE dataset = :dataset AND state <> 'given_back' AND kind IN "
        noiseless = f"({', '.join(map(repr, NOISELESS))}) LIMIT 1"
        if asked.kind not in NOISELESS and not db.execute(some + noiseless, dataset=dataset):
            return ()
        return read_account(db, dataset).without(instead_of).holdings

    def facts(one: Holding) -> Facts:
        return standing if one is asked else entries.standing(one.entry)

    check_beside(asked, near, everything, terms.evidence, facts, dataset=dataset)
    return _admission(entries, asked, near, terms)


def least_admission(db: Database, dataset: str, entry: int, several: Iterable[Terms]) -> Admission:
    """Return what a charged release may claim now, beside all charged since, under each of several terms: the least."""
    entries = Entries(db)
    own = entries.row(entry).holding
    beside = [one for one in read_account(db, dataset, own.span).component(entry) if one.entry != entry]
    admissions = [_admission(entries, own, beside, terms) for terms in several]
    return min(admissions, key=lambda one: (one.claims, one.covered))


def _admission(entries: Entries, own: Holding, beside: Sequence[Holding], terms: Terms) -> Admission:
    """Return what a release may claim beside these."""
    covered, fits = allows_overlap(terms.evidence), may_stand_together([own, *beside])
    only_totals = own.kind != "total" and all(one.kind == "total" for one in beside)
    alone = not beside or (only_totals and fits and not covered)
    claims = alone or covered or (own.kind == "exact count" and fits)
    telling = next((one for one in sorted(beside) if "total" in (own.kind, one.kind)), None)
    label = None if telling is None else entries.standing(telling.entry).label
    return Admission(alone=alone, claims=claims, covered=covered, total=label)


def check_time_zone(db: Database, dataset: str, time_zone: str | None, *, instead_of: int | None = None) -> None:
    """Refuse days that begin at other instants than those of the data set's releases, as far as these say.

    Raises
    ------
    ArgumentError
    """
    rows = db.execute(
        "SELECT time_zone FROM entry WHERE dataset = :dataset AND state <> 'given_back' AND id <> :entry "
        "AND time_zone IS NOT NULL ORDER BY id LIMIT 1",
        dataset=dataset,
        entry=instead_of or 0,
    )
    known = rows[0][0] if rows else None
    if known not in (None, time_zone):
        found = f"not {time_zone!r}" if time_zone else "and there is none (a column of dates says where they were cut)"
        raise ArgumentError(
            f"time_zone must be {known!r}, in which the releases of data set {dataset!r} cut their days, "
            f"{found}: the same date would be about other records, and releases that share records would be "
            "taken for releases of different periods. Nothing was read or charged."
        )


def check_claims(allowed: Admission, certificate: Certificate) -> None:
    """Refuse a new certificate of a charged release that claims more than is allowed by now.

    Raises
    ------
    DifferencingError
        If a total stands beside it, and the certificate is about an attacker who is not told it.
    TemporaryError
    """
    check_told(allowed, certificate)
    context = certificate.context if isinstance(certificate, ReleaseCertificate) else None
    overlooked = context is not None and not context.beside and not allowed.alone
    if overlooked or (certificate.has_partial_knowledge and not allowed.claims):
        raise TemporaryError(
            "other releases about these people stand beside it by now, and its new certificate overlooks them: run "
            "again."
        )


def check_told(allowed: Admission, certificate: Certificate) -> None:
    """Refuse a certificate about an attacker who is not told what a total tells.

    Raises
    ------
    DifferencingError
    """
    if allowed.total is None or not isinstance(certificate, ReleaseCertificate) or certificate.attacker.total_is_known:
        return
    raise DifferencingError(untold(allowed.total))
