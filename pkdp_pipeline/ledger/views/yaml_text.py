"""YAML text: the few forms the registry's file needs, written so that every YAML reader takes them alike."""

from __future__ import annotations

import json
import re

__all__ = ["number", "quoted"]

# What YAML takes for a line break or does not allow unescaped; JSON's own escapes are YAML's too.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_BEYOND_ASCII = re.compile("[^\x00-\x7e]")


def quoted(text: str, *, plain: bool = False) -> str:
    """Return a text in double quotes; with `plain` in ASCII."""
    return (_BEYOND_ASCII if plain else _UNSAFE).sub(_escaped, json.dumps(text, ensure_ascii=False))


def number(value: float) -> str:
    """Return a number; readers of YAML 1.1 take ``1e-06`` for a text, and ``1.0e-06`` for a number."""
    text = repr(float(value))
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}e{exponent}" if mark else text


def _escaped(found: re.Match[str]) -> str:
    point = ord(found.group())
    return f"\\U{point:08x}" if point > 0xFFFF else f"\\u{point:04x}"
