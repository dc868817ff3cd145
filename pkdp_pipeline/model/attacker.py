"""The attacker: what is assumed unknown to them, and what leaks about the same people beside the releases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Literal

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import RARE, choice, in_python, known_fields, probability, whole_number, written
from pkdp_pipeline.model.leakage import Leakage, leakages
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, Protects

Influence = Literal["passive", "active"]
Secret = Literal["record", "conditional"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerModel:
    """The attacker's uncertainty, and the people whom the attacker knows or controls.

    From the attacker's point of view the records are independent, one per privacy unit, unless `dependent` says
    otherwise; they need not be alike. Every field is an assumption about the attacker that the curator argues
    and publishes. Nothing is inferred from the data: estimating these numbers from the protected data voids the
    certificate.

    Parameters
    ----------
    p_max : float in [0, 1], optional
        For a `Count`: the largest probability the attacker gives to an unknown person satisfying the
        predicate. For a `Histogram` it is a *conditional* probability: told that a person is either in a
        given published cell or absent, the attacker is at most this sure that it is the cell. Where nobody
        is ever absent (a census, an election) that is 1, and `p_max_between` is the honest choice.
    p_min : float in [0, 1], optional
        For a `Count`: the smallest probability the attacker gives to an unknown person satisfying the
        predicate. For a `Histogram`: the smallest probability of each published cell for each unknown person.
    p_max_between : float in [1/2, 1], optional
        Histograms that protect the value: told that a person is in one of two cells, the attacker is at most
        this sure which, for every two cells.
    unknown : int, optional
        At least this many unknown people.
    unknown_max : int, optional
        At most this many unknown people.
    known : int, default 0
        People other than the target whose records the attacker knows (`passive`) or controls (`active`).
    influence : {"passive", "active"}, default "passive"
    leakage : Leakage or tuple of Leakage, default ()
        Anything published exactly, or known to leak, about the same people beside the releases, and known to every
        attacker. `docs/leakage.md` says what remains.
    dependent : str, optional
        The larger unit whose members' records depend on one another, as the attacker sees it: ``"household"``.
        Records of different ones are independent. Left out where the unit that is counted is already the larger
        one.
    secret : {"record", "conditional"}, default "record"
        Beside `dependent`. ``"record"``: all that can be learnt about a person's record, also through those who
        share her fate. ``"conditional"``: her record given theirs; then `p_max`, `p_min` and `p_max_between` must
        hold given the records of all others of the household, and of each household one unknown person counts
        towards `unknown`.
    independent_cells : bool, default False
        For a `Histogram` without noise whose people may be in several cells: given everybody's habits, which the
        attacker may know, a person's cells are independent of one another, and `p_max` holds told all her other cells.
    sampled : float in [0, 1], optional
        The data are a secret sample: everybody in the population was drawn independently with at most this chance, and
        the attacker, who may know every record of the population, does not know who was drawn. `known` is then how many
        of those drawn the attacker knows. Excludes `p_max`, `p_min`, `p_max_between`, `unknown` and `unknown_max`.

    Raises
    ------
    ArgumentError
        If a number is out of range or two fields contradict each other.

    Notes
    -----
    `docs/mathematics.md`, section 7; Desfontaines, Mohammadi, Krahmer and Basin,
    "Differential privacy with partial knowledge", Definitions 12 and 13.
    """

    p_max: float | None = field(default=None, metadata={"examples": [0.1]})
    """A histogram: the largest probability that a person is in a cell, told that she is in that cell or absent. A
    count: that a person satisfies the predicate."""
    p_min: float | None = field(default=None, metadata={"examples": [0.01]})
    """The smallest such probability."""
    p_max_between: float | None = field(default=None, metadata={"examples": [0.7]})
    """The largest probability that a person is in one cell, told that she is in that cell or one other."""
    unknown: int | None = field(default=None, metadata={"examples": [1000]})
    """At least this many people of whom the attacker knows nothing more."""
    unknown_max: int | None = field(default=None, metadata={"examples": [100000]})
    """At most this many such people."""
    known: int = field(default=0, metadata={"examples": [10]})
    """People the attacker knows, or controls."""
    influence: Influence = "passive"
    """ "active": the attacker chooses what the known people do."""
    leakage: tuple[Leakage, ...] = field(default=(), metadata=RARE)
    """Facts published exactly, or known to leak, about the same people; a table, or a list of them."""
    dependent: str | None = field(default=None, metadata=RARE | {"examples": ["household"]})
    """The larger unit whose records depend on one another, as the attacker sees it: a household, say."""
    secret: Secret = field(default="record", metadata=RARE)
    """ "conditional": the secret is a person's record given those of all on whom it depends."""
    independent_cells: bool = field(default=False, metadata=RARE)
    """For people in several cells without noise: given everybody's habits, a person's cells are independent of one
    another, and p_max holds told all her other cells."""
    sampled: float | None = field(default=None, metadata=RARE | {"examples": [0.1]})
    """The data are a secret sample: everybody was drawn independently, with at most this chance. Excludes the numbers
    above; known counts drawn people."""

    __repr__ = in_python

    def __post_init__(self) -> None:
        for name, number in self.numbers.items():
            checked = whole_number(name, number, least=0) if "unknown" in name else probability(name, number)
            object.__setattr__(self, name, checked)
        object.__setattr__(self, "known", whole_number("known", self.known, least=0))
        choice("influence", self.influence, ("passive", "active"))
        if self.p_min is not None and self.p_max is not None and self.p_min > self.p_max:
            raise ArgumentError(f"p_min = {self.p_min!r} is above p_max = {self.p_max!r}; swap or correct them.")
        if self.p_max_between is not None and self.p_max_between < 0.5:
            raise ArgumentError(
                f"p_max_between must be at least 1/2, got {self.p_max_between!r}: of two cells, one always has "
                "probability 1/2 or more."
            )
        if self.unknown is not None and self.unknown_max is not None and self.unknown > self.unknown_max:
            raise ArgumentError(
                f"unknown = {self.unknown} is above unknown_max = {self.unknown_max}; unknown is the smallest "
                "number of unknown people, unknown_max the largest."
            )
        object.__setattr__(self, "leakage", leakages(self.leakage))
        if not isinstance(self.independent_cells, bool):
            raise ArgumentError(
                f"independent_cells must be True or False, not {type(self.independent_cells).__name__}."
            )
        self._check_dependence()
        self._check_sample()

    def _check_sample(self) -> None:
        if self.sampled is None:
            return
        for name in (*self.numbers, *(["dependent"] if self.dependent is not None else [])):
            if name != "sampled":
                raise ArgumentError(
                    f"sampled beside {name}: somebody who does not know the draw may know every record, and nothing "
                    f"else is assumed. Leave {name} out, or sampled where the draw is no secret."
                )
        if self.leakage or self.independent_cells:
            raise ArgumentError(
                "sampled beside leakage or independent_cells: what leaks may tell who was drawn. Leave them out, or "
                "sampled."
            )

    def _check_dependence(self) -> None:
        choice("secret", self.secret, ("record", "conditional"))
        if self.dependent is None:
            if self.secret == "conditional":
                raise ArgumentError(
                    "secret 'conditional' is a person's record given the records of those who share her fate: say who "
                    "these are in dependent, such as 'household', or leave secret out where records are independent."
                )
            return
        name = self.dependent
        if not isinstance(name, str) or not name.strip() or name != name.strip() or not name.isprintable():
            raise ArgumentError(
                "dependent must name the larger unit whose members' records depend on one another, on one line: "
                "dependent='household'."
            )

    @property
    def numbers(self) -> dict[str, Any]:
        """The probabilities and numbers of people that are declared, by their fields, but for those who are known."""
        declared = ((name, getattr(self, name)) for name in _NUMBERS)
        return {name: number for name, number in declared if number is not None}

    @property
    def total_is_known(self) -> bool:
        """Whether the exact number of people present may leak, so that a release of it tells nothing new."""
        return any(leak.tells_total for leak in self.leakage)

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns by which exact totals are known: two lives of a person agree in them."""
        return tuple(dict.fromkeys(column for leak in self.leakage for column in leak.by))

    @property
    def totals_known(self) -> frozenset[frozenset[str]]:
        """By which columns the number of people present is known exactly; by none, where all totals are."""
        return frozenset(frozenset(by) for leak in self.leakage if leak.tells_total for by in ((), leak.by))

    def fits(self, other: AttackerModel) -> bool:
        """Return whether everybody of whom this is true fits `other` as well, so that its guarantees hold for them.

        The same must leak, but for what is private: given anything else, fewer lives are compared.
        """

        def at_most(name: str) -> bool:
            own, limit = (getattr(attacker, name) for attacker in (self, other))
            return limit is None or (math.inf if own is None else own) <= limit

        def at_least(name: str) -> bool:
            return (getattr(self, name) or 0) >= (getattr(other, name) or 0)

        own, theirs = {*self.leakage}, {*other.leakage}
        return (
            all(map(at_most, ("p_max", "p_max_between", "unknown_max", "known")))
            and all(map(at_least, ("p_min", "unknown", "independent_cells")))
            and (at_most("sampled") if other.sampled is not None else self.sampled is None or other == AttackerModel())
            and (self.influence in ("passive", other.influence) or self.known == 0)
            and own <= theirs
            and all(leak.is_private for leak in theirs - own)
            and (self.dependent, self.secret) == (other.dependent, other.secret)
        )

    def among(self, cells: int | None) -> AttackerModel:
        """Return the attacker of a table of `cells` declared cells; None where the data say which cells there are.

        `p_min` is left out where nobody can be in every cell with that probability: less is then assumed.
        """
        fits = not self.p_min or (cells is not None and self._has_room(cells, 1))
        return self if fits else replace(self, p_min=None)

    def check_cells(self, cells: int, cells_per_unit: int = 1) -> None:
        """Refuse a `p_min` that nobody in a table of `cells` declared cells can keep to; see `among`."""
        if not self._has_room(cells, cells_per_unit):
            absent = "" if self.p_max in (None, 1.0) else f", and absent with as much as p_max = {self.p_max!r} takes"
            raise ArgumentError(
                f"p_min = {self.p_min!r} cannot hold for {cells} declared cells: nobody can be in each of them with at "
                f"least this probability{absent}. p_min is about the least likely cell of each unknown person: lower "
                "it, or leave it out."
            )

    def _has_room(self, cells: int, cells_per_unit: int) -> bool:
        """Return whether the chances of all cells, and of absence beside `p_max`, add up to `cells_per_unit` at most.

        Told the group, whose exact total is known, a person is in one of its cells, whose number is not known here.
        """
        if not self.p_min or self.groups:
            return True
        least = Fraction(self.p_min)
        absent = least * (1 / Fraction(self.p_max) - 1) if self.p_max and cells_per_unit == 1 else Fraction(0)
        # Shares of cells that are alike are rounded when they are written.
        return cells * least / cells_per_unit + absent <= 1 + Fraction(1, 10**9)

    def against_anyone(self) -> AttackerModel:
        """Return the attacker beside the same leakage about whom nothing else is assumed.

        A promise of noise is a promise against this one.
        """
        return AttackerModel(leakage=self.leakage)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-ready dictionary; what is rarely declared only where it is set."""
        return written(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> AttackerModel:
        """Rebuild an attacker from the `fields` of `to_dict`; unknown ones are an `ArgumentError`."""
        given = known_fields(cls, fields, "the attacker model")
        if "leakage" in given:
            given["leakage"] = _read(given["leakage"])
        return cls(**given)


_NUMBERS = tuple(field.name for field in fields(AttackerModel) if field.default is None and field.name != "dependent")
_NOBODY = AttackerModel()


def _read(written: object) -> tuple[Leakage, ...]:
    """Return the leakages of a JSON list; a `Leakage` may stand in it as itself."""
    several = written if isinstance(written, (list, tuple)) else (written,)
    return tuple(leakage if isinstance(leakage, Leakage) else Leakage.from_dict(leakage) for leakage in several)


def read_attacker(attacker: object) -> AttackerModel:
    """Return the attacker; None is one about whom nothing is declared."""
    if attacker is None:
        return _NOBODY
    if not isinstance(attacker, AttackerModel):
        raise ArgumentError(
            f"attacker must be an AttackerModel, not {type(attacker).__name__}: write pkdp.AttackerModel(p_max=…) with "
            "a number that you can argue, or leave it out and use noise, which needs no attacker."
        )
    return attacker


def asks_for_totals(
    mechanism: Mechanism, by: Sequence[str] | None, protects: Protects, attacker: AttackerModel
) -> bool:
    """Return whether a histogram by columns `by` is exact totals of groups that an attacker knows."""
    known = protects == "value" and bool(by) and frozenset(by or ()) in attacker.totals_known
    return known and mechanism in (Histogram(), Histogram(totals=True))


def beside_groups(
    mechanism: Mechanism, by: Sequence[str] | None, protects: Protects, attacker: AttackerModel
) -> Mechanism:
    """Return what is published of columns `by` where an attacker knows exact totals of groups.

    A bare histogram by the very columns of such totals asks for the totals themselves; any other has these columns and
    at least one more, which alone is hidden. Raises `ArgumentError` if the columns say otherwise.
    """
    if asks_for_totals(mechanism, by, protects, attacker):
        return Histogram(totals=True)
    groups, columns = attacker.groups, tuple(by or ())
    if not isinstance(mechanism, Histogram) or protects != "value":
        return mechanism
    if mechanism.totals:
        raise ArgumentError(
            "totals of groups are published as what everybody is declared to know: declare "
            f"leakage=pkdp.Leakage.totals(by={list(columns)!r}), or leave totals out."
        )
    lacking = [column for column in groups if column not in columns]
    if lacking:
        raise ArgumentError(
            f"leakage has exact totals by {', '.join(map(repr, lacking))}, by which the histogram does not count: two "
            "cells are hidden from one another only where they agree in the columns of such totals. Add these to by, "
            "or leave the totals out of the leakage where nobody knows them."
        )
    if groups and len(groups) == len(columns):
        raise ArgumentError(
            f"leakage has exact totals by {', '.join(map(repr, groups))}, which are all columns of the histogram: no "
            "two cells agree in all of them, and totals by one column link the groups of another, so that suppressed "
            "counts follow. Totals may be known by some columns of by only: leave those of the others (the answer) "
            "out, or add the column that is to be hidden. The known totals themselves are published by their own "
            "columns, without k and noise."
        )
    return mechanism
