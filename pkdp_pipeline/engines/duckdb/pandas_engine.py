"""Counting the units of a pandas frame: columns become codes in pandas, NumPy or DuckDB counts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines.duckdb.cell_codes import CellCodes, encode_cells
from pkdp_pipeline.engines.duckdb.connecting import counting
from pkdp_pipeline.engines.duckdb.selection import plain, selected_rows
from pkdp_pipeline.engines.duckdb.statements import alike_statement, cells_statement, numbered, tally_statement
from pkdp_pipeline.engines.places import counted_by_place, tallied_by_place
from pkdp_pipeline.engines.question import DRAWN, SPACES, CellCounts, Tally, Units
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.model.predicate.columns import check_columns
from pkdp_pipeline.model.question import Selection


@dataclass(frozen=True, slots=True)
class PandasEngine:
    """Counts the distinct units of a `pandas.DataFrame` with a private, in-memory DuckDB."""

    def cells(self, frame: pd.DataFrame, question: Selection) -> CellCounts:
        """See `Engine.cells`."""
        for argument, names in (
            ("unit", question.unit),
            ("by", question.by),
            ("order_by", question.order_by),
        ):
            check_columns(argument, names, list(frame.columns))
        selected = selected_rows(frame, question.where)
        wanted = dict.fromkeys((*question.unit, *question.by, *question.order_by))
        read = {name: plain(frame[name]) for name in wanted}
        rows = {name: column if selected is None else column.loc[selected] for name, column in read.items()}
        codes = encode_cells([rows[name] for name in question.by], ordered=question.one_cell != "error")
        counted = _by_place([rows[name] for name in question.unit], codes, question)
        if counted is not None:
            return counted
        columns = _unit_columns(rows, question)
        packed = question.one_cell == "error" and bool(question.unit)
        columns["b0"] = codes.packed() if packed else codes.codes
        for position, name in enumerate(question.order_by):
            columns[f"o{position}"] = _ranks(rows[name])
        if question.one_cell in DRAWN:
            columns["pick"] = codes.spelled()
        statement = cells_statement(
            units=len(question.unit),
            keys=1,
            one_cell=question.one_cell,
            orders=len(question.order_by),
            pick="pick",
            packed_bits=codes.bits if packed else None,
        )
        answer = _aggregate(columns, statement)
        return _cell_counts(answer, codes, question)

    def tally(self, frame: pd.DataFrame, question: Selection) -> Tally:
        """See `Engine.tally`."""
        check_columns("unit", question.unit, list(frame.columns))
        selected = selected_rows(frame, question.where)
        units = {name: plain(frame[name]) for name in question.unit}
        hits = np.ones(len(frame), dtype=bool) if selected is None else selected
        if len(units) == 1 and _has_places(*units.values()):
            tallied = tallied_by_place(next(iter(units.values())).to_numpy(), hits)
            if tallied is not None:
                return Tally(satisfying=tallied[0], population=tallied[1], missing_unit=False)
        columns = _unit_columns(units, question)
        columns["hit"] = hits
        answer = _aggregate(columns, tally_statement(units=len(question.unit)))
        satisfying, population, missing = (answer[name].iloc[0] for name in answer.columns)
        return Tally(satisfying=int(satisfying), population=int(population), missing_unit=bool(missing))

    def units(self, frame: pd.DataFrame, unit: tuple[str, ...]) -> Units:
        """See `Engine.units`."""
        check_columns("unit", unit, list(frame.columns))
        columns = [frame[name] for name in unit]
        if any(map(holds_several_types, columns)):
            return Units(mixed=True)
        texts = {
            name: column for name, column in zip(numbered("u", len(unit)), columns, strict=True) if holds_text(column)
        }
        if not any(map(has_spaces, texts.values())):
            return Units()
        rows = _unit_columns({name: plain(frame[name]) for name in unit}, Selection(unit=unit))
        rows |= {name: column.astype("str").array for name, column in texts.items()}
        answer = _aggregate(rows, alike_statement(units=len(unit), texts=list(texts)))
        return Units(alike=bool(answer["alike"].iloc[0]))


ENGINE = PandasEngine()


def _by_place(units: list[pd.Series[Any]], codes: CellCodes, question: Selection) -> CellCounts | None:
    """Count units that are whole numbers close together; None for others and for other rules."""
    if question.one_cell != "error" or len(units) != 1 or not _has_places(units[0]):
        return None
    found = counted_by_place(units[0].to_numpy(), codes.codes, codes.size)
    if found is None:
        return None
    counts, several_cells = found
    held = np.flatnonzero(counts) if not several_cells else np.empty(0, dtype=np.int64)
    keys = codes.decode(held)
    return CellCounts(
        keys=pd.DataFrame(dict(zip(question.by, keys, strict=True)), copy=False),
        counts=counts[held],
        missing_unit=False,
        several_cells=several_cells,
    )


def _has_places(units: pd.Series[Any]) -> bool:
    """Return whether there are units, all whole numbers of NumPy's, none of which can be missing."""
    return bool(len(units)) and isinstance(units.dtype, np.dtype) and units.dtype.kind in "iu"


def _cell_counts(answer: pd.DataFrame, codes: CellCodes, question: Selection) -> CellCounts:
    several_cells = bool(answer["several_cells"].any())
    # A cell that only rows without a unit mention has nobody in it.
    held = answer.loc[(answer["n"] > 0) & (not several_cells)].sort_values("b0")
    keys = codes.decode(held["b0"].to_numpy())
    return CellCounts(
        keys=pd.DataFrame(dict(zip(question.by, keys, strict=True)), copy=False),
        counts=held["n"].to_numpy(dtype=np.int64),
        missing_unit=bool(answer["missing_unit"].any()),
        several_cells=several_cells,
    )


def _unit_columns(rows: Mapping[str, pd.Series[Any]], question: Selection) -> dict[str, Any]:
    names = numbered("u", len(question.unit))
    as_text = question.one_cell in DRAWN
    return {
        name: _unit_column(rows[column], as_text=as_text) for name, column in zip(names, question.unit, strict=True)
    }


def _unit_column(column: pd.Series[Any], *, as_text: bool) -> Any:
    """Return the column in a form DuckDB compares as pandas does: whole numbers or text, missing ones NULL.

    `as_text` keeps the unit's own name, which a code would replace by one that depends on the other units.
    """
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return column.array
    if isinstance(dtype, pd.StringDtype):
        return column.array
    codes, distinct = _factorized(column)
    if as_text:
        # What is equal is one unit, and has one spelling: 0.0 is -0.0, and 7 is 7.0.
        values = pd.Series(distinct)
        numbers = np.array([isinstance(value, Number) for value in values], dtype=bool)
        names = (values + 0.0 if pd.api.types.is_float_dtype(values.dtype) else values).astype("str")
        names = names.mask(numbers, names.str.removesuffix(".0"))
        return names.array.take(codes, allow_fill=True)
    return pd.arrays.IntegerArray(codes.astype(np.int64), codes < 0)


def _ranks(column: pd.Series[Any]) -> Any:
    """Return where each value stands in the column's order; missing ones NULL."""
    codes, _ = _factorized(column, sort=True)
    return pd.arrays.IntegerArray(codes.astype(np.int64), codes < 0)


def _factorized(column: pd.Series[Any], *, sort: bool = False) -> tuple[npt.NDArray[np.intp], Any]:
    problem = ""
    try:
        return column.factorize(sort=sort)
    except (TypeError, NotImplementedError) as error:
        problem = type(error).__name__
    raise ArgumentError(
        f"column {column.name!r} holds values that cannot be {'ordered' if sort else 'compared'} ({problem}); give it "
        "one dtype, for example with astype('str')."
    )


def _aggregate(columns: dict[str, Any], statement: str) -> pd.DataFrame:
    """Run one statement over ``pkdp_rows`` in a connection of its own, which is closed again."""
    import duckdb

    rows = pd.DataFrame(columns, copy=False)
    problem = ""
    try:
        with counting(len(rows)) as connection:
            connection.register("pkdp_rows", rows)
            answer: pd.DataFrame = connection.sql(statement).to_arrow_table().to_pandas()
            return answer
    except duckdb.Error as error:
        problem = type(error).__name__
    # The engine's own text could quote the data.
    raise ConfigError(f"the frame could not be counted ({problem}); check the dtypes of the columns it is asked for.")


#: What pandas calls columns of objects that may have several types; to it a time among dates is a date.
_PERHAPS_MIXED = frozenset({"mixed", "mixed-integer", "date"})


def holds_several_types(column: pd.Series[Any]) -> bool:
    """Return whether values are of several types, such as text and numbers; all numbers are of one type."""
    values = _values(column)
    if values.dtype != object or pd.api.types.infer_dtype(values, skipna=True) not in _PERHAPS_MIXED:
        return False
    return len({_type(value) for value in values[values.notna()]}) > 1


def holds_text(column: pd.Series[Any]) -> bool:
    """Return whether values are text."""
    import pyarrow as pa

    values = _values(column)
    if isinstance(values.dtype, pd.ArrowDtype):
        kind = values.dtype.pyarrow_dtype
        return any(is_text(kind) for is_text in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))
    return isinstance(values.dtype, pd.StringDtype) or pd.api.types.infer_dtype(values, skipna=True) == "string"


def has_spaces(column: pd.Series[Any]) -> bool:
    """Return whether a text has spaces around it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(_values(column), type=pa.large_string(), from_pandas=True)
    return bool(pc.any(pc.not_equal(pc.utf8_trim(texts, SPACES), texts)).as_py())


def _values(column: pd.Series[Any]) -> Any:
    """Return the values of a column; of categories those that some row has, each once."""
    import pyarrow as pa

    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = np.unique(column.cat.codes)
        return column.cat.categories.take(codes[codes >= 0])
    if isinstance(column.dtype, pd.ArrowDtype) and pa.types.is_dictionary(column.dtype.pyarrow_dtype):
        return column.astype(pd.ArrowDtype(column.dtype.pyarrow_dtype.value_type))
    return column


def _type(value: Any) -> object:
    if isinstance(value, (bool, np.bool_)):
        return bool
    return next((kind for kind in (str, bytes, Number, datetime) if isinstance(value, kind)), type(value))
