"""The part of a job file that says how releases add up: `evidence` and `budget`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pkdp_pipeline.composition.evidence import (
    BoundedDependence,
    BoundedParticipation,
    DisjointUnits,
    Evidence,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
)
from pkdp_pipeline.jobs.tables import Table
from pkdp_pipeline.ledger import Budget

__all__ = ["BudgetTable", "Declared"]


class BudgetTable(Table):
    """``[[budget]]``: the most that the data set's releases may add up to; see `Budget`."""

    epsilon: float
    delta: float
    part: Literal["partial_knowledge", "worst_case"] | None = Field(
        default=None, description="Which total is held to it; both when left out."
    )
    window_days: int | None = Field(
        default=None, description="Hold any so many consecutive days to it, instead of the whole history."
    )

    @model_validator(mode="after")
    def _is_a_budget(self) -> Self:
        self.budget()
        return self

    def budget(self) -> Budget:
        """Return the budget."""
        return Budget(self.epsilon, self.delta, part=self.part, window_days=self.window_days)


class _DisjointUnits(Table):
    kind: Literal["disjoint_units"]

    def evidence(self) -> Evidence:
        return DisjointUnits()


class _IndependentGivenHabits(Table):
    kind: Literal["independent_given_habits"]

    def evidence(self) -> Evidence:
        return IndependentGivenHabits()


class _OneDayProtected(Table):
    kind: Literal["one_day_protected"]

    def evidence(self) -> Evidence:
        return OneDayProtected()


class _BoundedDependence(Table):
    kind: Literal["bounded_dependence"]
    epsilon: float
    delta: float = 0.0

    @model_validator(mode="after")
    def _is_evidence(self) -> Self:
        self.evidence()
        return self

    def evidence(self) -> Evidence:
        return BoundedDependence(self.epsilon, self.delta)


class _BoundedParticipation(Table):
    kind: Literal["bounded_participation"]
    times: int

    @model_validator(mode="after")
    def _is_evidence(self) -> Self:
        self.evidence()
        return self

    def evidence(self) -> Evidence:
        return BoundedParticipation(self.times)


class _OncePerUnit(Table):
    kind: Literal["once_per_unit"]

    def evidence(self) -> Evidence:
        return OncePerUnit()


Declared = Annotated[
    _DisjointUnits
    | _IndependentGivenHabits
    | _OneDayProtected
    | _BoundedDependence
    | _BoundedParticipation
    | _OncePerUnit,
    Field(discriminator="kind"),
]
"""One kind of evidence, ``{ kind = "…" }``, with the fields of its class."""
