"""Two mechanisms of the papers: counting queries, and the exponential mechanism whose utility is coupled to a leakage.

`CountingQueries`: several counts of the same records, and how far one record changes all of them together.
`ExponentialMechanism`: a good output, given what leaks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from numbers import Rational
from types import MappingProxyType
from typing import Any

import flint
import numpy as np

from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.extras.theory.leakage_pair import LeakagePair, Neighbours, Observation, read_neighbours
from pkdp_pipeline.extras.theory.privacy_loss.side import (
    BITS,
    ball_of,
    exact_above,
    exact_end,
    read_growth,
    read_law,
    read_number,
)
from pkdp_pipeline.model.evidence import BoundedSensitivity
from pkdp_pipeline.model.mechanisms import GeometricNoise
from pkdp_pipeline.model.predicate import Predicate, among, conjunction, disjunction
from pkdp_pipeline.model.wording import choice, positive_real
from pkdp_pipeline.theorems.numerics import float_below

_MAX_RECORDS = 1_000_000
_MAX_KINDS = 20_000
"""This many records that no query tells apart from each other are compared in pairs."""

_BLOCK_SIZE = 500
_MAX_CLAUSES = 100


@dataclass(frozen=True, slots=True)
class CountingQueries:
    """Named questions, "how many records are of this kind?", over a public list of all records there can be.

    Make it with `over`. It says how far the record of one person can change the answers, all changes added up (the
    L1 sensitivity of the family), and therefore how much noise each answer needs where all of them are released.

    Attributes
    ----------
    columns : tuple of str
        The attributes of a record.
    records : tuple of tuple
        All records there can be.
    counted : tuple of (str, frozenset)
        Every question's name, and the records that it counts.

    Notes
    -----
    Dwork, "Differential privacy", ICALP 2006, Theorems 4 and 5; `docs/sensitivity.md`.
    """

    columns: tuple[str, ...]
    records: tuple[tuple[Any, ...], ...]
    counted: tuple[tuple[str, frozenset[tuple[Any, ...]]], ...]

    def __repr__(self) -> str:
        return f"CountingQueries(columns={self.columns!r}, names={self.names!r})"

    @classmethod
    def over(cls, domain: Mapping[str, Iterable[Any]], queries: Mapping[str, Any]) -> CountingQueries:
        """Return the family of `queries` about records from `domain`.

        Parameters
        ----------
        domain : mapping
            Every column's possible values, all of them public: ``{"age": ["<65", "65+"], "smokes": [True, False]}``.
            A record is one value of each. Values in the data that are not listed are not counted for.
        queries : mapping
            Under each name, which records are counted: conditions, as a mapping from columns to a value or a
            collection of values (``{"age": "65+", "smokes": True}``; ``{}`` is everybody); or a collection of records
            as tuples in the order of the columns; or a function of a record, given as a dictionary, that returns
            True or False. Functions are asked about every record of the domain, and about nothing else.

        Raises
        ------
        ArgumentError
            If a column, a value or a condition is not in the domain, or the domain is empty or too large.
        """
        values = _domain(domain)
        if not isinstance(queries, Mapping) or not queries:
            raise ArgumentError("queries must be a mapping from names to conditions, with at least one entry.")
        if not all(isinstance(name, str) and name for name in queries):
            raise ArgumentError("the name of a query must be a text.")
        records = tuple(product(*values.values()))
        counted = ((name, frozenset(_members(name, which, values, records))) for name, which in queries.items())
        return cls(columns=tuple(values), records=records, counted=tuple(counted))

    @property
    def names(self) -> tuple[str, ...]:
        """The questions' names."""
        return tuple(name for name, _ in self.counted)

    def counts(self, record: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the questions that count `record`, one value for each column.

        Raises
        ------
        ArgumentError
            If it is not a record of the domain.
        """
        given = tuple(record[column] for column in self.columns) if set(record) == set(self.columns) else None
        if given is None or given not in self.records:
            raise ArgumentError(f"a record has one value of the domain for each of {', '.join(self.columns)}.")
        return tuple(name for name, members in self.counted if given in members)

    def where(self, name: str) -> str:
        """Return the question `name` as the query string that a release takes; it counts records of the domain only.

        Raises
        ------
        ArgumentError
            If there is no such question, it counts no record, or it cannot be written down.
        """
        members = dict(self.counted).get(name)
        if not members:
            raise ArgumentError(f"name must be that of a question that counts somebody: {', '.join(self.names)}.")
        sides = [tuple(dict.fromkeys(record[index] for record in self.records)) for index in range(len(self.columns))]
        used = [
            [value for value in side if any(record[index] == value for record in members)]
            for index, side in enumerate(sides)
        ]
        clauses = [used]
        if math.prod(map(len, used)) != len(members):
            clauses = [[[value] for value in record] for record in self.records if record in members]
        if len(clauses) > _MAX_CLAUSES:
            raise ArgumentError(f"question {name!r} is too long to be written as a query string; write one yourself.")
        return str(disjunction(conjunction(map(_condition, self.columns, clause)) for clause in clauses))

    def sensitivity(self, protects: str = "presence") -> int:
        """Return how far one person's record changes the answers, all changes added up.

        Parameters
        ----------
        protects : {"presence", "value"}, default "presence"
            ``"presence"``: a record against no record. ``"value"``: any two records as well.

        Notes
        -----
        *Guarantee*: exact, by comparing all records of the domain. Noise that hides what a record says hides whether
        it is there, here as elsewhere, so ``"value"`` is never below ``"presence"``.
        """
        choice("protects", protects, ("presence", "value"))
        kinds = self._kinds()
        presence = int(kinds.sum(axis=1).max())
        if protects == "presence":
            return presence
        if len(kinds) > _MAX_KINDS:
            raise ArgumentError(
                f"the questions tell more than {_MAX_KINDS} records apart, too many to compare them in pairs: join "
                "values of the domain, or ask fewer questions at once."
            )
        # Both products are of whole numbers below 2^53, so exact.
        inside, outside, farthest = kinds.astype(np.float64), 1.0 - kinds, presence
        for start in range(0, len(kinds), _BLOCK_SIZE):
            block = slice(start, start + _BLOCK_SIZE)
            apart = inside[block] @ outside.T + outside[block] @ inside.T
            farthest = max(farthest, int(apart.max()))
        return farthest

    def noise(self, epsilon: float, protects: str = "presence") -> GeometricNoise:
        """Return the noise that each answer needs, so that all of them together are ε-differentially private.

        Parameters
        ----------
        epsilon : float
            Above 0; for the whole family.
        protects : {"presence", "value"}, default "presence"

        Raises
        ------
        ArgumentError
            If `epsilon` is not a number above 0, or no record changes any answer.

        Notes
        -----
        ε divided by the sensitivity. *Rounding*: down, so that what all answers add up to never exceeds `epsilon`.
        """
        total, changes = positive_real("epsilon", epsilon), self.sensitivity(protects)
        if changes == 0:
            raise ArgumentError("no record of the domain changes any of the answers: they need no noise.")
        share = float_below(Fraction(total) / changes)
        if share == 0.0:
            raise ArgumentError("epsilon is too small to be divided among the questions.")
        return GeometricNoise(share)

    def evidence(self, protects: str = "presence") -> BoundedSensitivity:
        """Return what to declare to `compose` about certificates of the family's counts, and what it then `protects`.

        It holds where every person has one record, all records are in the domain, and every count's predicate counts
        the records that its question does.
        """
        changes = max(1, self.sensitivity(protects))
        return BoundedSensitivity(changes=changes, protects="value" if protects == "value" else "presence")

    def _kinds(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the records that can be told apart, each as a row of zeros and ones: which questions count it."""
        size = len(self.records)
        answers = [
            np.fromiter((record in members for record in self.records), bool, size) for _, members in self.counted
        ]
        return np.unique(np.stack(answers, axis=1).astype(np.uint8), axis=0)


def _condition(column: str, values: Iterable[Any]) -> Predicate:
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    finite = all(isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)) for value in plain)
    # A query string has no at-sign, in texts neither: there it would name a variable.
    if not finite or "`" in column or "@" in f"{column}{plain}":
        raise ArgumentError(f"conditions on column {column!r} cannot be written as a query string; write one yourself.")
    return among(column, plain)


def _domain(domain: object) -> dict[str, tuple[Any, ...]]:
    if not isinstance(domain, Mapping) or not domain or not all(isinstance(column, str) for column in domain):
        raise ArgumentError("domain must be a mapping from columns, as texts, to the values each can have.")
    columns: dict[str, tuple[Any, ...]] = {}
    for column, values in domain.items():
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise ArgumentError(f"the domain of {column!r} must be a list of values.")
        columns[column] = tuple(values)
        if not columns[column] or len(_plain(columns[column])) < len(columns[column]):
            raise ArgumentError(f"the domain of {column!r} must list at least one value, and none twice.")
    if math.prod(map(len, columns.values())) > _MAX_RECORDS:
        raise ArgumentError(
            f"the domain has more than {_MAX_RECORDS} records: leave out columns that no question asks about, or join "
            "values."
        )
    return columns


def _plain(values: Iterable[Any]) -> frozenset[Any]:
    try:
        return frozenset(values)
    except TypeError:
        raise ArgumentError("a value of the domain must be plain, such as a text or a number.") from None


def _members(
    name: str, which: object, domain: Mapping[str, tuple[Any, ...]], records: tuple[tuple[Any, ...], ...]
) -> Iterable[tuple[Any, ...]]:
    """Return the records that a question counts."""
    if isinstance(which, Mapping):
        allowed = {column: frozenset(values) for column, values in domain.items()}
        for column, wanted in which.items():
            several = isinstance(wanted, list | tuple | set | frozenset | range)
            values = _plain(wanted if several else (wanted,))
            if column not in domain or not values <= allowed[column]:
                raise ArgumentError(f"question {name!r} asks for {column!r}, or values of it, not in the domain.")
            allowed[column] = values
        sets = list(allowed.values())
        return [
            record for record in records if all(value in options for value, options in zip(record, sets, strict=True))
        ]
    if callable(which):
        answers = [which(dict(zip(domain, record, strict=True))) for record in records]
        if not all(isinstance(answer, bool | np.bool_) for answer in answers):
            raise ArgumentError(f"question {name!r} must answer True or False.")
        return [record for record, answer in zip(records, answers, strict=True) if answer]
    if isinstance(which, str | bytes) or not isinstance(which, Iterable):
        raise ArgumentError(
            f"question {name!r} must be conditions (a mapping from columns to values), a list of records, or a "
            f"function of a record, not {type(which).__name__}."
        )
    listed = _plain(which)
    if not listed <= set(records):
        raise ArgumentError(
            f"question {name!r} lists records that are not in the domain: each is a tuple with one value for each of "
            f"{', '.join(domain)}."
        )
    return listed


_BASE_BITS = 64
"""Binary digits after the point of the base of exact weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialMechanism:
    """An output is drawn with a chance that grows with its utility u(x, y, o) for the database, given what leaked.

    Parameters
    ----------
    outputs : tuple
        All outputs y that there are.
    utility : callable
        Of database, output and leaked value; an int or a `Fraction`. Called only for values that the database can
        leak.
    leakage : mapping
        For each database the law of what leaks: from leaked values to probabilities, each a `Fraction`.
    neighbours : iterable of (database, database)
        Which databases the promise is about; see `one_record_apart`.
    growth : Fraction or int
        e^ε, above 1; ``growth_below(epsilon)`` for a float.

    Raises
    ------
    ArgumentError
        If an argument is malformed.

    Notes
    -----
    The mechanism is printed with weights ``exp(ε u/(2 Δ(o)))``, the sensitivity Δ(o) taken over all neighbours. Here
    only neighbours count that can both leak o, and in place of ``2 Δ(o)`` stands `spread`, R(o), which is at most
    ``2 Δ(o)``: better outputs for the same promise. `ideal_law` has the weights ``growth^(u/R(o))``; `law` has rational
    ones close by, which can be drawn exactly.

    *Guarantee*: (ln growth, 0)-bounded-leakage private with respect to the leakage, exactly: Theorem 36. *Rounding*:
    none in `law`; outward in `ideal_law` and `shortfall`. *Source*: `docs/bounded_leakage.md`, "The exponential
    mechanism".
    """

    outputs: tuple[Hashable, ...]
    utility: Callable[[Hashable, Hashable, Hashable], Fraction | int]
    leakage: Mapping[Hashable, Mapping[Hashable, Fraction]]
    neighbours: Neighbours
    growth: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.outputs, tuple) or not self.outputs or len(set(self.outputs)) < len(self.outputs):
            raise ArgumentError("outputs must be a tuple of different outputs, at least one.")
        if not callable(self.utility):
            raise ArgumentError("utility must be a function of database, output and leaked value.")
        if not isinstance(self.leakage, Mapping) or not self.leakage:
            raise ArgumentError("leakage must be a mapping from databases to the law of what leaks.")
        laws = {database: MappingProxyType(read_law("the leakage", law)) for database, law in self.leakage.items()}
        object.__setattr__(self, "leakage", MappingProxyType(laws))
        object.__setattr__(self, "neighbours", read_neighbours(self.neighbours, laws))
        object.__setattr__(self, "growth", read_growth("growth", self.growth))
        if self.growth == 1:
            raise ArgumentError("growth must be above 1: at ε = 0 no output can be preferred.")

    def sensitivity(self, leaked: Hashable) -> Fraction:
        """Return Δ(o): the most that the utility of an output differs between neighbours that can both leak `leaked`.

        Raises
        ------
        NotCertifiableError
            If no two neighbours share this value.
        """
        return max(max(map(abs, gains)) for gains in self._gains(leaked))

    def spread(self, leaked: Hashable) -> Fraction:
        """Return R(o): how differently one neighbour's change moves the utilities of two outputs, at most 2 Δ(o).

        It is the largest ``max d - min d`` of the differences ``d(y) = u(x, y, o) - u(x′, y, o)``, over neighbours that
        can both leak `leaked`. Where the utility can only rise from x to x′ it is at most Δ(o).

        Raises
        ------
        NotCertifiableError
            If no two neighbours share this value: given it nothing is promised, whatever is drawn.
        """
        return max(max(gains) - min(gains) for gains in self._gains(leaked))

    def law(self, database: Hashable, leaked: Hashable) -> dict[Hashable, Fraction]:
        """Return the law of the output of `database` when `leaked` leaks: rational, and (ln growth, 0) holds exactly.

        Weights are powers of a rational base at or below ``growth^(unit/R(o))``. Where ``R(o)`` is 0 the neighbours
        agree on which outputs are best: one of these is drawn, each with the same chance.
        """
        scores, best = self._scores(database, leaked)
        if self.spread(leaked) == 0:
            winners = sum(score == best for score in scores.values())
            return {output: Fraction(int(score == best), winners) for output, score in scores.items()}
        base, unit = self._base(leaked)
        weights = {output: base ** int((score - best) / unit) for output, score in scores.items()}
        total = sum(weights.values(), Fraction(0))
        return {output: weight / total for output, weight in weights.items()}

    def ideal_law(self, database: Hashable, leaked: Hashable) -> dict[Hashable, tuple[Fraction, Fraction]]:
        """Return the probabilities with weights ``growth^(u/R(o))`` between two rationals each.

        These weights are no rational numbers in general; `law` is what can be drawn exactly.
        """
        spread = self.spread(leaked)
        if spread == 0:
            return {output: (chance, chance) for output, chance in self.law(database, leaked).items()}
        scores, best = self._scores(database, leaked)
        with flint.ctx.workprec(BITS):
            rate = ball_of(self.growth).log() / ball_of(spread)
            weights = {output: (rate * ball_of(score - best)).exp() for output, score in scores.items()}
            total = sum(weights.values(), flint.arb(0))
            chances = {output: weight / total for output, weight in weights.items()}
            return {
                output: (max(Fraction(0), exact_end(ball.lower())), min(Fraction(1), exact_end(ball.upper())))
                for output, ball in chances.items()
            }

    def shortfall(self, database: Hashable, leaked: Hashable, t: float) -> float:
        """Return how far below the best utility an output drawn from `law` falls with probability at most ``e^{-t}``.

        Parameters
        ----------
        database, leaked
            A database and a value that it can leak.
        t : float
            At least 0 and finite.

        Returns
        -------
        float
            ``R(o)/ε (ln(|outputs|/|best outputs|) + t)`` (Theorem 38), raised a little, by less than 1e-15 of it, for
            the rational base.

        Notes
        -----
        *Guarantee*: ``P[u ≤ max u - shortfall] ≤ e^{-t}``. *Rounding*: up.
        """
        further = read_number("t", t)
        scores, best = self._scores(database, leaked)
        if self.spread(leaked) == 0:
            return math.ulp(0.0)  # only best outputs are drawn
        base, unit = self._base(leaked)
        winners = sum(score == best for score in scores.values())
        with flint.ctx.workprec(BITS):
            needed = ball_of(Fraction(len(self.outputs), winners)).log() + flint.arb(further)
            return exact_above(ball_of(unit) * needed / ball_of(base).log())

    def pair(self) -> LeakagePair:
        """Return the mechanism with its leakage as a `LeakagePair`, drawn from `law`."""
        laws: dict[Hashable, dict[Observation, Fraction]] = {
            database: {
                (output, leaked): chance * part
                for leaked, chance in law.items()
                for output, part in self.law(database, leaked).items()
            }
            for database, law in self.leakage.items()
        }
        return LeakagePair(laws=laws, neighbours=self.neighbours)

    def _scores(self, database: Hashable, leaked: Hashable) -> tuple[dict[Hashable, Fraction], Fraction]:
        """Return the utility of each output, and the best."""
        if leaked not in self.leakage.get(database, {}):
            raise ArgumentError("database must be one that can leak this value.")
        scores = {output: self.utility(database, output, leaked) for output in self.outputs}
        if any(isinstance(score, bool) or not isinstance(score, Rational) for score in scores.values()):
            raise ArgumentError("utility must return an int or a Fraction.")
        exact = {output: Fraction(score) for output, score in scores.items()}
        return exact, max(exact.values())

    def _gains(self, leaked: Hashable) -> list[list[Fraction]]:
        """Return, for neighbours that share `leaked`, by how much the utility of each output differs."""
        can = {database for database, law in self.leakage.items() if leaked in law}
        scores = {database: self._scores(database, leaked)[0] for database in can}
        shared = [
            (scores[first], scores[second]) for first, second in self.neighbours if first in can and second in can
        ]
        gains = [[first[output] - second[output] for output in self.outputs] for first, second in shared]
        if not gains:
            raise NotCertifiableError(
                "no two neighbours share this leaked value: given it nothing is promised, whatever is drawn. Let less "
                "leak, or add noise to what leaks."
            )
        return gains

    def _base(self, leaked: Hashable) -> tuple[Fraction, Fraction]:
        """Return a rational base and the unit of utility; R(o) is a multiple of it: ``base^(R(o)/unit) ≤ growth``."""
        scored = [self._scores(database, leaked) for database, law in self.leakage.items() if leaked in law]
        unit = _unit(score - best for scores, best in scored for score in scores.values())
        steps = int(self.spread(leaked) / unit)
        # The base is above 1 by about ln(growth)/steps, of which this many binary digits are kept.
        bits = _BASE_BITS + steps.bit_length() + math.ceil(1 / (self.growth - 1)).bit_length()
        with flint.ctx.workprec(BITS + bits):
            exponent = (ball_of(self.growth).log() / steps).exp()
            base = Fraction(math.floor(exact_end(exponent.lower()) * 2**bits), 2**bits)
        # The ball's lower end makes this true; it is checked because the promise rests on it.
        if base**steps > self.growth:  # pragma: no cover
            raise AssertionError("the base of the weights is too large")
        return base, unit


def _unit(numbers: Iterable[Fraction]) -> Fraction:
    """Return the largest number of which all `numbers` are multiples."""
    listed = list(numbers)
    below = math.lcm(*(number.denominator for number in listed))
    return Fraction(math.gcd(*(int(number * below) for number in listed)), below)
