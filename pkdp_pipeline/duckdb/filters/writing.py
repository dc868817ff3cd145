"""A canonical filter as the query string of `Request.where`."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Iterable
from fractions import Fraction

from pkdp_pipeline.duckdb.filters.tree import (
    Among,
    Both,
    Either,
    Known,
    Missing,
    NotAmong,
    NotNull,
    Order,
    Settled,
    Value,
)
from pkdp_pipeline.errors import ArgumentError

__all__ = ["bare_column", "name_text", "written"]


def written(condition: Settled) -> str:
    """Return the query string of a condition; equal conditions give equal texts.

    Raises
    ------
    ArgumentError
        If a column's name cannot be written in a query string.
    """
    return _joined(*_pieces(condition))


def bare_column(condition: Settled) -> str | None:
    """Return the column that alone is the condition, if its name needs no quotes."""
    if isinstance(condition, Among) and [value.order for value in condition.values] == [True]:
        (value,) = condition.values
        if isinstance(value.order, bool) and name_text(condition.column) == condition.column:
            return condition.column
    return None


def name_text(name: str) -> str:
    """Return a column's name as query strings spell it."""
    # Python reads names that are not ASCII by their compatibility form, which can be another column's name.
    if name.isascii() and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("pkdp_backtick"):
        return name
    if "`" in name or "@" in name or not name.isprintable() or unicodedata.normalize("NFKC", name) != name:
        raise ArgumentError(
            f"filter names column {name!r}, whose name a query string cannot hold: rename the column, or make a view "
            "in which it has a plain name."
        )
    return f"`{name}`"


def _pieces(condition: Settled) -> tuple[list[str], str]:
    """Return the parts of a condition, each ready to stand beside others, and the word that joins them."""
    if isinstance(condition, Known):
        raise TypeError("what is known has no query string")
    if isinstance(condition, Both):
        return sorted(_enclosed(part) for part in condition.parts), " and "
    if isinstance(condition, Either):
        return sorted(_enclosed(part) for part in condition.parts), " or "
    name = name_text(condition.column)
    if isinstance(condition, Missing):
        return [f"{name}.isna()"], ""
    if isinstance(condition, NotNull):
        return [f"{name}.notna()"], ""
    if isinstance(condition, Order):
        return [f"{name} {condition.operator} {condition.value.text}"], ""
    if isinstance(condition, Among):
        return [_listed(name, values, "==", "in") for values in _groups(condition.values)], " or "
    if isinstance(condition, NotAmong):
        # In query strings, a missing value is unequal to everything.
        unequal = [_listed(name, values, "!=", "not in") for values in _groups(condition.values)]
        return [f"{name}.notna()", *unequal], " and "
    raise TypeError(f"{type(condition).__name__} is no condition")


def _joined(pieces: list[str], word: str) -> str:
    return word.join(pieces)


def _enclosed(condition: Settled) -> str:
    pieces, word = _pieces(condition)
    return pieces[0] if len(pieces) == 1 else f"({_joined(pieces, word)})"


def _listed(name: str, values: list[Value], one: str, several: str) -> str:
    if len(values) == 1:
        return f"{name} {one} {values[0].text}"
    return f"{name} {several} [{', '.join(value.text for value in values)}]"


def _groups(values: Iterable[Value]) -> list[list[Value]]:
    """Return the values in order; whole numbers and fractions apart, for one list makes all of them doubles."""
    inorder = sorted(values, key=lambda value: value.order)
    fractions = [value for value in inorder if isinstance(value.order, Fraction) and value.order.denominator != 1]
    others = [value for value in inorder if value not in fractions]
    return [group for group in (others, fractions) if group]
