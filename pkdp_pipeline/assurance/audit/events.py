"""Events: what an attacker looks at, from whole outputs down to a number, and which of it speaks for the first life.

An event is chosen on samples that do not judge it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pkdp_pipeline.assurance.audit.operators import HIDDEN, Seen

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that can be seen, or not, in a sample: in words, and whether it is."""

    words: str
    holds: Callable[[Features], bool]


def fixed() -> tuple[Event, Event]:
    """Return the events that are judged whatever was sampled: a number in all outputs, or none in one of them."""

    def shown(sample: Features) -> bool:
        found = (value for name, value in sample.kinds.items() if name.startswith(TARGET))
        return all(isinstance(value, int) for value in found if not isinstance(value, tuple))

    return (
        Event(words=f"{TARGET} is shown", holds=shown),
        Event(words=f"{TARGET} is not shown", holds=lambda sample: not shown(sample)),
    )


def chosen(first: Sequence[Features], second: Sequence[Features], epsilon: float) -> Event:
    """Return the event that seems to tell most about the first life, beyond ``e^ε`` times the second.

    Every feature chooses its event on one half of these samples, and the other half tells which feature is best; the
    winner chooses again on all of them. So a feature with as many values as there are samples gains nothing by that.
    """
    factor = math.exp(epsilon)
    fits, trials = (first[0::2], second[0::2]), (first[1::2], second[1::2])
    best, most = "", -math.inf
    for name in sorted({name for sample in (*first, *second) for name in (*sample.kinds, *sample.numbers)}):
        event = _fitted(name, *fits, factor)
        score = _score(event, *trials, factor)
        if score > most:
            best, most = name, score
    return _fitted(best, first, second, factor)


def _score(event: Event, first: Sequence[Features], second: Sequence[Features], factor: float) -> float:
    """Return an estimate of ``P(E) − e^ε Q(E)`` that is a deviation to the safe side."""
    ones, others = (sum(map(event.holds, samples)) for samples in (first, second))
    p, q = (ones + 0.5) / (len(first) + 1), (others + 0.5) / (len(second) + 1)
    spread = p * (1 - p) / (len(first) + 1) + factor**2 * q * (1 - q) / (len(second) + 1)
    return p - factor * q - math.sqrt(spread)


def _fitted(name: str, first: Sequence[Features], second: Sequence[Features], factor: float) -> Event:
    if any(name in sample.kinds for sample in (*first[:1], *second[:1])):
        return _set_of_values(name, first, second, factor)
    return _cutoff(name, first, second, factor)


def _set_of_values(name: str, first: Sequence[Features], second: Sequence[Features], factor: float) -> Event:
    ones, others = (Counter(sample.kinds.get(name, NOTHING) for sample in samples) for samples in (first, second))
    likelier = {value for value, times in ones.items() if times / len(first) > factor * others[value] / len(second)}
    return Event(
        words=f"{name}: one of {len(likelier)}", holds=lambda sample: sample.kinds.get(name, NOTHING) in likelier
    )


def _cutoff(name: str, first: Sequence[Features], second: Sequence[Features], factor: float) -> Event:
    """Return that a number reaches a cutoff, from below or from above; what has no number is with them, or not."""
    found = [[sample.numbers.get(name) for sample in samples] for samples in (first, second)]
    numbers = [np.array(sorted(value for value in values if value is not None), dtype=np.int64) for values in found]
    cutoffs = np.unique(np.concatenate(numbers)) if any(map(len, numbers)) else np.zeros(1, dtype=np.int64)
    with_none = found[0].count(None) / len(first) > factor * found[1].count(None) / len(second)
    tails = []
    for above in (True, False):
        p, q = (
            (len(values) - np.searchsorted(values, cutoffs, side="left"))
            if above
            else np.searchsorted(values, cutoffs, side="right")
            for values in numbers
        )
        gains = p / len(first) - factor * (q / len(second))
        place = int(np.argmax(gains))
        tails.append((float(gains[place]), int(cutoffs[place]), above))
    _, cutoff, above = max(tails)

    def beyond(sample: Features) -> bool:
        value = sample.numbers.get(name)
        if value is None:
            return with_none
        return value >= cutoff if above else value <= cutoff

    words = f"{name} is at {'least' if above else 'most'} {cutoff}"
    return Event(words=f"{words}, or not shown" if with_none else words, holds=beyond)
