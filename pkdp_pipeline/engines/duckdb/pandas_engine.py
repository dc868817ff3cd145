"""Counting the units of a pandas frame: its columns as Arrow's, counted where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pkdp_pipeline.engines.answers import cell_counts
from pkdp_pipeline.engines.duckdb.in_memory import cells_of_rows, is_text, tally_of_rows
from pkdp_pipeline.engines.duckdb.pandas_columns import (
    holds_several_types,
    key_column,
    order_column,
    public_dtype,
    unit_column,
)
from pkdp_pipeline.engines.duckdb.selection import selected_rows
from pkdp_pipeline.engines.duckdb.statements import numbered
from pkdp_pipeline.engines.question import DRAWN, CellCounts, Question, Tally
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.model.predicate.columns import check_columns

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ENGINE", "PandasEngine"]


@dataclass(frozen=True, slots=True)
class PandasEngine:
    """Counts the distinct units of a `pandas.DataFrame` in this process."""

    def cells(self, frame: pd.DataFrame, question: Question) -> CellCounts:
        """See `Engine.cells`."""
        for argument, names in (("unit", question.unit), ("by", question.by), ("order_by", question.order_by)):
            check_columns(argument, names, list(frame.columns))
        selected = selected_rows(frame, question.where)
        mixed, columns = _units(frame, question)
        columns |= {f"b{i}": key_column(frame[name]) for i, name in enumerate(question.by)}
        columns |= {f"o{i}": order_column(frame[name]) for i, name in enumerate(question.order_by)}
        rows = _rows(columns, selected)
        if selected is not None and not any(is_text(rows[name].type) for name in numbered("u", len(question.unit))):
            rows = rows.filter(rows["hit"]).drop_columns("hit")
        answer = _counted(cells_of_rows, rows, question)

        def public(keys: Any, name: str) -> pd.Series[Any]:
            return pd.Series(pd.arrays.ArrowExtensionArray(keys)).astype(public_dtype(frame[name].dtype))

        return cell_counts(answer, question, public, mixed=mixed)

    def tally(self, frame: pd.DataFrame, question: Question) -> Tally:
        """See `Engine.tally`."""
        check_columns("unit", question.unit, list(frame.columns))
        selected = selected_rows(frame, question.where)
        mixed, columns = _units(frame, question)
        rows = _rows(columns, np.ones(len(frame), dtype=bool) if selected is None else selected)
        tally: Tally = _counted(tally_of_rows, rows, question)
        return Tally(
            satisfying=tally.satisfying,
            population=tally.population,
            missing_unit=tally.missing_unit,
            mixed=mixed,
            alike=tally.alike,
        )


ENGINE = PandasEngine()


def _units(frame: pd.DataFrame, question: Question) -> tuple[bool, dict[str, Any]]:
    """Return whether a unit's column holds several types, and u0, u1, …."""
    columns = [frame[name] for name in question.unit]
    as_text = question.one_cell in DRAWN
    units = {f"u{i}": unit_column(column, as_text=as_text) for i, column in enumerate(columns)}
    return any(map(holds_several_types, columns)), units


def _rows(columns: dict[str, Any], selected: npt.NDArray[np.bool_] | None) -> pa.Table:
    import pyarrow as pa

    return pa.table(columns if selected is None else columns | {"hit": pa.array(selected)})


def _counted(count: Any, rows: pa.Table, question: Question) -> Any:
    """Return what is counted; what DuckDB says when it cannot could quote the data, and is not passed on."""
    import duckdb

    problem = ""
    try:
        return count(rows, question)
    except (duckdb.Error, ConfigError) as error:
        problem = type(error).__name__
    raise ConfigError(f"the frame could not be counted ({problem}); check the dtypes of the columns it is asked for.")
