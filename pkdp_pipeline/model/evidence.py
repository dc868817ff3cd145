"""Evidence: what a curator declares about people's records, so that several guarantees can be added up.

Each kind is an assumption that the curator argues and publishes; none of them can be read off the data. The
conditions are spelled out, with the examples that break them, in `docs/composition.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.wording import Speech, Worded, choice, known_fields, loss, probability, whole_number


@dataclass(frozen=True, slots=True)
class Evidence:
    """Base of everything that can be declared; use one of the kinds below."""

    key: ClassVar[str] = ""
    if_false: ClassVar[str] = ""
    """The true state where the declaration is false; empty where no claim could be false."""
    holds: ClassVar[str] = ""
    """When it holds, in the words of a refusal that names it as a choice; empty where it is none."""
    written: ClassVar[tuple[str, ...]] = ()
    """The fields that advice writes out."""
    covers_periods: ClassVar[bool] = False
    """Whether it lets noiseless releases about different periods add up."""
    goes_with: ClassVar[tuple[str, ...]] = ()
    """The kinds that a rule takes together with it."""
    sentence: ClassVar[str] = ""
    """The declaration; fields stand in braces."""
    makes_one_histogram: ClassVar[bool] = False
    """Whether the parts are one histogram, whose cells are those of all of them."""
    is_for_noise: ClassVar[bool] = False
    """Whether a total against any attacker rests on all of it."""

    @property
    def declares(self) -> str:
        """The declaration, as one plain sentence."""
        return self.sentence.format(**asdict(self))

    @property
    def declares_for_noise(self) -> str:
        """The part that a total against any attacker rests on, as one plain sentence; empty where there is none."""
        return self.declares if self.is_for_noise else ""


@dataclass(frozen=True, slots=True)
class DisjointUnits(Evidence):
    """The parts are about different people, and who belongs to which part is fixed in advance and public.

    Whether a person belongs to a part must be the same in both lives of the target. Where the part is itself
    data (the day somebody registers, "new users today") this is false: declare `OncePerUnit` instead. Of 20
    people who each register on one of two days, one day hides a person at δ(1) = 0.0046; both days together
    give the person away. *Source*: `docs/composition.md`, rule 1; Proposition 9 of Desfontaines et al.
    """

    key: ClassVar[str] = "disjoint_units"
    if_false: ClassVar[str] = "the same people are in several of the releases"
    holds: ClassVar[str] = "the parts are about different people, fixed in advance"
    covers_periods: ClassVar[bool] = True
    is_for_noise: ClassVar[bool] = True
    sentence: ClassVar[str] = (
        "The parts are about different people: who belongs to which part is fixed in advance, public, and does "
        "not depend on anybody's data."
    )


@dataclass(frozen=True, slots=True)
class IndependentGivenHabits(Evidence):
    """Given everybody's habits, which the attacker may know fully, a person's days are independent.

    The declared numbers of every part must hold on its day given the habits. It is not enough that they hold
    given the person's own past: twelve people who repeat yesterday's answer with probability 0.9 meet every
    bound "given the past", and still δ(0.5) is 0.578 where the product promises 0.495. *Source*:
    `docs/composition.md`, rule 2.
    """

    key: ClassVar[str] = "independent_given_habits"
    if_false: ClassVar[str] = "a person's records depend on one another beyond known habits"
    holds: ClassVar[str] = "a person's days are independent given her habits"
    covers_periods: ClassVar[bool] = True
    sentence: ClassVar[str] = (
        "Given everybody's habits, which the attacker may know, each person's records in different releases are "
        "independent, and the declared numbers hold for each release."
    )


@dataclass(frozen=True, slots=True)
class IndependentDraws(Evidence):
    """Every release is of a secret sample of its own, drawn independently of all others.

    Of attackers with `sampled`, who know every record and not who was drawn. Nothing is needed about people: their
    losses add up as those of independent mechanisms. A panel, whose people are asked again, is one draw: it is false.
    *Source*: `docs/composition.md`, rule 12.
    """

    key: ClassVar[str] = "independent_draws"
    if_false: ClassVar[str] = "a sample is used twice"
    holds: ClassVar[str] = "each release is of a secret sample of its own"
    covers_periods: ClassVar[bool] = True
    sentence: ClassVar[str] = "Every release is of a sample of its own, drawn independently of all others."


@dataclass(frozen=True, slots=True)
class OneDayProtected(Evidence):
    """The declared numbers hold for a person's record of one day given all her others, past and future.

    Past alone is not enough: of twelve people who repeat yesterday's answer with probability 0.8, one day meets
    its bound given the past, and δ(1) is 0.0424 where it promises 0.0206. Nothing accumulates, and only one
    release's worth of a person's records is protected; several releases of one day must be composed first, with
    `SamePeople`. Together with `BoundedParticipation` the statement is about everything a person did, by group
    privacy. *Source*: `docs/composition.md`, rule 3.
    """

    key: ClassVar[str] = "one_day_protected"
    if_false: ClassVar[str] = "a person's other records tell about this one"
    holds: ClassVar[str] = "one day is protected, all others being given"
    covers_periods: ClassVar[bool] = True
    sentence: ClassVar[str] = (
        "The declared numbers hold for each person's record in one release given all the person's other records, "
        "earlier and later ones."
    )


@dataclass(frozen=True, slots=True)
class BoundedDependence(Evidence):
    """Every added release depends on all earlier ones together by at most this much.

    Evidence about pairs of releases, or about consecutive ones, is not enough: where the third day is the
    exclusive or of the first two, every two days are independent and three exact counts have δ = 1.
    `pkdp_pipeline.theory.bounded_dependence` computes it from a model of what people do.

    Parameters
    ----------
    epsilon : float
        ε′, at least 0.
    delta : float, default 0.0
        δ′, in [0, 1].

    Notes
    -----
    *Source*: `docs/composition.md`, rule 4; Definition 18 and Theorem 6 of Desfontaines et al.
    """

    key: ClassVar[str] = "bounded_dependence"
    if_false: ClassVar[str] = "releases depend on earlier ones more than declared"
    holds: ClassVar[str] = "of each release on all earlier ones"
    written: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    covers_periods: ClassVar[bool] = True

    epsilon: float = field(metadata={"examples": [0.1]})
    """ε of the bound."""
    delta: float = 0.0
    """δ of the bound."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", loss("epsilon of BoundedDependence", self.epsilon))
        object.__setattr__(self, "delta", probability("delta of BoundedDependence", self.delta))

    @property
    def declares(self) -> str:
        """The declaration, as one plain sentence."""
        numbers, start = (_short(self.epsilon), _short(self.delta)), "Each release depends on all earlier ones together"
        return Worded(lambda say: f"{start} by at most {say.named(*numbers)}.")


@dataclass(frozen=True, slots=True)
class BoundedParticipation(Evidence):
    """Nobody takes part in more than this many of the periods.

    Two lives of a person then differ in at most ``2·times`` periods, and what is published about one period counts
    together. Certificates whose context names a period are added up by it. Of those without one, equal certificates
    are taken for releases about different periods, and different ones for releases about the same: compose those of
    one period first, and every such total counts as a period of its own. For noised releases the evidence stands
    alone. For noiseless ones `IndependentGivenHabits` (or `OneDayProtected`) is needed as well, for the data *after*
    any capping: a program that keeps at most t of a person's days links her days and breaks it.

    Parameters
    ----------
    times : int
        At least 1.

    Notes
    -----
    *Source*: `docs/composition.md`, rule 5; Theorem 17 of the bounded-leakage paper.
    """

    key: ClassVar[str] = "bounded_participation"
    if_false: ClassVar[str] = "somebody takes part more often than declared"
    holds: ClassVar[str] = "nobody is in more of them; beside independence given habits"
    written: ClassVar[tuple[str, ...]] = ("times",)
    goes_with: ClassVar[tuple[str, ...]] = ("independent_given_habits", "one_day_protected")
    is_for_noise: ClassVar[bool] = True
    sentence: ClassVar[str] = (
        "Nobody takes part in more than {times} of the periods that the releases are about, where periods "
        "that overlap count as one."
    )

    times: int = field(metadata={"examples": [7]})
    """At most this many of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", whole_number("times of BoundedParticipation", self.times, least=1))


@dataclass(frozen=True, slots=True)
class OncePerUnit(Evidence):
    """Everybody appears in at most one of the parts: registrations, first diagnoses, votes.

    The whole schedule is then one histogram whose cells are (part, cell), and a year costs one release. The
    declared numbers must be about that histogram: ``p_max`` bounds the probability of this cell of this part,
    told that the person is there or in *no* part at all; ``p_max_between`` that of one of two cells of any two
    parts. Nothing checks that nobody appears twice: releases are never compared person by person. *Source*:
    `docs/composition.md`, rule 8.
    """

    key: ClassVar[str] = "once_per_unit"
    if_false: ClassVar[str] = "somebody appears in several of the releases"
    holds: ClassVar[str] = "everybody appears once"
    covers_periods: ClassVar[bool] = True
    makes_one_histogram: ClassVar[bool] = True
    sentence: ClassVar[str] = (
        "Every person appears in at most one of the releases, and the declared numbers are about the cells of all "
        "releases together: two cells may be of different releases, and absent means in none of them."
    )

    @property
    def declares_for_noise(self) -> str:
        """The part that a total against any attacker rests on: not the declared numbers."""
        return "Every person appears in at most one of the releases."


@dataclass(frozen=True, slots=True)
class SamePeople(Evidence):
    """The parts are different questions about the same people in the same period; nothing more is claimed.

    Noised parts add up in the worst case. Of noiseless ones a single exact count may stand beside parts whose
    noise leaves no δ. *Source*: `docs/composition.md`, rule 7.
    """

    key: ClassVar[str] = "same_people"
    sentence: ClassVar[str] = "Nothing is assumed about how the releases depend on one another."


@dataclass(frozen=True, slots=True)
class SameTable(Evidence):
    """The certificates are about one and the same table, published once: each is about another attacker.

    Their total is the pointwise largest, and protects what the first of them does. A ledger finds out itself where that
    is so. *Source*: `docs/composition.md`, rule 11.
    """

    key: ClassVar[str] = "same_table"
    is_for_noise: ClassVar[bool] = True
    sentence: ClassVar[str] = "All of these certificates are about one and the same table, published once."


@dataclass(frozen=True, slots=True)
class BoundedSensitivity(Evidence):
    """One person's record changes the parts' counts, all changes added up, by at most `changes`.

    It is about noised counts and histograms of the same people in one period. Its bounds follow from which
    records every part counts, not from the data: `CountingQueries` computes it. Every person has one record there;
    a person with several rows may be counted wherever any of them fits.

    Parameters
    ----------
    changes : int
        At least 1.
    protects : {"presence", "value"}, default "presence"
        The lives compared: without a record and with any one; or with any two records as well.

    Notes
    -----
    *Source*: `docs/composition.md`, rule 9; Theorems 4 and 5 of Dwork, "Differential Privacy", 2006.
    """

    key: ClassVar[str] = "bounded_sensitivity"
    if_false: ClassVar[str] = "a record changes the counts more than declared"
    written: ClassVar[tuple[str, ...]] = ("changes",)
    is_for_noise: ClassVar[bool] = True

    changes: int
    protects: Literal["presence", "value"] = "presence"

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", whole_number("changes of BoundedSensitivity", self.changes, least=1))
        choice("protects of BoundedSensitivity", self.protects, ("presence", "value"))

    @property
    def declares(self) -> str:
        """The declaration, as one plain sentence."""
        record = "it is there" if self.protects == "presence" else "it is there, and what it says,"
        return (
            f"Every person has one record, and whether {record} changes the counts of all releases, added up, by at "
            f"most {self.changes}."
        )


_REGISTRY: dict[str, type[Evidence]] = {
    kind.key: kind
    for kind in (
        DisjointUnits,
        IndependentGivenHabits,
        IndependentDraws,
        OneDayProtected,
        BoundedDependence,
        BoundedParticipation,
        OncePerUnit,
        SamePeople,
        SameTable,
        BoundedSensitivity,
    )
}
KINDS: Mapping[str, type[Evidence]] = MappingProxyType(_REGISTRY)
"""All kinds by key, in the order in which they are named."""


def read_evidence(given: object) -> tuple[Evidence, ...]:
    """Return what was declared as a tuple in a fixed order, empty for None.

    Raises `ArgumentError` if it is not evidence, or two kinds are declared that no rule takes together.
    """
    listed = [] if given is None else [given] if isinstance(given, Evidence) else given
    if isinstance(listed, type) and issubclass(listed, Evidence):
        raise ArgumentError(f"evidence must be a value, not a class: write pkdp.{listed.__name__}().")
    if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
        raise ArgumentError(f"evidence must be {_choices()}, a list of them, or None.")
    declared = list(listed)
    for declaration in declared:
        if type(declaration) not in KINDS.values():
            raise ArgumentError(f"evidence must be {_choices()}, a list of them, or None.")
    keys = [declaration.key for declaration in declared]
    if len(set(keys)) < len(keys):
        raise ArgumentError("evidence names a kind twice; declare each once.")
    if len(keys) > 1 and not (
        len(keys) == 2
        and any(set(keys) == {declaration.key, key} for declaration in declared for key in declaration.goes_with)
    ):
        kinds = sorted(map(type, declared), key=lambda kind: kind.__name__)
        raise ArgumentError(Worded(partial(_not_together, kinds)))
    order = list(KINDS)
    return tuple(sorted(declared, key=lambda declaration: order.index(declaration.key)))


def evidence_to_dicts(evidence: Iterable[Evidence]) -> list[dict[str, Any]]:
    """Return evidence as JSON-ready dictionaries."""
    return [{"kind": declaration.key, **asdict(declaration)} for declaration in evidence]


def evidence_from_dicts(documents: object) -> tuple[Evidence, ...]:
    """Rebuild evidence from `evidence_to_dicts`; what is unknown or malformed is an `ArgumentError`."""
    if not isinstance(documents, list) or not all(isinstance(document, Mapping) for document in documents):
        raise ArgumentError("evidence must be a list of objects, each with its kind.")
    declared = []
    for document in documents:
        kind = KINDS.get(str(document.get("kind")))
        if kind is None:
            raise ArgumentError(f"evidence must be one of the kinds {', '.join(KINDS)}.")
        given = {name: value for name, value in document.items() if name != "kind"}
        try:
            declared.append(kind(**known_fields(kind, given, f"evidence of kind {kind.key!r}")))
        except TypeError:
            raise ArgumentError(f"evidence of kind {kind.key!r} lacks a field.") from None
    return read_evidence(declared)


def _short(number: float) -> str:
    return repr(number).replace("e-0", "e-").removesuffix(".0")


def _not_together(kinds: list[type[Evidence]], say: Speech) -> str:
    habits, day, taking = map(say.evidence_name, (IndependentGivenHabits, OneDayProtected, BoundedParticipation))
    return (
        f"no rule takes {' and '.join(map(say.evidence_name, kinds))} together: a list may hold {taking} with {habits} "
        f"or with {day}."
    )


def _choices() -> str:
    return "one of " + ", ".join(f"pkdp.{kind.__name__}" for kind in KINDS.values())
