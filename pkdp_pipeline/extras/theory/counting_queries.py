"""CountingQueries: several counts of the same records, and how far one record changes all of them together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import choice, positive_real
from pkdp_pipeline.model.evidence import BoundedSensitivity
from pkdp_pipeline.model.mechanisms import GeometricNoise
from pkdp_pipeline.model.predicate import Predicate, among, conjunction, disjunction
from pkdp_pipeline.theorems.rounding import float_below

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
