"""The types of columns: what every door counts of each as a cell's key and as a unit, or with which word it refuses."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from doors import kind_in_text

__all__ = ["COLUMNS", "DAYS", "NO_UNIT", "TYPES", "Type", "coded", "page"]

#: Frames and files as the page names them, and the doors of each.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "pandas": ("pandas",),
    "its Arrow dtypes": ("pandas arrow",),
    "Polars": ("polars", "polars lazy", "polars accessor", "polars lazy accessor"),
    "PyArrow": ("pyarrow",),
    "DuckDB, SQL, gate": ("duckdb", "macros", "gate"),
    "Parquet": ("job", "file"),
    "CSV": ("CSV",),
    "Excel": ("Excel",),
    "Ibis": ("ibis",),
    "Spark": ("spark",),
}
_POLARS = frozenset(COLUMNS["Polars"])
_DUCKDB = frozenset({"duckdb", "macros", "gate", "ibis"})
_PARQUET = frozenset({"job", "file"})


@dataclass(frozen=True, kw_only=True)
class Type:
    """A type of a column, and what comes of it.

    Parameters
    ----------
    name : str
        As the page calls it; several may have one name, and then one answer.
    column : Arrow array
        Seven values: two that are there twice, one that is there once, and twice none.
    key : dict or str
        The cells and how many people they have; or a pattern of the refusal's words.
    unit : int or str
        How many people it names; or a pattern of the refusal's words.
    unlike : mapping of str to tuple
        By door, `key` and `unit` where they are others.
    unheld : frozenset of str
        Doors whose frames have no such column, or cannot be made of this one.
    """

    name: str
    column: pa.Array
    key: dict[Any, int] | str
    unit: int | str = 3
    unlike: Mapping[str, tuple[dict[Any, int] | str, int | str]] = field(default_factory=dict)
    unheld: frozenset[str] = frozenset()

    def is_held(self, door: str) -> bool:
        """Return whether a door's frames have such a column."""
        if door in self.unheld or (door == "spark" and _is_foreign_to_spark(self.column.type)):
            return False
        return door not in ("CSV", "Excel") or kind_in_text(self.column.type) is not None

    def of(self, door: str) -> tuple[dict[Any, int] | str, int | str]:
        """Return what a door makes of it, as a key and as a unit."""
        return self.unlike.get(door, (self.key, self.unit))


def _is_foreign_to_spark(kind: Any) -> bool:
    """Return whether Spark makes nothing of an Arrow column: it has no unsigned numbers, nanoseconds and layouts."""
    if pa.types.is_dictionary(kind):
        return _is_foreign_to_spark(kind.value_type)
    words = ("view", "run_end", "uint", "half", "date64", "time32", "[ns]", "[ns,", "extension", "fixed_size_list")
    return any(word in str(kind) for word in words) or (pa.types.is_decimal(kind) and kind.precision > 38)


def seven(kind: Any, *values: Any) -> pa.Array:
    """Return the first value twice, the second twice, the third, and twice none."""
    first, second, third = values
    return pa.array([first, first, second, second, third, None, None], kind)


def coded(values: pa.Array, codes: list[int | None]) -> pa.Array:
    """Return a dictionary's values by these codes."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), values)


def counted(first: Any, second: Any) -> dict[Any, int]:
    """Return the cells of these keys, and that of nothing."""
    return {first: 2, second: 2, None: 2}


ONE, TWO = dt.datetime(2020, 1, 1), dt.datetime(1969, 12, 31, 23)
DAYS = (dt.date(2020, 1, 1), dt.date(1969, 12, 31), dt.date(2021, 1, 1))
STAMPS = (ONE, TWO, dt.datetime(2021, 1, 1))
LETTERS = counted("a", "b")
#: What is said of a type that names no cell or no unit.
NO_KEY, NO_UNIT = "which cannot name cells|does not hold text alone", "cannot be compared|are not compared|fit the data"
ROUNDED = "whole numbers kept as reals|cannot be read in full"
#: pandas has Python objects for it, of which it counts units.
OBJECTS = {"pandas": (NO_KEY, 3)}
UUIDS = [uuid.UUID(int=number) for number in (1, 2, 3)]

TYPES = (
    *(
        Type(name="text, in every layout", column=seven(kind, "a", "b", "c"), key=LETTERS)
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    ),
    Type(name="dictionaries", column=seven(pa.string(), "a", "b", "c").dictionary_encode(), key=LETTERS),
    Type(
        # Lower-casing a dictionary does that.
        name="dictionaries that hold a value twice, or none",
        column=coded(pa.array(["a", "b", "a", "c"]), [0, 2, 1, 1, 3, None, None]),
        key=LETTERS,
        unheld=frozenset({"pandas"}),
    ),
    Type(
        name="dictionaries that hold a value twice, or none",
        column=coded(pa.array(["a", "b", "a", "c", None]), [0, 2, 1, 1, 3, 4, None]),
        key=LETTERS,
        unheld=frozenset({"pandas"}) | _PARQUET,
    ),
    Type(
        name="dictionaries that hold a value twice, or none",
        column=coded(pa.array([0.0, -0.0, 2.5, 2.5, 3.0, float("nan")]), [0, 1, 2, 3, 4, 5, None]),
        key=counted(0.0, 2.5),
        unheld=frozenset({"pandas"}),
    ),
    Type(
        name="dictionaries that hold a value twice, or none",
        column=coded(pa.array([DAYS[0], DAYS[1], DAYS[0], DAYS[2]]), [0, 2, 1, 1, 3, None, None]),
        key=counted(*DAYS[:2]),
        unheld=frozenset({"pandas"}),
    ),
    Type(
        name="run ends",
        column=pa.RunEndEncodedArray.from_arrays(
            pa.array([1, 2, 4, 5, 7], pa.int32()), pa.array(["a", "a", "b", "c", None])
        ),
        key=LETTERS,
        unheld=_POLARS | _PARQUET,
    ),
    *(
        Type(name="whole numbers to 64 bits", column=seven(kind, 1, 2, 3), key=counted(1, 2))
        for kind in (pa.int8(), pa.int64(), pa.uint16(), pa.uint64())
    ),
    Type(
        name="whole numbers to 64 bits",
        column=seven(pa.int64(), 2**63 - 1, 2**63 - 2, -(2**63)),
        key=counted(2**63 - 1, 2**63 - 2),
        unheld=frozenset({"pandas", "Excel"}),  # which make reals of them, pandas beside a missing value
    ),
    *(
        Type(name="reals", column=seven(kind, 1.0, 2.5, 3.0), key=counted(1, 2.5))
        for kind in (pa.float32(), pa.float64())
    ),
    *(
        Type(
            name=f"reals, a whole number from {name}",
            column=seven(kind, least, least + 2, 3.0),
            key=counted(least, least + 2),
            unit=ROUNDED,
            unlike={"Excel": ("15 digits", "15 digits")},
        )
        for name, kind, least in (("2^53", pa.float64(), 2.0**53), ("2^24 in 32 bits", pa.float32(), 2.0**24))
    ),
    Type(
        name="half floats",
        column=pa.array([*map(np.float16, [1, 1, 2.5, 2.5, 3]), None, None], pa.float16()),
        key=counted(1, 2.5),
        unlike=dict.fromkeys(_PARQUET, (counted(1, 2.5), "half floats")),
        unheld=_DUCKDB,
    ),
    Type(
        name="half floats, a whole number from 2^11",
        column=pa.array([*map(np.float16, [2048, 2048, 2050, 2050, 3]), None, None], pa.float16()),
        key=counted(2048, 2050),
        unit=ROUNDED,
        unlike=dict.fromkeys(_PARQUET, (counted(2048, 2050), "half floats")),
        unheld=_DUCKDB,
    ),
    Type(
        name="booleans",
        column=pa.array([True, True, False, False, None, None]),
        key=counted(True, False),
        unit=2,
    ),
    *(
        Type(
            name="decimals to 38 digits",
            column=seven(kind, Decimal("1.50"), Decimal("-2.00"), Decimal("3.25")),
            key=counted(Decimal("1.50"), Decimal("-2.00")),
        )
        for kind in (pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(38, 2))
    ),
    Type(
        name="decimals to 38 digits",
        column=seven(pa.decimal256(30, 2), Decimal("1.50"), Decimal("-2.00"), Decimal("3.25")),
        key=counted(Decimal("1.50"), Decimal("-2.00")),
        unheld=_POLARS | _DUCKDB,
    ),
    Type(
        name="decimals of more digits",
        column=seven(pa.decimal256(60, 0), Decimal("1" + 50 * "0"), Decimal("1" + 49 * "0" + "1"), Decimal(3)),
        key=f"38 are not told apart|{NO_KEY}",
        unit=f"38 are not told apart|{NO_UNIT}",
        unheld=_POLARS | _DUCKDB,
    ),
    *(Type(name="dates", column=seven(kind, *DAYS), key=counted(*DAYS[:2])) for kind in (pa.date32(),)),
    Type(
        name="dates",
        column=seven(pa.date64(), *DAYS),
        key=counted(*DAYS[:2]),
        unheld=_POLARS,  # has timestamps of them
    ),
    *(
        Type(
            name="timestamps",
            column=seven(pa.timestamp(unit), *STAMPS),
            key=counted(*map(pd.Timestamp, STAMPS[:2])),
        )
        for unit in ("s", "ms", "us", "ns")
    ),
    *(
        Type(
            name="instants",
            column=seven(pa.timestamp(unit, "UTC"), *STAMPS),
            key=counted(*(pd.Timestamp(stamp, tz="UTC") for stamp in STAMPS[:2])),
            unheld=frozenset({"Excel"}),
        )
        for unit in ("s", "ms", "us")
    ),
    *(
        Type(
            name="times of day",
            column=seven(kind, 1, 2, 3),
            key=NO_KEY,
            unlike=OBJECTS | {"spark": (NO_KEY, NO_UNIT)},
        )
        for kind in (pa.time32("s"), pa.time64("us"))
    ),
    Type(
        name="times of day",
        column=seven(pa.time64("ns"), 1, 2, 3),
        key=NO_KEY,
        unheld=frozenset({"pandas", "ibis"}),
    ),
    *(
        Type(
            name="durations",
            column=seven(pa.int64(), 1, 2, 3).cast(pa.duration(unit)),
            key=NO_KEY,
            unit=NO_UNIT,
            unheld=_PARQUET,  # has whole numbers of them
        )
        for unit in ("s", "ns")
    ),
    *(
        Type(name="bytes, in every layout", column=seven(kind, b"aa", b"bb", b"cc"), key=NO_KEY, unlike=OBJECTS)
        for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2))
    ),
    Type(
        name="UUID",
        column=pa.ExtensionArray.from_storage(
            pa.uuid(), seven(pa.binary(16), *(identifier.bytes for identifier in UUIDS))
        ),
        key=counted(*map(str, UUIDS[:2])),
        unlike=OBJECTS | dict.fromkeys(_POLARS, (NO_KEY, 3)),
    ),
    *(
        Type(name="lists, structs, maps", column=seven(kind, *values), key=NO_KEY, unit=NO_UNIT)
        for kind, values in (
            (pa.list_(pa.int64()), ([1], [2], [3])),
            (pa.large_list(pa.string()), (["a"], ["b"], ["c"])),
            (pa.list_(pa.int64(), 1), ([1], [2], [3])),
            (pa.struct({"a": pa.int64()}), ({"a": 1}, {"a": 2}, {"a": 3})),
            (pa.map_(pa.string(), pa.int64()), ([("a", 1)], [("b", 1)], [("c", 1)])),
        )
    ),
    Type(name="no type, all missing", column=pa.nulls(7), key={None: 7}, unit=0),
)


def page() -> str:
    """Return the table of docs/engines.md: what a column of each type may be, in the frames that can have one."""
    listed: dict[str, list[str]] = {}
    for name in dict.fromkeys(column_type.name for column_type in TYPES):
        alike = [column_type for column_type in TYPES if column_type.name == name]
        shown = {column: answer for column, doors in COLUMNS.items() if (answer := _shown(alike, doors))}
        usual, *others = (answer for answer, _ in Counter(shown.values()).most_common())
        apart = (f"; {other} in {', '.join(column for column in shown if shown[column] == other)}" for other in others)
        listed.setdefault(usual + "".join(apart), []).append(name)
    lines = [["may be", "types"], ["---", "---"], *([answer, "; ".join(names)] for answer, names in listed.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(alike: list[Type], doors: tuple[str, ...]) -> str:
    answers = {
        tuple(not isinstance(part, str) for part in column_type.of(door))
        for column_type in alike
        for door in doors
        if column_type.is_held(door)
    }
    assert len(answers) < 2, (alike[0].name, doors)
    shown = {(True, True): "key or unit", (True, False): "key", (False, True): "unit", (False, False): "neither"}
    return shown[answers.pop()] if answers else ""
