"""Every way to publish from one Arrow table: the frames under contract, DuckDB's macros, a gate, a job, files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from adapters import adapters
from worker_inside import Inside

import pkdp_pipeline as pkdp
from pkdp_pipeline import errors
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.extras.gate import worker
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.sources.csv_files import WholeFile
from pkdp_pipeline.model.keys import canonical_key

__all__ = ["ATTACKER", "DAY", "Door", "arrow_frame", "doors", "kind_in_text"]

ATTACKER = pkdp.AttackerModel(p_max=0.5)
DAY = date(2026, 1, 5)

Cells = dict[Any, int]


def as_ours(said: str) -> PkdpError:
    """Return the error of ours that DuckDB repeats in an error of its own."""
    kind, _, message = said.partition("UDF: ")[2].partition(": ")
    return getattr(errors, kind, PkdpError)(message or said)


@dataclass(frozen=True, kw_only=True)
class Door:
    """One way to publish.

    Parameters
    ----------
    name : str
    column : str
        The column of the page's table in which it stands, with others of its kind.
    count : callable
        Takes an Arrow table and a question (by, unit, k, perhaps missing_unit, where and, where SQL has other words
        for that, sql), and gives the released counts by canonical key: of one by-column the key itself, of several a
        tuple. Raises what the door does, from DuckDB's macros the error of ours that they repeat.
    marks : tuple
        Marks of every test through this door.
    slow : bool
        It takes more than some hundredths of a second: of many cases it is tried in some.
    """

    name: str
    column: str
    count: Callable[..., Cells]
    marks: tuple[Any, ...] = ()
    slow: bool = False


def cells(table: pd.DataFrame) -> Cells:
    """Return a public table's counts by key; no key is there twice."""
    counts = {}
    for *keys, count in table.itertuples(index=False, name=None):
        key = tuple(map(canonical_key, keys))
        key = key[0] if len(key) == 1 else key
        assert key not in counts, key
        counts[key] = int(count)
    return counts


def released(frame: Any, *, sql: str | None = None, **question: Any) -> Cells:
    return cells(pkdp.histogram(frame, **{"attacker": ATTACKER, **question}).table)


def arrow_frame(table: pa.Table) -> pd.DataFrame:
    """Return a frame of Arrow's own dtypes."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def by_macros(table: pa.Table, *, by: Any, unit: Any, k: int, **rules: Any) -> Cells:
    """Ask by SQL on a curator's connection."""
    with duckdb.connect() as connection:
        connection.from_arrow(table).create("people")
        pkdp.duckdb.install(connection, attacker=ATTACKER, unit=unit, period=DAY, missing_unit=_missing(rules))
        listed = ", ".join(map(_text, _listed(by)))
        chosen = f", filter := {_text(_filter(rules))}" if _filter(rules) else ""
        try:
            rows = connection.sql(f"FROM pkdp_histogram('people', [{listed}], k := {k}{chosen})").to_arrow_table()
        except duckdb.Error as error:
            said = str(error)
        else:
            return cells(rows.to_pandas(types_mapper=pd.ArrowDtype))
    raise as_ours(said)


def by_gate(table: pa.Table, *, by: Any, unit: Any, k: int, **rules: Any) -> Cells:
    """Ask a gate for the table of a database."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "people.duckdb")
        with duckdb.connect(str(file)) as connection:
            connection.from_arrow(table).create("people")
        file.chmod(0o600)
        columns = [name for name in table.column_names if name not in _listed(unit)]  # it drops rows without a unit
        offered = {"unit": unit, "columns": columns, "k": k}
        policy = {"period": DAY.isoformat(), "attacker": {"p_max": 0.5}, "tables": {"people": offered}}
        with patch.object(worker, "Worker", Inside), pkdp.duckdb.Gate(file, policy=policy) as gate:
            question = {"table": "people", "histogram": _listed(by), "k": k}
            return cells(gate.ask(question | ({"filter": _filter(rules)} if _filter(rules) else {})).table)


def by_job(table: pa.Table, *, by: Any, unit: Any, k: int, **rules: Any) -> Cells:
    """Run a job over a Parquet file, in which all rows are of one day."""
    with tempfile.TemporaryDirectory() as folder:
        table = table.append_column("pkdp_day", pa.array([DAY] * len(table), pa.date32()))
        pq.write_table(table, Path(folder, "people.parquet"))
        chosen = f", where = {json.dumps(rules['where'], ensure_ascii=False)}" if "where" in rules else ""
        file = Path(folder, "job.toml")
        file.write_text(
            f"""
            dataset = "people"
            source = "people.parquet"
            period = {{ column = "pkdp_day" }}
            unit = {_toml(unit)}
            missing_unit = "{_missing(rules)}"
            ledger = "ledger.sqlite"
            evidence = {{ kind = "one_day_protected" }}
            target = "none"
            attacker = {{ p_max = 0.5 }}
            release = [{{ name = "counts", by = {_toml(by)}, k = {k}{chosen} }}]
            output = {{ directory = "out" }}
            """,
            encoding="utf-8",
        )
        (result,) = run_job(load_job(file), DAY).releases
        return cells(result.release.table)


def by_parquet_file(table: pa.Table, **question: Any) -> Cells:
    """Count a Parquet file as `pkdp histogram FILE` does."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "people.parquet")
        pq.write_table(table, file)
        named = {*_listed(question["by"]), *_listed(question["unit"])}
        return released(WholeFile.of(file).rows(named, _listed(question["unit"])), **question)


def kind_in_text(kind: pa.DataType) -> str | None:
    """Return what a CSV file declares of a column whose values it can hold as texts; else None."""
    types = pa.types
    if types.is_dictionary(kind):
        return None
    if types.is_string(kind) or types.is_large_string(kind):
        return "text"
    if types.is_integer(kind) or types.is_float64(kind):
        return "number" if types.is_integer(kind) else "real"
    if types.is_timestamp(kind):
        return None if kind.unit == "ns" else "timestamp" if kind.tz is None else "instant"
    return "boolean" if types.is_boolean(kind) else "date" if types.is_date32(kind) else None


def by_csv_file(table: pa.Table, **question: Any) -> Cells:
    """Count a CSV file as `pkdp histogram FILE` does."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "people.csv")
        table.to_pandas(types_mapper=pd.ArrowDtype).to_csv(file, index=False)
        return _of_texts(file, table, **question)


def by_workbook(table: pa.Table, **question: Any) -> Cells:
    """Count an Excel workbook as `pkdp histogram FILE` does."""
    from openpyxl import Workbook

    with tempfile.TemporaryDirectory() as folder:
        file, book = Path(folder, "people.xlsx"), Workbook()
        book.active.append(table.column_names)
        for row in zip(*table.to_pydict().values(), strict=True):
            book.active.append(row)
        book.save(file)
        return _of_texts(file, table, **question)


def _of_texts(file: Path, table: pa.Table, **question: Any) -> Cells:
    types = {field.name: kind_in_text(field.type) for field in table.schema}
    return released(WholeFile.of(file, types=types).rows(), **question)


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _toml(names: Any) -> str:
    return "[" + ", ".join(f'"{name}"' for name in _listed(names)) + "]"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _filter(rules: Mapping[str, Any]) -> str | None:
    return rules.get("sql") or rules.get("where")


def _missing(rules: Mapping[str, Any]) -> Any:
    return rules.get("missing_unit", "error")


def of_frame(adapter: Any) -> Callable[..., Cells]:
    """Return what counts an Arrow table as a frame of this kind."""

    def count(table: pa.Table, **question: Any) -> Cells:
        with adapter.frame(table) as frame:
            return released(frame, **question)

    return count


def by_accessor(table: pa.Table, *, lazy: bool, sql: str | None = None, **question: Any) -> Cells:
    """Ask a frame of Polars by its own ``df.pkdp``."""
    frame: Any = pl.from_arrow(table)
    return cells((frame.lazy() if lazy else frame).pkdp.histogram(**{"attacker": ATTACKER, **question}).table)


@cache
def doors() -> tuple[Door, ...]:
    """Return all doors."""
    columns = {"pandas": "pandas", "polars": "Polars", "polars lazy": "Polars", "pyarrow": "PyArrow"}
    columns |= {"duckdb": "DuckDB", "spark": "Spark", "ibis": "Ibis"}
    frames = {
        adapter.name: Door(
            name=adapter.name,
            column=columns[adapter.name],
            count=of_frame(adapter),
            marks=adapter.marks,
            slow=bool(adapter.marks),
        )
        for adapter in adapters()
        if adapter.name in columns
    }
    arrow = Door(name="pandas arrow", column="pandas", count=lambda table, **ask: released(arrow_frame(table), **ask))
    others: tuple[Door, ...] = (
        Door(name="polars accessor", column="Polars", count=partial(by_accessor, lazy=False), slow=True),
        Door(name="polars lazy accessor", column="Polars", count=partial(by_accessor, lazy=True), slow=True),
        Door(name="macros", column="DuckDB", count=by_macros, slow=True),
        Door(name="gate", column="DuckDB", count=by_gate, slow=True),
        Door(name="job", column="Parquet", count=by_job, slow=True),
        Door(name="file", column="Parquet", count=by_parquet_file, slow=True),
        Door(name="CSV", column="CSV", count=by_csv_file, slow=True),
    )
    if find_spec("openpyxl") is not None:  # not beside DuckDB 1.5
        others = (*others, Door(name="Excel", column="Excel", count=by_workbook, slow=True))
    local = [frames.pop(name) for name in ("pandas", "polars", "polars lazy", "pyarrow", "duckdb")]
    return (local[0], arrow, *local[1:], *others, *frames.values())
