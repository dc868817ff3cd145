"""Screen: a terminal's screen that also shows budgets."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date

from pkdp_pipeline.display.ledger.words import budget_words, no_epsilon, spent_words
from pkdp_pipeline.display.terminal import screen
from pkdp_pipeline.ledger.views.spent import Spent

__all__ = ["Screen"]


class Screen(screen.Screen):
    """Prints what a ledger says: text, tables, and bars for its budgets.

    Parameters
    ----------
    console : rich.console.Console, optional
    """

    def budgets(self, found: Iterable[Spent]) -> None:
        """Print what every budget allows, what is spent of it and what is left."""
        for measures, one in _grouped(found):
            self.item(budget_words(one.budget, measures))
            allowed = one.budget.epsilon
            share = 1.0 if allowed == 0.0 else min(1.0, one.epsilon / allowed)
            filled = max(int(one.epsilon > 0.0), int(share * 20))
            bar = ("#" if self.plain else "█") * filled + ("." if self.plain else "░") * (20 - filled)
            self.lines([f"  {bar} {_spent(one)}"])
            if one.epsilon == math.inf and one.at_one is not None:
                self.say(f"{no_epsilon(one.budget.delta, one.at_one)}.", indent=4)
            if one.start is not None and one.epsilon > 0.0:
                days = f"{one.budget.window_days} days from {date.fromordinal(max(1, one.start)).isoformat()}"
                self.say(f"in the fullest window{'' if one.complete else ' looked at'}, the {days}", indent=4)


def _spent(one: Spent) -> str:
    """Return what is spent of a budget and what is left."""
    if one.epsilon == math.inf:
        return "OVER BUDGET" if one.at_one is not None else "OVER BUDGET: the releases do not add up"
    words = spent_words(one.budget.epsilon, one.epsilon)
    # Windows that were not looked at may hold more.
    return words if one.complete else words.partition(", left")[0].replace("spent", "spent at least", 1)


def _grouped(found: Iterable[Spent]) -> list[tuple[list[str], Spent]]:
    """Return what was spent, with the totals of which that is true."""
    often: dict[tuple[object, ...], tuple[list[str], Spent]] = {}
    for one in found:
        same = (one.budget, one.epsilon, one.start, one.complete)
        often.setdefault(same, ([], one))[0].append(one.measure)
    return list(often.values())
