"""The keys of files about attackers, evidence, budgets and columns, read strictly: tables, and the types of keys."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from pkdp_pipeline.certificates.target import Target
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import KINDS, Evidence, read_evidence
from pkdp_pipeline.model.leakage import Leakage


class Table(BaseModel):
    """A table of a job file: frozen, and a key that nobody reads is an error."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def _keys(cls) -> list[str]:
        """Return the keys that the table may have."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, content: Any) -> Any:
        if isinstance(content, dict):
            known = cls._keys()
            for key in content:
                if key not in known:
                    close = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
                    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}."
                    raise ValueError(f"unknown key {key!r}; {hint}")
        return content


def _one_or_more(what: str) -> Callable[[object], object]:
    def read(value: object) -> object:
        names = [value] if isinstance(value, str) else value
        if (
            not isinstance(names, list | tuple)
            or not names
            or not all(isinstance(name, str) and name for name in names)
        ):
            raise ValueError(f"must be a {what} name or a list of {what} names.")
        if len(set(names)) < len(names):
            raise ValueError(f"names a {what} twice.")
        return tuple(names)

    return read


def one_or_list(schema: dict[str, Any]) -> None:
    """Say in the JSON schema of a list that a single value stands for a list of one."""
    items = schema.pop("items")
    schema["anyOf"] = [items, {"type": schema.pop("type"), "items": items}]


def _cells(value: object) -> object:
    if isinstance(value, dict):
        return {str(column): _cells(values) for column, values in value.items()}
    if not isinstance(value, list) or not value:
        raise ValueError("must be a non-empty list of the public cells, or a table of such lists by column.")
    return tuple(tuple(map(_scalar, cell)) if isinstance(cell, list) else _scalar(cell) for cell in value)


def _scalar(value: object) -> object:
    if isinstance(value, (str, int, datetime.date)):
        return value
    raise ValueError("holds cells that are neither text, whole numbers, booleans nor dates.")


ColumnKind = Literal["text", "number", "real", "boolean", "date", "timestamp", "instant"]
"""The kind of a column, as a job file may say it; an instant is a timestamp in a time zone."""

Name = Annotated[str, StringConstraints(min_length=1)]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=100)]

_ONE_OR_MORE = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
                "uniqueItems": True,
            },
        ]
    }
)
Columns = Annotated[tuple[str, ...], BeforeValidator(_one_or_more("column")), _ONE_OR_MORE]
Names = Annotated[tuple[str, ...], BeforeValidator(_one_or_more("file")), _ONE_OR_MORE]
Cells = Annotated[
    Any,
    BeforeValidator(_cells),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {}, "minItems": 1},
                {"type": "object", "additionalProperties": {"type": "array", "minItems": 1}, "minProperties": 1},
            ]
        }
    ),
]


def _listed(value: object) -> object:
    return [value] if isinstance(value, str | dict) else value


class _ValueTable(Table):
    """A table with the fields of a value, whose rules are checked when it is read."""

    _kind: ClassVar[Callable[..., Any]]

    @model_validator(mode="after")
    def _makes_a_value(self) -> Self:
        self._value  # noqa: B018 - its rules are checked when it is made
        return self

    @cached_property
    def _value(self) -> Any:
        return type(self)._kind(**{name: getattr(self, name) for name in type(self).model_fields})


class LeakageTable(_ValueTable):
    """``[[attacker.leakage]]``: what is published exactly, or known to leak, about the same people; see `Leakage`."""

    name: Name = Field(
        description="The leaked fact, in public words: a noun phrase.", examples=["the number of people present"]
    )
    tells: Literal["people_present", "anything"] = Field(
        default="anything",
        description='"people_present": it follows from who is in the table at all, whichever cells they are in.',
    )
    by: Columns = Field(
        default=(),
        description="Columns by which it counts people exactly: it tells everybody's value of these.",
        examples=[["region"]],
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
        default=0.0, description="The most that the releases' noise may depend on it; 0 for randomness of its own."
    )
    dependence_delta: float = Field(default=0.0, description="The δ that belongs to dependence_epsilon.")

    _kind = Leakage


class AttackerTable(_ValueTable):
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
        default=None, description="At least this many people of whom the attacker knows nothing more.", examples=[1000]
    )
    unknown_max: int | None = Field(default=None, description="At most this many such people.", examples=[100000])
    sampled: float | None = Field(
        default=None,
        description="The data are a secret sample: everybody was drawn independently, with at most this chance. "
        "Excludes the numbers above; known counts drawn people.",
        examples=[0.1],
    )
    known: int = Field(default=0, description="People the attacker knows, or controls.", examples=[10])
    influence: Literal["passive", "active"] = Field(
        default="passive", description='"active": the attacker chooses what the known people do.'
    )
    leakage: tuple[LeakageTable, ...] = Field(
        default=(),
        strict=False,
        description="Facts published exactly, or known to leak, about the same people; a table, or a list of them.",
        json_schema_extra=one_or_list,
    )
    dependent: Name | None = Field(
        default=None,
        description="The larger unit whose records depend on one another, as the attacker sees it: a household, say.",
        examples=["household"],
    )
    secret: Literal["record", "conditional"] = Field(
        default="record",
        description='"conditional": the secret is a person\'s record given those of all on whom it depends.',
    )
    independent_cells: bool = Field(
        default=False,
        description="For people in several cells without noise: given everybody's habits, a person's cells are "
        "independent of one another, and p_max holds told all her other cells.",
    )

    @field_validator("leakage", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return _listed(value)

    @staticmethod
    def _kind(leakage: tuple[LeakageTable, ...], **fields: Any) -> AttackerModel:
        return AttackerModel(leakage=tuple(table._value for table in leakage), **fields)

    def model(self) -> AttackerModel:
        """Return the attacker model."""
        return cast("AttackerModel", self._value)


class BudgetTable(_ValueTable):
    """``[[budget]]``: the most that the data set's releases may add up to; see `Budget`."""

    epsilon: float = Field(description="The most that ε may add up to, at this delta.", examples=[1.0])
    delta: float = Field(description="The delta at which it is measured.", examples=[1e-6])
    part: Literal["partial_knowledge", "worst_case"] | None = Field(
        default=None, description="Which total is held to it; both when left out."
    )
    window_days: int | None = Field(
        default=None, description="Hold every run of this many days to it, instead of the whole history."
    )

    _kind = Budget


class TargetTable(_ValueTable):
    """``target``: what each release has to promise at least; see `Target`."""

    epsilon: float | None = Field(default=None, description="The largest ε at this delta; any when left out.")
    delta: float = Field(default=1e-6, description="The delta at which it is measured.", examples=[1e-6])

    _kind = Target

    def target(self) -> Target:
        """Return the target."""
        return cast("Target", self._value)


def _table_or_none(value: object) -> object:
    if isinstance(value, dict | TargetTable) or value == "none":
        return value
    raise ValueError('must be a table, or "none": write target = { delta = 1e-6 }.')


TargetEntry = Annotated[
    Annotated[TargetTable, Tag("table")] | Annotated[Literal["none"], Tag("none")],
    Discriminator(lambda value: "none" if value == "none" else "table"),
    BeforeValidator(_table_or_none),
]
"""The target of a job; ``"none"`` where it asks for nothing."""


class _EvidenceTable(_ValueTable):
    """One kind of evidence: the fields of its class, after `kind`."""

    kind: str

    @staticmethod
    def _kind(kind: str, **fields: Any) -> Evidence:
        return KINDS[kind](**fields)

    def evidence(self) -> Evidence:
        """Return the evidence."""
        return cast("Evidence", self._value)


class _DisjointUnits(_EvidenceTable):
    """The parts are about different people, and who belongs to which part is fixed in advance and public."""

    kind: Literal["disjoint_units"] = Field(description="Which evidence this is.")


class _IndependentGivenHabits(_EvidenceTable):
    """Given everybody's habits, which the attacker may know fully, a person's days are independent."""

    kind: Literal["independent_given_habits"] = Field(description="Which evidence this is.")


class _IndependentDraws(_EvidenceTable):
    """Every release is of a secret sample of its own, drawn independently of all others."""

    kind: Literal["independent_draws"] = Field(description="Which evidence this is.")


class _OneDayProtected(_EvidenceTable):
    """The declared numbers hold for a person's record of one day given all her others, past and future."""

    kind: Literal["one_day_protected"] = Field(description="Which evidence this is.")


class _BoundedDependence(_EvidenceTable):
    """Every added release depends on all earlier ones together by at most this much."""

    kind: Literal["bounded_dependence"] = Field(description="Which evidence this is.")
    epsilon: float = Field(description="ε of the bound.", examples=[0.1])
    delta: float = Field(default=0.0, description="δ of the bound.")


class _BoundedParticipation(_EvidenceTable):
    """Nobody takes part in more than this many of the periods."""

    kind: Literal["bounded_participation"] = Field(description="Which evidence this is.")
    times: int = Field(description="At most this many of them.", examples=[7])


class _OncePerUnit(_EvidenceTable):
    """Everybody appears in at most one of the parts: registrations, first diagnoses, votes."""

    kind: Literal["once_per_unit"] = Field(description="Which evidence this is.")


Declared = Annotated[
    _DisjointUnits
    | _IndependentGivenHabits
    | _IndependentDraws
    | _OneDayProtected
    | _BoundedDependence
    | _BoundedParticipation
    | _OncePerUnit,
    Field(discriminator="kind"),
]
"""One kind of evidence, ``{ kind = "…" }``, with the fields of its class."""


class Declarations(Table):
    """The declarations of a file about all releases of a data set."""

    evidence: tuple[Declared, ...] = Field(
        default=(),
        strict=False,
        description="How the releases of different days depend on one another; a table, or a list of them.",
        json_schema_extra=one_or_list,
    )
    budget: tuple[BudgetTable, ...] = Field(
        default=(),
        strict=False,
        description="The most that all releases of the data set may add up to; a table, or a list.",
        json_schema_extra=one_or_list,
    )

    @field_validator("evidence", "budget", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _evidence_fits_together(self) -> Self:
        self.declared()
        return self

    def declared(self) -> tuple[Evidence, ...]:
        """Return the declared evidence."""
        return read_evidence([table.evidence() for table in self.evidence])

    def budgets(self) -> tuple[Budget, ...]:
        """Return the declared budgets."""
        return tuple(table._value for table in self.budget)
