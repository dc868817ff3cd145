"""TOML: a value in one line, as it stands in a job file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.items import Item


def toml_text(value: Any) -> str:
    """Return a value as TOML in one line."""
    return toml_item(value).as_string()


def toml_item(value: Any) -> Item:
    """Return a value as what `tomlkit` sets in a document."""
    if isinstance(value, Mapping):
        inside = (f"{tomlkit.key(key).as_string()} = {toml_text(item_value)}" for key, item_value in value.items())
        inline_table: Item = tomlkit.value(f"{{ {', '.join(inside)} }}")
        return inline_table
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        array.extend(map(toml_item, value))
        return array
    item: Item = tomlkit.item(value)
    return item
