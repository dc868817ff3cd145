"""The rest of the papers: finite models; beside them bounded leakage, privacy losses, counting queries, printed bounds.

A finite model is what an attacker believes. Two things are computed from one, by enumeration in rational numbers:

- which attackers can be spoken of at all, Definitions 7 to 9 of Desfontaines, Mohammadi, Krahmer and Basin;
  `docs/correlated.md` says what makes a model acceptable, and why it has to be;
- how much a release depends on all earlier ones, their Definitions 17 and 18, Theorem 6 and Example 9, as evidence
  that releases add up; `docs/composition.md`, rule 4, proves what follows from a dependence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Any, TypeAlias

import flint

from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.extras.theory.privacy_loss.side import BITS, ball_of, exact_above, read_law, summed
from pkdp_pipeline.model.evidence import BoundedDependence
from pkdp_pipeline.model.wording import probability, whole_number
from pkdp_pipeline.theorems.numerics import float_above

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


def dependency(
    first: Mapping[Values, Fraction], second: Mapping[Values, Fraction], number: int
) -> dict[Values, Fraction | float]:
    """Return how much one release adds to the loss given *all* earlier ones, beyond its own loss (Definition 17).

    Parameters
    ----------
    first, second : mapping
        The law of all outputs, a tuple with one for each release, in the target's two lives.
    number : int
        The number of the release, counted from 0.

    Returns
    -------
    dict
        For the outputs up to this release that `first` can give: e^Dep, a `Fraction`, or ``inf``. It is 1 where an
        earlier output, or this one on its own, has told the lives apart.

    Notes
    -----
    Theorem 6, its main equation: the ratio of `first` to `second` at any outputs is the product of the ratios of every
    release on its own and of e^Dep of all releases but the first.
    """
    laws = [read_law("first", first), read_law("second", second)]
    if not all(isinstance(outputs, tuple) and len(outputs) > number for law in laws for outputs in law):
        raise ArgumentError("first and second must be laws of tuples with an output for each release.")
    place = whole_number("number", number, least=0)
    return _added(_views(laws[0], place), _views(laws[1], place))


_Views: TypeAlias = tuple[dict[Values, Fraction], dict[Values, Fraction], dict[Any, Fraction]]
"""The laws of the outputs up to a release, of those before it, and of its own."""


def _views(law: Mapping[Values, Fraction], number: int) -> _Views:
    return (
        summed((outputs[: number + 1], chance) for outputs, chance in law.items()),
        summed((outputs[:number], chance) for outputs, chance in law.items()),
        summed((outputs[number], chance) for outputs, chance in law.items()),
    )


def _added(first: _Views, second: _Views) -> dict[Values, Fraction | float]:
    (joint, past, own), (other_joint, other_past, other_own) = first, second
    factors: dict[Values, Fraction | float] = {}
    for outputs, chance in joint.items():
        before, output = outputs[:-1], outputs[-1]
        if before not in other_past or output not in other_own:
            factors[outputs] = Fraction(1)
        elif outputs not in other_joint:
            factors[outputs] = math.inf
        else:
            given = chance * other_past[before] / (past[before] * other_joint[outputs])
            factors[outputs] = given * other_own[output] / own[output]
    return factors


def bounded_dependence(
    model: FiniteModel,
    releases: Sequence[Callable[[Values], Hashable]],
    secret: Reading,
    known: Reading = lambda values: (),
    *,
    delta: float = 0.0,
    lives: Iterable[tuple[Hashable, Hashable]] | None = None,
) -> BoundedDependence:
    """Return how much every release depends on all earlier ones together, computed from a model (Definition 18).

    Parameters
    ----------
    model : FiniteModel
        The attacker's beliefs. Noise is a parameter of its own, and part of the database.
    releases : sequence of callable
        Each of a database, in the order of publication; at least two.
    secret, known : callable
        Of a tuple with a value of every parameter, as in `acceptable`. By default nothing is known.
    delta : float, default 0.0
        How probable a larger dependence may be: δ′, in [0, 1].
    lives : iterable of (value, value), optional
        The values of the secret that are compared, in either order; all by default.

    Returns
    -------
    BoundedDependence
        The smallest ε′ that dependences of all releases but the first exceed with probability at most `delta`, for
        these lives, in both orders, and whatever is known; and the largest probability with which they exceed it.

    Raises
    ------
    NotCertifiableError
        If the model is not `acceptable`, or no finite ε′ will do: the releases together tell what none tells alone.

    Notes
    -----
    *Guarantee*: Theorem 6. All n releases together have a δ of at most ``Σ δ_i(ε_i) + (n - 1) δ′`` at
    ``Σ ε_i + (n - 1) ε′``, against the attacker of the model. *Rounding*: up, once, from rational numbers.
    *Source*: `docs/composition.md`, rule 4.
    """
    spare = Fraction(probability("delta", delta))
    if len(releases) < 2:
        raise ArgumentError("releases must be at least two: a single one depends on none.")
    if not acceptable(model, secret, known):
        raise NotCertifiableError(
            "the model is not acceptable for this secret and this knowledge (Definition 8): no single parameter holds "
            "the secret apart from what is known, so that a dependence would mean nothing. Put what depends on the "
            "secret into one parameter with it (a larger privacy unit), or take for the secret what is left of it "
            "given what is known (a conditional secret)."
        )
    laws: dict[Hashable, dict[Hashable, dict[Values, Fraction]]] = {}
    for values, chance in model.outcomes():
        database = model.database(values)
        law = laws.setdefault(known(values), {}).setdefault(secret(values), {})
        outputs = tuple(release(database) for release in releases)
        law[outputs] = law.get(outputs, Fraction(0)) + chance
    # Knowledge and secret are independent, so that every state of one comes with every value of the other.
    pairs = set(permutations(next(iter(laws.values())), 2))
    compared = pairs if lives is None else {order for pair in map(tuple, lives) for order in (pair, pair[::-1])}
    if not compared or not compared <= pairs:
        raise ArgumentError("lives must be pairs of two different values that the secret can have, at least one pair.")
    dependences = []
    for given, number in product(laws.values(), range(1, len(releases))):
        views = {life: _views(_normalised(law), number) for life, law in given.items()}
        for first, second in compared:
            added = _added(views[first], views[second])
            dependences.append(
                sorted(((size, views[first][0][outputs]) for outputs, size in added.items()), reverse=True)
            )
    factor = max(_exceeded(chances, spare) for chances in dependences)
    if factor == math.inf:
        raise NotCertifiableError(
            "no finite ε bounds the dependence of the releases at this delta: together they tell the lives apart "
            "where none does alone. Allow a larger delta, publish fewer of them, or put noise on all."
        )
    beyond = max(sum((chance for size, chance in chances if size > factor), Fraction(0)) for chances in dependences)
    return BoundedDependence(epsilon=_logarithm_above(Fraction(factor)), delta=float_above(beyond))


def _exceeded(chances: Iterable[tuple[Fraction | float, Fraction]], spare: Fraction) -> Fraction | float:
    """Return the least factor of at least 1 that falling `chances` exceed with probability at most `spare`."""
    beyond = Fraction(0)
    for factor, chance in chances:
        beyond += chance
        if beyond > spare:
            return max(factor, Fraction(1))
    return Fraction(1)


def _logarithm_above(factor: Fraction) -> float:
    with flint.ctx.workprec(BITS):
        return exact_above(ball_of(factor).log())


def bounded_influence(people: Iterable[Mapping[Days, Fraction]], *, both_days: bool = True) -> BoundedDependence:
    """Return the dependence of two counts, on two days, of any number of people like these (Example 9).

    Parameters
    ----------
    people : iterable of mapping
        Laws of two days: tuples with 1 for a day on which a person is counted and 0 for the other. How many people
        follow each of them does not matter, nor whom of them the attacker knows, nor whether counts are thresholded.
    both_days : bool, default True
        Whether the target's lives may differ on both days; False: on one of them.

    Returns
    -------
    BoundedDependence
        ``ln ω + ln μ``, or the larger of both for one day, where every person's odds on the second day, told the first,
        are within a factor ω of her odds untold, and her chances on it, told one first day or the other, within a
        factor μ of each other. If chances told and untold are within a factor e^c, that is at most 4c (2c).

    Raises
    ------
    NotCertifiableError
        If laws are about more than two days: what people do given their own past does not bound what more than two
        releases tell together. If a first day excludes something on the second.

    Notes
    -----
    *Guarantee*: as for `bounded_dependence`. *Rounding*: up, once, from rational numbers. *Source*:
    `docs/composition.md`, rule 4, "Two counts".
    """
    odds, chances = Fraction(1), Fraction(1)
    for law in people:
        read = read_days("people", law)
        if any(len(days) > 2 for days in read):
            raise NotCertifiableError(
                "people must have laws of two days: influence of a day on the next says nothing about more than two "
                "releases, not even if it is bounded given the whole past. Where the third day is the exclusive or of "
                "two fair coins, every two days are independent and three counts have δ = 1. Use bounded_dependence, "
                "which computes the dependence on all earlier releases together."
            )
        if any(len(days) != 2 for days in read):
            raise ArgumentError("people must have laws of two days.")
        second = summed((days[1], chance) for days, chance in read.items())
        after = {
            day: summed((days[1], chance) for days, chance in read.items() if days[0] == day)
            for day in dict.fromkeys(days[0] for days in read)
        }
        if any(given.keys() != second.keys() for given in after.values()):
            raise NotCertifiableError(
                "people must have a chance of everything that can be on the second day after every first day: "
                "otherwise the two counts together may tell what neither tells. Use bounded_dependence with a delta."
            )
        if len(second) == 2:
            ratios = [given[1] * second[0] / (given[0] * second[1]) for given in after.values()]
            odds = max(odds, *ratios, *(1 / ratio for ratio in ratios))
        for first, other in permutations((_normalised(given) for given in after.values()), 2):
            chances = max(chances, *(first[day] / other[day] for day in second))
    return BoundedDependence(epsilon=_logarithm_above(odds * chances if both_days else max(odds, chances)))


def _normalised(law: Mapping[Any, Fraction]) -> dict[Any, Fraction]:
    total = sum(law.values(), Fraction(0))
    return {outcome: chance / total for outcome, chance in law.items()}


__all__ = [
    "FiniteModel",
    "acceptable",
    "bounded_dependence",
    "bounded_influence",
    "crowd",
    "dependency",
    "knows_more",
    "markov_chain",
]
