"""The rule by which a hash draws a person's cells, in plain Python: `pkdp_pipeline/engines/statements.py` states it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

PRIME = 2_147_483_647


def number(value: Any) -> int:
    """Return the number of a whole number, a real or a text: that of its text."""
    if isinstance(value, float) and value == int(value):
        value = int(value)
    first = hashlib.md5(str(value).encode()).hexdigest()[:8]
    return int("".join(first[start : start + 2] for start in (6, 4, 2, 0)), 16) % PRIME


def cell_number(cell: Sequence[Any]) -> int:
    return number("".join("-" if key is None else f"{len(str(key))}:{key}" for key in cell))


def draw(unit: Sequence[Any], cell: Sequence[Any]) -> int:
    """Return what decides: of a person's draws the smallest wins."""
    person = 0
    for value in unit:
        person = (person * 742_938_285 + number(value)) % PRIME
    return pow(person + cell_number(cell), 5, PRIME)
