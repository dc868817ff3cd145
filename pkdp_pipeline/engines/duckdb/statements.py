"""The SQL that counts: one aggregate over the rows answers the counts and all checks at once.

The rows come from a relation ``pkdp_rows`` with the columns ``u0, u1, …`` (the unit), ``cell`` (a whole number
that orders the cells), ``o0, o1, …`` (what comes first) and ``pick`` (the cell's name as text). Only names
made here appear in these statements.
"""

from __future__ import annotations

from pkdp_pipeline.errors import ArgumentError

__all__ = ["cells_statement", "literal", "quoted", "tally_statement", "unit_names"]


def quoted(name: str) -> str:
    """Return a column name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return text as a SQL string."""
    return "'" + text.replace("'", "''") + "'"


def unit_names(columns: int) -> list[str]:
    """Return the names of the unit's columns in ``pkdp_rows``."""
    return [f"u{position}" for position in range(columns)]


def cells_statement(*, units: int, one_cell: str, orders: int = 0) -> str:
    """Return the query for (cell, n, missing_unit, several_cells), one row per cell."""
    if units == 0:
        return "SELECT cell, count(*) AS n, false AS missing_unit, false AS several_cells FROM pkdp_rows GROUP BY cell"
    unit = ", ".join(unit_names(units))
    missing = _missing(units)
    return (
        f"SELECT cell, count(*) FILTER (WHERE NOT ({missing})) AS n, bool_or({missing}) AS missing_unit, "
        f"bool_or(cell <> last_cell AND NOT ({missing})) AS several_cells "
        f"FROM ({_one_row_per_unit(unit, one_cell, orders)}) GROUP BY cell"
    )


def tally_statement(*, units: int) -> str:
    """Return the query for (satisfying, population, missing_unit); ``hit`` says whether a row satisfies."""
    if units == 0:
        return (
            "SELECT count(*) FILTER (WHERE hit) AS satisfying, count(*) AS population, false AS missing_unit "
            "FROM pkdp_rows"
        )
    unit = ", ".join(unit_names(units))
    missing = _missing(units)
    return (
        f"SELECT count(*) FILTER (WHERE hit AND NOT ({missing})) AS satisfying, "
        f"count(*) FILTER (WHERE NOT ({missing})) AS population, coalesce(bool_or({missing}), false) AS missing_unit "
        f"FROM (SELECT {unit}, bool_or(hit) AS hit FROM pkdp_rows GROUP BY {unit})"
    )


def _missing(units: int) -> str:
    return " OR ".join(f"{name} IS NULL" for name in unit_names(units))


def _one_row_per_unit(unit: str, one_cell: str, orders: int) -> str:
    """Return the query for (unit, cell, last_cell): `last_cell` differs where a unit has several cells."""
    if one_cell == "error":
        return f"SELECT {unit}, min(cell) AS cell, max(cell) AS last_cell FROM pkdp_rows GROUP BY {unit}"
    rows = "pkdp_rows"
    if one_cell == "most_frequent":
        rows = f"(SELECT {unit}, cell, -count(*) AS rarity FROM pkdp_rows GROUP BY {unit}, cell)"
        ranked = ["rarity"]
    elif one_cell == "first":
        # A missing value comes last, whatever the session says about the order of NULL.
        ranked = [part for i in range(orders) for part in (f"o{i} IS NULL", f"o{i}")]
    elif one_cell == "hash":
        ranked = [f"md5({_as_text(unit)} || pick)"]
    else:
        raise ArgumentError(f"one_cell has no rule {one_cell!r}.")
    fields = ", ".join(f"f{i} := {part}" for i, part in enumerate([*ranked, "cell"]))
    chosen = f"(min(struct_pack({fields}))).f{len(ranked)}"
    return f"SELECT {unit}, {chosen} AS cell, {chosen} AS last_cell FROM {rows} GROUP BY {unit}"


def _as_text(unit: str) -> str:
    return " || ".join(pick_text(f"{name}::VARCHAR") for name in unit.split(", "))


def pick_text(text: str) -> str:
    """Return SQL that spells a possibly missing text so that no two lists of texts are spelled alike."""
    return f"coalesce(length({text}) || ':' || {text}, '-')"
