"""Outcomes: what a table may be expected to show, given counts that are public: errors and suppressed shares."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from pkdp_pipeline.model.mechanisms import Count, Mechanism
from pkdp_pipeline.model.mechanisms.noise_law import chance_of_at_least, mean_absolute, mean_absolute_where_at_least
from pkdp_pipeline.planning.public_counts import PublicCounts

__all__ = ["Outcome", "expected_outcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is expected of a table.

    Attributes
    ----------
    mean_absolute_error : float or None
        Of a published cell; None where none is published.
    suppressed_cells : float or None
        The expected share of cells that are not published, among those that hold somebody; None where nothing is known
        about the counts.
    suppressed_people : float or None
        The expected share of people in such cells.
    """

    mean_absolute_error: float | None
    suppressed_cells: float | None
    suppressed_people: float | None


def expected_outcome(mechanism: Mechanism, counts: PublicCounts | None) -> Outcome:
    """Return what is expected of a table, by the law of its noise.

    Without counts the error is that of the noise, whatever is published; shares are not known, unless nothing is
    suppressed at all.
    """
    noise = mechanism.noise
    error = 0.0 if noise is None else mean_absolute(noise)
    everything = mechanism.k is None and mechanism.release_threshold is None and _complement(mechanism) is None
    if everything:
        return Outcome(mean_absolute_error=error, suppressed_cells=0.0, suppressed_people=0.0)
    if counts is None or _complement(mechanism) is not None:
        # How many people are not counted is not among the counts.
        return Outcome(mean_absolute_error=error, suppressed_cells=None, suppressed_people=None)
    cells = Counter(counts.counts)
    chances = {count: published(mechanism, count) for count in cells}
    shown = math.fsum(chances[count] * often for count, often in cells.items())
    missed = math.fsum(_error(mechanism, count) * often for count, often in cells.items())
    lost = [((1.0 - chances[count]) * often, count) for count, often in cells.items() if count > 0]
    held = len(counts.counts) - cells[0]
    return Outcome(
        mean_absolute_error=missed / shown if shown > 0.0 else None,
        suppressed_cells=math.fsum(share for share, _ in lost) / held if held else 0.0,
        suppressed_people=math.fsum(share * count for share, count in lost) / counts.people if held else 0.0,
    )


def published(mechanism: Mechanism, count: int) -> float:
    """Return the chance that a cell with this count is published."""
    if mechanism.k is not None and count < mechanism.k:
        return 0.0
    if mechanism.noise is None or mechanism.release_threshold is None:
        return 1.0
    return chance_of_at_least(mechanism.noise, mechanism.release_threshold - count)


def _error(mechanism: Mechanism, count: int) -> float:
    """Return E[|Z|; the cell is published]."""
    if mechanism.noise is None or (mechanism.k is not None and count < mechanism.k):
        return 0.0
    if mechanism.release_threshold is None:
        return mean_absolute(mechanism.noise)
    return mean_absolute_where_at_least(mechanism.noise, mechanism.release_threshold - count)


def _complement(mechanism: Mechanism) -> int | None:
    return mechanism.k_complement if isinstance(mechanism, Count) else None
