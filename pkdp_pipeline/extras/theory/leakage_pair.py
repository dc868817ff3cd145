"""A mechanism and a leakage on a small universe, exactly: what it promises given what leaks, and what it does not."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.extras.theory.privacy_loss.side import (
    Law,
    divergence,
    growth_below,
    read_growth,
    read_law,
    summed,
)
from pkdp_pipeline.theorems.numerics import float_above

Observation: TypeAlias = tuple[Hashable, Hashable]
"""(output, leaked value)."""

_New = TypeVar("_New", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakagePair:
    """A mechanism and a leakage: what each database gives as (output, leaked value), with exact probabilities.

    Parameters
    ----------
    laws : mapping
        For each database a mapping from ``(output, leaked)`` to its probability, a `Fraction`; they add up to 1.
    neighbours : iterable of (database, database)
        Which databases the promise is about, in either order; see `one_record_apart`.

    Raises
    ------
    ArgumentError
        If a law is not exact or does not add up, or neighbours have no law.

    Notes
    -----
    Every method is exact: rational numbers in, rational numbers out. ``growth`` stands for e^ε, see `growth_below`.
    Work and memory grow with databases times outcomes; it is meant for universes that can be listed.
    `docs/bounded_leakage.md` defines what is computed.
    """

    laws: Mapping[Hashable, Mapping[Observation, Fraction]]
    neighbours: Neighbours

    def __post_init__(self) -> None:
        if not isinstance(self.laws, Mapping) or not self.laws:
            raise ArgumentError("laws must be a mapping from databases to the law of (output, leaked).")
        read = {database: read_law("the law of a database", law) for database, law in self.laws.items()}
        if not all(isinstance(outcome, tuple) and len(outcome) == 2 for law in read.values() for outcome in law):
            raise ArgumentError("the outcomes of a law must be pairs (output, leaked).")
        frozen = MappingProxyType({database: MappingProxyType(law) for database, law in read.items()})
        object.__setattr__(self, "laws", frozen)
        object.__setattr__(self, "neighbours", read_neighbours(self.neighbours, read))

    @classmethod
    def from_functions(
        cls,
        *,
        databases: Iterable[Hashable],
        mechanism: Callable[[Hashable, Hashable], Hashable],
        leakage: Callable[[Hashable, Hashable], Hashable],
        randomness: Mapping[Hashable, Fraction],
        neighbours: Iterable[tuple[Hashable, Hashable]],
    ) -> LeakagePair:
        """Return the pair of two functions of a database and the same random input, M(x, r) and P(x, r).

        Parameters
        ----------
        databases : iterable
        mechanism, leakage : callable
            Of a database and a random input. For randomness of their own, let the input be a tuple of which each
            reads a part.
        randomness : mapping
            From random inputs to their probabilities, each a `Fraction`.
        neighbours : iterable of (database, database)
        """
        chances, listed = read_law("randomness", randomness), list(databases)
        if len(set(listed)) < len(listed):
            raise ArgumentError("databases must be different from one another.")
        laws = {
            database: summed(
                ((mechanism(database, drawn), leakage(database, drawn)), chance) for drawn, chance in chances.items()
            )
            for database in listed
        }
        return cls(laws=laws, neighbours=frozenset(neighbours))

    @property
    def is_empty(self) -> bool:
        """Whether no two neighbours share a leaked value, so that a promise given it says nothing at all."""
        return not any(self._shared())

    @property
    def told_apart(self) -> Neighbours:
        """Return the neighbours that share no leaked value: about these nothing is promised."""
        leaked = self._leaked()
        return frozenset(pair for pair in self.neighbours if not leaked[pair[0]].keys() & leaked[pair[1]].keys())

    def delta(self, growth: Fraction | int) -> Fraction:
        """Return the smallest δ with which the mechanism is (ln growth, δ)-bounded-leakage private (Definition 2).

        Parameters
        ----------
        growth : Fraction or int
            e^ε, at least 1.

        Raises
        ------
        NotCertifiableError
            If no two neighbours share a leaked value: the definition then holds for every mechanism, and says nothing.
        """
        return self._largest(list(self._shared()), growth, "any leaked value")

    def delta_given(self, leaked: Hashable, growth: Fraction | int) -> Fraction:
        """Return `delta` for one leaked value alone.

        Raises
        ------
        NotCertifiableError
            If no two neighbours share this value.
        """
        return self._largest([each for each in self._shared() if each[2] == leaked], growth, "this leaked value")

    def certified_delta(self, epsilon: float) -> float:
        """Return `delta` at a float ε, rounded up."""
        return float_above(self.delta(growth_below(epsilon)))

    def divergence(self, first: Hashable, other: Hashable, leaked: Hashable, growth: Fraction | int) -> Fraction:
        """Return how far the output of `first` is from that of `other`, given `leaked`; they need not be neighbours.

        Raises
        ------
        ArgumentError
            If one of the two cannot leak this value.
        """
        factor, given_all = read_growth("growth", growth), self._given()
        for database in (first, other):
            if leaked not in given_all.get(database, {}):
                raise ArgumentError("first and other must be databases that can leak this value.")
        return divergence(given_all[first][leaked], given_all[other][leaked], factor)

    def mechanism_delta(self, growth: Fraction | int) -> Fraction:
        """Return the smallest δ with which the output alone is (ln growth, δ)-differentially private."""
        return self._worst(self._outputs(), growth)

    def leakage_delta(self, growth: Fraction | int) -> Fraction:
        """Return the smallest δ with which the leakage alone is (ln growth, δ)-differentially private."""
        return self._worst(self._leaked(), growth)

    def joint_delta(self, growth: Fraction | int) -> Fraction:
        """Return the smallest δ with which output and leakage together are (ln growth, δ)-differentially private."""
        return self._worst(self._pushed(lambda output, leaked: (output, leaked)), growth)

    def independence(self, growth: Fraction | int) -> Fraction:
        """Return the smallest δ′ with which output and leakage are (ln growth, δ′)-independent (Definition 8).

        0 at growth 1 means that they are perfectly independent (Definition 6).
        """
        factor, alone = read_growth("growth", growth), self._outputs()
        return max(
            divergence(*order, factor)
            for database, given in self._given().items()
            for law in given.values()
            for order in ((law, alone[database]), (alone[database], law))
        )

    def processed(self, function: Callable[[Hashable], Hashable]) -> LeakagePair:
        """Return the pair whose output is a function of this one's (Theorem 11).

        `function` does not see the leaked value; ``pair.revealed().processed(function)`` shows it (output, leaked).
        """
        return self._mapped(lambda output, leaked: (function(output), leaked))

    def revealed(self) -> LeakagePair:
        """Return the pair whose output is (output, leaked): what leaks is published (Theorem 12)."""
        return self._mapped(lambda output, leaked: ((output, leaked), leaked))

    def mixed(self, others: Sequence[LeakagePair], weights: Sequence[Fraction]) -> LeakagePair:
        """Return the pair of a mechanism that is drawn among several, all with this pair's leakage (Lemma 10).

        Parameters
        ----------
        others : sequence of LeakagePair
            With the same databases, neighbours and law of what leaks.
        weights : sequence of Fraction
            The chance of this pair and of each of the others; they add up to 1. The draw depends on nothing else.

        Raises
        ------
        ArgumentError
            If the pairs do not fit together, or weights do not add up.
        """
        pairs = (self, *others)
        if len(weights) != len(pairs):
            raise ArgumentError("weights must have one number for this pair and one for each of the others.")
        chances = read_law("weights", dict(enumerate(weights)))
        for other in others:
            self._fits(other)
            if other._leaked() != self._leaked():
                raise ArgumentError("others must leak what this pair leaks, with the same probabilities.")
        laws = {
            database: summed(
                (outcome, chance * part)
                for number, chance in chances.items()
                for outcome, part in pairs[number].laws[database].items()
            )
            for database in self.laws
        }
        return LeakagePair(laws=laws, neighbours=self.neighbours)

    def composed(self, other: LeakagePair) -> LeakagePair:
        """Return both pairs together, each with randomness of its own (Theorem 26).

        Outputs and leaked values become pairs: ``((y, y′), (o, o′))``.
        """
        self._fits(other)
        laws: dict[Hashable, dict[Observation, Fraction]] = {
            database: {
                ((first[0], second[0]), (first[1], second[1])): chance * more
                for first, chance in law.items()
                for second, more in other.laws[database].items()
            }
            for database, law in self.laws.items()
        }
        return LeakagePair(laws=laws, neighbours=self.neighbours)

    def reduced(self, first: Hashable, other: Hashable, leaked: Hashable) -> LeakagePair:
        """Return the reduction of this pair to a mechanism without leakage (Definition 15).

        On `first` it has the law of the output given `leaked` (Proposition 23), on every other database that of
        `other`; where one of the two cannot leak this value its output is None on all. If `first` and `other` are
        neighbours its `mechanism_delta` is at most `delta` (Proposition 24). The leaked value is None throughout.
        """
        for database in (first, other):
            if database not in self.laws:
                raise ArgumentError("first and other must be databases that have a law.")
        given = self._given()
        shared = leaked in given[first] and leaked in given[other]
        laws: dict[Hashable, dict[Observation, Fraction]] = {}
        for database in self.laws:
            law = given[first if database == first else other][leaked] if shared else {None: Fraction(1)}
            laws[database] = {(output, None): chance for output, chance in law.items()}
        return LeakagePair(laws=laws, neighbours=self.neighbours)

    def path(self, first: Hashable, other: Hashable, leaked: Hashable) -> tuple[Hashable, ...] | None:
        """Return a shortest path of neighbours that can all leak `leaked` (Definition 21), both ends included.

        None where there is none: then nothing is promised about `first` and `other` (Example 18). Its steps, one less
        than its length, go into `along_path`.
        """
        through = dict.fromkeys(database for database, values in self._leaked().items() if leaked in values)
        return shortest_path(self.neighbours, first, other, through)

    def _fits(self, other: object) -> None:
        if not isinstance(other, LeakagePair) or other.laws.keys() != self.laws.keys():
            raise ArgumentError("others must be a LeakagePair with the same databases.")
        if other.neighbours != self.neighbours:
            raise ArgumentError("others must have the same neighbours.")

    def _mapped(self, change: Callable[[Hashable, Hashable], Observation]) -> LeakagePair:
        return LeakagePair(laws=self._pushed(change), neighbours=self.neighbours)

    def _pushed(self, change: Callable[[Hashable, Hashable], _New]) -> dict[Hashable, dict[_New, Fraction]]:
        return {
            database: summed((change(*outcome), chance) for outcome, chance in law.items())
            for database, law in self.laws.items()
        }

    def _outputs(self) -> dict[Hashable, Law]:
        return self._pushed(lambda output, leaked: output)

    def _leaked(self) -> dict[Hashable, Law]:
        return self._pushed(lambda output, leaked: leaked)

    def _given(self) -> dict[Hashable, dict[Hashable, Law]]:
        """Return, for each database and each value it can leak, the law of the output given that value."""
        totals = self._leaked()
        given: dict[Hashable, dict[Hashable, Law]] = {}
        for database, law in self.laws.items():
            mine = given.setdefault(database, {})
            for (output, leaked), chance in law.items():
                mine.setdefault(leaked, {})[output] = chance / totals[database][leaked]
        return given

    def _shared(self) -> Iterable[tuple[Hashable, Hashable, Hashable]]:
        """Return (database, neighbour, value) wherever both can leak the value."""
        leaked = self._leaked()
        return (
            (first, second, value)
            for first, second in self.neighbours
            for value in leaked[first]
            if value in leaked[second]
        )

    def _largest(
        self, shared: list[tuple[Hashable, Hashable, Hashable]], growth: Fraction | int, which: str
    ) -> Fraction:
        factor, given = read_growth("growth", growth), self._given()
        if not shared:
            raise NotCertifiableError(
                f"no two neighbours share {which}: a promise given it holds for every mechanism and says nothing. Let "
                "less leak, add noise to what leaks, or protect a smaller difference between databases."
            )
        return max(divergence(given[first][leaked], given[second][leaked], factor) for first, second, leaked in shared)

    def _worst(self, laws: Mapping[Hashable, Mapping[_New, Fraction]], growth: Fraction | int) -> Fraction:
        factor = read_growth("growth", growth)
        return max(
            (divergence(laws[first], laws[second], factor) for first, second in self.neighbours), default=Fraction(0)
        )


Neighbours: TypeAlias = frozenset[tuple[Hashable, Hashable]]


def one_record_apart(databases: Iterable[tuple[Hashable, ...]]) -> Neighbours:
    """Return the pairs of databases that differ in exactly one record, in both orders.

    Parameters
    ----------
    databases : iterable of tuple
        One entry for each person; all of the same length.

    Raises
    ------
    ArgumentError
        If a database is not a tuple, or lengths differ.
    """
    listed = list(dict.fromkeys(databases))
    if not all(isinstance(database, tuple) for database in listed) or len({len(database) for database in listed}) > 1:
        raise ArgumentError("databases must be tuples of the same length, with one entry for each person.")
    pairs = [
        (first, second)
        for first, second in combinations(listed, 2)
        if sum(mine != theirs for mine, theirs in zip(first, second, strict=True)) == 1
    ]
    return frozenset(pairs + [(second, first) for first, second in pairs])


def read_neighbours(pairs: object, databases: Collection[Hashable]) -> Neighbours:
    """Return `pairs` of databases in both orders, or raise `ArgumentError`."""
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ArgumentError("neighbours must be pairs of databases; one_record_apart(databases) makes them.")
    neighbours: set[tuple[Hashable, Hashable]] = set()
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or any(database not in databases for database in pair):
            raise ArgumentError("neighbours must be pairs (first, other) of databases that have a law.")
        if pair[0] == pair[1]:
            raise ArgumentError("neighbours must be pairs of two different databases.")
        neighbours |= {pair, (pair[1], pair[0])}
    return frozenset(neighbours)


def shortest_path(
    neighbours: Neighbours, start: Hashable, end: Hashable, through: Collection[Hashable]
) -> tuple[Hashable, ...] | None:
    """Return a shortest path of neighbours from `start` to `end` inside `through`; None where there is none."""
    if start not in through or end not in through:
        return None
    before: dict[Hashable, Hashable] = {start: start}
    waiting = deque([start])
    while waiting and end not in before:
        current = waiting.popleft()
        # In the order of `through`, so that the same path is found every time.
        for neighbour in through:
            if neighbour not in before and (current, neighbour) in neighbours:
                before[neighbour] = current
                waiting.append(neighbour)
    if end not in before:
        return None
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return tuple(reversed(path))
