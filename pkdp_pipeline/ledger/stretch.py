"""Stretch: what the releases about some days add up to, out of all that a data set has."""

from __future__ import annotations

from datetime import date

from pkdp_pipeline.certificate import Certificate
from pkdp_pipeline.composition.compose import compose
from pkdp_pipeline.ledger.components import unit_text
from pkdp_pipeline.ledger.ledger import Ledger
from pkdp_pipeline.ledger.parts import read_parts
from pkdp_pipeline.ledger.tally import units_of
from pkdp_pipeline.ledger.totals import add_up
from pkdp_pipeline.ledger.windows import window

__all__ = ["total_of_days"]


def total_of_days(ledger: Ledger, unit: tuple[str, ...], first: date, last: date) -> Certificate:
    """Return what everything charged about any of these days adds up to for one unit, under the terms in force.

    Raises
    ------
    NoEvidenceError
        If it does not add up.
    """
    database = ledger._database
    with database.snapshot():
        days = last.toordinal() - first.toordinal() + 1
        held = window(database, ledger.dataset, unit_text(unit), days, first.toordinal())
        if not held:
            return compose([])
        parts = read_parts(database, sorted({key for bundle in held for key, _ in bundle.parts}))
        others = len(units_of(database, ledger.dataset)) > 1
        return add_up(held, parts, ledger.terms.evidence, beside_others=others)
