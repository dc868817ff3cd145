"""LIKE: a pattern in its one spelling, and the tests and the regular expression that mean the same in every engine."""

from __future__ import annotations

import re

from pkdp_pipeline.errors import ArgumentError

#: The longest pattern that is read, in characters.
_MAX_PATTERN_LENGTH = 200
_ESCAPE = "\\"


def like_pattern(argument: str, text: str, escape: str = _ESCAPE) -> str:
    r"""Return a pattern in its one spelling: ``\`` stands before a ``%``, ``_`` or ``\`` that means itself.

    Of neighbouring wildcards ``_`` comes first, and one ``%`` says what several do. `argument` is what an
    error names. `escape`: the character before one that means itself; empty where all ``%`` and ``_`` are wildcards.
    Raises `ArgumentError` if it is too long, or ends with the escape character.
    """
    if len(text) > _MAX_PATTERN_LENGTH:
        raise ArgumentError(
            f"{argument} has a pattern of more than {_MAX_PATTERN_LENGTH} characters; write a shorter one, or make a "
            "boolean column."
        )
    spelled, ones, many = "", 0, False
    characters = iter(text)
    for character in characters:
        itself = bool(escape) and character == escape
        if itself:
            character = next(characters, "")  # noqa: PLW2901
            if not character:
                raise ArgumentError(f"{argument} has a pattern that ends with its escape character; write it twice.")
        elif character in "%_":
            ones, many = ones + (character == "_"), many or character == "%"
            continue
        spelled, ones, many = spelled + "_" * ones + "%" * many + literally(character), 0, False
    return spelled + "_" * ones + "%" * many


def literally(text: str) -> str:
    """Return the pattern of this text alone."""
    return re.sub(r"[%_\\]", r"\\\g<0>", text)


def plain_pieces(pattern: str) -> tuple[str, ...] | None:
    """Return the texts around the ``%`` of a pattern; None where it has a ``_``."""
    tokens = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    if "_" in tokens:
        return None
    return tuple("".join(token[-1] for token in piece) for piece in _split(tokens))


def _split(tokens: list[str]) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for token in tokens:
        if token == "%":
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def like_regex(pattern: str) -> str:
    """Return a regular expression, found in just the texts that a pattern matches.

    It is one that RE2 (DuckDB, Arrow, BigQuery), Rust (Polars) and Java (Spark) read alike; all but Java take time in
    proportion to the text, whatever the pattern.
    """
    wildcards = {"%": ".*", "_": "."}
    tokens = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    return r"(?s)\A" + "".join(wildcards.get(token) or _character(token[-1]) for token in tokens) + r"\z"


def _character(character: str) -> str:
    plain = character.isascii() and character.isalnum()
    return character if plain else rf"\x{{{ord(character):x}}}"
