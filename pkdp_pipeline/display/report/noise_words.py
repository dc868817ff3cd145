"""Noise words: what noise does to published counts, also where it decides which of them are published."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pkdp_pipeline.releases.noise import ExpectedError

__all__ = ["noise_sentence", "selected_from"]

_SELECTED = re.compile(r"published only when the noisy value is at least (-?\d+)")


def selected_from(error: ExpectedError) -> int | None:
    """Return the noisy value from which on a count is published; None where noise decides nothing."""
    found = _SELECTED.search(error.suppression)
    return None if found is None else int(found[1])


def noise_sentence(error: ExpectedError) -> str:
    """Return how far noise may have moved the published counts."""
    least = selected_from(error)
    if least is None:
        return f"With noise: 95 % of such numbers are within ±{error.bound_95} of the counted ones."
    return (
        f"With noise: 95 % of it is within ±{error.bound_95}. Only noisy numbers of at least {least} are shown, so "
        f"those near {least} lean high."
    )
