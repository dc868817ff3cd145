"""Plain text: values of the data as one line that steers no terminal and breaks no page."""

from __future__ import annotations

import re
from collections.abc import Sequence

MISSING = "(missing)"
"""What a missing key reads."""

_EMPTY = "(empty)"

_REPEATED_BLANK = re.compile("(?<= ) ")
"""Which a page would show as one."""

_MARKS = re.compile(r"([\\`*_\[\]<>|~&!$@{}])|(?<=[A-Za-z])(:)(?=//)|(?<=[Ww]{3})(\.)")


def printable(value: object) -> str:
    """Return a value as one line of text that cannot steer a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in str(value)
    )


def key_text(value: object, *, quoted: bool = False) -> str:
    r"""Return the value of a by-column as one line that is never empty, and is different for different texts.

    A backslash is doubled, since one may stand before an escape. Text is put in quotation marks where it could be
    taken for something else: one of the words for what is missing, a text in quotation marks, blanks at an end; and
    where `quoted` is asked for.
    """
    import pandas as pd

    if pd.isna(value):  # type: ignore[call-overload]  # a key is a scalar
        return MISSING
    text = str(value)
    if not text and not quoted:
        return _EMPTY
    shown = _REPEATED_BLANK.sub(r"\\x20", printable(text.replace("\\", "\\\\")))
    if quoted or shown in (MISSING, _EMPTY) or shown.startswith('"') or shown != shown.strip():
        return '"' + shown.replace('"', '\\"') + '"'
    return shown


def joined(keys: Sequence[str]) -> str:
    """Return the texts of a cell's keys as one, which is different for different cells; empty without keys."""
    if len(keys) == 1:
        return keys[0]
    return " / ".join('"' + key.replace('"', '\\"') + '"' if _is_parted(key) else key for key in keys)


def _is_parted(key: str) -> bool:
    """Return whether a key would look like several; one in quotation marks does not."""
    return not key.startswith('"') and " / " in f" {key} "


def in_markdown(text: str) -> str:
    """Return text that Markdown shows as it is: no emphasis, link, address or tag is made of it."""
    return _MARKS.sub(lambda found: f"\\{found[0]}", text)


def table_line(cells: Sequence[str]) -> str:
    """Return one line of a Markdown table; the cells are escaped already."""
    return f"| {' | '.join(cells)} |"


def exactly(value: float) -> str:
    """Return a number that somebody has chosen, as it was written."""
    mantissa, mark, exponent = repr(value).partition("e")
    return mantissa.removesuffix(".0") + (f"e{int(exponent)}" if mark else "")
