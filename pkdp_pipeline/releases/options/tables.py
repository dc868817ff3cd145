"""Table: what every table of a job file has in common, and the small types its keys use."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

__all__ = ["Cells", "ColumnKind", "Columns", "FileName", "Name", "Names", "PathName", "Table", "local", "one_or_list"]


class Table(BaseModel):
    """A table of a job file: frozen, and a key that nobody reads is an error."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, content: Any) -> Any:
        if isinstance(content, dict):
            known = [field.alias or name for name, field in cls.model_fields.items()]
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


def local(path: object) -> object:
    """Return a path on this machine as it is.

    Raises
    ------
    ValueError
        If it is an address, or something that a shell would replace and this library does not.
    """
    if isinstance(path, str):
        if "://" in path:
            raise ValueError("must be a path on this machine, not an address.")
        if "${" in path:
            raise ValueError("may not hold an environment variable: these are read in ledger and postgres only.")
        if path.startswith("~"):
            raise ValueError("must be a whole path or one relative to the job file: ~ is not replaced.")
        if "\x00" in path:
            raise ValueError("must be a path.")
    return path


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
"""What a column holds, as a job file may say it; an instant is a timestamp in a time zone."""

Name = Annotated[str, StringConstraints(min_length=1)]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=100)]
PathName = Annotated[str, StringConstraints(min_length=1), BeforeValidator(local)]
"""A path on this machine, relative to the job file."""

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
