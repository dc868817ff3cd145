"""Budget: how much the releases of a data set may tell together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import choice, loss, probability, whole_number, written


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that the releases of a data set may add up to, for each privacy unit.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        At least 0 and below 1.
    part : {"partial_knowledge", "worst_case"}, optional
        Which total is held to it: the best bound there is, which rests on the attacker models, or the guarantee
        against any attacker. None: both.
    window_days : int, optional
        Hold the releases whose periods meet any run of this many days to it, instead of all releases. A
        period that is a label without dates is in every window.

    Raises
    ------
    ArgumentError
        If a number is out of range.

    Notes
    -----
    A release that would exceed a budget is refused before any data is read. A total equal to the budget is
    within it.
    """

    epsilon: float = field(metadata={"examples": [1.0]})
    """The most that ε may add up to, at this delta."""
    delta: float = field(metadata={"examples": [1e-6]})
    """The delta at which it is measured."""
    _: KW_ONLY
    part: Literal["partial_knowledge", "worst_case"] | None = None
    """Which total is held to it; both when left out."""
    window_days: int | None = None
    """Hold every run of this many days to it, instead of the whole history."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", loss("epsilon of a budget", self.epsilon, limit=True))
        object.__setattr__(self, "delta", probability("delta of a budget", self.delta))
        if self.delta >= 1.0:
            raise ArgumentError("delta of a budget must be below 1: at 1 nothing is protected.")
        if self.part is not None:
            choice("part of a budget", self.part, ("partial_knowledge", "worst_case"))
        if self.window_days is not None:
            days = whole_number("window_days of a budget", self.window_days, least=1)
            if days > 1_000_000:
                raise ArgumentError("window_days of a budget must be at most 1000000: leave it out for all releases.")
            object.__setattr__(self, "window_days", days)

    @property
    def measures(self) -> tuple[str, ...]:
        """The totals that are held to it."""
        return ("partial_knowledge", "worst_case") if self.part is None else (self.part,)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-ready dictionary."""
        return written(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Budget:
        """Rebuild a budget from the `fields` of `to_dict`; unknown or missing ones are an `ArgumentError`."""
        if not isinstance(fields, Mapping) or set(fields) != {"epsilon", "delta", "part", "window_days"}:
            raise ArgumentError("a budget must have the fields epsilon, delta, part and window_days.")
        return cls(fields["epsilon"], fields["delta"], part=fields["part"], window_days=fields["window_days"])
