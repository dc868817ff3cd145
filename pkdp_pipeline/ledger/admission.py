"""Admission: whether a release may stand beside what is charged, and what its certificate may claim there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError, DifferencingError, TemporaryError
from pkdp_pipeline.ledger.differencing import allows_overlap, check_beside, may_stand_together
from pkdp_pipeline.ledger.overlap_cases import untold
from pkdp_pipeline.ledger.records import Records
from pkdp_pipeline.ledger.rows import Row
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

    def check_told(self, certificate: Certificate) -> None:
        """Refuse a certificate about an attacker who is not told what a total tells; a `DifferencingError`."""
        if self.total is None or not isinstance(certificate, ReleaseCertificate):
            return
        if not certificate.attacker.total_is_known:
            raise DifferencingError(untold(self.total))

    def check_claims(self, certificate: Certificate) -> None:
        """Refuse a new certificate of a charged release that claims more than is allowed by now.

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
    records: Records, standing: Facts, terms: Terms, *, told: bool = False, instead_of: int | None = None
) -> Admission:
    """Refuse a release that cannot stand beside what is charged; it needs no data.

    Parameters
    ----------
    records : Records
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
        check_time_zone(records, standing.time_zone, instead_of=instead_of)
    asked = Row.of(standing, told=told)
    near = [one for group in records.account(asked).without(instead_of).met(asked) for one in group]

    def everything() -> Sequence[Row]:
        # Where all that is charged is noised, what other periods hold does not matter.
        some = "SELECT 1 FROM entry WHERE dataset = :dataset AND state <> 'given_back' AND kind IN "
        noiseless = f"({', '.join(map(repr, NOISELESS))}) LIMIT 1"
        if asked.kind not in NOISELESS and not records.execute(some + noiseless):
            return ()
        return records.account().without(instead_of).rows

    def facts(one: Row) -> Facts:
        return standing if one is asked else records.facts(one.id)

    check_beside(asked, near, everything, terms.evidence, facts, dataset=records.dataset)
    return _admission(records, asked, near, terms)


def least_admission(records: Records, entry: int, several: Iterable[Terms]) -> Admission:
    """Return what a charged release may claim now, beside all charged since, under each of several terms: the least."""
    own = records.row(entry)
    beside = [one for one in records.account(own).component(entry) if one.id != entry]
    admissions = [_admission(records, own, beside, terms) for terms in several]
    return min(admissions, key=lambda one: (one.claims, one.covered))


def _admission(records: Records, own: Row, beside: Sequence[Row], terms: Terms) -> Admission:
    """Return what a release may claim beside these."""
    covered, fits = allows_overlap(terms.evidence), may_stand_together([own, *beside])
    only_totals = own.kind != "total" and all(one.kind == "total" for one in beside)
    alone = not beside or (only_totals and fits and not covered)
    claims = alone or covered or (own.kind == "exact count" and fits)
    telling = min((one.id for one in beside if "total" in (own.kind, one.kind)), default=None)
    label = None if telling is None else records.facts(telling).label
    return Admission(alone=alone, claims=claims, covered=covered, total=label)


def check_time_zone(records: Records, time_zone: str | None, *, instead_of: int | None = None) -> None:
    """Refuse days that begin at other instants than those of the data set's releases, as far as these say.

    Raises
    ------
    ArgumentError
    """
    rows = records.execute(
        "SELECT time_zone FROM entry WHERE dataset = :dataset AND state <> 'given_back' AND id <> :entry "
        "AND time_zone IS NOT NULL ORDER BY id LIMIT 1",
        entry=instead_of or 0,
    )
    known = rows[0][0] if rows else None
    if known not in (None, time_zone):
        found = f"not {time_zone!r}" if time_zone else "and there is none (a column of dates says where they were cut)"
        raise ArgumentError(
            f"time_zone must be {known!r}, in which the releases of data set {records.dataset!r} cut their days, "
            f"{found}: the same date would be about other records, and releases that share records would be "
            "taken for releases of different periods. Nothing was read or charged."
        )
