"""AttackerModel: what the attacker does not know, declared by the curator and never read from the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from pkdp_pipeline.arguments import choice, probability, whole_number
from pkdp_pipeline.errors import ArgumentError

__all__ = ["AttackerModel", "Influence"]

Influence = Literal["passive", "active"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerModel:
    """What the attacker is unsure of, and whom the attacker knows or controls.

    From the attacker's point of view the records are independent, one per privacy unit; they need not be
    alike. Every field is an assumption about the attacker that the curator argues and publishes. Nothing is
    inferred from the data: estimating these numbers from the protected data voids the certificate.

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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-ready dictionary."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> AttackerModel:
        """Rebuild an attacker from the `fields` of `to_dict`; unknown ones are an `ArgumentError`."""
        known = set(cls.__dataclass_fields__)
        strangers = sorted(set(fields) - known, key=str)
        if strangers:
            raise ArgumentError(
                f"the attacker model has no field {strangers[0]!r}; its fields are {', '.join(sorted(known))}."
            )
        return cls(**cast("dict[str, Any]", dict(fields)))
