"""Names that people write: which spellings of a data set or of a label mean the same."""

from __future__ import annotations

import unicodedata

from pkdp_pipeline.errors import ArgumentError

__all__ = ["collapsed", "dataset_name", "folded"]


def collapsed(text: str) -> str:
    """Return `text` with its white space collapsed to single spaces."""
    return " ".join(text.split())


def folded(text: str) -> str:
    """Return what two spellings of a name have in common: white space, letter case and Unicode form aside."""
    return collapsed(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))


def dataset_name(text: object) -> str:
    """Return a data set's name with its white space collapsed.

    Names whose `folded` forms are equal mean the same data set.

    Raises
    ------
    ArgumentError
        If it is not a text, or says nothing.
    """
    if not isinstance(text, str) or not folded(text) or "\0" in text:
        raise ArgumentError('dataset must be a non-empty name, such as "flights".')
    return collapsed(text)
