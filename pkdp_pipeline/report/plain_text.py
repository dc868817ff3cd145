"""Plain text: values of the data as one line that steers no terminal and breaks no page."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["in_markdown", "key_text", "printable", "table_line"]

_MARKS = re.compile(r"([\\`*_\[\]<>|~&!$@{}])|(?<=[A-Za-z])(:)(?=//)|(?<=[Ww]{3})(\.)")


def printable(value: object) -> str:
    """Return a value as one line of text that cannot steer a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in str(value)
    )


def key_text(value: object) -> str:
    """Return the value of a by-column as one line of text that is never empty."""
    import pandas as pd

    if pd.isna(value):  # type: ignore[call-overload]  # a key is a scalar
        return "(missing)"
    return printable(value) or "(empty)"


def in_markdown(text: str) -> str:
    """Return text that Markdown shows as it is: no emphasis, link, address or tag is made of it."""
    return _MARKS.sub(lambda found: f"\\{found[0]}", text)


def table_line(cells: Sequence[str]) -> str:
    """Return one line of a Markdown table; the cells are escaped already."""
    return f"| {' | '.join(cells)} |"
