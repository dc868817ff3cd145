"""The attacker: what is assumed unknown to them, and what leaks about the same people beside the releases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Literal, cast

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import Bins, grouping
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, Protects
from pkdp_pipeline.model.wording import (
    RARE,
    choice,
    in_python,
    known_fields,
    listed,
    loss,
    probability,
    whole_number,
    written,
)

Lives = Literal["presence", "value"]
"""Two lives of one person: in the table or absent from it (presence), in one cell or in another (value)."""

_MAX_NAME_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Leakage:
    """A fact published exactly, or known to leak, about the same people beside the releases.

    A total fixed by law, a figure from another office, a file name that shows how many rows there are. Nothing
    protects what a leakage tells by itself. A certificate says what the releases promise beside it:
    `docs/leakage.md`.

    Parameters
    ----------
    name : str
        The leaked fact, in public words, as a noun phrase: "the number of people present".
    tells : {"anything", "people_present"}, default "anything"
        ``"people_present"``: it follows from *who* is in the table at all, whichever cells they are in, and from
        randomness of its own: their number, or even the list of their names.
    by : tuple of str, default ()
        Columns by which the people present are counted exactly: the leaked value follows from who is present and
        from everybody's values of these columns. Two lives of a person then agree in them: they are not hidden.
    shared_by : tuple of {"presence", "value"}, default ()
        The pairs of one person's lives in which the leaked value can be the same, for some records of the others:
        in the table or absent (``"presence"``), in one cell or in another (``"value"``). Facts that follow
        from who is present are always shared by two values.
    epsilon : float, optional
        Where the leakage is itself (ε, δ)-differentially private when one record is replaced by any other,
        absence included. None: it is not.
    delta : float in [0, 1], default 0.0
        The δ that belongs to `epsilon`.
    dependence_epsilon : float, default 0.0
        With `dependence_delta`: how far the leaked value may depend on the releases' noise. For every data set,
        the releases given the leaked value are (ε′, δ′)-close to the releases alone, both ways. Zero for what is
        computed from the data, or with randomness of its own.
    dependence_delta : float in [0, 1], default 0.0
        See `dependence_epsilon`.

    Raises
    ------
    ArgumentError
        If a field is malformed or two fields contradict each other.

    Notes
    -----
    `docs/leakage.md`.
    """

    name: str = field(metadata={"examples": ["the number of people present"]})
    """The leaked fact, in public words: a noun phrase."""
    _: KW_ONLY
    tells: Literal["people_present", "anything"] = "anything"
    """ "people_present": it follows from who is in the table at all, whichever cells they are in."""
    by: tuple[str, ...] = field(default=(), metadata={"examples": [["region"]]})
    """Columns by which it counts people exactly: it tells everybody's value of these."""
    shared_by: tuple[Lives, ...] = field(default=(), metadata={"examples": [["value"]]})
    """Between which lives of one person it can be the same: present or absent, in one cell or another."""
    epsilon: float | None = field(default=None, metadata={"examples": [0.5]})
    """Where it is differentially private itself: its ε when one record is replaced by any other."""
    delta: float = 0.0
    """The δ that belongs to epsilon."""
    dependence_epsilon: float = 0.0
    """The most that the releases' noise may depend on it; 0 for randomness of its own."""
    dependence_delta: float = 0.0
    """The δ that belongs to dependence_epsilon."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        choice("tells", self.tells, ("people_present", "anything"))
        object.__setattr__(self, "shared_by", _lives(self.shared_by, self.tells))
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", loss("epsilon", self.epsilon))
        for name in ("delta", "dependence_delta"):
            object.__setattr__(self, name, probability(name, getattr(self, name)))
        object.__setattr__(self, "dependence_epsilon", loss("dependence_epsilon", self.dependence_epsilon))
        if self.epsilon is None and self.delta > 0.0:
            raise ArgumentError(
                "delta belongs to epsilon: give both where the leakage is itself differentially private, or neither."
            )
        object.__setattr__(self, "by", _groups(self.by))
        if self.by and (self.is_dependent or not self.tells_total):
            raise ArgumentError(
                "by belongs to exact totals of groups: tells='people_present', and neither epsilon, shared_by nor "
                "dependence. Write pkdp.Leakage.totals(by=…), or leave by out."
            )

    @classmethod
    def total(cls, name: str = "the number of people present") -> Leakage:
        """Return the exact number of people present, or anything else that follows from who they are.

        Parameters
        ----------
        name : str
            The leaked fact, in public words.

        Returns
        -------
        Leakage
            One that tells who is present, and is shared by two lives that differ in the cell.

        Raises
        ------
        ArgumentError
            If the name is not one line of text.
        """
        return cls(name, tells="people_present")

    @classmethod
    def totals(cls, by: str | Bins | Iterable[str | Bins], name: str | None = None) -> Leakage:
        """Return the exact number of people present in each group, or anything else that follows from who is in which.

        Parameters
        ----------
        by : str, Bins, or sequence of them
            Columns whose values, or whose groups by `bins`, are the groups. Histograms beside it have further columns,
            and hide these.
        name : str, optional
            The leaked fact, in public words; by default "the number of people present by" the columns.

        Returns
        -------
        Leakage
            One that is shared by two lives that differ in the cell within one group.

        Raises
        ------
        ArgumentError
            If the columns or the name are malformed.
        """
        entries = (by,) if isinstance(by, str | Bins) else by
        columns = _groups(entries)
        if not columns:
            raise ArgumentError("by names the columns of the groups, one at least; of everybody it is Leakage.total().")
        names = [f"{entry.column!r} in groups" if isinstance(entry, Bins) else repr(entry) for entry in entries]
        said = f"the number of people present by {listed(names)}"
        return cls(said if name is None else name, tells="people_present", by=columns)

    @property
    def is_private(self) -> bool:
        """Whether the leakage is itself differentially private, with whatever numbers."""
        return self.epsilon is not None

    @property
    def is_dependent(self) -> bool:
        """Whether the leaked value may depend on the releases' noise."""
        return self.dependence_epsilon > 0.0 or self.dependence_delta > 0.0

    @property
    def tells_total(self) -> bool:
        """Whether it may be the exact number of people present, or say who they are."""
        return self.tells == "people_present" and not self.is_private and not self.is_shared("presence")

    def is_shared(self, lives: Lives) -> bool:
        """Return whether two such lives of one person can leak the same, so that "given it" says something.

        Parameters
        ----------
        lives : {"presence", "value"}

        Returns
        -------
        bool
        """
        return lives in self.shared_by

    def to_dict(self) -> dict[str, Any]:
        """Return its name, what it tells and what else is not as by default, as a JSON-ready dictionary."""
        usual = written(type(self)(self.name, tells=self.tells))
        return {
            name: entry for name, entry in written(self).items() if name in ("name", "tells") or entry != usual[name]
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Leakage:
        """Rebuild a leakage from the `fields` of `to_dict`; missing or unknown ones are an `ArgumentError`."""
        given = known_fields(cls, fields, "a leakage")
        if "name" not in given:
            raise ArgumentError("a leakage needs a name: say in public words what leaks.")
        return cls(**given)


def leakages(value: object) -> tuple[Leakage, ...]:
    """Return one leakage, or several, as a tuple that can stand together.

    Raises `ArgumentError` if something else is given, two have one name, or what holds for each of them alone says
    nothing about all of them together.
    """
    several = value if isinstance(value, (list, tuple)) else (value,)
    strangers = [item for item in several if not isinstance(item, Leakage)]
    if strangers:
        raise ArgumentError(
            f"leakage must be a Leakage or a list of them, not {type(strangers[0]).__name__}: write "
            "pkdp.Leakage.total(), or pkdp.Leakage with the name of what leaks."
        )
    declared = tuple(cast("Iterable[Leakage]", several))
    names = [leakage.name for leakage in declared]
    if len(set(names)) < len(names):
        raise ArgumentError("two leakages have the same name; give each its own, or declare it once.")
    # Each of two can be shared by some two lives and both together by none: n // 2 and (n + 1) // 2 tell n.
    partly = [
        leakage
        for leakage in declared
        if not leakage.is_private and (leakage.tells == "anything" or leakage.is_shared("presence"))
    ]
    if len(partly) > 1:
        raise ArgumentError(
            f"{partly[0].name!r} and {partly[1].name!r} can each leave two lives open and together leave none: "
            "declare them as one leakage, shared by the lives that leak the same in both."
        )
    dependent = [leakage for leakage in declared if leakage.is_dependent]
    if len(dependent) > 1:
        raise ArgumentError(
            f"{dependent[0].name!r} and {dependent[1].name!r} both depend on the releases' noise, and that each "
            "depends little does not bound both together: declare them as one leakage, with the dependence of the pair."
        )
    return declared


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError("name must say in public words what leaks: 'the number of people present'.")
    if name != name.strip() or not name.isprintable() or len(name) > _MAX_NAME_LENGTH:
        raise ArgumentError(
            f"name must be one line of at most {_MAX_NAME_LENGTH} printable characters, without spaces around it: it "
            "stands in the middle of a sentence."
        )


def _groups(by: object) -> tuple[str, ...]:
    columns = (by,) if isinstance(by, str | Bins) else by
    if isinstance(columns, (list, tuple)):
        columns = grouping(columns)
    if not isinstance(columns, (list, tuple)) or not all(isinstance(column, str) and column for column in columns):
        raise ArgumentError("by must be a column name or a list of column names: pkdp.Leakage.totals(by='region').")
    if len(set(columns)) < len(columns):
        raise ArgumentError("by names a column twice.")
    return tuple(columns)


def _lives(shared_by: object, tells: str) -> tuple[Lives, ...]:
    if not isinstance(shared_by, (list, tuple)):
        raise ArgumentError(
            f"shared_by must be a tuple of 'presence' and 'value', not {type(shared_by).__name__}: write ('value',)."
        )
    chosen = {choice("shared_by", name, ("presence", "value")) for name in shared_by}
    if tells == "people_present":
        chosen.add("value")
    ordered: tuple[Lives, ...] = ("presence", "value")
    return tuple(lives for lives in ordered if lives in chosen)


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
        predicate. For a `Histogram`: the smallest probability of each published cell for each unknown person; of each
        cell of her group, where exact totals of groups are known.
    p_max_between : float in [1/2, 1], optional
        Histograms that protect the value: told that a person is in one of two cells, the attacker is at most
        this sure which, for every two cells.
    unknown : int, optional
        At least this many unknown people; in each group, where exact totals of groups are known.
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
            people, limit = "unknown" in name, name == "p_min"
            checked = whole_number(name, number, least=0) if people else probability(name, number, limit=limit)
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
