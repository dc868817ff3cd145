"""Finite models of what an attacker believes, and which attackers can be spoken of at all: Definitions 7 to 9.

By enumeration in rational numbers. `docs/correlated.md` says what makes a model acceptable, and why it has to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.theory.numbers import read_law, summed
from pkdp_pipeline.model.arguments import whole_number

Values: TypeAlias = tuple[Any, ...]
"""A value of every parameter, or of every release."""
Reading: TypeAlias = Callable[[Values], Hashable]
"""Something that the parameters determine: a secret, or what an attacker knows."""
Days: TypeAlias = tuple[Any, ...]
"""An entry for each day of a person."""


@dataclass(frozen=True, slots=True)
class FiniteModel:
    """Independent parameters, and the database that they generate (Definition 7).

    Parameters
    ----------
    parameters : sequence of mapping
        For each parameter a mapping from its values to their probabilities, each a `Fraction`, which add up to 1.
    database : callable
        Of a tuple with a value of every parameter; returns the database, a tuple of records.

    Raises
    ------
    ArgumentError
        If a law is not exact or does not add up.
    """

    parameters: Sequence[Mapping[Any, Fraction]]
    database: Callable[[Values], Values]

    def __post_init__(self) -> None:
        read = tuple(read_law("the law of a parameter", law) for law in self.parameters)
        object.__setattr__(self, "parameters", read)

    def outcomes(self) -> Iterator[tuple[Values, Fraction]]:
        """Yield every value of all parameters that can occur, with its probability."""
        for drawn in product(*(law.items() for law in self.parameters)):
            yield tuple(value for value, _ in drawn), math.prod((chance for _, chance in drawn), start=Fraction(1))

    def records(self, *places: int) -> Reading:
        """Return the reading of the records at `places`, as a tuple; ``records()`` reads nothing."""
        return lambda values: tuple(self.database(values)[place] for place in places)


def acceptable(model: FiniteModel, secret: Reading, known: Reading) -> bool:
    """Return whether the model's parameters set the secret apart from what is known (Definitions 7 and 8).

    They do where (1) database and knowledge determine every parameter, (2) one single parameter determines the secret,
    and (3) what is known is as good as a set of *other* parameters. Where none of the ways to write the data as
    independent parameters is acceptable, a definition of privacy against partial knowledge means nothing: enlarge the
    privacy unit until units are independent, or protect what is left of a record given the records it depends on.

    Parameters
    ----------
    model : FiniteModel
    secret, known : callable
        Of a tuple with a value of every parameter; see `FiniteModel.records`.

    Returns
    -------
    bool

    Notes
    -----
    Exact, by enumeration. The largest set of other parameters that the knowledge determines serves if any set does: it
    contains the set that serves, and so determines the knowledge as well.
    """
    return bool(_set_apart(model, secret, known))


def knows_more(model: FiniteModel, secret: Reading, known: Reading, other: Reading) -> bool:
    """Return whether somebody who knows `known` has more background knowledge than `other` gives (Definition 9).

    That is so where both are acceptable for one parameter that determines the secret, and the parameters that
    `known` is as good as contain those of `other`. No mechanism then has a larger δ against `other`, at any ε
    (Proposition 3).

    Parameters
    ----------
    model : FiniteModel
    secret, known, other : callable
        As in `acceptable`.

    Returns
    -------
    bool
        False as well where one of the two is not acceptable; equal knowledge is more, both ways.
    """
    stronger, weaker = _set_apart(model, secret, known), _set_apart(model, secret, other)
    return any(weaker[number] <= stronger[number] for number in stronger.keys() & weaker.keys())


def _set_apart(model: FiniteModel, secret: Reading, known: Reading) -> dict[int, frozenset[int]]:
    """Return the parameters that can stand for the secret, each with the others that the knowledge is as good as."""
    support = [values for values, _ in model.outcomes()]
    knowledge, secrets = [known(values) for values in support], [secret(values) for values in support]
    databases = [(model.database(values), learnt) for values, learnt in zip(support, knowledge, strict=True)]
    if not _determines(databases, support):
        return {}
    columns = dict(enumerate(zip(*support, strict=True)))
    learnable = frozenset(number for number, column in columns.items() if _determines(knowledge, column))
    return {
        number: learnable - {number}
        for number, column in columns.items()
        if _determines(column, secrets)
        and _determines([tuple(values[other] for other in learnable - {number}) for values in support], knowledge)
    }


def _determines(causes: Iterable[Hashable], effects: Iterable[Hashable]) -> bool:
    """Return whether equal causes always come with equal effects."""
    effect_of: dict[Hashable, Hashable] = {}
    return all(effect_of.setdefault(cause, effect) == effect for cause, effect in zip(causes, effects, strict=True))


def markov_chain(
    start: Mapping[Hashable, Fraction], transition: Mapping[Hashable, Mapping[Hashable, Fraction]], days: int
) -> dict[Days, Fraction]:
    """Return the law of a person's days, where each day depends on the day before alone.

    Parameters
    ----------
    start : mapping
        Everything that she may do on the first day, with its probability, a `Fraction`.
    transition : mapping
        For everything she may do on a day, the law of the next day.
    days : int
        At least 1.

    Returns
    -------
    dict
        From tuples with an entry for each day to their probabilities.
    """
    law: dict[Days, Fraction] = {(state,): chance for state, chance in read_law("start", start).items()}
    steps = {state: read_law("transition", after) for state, after in transition.items()}
    for _ in range(whole_number("days", days, least=1) - 1):
        if any(trajectory[-1] not in steps for trajectory in law):
            raise ArgumentError("transition must have the law of the next day for everything that a day may be.")
        law = {
            (*trajectory, state): chance * step
            for trajectory, chance in law.items()
            for state, step in steps[trajectory[-1]].items()
        }
    return law


def crowd(people: Iterable[Mapping[Days, Fraction]]) -> dict[Days, Fraction]:
    """Return the law of how many of some independent people are counted on each day.

    It is one parameter of a `FiniteModel`, beside the target's days, and much smaller than one for each person.

    Parameters
    ----------
    people : iterable of mapping
        For each person the law of her days: tuples with 1 for each day on which she is counted and 0 for the others.

    Returns
    -------
    dict
        From tuples with a number for each day to their probabilities.
    """
    laws = [read_days("people", law) for law in people]
    if len({len(days) for law in laws for days in law}) != 1:
        raise ArgumentError("people must have at least one person, and equally many days for everybody.")
    total = laws[0]
    for law in laws[1:]:
        total = summed(
            (tuple(map(int.__add__, counts, days)), weight * chance)
            for counts, weight in total.items()
            for days, chance in law.items()
        )
    return total


def read_days(name: str, law: Mapping[Days, Fraction]) -> dict[Days, Fraction]:
    """Return a person's law, or raise `ArgumentError` if it is not of tuples with 1 or 0 for each day."""
    read = read_law(f"a law of {name}", law)
    if not all(isinstance(days, tuple) and all(day in (0, 1) for day in days) for days in read):
        raise ArgumentError(f"{name} must have laws of tuples: 1 for a day on which a person is counted, else 0.")
    return read
