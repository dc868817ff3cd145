"""Statements after ``WITH pkdp_rows AS (…)``: SQL for DuckDB of counts, drawn cells and sums; see `engines.rows`.

How a person's cells are drawn is one public rule, fixed before the data, that every engine computes alike.
All are numbers below the prime p = 2^31 - 1. A value is the first four bytes of the MD5 of its text, the first counting
least, mod p; its text does not depend on the type that other rows give its column: 7, 7.0 and "7" are alike. A person
is the number a of her name, of a name in several columns ``(a0 * SPREAD + a1) mod p``, and so on. A cell is the number
b of the texts of its keys, each with its length before it. The draw of a person and a cell is ``(a + b)^5 mod p``: the
smallest of a person's draws wins, equal ones go to the smallest cell (docs/engines.md). Draws of up to five cells are
nearly independent: h1 (a + b1)^5 + … + h5 (a + b5)^5 is never constant (Vandermonde), and by Weil such sums of roots of
unity are at most 4 √p.

Sums per cell are of what each person adds: the sum of a column over her rows there, clamped to public bounds.
`v` is the number in a row. A missing one adds nothing, and one beyond ±10^12 counts as that: so no engine overflows
where another does not.

A cell's code is a hash, and a unit's codes are joined bit by bit: the result shows whether the unit has one cell. The
cells are few and are read first, each with its code. No code has all the bits of another, or this is not tried. Then
joined bits of several codes are no cell's: that cell's code would have all the bits of each of them, and so would be
each of them. So a unit whose joined bits are a cell's code has that cell in every row, and nothing here depends on
codes being different, but for how fast the answer comes.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from functools import partial, reduce

import numpy as np
import numpy.typing as npt

from pkdp_pipeline.engines import DRAWN, NO_DOUBTS, SPACES, Doubts, numbered
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import Selection

#: A method of DuckDB's relations and the SQL that it is given: a filter, or an aggregate and what it groups by.
Step = tuple[str, ...]
PRIME = 2**31 - 1
#: Sets the columns of a name apart.
SPREAD = 742938285
#: Whole numbers below it are spelled as such, also among reals.
WHOLE = 9e18


def operation(operator: str, *operands: str) -> str:
    """Return SQL for what DuckDB's own operator makes of its operands; a macro may have the operator's name."""
    return f'system.main."{operator}"({", ".join(operands)})'


def _modulo(number: str) -> str:
    return operation("%", number, str(PRIME))


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
        number = _modulo(operation("+", operation("*", number, str(SPREAD)), column)) if number else column
    return number


def cell_number(keys: int, kinds: Mapping[str, str]) -> str:
    """Return SQL for the number of a cell in b0, b1, …."""
    texts = [_text(name, kinds[name]) for name in numbered("b", keys)]
    measured = (operation("||", operation("||", f"length({text})", "':'"), text) for text in texts)
    return _text_number(reduce(partial(operation, "||"), (f"coalesce({text}, '-')" for text in measured)))


def with_draws(rows: str, number: str, pick: str) -> str:
    """Return the query for rows and each one's draw, given SQL for the numbers of its unit and its cell."""
    base = f"SELECT *, {_modulo(operation('+', f'coalesce({number}, 0)', pick))} AS x FROM {rows}"
    square = f"SELECT *, {_modulo(operation('*', 'x', 'x'))} AS y FROM ({base})"
    draw = _modulo(operation("*", _modulo(operation("*", "y", "y")), "x"))
    return f"SELECT *, {draw} AS draw FROM ({square})"


def drawn_statement(question: Selection, rows: str, number: str, nobody: str) -> str:
    """Return the query for (code, n, missing_unit): how many units each cell is drawn by.

    `rows` has the unit, the code of the cell, which is a whole number below 2^31 in the order of the cells, and `pick`,
    the cell's number. `number` is SQL for the unit's, `nobody` for whether there is none.
    """
    unit = ", ".join(numbered("u", len(question.unit)))
    # One number for a draw and, where two are equal, the smallest cell: everything is below 2^31.
    joined = operation("+", operation("*", "draw", str(PRIME + 1)), "code")
    draws = f"SELECT {unit}, code, {joined} AS draw FROM ({with_draws(rows, number, 'pick')})"
    pairs = (
        f"SELECT {unit}, {operation('-', 'count(*)')} AS rarity, min(draw) AS draw FROM ({draws}) GROUP BY {unit}, code"
    )
    if question.one_cell == "most_frequent":
        chosen = f"SELECT {unit}, min(struct_pack(rarity := rarity, draw := draw)).draw AS draw FROM ({pairs})"
    elif question.cells_per_unit > 1:
        chosen = f"SELECT {unit}, unnest(min(draw, {question.cells_per_unit})) AS draw FROM ({pairs})"
    else:
        chosen = f"SELECT {unit}, min(draw) AS draw FROM ({draws})"
    return (
        f"SELECT {operation('&', 'draw', str(PRIME))} AS code, count(*) FILTER (WHERE NOT ({nobody})) AS n, "
        f"bool_or({nobody}) AS missing_unit FROM ({chosen} GROUP BY {unit}) GROUP BY code"
    )


def _text_number(text: str) -> str:
    # Quicker than to read the digits of md5(…).
    return _modulo(f"{operation('&', f'md5_number({text})', '4294967295')}::BIGINT")


def _text(name: str, kind: str) -> str:
    """Return SQL for a value's text; 1.0 and 1.00 are spelled as 1: other people's rows may have given them zeros."""
    text = f"{name}::VARCHAR"
    if kind == "DOUBLE":
        whole = f"abs({name}) < {WHOLE} AND {name} = trunc({name})"
        return f"CASE WHEN {whole} THEN {name}::BIGINT::VARCHAR ELSE {text} END"
    return f"rtrim(rtrim({text}, '0'), '.')" if kind.startswith("DECIMAL") and not kind.endswith(",0)") else text


#: Bits of half a code, and all of them.
BITS = 31
HALF = (1 << BITS) - 1


def missing(units: int) -> str:
    """Return SQL for whether a row's unit is missing."""
    return " OR ".join(f"{name} IS NULL" for name in numbered("u", units))


def code_of(cell: str) -> str:
    """Return SQL for the hash of a cell's keys; of the number 0 alone it would be 0, which is part of every other."""
    return f"hash({cell}, 1)"


#: More cells than this are counted another way.
MAX_CODES = 1 << 12

_Hashes = npt.NDArray[np.uint64]


def joinable(codes: _Hashes) -> bool:
    """Return whether these hashes, one per cell, are few and none has all the bits of another."""
    return 0 < len(codes) <= MAX_CODES and not any(np.count_nonzero((code & ~codes) == 0) > 1 for code in codes)


def cells_statement(question: Selection, *, keys: int) -> str:
    """Return what follows ``WITH pkdp_rows AS (…)`` for (b0, b1, …, n, missing_unit, several_cells) per cell.

    `keys` columns name a cell there. No hash draws.
    """
    units, one_cell, most = len(question.unit), question.one_cell, question.cells_per_unit
    cell = ", ".join(numbered("b", keys))
    if units == 0:
        return (
            f"SELECT {cell}, count(*) AS n, false AS missing_unit, false AS several_cells "
            f"FROM pkdp_rows GROUP BY {cell}"
        )
    if one_cell == "error":
        return _pairs_statement(units, keys, most)
    if one_cell != "first":
        raise ArgumentError(f"one_cell has no rule {one_cell!r}.")
    nobody = missing(units)
    return (
        f"SELECT {cell}, count(*) FILTER (WHERE NOT ({nobody})) AS n, bool_or({nobody}) AS missing_unit, "
        f"false AS several_cells FROM ({_first_rows(units, keys, len(question.order_by))}) GROUP BY {cell}"
    )


def _pairs_statement(units: int, keys: int, most: int) -> str:
    """Return the query where every unit should have one cell, as many pairs of unit and cell as units; or `most` cells.

    The pairs are found once, as a count of distinct units per cell finds them.
    """
    unit, cell, nobody = ", ".join(numbered("u", units)), ", ".join(numbered("b", keys)), missing(units)
    units_found = f"SELECT {unit} FROM pkdp_pairs WHERE NOT ({nobody}) GROUP BY {unit}"
    n = f"count(*) FILTER (WHERE NOT ({nobody}))"
    several = f"sum({n}) OVER () > (SELECT count(*) FROM ({units_found}))"
    if most > 1:
        several = f"(SELECT count(*) > 0 FROM ({units_found} HAVING count(*) > {most}))"
    return (
        f", pkdp_pairs AS MATERIALIZED (SELECT DISTINCT {unit}, {cell} FROM pkdp_rows) "
        f"SELECT {cell}, {n} AS n, bool_or({nobody}) AS missing_unit, {several} AS several_cells "
        f"FROM pkdp_pairs GROUP BY {cell}"
    )


def _first_rows(units: int, keys: int, orders: int) -> str:
    """Return the query for (unit, cell) with the cell of the unit's first row."""
    unit, cells = ", ".join(numbered("u", units)), numbered("b", keys)
    # Equals go to the smallest cell, column by column.
    fields = [f"f{i} := {part}" for i, part in enumerate(missing_last([*numbered("o", orders), *cells]))]
    values = [f"{name} := {name}" for name in cells]
    chosen = ", ".join(f"chosen.{name} AS {name}" for name in cells)
    best = f"min(struct_pack({', '.join([*fields, *values])})) AS chosen"
    return f"SELECT {unit}, {chosen} FROM (SELECT {unit}, {best} FROM pkdp_rows GROUP BY {unit})"


def missing_last(names: list[str]) -> list[str]:
    """Return what sorts by these columns, missing values last, whatever the session says about NULL."""
    return [part for name in names for part in (f"{name} IS NULL", name)]


def tally_steps(*, units: int, everybody: bool = True, doubts: Doubts = NO_DOUBTS, more: str = "") -> list[Step]:
    """Return the steps to (satisfying, population, missing_unit, doubtful, n), where ``hit`` says which rows satisfy.

    Without `everybody` the population is NULL, and with `doubts` see `doubtful`; n is 0 of no rows. `more`: a further
    column.
    """
    counted = f"{doubtful(doubts)} AS doubtful, count(*) AS n{more}"
    if units == 0:
        tally = "count(*) FILTER (WHERE hit) AS satisfying, count(*) AS population, false AS missing_unit"
        return [("aggregate", f"{tally}, {counted}")]
    unit, nobody = ", ".join(numbered("u", units)), missing(units)
    population = f"count(*) FILTER (WHERE NOT ({nobody}))" if everybody else "NULL::BIGINT"
    tally = f"count(*) FILTER (WHERE hit AND NOT ({nobody})) AS satisfying, {population} AS population"
    return [
        *([] if everybody or doubts else [("filter", f"hit OR {nobody}")]),
        ("aggregate", f"{unit}, bool_or(hit) AS hit", unit),
        ("aggregate", f"{tally}, coalesce(bool_or({nobody}), false) AS missing_unit, {counted}"),
    ]


def hits_statement(*, units: int) -> str:
    """Return the query of `tally_steps` without everybody that reads the rows twice, first those that satisfy."""
    nobody = missing(units)
    return (
        "SELECT count(*) AS satisfying, NULL::BIGINT AS population, "
        f"(SELECT count(*) > 0 FROM pkdp_rows WHERE {nobody}) AS missing_unit "
        f"FROM (SELECT 1 FROM pkdp_rows WHERE hit AND NOT ({nobody}) GROUP BY {', '.join(numbered('u', units))})"
    )


def homes_steps(*, units: int, keys: int, doubts: Doubts = NO_DOUBTS, more: str = "") -> list[Step]:
    """Return the steps to (is_cell, nobody, code, b0, b1, …, n, doubtful): cells' codes, and how many units have each.

    A cell's code is half a hash beside its complement, and a unit's the joined bits of its cells'. So the joined bits
    of two codes are nobody's code, and a unit whose joined bits are a code has rows with this code alone. `more`: a
    further column.
    """
    unit, cell, nobody = ", ".join(numbered("u", units)), ", ".join(numbered("b", keys)), missing(units)
    half = operation("&", code_of(cell), str(HALF))
    code = operation("|", half, operation("<<", f"xor({half}, {HALF}::UBIGINT)", str(BITS)))
    joined = f"{cell}, {unit}, grouping({cell}) = 0 AS is_cell, {nobody} AS nobody, bit_or({code}) AS code"
    by = f"is_cell, nobody, code, {cell}"
    return [
        ("aggregate", joined, f"GROUPING SETS (({unit}), ({cell}))"),
        ("aggregate", f"{by}, count(*) AS n, {doubtful(doubts)} AS doubtful{more}", by),
    ]


def doubtful(doubts: Doubts) -> str:
    """Return an aggregate for whether a unit is to be looked at by `units_statement`.

    Of text it compares a first and a last character with spaces, which is quicker than to trim, and may say yes of
    other signs.
    """
    # One literal: DuckDB plans a list of 29 signs for as long as it counts a day of 30,000 rows.
    spaced = [
        f"CASE WHEN strlen({text}) = length({text}) THEN {text} < '!' OR ({text})[-1] < '!' "
        f"ELSE contains('{SPACES}', ({text})[1]) OR contains('{SPACES}', ({text})[-1]) END"
        for text in (f"{name}::VARCHAR" for name in doubts.texts)
    ]
    rounded = [f"abs({name}) BETWEEN {least} AND {sys.float_info.max}" for name, least in doubts.reals.items()]
    return f"coalesce(bool_or({' OR '.join([*spaced, *rounded])}), false)" if doubts else "false"


def units_statement(*, units: int, doubts: Doubts) -> str:
    """Return the query for (alike, rounded), one row, as `Units` has them."""
    names = numbered("u", units)
    spaces = ", ".join(f"chr({ord(space)})" for space in SPACES)
    around = f"concat('^[', {spaces}, ']+|[', {spaces}, ']+$')"  # many times quicker than to trim so many signs
    trimmed = ", ".join(
        f"regexp_replace({name}::VARCHAR, {around}, '', 'g')" if name in doubts.texts else name for name in names
    )
    differ = " OR ".join(f"min({name}) <> max({name})" for name in names)
    alike = f"SELECT 1 FROM pkdp_rows WHERE NOT ({missing(units)}) GROUP BY {trimmed} HAVING {differ}"
    rounded = f"SELECT {doubtful(Doubts(reals=doubts.reals))} FROM pkdp_rows LIMIT 1"
    return f"SELECT {f'EXISTS ({alike})' if doubts.texts else 'false'} AS alike, ({rounded}) AS rounded"


LARGEST = 10**12
"""The largest number that a row adds."""

_NARROW = frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"})
_WIDE = re.compile(r"U?BIGINT|U?HUGEINT|DECIMAL\(\d+,\s*0\)")


def not_whole(name: str, kind: object) -> ArgumentError:
    """Return what to say of a summed column that holds no whole numbers, by its type."""
    return ArgumentError(
        f"summed column {name!r} has type {kind}, and whole numbers alone are summed: convert it, in pandas for "
        'example with .astype("Int64"), in SQL with CAST(… AS BIGINT); of a CSV file, declare '
        f'types = {{ {name} = "number" }} in source. Of amounts with decimals sum the smallest unit.'
    )


def whole_number_sql(name: str, column: str, kind: str) -> str:
    """Return SQL for the number that a row of a quoted column adds; see `not_whole`."""
    if kind == '"NULL"':  # without a type there is no value
        return "0::BIGINT"
    if kind in _NARROW:
        return f"coalesce({column}, 0)::BIGINT"
    if not _WIDE.fullmatch(kind):
        raise not_whole(name, kind.partition("(")[0])
    # `least` and `greatest` leave NULL out.
    if kind == "UHUGEINT":
        return f"least(coalesce({column}, 0), {LARGEST}::UHUGEINT)::BIGINT"
    exact = kind if kind == "BIGINT" else "HUGEINT"
    return f"greatest(least(coalesce({column}, 0)::{exact}, {LARGEST}::{exact}), ({-LARGEST})::{exact})::BIGINT"


def sums_statement(question: Selection, kinds: Mapping[str, str]) -> str:
    """Return what follows ``WITH pkdp_rows AS (…)`` for (b0, …, n, total, missing_unit, several_cells) per cell.

    `kinds`: the SQL types of the rows' columns; n0, … and pick are as in `engines.memory`. Where p is one of them, each
    value of it is a table of its own, for ``one_cell="error"``.
    """
    keys, units = [name for name in kinds if name[0] == "b"], numbered("u", len(question.unit))
    cell, unit, nobody = ", ".join([*keys, *{"p"} & kinds.keys()]), ", ".join(units), missing(len(units)) or "false"
    least, most = question.bounds or (0, 0)

    def clamped(number: str) -> str:
        return f"least(greatest({number}, {least}), {most})::BIGINT AS added"

    totals = (
        f"SELECT {cell}, count(*) FILTER (WHERE NOT ({nobody})) AS n, "
        f"coalesce(sum(added) FILTER (WHERE NOT ({nobody})), 0)::BIGINT AS total, bool_or({nobody}) AS missing_unit"
    )
    if not units:
        return f"{totals}, false AS several_cells FROM (SELECT {cell}, {clamped('v')} FROM pkdp_rows) GROUP BY {cell}"
    same = [unit, cell, *(name for name in kinds if name[0] == "n" or name == "pick")]
    first = [part for name in numbered("o", len(question.order_by)) for part in (f"{name} IS NULL", name)]
    fields = ", ".join(f"f{place} := {part}" for place, part in enumerate(first))
    early = f", min(struct_pack({fields})) AS early" if first else ""
    pairs = f"SELECT {', '.join(same)}, count(*) AS often, {clamped('sum(v)')}{early} FROM pkdp_rows GROUP BY ALL"
    if question.one_cell == "error":
        table = "p" if "p" in kinds else "true"
        persons = f"FROM pkdp_pairs WHERE NOT ({nobody}) GROUP BY {table}, {unit} HAVING count(*) > 1"
        several = f"{table} IN (SELECT {table} {persons}) AS several_cells"
        return f", pkdp_pairs AS MATERIALIZED ({pairs}) {totals}, {several} FROM pkdp_pairs GROUP BY {cell}"
    if question.one_cell in DRAWN:
        pick = "pick" if "pick" in kinds else cell_number(len(keys), kinds)
        pairs = with_draws(f"({pairs})", unit_number(len(units), kinds), pick)
    # Equals go to the smallest cell, missing keys last.
    rules = {"hash": ["draw"], "most_frequent": ["often DESC", "draw"], "first": ["early"]}
    order = [*rules[question.one_cell], *(part for name in keys for part in (f"{name} IS NULL", name))]
    place = f"row_number() OVER (PARTITION BY {unit} ORDER BY {', '.join(order)})"
    chosen = f"SELECT * FROM ({pairs}) QUALIFY {place} <= {question.cells_per_unit}"
    return f"{totals}, false AS several_cells FROM ({chosen}) GROUP BY {cell}"
