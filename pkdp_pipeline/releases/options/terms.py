"""The part of a job file that says how releases add up: `evidence` and `budget`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from pkdp_pipeline.certificates.target import Target
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.model.evidence import Evidence, evidence_from_dicts
from pkdp_pipeline.releases.options.tables import Table

__all__ = ["BudgetTable", "Declared", "TargetEntry", "TargetTable"]


class BudgetTable(Table):
    """``[[budget]]``: the most that the data set's releases may add up to; see `Budget`."""

    epsilon: float = Field(description="The most that ε may add up to, at this delta.", examples=[1.0])
    delta: float = Field(description="The delta at which it is measured.", examples=[1e-6])
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


class TargetTable(Table):
    """``target``: what each release has to promise at least; see `Target`."""

    epsilon: float | None = Field(default=None, description="The largest ε at this delta; any when left out.")
    delta: float = Field(default=1e-6, description="The delta at which it is measured.", examples=[1e-6])

    @model_validator(mode="after")
    def _is_a_target(self) -> Self:
        self.target()
        return self

    def target(self) -> Target:
        """Return the target."""
        return Target(self.epsilon, self.delta)


def _table_or_none(value: object) -> object:
    if isinstance(value, dict | TargetTable) or value == "none":
        return value
    raise ValueError('must be a table, or "none": write target = { delta = 1e-6 }.')


TargetEntry = Annotated[
    Annotated[TargetTable, Tag("table")] | Annotated[Literal["none"], Tag("none")],
    Discriminator(lambda value: "none" if value == "none" else "table"),
    BeforeValidator(_table_or_none),
]
"""What a job says of its target; ``"none"`` where it asks for nothing."""


class _Evidence(Table):
    @model_validator(mode="after")
    def _is_evidence(self) -> Self:
        self.evidence()
        return self

    def evidence(self) -> Evidence:
        """Return the evidence of this kind with these fields."""
        return evidence_from_dicts([self.model_dump()])[0]


class _DisjointUnits(_Evidence):
    """The parts are about different people, and who belongs to which part is fixed in advance and public."""

    kind: Literal["disjoint_units"] = Field(description="Which evidence this is.")


class _IndependentGivenHabits(_Evidence):
    """Given everybody's habits, which the attacker may know fully, a person's days are independent."""

    kind: Literal["independent_given_habits"] = Field(description="Which evidence this is.")


class _OneDayProtected(_Evidence):
    """The declared numbers hold for a person's record of one day given all her others, past and future."""

    kind: Literal["one_day_protected"] = Field(description="Which evidence this is.")


class _BoundedDependence(_Evidence):
    """Every added release depends on all earlier ones together by at most this much."""

    kind: Literal["bounded_dependence"] = Field(description="Which evidence this is.")
    epsilon: float = Field(description="ε of the bound.", examples=[0.1])
    delta: float = Field(default=0.0, description="δ of the bound.")


class _BoundedParticipation(_Evidence):
    """Nobody takes part in more than so many of the periods."""

    kind: Literal["bounded_participation"] = Field(description="Which evidence this is.")
    times: int = Field(description="In so many, at most.", examples=[7])


class _OncePerUnit(_Evidence):
    """Everybody appears in at most one of the parts: registrations, first diagnoses, votes."""

    kind: Literal["once_per_unit"] = Field(description="Which evidence this is.")


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
