"""Rows in memory: an Arrow table of u0, u1, … (the unit), b0, b1, … (the cell), o0, o1, … (what comes first) and hit.

Equal values are one value there, and missing ones are null. A row's cell becomes a whole number. Units that are whole
numbers close together are counted by place: each has one in an array, which holds its cell. All others are counted by a
private DuckDB. Of 3 million rows in memory the first takes 0.03 s where the second takes 0.07 s; of 10 million the
first takes 0.3 times as long as a plain GROUP BY (benchmarks/bench_engines.py).

Columns of Arrow are read as the values that they hold, however kept: a dictionary may hold one value twice, or none.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines import DRAWN, SPACES, Doubts, Tally, Units, answered, guarded, keys_of, numbered
from pkdp_pipeline.engines.rows import Rows, counting
from pkdp_pipeline.engines.statements import (
    cells_statement,
    sums_statement,
    tally_steps,
    unit_number,
    whole_number_sql,
)
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import Selection

_Integers = npt.NDArray[Any]
#: Whole numbers that span less than this are their own codes.
_MAX_DIRECT_SPAN = 1 << 16


def cells_in_memory(table: Any, question: Selection) -> Any:
    """Return an Arrow table of (b0, b1, …, n, missing_unit, several_cells), of sums also total; keys keep their types.

    Where a hash draws, columns n0, n1, … hold the numbers of units whose columns are codes. Those of others are made
    here, once for each distinct value: for a million rows of 50,000 people it halves the time (T3 in
    benchmarks/bench_engines.py).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for position, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):  # Polars leaves out what is added to make -0.0 a 0.0
            table = table.set_column(position, field.name, pc.add(table.column(position), 0.0))
    rule, units, keys = question.one_cell, len(question.unit), table.select(keys_of(question))
    if not len(table):
        nothing = answered(keys, np.zeros(0, dtype=np.int64), missing_unit=False)
        return nothing.append_column("total", nothing["n"]) if question.bounds else nothing
    cells = guarded(lambda: _Cells.of(keys.columns, ordered=rule != "error"))
    if question.bounds:
        return cells.answer(*_summed(table, cells, question))
    if not units:
        return cells.answer(np.bincount(cells.codes, minlength=cells.size))
    if question.counts_in_one_cell:
        by_place = _by_place(table["u0"], cells) if units == 1 else None
        return _by_unit(table, cells, units) if by_place is None else by_place
    if rule in DRAWN:
        table = _with_numbers(table, units)
        people = [name for name in table.column_names if name[0] in "un"]
        rows = table.select(people).append_column("code", pa.array(cells.codes))
        with _rows(rows.append_column("pick", pa.array(cells.picks()))) as selected:
            counted = selected.run(selected.drawn(question))
    else:
        rows = table.select([*numbered("u", units), *numbered("o", len(question.order_by))])
        with _rows(rows.append_column("b0", pa.array(cells.codes))) as selected:
            counted = selected.run(cells_statement(question, keys=1)).rename_columns({"b0": "code"})
    counts = np.zeros(cells.size, dtype=np.int64)
    counts[counted["code"].to_numpy()] = counted["n"].to_numpy()
    missing, several = (
        name in counted.column_names and bool(pc.any(counted[name]).as_py())
        for name in ("missing_unit", "several_cells")
    )
    return cells.answer(counts, missing_unit=missing, several_cells=several)


def _summed(table: Any, cells: _Cells, question: Selection) -> tuple[_Integers, bool, bool, _Integers]:
    """Return how many units each cell has, whether a unit is missing or in several, and what they add to each."""
    import pyarrow as pa

    drawn = bool(question.unit) and question.one_cell in DRAWN
    rows = _with_numbers(table, len(question.unit)) if drawn else table
    rows = rows.select([name for name in rows.column_names if name[0] in "unov"])
    rows = rows.append_column("b0", pa.array(cells.codes))
    if drawn:
        rows = rows.append_column("pick", pa.array(cells.picks()))
    with _rows(rows) as selected:
        kinds = dict(zip(rows.column_names, map(str, selected.relation.types), strict=True))
        number = whole_number_sql(question.summed or "", "v", kinds["v"])
        own = tuple(f"{number} AS v" if name == "v" else name for name in rows.column_names)
        answer = replace(selected, selected=own).run(sums_statement(question, kinds))
    counts, totals = np.zeros(cells.size, dtype=np.int64), np.zeros(cells.size, dtype=np.int64)
    counts[answer["b0"].to_numpy()], totals[answer["b0"].to_numpy()] = (
        answer["n"].to_numpy(),
        answer["total"].to_numpy(),
    )
    missing, several = (any(answer[name].to_pylist()) for name in ("missing_unit", "several_cells"))
    return counts, missing, several, totals


def tally_in_memory(table: Any, question: Selection) -> Tally:
    """Count the units that have a hit among their rows, and all, if they are asked for."""
    units, everybody = len(question.unit), question.everybody
    if units == 1 and not table["u0"].null_count:
        satisfying, population = _people(table.filter(table["hit"])["u0"]), _people(table["u0"]) if everybody else None
        if satisfying is not None and (population is not None or not everybody):
            return Tally(satisfying=satisfying, population=population, missing_unit=False)
    with _rows(table) as rows:
        return Tally.of(rows.taken(tally_steps(units=units, everybody=everybody)))


def units_in_memory(table: Any, units: int, doubts: Doubts) -> Units:
    """See `Engine.units`."""
    import pyarrow.compute as pc

    spaced = (pc.any(pc.not_equal(pc.utf8_trim(table[name], SPACES), table[name])).as_py() for name in doubts.texts)
    large = (pc.any(pc.greater_equal(pc.abs(table[name]), least)).as_py() for name, least in doubts.reals.items())
    if not guarded(lambda: any((*spaced, *large))):
        return Units()
    with _rows(table) as rows:
        return rows.doubted(units, doubts)


@contextmanager
def _rows(table: Any) -> Iterator[Rows]:
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            # As a point in time without a zone: DuckDB's own type for these keeps no nanoseconds.
            table = table.set_column(position, field.name, table.column(position).cast(pa.timestamp(kind.unit)))
    with counting(len(table)) as connection:
        yield Rows(guarded(lambda: connection.from_arrow(table)))


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The cell of every row as a whole number.

    Parameters
    ----------
    codes : integer array, one per row
    size : int
        Above every code.
    values : sequence of Arrow arrays
        The distinct keys of each column.
    parts : sequence of integer arrays, one per cell
        Which of a column's keys the cell has; the number after the last stands for "missing".
    """

    codes: _Integers
    size: int
    values: Sequence[Any]
    parts: Sequence[_Integers]

    @classmethod
    def of(cls, columns: Sequence[Any], *, ordered: bool) -> _Cells:
        """Encode columns; with `ordered`, smaller codes are smaller cells, and missing values come last."""
        size, values, parts = 1, [], [np.zeros(1, dtype=np.int64)]
        cells: _Integers = np.zeros(len(columns[0]), dtype=np.int32)
        for column in columns:
            keys, codes = _encoded(column, ordered=ordered)
            most = len(keys) + 1
            if size * most <= DENSE_SPAN:
                cells = cells * np.int32(most) + codes if parts[1:] else codes
                distinct = np.arange(size * most)
            else:
                cells, distinct = pd.factorize(cells.astype(np.int64) * most + codes, sort=ordered)
            values.append(keys)
            parts = [*(part[distinct // most] for part in parts), distinct % most]
            size = len(distinct)
        return cls(cells, size, values, parts[1:])

    def answer(
        self,
        counts: _Integers,
        missing_unit: bool = False,
        several_cells: bool = False,
        totals: _Integers | None = None,
    ) -> Any:
        """Return the cells that have somebody, or one cell where none has, with their counts and both answers."""
        import pyarrow as pa

        occupied = np.flatnonzero(counts) if counts.any() else np.arange(1)
        named, own = self._named(occupied), counts[occupied]
        answer = answered(named, own, missing_unit=missing_unit, several_cells=several_cells)
        return answer if totals is None else answer.append_column("total", pa.array(totals[occupied]))

    def picks(self) -> npt.NDArray[np.int64]:
        """Return the number of every row's cell, by which a hash draws."""
        import pyarrow as pa

        occupied = np.flatnonzero(np.bincount(self.codes, minlength=self.size))
        named = self._named(occupied).append_column("code", pa.array(occupied))
        with _rows(named) as rows:
            numbered_cells = rows.cell_numbers(len(self.values))
        picks = np.zeros(self.size, dtype=np.int64)
        picks[numbered_cells["code"].to_numpy()] = numbered_cells["pick"].to_numpy()
        return picks[self.codes]

    def _named(self, cells: _Integers) -> Any:
        """Return an Arrow table of the keys of these cells."""
        import pyarrow as pa

        named = {}
        for i, (values, part) in enumerate(zip(self.values, self.parts, strict=True)):
            keys = part[cells]
            named[f"b{i}"] = values.take(pa.array(keys, mask=keys == len(values)))
        return pa.table(named)

    def packed(self) -> tuple[_Integers, int]:
        """Return every row's code beside its complement, each in this many bits.

        The OR of two rows differs from both unless they are equal.
        """
        bits = next(bits for bits in (8, 16, 32) if self.size <= 1 << bits)
        codes = self.codes.astype(f"uint{2 * bits}")
        return codes | (((1 << bits) - 1 - codes) << bits), bits


def _encoded(column: Any, *, ordered: bool) -> tuple[Any, _Integers]:
    """Return the distinct keys of a column, and which of them each row has; a number above all where it is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type) and not column.null_count:
        least, most = pc.min_max(column).as_py().values()
        if most - least < _MAX_DIRECT_SPAN and -(2**62) < least <= most < 2**62:
            return pa.array(range(least, most + 1), column.type), (column.to_numpy() - least).astype(np.int32)
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    # A dictionary that came with the column may hold a value twice, or a missing one: its codes are not the values'.
    values = encoded.dictionary.dictionary_encode()
    keys, codes = values.dictionary, encoded.indices
    if values.null_count or len(keys) < len(values):
        codes = values.indices.take(codes)
    codes = codes.fill_null(len(keys)).to_numpy()
    if not ordered:
        return keys, codes
    order = pc.array_sort_indices(keys)
    return keys.take(order), np.append(np.argsort(order.to_numpy()), len(keys)).astype(np.int32)[codes]


def _with_numbers(table: Any, units: int) -> Any:
    """Return a table with the numbers by which a hash draws, n0, …, of all columns of the unit, which become codes."""
    import pyarrow as pa

    for name, number in zip(numbered("u", units), numbered("n", units), strict=True):
        if number in table.column_names:
            continue
        column = table.column_names.index(name)
        values, codes = guarded(partial(_encoded, table.column(column), ordered=False))
        with _rows(pa.table({"u0": values, "code": np.arange(len(values))})) as rows:
            text_number = unit_number(1, {"u0": str(rows.relation.types[0])})
            answer = rows.run(f"SELECT code, {text_number} AS number FROM pkdp_rows")
        numbers = np.zeros(len(values) + 1, dtype=np.int64)
        numbers[answer["code"].to_numpy()] = answer["number"].to_numpy()
        table = table.set_column(column, name, pa.array(codes, mask=codes == len(values)))
        table = table.append_column(number, pa.array(numbers[codes]))
    return table


def _by_place(units: Any, cells: _Cells) -> Any:
    """Count units that are whole numbers close together; None for others."""
    import pyarrow as pa

    missing = units.null_count > 0
    if not pa.types.is_integer(units.type) or units.null_count == len(units):
        return None
    codes = cells.codes[units.is_valid().to_numpy()] if missing else cells.codes
    counted = counted_by_place(units.drop_null().to_numpy(), codes, cells.size)
    return counted and cells.answer(counted[0], missing_unit=missing, several_cells=counted[1])


def _by_unit(table: Any, cells: _Cells, units: int) -> Any:
    """Count all kinds of units: one aggregate gives each its cell, and shows whether it is the only one."""
    import pyarrow as pa

    packed, bits = cells.packed()
    with _rows(table.select(numbered("u", units)).append_column("b0", pa.array(packed))) as rows:
        homes, often, missing_unit = rows.homes("b0", units)
    low, high = homes & ((1 << bits) - 1), homes >> bits
    several = bool((low + high != (1 << bits) - 1).any())
    counts = np.zeros(cells.size, dtype=np.int64)
    if not several:
        counts[low.astype(np.int64)] = often
    return cells.answer(counts, missing_unit=missing_unit, several_cells=several)


def _people(units: Any) -> int | None:
    """Return how many whole-numbered units there are; None for others, and for those that lie far apart."""
    import pyarrow as pa

    if not pa.types.is_integer(units.type):
        return None
    if not len(units):
        return 0
    counted = counted_by_place(units.to_numpy(), np.zeros(len(units), dtype=np.int8), 1)
    return None if counted is None else int(counted[0][0])


#: Numbers that span less than this are close together, however few they are.
DENSE_SPAN = 1 << 20
#: More places than this are not kept, however many rows there are.
_MAX_PLACES = 1 << 28
#: Rows looked at together: their arrays stay in the processor's caches.
_BLOCK_ROWS = 1 << 17
_THREADS = 2


def counted_by_place(units: _Integers, cells: _Integers, size: int) -> tuple[npt.NDArray[np.int64], bool] | None:
    """Return how many distinct units each cell has, and whether a unit has several cells.

    One pass writes every row's cell, below `size`, to its unit's place, another sees whether it is still there. There
    is a row, and no unit is missing. None where the units lie too far apart; they are counted another way.
    """
    least, most = int(units.min()), int(units.max())
    span = most - least + 1
    if (
        size >= 2**31
        or span > min(_MAX_PLACES, max(DENSE_SPAN, 4 * len(units)))
        or not -(2**62) < least <= most < 2**62
    ):
        return None
    homes = np.full(span, -1, dtype=np.int32)
    places = units.astype(np.int64, copy=False)
    places = places - least if least else places
    homes[places] = cells
    return np.bincount(homes[homes >= 0], minlength=size), _moved(homes, places, cells)


def _moved(homes: _Integers, places: _Integers, cells: _Integers) -> bool:
    """Return whether a row's cell is not the one at its place; two threads look, since looking waits for memory."""

    def has_moved(start: int) -> bool:
        rows = slice(start, start + _BLOCK_ROWS)
        return bool((homes.take(places[rows]) != cells[rows]).any())

    starts = range(0, len(places), _BLOCK_ROWS)
    if len(starts) < _THREADS:
        return any(map(has_moved, starts))
    with ThreadPoolExecutor(_THREADS) as threads:
        return any(threads.map(has_moved, starts))


#: More digits than DuckDB's decimals have.
DIGITS = 38

_MAX_DIGITS = 76


def plain_type(kind: Any) -> Any:
    """Return the one Arrow type for what a column of this type holds: its own, unless it is but another layout."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_null(kind) or _is_uuid(kind):
        return pa.string()
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_decimal(kind):
        # A negative scale leaves out zeros before the point, and few libraries have one.
        digits, scale = kind.precision - min(0, kind.scale), max(0, kind.scale)
        if digits <= DIGITS:
            return pa.decimal128(digits, scale)
        return pa.decimal256(digits, scale) if digits <= _MAX_DIGITS else pa.string()
    return kind


def plain_column(name: str, column: Any) -> Any:
    """Return an Arrow column, chunked, under its plain type.

    Raises `ArgumentError`, which names the column, where Arrow cannot read its layout.
    """
    import pyarrow as pa

    if plain_type(column.type) == column.type:
        return column
    problem = ""
    try:
        return pa.chunked_array(map(_plain, column.chunks), plain_type(column.type))
    except pa.ArrowException as error:  # whose words could quote a value
        problem = type(error).__name__
    raise ArgumentError(
        f"column {name!r} has type {column.type}, which cannot be read ({problem}); cast it in the frame, for example "
        "to text."
    )


def plain_table(table: Any, names: Iterable[str]) -> Any:
    """Return an Arrow table in which these columns have their plain types."""
    for name in names:
        position = table.schema.get_field_index(name)
        if position >= 0:
            table = table.set_column(position, name, plain_column(name, table.column(position)))
    return table


def unread(table: Any) -> list[str]:
    """Return the names of columns of an Arrow table whose type Narwhals refuses to read: decimals of negative scale."""
    import pyarrow as pa

    return [field.name for field in table.schema if pa.types.is_decimal(field.type) and field.type.scale < 0]


def untyped(table: Any) -> list[str]:
    """Return the names of columns of an Arrow table that have no type, all missing."""
    import pyarrow as pa

    return [
        field.name
        for field in table.schema
        if pa.types.is_null(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
    ]


def _plain(values: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        return _plain(values.dictionary).take(values.indices)
    if pa.types.is_run_end_encoded(values.type):
        return _plain(pc.run_end_decode(values))
    if _is_uuid(values.type):
        coded = values.cast(values.type.storage_type).dictionary_encode()
        texts = [str(uuid.UUID(bytes=raw)) for raw in coded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(coded.indices)
    return values.cast(plain_type(values.type))


def _is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"
