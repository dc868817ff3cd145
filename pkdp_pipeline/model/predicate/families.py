"""What a predicate may compare: columns that are there, with constants and columns of their own family."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate.columns import check_columns
from pkdp_pipeline.model.predicate.tree import Column, Predicate, constant_family

__all__ = ["check_families"]

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
