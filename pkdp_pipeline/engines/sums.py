"""Sums per cell of what each person adds: the sum of a column over her rows there, clamped to public bounds.

`v` is the number in a row. A missing one adds nothing, and one beyond ±10^12 counts as that: so no engine overflows
where another does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pkdp_pipeline.engines.draws import cell_number, unit_number, with_draws
from pkdp_pipeline.engines.question import DRAWN, numbered
from pkdp_pipeline.engines.statements import missing
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.selection import Selection

MOST = 10**12
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
        return f"least(coalesce({column}, 0), {MOST}::UHUGEINT)::BIGINT"
    exact = kind if kind == "BIGINT" else "HUGEINT"
    return f"greatest(least(coalesce({column}, 0)::{exact}, {MOST}::{exact}), -{MOST}::{exact})::BIGINT"


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
