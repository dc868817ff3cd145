"""Admission: whether a release may stand beside what is charged, and what its certificate may claim there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError, DifferencingError, LedgerError, TemporaryError
from pkdp_pipeline.ledger.account import Holding, Span, read_account
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.differencing import (
    Beside,
    allows_overlap,
    covers_periods,
    refuse_crossing,
    refuse_overlap,
)
from pkdp_pipeline.ledger.overlap_cases import promised, untold
from pkdp_pipeline.ledger.overlap_rules import Member, has_noiseless, may_stand_apart, may_stand_together
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Kind

__all__ = [
    "Admission",
    "admission_of",
    "admit",
    "check_claims",
    "check_time_zone",
    "check_told",
    "least_admission",
]


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
    db: Database,
    dataset: str,
    standing: Standing,
    terms: Terms,
    *,
    told: bool = False,
) -> Admission:
    """Refuse a release that cannot stand beside what is charged; it needs no data.

    Parameters
    ----------
    db : Database
    dataset : str
    standing : Standing
    terms : Terms
    told : bool, default False
        Whether its certificate will be about an attacker to whom `total_is_known`.

    Raises
    ------
    ArgumentError
        See `check_time_zone`.
    DifferencingError
        See `check_differencing`.
    """
    if standing.time_zone is not None:  # outside of jobs, periods are said by hand
        check_time_zone(db, dataset, standing.time_zone)
    span = Span.of(standing)
    met = [one for group in read_account(db, dataset, span).met(span) for one in group]
    if allows_overlap(terms.evidence):
        if standing.total:
            for other, knows in _releases(db, met):
                if not knows:
                    raise DifferencingError(promised(standing, other))
        return Admission(alone=not met, claims=True, covered=True, total=_told_because(db, met, standing))
    if not standing.noiseless and not db.execute(
        "SELECT 1 FROM holding WHERE dataset = :dataset AND kind IN ('exact count', 'noiseless') LIMIT 1",
        dataset=dataset,
    ):
        return Admission(alone=not met, claims=not met)
    asked = Member.of(standing, told=told)
    beside = _company(db, met, total=standing.total)
    together = Counter([asked]) + beside
    if not may_stand_together(together):
        refuse_overlap((standing, told), list(_releases(db, met)), dataset=dataset)
    if not covers_periods(terms.evidence):
        _check_crossing(db, dataset, standing, asked, met, beside)
    alone = not beside or (not standing.total and _others(together) == 1)
    return Admission(alone=alone, claims=alone or standing.exact_count, total=_told_because(db, met, standing))


def check_time_zone(db: Database, dataset: str, time_zone: str | None) -> None:
    """Refuse days that begin at other instants than those of the data set's releases, as far as these say.

    Raises
    ------
    ArgumentError
    """
    rows = db.execute(
        "SELECT standing FROM holding WHERE dataset = :dataset AND standing LIKE :mark ORDER BY entry LIMIT 1",
        dataset=dataset,
        mark='%"time_zone":%',
    )
    known = _standing(rows[0][0]).time_zone if rows else None
    if known not in (None, time_zone):
        found = f"not {time_zone!r}" if time_zone else "and there is none (a column of dates says where they were cut)"
        raise ArgumentError(
            f"time_zone must be {known!r}, in which the releases of data set {dataset!r} cut their days, "
            f"{found}: the same date would be about other records, and releases that share records would be "
            "taken for releases of different periods. Nothing was read or charged."
        )


def admission_of(db: Database, entry: int, standing: Standing, terms: Terms) -> Admission:
    """Return what a charged release may claim now, beside all that has been charged since.

    Raises
    ------
    LedgerError
        If it is not charged.
    """
    rows = db.execute("SELECT dataset FROM holding WHERE entry = :entry", entry=entry)
    if not rows:
        raise LedgerError(f"entry {entry} was never charged: the ledger was altered.")
    component = read_account(db, rows[0][0], Span.of(standing)).component(entry)
    company = _company(db, component, total=standing.total)
    fits, covered = may_stand_together(company), allows_overlap(terms.evidence)
    alone = company.total() == 1 or (fits and not standing.total and _others(company) == 1)
    excepted = standing.exact_count and fits
    because = _told_because(db, component, standing, but=entry)
    return Admission(alone=alone, claims=alone or excepted or covered, covered=covered, total=because)


def least_admission(db: Database, entry: int, standing: Standing, several: Iterable[Terms]) -> Admission:
    """Return what a charged release may claim now under each of several terms: the least of it."""
    held = [admission_of(db, entry, standing, terms) for terms in several]
    least = min(held, key=lambda one: (one.claims, one.covered))
    telling = next((one.total for one in held if one.total is not None), None)
    return Admission(alone=least.alone, claims=least.claims, covered=least.covered, total=telling)


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


def _others(company: Counter[Member]) -> int:
    return sum(number for one, number in company.items() if one.kind != "total")


def _told_because(db: Database, beside: Iterable[Holding], standing: Standing, *, but: int = -1) -> str | None:
    """Return the label of a release because of which the attacker must be told; None where there is none."""
    for one in sorted(beside):
        if one.entry != but and (standing.total or one.kind == "exact count"):
            ((text,),) = db.execute("SELECT standing FROM holding WHERE entry = :entry", entry=one.entry)
            other = _standing(text)
            if standing.total or other.total:
                return other.label
    return None


def _company(db: Database, beside: Sequence[Holding], *, total: bool) -> Counter[Member]:
    """Count these releases; only beside a total more than their kind and unit matters."""
    if total or any(one.kind == "exact count" for one in beside):  # an exact count among them may be a total
        return Counter(_members(db, beside))
    often = Counter((one.kind, one.unit) for one in beside)
    return Counter(
        {Member(kind=cast("Kind", kind), unit=tuple(json.loads(unit))): times for (kind, unit), times in often.items()}
    )


def _members(db: Database, holdings: Iterable[Holding]) -> list[Member]:
    return [Member.of(standing, told=told) for standing, told in _releases(db, holdings)]


def _check_crossing(
    db: Database,
    dataset: str,
    standing: Standing,
    asked: Member,
    met: Sequence[Holding],
    beside: Counter[Member],
) -> None:
    """Refuse noiseless releases in several components, for which no evidence is declared."""
    account, near = read_account(db, dataset), {one.entry for one in met}
    far = [one for one in account.holdings if one.entry not in near]
    kinds = {one.kind for one in far}
    if not far or not (kinds & {"exact count", "noiseless"} or has_noiseless([asked, *beside])):
        return
    if "noiseless" not in kinds and may_stand_apart([asked, *_members(db, account.holdings)]):
        return
    # An exact count among them may be a total, which may not be what is in the way.
    order = {"noiseless": 0, "exact count": 1}
    listed = sorted(far, key=lambda one: order.get(one.kind, 2))
    refuse_crossing((standing, asked.told), _releases(db, listed), dataset=dataset)


def _releases(db: Database, holdings: Iterable[Holding]) -> Iterator[Beside]:
    """Yield these releases, and whether each is certified against an attacker who is told, in all its certificates."""
    for holding in holdings:
        # What a certificate has promised once is not taken back by a newer one.
        earlier = db.execute(
            "SELECT a.certificate FROM entry e JOIN event a ON a.dataset = e.dataset AND a.key = e.key "
            "AND a.revision = e.revision AND a.sequence >= e.id AND a.sequence <= e.certificate "
            "AND a.certificate IS NOT NULL WHERE e.id = :entry AND e.certificate <> e.id",
            entry=holding.entry,
        )
        ((text, description),) = db.execute(
            "SELECT h.standing, p.description FROM holding h JOIN part p ON p.sha256 = h.part WHERE h.entry = :entry",
            entry=holding.entry,
        )
        yield _standing(text), _told(description) and all(_told(one) for (one,) in earlier)


def _standing(text: str) -> Standing:
    try:
        return Standing.from_dict(json.loads(text))
    except ValueError:  # an ArgumentError is one
        raise LedgerError("a release the ledger holds cannot be read: it was altered.") from None


@lru_cache(maxsize=4096)
def _told(description: str) -> bool:
    try:
        return AttackerModel.from_dict(json.loads(description)["attacker"]).total_is_known
    except (KeyError, TypeError, ValueError):
        raise LedgerError("a certificate the ledger holds cannot be read: it was altered.") from None
