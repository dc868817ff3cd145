"""The attacker: what is assumed unknown to them, and what leaks about the same people beside the releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, cast

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import choice, known_fields, loss, probability, whole_number, written

Lives = Literal["presence", "value"]
"""Two lives of one person: in the table or absent from it (presence), in one cell or in another (value)."""

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Leakage:
    """What is published exactly, or known to leak, about the same people beside the releases.

    A total fixed by law, a figure from another office, a file name that shows how many rows there are. What a
    leakage tells by itself is not protected by anything. A certificate says what the releases promise beside it:
    `docs/leakage.md`.

    Parameters
    ----------
    name : str
        What leaks, in public words, as a noun phrase: "the number of people present".
    tells : {"anything", "people_present"}, default "anything"
        ``"people_present"``: it follows from *who* is in the table at all, whichever cells they are in, and from
        randomness of its own: their number, or even the list of their names.
    shared_by : tuple of {"presence", "value"}, default ()
        Between which two lives of one person the leaked value can be the same, for some records of the others:
        in the table or absent (``"presence"``), in one cell or in another (``"value"``). What follows from who
        is present is always shared by two values.
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

    name: str
    _: KW_ONLY
    tells: Literal["people_present", "anything"] = "anything"
    shared_by: tuple[Lives, ...] = ()
    epsilon: float | None = None
    delta: float = 0.0
    dependence_epsilon: float = 0.0
    dependence_delta: float = 0.0

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

    @classmethod
    def total(cls, name: str = "the number of people present") -> Leakage:
        """Return the exact number of people present, or anything else that follows from who they are.

        Parameters
        ----------
        name : str
            What leaks, in public words.

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
        plain = type(self)(self.name, tells=self.tells)
        return written(self, {name: one for name, one in written(plain).items() if name not in ("name", "tells")})

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Leakage:
        """Rebuild a leakage from the `fields` of `to_dict`; missing or unknown ones are an `ArgumentError`."""
        given = known_fields(cls, fields, "a leakage")
        if "name" not in given:
            raise ArgumentError("a leakage needs a name: say in public words what leaks.")
        return cls(**given)


def leakages(value: object) -> tuple[Leakage, ...]:
    """Return one leakage, or several, as a tuple that can stand together.

    Raises
    ------
    ArgumentError
        If something else is given, two have one name, or what holds for each of them alone says nothing about all
        of them together.
    """
    several = value if isinstance(value, (list, tuple)) else (value,)
    strangers = [one for one in several if not isinstance(one, Leakage)]
    if strangers:
        raise ArgumentError(
            f"leakage must be a Leakage or a list of them, not {type(strangers[0]).__name__}: write "
            "pkdp.Leakage.total(), or pkdp.Leakage with the name of what leaks."
        )
    found = tuple(cast("Iterable[Leakage]", several))
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise ArgumentError("two leakages have the same name; give each its own, or declare it once.")
    # Each of two can be shared by some two lives and both together by none: n // 2 and (n + 1) // 2 tell n.
    partly = [one for one in found if not one.is_private and (one.tells == "anything" or one.is_shared("presence"))]
    if len(partly) > 1:
        raise ArgumentError(
            f"{partly[0].name!r} and {partly[1].name!r} can each leave two lives open and together leave none: "
            "declare them as one leakage, shared by the lives that leak the same in both."
        )
    dependent = [one for one in found if one.is_dependent]
    if len(dependent) > 1:
        raise ArgumentError(
            f"{dependent[0].name!r} and {dependent[1].name!r} both depend on the releases' noise, and that each "
            "depends little does not bound both together: declare them as one leakage, with the dependence of the pair."
        )
    return found


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError("name must say in public words what leaks: 'the number of people present'.")
    if name != name.strip() or not name.isprintable() or len(name) > _LONGEST:
        raise ArgumentError(
            f"name must be one line of at most {_LONGEST} printable characters, without spaces around it: it stands "
            "in the middle of a sentence."
        )


def _lives(shared_by: object, tells: str) -> tuple[Lives, ...]:
    if not isinstance(shared_by, (list, tuple)):
        raise ArgumentError(
            f"shared_by must be a tuple of 'presence' and 'value', not {type(shared_by).__name__}: write ('value',)."
        )
    asked = {choice("shared_by", one, ("presence", "value")) for one in shared_by}
    if tells == "people_present":
        asked.add("value")
    ordered: tuple[Lives, ...] = ("presence", "value")
    return tuple(lives for lives in ordered if lives in asked)


Influence = Literal["passive", "active"]
Secret = Literal["record", "conditional"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerModel:
    """What the attacker is unsure of, and whom the attacker knows or controls.

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
        predicate. For a `Histogram`: the smallest probability of each option for each unknown person.
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
        What is published exactly, or known to leak, about the same people beside the releases, and is known to
        every attacker. `docs/leakage.md` says what remains.
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
        attacker may know, in which cells a person is is independent from cell to cell, and `p_max` holds told all her
        other cells.

    Raises
    ------
    ArgumentError
        If a number is out of range or two fields contradict each other.

    Notes
    -----
    `docs/mathematics.md`, section "What an attacker model may say"; Desfontaines, Mohammadi, Krahmer and
    Basin, "Differential privacy with partial knowledge", Definitions 12 and 13.
    """

    p_max: float | None = None
    p_min: float | None = None
    p_max_between: float | None = None
    unknown: int | None = None
    unknown_max: int | None = None
    known: int = 0
    influence: Influence = "passive"
    leakage: tuple[Leakage, ...] = ()
    dependent: str | None = None
    secret: Secret = "record"
    independent_cells: bool = False

    def __post_init__(self) -> None:
        for name in ("p_max", "p_min", "p_max_between"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, probability(name, value))
        for name in ("unknown", "unknown_max"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, whole_number(name, value, least=0))
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
    def total_is_known(self) -> bool:
        """Whether the exact number of people present may leak, so that a release of it tells nothing new."""
        return any(leak.tells_total for leak in self.leakage)

    def __repr__(self) -> str:
        """Return what is declared, as it is written in Python."""
        every = ((one.name, getattr(self, one.name), one.default) for one in fields(self))
        return f"AttackerModel({', '.join(f'{name}={value!r}' for name, value, plain in every if value != plain)})"

    def against_anyone(self) -> AttackerModel:
        """Return the attacker beside the same leakage about whom nothing else is assumed.

        What noise promises is a promise against this one.
        """
        return AttackerModel(leakage=self.leakage)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-ready dictionary; what is rarely declared only where it is set."""
        return written(self, {"leakage": [], "dependent": None, "secret": "record", "independent_cells": False})

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> AttackerModel:
        """Rebuild an attacker from the `fields` of `to_dict`; unknown ones are an `ArgumentError`."""
        given = known_fields(cls, fields, "the attacker model")
        if "leakage" in given:
            given["leakage"] = _read(given["leakage"])
        return cls(**given)


def _read(written: object) -> tuple[Leakage, ...]:
    """Return the leakages of a JSON list; a `Leakage` may stand in it as itself."""
    several = written if isinstance(written, (list, tuple)) else (written,)
    return tuple(one if isinstance(one, Leakage) else Leakage.from_dict(one) for one in several)


def read_attacker(attacker: object) -> AttackerModel:
    """Return the attacker; None is one about whom nothing is declared."""
    if attacker is None:
        return AttackerModel()
    if not isinstance(attacker, AttackerModel):
        raise ArgumentError(
            f"attacker must be an AttackerModel, not {type(attacker).__name__}: write pkdp.AttackerModel(p_max=…) with "
            "a number that you can argue, or leave it out and use noise, which needs no attacker."
        )
    return attacker
