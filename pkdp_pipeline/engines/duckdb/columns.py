"""Looking up column names, and the errors that say which name is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from pkdp_pipeline.errors import ArgumentError

__all__ = ["check_columns"]

_LISTED = 20


def check_columns(argument: str, names: Iterable[str], columns: Sequence[object]) -> None:
    """Raise `ArgumentError` unless every name is one of the frame's columns, and only one.

    The message may list column names: they are part of the schema, not of the data.
    """
    for name in names:
        found = sum(1 for column in columns if column == name)
        if found == 1:
            continue
        if found > 1:
            raise ArgumentError(f"{argument} names column {name!r}, which the frame has more than once; rename one.")
        known = [column for column in columns if isinstance(column, str)]
        close = difflib.get_close_matches(name, known, n=1)
        listed = ", ".join(map(repr, known[:_LISTED])) + (", …" if len(known) > _LISTED else "")
        hint = f"Did you mean {close[0]!r}?" if close else f"It has {listed or 'no columns'}."
        raise ArgumentError(f"{argument} names column {name!r}, which the frame does not have. {hint}")
