"""Spent: how much of each budget the charged releases use up, and how many more releases it allows."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger.account import Account, Bundle, read_account
from pkdp_pipeline.ledger.budget_check import drawn
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.parts import read_parts
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.ledger.totals import add_up, whole_parts
from pkdp_pipeline.model.budget import Budget

__all__ = ["MOST_MORE", "Spent", "how_many_more", "spent"]

MOST_MORE = 3650
"""More further releases than this are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one budget has been used up for one of the totals it holds.

    Attributes
    ----------
    budget : Budget
    measure : {"partial_knowledge", "worst_case"}
    epsilon : float
        What the releases add up to at the budget's δ; for a budget of some days, in the fullest window. `math.inf`
        where no ε reaches that δ, and where they do not add up.
    at_one : float or None
        Where `epsilon` is infinite, the δ at ε = 1; None if they do not add up.
    start : int or None
        The first day of that window, as an ordinal.
    complete : bool
        Whether every window was looked at; if not, the fullest one may hold more.
    """

    budget: Budget
    measure: str
    epsilon: float
    at_one: float | None = None
    start: int | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Totals:
    """What adding up needs besides the releases."""

    parts: Mapping[str, ReleaseCertificate]
    terms: Terms
    others: bool

    def of(self, held: Mapping[Bundle, int]) -> Certificate | None:
        try:
            return add_up(held, self.parts, self.terms.evidence, beside_others=self.others)
        except NoEvidenceError:
            return None

    def epsilon(self, held: Mapping[Bundle, int], measure: str, delta: float) -> float:
        total = self.of(held)
        if total is None:
            return math.inf
        found = total.epsilon(delta) if measure == "partial_knowledge" else total.worst_case.epsilon(delta)
        exact = drawn(whole_parts(held, self.parts))
        if exact is None or exact[1] > Fraction(repr(delta)):
            return found
        above = float(exact[0])
        return min(found, above if Fraction(above) >= exact[0] else math.nextafter(above, math.inf))

    def at_one(self, held: Mapping[Bundle, int], measure: str, epsilon: float) -> float | None:
        """Return the δ at ε = 1 where it is needed because no ε was found."""
        total = self.of(held) if epsilon == math.inf else None
        if total is None:
            return None
        return total.delta(1.0) if measure == "partial_knowledge" else total.worst_case.delta(1.0)

    def allows(self, held: Mapping[Bundle, int], budget: Budget) -> bool:
        exact = drawn(whole_parts(held, self.parts))
        if (
            exact is not None
            and exact[0] <= Fraction(repr(budget.epsilon))
            and exact[1] <= Fraction(repr(budget.delta))
        ):
            return True
        total = self.of(held)
        if total is None:
            return False
        deltas = {"partial_knowledge": total.delta, "worst_case": total.worst_case.delta}
        return all(deltas[measure](budget.epsilon) <= budget.delta for measure in budget.measures)


def spent(
    db: Database,
    dataset: str,
    unit: str,
    terms: Terms,
    *,
    seconds: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
) -> list[Spent]:
    """Return how much of every budget in force is used up for one privacy unit.

    Parameters
    ----------
    db : Database
        Only read.
    dataset : str
    unit : str
        See `unit_text`.
    terms : Terms
    seconds : float
        After so long no further windows are looked at.
    clock : callable
    """
    account = read_account(db, dataset)
    held = account.bundles(unit)
    totals = _totals(db, account, held, terms)
    deadline = clock() + seconds
    found = []
    for budget in terms.budgets:
        for measure in budget.measures:
            if budget.window_days is None:
                epsilon = totals.epsilon(held, measure, budget.delta)
                at_one = totals.at_one(held, measure, epsilon)
                found.append(Spent(budget=budget, measure=measure, epsilon=epsilon, at_one=at_one))
                continue
            listed = _fullest(list(account.windows(unit, budget.window_days)))
            fullest, at_one, start, seen = 0.0, None, None, 0
            for first, window in reversed(listed):  # the latest first: it is what the next release meets
                if seen and clock() > deadline:
                    break
                epsilon, seen = totals.epsilon(window, measure, budget.delta), seen + 1
                if epsilon > fullest:
                    fullest, start = epsilon, first
                    at_one = totals.at_one(window, measure, epsilon)
            complete = seen == len(listed)
            found.append(
                Spent(budget=budget, measure=measure, epsilon=fullest, at_one=at_one, start=start, complete=complete)
            )
    return found


def _fullest(listed: list[tuple[int | None, Counter[Bundle]]]) -> list[tuple[int | None, Counter[Bundle]]]:
    """Leave out the windows that hold no more than a neighbour does: they add up to no more."""
    kept: list[tuple[int | None, Counter[Bundle]]] = []
    for start, window in listed:
        while kept and kept[-1][1] <= window:
            kept.pop()
        if not kept or not window <= kept[-1][1]:
            kept.append((start, window))
    return kept


def how_many_more(db: Database, dataset: str, unit: str, terms: Terms, part: str) -> int | None:
    """Return how many more releases like one, each about a period of its own, all budgets of the whole history allow.

    Parameters
    ----------
    db : Database
        Only read.
    dataset, unit : str
    terms : Terms
    part : str
        The sha256 of the release's part.

    Returns
    -------
    int or None
        At most `MOST_MORE`; None where there is no budget of the whole history.
    """
    budgets = [budget for budget in terms.budgets if budget.window_days is None]
    if not budgets:
        return None
    account = read_account(db, dataset)
    held = account.bundles(unit)
    totals = _totals(db, account, held, terms)

    def fits(more: int) -> bool:
        further = held + Counter({Bundle.of("alone", {part: 1}): more})
        return all(totals.allows(further, budget) for budget in budgets)

    if fits(MOST_MORE):
        return MOST_MORE
    low, high = 0, MOST_MORE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _totals(db: Database, account: Account, held: Mapping[Bundle, int], terms: Terms) -> _Totals:
    return _Totals(parts=read_parts(db, held), terms=terms, others=len(account.units) > 1)
