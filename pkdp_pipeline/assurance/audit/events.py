"""Events: which outputs an attacker takes for the first life, chosen on samples that do not judge them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pkdp_pipeline.assurance.audit.features import NOTHING, TARGET, Features

__all__ = ["Event", "chosen", "fixed"]


class Event(Protocol):
    """Something that can be seen, or not, in a sample."""

    @property
    def words(self) -> str:
        """What is seen."""
        ...

    def holds(self, sample: Features) -> bool:
        """Return whether it is seen in `sample`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _OneOf:
    """A feature has one of some values."""

    feature: str
    values: frozenset[Any]
    text: str = ""

    @property
    def words(self) -> str:
        return self.text or f"{self.feature}: one of {len(self.values)}"

    def holds(self, sample: Features) -> bool:
        return sample.kinds.get(self.feature, NOTHING) in self.values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """The target's cell has a number in all outputs, or in some output it has none."""

    numbers: bool

    @property
    def words(self) -> str:
        return f"{TARGET} is {'shown' if self.numbers else 'not shown'}"

    def holds(self, sample: Features) -> bool:
        found = (value for name, value in sample.kinds.items() if name.startswith(TARGET))
        return all(isinstance(value, int) for value in found if not isinstance(value, tuple)) == self.numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beyond:
    """A number reaches a cutoff, from below or from above; what has no number is with them, or not."""

    feature: str
    cutoff: int
    above: bool
    with_none: bool

    @property
    def words(self) -> str:
        beyond = f"{self.feature} is at {'least' if self.above else 'most'} {self.cutoff}"
        return f"{beyond}, or not shown" if self.with_none else beyond

    def holds(self, sample: Features) -> bool:
        value = sample.numbers.get(self.feature)
        if value is None:
            return self.with_none
        return value >= self.cutoff if self.above else value <= self.cutoff


def fixed() -> tuple[Event, ...]:
    """Return the events that are judged whatever was sampled."""
    return (_Shown(numbers=True), _Shown(numbers=False))


def chosen(first: Sequence[Features], second: Sequence[Features], epsilon: float) -> Event:
    """Return the event that seems to tell most about the first life, beyond ``e^ε`` times the second.

    Every feature chooses its event on one half of these samples, and the other half tells which feature is best; the
    winner chooses again on all of them. So a feature with as many values as there are samples gains nothing by that.
    """
    factor = math.exp(epsilon)
    fits, trials = (first[0::2], second[0::2]), (first[1::2], second[1::2])
    best, most = "", -math.inf
    for name in _names(first, second):
        event = _fitted(name, *fits, factor)
        score = _score(event, *trials, factor)
        if score > most:
            best, most = name, score
    return _fitted(best, first, second, factor)


def _names(first: Sequence[Features], second: Sequence[Features]) -> list[str]:
    return sorted({name for sample in (*first, *second) for name in (*sample.kinds, *sample.numbers)})


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
    ones = Counter(sample.kinds.get(name, NOTHING) for sample in first)
    others = Counter(sample.kinds.get(name, NOTHING) for sample in second)
    likelier = (value for value, times in ones.items() if times / len(first) > factor * others[value] / len(second))
    return _OneOf(feature=name, values=frozenset(likelier))


def _cutoff(name: str, first: Sequence[Features], second: Sequence[Features], factor: float) -> Event:
    found = [[sample.numbers.get(name) for sample in samples] for samples in (first, second)]
    ones, others = (np.array(sorted(value for value in values if value is not None)) for values in found)
    cutoffs = np.unique(np.concatenate([ones, others])) if len(ones) + len(others) else np.zeros(1)
    gain = found[0].count(None) / len(first) - factor * found[1].count(None) / len(second)
    tails = []
    for above in (True, False):
        p = _share(ones, cutoffs, above, len(first))
        q = _share(others, cutoffs, above, len(second))
        told = p - factor * q
        place = int(np.argmax(told))
        tails.append((float(told[place]), int(cutoffs[place]), above))
    _, cutoff, above = max(tails)
    return _Beyond(feature=name, cutoff=cutoff, above=above, with_none=gain > 0)


def _share(values: Any, cutoffs: Any, above: bool, samples: int) -> Any:
    """Return the share of samples whose number is beyond each cutoff."""
    if above:
        return (len(values) - np.searchsorted(values, cutoffs, side="left")) / samples
    return np.searchsorted(values, cutoffs, side="right") / samples
