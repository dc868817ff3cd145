"""Strict JSON: a text that somebody else wrote, read without guessing; what is doubtful is refused."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from pkdp_pipeline.errors import ArgumentError

__all__ = ["read_json"]

_DEEPEST = 100
"""No certificate or report is nested so deep; what walks through a document relies on it."""


def read_json(content: bytes | str) -> Any:
    """Return the document of a JSON text.

    Raises
    ------
    ArgumentError
        If it is not JSON in UTF-8, names a field twice, holds a number that is not finite or text that is not
        Unicode, or is nested too deep. Readers differ in what they make of such texts, so nothing is made of them.
    """
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        document = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
        )
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    except ArgumentError:
        raise
    except RecursionError:
        raise ArgumentError("it is nested too deep.") from None
    except UnicodeError:
        raise ArgumentError("it holds what is not Unicode text.") from None
    except ValueError as error:
        place = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ArgumentError(f"it is not JSON{place}.") from None
    _check_depth(document)
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ArgumentError("it names a field twice.")
    return found


def _no_constant(_: str) -> NoReturn:
    raise ArgumentError("it holds a number that is not finite.")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_constant(text)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # more digits than Python reads
        raise ArgumentError("it holds a number of thousands of digits.") from None


def _check_depth(document: Any) -> None:
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise ArgumentError("it is nested too deep.")
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [value for values in inner for value in values]
