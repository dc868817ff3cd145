"""Constants that instants are compared with: without an offset, each session's time zone makes another one of them."""

from __future__ import annotations

import re

__all__ = ["has_offset", "no_offset"]

_OFFSET = re.compile(r".*\d:\d\d.*(Z|[+-]\d\d(:?\d\d)?)", re.DOTALL)


def has_offset(text: str) -> bool:
    """Return whether a text says how far its clock is from UTC."""
    return _OFFSET.fullmatch(text) is not None


def no_offset(column: str) -> str:
    """Return what is wrong with a constant that does not."""
    return (
        f"where compares column {column!r}, which holds instants, with a text that is another instant in every time "
        "zone; write it with its offset from UTC, as '2013-01-02 03:04:05+00:00'."
    )
