"""Statements after ``WITH pkdp_rows AS (…)`` where no rule draws a cell: SQL for DuckDB; see `engines.rows`."""

from __future__ import annotations

import sys

from pkdp_pipeline.engines.question import NO_DOUBTS, SPACES, Doubts, numbered

#: Bits of half a code, and all of them.
BITS = 31
HALF = (1 << BITS) - 1


def missing(units: int) -> str:
    """Return SQL for whether a row's unit is missing."""
    return " OR ".join(f"{name} IS NULL" for name in numbered("u", units))


def code_of(cell: str) -> str:
    """Return SQL for the hash of a cell's keys; of the number 0 alone it would be 0, which is part of every other."""
    return f"hash({cell}, 1)"


def tally_statement(*, units: int, everybody: bool = True, doubts: Doubts = NO_DOUBTS) -> str:
    """Return the query for (satisfying, population, missing_unit, doubtful, n); ``hit`` says whether a row satisfies.

    Without `everybody` the population is NULL, and with `doubts` see `doubtful`; n is 0 of no rows.
    """
    if units == 0:
        return (
            "SELECT count(*) FILTER (WHERE hit) AS satisfying, count(*) AS population, false AS missing_unit, "
            "false AS doubtful, count(*) AS n FROM pkdp_rows"
        )
    unit, nobody = ", ".join(numbered("u", units)), missing(units)
    restriction = "" if everybody or doubts else f" WHERE hit OR {nobody}"
    return (
        f"SELECT count(*) FILTER (WHERE hit AND NOT ({nobody})) AS satisfying, "
        f"{f'count(*) FILTER (WHERE NOT ({nobody}))' if everybody else 'NULL::BIGINT'} AS population, "
        f"coalesce(bool_or({nobody}), false) AS missing_unit, {doubtful(doubts)} AS doubtful, count(*) AS n "
        f"FROM (SELECT {unit}, bool_or(hit) AS hit FROM pkdp_rows{restriction} GROUP BY {unit})"
    )


def hits_statement(*, units: int) -> str:
    """Return the query of `tally_statement` without everybody that reads the rows twice, first those that satisfy."""
    nobody = missing(units)
    return (
        "SELECT count(*) AS satisfying, NULL::BIGINT AS population, "
        f"(SELECT count(*) > 0 FROM pkdp_rows WHERE {nobody}) AS missing_unit "
        f"FROM (SELECT 1 FROM pkdp_rows WHERE hit AND NOT ({nobody}) GROUP BY {', '.join(numbered('u', units))})"
    )


def homes_statement(*, units: int, keys: int, doubts: Doubts = NO_DOUBTS) -> str:
    """Return the query for (b0, b1, …, is_cell, nobody, code, n, doubtful): cells' codes, and how many units have each.

    A cell's code is half a hash beside its complement, and a unit's the joined bits of its cells'. So the joined bits
    of two codes are nobody's code, and a unit whose joined bits are a code has rows with this code alone.
    """
    unit, cell, nobody = ", ".join(numbered("u", units)), ", ".join(numbered("b", keys)), missing(units)
    half = f"({code_of(cell)} & {HALF})"
    code = f"({half} | (xor({half}, {HALF}::UBIGINT) << {BITS}))"
    return (
        f"SELECT {cell}, is_cell, nobody, code, count(*) AS n, {doubtful(doubts)} AS doubtful "
        f"FROM (SELECT {cell}, {unit}, grouping({cell}) = 0 AS is_cell, {nobody} AS nobody, bit_or(code) AS code "
        f"FROM (SELECT *, {code} AS code FROM pkdp_rows) GROUP BY GROUPING SETS (({unit}), ({cell}))) "
        f"GROUP BY is_cell, nobody, code, {cell}"
    )


def doubtful(doubts: Doubts) -> str:
    """Return an aggregate for whether a unit is to be looked at by `units_statement`.

    Of text it compares a first and a last character with spaces, which is quicker than to trim, and may say yes of
    other signs.
    """
    spaces = ", ".join(f"chr({ord(space)})" for space in SPACES)
    spaced = [
        f"CASE WHEN strlen({text}) = length({text}) THEN {text} < '!' OR ({text})[-1] < '!' "
        f"ELSE ({text})[1] IN ({spaces}) OR ({text})[-1] IN ({spaces}) END"
        for text in (f"{name}::VARCHAR" for name in doubts.texts)
    ]
    rounded = [f"abs({name}) BETWEEN {least} AND {sys.float_info.max}" for name, least in doubts.reals.items()]
    return f"coalesce(bool_or({' OR '.join([*spaced, *rounded])}), false)" if doubts else "false"


def units_statement(*, units: int, doubts: Doubts) -> str:
    """Return the query for (alike, rounded), one row, as `Units` has them."""
    names = numbered("u", units)
    spaces = " || ".join(f"chr({ord(space)})" for space in SPACES)
    around = f"'^[' || {spaces} || ']+|[' || {spaces} || ']+$'"  # many times quicker than to trim so many signs
    trimmed = ", ".join(
        f"regexp_replace({name}::VARCHAR, {around}, '', 'g')" if name in doubts.texts else name for name in names
    )
    differ = " OR ".join(f"min({name}) <> max({name})" for name in names)
    alike = f"SELECT 1 FROM pkdp_rows WHERE NOT ({missing(units)}) GROUP BY {trimmed} HAVING {differ}"
    rounded = f"SELECT {doubtful(Doubts(reals=doubts.reals))} FROM pkdp_rows LIMIT 1"
    return f"SELECT {f'EXISTS ({alike})' if doubts.texts else 'false'} AS alike, ({rounded}) AS rounded"
