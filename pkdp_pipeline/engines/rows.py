"""The rows that a question is about, as DuckDB reads them, and how they are counted.

A statement is about ``pkdp_rows``, with the columns ``u0, u1, …`` (the unit), ``b0, b1, …`` (the cell), ``o0, o1, …``
(what comes first) and ``hit`` (whether a row satisfies a predicate). A question reads the rows once, and more often
only where they are stored.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from pkdp_pipeline.engines.codes import MOST, Places, answered
from pkdp_pipeline.engines.question import SPACES, Tally, Units, not_counted, numbered
from pkdp_pipeline.errors import ArgumentError, TemporaryError
from pkdp_pipeline.model.question import Selection

if TYPE_CHECKING:
    import duckdb


Answer = TypeVar("Answer")

#: Rows in a batch of a stream: their arrays stay in the processor's caches.
_BATCH = 1 << 17
#: The operators of a plan that reads stored rows once, one by one.
_SCANS = frozenset({"PROJECTION", "FILTER", "SEQ_SCAN", "TABLE_SCAN", "PARQUET_SCAN", "READ_PARQUET"})
#: Bits of half a code, and all of them.
_BITS = 31
_HALF = (1 << _BITS) - 1

_Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What ``pkdp_rows`` names in a statement: columns of a relation, where a condition holds.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
    selected : tuple of str
        SQL for the columns, such as ``"id" AS u0``.
    condition : str
        SQL.
    """

    relation: duckdb.DuckDBPyRelation
    selected: tuple[str, ...] = ("*",)
    condition: str = "true"

    def cells(self, question: Selection, *, texts: Sequence[str] = (), whole: bool = False) -> Any:
        """Return an Arrow table of (b0, b1, …, n, missing_unit, several_cells), one row per cell; see `CellCounts.of`.

        `texts` are as for `units`, where all rows of the frame are counted; `whole` says that the unit is a whole
        number.
        """
        units, keys = len(question.unit), len(question.by)
        if question.one_cell == "error" and units and question.cells_per_unit == 1:
            placed = self.cells_by_place(keys) if whole and self.condition == "true" else None
            return self.cells_by_code(question, texts) if placed is None else placed
        return self.run(cells_statement(question, keys=keys))

    def tally(self, units: int, *, everybody: bool = True) -> Tally:
        """Count the units that have a hit among their rows, and with `everybody` all.

        Where a predicate selects few rows, it is quicker to let storage leave out the others, and to ask apart whether
        a unit is missing, which the statistics of a file often answer: one of thirty days among 10 million rows of
        Parquet takes 0.09 s instead of 0.27 s, plain DuckDB 0.05 s (benchmarks/bench_engines.py).
        """
        if units and not everybody and self.is_stored():
            return Tally.of(self.run(hits_statement(units=units)))
        return Tally.of(self.run(tally_statement(units=units, everybody=everybody)))

    def units(self, units: int, texts: list[str]) -> Units:
        """See `Engine.units`; `texts` are those of the unit's columns that hold text."""
        statement = f"SELECT coalesce(bool_or({spaced(texts)}), false) AS spaced FROM pkdp_rows"
        if not texts or not self.run(statement)["spaced"][0].as_py():
            return Units()
        return self.alike(units, texts)

    def alike(self, units: int, texts: list[str]) -> Units:
        """Return whether two units are one when the columns of text among theirs are trimmed."""
        return Units(alike=self.run(alike_statement(units=units, texts=texts))["alike"][0].as_py())

    def run(self, statement: str) -> Any:
        """Return the answer to what follows ``WITH pkdp_rows AS (…)`` as an Arrow table."""
        with self._query(statement) as query:
            return asked(lambda: query().to_arrow_table())

    def batches(self, statement: str) -> Iterator[Any]:
        """Yield such an answer as Arrow record batches, while DuckDB goes on reading."""
        with self._query(statement) as query:
            batches = iter(asked(lambda: query().to_arrow_reader(_BATCH)))
            while (batch := asked(lambda: next(batches, None))) is not None:
                yield batch

    def is_stored(self, *, all_of_them: bool = False) -> bool:
        """Return whether the rows are read from storage one by one, so that reading them twice is cheap.

        With `all_of_them` also whether no predicate leaves out some. Anything unknown is not, such as a join, a sample,
        a stream that can be read only once, and all relations in DuckDB 1, which gives no plan here.
        """
        with self._query("SELECT * FROM pkdp_rows", explain=True) as query:
            plan = asked(query)
            nodes = json.loads(asked(plan.fetchall)[0][1]) if plan is not None else [{"name": "UNKNOWN"}]
        names = set()
        while nodes:
            node = nodes.pop()
            filtered = all_of_them and "Filters" in node.get("extra_info", {})
            names.add("FILTERED" if filtered else node["name"].strip().upper().replace(" ", "_"))
            nodes.extend(node.get("children", ()))
        return names <= (_SCANS - {"FILTER"} if all_of_them else _SCANS)

    @contextmanager
    def _query(self, statement: str, *, explain: bool = False) -> Iterator[Callable[[], Any]]:
        import duckdb

        # A name that no table the relation reads can have.
        source = f"pkdp_source_{secrets.token_hex(8)}"
        rows = f"SELECT {', '.join(self.selected)} FROM {source} WHERE {self.condition}"
        verb = "EXPLAIN (FORMAT JSON) " if explain else ""
        query = f"{verb}WITH pkdp_rows AS NOT MATERIALIZED ({rows}) {statement}"
        try:
            yield lambda: self.relation.query(source, query)
        finally:
            if duckdb.__version__.startswith("1."):
                # It leaves the name behind as a temporary view.
                with suppress(duckdb.Error):
                    self.relation.query(source, f"DROP VIEW IF EXISTS {source}")

    def cells_by_code(self, question: Selection, texts: Sequence[str] = ()) -> Any:
        """Do what `cells` does where every unit should have one cell, in one reading unless two cells have one code.

        Joining codes takes as long as a plain GROUP BY of 10 million rows of Parquet or of a table; finding the pairs
        of unit and cell, and then the units in them, 1.2 to 1.7 times as long (benchmarks/bench_engines.py).
        """
        keys = len(question.by)
        found = self.run(homes_statement(units=len(question.unit), keys=keys, texts=texts))
        if not len(found) or not found["same_code"][0].as_py():
            return found
        counted = self.run(cells_statement(question, keys=keys))
        if len(counted) != len(found):  # such as a stream, of which DuckDB 1 reads no row again
            raise not_counted("its rows changed while they were read")
        return counted

    def cells_by_place(self, keys: int) -> Any:
        """Let each whole-numbered unit hold its cell's code in an array that the rows are streamed to.

        The cells are read first, each with its hash; a hash that is no cell's, or more than one cell's, sends the
        question another way, and so do rows that cost something to read. All 10 million rows of Parquet or of a table
        take 0.4 times as long as a plain GROUP BY; where a predicate selects some, nothing is gained
        (benchmarks/bench_engines.py).
        """
        if not self.is_stored(all_of_them=True):
            return None
        cell = ", ".join(numbered("b", keys))
        code = f"hash({cell}, 1)"  # alone, the hash of the number 0 is 0, which is part of every other
        cells = self.run(f"SELECT {cell}, {code} AS code FROM pkdp_rows GROUP BY {cell}")
        if not 0 < len(cells) <= MOST:
            return None
        codes = cells["code"].to_numpy()
        short = (codes & np.uint64(2**31 - 1)).astype(np.int32)
        order = np.argsort(short)
        if (short[order][1:] == short[order][:-1]).any():
            return None
        bounds = "min(u0) AS least, max(u0) AS most, count(u0) AS present, count(*) AS n"
        (found,) = self.run(f"SELECT {bounds} FROM pkdp_rows").to_pylist()
        places = Places.between(found["least"], found["most"], rows=found["present"]) if found["present"] else None
        if places is None:
            return None
        rows = f"SELECT u0, ({code} & 2147483647)::INTEGER AS code FROM pkdp_rows WHERE u0 IS NOT NULL"
        for batch in self.batches(rows):
            if not places.settle(batch.column(0).to_numpy(zero_copy_only=False), batch.column(1).to_numpy()):
                return None
        held, often = np.unique(places.settled, return_counts=True)
        at = order[np.searchsorted(short[order], held).clip(max=len(short) - 1)]
        if (short[at] != held).any():
            return None
        counts = np.zeros(len(codes), dtype=np.int64)
        counts[at] = often
        missing_unit = found["n"] > found["present"]
        return answered(cells.drop_columns("code"), counts, missing_unit=missing_unit)

    def homes(self, code: str, units: int) -> tuple[_Hashes, npt.NDArray[np.int64], bool]:
        """Return the codes that units have, joined bit by bit; how many have each; and whether a unit is missing."""
        import pyarrow.compute as pc

        unit = ", ".join(numbered("u", units))
        joined = f"SELECT {unit}, bit_or({code}) AS code FROM pkdp_rows GROUP BY {unit}"
        home = f"CASE WHEN {missing(units)} THEN NULL ELSE code END::UBIGINT AS home"
        found = self.run(f"SELECT {home}, count(*) AS n FROM ({joined}) GROUP BY home")
        present = found.filter(pc.is_valid(found["home"]))
        return present["home"].to_numpy(), present["n"].to_numpy(), len(present) < len(found)


def asked(question: Callable[[], Answer]) -> Answer:
    """Return what DuckDB answers; what it says when it cannot could quote the data, and is not passed on."""
    import duckdb
    import pyarrow as pa

    problem, memory = "", False
    try:
        return question()
    except duckdb.Error as error:
        problem, memory = type(error).__name__, isinstance(error, duckdb.OutOfMemoryException)
    except (pa.ArrowException, OSError) as error:
        problem = "stopped while its rows were read"
        memory = isinstance(error, MemoryError) or "Out of Memory Error" in str(error)
    if memory:
        raise TemporaryError("there is not enough memory to count the frame now; try again when more is free.")
    raise not_counted(problem)


def quoted(name: str) -> str:
    """Return a column name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return text as a SQL string."""
    return "'" + text.replace("'", "''") + "'"


def spelled(names: list[str]) -> str:
    """Return SQL that spells columns as text so that no two lists of values are spelled alike.

    A whole number among reals is spelled as among whole numbers, 1.0 as 1 and 1e16 as 10000000000000000: that a
    column holds reals may be owed to one other person's row.
    """
    texts = []
    for name in names:
        # Of what type a column is, is not known here: nothing else is a number to it.
        real = f"TRY_CAST({name}::VARCHAR AS DOUBLE)"
        whole = f"typeof({name}) = 'DOUBLE' AND abs({real}) < 9e18 AND {real} = trunc({real})"
        texts.append(f"CASE WHEN {whole} THEN {real}::BIGINT::VARCHAR ELSE {name}::VARCHAR END")
    return " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)


def cells_statement(question: Selection, *, keys: int, pick: str = "") -> str:
    """Return what follows ``WITH pkdp_rows AS (…)`` for (b0, b1, …, n, missing_unit, several_cells) per cell.

    `keys` columns name a cell there; `pick` is SQL for the cell's name as text, by default as DuckDB spells it.
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
    nobody, pick = missing(units), pick or spelled(numbered("b", keys))
    rows = (
        _one_row_per_unit(units, keys, one_cell, len(question.order_by), pick)
        if most == 1
        else _few_rows_per_unit(units, keys, most, pick)
    )
    return (
        f"SELECT {cell}, count(*) FILTER (WHERE NOT ({nobody})) AS n, bool_or({nobody}) AS missing_unit, "
        f"false AS several_cells FROM ({rows}) GROUP BY {cell}"
    )


def tally_statement(*, units: int, everybody: bool = True) -> str:
    """Return the query for (satisfying, population, missing_unit); ``hit`` says whether a row satisfies.

    Without `everybody` the population is NULL.
    """
    if units == 0:
        return (
            "SELECT count(*) FILTER (WHERE hit) AS satisfying, count(*) AS population, false AS missing_unit "
            "FROM pkdp_rows"
        )
    unit, nobody = ", ".join(numbered("u", units)), missing(units)
    looked = "" if everybody else f" WHERE hit OR {nobody}"
    return (
        f"SELECT count(*) FILTER (WHERE hit AND NOT ({nobody})) AS satisfying, "
        f"{f'count(*) FILTER (WHERE NOT ({nobody}))' if everybody else 'NULL::BIGINT'} AS population, "
        f"coalesce(bool_or({nobody}), false) AS missing_unit "
        f"FROM (SELECT {unit}, bool_or(hit) AS hit FROM pkdp_rows{looked} GROUP BY {unit})"
    )


def hits_statement(*, units: int) -> str:
    """Return the query of `tally_statement` without everybody that reads the rows twice, first those that satisfy."""
    nobody = missing(units)
    return (
        "SELECT count(*) AS satisfying, NULL::BIGINT AS population, "
        f"(SELECT count(*) > 0 FROM pkdp_rows WHERE {nobody}) AS missing_unit "
        f"FROM (SELECT 1 FROM pkdp_rows WHERE hit AND NOT ({nobody}) GROUP BY {', '.join(numbered('u', units))})"
    )


def homes_statement(*, units: int, keys: int, texts: Sequence[str] = ()) -> str:
    """Return what follows ``WITH pkdp_rows AS (…)`` for `cells` where every unit should have one cell.

    A cell's code is half a hash beside its complement. So the joined bits of two codes are nobody's code, and a unit
    whose joined bits are a code has rows with this code alone. Nothing depends on codes being different: where two
    cells have one, ``same_code`` says so, and the counts say nothing. The last bit says whether a unit has spaces
    around one of its `texts`.
    """
    unit, cell, nobody = ", ".join(numbered("u", units)), ", ".join(numbered("b", keys)), missing(units)
    half = f"hash({cell}, 1) & {_HALF}"
    code = f"(half | (xor(half, {_HALF}::UBIGINT) << {_BITS}))"
    if texts:
        code = f"({code} | CASE WHEN {spaced(texts)} THEN {1 << 2 * _BITS}::UBIGINT ELSE 0::UBIGINT END)"
    return (
        f", pkdp_codes AS MATERIALIZED (SELECT {cell}, is_cell, NOT is_cell AND nobody AS nobody, "
        f"code & {_HALF} AS half, (code >> {_BITS}) & {_HALF} AS rest, code >> {2 * _BITS} AS last, count(*) AS n "
        f"FROM (SELECT {cell}, grouping({cell}) = 0 AS is_cell, {nobody} AS nobody, bit_or({code}) AS code "
        f"FROM (SELECT *, {half} AS half FROM pkdp_rows) GROUP BY GROUPING SETS (({unit}), ({cell}))) GROUP BY ALL), "
        "pkdp_units AS (SELECT half, sum(n)::BIGINT AS n FROM pkdp_codes WHERE NOT (is_cell OR nobody) GROUP BY half), "
        "pkdp_checks AS (SELECT bool_or(nobody) AS missing_unit, bool_or(last <> 0) AS spaced, "
        f"bool_or(NOT is_cell AND NOT nobody AND half + rest <> {_HALF}) AS several_cells, "
        "count(*) FILTER (WHERE is_cell) > count(DISTINCT half) FILTER (WHERE is_cell) AS same_code FROM pkdp_codes) "
        f"SELECT {cell}, coalesce(pkdp_units.n, 0) AS n, missing_unit, several_cells, same_code, "
        f"{'spaced' if texts else 'NULL::BOOLEAN'} AS spaced "
        "FROM pkdp_checks, pkdp_codes LEFT JOIN pkdp_units USING (half) WHERE is_cell"
    )


def spaced(texts: Sequence[str]) -> str:
    """Return SQL for whether one of these columns of text may have spaces around a value.

    It compares a first and a last character, which is quicker than to trim, and may say yes of other signs.
    """
    spaces = ", ".join(f"chr({ord(space)})" for space in SPACES)
    return " OR ".join(
        f"CASE WHEN strlen({text}) = length({text}) THEN {text} < '!' OR ({text})[-1] < '!' "
        f"ELSE ({text})[1] IN ({spaces}) OR ({text})[-1] IN ({spaces}) END"
        for text in (f"{name}::VARCHAR" for name in texts)
    )


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


def _pairs_statement(units: int, keys: int, most: int) -> str:
    """Return the query where every unit should have one cell, as many pairs of unit and cell as units; or `most` cells.

    The pairs are found once, as a count of distinct units per cell finds them. Units are told apart by GROUP BY
    alone, which knows what a collation takes for equal; hashes do not, nor does DuckDB 1's count(DISTINCT …).
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


def _few_rows_per_unit(units: int, keys: int, most: int, pick: str) -> str:
    """Return the query for (unit, cell) with the `most` cells of each unit that a hash draws."""
    unit, cells = ", ".join(numbered("u", units)), numbered("b", keys)
    cell = ", ".join(cells)
    pairs = f"SELECT {unit}, {cell}, min(md5({spelled(numbered('u', units))} || {pick})) AS drawn FROM pkdp_rows"
    fields = [f"f{i} := {part}" for i, part in enumerate(["drawn", *_missing_last(cells)])]
    values = [f"{name} := {name}" for name in cells]
    few = f"unnest(min(struct_pack({', '.join([*fields, *values])}), {most})) AS chosen"
    chosen = ", ".join(f"chosen.{name} AS {name}" for name in cells)
    return f"SELECT {unit}, {chosen} FROM (SELECT {unit}, {few} FROM ({pairs} GROUP BY {unit}, {cell}) GROUP BY {unit})"


def _missing_last(names: list[str]) -> list[str]:
    """Return what sorts by these columns, missing values last, whatever the session says about NULL."""
    return [part for name in names for part in (f"{name} IS NULL", name)]
