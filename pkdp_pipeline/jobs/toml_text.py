"""TOML text: values, tables and whole documents written as TOML, to be pasted or read back."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["assignments", "document", "release_tables", "value_text"]


def document(content: Mapping[str, Any]) -> str:
    """Return a whole file that says `content`; comments are nobody's content and are not in it."""
    plain = {key: value for key, value in content.items() if not _is_section(value)}
    parts = ["\n".join(assignments(plain)) + "\n"]
    for key, value in content.items():
        if isinstance(value, Mapping):
            parts.append("\n".join([f"[{_key(key)}]", *assignments(value)]) + "\n")
        elif key not in plain:
            parts += ["\n".join([f"[[{_key(key)}]]", *assignments(table)]) + "\n" for table in value]
    return "\n".join(parts)


def release_tables(tables: Iterable[Mapping[str, Any]]) -> str:
    """Return releases as they stand in a job file."""
    return "\n".join("\n".join(["[[release]]", *assignments(table)]) + "\n" for table in tables)


def assignments(table: Mapping[str, Any]) -> list[str]:
    """Return a line for each key of a table."""
    return [f"{_key(key)} = {value_text(value)}" for key, value in table.items()]


def value_text(value: object) -> str:
    """Return a value in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {value_text(one)}' for key, one in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return _text(str(value))


def _is_section(value: object) -> bool:
    """Return whether a value gets a header of its own: a table, or a list of nothing but tables."""
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)
    )


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _text(text: str) -> str:
    """Return a text in quotes; JSON and TOML differ in one control character only."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
