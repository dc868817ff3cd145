"""Looking up column names, and the errors that say which name is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate.tree import Column, Predicate, constant_family

_LISTED = 20


def check_columns(argument: str, names: Iterable[str], columns: Sequence[object], of: str = "the frame") -> None:
    """Raise `ArgumentError` unless every name is one of the columns of a frame, and only one.

    The message may list column names: they are part of the schema, not of the data.
    """
    known = [column for column in columns if isinstance(column, str)]
    for name in names:
        found = known.count(name)
        if found > 1:
            raise ArgumentError(f"{argument} names column {name!r}, which {of} has more than once; rename one.")
        # DuckDB takes names that differ in case for one, and gives the second column another.
        renamed = [column for column in known if not found and re.fullmatch(rf"{re.escape(name)}_\d+", column)]
        alike = [column for column in known if column != name and column.casefold() == name.casefold()]
        if alike and (found or renamed):
            raise ArgumentError(
                f"{argument} names column {name!r}, and {of} has {alike[0]!r} as well"
                f"{f', because of which it is read as {renamed[0]!r}' if renamed else ''}: capitals and small letters "
                "are not told apart everywhere; rename one."
            )
        if found:
            continue
        close = alike or difflib.get_close_matches(name, known, n=1)
        listed = ", ".join(map(repr, known[:_LISTED])) + (", …" if len(known) > _LISTED else "")
        hint = f"Did you mean {close[0]!r}?" if close else f"It has {listed or 'no columns'}."
        raise ArgumentError(f"{argument} names column {name!r}, which {of} does not have. {hint}")


def twins(columns: Sequence[str]) -> tuple[str, str] | None:
    """Return two columns that have one name, letter case aside; None where there are none."""
    seen: dict[str, str] = {}
    for column in columns:
        if column.casefold() in seen:
            return seen[column.casefold()], column
        seen[column.casefold()] = column
    return None


#: A text that says how far its clock is from UTC.
_OFFSET = re.compile(r".*\d:\d\d.*(Z|[+-]\d\d(:?\d\d)?)", re.DOTALL)


def check_families(predicate: Predicate, families: Mapping[str, str]) -> None:
    """Raise `ArgumentError` for a column that is not there, and for a comparison that would convert a whole column.

    Parameters
    ----------
    predicate : Predicate
    families : mapping of str to str
        The frame's columns, each with what it can be compared with: "text", "time", "instant", "number", "boolean", or
        the name of a type that compares with nothing but its own kind.
    """
    for condition in predicate.conditions:
        check_columns("where", sorted(condition.columns), list(families))
        name, family = condition.column, families[condition.column]
        if family == "empty":  # a column of objects without a value
            continue
        if isinstance(condition.operand, Column):
            others = {families[condition.operand.name]}
        else:
            others = {constant_family(constant) for constant in condition.constants}
            others = {family if other == "text" and family in ("time", "instant") else other for other in others}
        if condition.operand is True and others != {family}:
            raise ArgumentError(f"where must be boolean; column {name!r} has {family}.")
        if others - {family}:
            raise ArgumentError(
                f"where compares {' with '.join(sorted(others | {family}))}; write the constant as the column's own "
                "type."
            )
        # Without an offset, each session's time zone makes another instant of a text.
        if family == "instant" and not all(_OFFSET.fullmatch(str(constant)) for constant in condition.constants):
            raise ArgumentError(
                f"where compares column {name!r}, which holds instants, with a text that is another instant in every "
                "time zone; write it with its offset from UTC, as '2013-01-02 03:04:05+00:00'."
            )
