"""Looking up column names, and the errors that say which name is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from pkdp_pipeline.errors import ArgumentError

__all__ = ["check_columns", "twins"]

_LISTED = 20


def check_columns(argument: str, names: Iterable[str], columns: Sequence[object]) -> None:
    """Raise `ArgumentError` unless every name is one of the frame's columns, and only one.

    The message may list column names: they are part of the schema, not of the data.
    """
    known = [column for column in columns if isinstance(column, str)]
    for name in names:
        found = known.count(name)
        if found > 1:
            raise ArgumentError(f"{argument} names column {name!r}, which the frame has more than once; rename one.")
        # DuckDB takes names that differ in case for one, and gives the second column another.
        renamed = [column for column in known if not found and re.fullmatch(rf"{re.escape(name)}_\d+", column)]
        alike = [column for column in known if column != name and column.casefold() == name.casefold()]
        if alike and (found or renamed):
            raise ArgumentError(
                f"{argument} names column {name!r}, and the frame has {alike[0]!r} as well"
                f"{f', because of which it is read as {renamed[0]!r}' if renamed else ''}: capitals and small letters "
                "are not told apart everywhere; rename one."
            )
        if found:
            continue
        close = alike or difflib.get_close_matches(name, known, n=1)
        listed = ", ".join(map(repr, known[:_LISTED])) + (", …" if len(known) > _LISTED else "")
        hint = f"Did you mean {close[0]!r}?" if close else f"It has {listed or 'no columns'}."
        raise ArgumentError(f"{argument} names column {name!r}, which the frame does not have. {hint}")


def twins(columns: Sequence[str]) -> tuple[str, str] | None:
    """Return two columns that have one name, letter case aside; None where there are none."""
    seen: dict[str, str] = {}
    for column in columns:
        if column.casefold() in seen:
            return seen[column.casefold()], column
        seen[column.casefold()] = column
    return None
