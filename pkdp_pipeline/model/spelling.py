"""Spelling: which names of a data set or a label mean the same, and what text may be shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from pkdp_pipeline.errors import ArgumentError

# Letters and marks that are drawn as nothing, although their Unicode category does not say so: joiners of graphemes,
# fillers of Hangul, vowels and separators without a shape, an empty Braille cell, variation selectors.
_UNDRAWN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


def collapsed(text: str) -> str:
    """Return `text` with its white space collapsed to single spaces."""
    return " ".join(text.split())


def folded(text: str) -> str:
    """Return what two spellings of a name have in common: white space, letter case and Unicode form aside."""
    return collapsed(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))


def is_hidden(letter: str) -> bool:
    """Return whether a letter cannot be seen where it is written, white space aside.

    Control and format characters, zero-width ones among them, halves of surrogate pairs, and letters drawn as
    nothing: two names that look the same would be two names.
    """
    if letter.isspace():
        return False
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs") or _UNDRAWN.match(letter) is not None


def dataset_name(text: object) -> str:
    """Return a data set's name with its white space collapsed.

    Names whose `folded` forms are equal mean the same data set. Raises `ArgumentError` if it is not a text, says
    nothing, or holds a control character or one that nobody sees.
    """
    if not isinstance(text, str) or not folded(text):
        raise ArgumentError('dataset must be a non-empty name, such as "flights".')
    if any(is_hidden(letter) or unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in text):
        raise ArgumentError(
            "dataset must not hold control or invisible characters, such as a tab, a line break or a zero-width space: "
            "two names that look the same would be two data sets. Type the name anew."
        )
    return collapsed(text)


MISSING = "(missing)"
"""The text of a missing key."""

_EMPTY = "(empty)"

_REPEATED_BLANK = re.compile("(?<= ) ")
"""Which a page would show as one."""

_MARKS = re.compile(r"([\\`*_\[\]<>|~&!$@{}])|(?<=[A-Za-z])(:)(?=//)|(?<=[Ww]{3})(\.)")


def printable(value: object) -> str:
    """Return a value as one line of text that cannot steer a terminal."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
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
    return _MARKS.sub(lambda match: f"\\{match[0]}", text)


def table_line(cells: Sequence[str]) -> str:
    """Return one line of a Markdown table; the cells are escaped already."""
    return f"| {' | '.join(cells)} |"


def exactly(value: float) -> str:
    """Return a number that somebody has chosen, as it was written."""
    mantissa, mark, exponent = repr(value).partition("e")
    return mantissa.removesuffix(".0") + (f"e{int(exponent)}" if mark else "")
