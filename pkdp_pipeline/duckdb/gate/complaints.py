"""What is wrong with a policy, in the words of whoever writes one: which key, and what to write."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pydantic_core import ErrorDetails

__all__ = ["complaint"]

#: What to write under a key, by its name; of tables, by the name of what they are in.
_EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "answer_bytes": "answer_bytes = 16777216",
        "attacker": "attacker = { p_max = 0.1 }",
        "columns": 'columns = ["country"]',
        "delta": "delta = 1e-6",
        "epsilon": "epsilon = 1.0",
        "name": 'name = "the number of people present"',
        "times": "times = 10",
        "unit": 'unit = "person"',
        "budget": "budget = { epsilon = 1.0, delta = 1e-6 }",
        "cells": "cells = 100000",
        "dataset": 'dataset = "visits"',
        "domains": 'domains = { country = ["US", "NO"] }',
        "evidence": 'evidence = { kind = "one_day_protected" }',
        "k": "k = 20",
        "ledger": 'ledger = "ledger.sqlite"',
        "limits": "limits = { seconds = 30 }",
        "memory": 'memory = "1GB"',
        "p_max": "p_max = 0.1",
        "seconds": "seconds = 60",
        "tables": '[tables.visits] with unit = "person", columns = ["country"] and k = 20',
    }
)
_RULES: Mapping[str, str] = MappingProxyType(
    {
        "bool_type": "must be true or false",
        "dict_type": "must be a table",
        "float_type": "must be a number",
        "int_from_float": "must be a whole number",
        "int_type": "must be a whole number",
        "model_attributes_type": "must be a table",
        "model_type": "must be a table",
        "string_type": "must be a text, in quotes",
        "string_pattern_mismatch": "must be a size",
        "string_too_short": "must not be empty",
        "too_short": "must not be empty",
        "tuple_type": "must be a table, or a list of tables",
    }
)


def complaint(detail: ErrorDetails) -> str:
    """Return one line: which key, and what is wrong."""
    place = ""
    for step in detail["loc"]:
        place += f"[{step + 1}]" if isinstance(step, int) else f".{step}"
    message = _message(detail)
    return f"  {place.lstrip('.')}: {message}" if place else f"  {message}"


def _message(detail: ErrorDetails) -> str:
    """Return what is wrong, and what to write, without the key."""
    names = [step for step in detail["loc"] if isinstance(step, str)]
    message = detail["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    if detail["type"] == "missing":
        return f"is required: write {_EXAMPLES[names[-1]]}."
    if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return 'kind says which evidence it is, such as { kind = "one_day_protected" }.'
    if detail["type"] == "value_error":
        if message.startswith("must be a column name"):
            message = f'{message.removesuffix(".")}: write {names[-1]} = ["country"].'
        return _unquoted(names, detail["input"]) or message
    rule = _RULES.get(detail["type"], message).removesuffix(".")
    example = _EXAMPLES.get(names[-1]) if names else None
    if len(names) == 2 and names[0] == "tables":
        example = _EXAMPLES["tables"].replace("visits", names[1])
    return f"{rule}: write {example}." if example else f"{rule}."


def _unquoted(names: list[str], content: object) -> str | None:
    """Return what is wrong where ``[tables.raw.events]`` was meant to be the table ``raw.events``."""
    inner, place = content, list(names[1:])
    if len(names) != 2 or names[0] != "tables":
        return None
    while isinstance(inner, dict) and len(place) < 4:
        if place != names[1:] and {"unit", "columns", "k"} & set(inner):
            return f'has a table in it: a name with dots is written in quotes, [tables."{".".join(place)}"].'
        tables = [key for key, value in inner.items() if isinstance(value, dict) and key != "domains"]
        if not tables:
            return None
        place.append(tables[0])
        inner = inner[tables[0]]
    return None
