"""``[attacker]``: what is assumed about the attacker, and what is known besides what the job publishes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.leakage import Leakage
from pkdp_pipeline.releases.options.tables import Name, Table, one_or_list

__all__ = ["AttackerTable", "LeakageTable"]


def _listed(value: object) -> object:
    return [value] if isinstance(value, str | dict) else value


class LeakageTable(Table):
    """``[[attacker.leakage]]``: what is published exactly, or known to leak, about the same people; see `Leakage`."""

    name: Name = Field(
        description="What it is, in public words: a noun phrase.", examples=["the number of people present"]
    )
    tells: Literal["people_present", "anything"] = Field(
        default="anything",
        description='"people_present": it follows from who is in the table at all, whichever cells they are in.',
    )
    shared_by: Annotated[
        tuple[Literal["presence", "value"], ...],
        BeforeValidator(_listed),
        Field(strict=False, json_schema_extra=one_or_list),
    ] = Field(
        default=(),
        description="Between which lives of one person it can be the same: present or absent, in one cell or another.",
        examples=[["value"]],
    )
    epsilon: float | None = Field(
        default=None,
        description="Where it is differentially private itself: its ε when one record is replaced by any other.",
        examples=[0.5],
    )
    delta: float = Field(default=0.0, description="The δ that belongs to epsilon.")
    dependence_epsilon: float = Field(
        default=0.0, description="By how much the releases' noise may depend on it; 0 for randomness of its own."
    )
    dependence_delta: float = Field(default=0.0, description="The δ that belongs to dependence_epsilon.")

    @model_validator(mode="after")
    def _is_a_leakage(self) -> Self:
        self.leakage()
        return self

    def leakage(self) -> Leakage:
        """Return the leakage."""
        fields = self.model_dump()
        return Leakage(fields.pop("name"), **fields)


class AttackerTable(Table):
    """``[attacker]``: the fields of `AttackerModel`, assumptions that are argued and published."""

    p_max: float | None = Field(
        default=None,
        description="A histogram: the largest probability that a person is in a cell, told that she is in that cell or "
        "absent. A count: that a person satisfies the predicate.",
        examples=[0.1],
    )
    p_min: float | None = Field(default=None, description="The smallest such probability.", examples=[0.01])
    p_max_between: float | None = Field(
        default=None,
        description="The largest probability that a person is in one cell, told that she is in that cell or one other.",
        examples=[0.7],
    )
    unknown: int | None = Field(
        default=None, description="At least so many people of whom the attacker knows nothing more.", examples=[1000]
    )
    unknown_max: int | None = Field(default=None, description="At most so many such people.", examples=[100000])
    known: int = Field(default=0, description="People the attacker knows, or controls.", examples=[10])
    influence: Literal["passive", "active"] = Field(
        default="passive", description='"active": the attacker chooses what the known people do.'
    )
    leakage: tuple[LeakageTable, ...] = Field(
        default=(),
        strict=False,
        description="What is published exactly, or known to leak, about the same people; a table, or a list of them.",
        json_schema_extra=one_or_list,
    )
    dependent: Name | None = Field(
        default=None,
        description="Whose records depend on one another, as the attacker sees it: those of one household, say.",
        examples=["household"],
    )
    secret: Literal["record", "conditional"] = Field(
        default="record",
        description='"conditional": the secret is a person\'s record given those of all on whom it depends.',
    )

    @field_validator("leakage", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return _listed(value)

    @model_validator(mode="after")
    def _is_an_attacker(self) -> Self:
        if self.secret == "conditional" and self.dependent is None:
            raise ValueError(
                'secret = "conditional" is a person\'s record given those of all who share her fate: say who these '
                'are, as in dependent = "household", or leave secret out where records are independent.'
            )
        self.model()
        return self

    def model(self) -> AttackerModel:
        """Return the attacker model."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return AttackerModel(**fields | {"leakage": tuple(table.leakage() for table in self.leakage)})
