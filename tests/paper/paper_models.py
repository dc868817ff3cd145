"""Definitions 3 to 14 of "Differential privacy with partial knowledge", word by word, for small models.

A model is the library's: independent parameters with finite laws, and the records that follow from them (Definition 7).
Everything is enumerated in rational numbers; a factor ``growth`` stands for e^ε. Of the library nothing else is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from pkdp_pipeline.theory import FiniteModel as Model

__all__ = [
    "Model",
    "active_delta",
    "are_independent",
    "causal_delta",
    "coin",
    "deltas_by_knowledge",
    "growth_above",
    "hockey_stick",
    "noiseless_delta",
    "nothing",
    "passive_delta",
    "record",
    "records",
    "simulated_delta",
]

Law = dict[Hashable, Fraction]
Parameters = tuple[Any, ...]
Reading = Callable[[Parameters], Hashable]
"""Something that the parameters determine: a secret, or what an attacker knows."""


def coin(p: Any) -> Law:
    """Return the law of one coin."""
    return {1: Fraction(p), 0: 1 - Fraction(p)}


def growth_above(epsilon: float) -> Fraction:
    """Return a rational just above e^ε, so that a divergence at it is at most the one at ε."""
    return Fraction(1) if epsilon == 0.0 else Fraction(math.nextafter(math.exp(epsilon), math.inf))


def record(model: Model, place: int) -> Reading:
    """Return the reading of one record."""
    return lambda values: model.database(values)[place]


def records(model: Model, places: Iterable[int]) -> Reading:
    """Return the reading of several records."""
    listed = tuple(places)
    return lambda values: tuple(model.database(values)[place] for place in listed)


def nothing(values: Parameters) -> Hashable:
    """Return what somebody knows who knows nothing."""
    del values
    return ()


def are_independent(model: Model, first: Reading, second: Reading) -> bool:
    """Return whether two readings are independent; without that no normalisation is acceptable."""
    joint: Law = {}
    sides: tuple[Law, Law] = ({}, {})
    for values, weight in model.outcomes():
        pair = first(values), second(values)
        joint[pair] = joint.get(pair, Fraction(0)) + weight
        for side, value in zip(sides, pair, strict=True):
            side[value] = side.get(value, Fraction(0)) + weight
    return all(joint.get((a, b), 0) == p * q for a, p in sides[0].items() for b, q in sides[1].items())


def hockey_stick(first: Mapping[Any, Fraction], second: Mapping[Any, Fraction], growth: Fraction) -> Fraction:
    """Return ``Σ max(0, first - growth · second)`` of two laws that may not be normalised."""
    masses = sum(first.values(), Fraction(0)), sum(second.values(), Fraction(0))
    return sum(
        (max(Fraction(0), p / masses[0] - growth * second.get(o, Fraction(0)) / masses[1]) for o, p in first.items()),
        Fraction(0),
    )


Mechanism = Callable[[tuple[Any, ...]], Hashable]


def _laws_by_knowledge(
    model: Model, secret: Reading, known: Reading, shown: Callable[[Parameters], Hashable]
) -> dict[Hashable, dict[Hashable, Law]]:
    """Return, by what is known and by the secret, the weights of what is shown."""
    laws: dict[Hashable, dict[Hashable, Law]] = {}
    for values, weight in model.outcomes():
        law = laws.setdefault(known(values), {}).setdefault(secret(values), {})
        output = shown(values)
        law[output] = law.get(output, Fraction(0)) + weight
    return laws


def deltas_by_knowledge(
    model: Model,
    mechanism: Mechanism,
    secret: Reading,
    known: Reading,
    growth: Fraction,
    lives: tuple[Hashable, Hashable],
) -> dict[Hashable, tuple[Fraction, Fraction]]:
    """Return, by what is known, (its probability, the divergence of one life from the other given it)."""
    laws_by_knowledge = _laws_by_knowledge(model, secret, known, lambda values: mechanism(model.database(values)))
    return {
        state: (
            sum((sum(law.values(), Fraction(0)) for law in laws.values()), Fraction(0)),
            hockey_stick(laws[lives[0]], laws[lives[1]], growth),
        )
        for state, laws in laws_by_knowledge.items()
        if all(life in laws for life in lives)
    }


def noiseless_delta(model: Model, mechanism: Mechanism, secret: Reading, known: Reading, growth: Fraction) -> Fraction:
    """Return the least δ of noiseless privacy (Definition 3), which is that against active knowledge (12)."""
    laws_by_knowledge = _laws_by_knowledge(model, secret, known, lambda values: mechanism(model.database(values)))
    return max(
        hockey_stick(first, second, growth)
        for laws in laws_by_knowledge.values()
        for first in laws.values()
        for second in laws.values()
    )


active_delta = noiseless_delta


def passive_delta(model: Model, mechanism: Mechanism, secret: Reading, known: Reading, growth: Fraction) -> Fraction:
    """Return the least δ against passive knowledge (Definition 13), where it does not depend on the secret."""
    assert are_independent(model, secret, known)
    lives = {secret(values) for values, _ in model.outcomes()}
    return max(
        sum(
            (
                weight * delta
                for weight, delta in deltas_by_knowledge(model, mechanism, secret, known, growth, both).values()
            ),
            Fraction(0),
        )
        for both in product(lives, repeat=2)
    )


def causal_delta(
    model: Model, mechanism: Mechanism, target: int, known: Reading, growth: Fraction, changes: Sequence[Any]
) -> Fraction:
    """Return the least δ of causal privacy (Definition 5): one record is changed after all have been drawn."""
    secret = record(model, target)
    before = _laws_by_knowledge(model, secret, known, lambda values: mechanism(model.database(values)))
    worst = Fraction(0)
    for value in changes:

        def altered(values: Parameters, value: Any = value) -> Hashable:
            database = model.database(values)
            return mechanism((*database[:target], value, *database[target + 1 :]))

        after = _laws_by_knowledge(model, secret, known, altered)
        for state, laws in before.items():
            for life, law in laws.items():
                other = after[state][life]
                worst = max(worst, hockey_stick(law, other, growth), hockey_stick(other, law, growth))
    return worst


def simulated_delta(
    model: Model,
    mechanism: Mechanism,
    target: int,
    known: Reading,
    growth: Fraction,
    simulator: Callable[[tuple[Any, ...]], Hashable],
) -> Fraction:
    """Return the δ of distributional privacy (Definition 4) that one simulator shows; it never sees the target."""
    secret = record(model, target)
    real = _laws_by_knowledge(model, secret, known, lambda values: mechanism(model.database(values)))

    def guessed(values: Parameters) -> Hashable:
        database = model.database(values)
        return simulator((*database[:target], *database[target + 1 :]))

    guess = _laws_by_knowledge(model, secret, known, guessed)
    return max(
        max(hockey_stick(law, guess[state][life], growth), hockey_stick(guess[state][life], law, growth))
        for state, laws in real.items()
        for life, law in laws.items()
    )
