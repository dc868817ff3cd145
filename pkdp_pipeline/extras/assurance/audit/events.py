"""Events: what an attacker looks at, from whole outputs down to a number, and which of it speaks for the first life.

An event is chosen on samples that do not judge it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pkdp_pipeline.extras.assurance.audit.operators import HIDDEN, Output

NOTHING = "nothing"
"""Stands for the count of a cell that has no row."""
TARGET = "the target's cell"

Features = Mapping[str, Any]
"""The features of one sample: name → a value that is equal or not. For whole numbers a cutoff is tried, too."""


def of_table(outputs: Sequence[Output], own: frozenset[tuple[str, ...]]) -> Features:
    """Return the features of whole outputs; `own` names the cells of the target's copy, spelled as text."""
    features: dict[str, Any] = {
        "everything": tuple((output.rows, output.exact, output.form, output.said, output.digest) for output in outputs)
    }
    for suffix, output in _numbered(outputs):
        keys, counts = [row[:-1] for row in output.rows], [row[-1] for row in output.rows]
        shown = [count for count in counts if count is not HIDDEN]
        features |= {
            f"the form of the table{suffix}": output.form,
            f"what is said{suffix}": output.said,
            f"the order of the rows{suffix}": _order(keys),
            f"the first and the last row's keys{suffix}": (tuple(keys[:1]), tuple(keys[-1:])),
            f"all keys in their order{suffix}": tuple(keys),
            f"where the target's cells stand{suffix}": tuple(i for i, key in enumerate(keys) if _spelled(key) in own),
            f"the number of rows{suffix}": len(keys),
            f"the number of shown counts{suffix}": len(shown),
            f"the sum of shown counts{suffix}": sum(shown),
            f"the largest shown count{suffix}": max(shown, default=None),
            f"the smallest shown count{suffix}": min(shown, default=None),
        }
        if output.exact:
            features[f"the number of exact counts{suffix}"] = output.exact.count(True)
            features[f"which counts are exact{suffix}"] = output.exact
    return features


def of_cell(outputs: Sequence[Output], keys: Sequence[tuple[str, ...]] | None, shown: tuple[int, ...]) -> Features:
    """Return the features of the cells of one copy, whose names are `keys`; None for the one number of a count.

    `shown` is what the attacker is shown of known people.
    """
    features: dict[str, Any] = {}
    by_output = [_statuses(output, keys) for output in outputs]
    for (suffix, output), (first, *others) in zip(_numbered(outputs), by_output, strict=True):
        features[f"{TARGET}{suffix}"] = first
        if output.exact:
            exact = _marks(output, keys)
            features[f"whether the target's count is exact{suffix}"] = str(exact[0])
            features[f"the target's count where it is exact{suffix}"] = first if exact[0] else "noised"
            features[f"all cells beside the target's, and which are exact{suffix}"] = (first, *others, exact)
        if others:
            features[f"the difference of the first two cells{suffix}"] = _difference(first, others[0])
            features[f"the second cell{suffix}"] = others[0]
    firsts = [statuses[0] for statuses in by_output]
    if len(by_output) > 1:
        numbers = [first for first in firsts if isinstance(first, int)]
        features["the sum over all outputs"] = sum(numbers) if len(numbers) == len(firsts) else None
        features["the smallest of all outputs"] = min(numbers, default=None)
        features["the difference of the first two outputs"] = _difference(firsts[0], firsts[1])
        features["in which outputs the target's cell is shown"] = tuple(isinstance(first, int) for first in firsts)
    if keys is not None and len(keys) > 1:
        places = [{_spelled(row[:-1]): place for place, row in enumerate(output.rows)} for output in outputs]
        shown_counts = [status for statuses in by_output for status in statuses if isinstance(status, int)]
        features["the sum of the target's cell and those beside it"] = sum(shown_counts)
        features["how many of these are shown"] = len(shown_counts)
        features["the smallest of these"] = min(shown_counts, default=None)
        features["the largest of these"] = max(shown_counts, default=None)
        features["the difference of the first and the last cell"] = _difference(by_output[0][0], by_output[0][-1])
        features["the order of all cells beside the target's"] = tuple(
            tuple(sorted(range(len(keys)), key=lambda key: place.get(keys[key], -1))) for place in places
        )
    features["all cells beside the target's"] = (tuple(by_output), shown)
    features["the target's cell in all outputs"] = (tuple(firsts), shown)
    return features


def _numbered(outputs: Sequence[Output]) -> Iterator[tuple[str, Output]]:
    """Yield every output, and what is added to the names of its features."""
    for place, output in enumerate(outputs, 1):
        yield "" if len(outputs) == 1 else f" (output {place})", output


def _statuses(output: Output, keys: Sequence[tuple[str, ...]] | None) -> tuple[Any, ...]:
    """Return the count of every cell, "hidden" for a row without a number, `NOTHING` for none."""
    statuses = {_spelled(row[:-1]): "hidden" if row[-1] is HIDDEN else row[-1] for row in output.rows}
    return (
        tuple(statuses.values())[:1] or (NOTHING,)
        if keys is None
        else tuple(statuses.get(key, NOTHING) for key in keys)
    )


def _marks(output: Output, keys: Sequence[tuple[str, ...]] | None) -> tuple[bool | None, ...]:
    """Return whether the count of every cell is marked as exact; None where nothing is shown."""
    marks = {_spelled(row[:-1]): mark for row, mark in zip(output.rows, output.exact, strict=True)}
    return tuple(marks.values())[:1] or (None,) if keys is None else tuple(map(marks.get, keys))


def _spelled(key: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(str, key))


def _order(keys: Sequence[tuple[Any, ...]]) -> str:
    """Return whether keys go up, down, or both; missing ones last."""
    ranks = [tuple((part is None, str(part)) for part in key) for key in keys]
    ups = any(earlier < later for earlier, later in itertools.pairwise(ranks))
    downs = any(earlier > later for earlier, later in itertools.pairwise(ranks))
    return f"{'up' * ups}{'down' * downs}"


def _difference(first: Any, other: Any) -> int | None:
    return first - other if isinstance(first, int) and isinstance(other, int) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that can be seen, or not, in a sample: in words, and whether it is."""

    words: str
    holds: Callable[[Features], bool]


def _is_shown(sample: Features) -> bool:
    names = (name for name in sample if name == TARGET or name.startswith(f"{TARGET} (output"))
    return all(isinstance(sample[name], int) for name in names)


FIXED = (
    Event(words=f"{TARGET} is shown", holds=_is_shown),
    Event(words=f"{TARGET} is not shown", holds=lambda sample: not _is_shown(sample)),
)
"""The events that are judged whatever was sampled: a number in all outputs, or none in one of them."""


def chosen(first: Sequence[Features], second: Sequence[Features], epsilon: float) -> Event:
    """Return the event that seems to tell most about the first life, beyond ``e^ε`` times the second.

    Every feature chooses its events on one half of these samples, and the other half tells which is best; the
    winner chooses again on all of them. So a feature with as many values as there are samples gains nothing by that.
    """
    factor = math.exp(epsilon)
    fits, trials = (first[0::2], second[0::2]), (first[1::2], second[1::2])
    best: tuple[float, Callable[..., Event], str] = (-math.inf, _set_of_values, "")
    for name in sorted({name for sample in (*first, *second) for name in sample}):
        values = [sample.get(name) for samples in fits for sample in samples]
        # A truth value is no number to compare, and where nothing else was seen there is no cutoff.
        numbers = any(type(value) is int for value in values)
        for fitted in (_cutoff, _set_of_values) if numbers else (_set_of_values,):
            score = _score(fitted(name, *fits, factor), *trials, factor)
            if score > best[0]:
                best = score, fitted, name
    _, fitted, name = best
    return fitted(name, first, second, factor)


def _score(event: Event, first: Sequence[Features], second: Sequence[Features], factor: float) -> float:
    """Return an estimate of ``P(E) − e^ε Q(E)`` that is a deviation to the safe side."""
    ones, others = (sum(map(event.holds, samples)) for samples in (first, second))
    p, q = (ones + 0.5) / (len(first) + 1), (others + 0.5) / (len(second) + 1)
    spread = p * (1 - p) / (len(first) + 1) + factor**2 * q * (1 - q) / (len(second) + 1)
    return p - factor * q - math.sqrt(spread)


def _set_of_values(name: str, first: Sequence[Features], second: Sequence[Features], factor: float) -> Event:
    ones, others = (Counter(sample.get(name, NOTHING) for sample in samples) for samples in (first, second))
    likelier = {value for value, times in ones.items() if times / len(first) > factor * others[value] / len(second)}
    return Event(words=f"{name}: one of {len(likelier)}", holds=lambda sample: sample.get(name, NOTHING) in likelier)


def _cutoff(name: str, first: Sequence[Features], second: Sequence[Features], factor: float) -> Event:
    """Return that a number reaches a cutoff, from below or from above; what has no number is with them, or not."""
    columns = [[sample.get(name) for sample in samples] for samples in (first, second)]
    numbers = [np.sort([value for value in values if isinstance(value, int)]).astype(np.int64) for values in columns]
    cutoffs = np.unique(np.concatenate(numbers))
    shares = [1 - len(kept) / len(values) for kept, values in zip(numbers, columns, strict=True)]
    with_none = shares[0] > factor * shares[1]
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
        value = sample.get(name)
        if not isinstance(value, int):
            return with_none
        return value >= cutoff if above else value <= cutoff

    words = f"{name} is at {'least' if above else 'most'} {cutoff}"
    return Event(words=f"{words}, or not shown" if with_none else words, holds=beyond)
