"""The SQL that counts: one aggregate over the rows answers the counts and all checks at once.

The rows come from a relation ``pkdp_rows`` with the columns ``u0, u1, …`` (the unit), ``b0, b1, …`` (the cell),
``o0, o1, …`` (what comes first) and ``hit`` (whether a row satisfies a predicate). Only names made here appear
in these statements.
"""

from __future__ import annotations

from collections.abc import Sequence

from pkdp_pipeline.engines.question import SPACES, numbered
from pkdp_pipeline.errors import ArgumentError


def quoted(name: str) -> str:
    """Return a column name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return text as a SQL string."""
    return "'" + text.replace("'", "''") + "'"


def spelled(names: list[str]) -> str:
    """Return SQL that spells columns as text so that no two lists of values are spelled alike.

    A whole number among reals is spelled as among whole numbers, 1.0 as 1, up to where reals have an exponent.
    """
    texts = [
        f"CASE WHEN typeof({name}) = 'DOUBLE' AND suffix({name}::VARCHAR, '.0') "
        f"THEN ({name}::VARCHAR)[:-3] ELSE {name}::VARCHAR END"
        for name in names
    ]
    return " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)


def cells_statement(*, units: int, keys: int, one_cell: str, orders: int = 0, pick: str = "") -> str:
    """Return what follows ``WITH pkdp_rows AS (…)`` for (b0, b1, …, n, missing_unit, several_cells) per cell.

    `pick` is SQL for the cell's name as text, by default as DuckDB spells it.
    """
    cell = ", ".join(numbered("b", keys))
    if units == 0:
        return (
            f"SELECT {cell}, count(*) AS n, false AS missing_unit, false AS several_cells "
            f"FROM pkdp_rows GROUP BY {cell}"
        )
    if one_cell == "error":
        return _pairs_statement(units, keys)
    nobody = missing(units)
    rows = _one_row_per_unit(units, keys, one_cell, orders, pick or spelled(numbered("b", keys)))
    return (
        f"SELECT {cell}, count(*) FILTER (WHERE NOT ({nobody})) AS n, bool_or({nobody}) AS missing_unit, "
        f"false AS several_cells FROM ({rows}) GROUP BY {cell}"
    )


def tally_statement(*, units: int) -> str:
    """Return the query for (satisfying, population, missing_unit); ``hit`` says whether a row satisfies."""
    if units == 0:
        return (
            "SELECT count(*) FILTER (WHERE hit) AS satisfying, count(*) AS population, false AS missing_unit "
            "FROM pkdp_rows"
        )
    unit = ", ".join(numbered("u", units))
    nobody = missing(units)
    return (
        f"SELECT count(*) FILTER (WHERE hit AND NOT ({nobody})) AS satisfying, "
        f"count(*) FILTER (WHERE NOT ({nobody})) AS population, coalesce(bool_or({nobody}), false) AS missing_unit "
        f"FROM (SELECT {unit}, bool_or(hit) AS hit FROM pkdp_rows GROUP BY {unit})"
    )


def spaced_statement(texts: Sequence[str]) -> str:
    """Return the query for (spaced): whether one of these columns of text may have spaces around a value.

    It compares a first and a last character, which is quicker than to trim, and may say yes of other signs.
    """
    spaces = ", ".join(f"chr({ord(space)})" for space in SPACES)
    spaced = [
        f"CASE WHEN strlen({text}) = length({text}) THEN {text} < '!' OR ({text})[-1] < '!' "
        f"ELSE ({text})[1] IN ({spaces}) OR ({text})[-1] IN ({spaces}) END"
        for text in (f"{name}::VARCHAR" for name in texts)
    ]
    return f"SELECT coalesce(bool_or({' OR '.join(spaced)}), false) AS spaced FROM pkdp_rows"


def alike_statement(*, units: int, texts: Sequence[str]) -> str:
    """Return the query for (alike): whether two units are one when the columns of text among theirs are trimmed."""
    names = numbered("u", units)
    spaces = " || ".join(f"chr({ord(space)})" for space in SPACES)
    around = f"'^[' || {spaces} || ']+|[' || {spaces} || ']+$'"  # many times quicker than to trim so many signs
    trimmed = ", ".join(
        f"regexp_replace({name}::VARCHAR, {around}, '', 'g')" if name in texts else name for name in names
    )
    differ = " OR ".join(f"min({name}) <> max({name})" for name in names)
    return (
        f"SELECT count(*) > 0 AS alike FROM (SELECT 1 FROM pkdp_rows WHERE NOT ({missing(units)}) "
        f"GROUP BY {trimmed} HAVING {differ})"
    )


def _pairs_statement(units: int, keys: int) -> str:
    """Return the query where every unit should have one cell: as many pairs of unit and cell as units.

    The pairs are found once, as a count of distinct units per cell finds them. Units are told apart by GROUP BY
    alone, which knows what a collation takes for equal; hashes do not, nor does DuckDB 1's count(DISTINCT …).
    """
    unit, cell, nobody = ", ".join(numbered("u", units)), ", ".join(numbered("b", keys)), missing(units)
    units_found = f"SELECT {unit} FROM pkdp_pairs WHERE NOT ({nobody}) GROUP BY {unit}"
    n = f"count(*) FILTER (WHERE NOT ({nobody}))"
    return (
        f", pkdp_pairs AS MATERIALIZED (SELECT DISTINCT {unit}, {cell} FROM pkdp_rows) "
        f"SELECT {cell}, {n} AS n, bool_or({nobody}) AS missing_unit, "
        f"sum({n}) OVER () > (SELECT count(*) FROM ({units_found})) AS several_cells FROM pkdp_pairs GROUP BY {cell}"
    )


def missing(units: int) -> str:
    """Return SQL for whether a row's unit is missing."""
    return " OR ".join(f"{name} IS NULL" for name in numbered("u", units))


def _one_row_per_unit(units: int, keys: int, one_cell: str, orders: int, pick: str) -> str:
    """Return the query for (unit, cell) with the cell that the rule chooses."""
    unit, cells = ", ".join(numbered("u", units)), numbered("b", keys)
    cell = ", ".join(cells)
    rows = "pkdp_rows"
    if one_cell == "most_frequent":
        rows = (
            f"(SELECT {unit}, {cell}, -count(*) AS rarity, min({pick}) AS pick FROM pkdp_rows GROUP BY {unit}, {cell})"
        )
        rank = ["rarity", f"md5({spelled(numbered('u', units))} || pick)"]
    elif one_cell == "first":
        rank = _missing_last(numbered("o", orders))
    elif one_cell == "hash":
        rank = [f"md5({spelled(numbered('u', units))} || {pick})"]
    else:
        raise ArgumentError(f"one_cell has no rule {one_cell!r}.")
    # Equals go to the smallest cell, column by column.
    fields = [f"f{i} := {part}" for i, part in enumerate([*rank, *_missing_last(cells)])]
    values = [f"{name} := {name}" for name in cells]
    chosen = ", ".join(f"chosen.{name} AS {name}" for name in cells)
    best = f"min(struct_pack({', '.join([*fields, *values])})) AS chosen"
    return f"SELECT {unit}, {chosen} FROM (SELECT {unit}, {best} FROM {rows} GROUP BY {unit})"


def _missing_last(names: list[str]) -> list[str]:
    """Return what sorts by these columns, missing values last, whatever the session says about NULL."""
    return [part for name in names for part in (f"{name} IS NULL", name)]
