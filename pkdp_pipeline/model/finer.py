"""Two displays of one question: whether the table published of one determines that of the other, and what it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pkdp_pipeline.model.display import Bands, Rounding
from pkdp_pipeline.model.mechanisms import Count, Mechanism, Sum, noised_below


def determines(finer: Mechanism, coarser: Mechanism) -> bool:
    """Return whether the table published of `finer` determines that of `coarser`, about the same rows, for every table.

    Never where one of them is shown at random: what was drawn for one says nothing of the draws of the other.

    Notes
    -----
    *Exact*: both show a non-decreasing function of each number, and mark or hide it alike, but for `k` without noise,
    which is part of that function. So what `finer` shows stands for consecutive numbers, and `coarser` shows all of
    these alike if and only if each number that it shows otherwise than the one before is such a number for `finer`,
    too. Which numbers have to be looked at: see `_boundaries`.
    """
    shown = (finer.display, coarser.display)
    if (
        isinstance(coarser, Sum)
        or shown[1] is None
        or not all(display is None or isinstance(display, Rounding | Bands) for display in shown)
    ):
        return False
    k = finer.k if _k_is_shown(coarser) else coarser.k
    if replace(coarser, display=finer.display, k=k) != finer:
        return False
    return all(_shown(finer, number) != _shown(finer, number - 1) for number in _boundaries(coarser, finer))


def shown_coarser(finer: Mechanism, coarser: Mechanism, value: int | None) -> int | None:
    """Return the number that `coarser` shows where `finer`, which determines it, shows `value`; None: suppressed."""
    if value is None:
        return _shown(coarser, 0) if _k_is_shown(coarser) else None
    most: int | None = value
    if finer.display is not None:
        assert isinstance(finer.display, Rounding | Bands)
        _, most = finer.display.interval(value)
    # Any number that is shown as this one; the last of them is not below a threshold.
    return _shown(coarser, max(value, _least(finer), finer.k or 0) if most is None else most)


def _k_is_shown(mechanism: Mechanism) -> bool:
    """Return whether a number is suppressed for being below k, and for nothing else."""
    return mechanism.noise is None and not (isinstance(mechanism, Count) and mechanism.k_complement is not None)


def _shown(mechanism: Mechanism, number: int) -> int | None:
    """Return what stands for a number, which is noised where there is noise; None: it is suppressed below k."""
    if _k_is_shown(mechanism) and number < (mechanism.k or 0):
        return None
    assert mechanism.display is None or isinstance(mechanism.display, Rounding | Bands)
    return number if mechanism.display is None else mechanism.display.shown(number)


def _least(mechanism: Mechanism) -> int:
    """Return the smallest number that may be shown.

    Noised numbers without `release_threshold` may be negative; 0 stands for them: bands have no boundary there, and one
    of a rounding's is like all others.
    """
    if _k_is_shown(mechanism):
        return 0
    if mechanism.noise is None:
        return mechanism.k or 0
    least = mechanism.release_threshold or 0
    return min(least, mechanism.k or 0) if noised_below(mechanism) else least


def _boundaries(coarser: Mechanism, finer: Mechanism) -> Iterator[int]:
    """Yield numbers that `coarser` shows otherwise than the one before: if they are so for `finer`, then all are.

    Bands have finitely many. Those of a rounding follow one another at equal distances. Beyond its k, the numbers that
    are so for a finer rounding do, too: it has all of them if it has two that follow each other, and at most one before
    these. For bands only finitely many numbers are so, and it is enough to name more than these.
    """
    display, least = coarser.display, _least(coarser)
    if _k_is_shown(coarser) and (coarser.k or 0) > least:
        least = coarser.k or 0
        yield least
    if isinstance(display, Bands):
        yield from (edge for edge in display.edges if edge > least)
    elif isinstance(display, Rounding):
        first = least + 1 + (display.first_boundary - least - 1) % display.base
        finitely_many = len(finer.display.edges) if isinstance(finer.display, Bands) else 0
        yield from range(first, first + (3 + finitely_many) * display.base, display.base)
