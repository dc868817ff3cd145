"""Budget check: what a release adds up to with everything charged before it, held to the budgets."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import BudgetExceededError
from pkdp_pipeline.ledger.account import Account, Held
from pkdp_pipeline.ledger.adding_up import unit_named
from pkdp_pipeline.ledger.rows import Row
from pkdp_pipeline.ledger.totals import LedgerTotals, delta_of, drawn, epsilon_of
from pkdp_pipeline.model.budget import Budget
from pkdp_pipeline.model.facts import Facts
from pkdp_pipeline.model.wording import Speech, Worded, rounded_up

_LESS = "Nothing was read or charged. Ask for less (more noise, a larger k, fewer releases)"
_AGAIN = "The table keeps the certificate it has. Ask about an attacker who knows less"
_MEASURES = {"partial_knowledge": "partial-knowledge total", "worst_case": "worst-case total"}


class BudgetCheck:
    """What one release adds up to with all others, held to the budgets.

    Parameters
    ----------
    totals : LedgerTotals
        With the release in it.
    standing : Facts
    row : Row
        The release.
    before : Account
        What was charged already.
    prior : Account
        The same without the release itself, where it was charged already.
    again : bool
        Whether it was charged already, and gets another certificate.
    """

    def __init__(
        self,
        totals: LedgerTotals,
        standing: Facts,
        row: Row,
        before: Account,
        prior: Account,
        *,
        again: bool = False,
    ) -> None:
        self._totals, self._standing, self._row, self._prior, self._again = totals, standing, row, prior, again
        self._changed: dict[str, list[Row] | None] = {row.unit: [row]}
        for first, *others in before.met(row):
            if not others:  # what stood alone until now counts with its worst case only
                self._changed[first.unit] = [*(self._changed.get(first.unit) or ()), first]
        if not totals.terms.evidence and len(before.units) == 1 and before.units != [row.unit]:
            self._changed[before.units[0]] = None  # from now on all of these count beside another unit's

    def hold(self) -> None:
        """Hold the totals to the budgets.

        Raises
        ------
        BudgetExceededError
            If one is exceeded.
        NoEvidenceError
            If the releases do not add up.
        """
        account = self._totals.account
        for unit, changed in self._changed.items():
            for budget in self._totals.terms.budgets:
                if budget.window_days is None:
                    self._compare(budget, unit, None, account.bundles(unit))
                    continue
                for start, held in account.windows(unit, budget.window_days, changed):
                    self._compare(budget, unit, start, held)

    def _compare(self, budget: Budget, unit: str, start: int | None, held: Held) -> None:
        """Hold releases of a unit, in a window that begins on the day `start`, to a budget."""
        if self._totals.within(held, budget):
            return
        total = self._totals.of(held)
        for measure in budget.measures:
            if delta_of(total, measure, budget.epsilon) <= budget.delta:
                continue
            where, prior = f"data set {self._row.dataset!r}, unit {unit_named(unit)}", self._prior.bundles(unit)
            if budget.window_days is not None:
                where += f", {budget.window_days} days"
                where += "" if start is None else f" from {date.fromordinal(max(1, start)).isoformat()}"
                prior = self._prior.window(unit, budget.window_days, start)
            raise BudgetExceededError(self._refusal(budget, measure, where, total, prior=prior, held=held))

    def _refusal(
        self, budget: Budget, measure: str, where: str, total: Certificate, *, prior: Held, held: Held
    ) -> Worded:
        """Return the message."""
        subject = f"{self._standing.label!r} (period {self._standing.period})"
        if measure == "worst_case" and total.worst_case_bound is None:
            start = (
                f"{subject} has no guarantee against any attacker, or stands in a total that has none, and the budget "
                f"of {where} holds the worst-case total to epsilon = {budget.epsilon!r}: "
            )

            def way(say: Speech) -> str:
                if budget.part is not None:
                    return "put noise with a finite worst case on it"
                other = say.budget_of_part("partial_knowledge")
                return f"hold only the other total to it with {other}, or put noise on it"

            return Worded(lambda say: f"{start}{way(say)}. Nothing was charged.")
        alone = _asked_for(self._totals.parts[self._row.part], measure, budget)
        together = self._totals.epsilon(held, measure, budget.delta)
        excess = self._hair(held, budget)
        named = _MEASURES[measure] if total.has_partial_knowledge else _MEASURES["worst_case"]
        message = (
            f"{subject} would exceed the budget of {where} for the {named}: prior: epsilon = "
            f"{_shown(self._totals.epsilon(prior, measure, budget.delta))}, requested: {alone}, together: "
            f"{_shown(together)}, allowed: {budget.epsilon!r} (all at delta = {budget.delta!r}){excess}. "
            f"{_AGAIN if self._again else _LESS}, or "
        )
        return Worded(lambda say: f"{message}{say.larger_budget}, where you can argue it.")

    def _hair(self, held: Held, budget: Budget) -> str:
        """Return a remark where the exact sum is above the budget by less than anybody can see."""
        exact = self._totals.drawn(held)
        if exact is None or exact[1] > Fraction(repr(budget.delta)):
            return ""
        excess = exact[0] - Fraction(repr(budget.epsilon))
        if not 0 < excess < Fraction(1, 10**9):
            return ""
        return (
            f"; the exact sum is above the budget by {float(excess):.1g}, because the declared noise is no binary "
            "fraction: allow that much more, or a delta above 0"
        )


def _shown(epsilon: float) -> str:
    """Return an amount rounded up, the last bits of its float aside: 0.25 and 0.1 make 0.35, not 0.351."""
    return "none" if epsilon == math.inf else rounded_up(epsilon * (1.0 - 1e-12))


def _asked_for(certificate: ReleaseCertificate, measure: str, budget: Budget) -> str:
    """Return what a release asks for; where no ε reaches the budget's δ, the δ that it has at the budget's ε."""
    certified = epsilon_of(certificate, measure, budget.delta)
    epsilon = LedgerTotals.least(certified, drawn([(certificate, 1)]), budget.delta)
    if epsilon < math.inf:
        return _shown(epsilon)
    least = rounded_up(delta_of(certificate, measure, budget.epsilon))
    return f"none (its delta is {least} at epsilon = {budget.epsilon!r})"
