"""Table: what every table of a job file has in common, and the small types its keys use."""

from __future__ import annotations

import datetime
import difflib
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

__all__ = ["Cells", "ColumnKind", "Columns", "FileName", "Name", "Table"]


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


def _one_or_more(value: object) -> object:
    columns = [value] if isinstance(value, str) else value
    if not isinstance(columns, list) or not columns or not all(isinstance(c, str) and c for c in columns):
        raise ValueError("must be a column name or a list of column names.")
    if len(set(columns)) < len(columns):
        raise ValueError("names a column twice.")
    return tuple(columns)


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
Columns = Annotated[
    tuple[str, ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema(
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
    ),
]
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
