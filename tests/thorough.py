"""How many cases a test has: few in ``make test``, all of them in ``make slow``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

__all__ = ["ALL", "CLOSEST", "examples", "few", "is_spare", "one_in", "spread", "thinned"]

ALL = bool(os.environ.get("PKDP_HYPOTHESIS"))
"""Whether a property is tried on all its cases, the dear ones among them."""
CLOSEST = {True: 0.9, False: 0.5}
"""How near to its certificate the strongest attacker comes at least, among all that are drawn and among few of them."""


def examples(quick: int, full: int) -> pytest.MarkDecorator:
    """Give a test the argument `examples`: `quick`, and, where slow tests are asked for, `full`."""
    return pytest.mark.parametrize(
        "examples", [pytest.param(quick, id="quick"), pytest.param(full, id="full", marks=pytest.mark.slow)]
    )


def few(full: int, quick: int | None = None) -> int:
    """Return how many cases a property is tried on: in ``make test`` a tenth of them, or `quick`."""
    return full if ALL else quick or max(3, full // 10)


def one_in(few: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases of a test: one in `few` is always tried, the others where slow tests are asked for."""
    listed = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=pytest.mark.slow if place % few else ()) for place, case in enumerate(listed)]


def spread(few: int, *axes: Iterable[Any]) -> list[Any]:
    """Return the product of the axes, whose values may have names and marks (`pytest.param`), as cases of a test.

    One in `few` is always tried, every value among them, the others where slow tests are asked for.
    """
    listed = [
        [value if isinstance(value, type(pytest.param())) else pytest.param(value) for value in axis] for axis in axes
    ]
    steps = [len(axis) - 1 for axis in listed]
    assert sum(steps) - max(steps) >= few - 1, "some value of the longest axis would never be tried"
    cases = []
    for places in product(*map(range, map(len, listed))):
        case = [axis[place] for axis, place in zip(listed, places, strict=True)]
        marks = [*(mark for param in case for mark in param.marks), *([pytest.mark.slow] if sum(places) % few else [])]
        name = "-".join(str(param.id or param.values[0]) for param in case)
        cases.append(pytest.param(*(value for param in case for value in param.values), id=name, marks=marks))
    return cases


def thinned(few: int) -> pytest.MarkDecorator:
    """Try one in `few` of a test's cases, whatever axes they come from, the others where slow tests are asked for.

    This is for cases that show one thing many times over, at several hundredths of a second each.
    """
    return pytest.mark.thinned(few)


def is_spare(place: int, few: int) -> bool:
    """Return whether the case at this place of a test is one of those that `thinned` leaves to the slow run.

    The place that is tried moves on from one group of `few` to the next: of axes of `few` values, no value is left out.
    """
    return (place + place // few) % few != 0
