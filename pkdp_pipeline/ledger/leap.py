"""Leap: whether many more days, each like one that was charged, would fit into the budgets; one look for all."""

from __future__ import annotations

from collections import Counter

from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger.account import Bundle, read_account, unit_text, units_of
from pkdp_pipeline.ledger.budget_check import drawn, drawn_within
from pkdp_pipeline.ledger.ceilings import fits_budget
from pkdp_pipeline.ledger.ledger import Ledger
from pkdp_pipeline.ledger.parts import read_parts
from pkdp_pipeline.ledger.totals import whole_parts
from pkdp_pipeline.model.budget import Budget

__all__ = ["Leap"]


class Leap:
    """Made before a day is charged; it is about budgets of the whole history.

    Parameters
    ----------
    ledger : Ledger
        A copy that is held to no budget.
    unit : tuple of str
    """

    def __init__(self, ledger: Ledger, unit: tuple[str, ...]) -> None:
        self._ledger, self._unit = ledger, unit_text(unit)
        self._before = self._tally()

    def fits(self, days: int, budgets: tuple[Budget, ...]) -> bool | None:
        """Return whether `days` like the one charged since fit into budgets; None where days are not alike."""
        now, database, dataset = self._tally(), self._ledger._database, self._ledger.dataset
        others = len(units_of(database, dataset)) > 1
        if others or any(budget.window_days is not None for budget in budgets) or self._before - now:
            return None
        if not budgets:
            return True
        day = now - self._before
        held = self._before + Counter({bundle: times * days for bundle, times in day.items()})
        parts = read_parts(database, held)
        noise, evidence = drawn(whole_parts(held, parts)), self._ledger.terms.evidence
        try:
            return all(
                drawn_within(noise, budget) or fits_budget(held, parts, evidence, budget, beside_others=others)
                for budget in budgets
            )
        except NoEvidenceError:
            return False

    def _tally(self) -> Counter[Bundle]:
        return read_account(self._ledger._database, self._ledger.dataset).bundles(self._unit)
