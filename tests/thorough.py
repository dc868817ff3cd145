"""How many cases a test draws: few in ``make test``, all of them in ``make slow``."""

from __future__ import annotations

import pytest

__all__ = ["CLOSEST", "examples"]

CLOSEST = {True: 0.9, False: 0.5}
"""How near to its certificate the strongest attacker comes at least, among all that are drawn and among few of them."""


def examples(quick: int, full: int) -> pytest.MarkDecorator:
    """Give a test the argument `examples`: `quick`, and, where slow tests are asked for, `full`."""
    return pytest.mark.parametrize(
        "examples", [pytest.param(quick, id="quick"), pytest.param(full, id="full", marks=pytest.mark.slow)]
    )
