"""Admission: whether a release may stand beside what is charged, and what its certificate may claim there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pkdp_pipeline.certificate import Certificate
from pkdp_pipeline.errors import LedgerError, TemporaryError
from pkdp_pipeline.ledger.components import Reach
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.differencing import (
    allows_overlap,
    company_of,
    covers_periods,
    has_noiseless,
    may_stand_together,
    refuse_crossing,
    refuse_overlap,
)
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.release_certificate import ReleaseCertificate

__all__ = ["Admission", "admission_of", "admit", "check_claims", "least_admission"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What the ledger says of a release that may be published.

    Attributes
    ----------
    alone : bool
        Whether no other charged release about these people has an overlapping period.
    claims : bool
        Whether its certificate may claim more than the worst case: when it is alone, when the declared dependence
        covers what overlaps, or when it is the one exact count beside pure noise.
    covered : bool
        Whether the declared dependence covers any release, whatever it overlaps.
    """

    alone: bool
    claims: bool
    covered: bool = False


def admit(db: Database, dataset: str, standing: Standing, terms: Terms) -> Admission:
    """Refuse a release that cannot stand beside what is charged; it needs no data.

    Raises
    ------
    DifferencingError
        See `check_differencing`.
    """
    met = Reach.of(standing).met(db, dataset)
    if allows_overlap(terms.evidence):
        return Admission(alone=not met, claims=True, covered=True)
    if not standing.noiseless and not db.execute(
        "SELECT 1 FROM holding WHERE dataset = :dataset AND kind IN ('exact count', 'noiseless') LIMIT 1",
        dataset=dataset,
    ):
        return Admission(alone=not met, claims=not met)
    company = company_of([standing]) + _company(db, met)
    if not may_stand_together(company):
        refuse_overlap(standing, _standings(db, met), dataset=dataset)
    if not covers_periods(terms.evidence):
        _check_crossing(db, dataset, standing, met, noiseless=has_noiseless(company))
    return Admission(alone=not met, claims=not met or standing.exact_count)


def admission_of(db: Database, entry: int, standing: Standing, terms: Terms) -> Admission:
    """Return what a charged release may claim now, beside all that has been charged since.

    Raises
    ------
    LedgerError
        If it is not charged.
    """
    rows = db.execute("SELECT component FROM holding WHERE entry = :entry", entry=entry)
    if not rows:
        raise LedgerError(f"entry {entry} was never charged: the ledger's running state was altered.")
    company = _company(db, [int(rows[0][0])])
    alone = company.total() == 1
    excepted = standing.exact_count and may_stand_together(company)
    covered = allows_overlap(terms.evidence)
    return Admission(alone=alone, claims=alone or excepted or covered, covered=covered)


def least_admission(db: Database, entry: int, standing: Standing, several: Iterable[Terms]) -> Admission:
    """Return what a charged release may claim now under each of several terms: the least of it."""
    held = [admission_of(db, entry, standing, terms) for terms in several]
    return min(held, key=lambda one: (one.claims, one.covered))


def check_claims(allowed: Admission, certificate: Certificate) -> None:
    """Refuse a new certificate of a charged release that claims more than is allowed by now.

    Raises
    ------
    TemporaryError
    """
    context = certificate.context if isinstance(certificate, ReleaseCertificate) else None
    overlooked = context is not None and not context.beside and not allowed.alone
    if overlooked or (certificate.has_partial_knowledge and not allowed.claims):
        raise TemporaryError(
            "other releases about these people stand beside it by now, and its new certificate overlooks them: run "
            "again."
        )


def _company(db: Database, components: Iterable[int]) -> Counter[tuple[str, tuple[str, ...]]]:
    """Count the releases of these components by kind and unit."""
    company: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for component in components:
        rows = db.execute(
            "SELECT kind, unit, COUNT(*) FROM holding WHERE component = :component GROUP BY kind, unit",
            component=component,
        )
        company.update({(kind, tuple(json.loads(unit))): int(number) for kind, unit, number in rows})
    return company


def _check_crossing(db: Database, dataset: str, standing: Standing, met: Sequence[int], *, noiseless: bool) -> None:
    """Refuse noiseless releases in several components, for which no evidence is declared."""
    rows = db.execute(
        "SELECT id FROM component WHERE dataset = :dataset LIMIT :number", dataset=dataset, number=len(met) + 1
    )
    if {int(row[0]) for row in rows} <= set(met):
        return
    held = db.execute("SELECT component, kind, entry FROM holding WHERE dataset = :dataset", dataset=dataset)
    far = [(kind, int(entry)) for component, kind, entry in held if int(component) not in set(met)]
    telling = [entry for kind, entry in far if kind in ("exact count", "noiseless")]
    if telling or noiseless:
        witness = telling[0] if telling else far[0][1]
        refuse_crossing(standing, _standings_where(db, "entry", [witness]), dataset=dataset)


def _standings(db: Database, components: Sequence[int]) -> list[Standing]:
    return _standings_where(db, "component", components)


def _standings_where(db: Database, column: str, values: Sequence[int]) -> list[Standing]:
    found: list[Standing] = []
    for value in values:
        rows = db.execute(f"SELECT standing FROM holding WHERE {column} = :value ORDER BY entry", value=value)
        try:
            found += [Standing.from_dict(json.loads(row[0])) for row in rows]
        except ValueError:  # an ArgumentError is one
            raise LedgerError("a release the ledger holds cannot be read: its running state was altered.") from None
    return found
