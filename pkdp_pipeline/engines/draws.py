"""How a person's cells are drawn: one public rule, fixed before the data, that every engine computes alike.

All are numbers below the prime p = 2^31 - 1. A value is the first four bytes of the MD5 of its text, the first counting
least, mod p; its text does not depend on the type that other rows give its column: 7, 7.0 and "7" are alike. A person
is the number a of her name, of a name in several columns ``(a0 * SPREAD + a1) mod p``, and so on. A cell is the number
b of the texts of its keys, each with its length before it. The draw of a person and a cell is ``(a + b)^5 mod p``: the
smallest of a person's draws wins, equal ones go to the smallest cell (docs/engines.md). Draws of up to five cells are
nearly independent: h1 (a + b1)^5 + … + h5 (a + b5)^5 is never constant (Vandermonde), and by Weil such sums of roots of
unity are at most 4 √p.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from pkdp_pipeline.engines.question import numbered
from pkdp_pipeline.model.selection import Selection

PRIME = 2**31 - 1
#: Sets the columns of a name apart.
SPREAD = 742938285
#: Whole numbers below it are spelled as such, also among reals.
WHOLE = 9e18


def number_of(text: str) -> int:
    """Return the number of a text."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "little") % PRIME


def unit_number(units: int, kinds: Mapping[str, str]) -> str:
    """Return SQL for the number of a unit: of columns n0, … where there are such, else of u0, …."""
    number = ""
    for name in numbered("u", units):
        known = name.replace("u", "n")
        column = known if known in kinds else _text_number(_text(name, kinds[name]))
        number = f"({number} * {SPREAD} + {column}) % {PRIME}" if number else column
    return number


def cell_number(keys: int, kinds: Mapping[str, str]) -> str:
    """Return SQL for the number of a cell in b0, b1, …."""
    texts = [_text(name, kinds[name]) for name in numbered("b", keys)]
    return _text_number(" || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts))


def with_draws(rows: str, number: str, pick: str) -> str:
    """Return the query for rows and each one's draw, given SQL for the numbers of its unit and its cell."""
    base = f"SELECT *, (coalesce({number}, 0) + {pick}) % {PRIME} AS x FROM {rows}"
    square = f"SELECT *, x * x % {PRIME} AS y FROM ({base})"
    return f"SELECT *, (y * y % {PRIME}) * x % {PRIME} AS draw FROM ({square})"


def drawn_statement(question: Selection, rows: str, number: str, nobody: str) -> str:
    """Return the query for (code, n, missing_unit): how many units each cell is drawn by.

    `rows` has the unit, the code of the cell, which is a whole number below 2^31 in the order of the cells, and `pick`,
    the cell's number. `number` is SQL for the unit's, `nobody` for whether there is none.
    """
    unit = ", ".join(numbered("u", len(question.unit)))
    # One number for a draw and, where two are equal, the smallest cell: everything is below 2^31.
    draws = f"SELECT {unit}, code, draw * {PRIME + 1} + code AS draw FROM ({with_draws(rows, number, 'pick')})"
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


def _text_number(text: str) -> str:
    # Quicker than to read the digits of md5(…).
    return f"(md5_number({text}) & 4294967295)::BIGINT % {PRIME}"


def _text(name: str, kind: str) -> str:
    """Return SQL for a value's text; 1.0 and 1.00 are spelled as 1: other people's rows may have given them zeros."""
    text = f"{name}::VARCHAR"
    if kind == "DOUBLE":
        whole = f"abs({name}) < {WHOLE} AND {name} = trunc({name})"
        return f"CASE WHEN {whole} THEN {name}::BIGINT::VARCHAR ELSE {text} END"
    return f"rtrim(rtrim({text}, '0'), '.')" if kind.startswith("DECIMAL") and not kind.endswith(",0)") else text
