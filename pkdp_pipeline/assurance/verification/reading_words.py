"""Reading words: the pairs of ε and δ that a text names, also where its letters only look like these."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

__all__ = ["Read", "names_guarantee", "names_numbers", "read_pairs"]

_ALIKE = str.maketrans(
    {**dict.fromkeys("ϵɛεεεєԑέƐΕ", "ε"), **dict.fromkeys("δδẟժƍ", "δ"), **dict.fromkeys("−–—‒‐‑﹣", "-")}
)
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
_NAMES = (re.compile(r"\beps(?:ilon)?\b", re.IGNORECASE), "ε"), (re.compile(r"\bdelta\b", re.IGNORECASE), "δ")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?(?![0-9.]*[0-9·×*^])"
_PAIR = re.compile(rf"ε ?= ?({_NUMBER}), ?δ ?= ?({_NUMBER})")
_NO_CLAIM = re.compile(rf"no ε reaches δ = {_NUMBER}|\(δ includes the chance of what they say\)")
_CLAIM = re.compile(r"ε ?[=<≤:]? ?[0-9][^ ]*,? (?:and )?δ ?[=<≤:]? ?[0-9]|private at\b|against anyone\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was read in a text.

    Parameters
    ----------
    pairs : tuple of (float, float, str, str)
        ε, δ, and what stands before and after them.
    whole : bool
        Whether nothing else in the text names ε or δ.
    """

    pairs: tuple[tuple[float, float, str, str], ...]
    whole: bool


def read_pairs(text: str) -> Read:
    """Return the pairs that a text names."""
    plain = _plain(text)
    pairs = tuple(
        (float(found[1]), float(found[2]), plain[: found.start()], plain[found.end() :])
        for found in _PAIR.finditer(plain)
    )
    left = _NO_CLAIM.sub("", _PAIR.sub("", plain))
    return Read(pairs=pairs, whole="ε" not in left and "δ" not in left)


def names_guarantee(text: str) -> bool:
    """Return whether a text names an ε together with a δ, or speaks as a guarantee does."""
    return _CLAIM.search(_plain(text)) is not None


def names_numbers(text: str) -> bool:
    """Return whether a text names ε or δ at all."""
    plain = _plain(text)
    return "ε" in plain or "δ" in plain


def _plain(text: str) -> str:
    """Return a text with one spelling of each letter, sign and digit that matters here."""
    plain = _HIDDEN.sub("", unicodedata.normalize("NFKC", text)).translate(_ALIKE)
    for pattern, letter in _NAMES:
        plain = pattern.sub(letter, plain)
    return plain
