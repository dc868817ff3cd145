"""The rows that a question is about, as DuckDB reads them, and how they are counted.

A statement is about ``pkdp_rows``, with the columns ``u0, u1, …`` (the unit), ``b0, b1, …`` (the cell), ``o0, o1, …``
(what comes first) and ``hit`` (whether a row satisfies a predicate). A question reads the rows once, and more often
only where they are stored.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pkdp_pipeline.engines.question import (
    DRAWN,
    NO_DOUBTS,
    Doubts,
    Tally,
    Units,
    answered,
    guarded,
    not_counted,
    numbered,
)
from pkdp_pipeline.engines.statements import (
    BITS,
    HALF,
    cell_number,
    doubtful,
    drawn_statement,
    hits_statement,
    homes_statement,
    missing,
    sums_statement,
    tally_statement,
    unit_number,
    units_statement,
)
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.selection import Selection

if TYPE_CHECKING:
    import duckdb


#: The operators of a plan that reads stored rows once, one by one.
_SCANS = frozenset({"PROJECTION", "FILTER", "SEQ_SCAN", "TABLE_SCAN", "PARQUET_SCAN", "READ_PARQUET"})

#: Expressions of a plan that give other values every time they are evaluated.
_VOLATILE = re.compile(r"\b(random|uuid|uuidv4|uuidv7|gen_random_uuid|nextval|currval|clock_timestamp)\(")

_Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows named ``pkdp_rows`` in a statement: columns of a relation, where a condition holds.

    `selected`: SQL for the columns, such as ``"id" AS u0``. `condition`: SQL.
    """

    relation: duckdb.DuckDBPyRelation
    selected: tuple[str, ...] = ("*",)
    condition: str = "true"

    def cells(self, question: Selection) -> Any:
        """Return an Arrow table of (b0, b1, …, n, missing_unit, several_cells), of sums also total, per cell."""
        if question.bounds:
            return self.run(sums_statement(question, self._kinds()))
        if question.unit and question.one_cell in DRAWN:
            return self.run(self._drawn_cells(question))
        if question.unit and question.counts_in_one_cell:
            return self.cells_by_code(question)[0]
        return self.run(cells_statement(question, keys=len(question.by)))

    def tally(self, units: int, doubts: Doubts = NO_DOUBTS, *, everybody: bool = True) -> Tally:
        """Count the units that have a hit among their rows, and with `everybody` all.

        With `doubts` it may have found what `units` does.

        Where a predicate selects few rows, it is quicker to let storage leave out the others, and to ask apart whether
        a unit is missing, which the statistics of a file often answer: one of thirty days among 10 million rows of
        Parquet takes 0.09 s instead of 0.27 s, plain DuckDB 0.05 s (T1 in benchmarks/bench_engines.py).
        """
        if units and not everybody and self.is_stored():
            return Tally.of(self.run(hits_statement(units=units)))
        answer = self.run(tally_statement(units=units, everybody=everybody, doubts=doubts))
        return replace(Tally.of(answer), units=self._doubted_units(answer, units, doubts) if doubts else None)

    def units(self, units: int, doubts: Doubts) -> Units:
        """See `Engine.units`."""
        if not doubts:
            return Units()
        answer = self.run(f"SELECT count(*) AS n, {doubtful(doubts)} AS doubtful FROM pkdp_rows")
        return self._doubted_units(answer, units, doubts)

    def _doubted_units(self, answer: Any, units: int, doubts: Doubts) -> Units:
        """Return what `units` does, given in ``doubtful`` whether a name is to be looked at."""
        import pyarrow.compute as pc

        # Whether a stream is refused must not depend on its names. DuckDB 1 says nothing of one that was read before.
        again = "SELECT 1 FROM pkdp_rows LIMIT 1"
        if doubts and not len(self.run(again)) and pc.any(pc.greater(answer["n"], 0)).as_py():
            raise not_counted("its rows can be read only once, and names of text or reals are looked at as well")
        return self.doubted(units, doubts) if pc.any(answer["doubtful"]).as_py() else Units()

    def doubted(self, units: int, doubts: Doubts) -> Units:
        """Return what `units` does, without a first look that most names pass."""
        return Units(**self.run(units_statement(units=units, doubts=doubts)).to_pylist()[0])

    def drawn(self, question: Selection, rows: str = "pkdp_rows") -> str:
        """Return the query for (code, n, missing_unit) where a hash draws cells; see `drawn_statement`."""
        units = len(question.unit)
        return drawn_statement(question, rows, unit_number(units, self._kinds()), missing(units))

    def cell_numbers(self, keys: int) -> Any:
        """Return an Arrow table of (code, pick), the numbers of the cells that the rows list."""
        return self.run(f"SELECT code, {cell_number(keys, self._kinds())} AS pick FROM pkdp_rows")

    def run(self, statement: str) -> Any:
        """Return the answer to what follows ``WITH pkdp_rows AS (…)`` as an Arrow table."""
        with self._query(statement) as query:
            return guarded(lambda: query().to_arrow_table())

    def is_stored(self) -> bool:
        """Return whether the rows are read from storage one by one, so that reading them twice is cheap.

        Anything unknown is not, such as a join, a sample, a stream that can be read only once, and all relations in
        DuckDB 1, which gives no plan here.
        """
        with self._query("SELECT * FROM pkdp_rows", explain=True) as query:
            plan = guarded(query)
            nodes = json.loads(guarded(plan.fetchall)[0][1]) if plan is not None else [{"name": "UNKNOWN"}]
        names = set()
        while nodes:
            node = nodes.pop()
            if _VOLATILE.search(str(node.get("extra_info", {}))):
                return False
            names.add(node["name"].strip().upper().replace(" ", "_"))
            nodes.extend(node.get("children", ()))
        return names <= _SCANS

    @contextmanager
    def _query(self, statement: str, *, explain: bool = False) -> Iterator[Callable[[], Any]]:
        # A name that no table the relation reads can have.
        source = f"pkdp_source_{secrets.token_hex(8)}"
        rows = f"SELECT {', '.join(self.selected)} FROM {source} WHERE {self.condition}"
        verb = "EXPLAIN (FORMAT JSON) " if explain else ""
        query = f"{verb}WITH pkdp_rows AS NOT MATERIALIZED ({rows}) {statement}"
        try:
            yield lambda: self.relation.query(source, query)
        finally:
            if _is_duckdb_1():
                import duckdb

                # It leaves the name behind as a temporary view.
                with suppress(duckdb.Error):
                    self.relation.query(source, f"DROP VIEW IF EXISTS {source}")

    def _drawn_cells(self, question: Selection) -> str:
        """Return the query of `cells` where a hash draws: it gives each cell a code, then reads the rows."""
        units, cells = numbered("u", len(question.unit)), numbered("b", len(question.by))
        cell, order = ", ".join(cells), ", ".join(_missing_last(cells))
        kept = "NOT MATERIALIZED" if self.is_stored() else "MATERIALIZED"
        number = cell_number(len(cells), self._kinds())
        same = " AND ".join(f"pkdp_read.{name} IS NOT DISTINCT FROM pkdp_cells.{name}" for name in cells)
        coded = f"(SELECT {', '.join(units)}, code, pick FROM pkdp_read JOIN pkdp_cells ON {same})"
        return (
            f", pkdp_read AS {kept} (SELECT * FROM pkdp_rows), pkdp_cells AS MATERIALIZED "
            f"(SELECT {cell}, row_number() OVER (ORDER BY {order}) - 1 AS code, {number} AS pick FROM pkdp_read "
            f"GROUP BY {cell}) SELECT {cell}, n, missing_unit, false AS several_cells "
            f"FROM ({self.drawn(question, coded)}) JOIN pkdp_cells USING (code)"
        )

    def _kinds(self) -> dict[str, str]:
        """Return the SQL types of the columns."""
        with self._query("SELECT * FROM pkdp_rows") as query:
            rows = guarded(query)
            return dict(zip(rows.columns, map(str, rows.types), strict=True))

    def cells_by_code(self, question: Selection, doubts: Doubts = NO_DOUBTS) -> tuple[Any, Units]:
        """Do what `cells` and `units` do where a unit should have one cell, in one reading unless cells share a code.

        Joining codes takes as long as a plain GROUP BY of 10 million rows of Parquet or of a table; finding the pairs
        of unit and cell, and then the units in them, 1.2 to 1.7 times as long (benchmarks/bench_engines.py).
        """
        import pyarrow.compute as pc

        keys, units = numbered("b", len(question.by)), len(question.unit)
        coded = self.run(homes_statement(units=units, keys=len(keys), doubts=doubts))
        doubted = self._doubted_units(coded, units, doubts)
        cells, homes = coded.filter(coded["is_cell"]), coded.filter(pc.invert(coded["is_cell"]))
        present = homes.filter(pc.invert(homes["nobody"]))
        joined = present["code"].to_numpy()
        low, own = cells["code"].to_numpy() & np.uint64(HALF), joined & np.uint64(HALF)
        order = np.argsort(low)
        if (low[order][1:] == low[order][:-1]).any():
            counted = self.run(cells_statement(question, keys=len(keys)))
            if len(counted) != len(cells):  # such as a stream, of which DuckDB 1 reads no row again
                raise not_counted("its rows changed while they were read")
            return counted, doubted
        several_cells = bool((own + (joined >> np.uint64(BITS)) != HALF).any())
        counts = np.zeros(len(cells), dtype=np.int64)
        if not several_cells:
            np.add.at(counts, order[np.searchsorted(low[order], own)], present["n"].to_numpy())
        missing_unit = len(present) < len(homes)
        answer = answered(cells.select(keys), counts, missing_unit=missing_unit, several_cells=several_cells)
        return answer, doubted

    def homes(self, code: str, units: int) -> tuple[_Hashes, npt.NDArray[np.int64], bool]:
        """Return the codes that units have, joined bit by bit; how many have each; and whether a unit is missing."""
        import pyarrow.compute as pc

        unit = ", ".join(numbered("u", units))
        joined = f"SELECT {unit}, bit_or({code}) AS code FROM pkdp_rows GROUP BY {unit}"
        home = f"CASE WHEN {missing(units)} THEN NULL ELSE code END::UBIGINT AS home"
        answer = self.run(f"SELECT {home}, count(*) AS n FROM ({joined}) GROUP BY home")
        present = answer.filter(pc.is_valid(answer["home"]))
        return present["home"].to_numpy(), present["n"].to_numpy(), len(present) < len(answer)


def _is_duckdb_1() -> bool:
    import duckdb

    return duckdb.__version__.startswith("1.")


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
    fields = [f"f{i} := {part}" for i, part in enumerate(_missing_last([*numbered("o", orders), *cells]))]
    values = [f"{name} := {name}" for name in cells]
    chosen = ", ".join(f"chosen.{name} AS {name}" for name in cells)
    best = f"min(struct_pack({', '.join([*fields, *values])})) AS chosen"
    return f"SELECT {unit}, {chosen} FROM (SELECT {unit}, {best} FROM pkdp_rows GROUP BY {unit})"


def _missing_last(names: list[str]) -> list[str]:
    """Return what sorts by these columns, missing values last, whatever the session says about NULL."""
    return [part for name in names for part in (f"{name} IS NULL", name)]
