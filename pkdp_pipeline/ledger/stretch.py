"""Stretch: what one unit's releases add up to, all of them or those about some days; nothing where there are none."""

from __future__ import annotations

from datetime import date

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError
from pkdp_pipeline.ledger.account import read_account, unit_text
from pkdp_pipeline.ledger.ledger import Ledger
from pkdp_pipeline.ledger.parts import read_parts
from pkdp_pipeline.ledger.totals import add_up

__all__ = ["total_of_days", "total_of_unit"]


def total_of_unit(ledger: Ledger, unit: tuple[str, ...]) -> Certificate | None:
    """Return what everything charged adds up to for one unit, under the terms in force; None where it does not."""
    try:
        return ledger.total(unit)
    except NoEvidenceError:
        return None
    except ArgumentError:  # the data set has releases, but none for this unit
        return compose([])


def total_of_days(ledger: Ledger, unit: tuple[str, ...], first: date, last: date) -> Certificate | None:
    """Return what everything charged about any of these days adds up to for one unit; None where it does not."""
    database = ledger._database
    with database.snapshot():
        days = last.toordinal() - first.toordinal() + 1
        account = read_account(database, ledger.dataset)
        held = account.window(unit_text(unit), days, first.toordinal())
        if not held:
            return compose([])
        try:
            return add_up(held, read_parts(database, held), ledger.terms.evidence, beside_others=len(account.units) > 1)
        except NoEvidenceError:
            return None
