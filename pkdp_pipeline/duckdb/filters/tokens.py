"""The words of a filter. What no filter may hold (comments, semicolons, parameters, …) is refused here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from pkdp_pipeline.errors import ArgumentError

__all__ = ["ALLOWED", "LONGEST", "Token", "refuse", "tokens"]

#: The longest filter that is read, in characters.
LONGEST = 4_000
ALLOWED = (
    "A filter may use columns; comparisons (=, <>, <, <=, >, >=) of a column with a constant; BETWEEN; IN (...); "
    "IS [NOT] NULL, TRUE or FALSE; AND, OR, NOT and parentheses. Constants are numbers, 'text', TRUE, FALSE, "
    "DATE '...' and TIMESTAMP '...'. Anything else: make a view with a boolean column, and filter by that."
)

_PATTERN = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_.]))
    | (?P<text>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")+")
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign><=|>=|<>|!=|==|(?!--)[-=<>(),+])
    """,
    re.VERBOSE,
)
_FOREIGN = {
    "--": "a comment",
    "/*": "a comment",
    "::": "a cast",
    ";": "a semicolon",
    "?": "a parameter",
    "$": "a parameter",
    ":": "a parameter",
    ".": "a dot: columns are named without their table",
    "'": "a text that does not end",
    '"': "a quoted name that does not end",
    "[": "a list",
    "{": "a struct",
    "`": 'a backtick: names are quoted with "..."',
} | dict.fromkeys("+-*/%|&~^!#@", "an operator that is no comparison")
_QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u02b9\u02bc\u00b4\u2032\u2033\uff02\uff07\u00ab\u00bb"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One word of a filter. A text or a quoted name comes without its quotes."""

    kind: Literal["number", "text", "name", "word", "sign", "end"]
    text: str
    position: int


def refuse(what: str, position: int | None = None) -> NoReturn:
    """Raise the error that says what a filter may not hold and what it may."""
    where = "" if position is None else f" (character {position + 1})"
    raise ArgumentError(f"filter has {what}{where}. {ALLOWED}")


def tokens(text: str) -> list[Token]:
    """Return the words of a filter, the last of them "end".

    Raises
    ------
    ArgumentError
        If it is longer than `LONGEST`, empty, or holds what no filter may.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"filter must be a text, not {type(text).__name__}.")
    if len(text) > LONGEST:
        raise ArgumentError(f"filter is longer than {LONGEST} characters; make a view with a boolean column instead.")
    for position, character in enumerate(text):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            refuse("a character that no text may hold", position)
    found = []
    position = 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None:
            refuse(_foreign(text, position), position)
        kind, piece = str(match.lastgroup), match.group()
        if kind in ("text", "name"):
            piece = piece[1:-1].replace(piece[0] * 2, piece[0])
        if kind != "space":
            found.append(Token(kind=kind, text=piece, position=position))  # type: ignore[arg-type]
        position = match.end()
    if not found:
        raise ArgumentError("filter is empty; leave it out where every row is meant.")
    return [*found, Token(kind="end", text="", position=len(text))]


def _foreign(text: str, position: int) -> str:
    character = text[position]
    what = _FOREIGN.get(text[position : position + 2], _FOREIGN.get(character))
    if what is not None:
        return what
    if character in _QUOTES:
        return f"the quote {character}; texts are written with ' and names with \""
    if character.isdigit():
        return "a number that cannot be read"
    if character.isalpha():
        return f"the letter {character!r} outside quotes; write such a name in double quotes"
    return f"the character {character!r} outside quotes"
