"""How a person's cells are drawn: one public rule, fixed before the data, that every engine computes alike.

All are numbers below the prime p = 2^31 - 1. A whole number v is v mod p, whatever the type that holds it; any other
value is the first four bytes of the MD5 of its text, the first counting least, mod p. A person is the number a of her
name, of a name in several columns ``(a0 * SPREAD + a1) mod p``, and so on. A cell is the number b of the texts of its
keys, each with its length before it. The draw of a person and a cell is ``(a + b)^5 mod p``: the smallest of a person's
draws wins, equal ones go to the smallest cell. docs/engines.md says what that is good for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from pkdp_pipeline.engines.question import numbered
from pkdp_pipeline.model.question import Selection

PRIME = 2**31 - 1
#: Sets the columns of a name apart.
SPREAD = 742938285
#: Whole numbers below it are spelled and numbered as such, also among reals.
WHOLE = 9e18

_SIZES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_WHOLE = frozenset([*_SIZES, *(f"U{size}" for size in _SIZES)])


def number_of(text: str) -> int:
    """Return the number of a text."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "little") % PRIME


def unit_number(units: int, kinds: Mapping[str, str]) -> str:
    """Return SQL for the number of a unit: of columns n0, … where there are such, else of u0, …."""
    number = ""
    for name in numbered("u", units):
        known = name.replace("u", "n")
        column = known if known in kinds else _value_number(name, kinds[name])
        number = f"({number} * {SPREAD} + {column}) % {PRIME}" if number else column
    return number


def cell_number(keys: int, kinds: Mapping[str, str]) -> str:
    """Return SQL for the number of a cell in b0, b1, …."""
    texts = [_text(name, kinds[name]) for name in numbered("b", keys)]
    return _text_number(" || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts))


def drawn_statement(question: Selection, rows: str, number: str, nobody: str) -> str:
    """Return the query for (code, n, missing_unit): how many units each cell is drawn by.

    `rows` has the unit, the code of the cell, which is a whole number below 2^31 in the order of the cells, and `pick`,
    the cell's number. `number` is SQL for the unit's, `nobody` for whether there is none.
    """
    unit = ", ".join(numbered("u", len(question.unit)))
    # One number for a draw and, where two are equal, the smallest cell: everything is below 2^31.
    base = f"SELECT {unit}, code, (coalesce({number}, 0) + pick) % {PRIME} AS x FROM {rows}"
    square = f"SELECT *, x * x % {PRIME} AS y FROM ({base})"
    draws = f"SELECT {unit}, code, (y * y % {PRIME}) * x % {PRIME} * {PRIME + 1} + code AS draw FROM ({square})"
    pairs = f"SELECT {unit}, -count(*) AS rarity, min(draw) AS draw FROM ({draws}) GROUP BY {unit}, code"
    if question.one_cell == "most_frequent":
        chosen = f"SELECT {unit}, min(struct_pack(rarity := rarity, draw := draw)).draw AS draw FROM ({pairs})"
    elif question.cells_per_unit > 1:
        chosen = f"SELECT {unit}, unnest(min(draw, {question.cells_per_unit})) AS draw FROM ({pairs})"
    else:
        chosen = f"SELECT {unit}, min(draw) AS draw FROM ({draws})"
    return (
        f"SELECT draw & {PRIME} AS code, count(*) FILTER (WHERE NOT ({nobody})) AS n, "
        f"bool_or({nobody}) AS missing_unit FROM ({chosen} GROUP BY {unit}) GROUP BY code"
    )


def _value_number(name: str, kind: str) -> str:
    if kind in _WHOLE:
        return f"(({name} % {PRIME})::BIGINT + {PRIME}) % {PRIME}"
    number = _text_number(f"{name}::VARCHAR")
    if kind != "DOUBLE":
        return number
    return f"CASE WHEN {_is_whole(name)} THEN {_value_number(f'{name}::BIGINT', 'BIGINT')} ELSE {number} END"


def _text_number(text: str) -> str:
    # Quicker than to read the digits of md5(…).
    return f"(md5_number({text}) & 4294967295)::BIGINT % {PRIME}"


def _text(name: str, kind: str) -> str:
    """Return SQL for a value's text; 1.0 is spelled as 1: that a column holds reals may be owed to another person."""
    text = f"{name}::VARCHAR"
    return f"CASE WHEN {_is_whole(name)} THEN {name}::BIGINT::VARCHAR ELSE {text} END" if kind == "DOUBLE" else text


def _is_whole(real: str) -> str:
    return f"abs({real}) < {WHOLE} AND {real} = trunc({real})"
