"""Leakage: what is published exactly, or known to leak, about the same people beside the releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, cast

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import choice, known_fields, loss, probability, written
from pkdp_pipeline.model.columns import Bins, grouping
from pkdp_pipeline.model.wording import listed

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
