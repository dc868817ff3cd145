"""Spent: how much of each budget the charged releases use up, and how many more releases it allows."""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pkdp_pipeline.ledger.account import Bundle
from pkdp_pipeline.ledger.totals import LedgerTotals
from pkdp_pipeline.model.budget import Budget

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


def spent(
    totals: LedgerTotals, unit: str, *, seconds: float = 1.0, clock: Callable[[], float] = time.monotonic
) -> list[Spent]:
    """Return how much of every budget in force is used up for one privacy unit.

    Parameters
    ----------
    totals : LedgerTotals
    unit : str
        See `unit_text`.
    seconds : float
        After so long no further windows are looked at.
    clock : callable
    """
    deadline = clock() + seconds
    found = []
    for budget in totals.terms.budgets:
        windows: list[tuple[int | None, Counter[Bundle]]] = [(None, totals.account.bundles(unit))]
        if budget.window_days is not None:
            windows = _fullest(list(totals.account.windows(unit, budget.window_days)))
        for measure in budget.measures:
            fullest, start, seen = 0.0, None, 0
            held: Counter[Bundle] = Counter()
            for first, window in reversed(windows):  # the latest first: it is what the next release meets
                if seen and clock() > deadline:
                    break
                epsilon, seen = totals.epsilon(window, measure, budget.delta), seen + 1
                if epsilon > fullest:
                    fullest, start, held = epsilon, first, window
            at_one = totals.at_one(held, measure) if fullest == math.inf else None
            complete = seen == len(windows)
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


def how_many_more(totals: LedgerTotals, unit: str, part: str) -> int | None:
    """Return how many more releases like one, each about a period of its own, all budgets of the whole history allow.

    Parameters
    ----------
    totals : LedgerTotals
    unit : str
    part : str
        The sha256 of the release's part.

    Returns
    -------
    int or None
        At most `MOST_MORE`; None where there is no budget of the whole history.
    """
    budgets = [budget for budget in totals.terms.budgets if budget.window_days is None]
    if not budgets:
        return None
    held = totals.account.bundles(unit)

    def allowed(more: int) -> bool:
        return totals.all_within(held + Counter({Bundle.of("alone", {part: 1}): more}), budgets)

    # The first number that is too much, found by halving.
    return bisect_left(range(1, MOST_MORE + 1), True, key=lambda more: not allowed(more))
