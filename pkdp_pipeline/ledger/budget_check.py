"""Budget check: what a release adds up to with everything charged before it, held to the budgets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import BudgetExceededError
from pkdp_pipeline.ledger.account import EVERYTHING, Account, Bundle, Span
from pkdp_pipeline.ledger.adding_up import unit_named
from pkdp_pipeline.ledger.rows import Row
from pkdp_pipeline.ledger.totals import LedgerTotals, delta_of, drawn, epsilon_of
from pkdp_pipeline.model.budget import Budget
from pkdp_pipeline.model.facts import Facts
from pkdp_pipeline.model.wording import Speech, Worded, rounded_up

_LESS = "Nothing was read or charged. Ask for less (more noise, a larger k, fewer releases)"
_AGAIN = "The table keeps the certificate it has. Ask about an attacker who knows less"
_MEASURES = {"partial_knowledge": "partial-knowledge total", "worst_case": "worst-case total"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is held to a budget: the releases, the unit, and the window they are in."""

    unit: str
    held: Mapping[Bundle, int]
    start: int | None = None


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
        self._certificate = totals.parts[row.part]
        span = row.holding.span
        self._changed: dict[str, list[Span]] = {row.unit: [span]}
        for group in before.met(span):
            if len(group) == 1:  # what stood alone until now counts with its worst case only
                self._changed.setdefault(group[0].unit, []).append(group[0].span)
        if not totals.terms.evidence and len(before.units) == 1 and before.units != [row.unit]:
            # From now on these count beside another unit's.
            self._changed[before.units[0]] = [EVERYTHING]

    def hold(self) -> None:
        """Hold the totals to the budgets.

        Raises
        ------
        BudgetExceededError
            If one is exceeded.
        NoEvidenceError
            If the releases do not add up.
        """
        for unit in self._changed:
            for budget in self._totals.terms.budgets:
                for asked in self._asked(unit, budget):
                    self._compare(budget, asked)

    def _asked(self, unit: str, budget: Budget) -> Iterator[_Asked]:
        account = self._totals.account
        if budget.window_days is None:
            yield _Asked(unit=unit, held=account.bundles(unit))
            return
        for start, held in account.windows(unit, budget.window_days, self._changed[unit]):
            yield _Asked(unit=unit, held=held, start=start)

    def _compare(self, budget: Budget, asked: _Asked) -> None:
        if self._totals.within(asked.held, budget):
            return
        total = self._totals.of(asked.held)
        for measure in budget.measures:
            if not delta_of(total, measure, budget.epsilon) <= budget.delta:
                raise BudgetExceededError(self._refusal(budget, measure, asked, total))

    def _refusal(self, budget: Budget, measure: str, asked: _Asked, total: Certificate) -> Worded:
        """Return the message."""
        where = f"data set {self._row.dataset!r}, unit {unit_named(asked.unit)}"
        if budget.window_days is not None:
            where += f", {budget.window_days} days"
            where += "" if asked.start is None else f" from {date.fromordinal(max(1, asked.start)).isoformat()}"
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
        prior = (
            self._prior.bundles(asked.unit)
            if budget.window_days is None
            else self._prior.window(asked.unit, budget.window_days, asked.start)
        )
        alone = _asked_for(self._certificate, measure, budget)
        together = self._totals.epsilon(asked.held, measure, budget.delta)
        excess = self._hair(asked.held, budget)
        named = _MEASURES[measure] if total.has_partial_knowledge else _MEASURES["worst_case"]
        message = (
            f"{subject} would exceed the budget of {where} for the {named}: prior: epsilon = "
            f"{_shown(self._totals.epsilon(prior, measure, budget.delta))}, requested: {alone}, together: "
            f"{_shown(together)}, allowed: {budget.epsilon!r} (all at delta = {budget.delta!r}){excess}. "
            f"{_AGAIN if self._again else _LESS}, or "
        )
        return Worded(lambda say: f"{message}{say.larger_budget}, where you can argue it.")

    def _hair(self, held: Mapping[Bundle, int], budget: Budget) -> str:
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
