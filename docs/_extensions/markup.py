"""Plain text, in which only `code` in backticks is markup, as reStructuredText."""

from __future__ import annotations

import re

__all__ = ["escaped"]

_CODE = re.compile(r"(``.+?``|`[^`]+`)")


def escaped(text: str) -> str:
    """Return text on one line in which nothing but code in backticks is markup."""
    parts = _CODE.split(" ".join(text.split()))
    plain = (re.sub(r"([\\*|_`])", r"\\\1", part) for part in parts[::2])
    return "".join(piece for pair in zip(plain, [*parts[1::2], ""], strict=True) for piece in pair)
