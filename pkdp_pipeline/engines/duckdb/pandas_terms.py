"""Reading a pandas query string as Python reads it, so that what it asks can be looked at before it is asked."""

from __future__ import annotations

import ast
import re

__all__ = ["read_terms"]

#: A text, a column's name in backticks, or one of the signs that pandas reads as words.
_TOKENS = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|`((?:[^`]|``)*)`|([&|])""", re.DOTALL)


def read_terms(query: str) -> tuple[ast.AST, dict[str, str]] | None:
    """Return the syntax tree of a query string, and the columns behind its names that stand for backticks.

    None where it cannot be read: what is wrong with it, pandas says when it evaluates the whole.
    """
    names: dict[str, str] = {}

    def plain(token: re.Match[str]) -> str:
        text, name, sign = token.groups()
        if text is not None:
            return str(text)
        if sign is not None:
            return " and " if sign == "&" else " or "
        return names.setdefault(name.replace("``", "`"), f"pkdp_name_{len(names)}")

    try:
        tree = ast.parse(_TOKENS.sub(plain, query).strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree, {short: name for name, short in names.items()}
