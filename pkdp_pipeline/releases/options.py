"""The keys of files about attackers, evidence, budgets and columns, read strictly: tables, and the types of keys.

Complaints: what pydantic says of a file, in our words: the key, the rule and the fix, and never the value.
"""

from __future__ import annotations

import datetime
import difflib
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from decimal import Decimal, DecimalException
from functools import cache, cached_property
from pathlib import Path
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
    get_origin,
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
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import ErrorDetails

from pkdp_pipeline.certificates.release_certificate import Target
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.model.attacker import AttackerModel, Leakage, Lives
from pkdp_pipeline.model.evidence import KINDS, Evidence, read_evidence
from pkdp_pipeline.model.mechanisms import GeometricNoise
from pkdp_pipeline.model.wording import JOB_FILE, Worded, worded_for
from pkdp_pipeline.schemas import field_texts


class Table(BaseModel):
    """A table of a job file: frozen, and a key that nobody reads is an error."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def _keys(cls) -> list[str]:
        """Return the keys that the table may have."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @classmethod
    def _keys_inside(cls) -> Iterator[tuple[str, list[str]]]:
        """Yield the keys that hold one table, each with that table's keys."""
        for name, field in cls.model_fields.items():
            for kind in (field.annotation, *get_args(field.annotation)):
                if get_origin(field.annotation) is not tuple and isinstance(kind, type) and issubclass(kind, Table):
                    yield field.alias or name, kind._keys()

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, content: Any) -> Any:
        if isinstance(content, dict):
            known = cls._keys()
            for key in content:
                if key not in known:
                    close = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
                    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}."
                    if tables := [name for name, keys in cls._keys_inside() if key in keys]:
                        hint = f"it stands inside {tables[0]!r}."
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


_WRITTEN: Mapping[str, str] = MappingProxyType(
    {
        "attacker": "attacker = { p_max = 0.1 }",
        "budget": "budget = { epsilon = 2.0, delta = 1e-6 }, or a list of such tables",
        "changes": "changes = 2",
        "bins": "bins = [0, 18, 65]",
        "checks": "[checks], and below it rows = { min = 100 }",
        "column": 'column = "date"',
        "columns": 'columns = { tailnum = "text" }',
        "dataset": 'dataset = "flights"',
        "days": "days = 7",
        "delta": "delta = 1e-6",
        "directory": 'directory = "out"',
        "duckdb": 'duckdb = "warehouse.duckdb"',
        "epsilon": "epsilon = 1.0",
        "evidence": 'evidence = { kind = "one_day_protected" }, or a list of such tables',
        "expect": '[[checks.expect]], with two brackets, and below it type = "…"',
        "files": 'files = "data/*.parquet"',
        "formats": 'formats = ["parquet", "csv"]',
        "fresh": 'fresh = { column = "date", days = 1 }',
        "ibis": 'ibis = "${PKDP_SOURCE}"',
        "k": "k = 50",
        "kind": 'kind = "one_day_protected"',
        "leakage": '[[attacker.leakage]], and below it name = "…" and tells = "people_present"',
        "ledger": 'ledger = "out/ledger.sqlite"',
        "limits": "limits = { seconds = 30 }",
        "name": 'name = "people"',
        "noise": "noise = { epsilon = 0.5 }",
        "null": 'null = ["", "NA"]',
        "output": '[output], and below it directory = "out"',
        "period": 'period = { column = "date" }',
        "postgres": 'postgres = "${PKDP_SOURCE}"',
        "records": '[records], and below it directory = "runs"',
        "release": '[[release]], with two brackets, and below it name = "people" and k = 50',
        "retention": 'retention = { directory = "private", days = 7 }',
        "rows": "rows = { min = 100, max = 100000 }",
        "shared_by": 'shared_by = ["value"]',
        "source": 'source = "data/*.parquet", or a table: source = { postgres = "…", table = "…" }',
        "tables": 'tables = { visits = { unit = "person", columns = ["country"], k = 20 } }',
        "tables.columns": 'columns = ["country"]',
        "times": "times = 10",
        "types": 'types = { tailnum = "text" }',
        "unit": 'unit = "person"',
    }
)
"""How each key is written that has to be there, or holds more than one value."""

_RULES: Mapping[str, str] = MappingProxyType(
    {
        "bool_type": "must be true or false.",
        "string_type": "must be text in quotes.",
        "string_too_short": "must not be empty.",
        "too_short": "must not be empty.",
        "string_pattern_mismatch": "must fit the pattern of a plain name: letters, digits and _, in files' names -, "
        "beginning with a letter.",
    }
)
"""The meaning of pydantic's errors here; others are told in its own words."""

_UNIONS = MappingProxyType({"source": 1, "evidence": 2, "target": 1})
"""At which step of a place pydantic names which of several tables it takes a value for; no key of the file."""


def text_of(file: Path, name: str) -> str:
    """Return the text of a file, which is called `name` in a complaint.

    Raises `ConfigError` if it cannot be read, or is no text.
    """
    problem = ""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = f"cannot be read: {error.strerror}."
    except UnicodeDecodeError:
        problem = "is not UTF-8 text."
    raise ConfigError(f"{name} {problem}")


def toml_of(text: str, name: str) -> dict[str, Any]:
    """Return what the text of a file says; an error keeps nothing of it, because it can hold passwords.

    Raises `ConfigError` if it is no TOML.
    """
    problem = ""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = f"is not valid TOML: {error}."
    except (ValueError, RecursionError):
        problem = "is not valid TOML: it has a number that is too long, or is nested too deeply."
    raise ConfigError(f"{name} {problem}")


def unusable(name: str, wrong: Sequence[str]) -> ConfigError:
    """Return the error about what is called `name`, with all that is wrong in it, which is its reason."""
    reason = "\n  ".join(wrong)
    return ConfigError(Worded(lambda _: f"{name} cannot be used:\n  {reason}", reason))


def complaints(error: ValidationError, first: Collection[str] = ()) -> list[str]:
    """Return one line for each thing that is wrong; the keys of `first` stand above the first table of a file."""
    details = error.errors(include_url=False)
    # A list whose only table is wrong counts as empty; the table's own complaint says more.
    inside = {detail["loc"][:length] for detail in details for length in range(len(detail["loc"]))}
    reported = [detail for detail in details if detail["type"] != "too_short" or detail["loc"] not in inside]
    return list(dict.fromkeys(_complaint(detail, first) for detail in reported))


def _complaint(detail: ErrorDetails, first: Collection[str]) -> str:
    steps = [step for step in detail["loc"] if not isinstance(step, str) or step.strip()]  # blanks are no keys
    union = _UNIONS.get(str(steps[0])) if steps else None
    if union is not None and len(steps) > union and isinstance(steps[union], str):
        del steps[union]
    place = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    key = next((step for step in reversed(steps) if isinstance(step, str)), "")
    written = _WRITTEN.get(f"{steps[0] if steps else ''}.{key}", _WRITTEN.get(key))
    message = _message(detail, key, written)
    stranger = re.match(r"unknown key '(\w+)'; known", message)
    if stranger and steps and stranger[1] in first:
        message += f" A key of the job itself, as {stranger[1]} is, stands above the first [table]."
    return f"{place}: {message}" if place else message


def _message(detail: ErrorDetails, key: str, written: str | None) -> str:
    sort, given, context = detail["type"], detail.get("input"), detail.get("ctx", {})
    if sort == "value_error":
        raised = context.get("error")
        text = worded_for(raised, JOB_FILE) if isinstance(raised, ValueError) else detail["msg"]
        return text.removeprefix("Value error, ")
    if sort == "missing":
        return f"is required: write {written}."
    if sort == "literal_error":
        return _choice(str(context["expected"]), given)
    if sort == "union_tag_invalid":
        return f"kind: {_choice(str(context['expected_tags']), given.get('kind') if isinstance(given, dict) else None)}"
    if sort in ("int_type", "int_from_float", "float_type"):
        whole, meant = sort != "float_type", _meant(given)
        rule = f"must be a {'whole ' * whole}number{', without quotes' * isinstance(given, str)}"
        if meant is None or (whole and not meant.is_integer()):
            return f"{rule}."
        return f"{rule}: write {key} = {f'{meant:.0f}' if whole else _spelled(meant)}."
    if sort in _RULES:
        return _RULES[sort]
    if sort in ("tuple_type", "model_type", "model_attributes_type", "dict_type", "union_tag_not_found"):
        return f"has another form: write {written}." if written else "must be a table."
    return re.sub(r"^(Input|String|Value) should ", "must ", detail["msg"]).rstrip(".") + "."


def _meant(given: object) -> float | None:
    """Return the number that stands there as another kind of number, or as text, perhaps as a percentage."""
    text = given.replace(" ", "") if isinstance(given, str) else repr(given)
    with suppress(DecimalException):
        number = float(Decimal(text.removesuffix("%")) / (100 if text.endswith("%") else 1))
        return number if math.isfinite(number) else None
    return None


def _spelled(number: float) -> str:
    """Return a number as TOML and YAML both read it: YAML takes 1e-6 for text."""
    mantissa, mark, exponent = repr(number).partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{mark}{exponent}"


def _choice(expected: str, given: object) -> str:
    """Return what may stand there, and the nearest to what does."""
    known = re.findall(r"'([^']+)'", expected)
    close = difflib.get_close_matches(given.casefold(), known, n=1, cutoff=0.5) if isinstance(given, str) else []
    return f"must be {expected}; did you mean {close[0]!r}?" if close else f"must be {expected}."
