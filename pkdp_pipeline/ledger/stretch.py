"""Stretch: what one unit's releases add up to, all of them or those about some days; nothing where there are none."""

from __future__ import annotations

from datetime import date

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.compose import compose
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError
from pkdp_pipeline.ledger.components import unit_text
from pkdp_pipeline.ledger.ledger import Ledger
from pkdp_pipeline.ledger.parts import read_parts
from pkdp_pipeline.ledger.tally import units_of
from pkdp_pipeline.ledger.totals import add_up
from pkdp_pipeline.ledger.windows import window

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
        held = window(database, ledger.dataset, unit_text(unit), days, first.toordinal())
        if not held:
            return compose([])
        parts = read_parts(database, sorted({key for bundle in held for key, _ in bundle.parts}))
        others = len(units_of(database, ledger.dataset)) > 1
        try:
            return add_up(held, parts, ledger.terms.evidence, beside_others=others)
        except NoEvidenceError:
            return None
