"""Engines: their protocol, what they are asked and answer, which of them counts a frame, and which files are known.

An engine counts distinct units. It is imported when it is given a frame of its kind. All kinds of frames become the
same rows: ``u0, u1, …`` (the unit), ``b0, b1, …`` (the cell), and what the one-cell rule needs. They are aggregated
where they are, or in memory: only counted cells leave the engine.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from pkdp_pipeline.errors import ArgumentError, ConfigError, TemporaryError
from pkdp_pipeline.model.columns import Selection
from pkdp_pipeline.plugins import hooks

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

Answer = TypeVar("Answer")

#: The rules of `one_cell` by which a hash draws one of a unit's cells, or one of its most frequent ones.
DRAWN = frozenset({"hash", "most_frequent"})
#: What may stand around a unit of text without making it another one: what `str.strip` takes off.
SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Whether some people may have several names in a frame.

    Parameters
    ----------
    mixed : bool
        Whether a unit column holds values of several types, such as 7 and "7".
    alike : bool
        Whether two units differ by nothing but the `SPACES` around their texts.
    rounded : bool
        Whether a unit is a real number so large that whole numbers beside it are the same real.
    """

    mixed: bool = False
    alike: bool = False
    rounded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """Columns of the unit, of u0, u1, …, whose values may be several names of one person, or one name of several.

    Parameters
    ----------
    texts : tuple of str
        Those that hold text: see `SPACES`.
    reals : mapping of str to float
        Those that hold reals, each with the least whole number that rounding may have made of another.
    """

    texts: tuple[str, ...] = ()
    reals: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.texts or self.reals)


NO_DOUBTS = Doubts()
#: The least whole number that may be a rounded one, by the bits of a real.
ROUNDED: Mapping[int, float] = MappingProxyType({16: 2.0**11, 32: 2.0**24, 64: 2.0**53})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellCounts:
    """How many distinct units every non-empty cell holds.

    Parameters
    ----------
    keys : pandas.DataFrame
        The by-columns of the cells, under their public dtypes.
    counts : integer array, one per cell
    sums : integer array, one per cell, optional
        The sum of the units in each cell, where one is asked for.
    missing_unit : bool
        Whether a row has a missing value in a unit column; such rows are not counted.
    several_cells : bool
        Whether a unit was found in several cells and no rule said which one counts; then no cells are given.
    units : Units, optional
        The answer of `Engine.units`, where counting has shown it.
    """

    keys: pd.DataFrame
    counts: npt.NDArray[np.int64]
    missing_unit: bool
    several_cells: bool
    units: Units | None = None
    sums: npt.NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        answer: Any,
        by: Sequence[str],
        public: Callable[[Any, str], pd.Series[Any]],
        units: Units | None = None,
    ) -> CellCounts:
        """Read an Arrow table of (b0, b1, …, n, missing_unit, several_cells), one row per cell; of sums also total.

        `public` gives the keys of a column, by its name, their public dtype.
        """
        import pandas as pd
        import pyarrow.compute as pc

        several_cells = bool(pc.any(answer["several_cells"]).as_py())
        # A cell that only rows without a unit mention has nobody in it.
        counted = answer.slice(0, 0) if several_cells else answer.filter(pc.greater(answer["n"], 0))
        keys = {name: public(counted[short], name) for name, short in zip(by, numbered("b", len(by)), strict=True)}
        return cls(
            keys=pd.DataFrame(keys, copy=False),
            counts=counted["n"].to_numpy().astype("int64"),
            missing_unit=bool(pc.any(answer["missing_unit"]).as_py()),
            several_cells=several_cells,
            units=units,
            sums=counted["total"].to_numpy().astype("int64") if "total" in counted.column_names else None,
        )


def answered(
    cells: Any, counts: npt.NDArray[np.int64], *, missing_unit: bool, several_cells: bool = False, **looks: bool
) -> Any:
    """Return an Arrow table of cells with what a query about units in cells adds: n, the two answers, and `looks`."""
    import pyarrow as pa

    answer = cells.append_column("n", pa.array(counts, pa.int64()))
    for name, value in {"missing_unit": missing_unit, "several_cells": several_cells, **looks}.items():
        answer = answer.append_column(name, pa.repeat(value, len(counts)))
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many distinct units have a row that satisfies the predicate; and how many there are, where that is asked.

    `units` is as in `CellCounts`.
    """

    satisfying: int
    population: int | None
    missing_unit: bool
    units: Units | None = None

    @classmethod
    def of(cls, answer: Any) -> Tally:
        """Read an Arrow table of (satisfying, population, missing_unit) with one row, or none for no units.

        A population that is NULL was not asked for.
        """
        values = (answer.to_pylist() or [{}])[0]
        return cls(
            satisfying=int(values.get("satisfying") or 0),
            population=None if values.get("population", 0) is None else int(values.get("population", 0)),
            missing_unit=bool(values.get("missing_unit")),
        )


class Engine(Protocol):
    """Counts distinct units, and sums what they add; knows nothing about privacy.

    All methods read the frame, never change it, and raise errors that name columns and rules only.
    """

    def cells(self, frame: Any, question: Selection) -> CellCounts:
        """Count the units in every cell of ``question.by``, among the rows that satisfy ``where``.

        With ``question.bounds`` also sum what they add, where there are no by-columns in one cell.
        """
        ...

    def tally(self, frame: Any, question: Selection) -> Tally:
        """Count the units that satisfy ``where`` in at least one of their rows, and all if ``everybody`` asks so."""
        ...

    def units(self, frame: Any, unit: tuple[str, ...]) -> Units:
        """Look at the unit's columns in every row."""
        ...


def numbered(letter: str, columns: int) -> list[str]:
    """Return the names of that many columns of the rows that are counted, for example u0 and u1."""
    return [f"{letter}{position}" for position in range(columns)]


def keys_of(question: Selection) -> list[str]:
    """Return the names of the columns that name a cell; a sum without by-columns has one cell."""
    return numbered("b", len(question.by) or 1)


def not_counted(problem: str) -> ConfigError:
    """Return what to say where an engine fails, whose own words could quote the data."""
    return ConfigError(
        f"the frame could not be counted ({problem}); check that its engine or connection is open and free, that it "
        "can be read from start to end, and that where compares columns with constants of their own type."
    )


def guarded(question: Callable[[], Answer]) -> Answer:
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


def wrong_where(where: object, allowed: str) -> ArgumentError:
    """Return what to say of a predicate that this kind of frame cannot be asked."""
    kind = type(where)
    package = kind.__module__.partition(".")[0]
    return ArgumentError(
        f"where must be {allowed}, not {kind.__name__ if package == 'builtins' else f'{package}.{kind.__name__}'}; "
        "anything else: filter the frame itself, or add a boolean column to it."
    )


#: What was looked at and is in no doubt. A file counts from some seconds after it was written, which its times tell.
_KNOWN: dict[object, bool] = {}
_MAX_KNOWN, _SETTLED_NANOSECONDS = 4096, 2 * 10**9


@dataclass(frozen=True, slots=True)
class Look:
    """A look at names in Parquet files; `place`: what is read of which files, and their state.

    `is_known`: whether all rows of files in this state were looked at before in this process.
    """

    files: ParquetFiles | None = None
    place: tuple[object, ...] = ()
    is_known: bool = False
    is_settled: bool = False

    @classmethod
    def of(cls, files: ParquetFiles, read: object) -> Look:
        """Return the look at what is `read` of files in the state in which they are now."""
        states = []
        try:
            for name in files.names:
                with open(name, "rb") as file:  # what is opened is as new as what DuckDB opens, also on a network
                    states.append(os.fstat(file.fileno()))
        except OSError:
            return cls()
        same = tuple(
            (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns) for state in states
        )
        newest, place = max(max(state[-2:]) for state in same), (files.reading, same, read)
        return cls(files, place, place in _KNOWN, newest < time.time_ns() - _SETTLED_NANOSECONDS)

    def passed(self, after: Look) -> None:
        """Keep that no name is in doubt, where all rows were read and the files are `after` that as they were."""
        if self.is_settled and self.files is not None and self.files.all_rows and after.place == self.place:
            if len(_KNOWN) >= _MAX_KNOWN:
                _KNOWN.clear()
            _KNOWN[self.place] = True


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Local Parquet files of which a relation has all rows, or those of some conditions, and the columns as they are.

    `reading`: how, as text. Which rows a condition leaves out, its text does not say: it may have variables, macros,
    and what a session sets. `calls`: of the functions by which they are read.
    """

    names: tuple[str, ...]
    reading: str
    all_rows: bool
    calls: tuple[str, ...]


_READERS = ("parquet_scan", "read_parquet")


def resolved(files: ParquetFiles | None) -> str:
    """Return SQL for whether the calls by which `files` are read reach DuckDB's own functions, and no macro.

    It is part of a statement that reads them: names have one meaning throughout a statement. How DuckDB plans a call is
    compared with its plan of the function's full name, where no macro can be. The argument's name is drawn: no macro
    has it, and DuckDB refuses it in other words than a function does. The listing of functions takes 15 times as long.
    """
    argument, tests = f"pkdp_{secrets.token_hex(8)} := 1", ["true"]
    for call in files.calls if files is not None else ():
        clause, name = call.split(" ")
        own = f"system.main.{name.rpartition('.')[2]}"
        # Plans have the places of names in their text: both texts are as long.
        texts = (
            f"'{clause} {function}({argument.rjust(len(own + argument) - len(function))})'" for function in (name, own)
        )
        tests.append(" = ".join(f"system.main.json_serialize_plan({text})" for text in texts))
    return f"system.main.bool_and({' AND '.join(tests)})"


def parquet_files(relation: duckdb.DuckDBPyRelation, parser: duckdb.DuckDBPyConnection) -> ParquetFiles | None:
    """Return what a relation reads; None unless it is read from files alone, as its syntax tree says.

    Conditions leave rows out, and change no value. Whether a macro has the name of DuckDB's own reader, see `resolved`.
    """
    import duckdb

    all_rows = True
    with suppress(duckdb.Error, LookupError, TypeError, AttributeError):
        text = relation.sql_query()
        if "parquet" not in text:
            return None
        if not _PLAIN:
            _PLAIN.update(_parsed("SELECT * FROM parquet_scan([])", parser))
        node, plain = _parsed(text, parser), _PLAIN
        while True:
            table, condition = node.pop("from_table"), node.pop("where_clause")
            all_rows = all_rows and not condition
            if node != {key: plain[key] for key in node} or table["sample"] or table["column_name_alias"]:
                return None
            if table["type"] != "SUBQUERY":
                break
            node = table["subquery"]["node"]
        function, names = table["function"], tuple(_texts(table["function"]))
        own = function["function_name"] in _READERS and not function["schema"]
        if own and names and not any(map(_ELSEWHERE.match, names)):
            return ParquetFiles(names, json.dumps(function), all_rows, tuple(_calls(function)))
    return None


#: Names of several files, or of those of another file system or folder.
_ELSEWHERE = re.compile(r"$|~|\w+:|.*[*?\[{]", re.DOTALL)


#: The tree of a query that selects everything.
_PLAIN: dict[str, Any] = {}


def _parsed(text: str, parser: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return the tree of one query; an error where it is none."""
    # A literal: to prepare a statement with a parameter takes longer than to parse.
    text = text.replace("'", "''")
    (tree,) = parser.execute(f"SELECT json_serialize_sql('{text}')").fetchone() or ()
    (statement,) = json.loads(tree, object_hook=_without_places)["statements"]
    node: dict[str, Any] = statement["node"]
    return node


def _without_places(node: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in node.items() if "query_location" not in name}


def _arguments(call: Mapping[str, Any]) -> list[Any]:
    if "children" in call:  # DuckDB 1
        return list(call["children"])
    return [argument["expression"] for argument in call["arguments"]]


def _calls(reading: Mapping[str, Any]) -> Iterator[str]:
    """Yield the calls of a reader and, where it is one, of what makes its list of files, as they are written."""
    yield f"FROM {reading['function_name']}"
    first = _arguments(reading)[0]
    if first["class"] == "FUNCTION":
        yield f"SELECT {'main.' * bool(first['schema'])}{first['function_name']}"


def _texts(reading: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files that a call names first, alone or in a list; an error where an argument is no constant."""
    first, *options = _arguments(reading)
    for option in options:
        named = option["class"] == "COMPARISON" and option["left"]["class"] == "COLUMN_REF"
        value = option["right"] if named else option
        # DuckDB 1 writes false as a cast of 'f'.
        if value["class"] != "CONSTANT" and (value["cast_type"]["id"], value["child"]["class"]) != _WRITTEN_BOOLEAN:
            raise LookupError
    named = first["class"] == "FUNCTION" and (first.get("catalog", ""), first["schema"], first["function_name"])
    if named not in (False, ("", "", "list_value"), ("", "main", "list_value")):
        raise LookupError
    for value in _arguments(first) if first["class"] == "FUNCTION" else [first]:
        yield value["literal"]["text"] if "literal" in value else value["value"]["value"]


_WRITTEN_BOOLEAN = ("BOOLEAN", "CONSTANT")
_OURS = "pkdp_pipeline"
#: Top-level package and class name of a frame → the class that counts it, imported when first needed.
ENGINES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("pandas", "DataFrame"): "pkdp_pipeline.engines.pandas_engine:PandasEngine",
        ("duckdb", "DuckDBPyRelation"): "pkdp_pipeline.engines.relation_engine:RelationEngine",
        ("_duckdb", "DuckDBPyRelation"): "pkdp_pipeline.engines.relation_engine:RelationEngine",
        (_OURS, "OnePeriod"): "pkdp_pipeline.engines.period_engine:PeriodEngine",
        ("polars", "DataFrame"): "pkdp_pipeline.engines.narwhals_engine:PolarsEngine",
        ("polars", "LazyFrame"): "pkdp_pipeline.engines.narwhals_engine:PolarsEngine",
        ("pyarrow", "Table"): "pkdp_pipeline.engines.narwhals_engine:ArrowEngine",
        ("narwhals", "DataFrame"): "pkdp_pipeline.engines.narwhals_engine:WrappedEngine",
        ("narwhals", "LazyFrame"): "pkdp_pipeline.engines.narwhals_engine:WrappedEngine",
    }
)


def engine_for(frame: object) -> Engine:
    """Return the engine that counts `frame`.

    Raises `ArgumentError` if no engine does, `ConfigError` if the engine needs a package that is not installed.
    """
    kinds = type(frame).__mro__
    names = [(kind.__module__.split(".")[0], kind.__name__) for kind in kinds]
    places = [ENGINES.get(name) for name in names]
    if not any(places):
        others = dict(hooks("engines"))
        places = [others.get(f"{package}.{name}") for package, name in names]
    for kind, place in zip(kinds, places, strict=True):
        module, _, engine = (place or "").partition(":")
        if engine:
            try:
                return cast("Engine", getattr(import_module(module), engine)())
            except ModuleNotFoundError as error:
                raise ConfigError(f"frames of {kind.__module__} need the package {error.name}; install it.") from None
    own = {f"{package.strip('_')}.{name}" for package, name in ENGINES if package != _OURS}
    readable = ", ".join(sorted(own | others.keys()))
    raise ArgumentError(f"frame must be one of {readable}, not {type(frame).__module__}.{type(frame).__name__}.")


__all__ = ["ENGINES", "CellCounts", "Engine", "Selection", "Tally", "Units", "engine_for"]
