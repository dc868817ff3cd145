"""The keys of files about attackers, evidence, budgets and columns, read strictly: tables, and the types of keys."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache, cached_property
from types import MappingProxyType, NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    cast,
    get_args,
    get_type_hints,
)

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    WithJsonSchema,
    create_model,
    model_validator,
)

from pkdp_pipeline.certificates.target import Target
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import KINDS, Evidence, read_evidence
from pkdp_pipeline.model.leakage import Leakage, Lives
from pkdp_pipeline.model.mechanisms import GeometricNoise
from pkdp_pipeline.schemas import field_texts


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
    return [value] if isinstance(value, dict) else value


Item = TypeVar("Item")
Value = TypeVar("Value")
Several = Annotated[tuple[Item, ...], BeforeValidator(_listed), Field(strict=False, json_schema_extra=one_or_list)]
"""A table, or a list of them."""


class TableOf(Table, Generic[Value]):
    """A table with the fields of a declared value, whose rules are checked when it is read, as in `TableOf[Budget]`."""

    _value_of: ClassVar[Callable[..., Any]]

    @model_validator(mode="after")
    def _makes_a_value(self) -> Self:
        self.value  # noqa: B018 - its rules are checked when it is made
        return self

    @cached_property
    def value(self) -> Value:
        """The value that is declared."""
        value: Value = type(self)._value_of(
            **{name: _value(getattr(self, name)) for name in type(self).model_fields if name != "kind"}
        )
        return value

    if not TYPE_CHECKING:

        @classmethod
        def __class_getitem__(cls, kind: Any) -> Any:
            return cls if kind is Any else _table_of(kind)


def _value(entry: Any) -> Any:
    if isinstance(entry, tuple):
        return tuple(map(_value, entry))
    return entry.value if isinstance(entry, TableOf) else entry


def keys_of(kind: Any, types: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Return the fields of a declared value as keys of a file: type, default, meaning and examples.

    `types`: those of keys that a file writes in a form of its own; None stands for a key that is left out.
    """
    hints, texts, keys = get_type_hints(kind), field_texts(kind), {}
    for field in fields(kind):
        written = types.get(field.name, hints[field.name])
        if written is None:
            continue
        default = ... if field.default is MISSING else None if NoneType in get_args(written) else field.default
        keys[field.name] = (
            written,
            Field(default=default, description=texts.get(field.name), examples=field.metadata.get("examples")),
        )
    return keys


@cache
def _table_of(kind: type[Any]) -> type[TableOf[Any]]:
    """Return the table of a kind of value; one of evidence says first which kind it is."""
    name, meaning = _TABLES.get(kind, (f"_{kind.__name__}", (kind.__doc__ or "").partition("\n")[0]))
    tag: dict[str, Any] = {}
    if issubclass(kind, Evidence):
        tag = {"kind": (Literal[kind.key], Field(description="Which evidence this is."))}
    table: Any = create_model(name, __base__=TableOf, __doc__=meaning, **tag, **keys_of(kind, _TYPES.get(kind, {})))
    table._value_of = kind
    return cast("type[TableOf[Any]]", table)


_TABLES: dict[type[Any], tuple[str, str]] = {
    AttackerModel: (
        "AttackerTable",
        "``[attacker]``: the fields of `AttackerModel`, assumptions that are argued and published.",
    ),
    Leakage: (
        "LeakageTable",
        "``[[attacker.leakage]]``: what is published exactly, or known to leak, about the same people; see `Leakage`.",
    ),
    Budget: ("BudgetTable", "``[[budget]]``: the most that the data set's releases may add up to; see `Budget`."),
    Target: ("TargetTable", "``target``: what each release has to promise at least; see `Target`."),
    GeometricNoise: ("NoiseTable", "``noise``: two-sided geometric noise."),
}
"""The tables of values as files name and describe them; of evidence, the class does."""

_TYPES: dict[type[Any], dict[str, Any]] = {
    Leakage: {
        "name": Name,
        "by": Columns,
        "shared_by": Annotated[
            tuple[Lives, ...],
            BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
            Field(strict=False, json_schema_extra=one_or_list),
        ],
    },
}
_TYPES[AttackerModel] = {"dependent": Name | None, "leakage": Several[_table_of(Leakage)]}  # type: ignore[misc]
AttackerTable = TableOf[AttackerModel]


def _table_or_none(value: object) -> object:
    if isinstance(value, dict | TableOf) or value == "none":
        return value
    raise ValueError('must be a table, or "none": write target = { delta = 1e-6 }.')


TargetEntry = Annotated[
    Annotated[TableOf[Target], Tag("table")] | Annotated[Literal["none"], Tag("none")],
    Discriminator(lambda value: "none" if value == "none" else "table"),
    BeforeValidator(_table_or_none),
]
"""The target of a job; ``"none"`` where it asks for nothing."""

if TYPE_CHECKING:
    Declared = TableOf[Evidence]
else:
    Declared = Annotated[
        Union[tuple(TableOf[kind] for kind in KINDS.values() if kind.holds)],  # noqa: UP007 - of a list
        Field(discriminator="kind"),
    ]
"""One kind of evidence that files may declare, ``{ kind = "…" }``, with the fields of its class."""


class Declarations(Table):
    """The declarations of a file about all releases of a data set."""

    evidence: Several[Declared] = Field(
        default=(),
        description="How the releases of different days depend on one another; a table, or a list of them.",
    )
    budget: Several[TableOf[Budget]] = Field(
        default=(), description="The most that all releases of the data set may add up to; a table, or a list."
    )

    @model_validator(mode="after")
    def _evidence_fits_together(self) -> Self:
        self.declared()
        return self

    def declared(self) -> tuple[Evidence, ...]:
        """Return the declared evidence."""
        return read_evidence([table.value for table in self.evidence])

    def budgets(self) -> tuple[Budget, ...]:
        """Return the declared budgets."""
        return tuple(table.value for table in self.budget)
