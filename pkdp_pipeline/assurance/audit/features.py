"""Features: what an attacker may look at in the outputs, from everything at once down to a single number."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.assurance.audit.observing import HIDDEN, Seen

__all__ = ["NOTHING", "TARGET", "Features", "of_cell", "of_table"]

NOTHING = "nothing"
"""Stands for the count of a cell that has no row."""
TARGET = "the target's cell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What is looked at in one sample.

    Attributes
    ----------
    kinds : mapping
        Name → a value that is equal or not.
    numbers : mapping
        Name → a whole number, or None where none is shown.
    """

    kinds: Mapping[str, Any]
    numbers: Mapping[str, int | None]

    def and_of(self, other: Features) -> Features:
        """Return both."""
        return Features(kinds={**self.kinds, **other.kinds}, numbers={**self.numbers, **other.numbers})


def of_table(seen: Sequence[Seen], own: frozenset[tuple[str, ...]]) -> Features:
    """Return the features of whole outputs; `own` names the cells of the target's copy, spelled as text."""
    kinds: dict[str, Any] = {"everything": tuple((one.rows, one.form, one.said, one.digest) for one in seen)}
    numbers: dict[str, int | None] = {}
    for place, one in enumerate(seen):
        name = _named(place, len(seen))
        keys, counts = [row[:-1] for row in one.rows], [row[-1] for row in one.rows]
        shown = [count for count in counts if count is not HIDDEN]
        kinds |= {
            name("the form of the table"): one.form,
            name("what is said"): one.said,
            name("the order of the rows"): _order(keys),
            name("the first and the last row's keys"): (tuple(keys[:1]), tuple(keys[-1:])),
            name("all keys in their order"): tuple(keys),
            name("where the target's cells stand"): tuple(i for i, key in enumerate(keys) if _spelled(key) in own),
        }
        numbers |= {
            name("the number of rows"): len(keys),
            name("the number of shown counts"): len(shown),
            name("the sum of shown counts"): sum(shown),
            name("the largest shown count"): max(shown, default=None),
            name("the smallest shown count"): min(shown, default=None),
        }
    return Features(kinds=kinds, numbers=numbers)


def of_cell(seen: Sequence[Seen], keys: Sequence[tuple[str, ...]] | None, shown: tuple[int, ...]) -> Features:
    """Return the features of the cells of one copy, whose names are `keys`; None for the one number of a count.

    `shown` is what the attacker is shown of known people.
    """
    kinds: dict[str, Any] = {}
    numbers: dict[str, int | None] = {}
    found = [_statuses(one, keys) for one in seen]
    for place, statuses in enumerate(found):
        name = _named(place, len(seen))
        values = [status if isinstance(status, int) else None for status in statuses]
        kinds[name(TARGET)] = statuses[0]
        numbers[name("the count of the target's cell")] = values[0]
        if len(values) > 1:
            numbers[name("the difference of the first two cells")] = _difference(values[0], values[1])
            numbers[name("the count of the second cell")] = values[1]
    firsts = [statuses[0] if isinstance(statuses[0], int) else None for statuses in found]
    if len(found) > 1:
        numbers["the sum over all outputs"] = None if None in firsts else sum(filter(None, firsts))
        numbers["the smallest of all outputs"] = min((one for one in firsts if one is not None), default=None)
        numbers["the difference of the first two outputs"] = _difference(firsts[0], firsts[1])
        kinds["in which outputs the target's cell is shown"] = tuple(first is not None for first in firsts)
    if keys is not None and len(keys) > 1:
        places = [{_spelled(row[:-1]): place for place, row in enumerate(one.rows)} for one in seen]
        kinds["the order of all cells beside the target's"] = tuple(
            tuple(sorted(range(len(keys)), key=lambda key: place.get(keys[key], -1))) for place in places
        )
    kinds["all cells beside the target's"] = (tuple(found), shown)
    kinds["the target's cell in all outputs"] = (tuple(statuses[0] for statuses in found), shown)
    return Features(kinds=kinds, numbers=numbers)


def _named(place: int, outputs: int) -> Any:
    return (lambda text: text) if outputs == 1 else (lambda text: f"{text} (output {place + 1})")


def _statuses(seen: Seen, keys: Sequence[tuple[str, ...]] | None) -> tuple[Any, ...]:
    """Return the count of every cell, "hidden" for a row without a number, `NOTHING` for none."""
    if keys is None:
        return tuple("hidden" if row[-1] is HIDDEN else row[-1] for row in seen.rows[:1]) or (NOTHING,)
    found = {_spelled(row[:-1]): "hidden" if row[-1] is HIDDEN else row[-1] for row in seen.rows}
    return tuple(found.get(key, NOTHING) for key in keys)


def _spelled(key: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(str, key))


def _order(keys: Sequence[tuple[Any, ...]]) -> int:
    """Return whether keys go up, down, or both; missing ones last."""
    ranks = [tuple((part is None, str(part)) for part in key) for key in keys]
    ups = sum(one < other for one, other in itertools.pairwise(ranks))
    downs = sum(one > other for one, other in itertools.pairwise(ranks))
    return (ups > 0) - (downs > 0) if not (ups and downs) else 2


def _difference(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one - other
