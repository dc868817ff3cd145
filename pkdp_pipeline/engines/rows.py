"""The rows that a question is about, as an embedded DuckDB reads them, and how they are counted.

A statement is about ``pkdp_rows``, with the columns ``u0, u1, …`` (the unit), ``b0, b1, …`` (the cell), ``o0, o1, …``
(what comes first) and ``hit`` (whether a row satisfies a predicate). A question reads the rows once, and more often
only where they are stored. An embedded DuckDB fetches nothing from elsewhere and spills into a private folder only.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pkdp_pipeline.engines import (
    DRAWN,
    NO_DOUBTS,
    Doubts,
    Look,
    ParquetFiles,
    Tally,
    Units,
    answered,
    guarded,
    not_counted,
    numbered,
    parquet_files,
    resolved,
)
from pkdp_pipeline.engines.statements import (
    BITS,
    HALF,
    Step,
    cell_number,
    cells_statement,
    doubtful,
    drawn_statement,
    hits_statement,
    homes_steps,
    missing,
    missing_last,
    operation,
    sums_statement,
    tally_steps,
    unit_number,
    units_statement,
)
from pkdp_pipeline.model.columns import Selection
from pkdp_pipeline.model.predicate import like_regex

if TYPE_CHECKING:
    import duckdb


_NUMBERS = itertools.count(1)
_MAX_SMALL_ROWS = 100_000
#: With more rows than this a unit's number is worth finding again.
_MANY_ROWS = 8


def connect(*, spill: bool = True) -> duckdb.DuckDBPyConnection:
    """Return an embedded DuckDB that fetches nothing from elsewhere; without `spill` it writes nothing to disk.

    Data that do not fit into memory go to a folder that its owner alone can open, and are deleted with the connection;
    those that a killed process leaves, by a later connection.
    """
    import duckdb

    # By default rows would go, readable by everybody, to the folder in which the program was started.
    place = _spill_folder() if spill else ""
    return duckdb.connect(config={"autoinstall_known_extensions": "false", "temp_directory": place})


@contextmanager
def counting(rows: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection to an embedded DuckDB for counting this many rows.

    Few rows take 3 ms and starting a DuckDB 15 more: they are counted in one that the process keeps, which writes
    nothing to disk.
    """
    with closing(_kept(os.getpid()).cursor() if rows <= _MAX_SMALL_ROWS else connect()) as connection:
        yield connection


@cache
def _kept(process: int) -> duckdb.DuckDBPyConnection:  # a forked process cannot use that of another
    connection = connect(spill=False)
    # Without threads of its own nothing is waited for when a process ends, also a forked one.
    connection.execute("SET threads = 1")
    return connection


def disconnect(connection: duckdb.DuckDBPyConnection) -> None:
    """Close an embedded DuckDB; one that a stopped query still holds goes with the process."""
    import duckdb

    with suppress(duckdb.Error):
        connection.close()


def _spill_folder() -> str:
    """Return a path for one connection's temporary files; empty where nothing would be private.

    DuckDB makes a folder of it when it needs one, and removes it. No two connections share one: before version 2 they
    would write over each other's files.
    """
    private = _private_folder()
    if private is None:
        return ""
    here = f"{re.sub(r'[^A-Za-z0-9]', '_', socket.gethostname())}-"
    with suppress(OSError):
        for left in private.iterdir():
            pid = left.name.removeprefix(here).partition("-")[0]
            # Of another host, a container perhaps, nobody here knows which processes live.
            if left.name.startswith(here) and pid.isdecimal() and not _lives(int(pid)):
                shutil.rmtree(left, ignore_errors=True)
    return str(private / f"{here}{os.getpid()}-{next(_NUMBERS)}")


def _private_folder() -> Path | None:
    """Return a folder that nobody else can open; None where there is none."""
    if not hasattr(os, "getuid"):
        return None
    folder = Path(tempfile.gettempdir()) / f"pkdp-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077:
            return folder
    return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def quoted(name: str) -> str:
    """Return a name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return text as a SQL string."""
    return "'" + text.replace("'", "''") + "'"


#: A text or a quoted name in SQL, or a call as it is written here, in small letters; two of these are no functions.
_CALLS = re.compile(r"""'[^']*'|"[^"]*"|(?<![\w.])(?!coalesce\(|grouping\()([a-z]\w*)\(""")


def built_in(sql: str) -> str:
    """Return SQL of ours with the full names of the functions that it calls, where no macro of a connection can be."""
    return _CALLS.sub(lambda call: f"system.main.{call[0]}" if call[1] else call[0], sql)


def matched(text: str, pattern: str) -> str:
    """Return SQL for whether a text matches a LIKE pattern in its one spelling."""
    # DuckDB takes long for LIKE with % and _, and cannot be interrupted in it; a regular expression is read once.
    if "_" in pattern or "\\" in pattern:
        return f"regexp_matches({text}, {literal(like_regex(pattern))})"
    return operation("~~", text, literal(pattern))


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
        answer, found_units = self._looking(units, doubts, partial(tally_steps, units=units, everybody=everybody))
        return replace(Tally.of(answer), units=found_units if doubts else None)

    def _looking(self, units: int, doubts: Doubts, steps: Callable[..., list[Step]]) -> tuple[Any, Units]:
        """Take the steps with these doubts; and return what `units` does, which its ``doubtful`` says."""
        look = self._look(units, doubts)
        more = f", {resolved(look.files)} AS resolved" if doubts else ""
        answer = self.taken(steps(doubts=NO_DOUBTS if look.is_known else doubts, more=more))
        if not look.is_known:
            return answer, self._doubted_units(answer, units, doubts, look)
        # What was read is what was looked at, unless the files were changed meanwhile, or no file was read.
        same = _is_resolved(answer) and self._look(units, doubts, look.files).is_known
        return answer, Units() if same else self.units(units, doubts)

    def units(self, units: int, doubts: Doubts) -> Units:
        """See `Engine.units`."""
        if not doubts:
            return Units()
        look = self._look(units, doubts)
        more = f"{resolved(look.files)} AS resolved"
        if look.is_known and _is_resolved(self.run(f"SELECT {more}")):
            return Units()
        answer = self.run(f"SELECT count(*) AS n, {doubtful(doubts)} AS doubtful, {more} FROM pkdp_rows")
        return self._doubted_units(answer, units, doubts, look)

    def _look(self, units: int, doubts: Doubts, files: ParquetFiles | None = None) -> Look:
        if doubts and self.condition == "true" and files is None:
            with _kept(os.getpid()).cursor() as parser:
                files = parquet_files(self.relation, parser)
        read = self.selected[:units], doubts.texts, *doubts.reals.items()
        return Look() if files is None else Look.of(files, read)

    def _doubted_units(self, answer: Any, units: int, doubts: Doubts, look: Look) -> Units:
        """Return what `units` does, given in ``doubtful`` whether a name is to be looked at."""
        import pyarrow.compute as pc

        look = look if doubts and _is_resolved(answer) else Look()
        # Whether a stream is refused must not depend on its names. DuckDB 1 says nothing of one that was read before.
        again = "SELECT 1 FROM pkdp_rows LIMIT 1"
        once = bool(doubts) and not look.place and not len(self.run(again))
        if once and pc.any(pc.greater(answer["n"], 0)).as_py():
            raise not_counted("its rows can be read only once, and names of text or reals are looked at as well")
        if pc.any(answer["doubtful"]).as_py():
            return self.doubted(units, doubts)
        if look.is_settled:
            look.passed(self._look(units, doubts, look.files))
        return Units()

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

    def taken(self, steps: Sequence[Step]) -> Any:
        """Return what these steps make of the rows as an Arrow table; DuckDB plans it in less time than a statement."""

        def answer() -> Any:
            relation: Any = self.relation
            for method, *texts in [("filter", self.condition), ("project", ", ".join(self.selected)), *steps]:
                if texts != ["true"]:
                    relation = getattr(relation, method)(*map(built_in, texts))
            return relation.to_arrow_table()

        return guarded(answer)

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
        query = built_in(f"{verb}WITH pkdp_rows AS NOT MATERIALIZED ({rows}) {statement}")
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
        unit, cell, order = ", ".join(units), ", ".join(cells), ", ".join(missing_last(cells))
        stored, kinds, same = self.is_stored(), self._kinds(), "{1}.{0} IS NOT DISTINCT FROM {2}.{0}"
        kept = "NOT MATERIALIZED" if stored else "MATERIALIZED"
        joined = " AND ".join(same.format(name, "pkdp_read", "pkdp_cells") for name in cells)
        coded = f"SELECT {unit}, code, pick FROM pkdp_read JOIN pkdp_cells ON {joined}"
        number, pick = unit_number(len(units), kinds), cell_number(len(cells), kinds)
        if stored and self._rows_per_unit(units) > _MANY_ROWS:
            # Each person is hashed once, where finding what it was takes less than to hash her rows.
            people = f"SELECT {unit}, {number} AS number FROM pkdp_read GROUP BY {unit}"
            joined = " AND ".join(same.format(name, "pkdp_coded", "pkdp_people") for name in units)
            coded = (
                f"SELECT pkdp_coded.*, number FROM ({coded}) AS pkdp_coded JOIN ({people}) AS pkdp_people ON {joined}"
            )
            number = "number"
        drawn = drawn_statement(question, f"({coded})", number, missing(len(units)))
        return (
            f", pkdp_read AS {kept} (SELECT * FROM pkdp_rows), pkdp_cells AS MATERIALIZED "
            f"(SELECT {cell}, {operation('-', f'row_number() OVER (ORDER BY {order})', '1')} AS code, {pick} AS pick "
            f"FROM pkdp_read GROUP BY {cell}) SELECT {cell}, n, missing_unit, false AS several_cells "
            f"FROM ({drawn}) JOIN pkdp_cells USING (code)"
        )

    def _rows_per_unit(self, units: Sequence[str]) -> float:
        """Return about how many rows a unit has; DuckDB counts so in a tenth of the time of a draw."""
        often = operation("/", "count(*)", f"approx_count_distinct(hash({', '.join(units)}))")
        rows = self.run(f"SELECT {often} AS often FROM pkdp_rows")
        return rows["often"][0].as_py() or 0.0

    def _kinds(self) -> dict[str, str]:
        """Return the SQL types of the columns."""
        rows = guarded(lambda: self.relation.project(built_in(", ".join(self.selected))))
        return dict(zip(rows.columns, map(str, rows.types), strict=True))

    def cells_by_code(self, question: Selection, doubts: Doubts = NO_DOUBTS) -> tuple[Any, Units]:
        """Do what `cells` and `units` do where a unit should have one cell, in one reading unless cells share a code.

        Joining codes takes as long as a plain GROUP BY of 10 million rows of Parquet or of a table; finding the pairs
        of unit and cell, and then the units in them, 1.2 to 1.7 times as long (benchmarks/bench_engines.py).
        """
        import pyarrow.compute as pc

        keys, units = numbered("b", len(question.by)), len(question.unit)
        coded, doubted = self._looking(units, doubts, partial(homes_steps, units=units, keys=len(keys)))
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


def _is_resolved(answer: Any) -> bool:
    """Return what `resolved` says; of no row it says nothing."""
    return bool(answer["resolved"].unique().to_pylist() == [True])


def _is_duckdb_1() -> bool:
    import duckdb

    return duckdb.__version__.startswith("1.")
