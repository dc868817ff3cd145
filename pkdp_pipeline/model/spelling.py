"""Names that people write: which spellings of a data set or of a label mean the same."""

from __future__ import annotations

import re
import unicodedata

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

    Names whose `folded` forms are equal mean the same data set.

    Raises
    ------
    ArgumentError
        If it is not a text, says nothing, or holds a control character or one that nobody sees.
    """
    if not isinstance(text, str) or not folded(text):
        raise ArgumentError('dataset must be a non-empty name, such as "flights".')
    if any(is_hidden(letter) or unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in text):
        raise ArgumentError(
            "dataset must not hold control or invisible characters, such as a tab, a line break or a zero-width space: "
            "two names that look the same would be two data sets. Type the name anew."
        )
    return collapsed(text)
