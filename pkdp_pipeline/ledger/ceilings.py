"""Ceilings: releases that fit into a budget together are remembered, because whatever is part of them fits as well."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger.account import Held
from pkdp_pipeline.model.budget import Budget

_SPARE = 1.0 - 1e-3
"""What fits this share of a budget's ε leaves more room than rounding on a grid takes (0.05 %)."""

_LESS = 0.99
"""So many of what fits without room to spare leave that room."""

_MOST_LINES = 512


@dataclass(slots=True)
class _Line:
    """What is known about totals of the same bundles.

    `most` fits with room to spare, `rim` fits, `excess` does not, and `computed` is the last one that was added up.
    """

    computed: Held = field(default_factory=dict)
    most: Held = field(default_factory=dict)
    rim: Held = field(default_factory=dict)
    excess: Held | None = None


_lines: OrderedDict[Hashable, _Line] = OrderedDict()
_one_at_a_time = threading.Lock()


def fits_budget(held: Held, budget: Budget, total_of: Callable[[Held], Certificate], by: Hashable) -> bool:
    """Return whether what bundles add up to is within a budget, for each total that is held to it.

    Parameters
    ----------
    held : mapping of Bundle to int
    budget : Budget
    total_of : callable
        Adds bundles up; see `add_up`.
    by : hashable
        All that it adds them up by.

    Raises
    ------
    NoEvidenceError
        If the releases do not add up.

    Notes
    -----
    *Guarantee*: where it returns True, all releases together are within the budget. Who sees some of them sees less
    than who sees more: what was certified for more of the same bundles holds for these. So a long series of releases
    is added up a few times only, each time for about twice as many as there are, and near the budget one by one.
    Bundles are named by what they hold, so nothing remembered can be about another certificate. *Rounding*: up.
    """
    key = (by, budget.epsilon, budget.delta, budget.measures, frozenset(held))
    with _one_at_a_time:
        line = _lines.get(key)
        if line is not None:
            _lines.move_to_end(key)
    if line is not None:
        if held == line.rim or _is_part(held, line.most) or _is_part(held, line.rim, _LESS):
            return True
        further = _further(held, line)
        if further is not None:
            if _fits_easily(further, budget, total_of):
                line.computed, line.most = dict(held), further
                return True
            line.excess = further
    if not _within(total_of(held), budget, 1.0):
        return False
    if line is None:
        line = _Line()
        with _one_at_a_time:
            _lines[key] = line
            while len(_lines) > _MOST_LINES:
                _lines.popitem(last=False)
    line.computed = dict(held)
    if not _is_part(held, line.rim):
        line.rim = line.computed
    return True


def _further(held: Held, line: _Line) -> Held | None:
    """Return more than is asked about: half of the way to what is too much, or twice what came since the last time."""
    if line.excess is not None and _is_part(held, line.excess):
        further = {bundle: (times + line.excess[bundle]) // 2 for bundle, times in held.items()}
        return further if further != held else None
    grown = Counter(held) - Counter(line.computed)
    return {bundle: times + 2 * grown[bundle] for bundle, times in held.items()} if grown else None


def _is_part(some: Held, more: Held, share: float = 1.0) -> bool:
    return all(times <= share * more.get(bundle, 0) for bundle, times in some.items())


def _fits_easily(held: Held, budget: Budget, total_of: Callable[[Held], Certificate]) -> bool:
    try:
        return _within(total_of(held), budget, _SPARE)
    except NoEvidenceError:
        return False


def _within(total: Certificate, budget: Budget, share: float) -> bool:
    epsilon = budget.epsilon * share
    return all(
        (total if measure == "partial_knowledge" else total.worst_case).delta(epsilon) <= budget.delta
        for measure in budget.measures
    )
