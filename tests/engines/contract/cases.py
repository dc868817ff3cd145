"""The edge cases: a table, a question, and what is published of it."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import pkdp_pipeline as pkdp

__all__ = ["CASES", "FAILURES", "Case", "twice"]


def twice(rows: pa.Table, unit: Any) -> pa.Table:
    """Return the rows of everybody and of another person like them: no release may show a single person."""
    if unit is pkdp.EACH_ROW:
        return pa.concat_tables([rows, rows])
    name = unit if isinstance(unit, str) else unit[0]
    if name not in rows.column_names:
        return rows
    people = rows[name]
    if pa.types.is_dictionary(people.type):
        others = pc.binary_join_element_wise(people.cast(pa.string()), "2", "").dictionary_encode()
        rows = rows.set_column(rows.schema.get_field_index(name), name, people.unify_dictionaries())
    elif pa.types.is_string(people.type):
        others = pc.binary_join_element_wise(people, "2", "")
    else:
        others = pc.add(people, pa.scalar(1000, people.type))
    return pa.concat_tables([rows, rows.set_column(rows.schema.get_field_index(name), name, others)])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question about a table, and its published rows: keys, then how many of the table's people there are.

    It is asked about `twice` the table.
    """

    name: str
    table: pa.Table
    expected: Any
    ask: dict[str, Any] = field(default_factory=dict)


def table(**columns: Any) -> pa.Table:
    """Return a table; a column is a list of text or whole numbers, or an Arrow array."""
    return pa.table({name: values if hasattr(values, "type") else pa.array(values) for name, values in columns.items()})


def keyed(name: str, keys: pa.Array, expected: list[Any]) -> Case:
    """Return the case of people 0, 1, … with these keys."""
    people = pa.array(range(len(keys)), pa.int64())
    return Case(name=name, table=pa.table({"u": people, "c": keys}), expected=expected)


INT, TEXT = pa.int64(), pa.string()
SEVERAL = table(
    u=pa.array([1, 1, 1, 2, 2, 2, 3, 3, None], INT),
    c=pa.array(["b", "b", "a", "a", "é", None, None, "b", "a"], TEXT),
    o=pa.array([3, 2, 9, 1, 1, None, None, None, 1], INT),
)
PAIRS = table(
    u=pa.array(["a", "a", "a", "b", None, "b"], TEXT),
    v=pa.array([1, 1, 2, 1, 1, None], INT),
    c=pa.array(["x", "x", "y", "x", "y", "z"], TEXT),
    d=pa.array([1, 1, 1, None, 1, 1], INT),
)
HASHED = table(
    u=pa.array([1, 1, 2, 2, 3, 3, 4, 4, 5, 5], INT),
    v=pa.array(["é", "é", "b", "b", "", "", "d", "d", "e", None], TEXT),
    c=pa.array(["x", "y", "x", "y", "x", None, "y", "x", "x", "y"], TEXT),
    d=pa.array([1, 1, 2, 1, 1, 1, 2, 2, 2, 1], INT),
)
EIGHT_EACH = table(
    u=pa.array([person for person in range(20) for _ in range(8)], INT),
    v=pa.array([f"v{person % 3}" for person in range(20) for _ in range(8)], TEXT),
    c=pa.array([(person * 3 + visit * visit) % 9 for person in range(20) for visit in range(8)], pa.int32()),
    day=pa.array(
        [dt.date(2020, 1, 1 + (person + visit) % 6) for person in range(20) for visit in range(8)], pa.date32()
    ),
)
APART = pkdp.AttackerModel(p_max=0.5, independent_cells=True)
#: Noise that changes no count in a lifetime, so that all engines publish the same.
UNNOISED = {"noise": pkdp.GeometricNoise(50.0), "k": 1, "release_threshold": 3}
FILTERED = table(
    u=pa.array(range(6), INT),
    c=pa.array(["p", "q", "r", "s", "t", "w"], TEXT),
    t=pa.array(["a", "b", "it's", None, "`u`", "é"], TEXT),
    n=pa.array([-1, 0, 7, None, 300, 2], INT),
    small=pa.array([-1, 0, 7, 100, 127, 2], pa.int8()),
    f=pa.array([0.5, -0.0, math.nan, None, math.inf, -2.0], pa.float64()),
    yes=pa.array([True, False, None, False, True, True], pa.bool_()),
    sure=pa.array([True, False, True, False, True, True], pa.bool_()),
    day=pa.array([dt.date(2020, 1, day) for day in range(1, 6)] + [None], pa.date32()),
    at=pa.array([dt.datetime(2020, 1, 1, hour) for hour in range(5)] + [None], pa.timestamp("us")),
    zoned=pa.array([dt.datetime(2020, 1, 1, hour) for hour in range(5)] + [None], pa.timestamp("us", "UTC")),
    m=pa.array([Decimal("1.50"), Decimal("-2.00"), None, Decimal("0.25"), Decimal("7.00"), Decimal("1.50")]),
    **{"a b.c": pa.array(["x", "x", "y", "y", None, "z"], TEXT)},
)
WHERE = {
    "t == 'a'": "p",
    "t != 'a'": "qrstw",
    "t > 'a'": "qrw",
    "t in ['a', 'é']": "pw",
    "t not in ['a', 'é']": "qrst",
    't == "it\'s" or t == "`u`"': "rt",
    "t.isna()": "s",
    "t.notna() and not (t == 'a')": "qrtw",
    "t == t": "pqrtw",
    "t != t": "s",
    "n >= 0 & n < 7": "qw",
    "0 <= n < 8 or t == 'a'": "pqrw",
    "~(n > 0)": "pqs",
    "n == 2.0": "w",
    "n > 0.5": "rtw",
    "n < 99999999999999999999": "pqrtw",
    "n != 99999999999999999999": "pqrstw",
    "n == small": "pqrw",
    "small == 300": "",
    "small < 300": "pqrstw",
    "small != -1000 and n.notna()": "pqrtw",
    "300 >= small": "pqrstw",
    "small in [7, 1000, -1]": "pr",
    "f == 0": "q",
    "f > 1": "t",
    "f < 1": "pqw",
    "f != 0.5": "qrstw",
    "f.isna()": "rs",
    "f == f": "pqtw",
    "not f >= 0": "rsw",
    "sure": "prtw",
    "not sure": "qs",
    "sure == False": "qs",
    "yes": "ptw",
    "yes.isna()": "r",
    "at >= '2020-01-01 02:00:00' and at < '2020-01-01 04:00'": "rs",
    "`a b.c` == 'x'": "pq",
    "`a b.c` != 'x' and sure": "rtw",
    "zoned > '2020-01-01 02:00:00+00:00'": "st",
    "day >= '2020-01-03'": "rst",
    "day == '2020-01-03'": "r",
    "at > '2020-01-01 02:00:00.500'": "st",
    "t.str.startswith('i')": "r",
    't.str.contains("\'")': "r",
    "t.str.endswith('`')": "t",
    "not t.str.like('_')": "rst",
    "t.str.like('_') and t != 'a'": "qw",
    "t.str.like('%t_s')": "r",
    "t.str.like('i%s')": "r",
    "t.str.like('i%t%s')": "r",
    "t.str.like('it%t\\'s')": "",
    "t.notna() and not t.str.like('%_u%')": "pqrw",
    "`a b.c`.str.startswith('x')": "pq",
    "day.dt.year == 2020 and day.dt.day >= 3": "rst",
    "day.dt.month != 1": "w",
    "day.dt.dayofweek in [4, 5]": "rs",
    "at.dt.year == 2020": "pqrst",
    "at.dt.isocalendar().day < 3.5": "pqrst",
    "at.dt.day.isna()": "w",
    "not at.dt.year > 2019": "w",
    "day.dt.year > 99999999999999999999": "",
    "at not in ['2020-01-01', '2020-01-01 01:00:00']": "rstw",
    "at != '2020-01-01 00:00:00'": "qrstw",
    "at == '2020-01-01'": "p",
    "m == 1.5": "pw",
    "m > 0": "pstw",
    "not m > 0": "qr",
    "not yes": "qrs",
}
PATTERNS = table(
    u=pa.array(range(12), INT),
    c=pa.array([f"{number:02}" for number in range(12)], TEXT),
    t=pa.array(
        ["", "a", "A", "a%", "a_b", "a\nb", "a\\b", "𝔸b", "e\u0301", "axxbyyb", "a.b", None],
        TEXT,
    ),
    k=pa.array(["x", "y", None, "xy", "yx", "é", "x", "y", "x", "y", "x", "y"], TEXT).dictionary_encode(),
)
PATTERNED = {
    "t.str.like('_')": [1, 2],
    "t.str.like('__')": [3, 7, 8],
    "t.str.like('a%b')": [4, 5, 6, 9, 10],
    "t.str.like('a_b')": [4, 5, 6, 10],
    "t.str.like('a\\\\_b')": [4],
    "t.str.like('a\\\\\\\\b')": [6],
    "t.str.like('a\\\\\\\\%')": [6],
    "t.str.like('%\\\\%')": [3],
    "t.str.contains('.', regex=False)": [10],
    "t.str.like('%x%y%b')": [9],
    "t.str.like('_%')": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    "t.str.like('ab%b')": [],
    "not t.str.startswith('a')": [0, 2, 7, 8, 11],
    "k.str.like('x%')": [0, 3, 6, 8, 10],
    "not k.str.like('_')": [2, 3, 4],
    f"t.str.like('{'_' * 199}%')": [],
}
MONTH = [dt.datetime(2020, 3, 29, 0, 30), dt.datetime(1969, 12, 31, 23), None, dt.datetime(2020, 3, 29, 0, 30)]
STAMPED = [(pd.Timestamp(1969, 12, 31, 23), 1), (pd.Timestamp(2020, 3, 29, 0, 30), 2), (None, 1)]
ZONED = [(key and key.tz_localize("UTC"), count) for key, count in STAMPED]
FINE = pa.array([1_000_000_000_000_000_001, 1_000_000_000_000_000_002, None], pa.timestamp("ns"))

CASES = [
    keyed("text", pa.array(["b", "a", None, "b", ""], TEXT), [("", 1), ("a", 1), ("b", 2), (None, 1)]),
    keyed(
        "unicode",
        pa.array(["é", "e\u0301", "Ω", "z", "𝔸", "ﬀ", "É", "日本", "a b.`c"], TEXT),
        [(key, 1) for key in sorted(["é", "e\u0301", "Ω", "z", "𝔸", "ﬀ", "É", "日本", "a b.`c"])],
    ),
    keyed("large text", pa.array(["b", "a", None], pa.large_string()), [("a", 1), ("b", 1), (None, 1)]),
    keyed(
        "categories",
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1], pa.int32()), pa.array(["z", "a", "withheld"])),
        [("a", 2), ("z", 1), (None, 1)],
    ),
    keyed("integers", pa.array([3, -1, None, 3], INT), [(-1, 1), (3, 2), (None, 1)]),
    *(
        keyed(str(kind), pa.array([3, 1, 3], kind), [(1, 1), (3, 2)])
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    ),
    keyed("wide integers", pa.array([2**63 - 1, -(2**63), None], INT), [(-(2**63), 1), (2**63 - 1, 1), (None, 1)]),
    keyed(
        "floats",
        pa.array([1.5, -0.0, 0.0, math.nan, None, math.inf, -math.inf, 1e300], pa.float64()),
        [(-math.inf, 1), (0.0, 2), (1.5, 1), (1e300, 1), (math.inf, 1), (None, 2)],
    ),
    keyed("whole floats", pa.array([2.0, -0.0, 0.0, math.nan], pa.float64()), [(0, 2), (2, 1), (None, 1)]),
    keyed("single floats", pa.array([0.5, -0.0, 0.0, math.nan], pa.float32()), [(0.0, 2), (0.5, 1), (None, 1)]),
    keyed("booleans", pa.array([True, False, None, True], pa.bool_()), [(False, 1), (True, 2), (None, 1)]),
    keyed(
        "dates",
        pa.array([dt.date(2020, 2, 29), dt.date(1969, 12, 31), None], pa.date32()),
        [(dt.date(1969, 12, 31), 1), (dt.date(2020, 2, 29), 1), (None, 1)],
    ),
    keyed(
        "decimals",
        pa.array([Decimal("1.50"), Decimal("-7.25"), None, Decimal("1.50")], pa.decimal128(9, 2)),
        [(Decimal("-7.25"), 1), (Decimal("1.5"), 2), (None, 1)],
    ),
    keyed("whole decimals", pa.array([Decimal(3), Decimal(-7)], pa.decimal128(20, 0)), [(-7, 1), (3, 1)]),
    *(keyed(f"timestamps of {unit}", pa.array(MONTH, pa.timestamp(unit)), STAMPED) for unit in ("s", "ms", "us", "ns")),
    keyed(
        "fine timestamps",
        FINE,
        [(pd.Timestamp(value), 1) for value in FINE.to_numpy(zero_copy_only=False)[:2]] + [(None, 1)],
    ),
    *(keyed(f"instants of {unit}", pa.array(MONTH, pa.timestamp(unit, "UTC")), ZONED) for unit in ("s", "ms", "us")),
    keyed(
        "instants of nanoseconds",
        FINE.cast(pa.timestamp("ns", "UTC")),
        [(pd.Timestamp(value, tz="UTC"), 1) for value in FINE.to_numpy(zero_copy_only=False)[:2]] + [(None, 1)],
    ),
    keyed(
        "instants in a zone",
        pa.array(MONTH, pa.timestamp("us", "Europe/Oslo")),
        [(key and key.tz_convert("Europe/Oslo"), count) for key, count in ZONED],
    ),
    keyed("all missing", pa.array([None, None], TEXT), [(None, 2)]),
    keyed("null type", pa.nulls(2), [(None, 2)]),
    keyed("empty", pa.array([], TEXT), []),
    keyed("empty of dates", pa.array([], pa.date32()), []),
    Case(
        name="no unit has a value",
        table=table(u=pa.array([None, None], INT), c=["a", "b"]),
        ask={"missing_unit": "drop"},
        expected=[],
    ),
    Case(
        name="missing units are dropped",
        table=table(u=pa.array([1.0, math.nan, None, -0.0, 0.0], pa.float64()), c=["a", "a", "b", "c", "c"]),
        ask={"missing_unit": "drop"},
        expected=[("a", 1), ("c", 1)],
    ),
    Case(
        name="missing text units are dropped",
        table=table(u=pa.array(["x", None, "", "x"], TEXT), c=["a", "a", "b", "a"]),
        ask={"missing_unit": "drop"},
        expected=[("a", 1), ("b", 1)],
    ),
    Case(
        name="units of categories",
        table=table(u=pa.array(["x", "y", "x"]).dictionary_encode(), c=["a", "b", "a"]),
        expected=[("a", 1), ("b", 1)],
    ),
    Case(
        name="composite units",
        table=PAIRS,
        ask={"unit": ["u", "v"], "missing_unit": "drop"},
        expected=[("x", 2), ("y", 1)],
    ),
    Case(
        name="composite keys",
        table=PAIRS,
        ask={"unit": ["u", "v"], "by": ["c", "d"], "missing_unit": "drop"},
        expected=[("x", 1, 1), ("x", None, 1), ("y", 1, 1)],
    ),
    Case(
        name="composite keys in another order",
        table=PAIRS,
        ask={"unit": ["u", "v"], "by": ["d", "c"], "missing_unit": "drop"},
        expected=[(1, "x", 1), (1, "y", 1), (None, "x", 1)],
    ),
    Case(
        name="the unit names the cell",
        table=table(u=pa.array(["a", "b", None, "a"], TEXT)),
        ask={"by": "u", "missing_unit": "drop"},
        expected=[],
    ),
    Case(
        name="each row", table=SEVERAL, ask={"unit": pkdp.EACH_ROW}, expected=[("a", 3), ("b", 3), ("é", 1), (None, 2)]
    ),
    Case(
        name="most frequent",
        # As text: beside a missing value, pandas holds whole numbers as reals.
        table=SEVERAL.set_column(0, "u", SEVERAL["u"].cast(TEXT)),
        ask={"one_cell": "most_frequent", "missing_unit": "drop"},
        expected=None,
    ),
    Case(
        name="first",
        table=SEVERAL,
        ask={"one_cell": "first", "order_by": "o", "missing_unit": "drop"},
        expected=[("a", 1), ("b", 2)],
    ),
    Case(
        name="first by two columns",
        table=SEVERAL,
        ask={"one_cell": "first", "order_by": ["c", "o"], "missing_unit": "drop"},
        expected=[("a", 2), ("b", 1)],
    ),
    Case(name="hash", table=HASHED, ask={"one_cell": "hash"}, expected=None),
    Case(
        name="hash of composite units and keys",
        table=HASHED,
        ask={"unit": ["u", "v"], "by": ["c", "d"], "one_cell": "hash", "missing_unit": "drop"},
        expected=None,
    ),
    *(
        Case(
            name=f"all of {most} cells, {name}",
            table=SEVERAL,
            ask={"cells_per_unit": most, "missing_unit": "drop", "attacker": APART} | ask,
            expected=expected,
        )
        for most, name, ask, expected in (
            (3, "found", {}, [("a", 2), ("b", 2), ("é", 1), (None, 2)]),
            (
                4,
                "declared",
                {"domain": ["b", None, "z", "é", "a"]},
                [("b", 2), (None, 2), ("z", None), ("é", 1), ("a", 2)],
            ),
            (2, "where", {"where": "c.isna() or c > 'a'"}, [("b", 2), ("é", 1), (None, 2)]),
        )
    ),
    Case(
        name="all of 2 cells, composite",
        table=HASHED,
        ask={"unit": ["u", "v"], "by": ["c", "d"], "cells_per_unit": 2, "missing_unit": "drop", "attacker": APART},
        expected=[("x", 1, 2), ("x", 2, 3), ("y", 1, 2), ("y", 2, 1), (None, 1, 1)],
    ),
    *(
        Case(
            name=f"{most} of the cells, {name}",
            table=rows,
            ask={"cells_per_unit": most} | UNNOISED | ask,
            expected=None,
        )
        for most, name, rows, ask in (
            (2, "text", SEVERAL.set_column(0, "u", SEVERAL["u"].cast(TEXT)), {"missing_unit": "drop"}),
            (2, "hashed", EIGHT_EACH, {}),
            (3, "hashed", EIGHT_EACH, {}),
            (3, "declared", EIGHT_EACH, {"domain": [7, 2, 0], "undeclared": "absent"}),
            (2, "dates", EIGHT_EACH, {"by": "day"}),
            (2, "composite", EIGHT_EACH, {"unit": ["u", "v"], "by": ["c", "day"]}),
        )
    ),
    Case(
        name="a domain",
        table=keyed("", pa.array(["b", "a", None, "b"], TEXT), []).table,
        ask={"domain": ["z", "b", None, "a"], "k": 3},
        expected=[("z", None), ("b", 2), (None, None), ("a", None)],
    ),
    Case(
        name="a domain of integers",
        table=keyed("", pa.array([1, 2, 2, 9], pa.int16()), []).table,
        ask={"domain": [2, 1, 5], "undeclared": "absent"},
        expected=[(2, 2), (1, 1), (5, None)],
    ),
    *(
        Case(
            name=f"small cells noised, {name}",
            table=keyed("", pa.array(["b", "a", None, "b"], TEXT), []).table,
            ask={"noise": pkdp.GeometricNoise(50.0), "k": 3, "below": "noise", "target": None} | ask,
            expected=None,
        )
        for name, ask in (("declared", {"domain": ["z", "b", None, "a"]}), ("found", {"release_threshold": 2}))
    ),
    Case(
        name="small cells",
        table=keyed("", pa.array(["b", "a", None, "b"], TEXT), []).table,
        ask={"k": 3},
        expected=[("b", 2)],
    ),
    Case(
        name="a boolean column keeps rows",
        table=FILTERED,
        ask={"where": "yes"},
        expected=[(key, 1) for key in "ptw"],
    ),
    *(
        Case(name=f"where {query}", table=FILTERED, ask={"where": query}, expected=[(key, 1) for key in kept])
        for query, kept in WHERE.items()
    ),
    *(
        Case(name=f"where {query}", table=PATTERNS, ask={"where": query}, expected=[(f"{key:02}", 1) for key in kept])
        for query, kept in PATTERNED.items()
    ),
    Case(
        name="odd names",
        table=pa.table({"a.b": [1, 2], "^.*$": ["x", "y"], "*": ["s", "s"], "A-B": ["o", "o"], 'q"`': ["t", "t"]}),
        ask={"unit": "a.b", "by": ["^.*$", "*", 'q"`']},
        expected=[("x", "s", "t", 1), ("y", "s", "t", 1)],
    ),
]

#: A table, a question, and the kind of error it is for every engine.
FAILURES = [
    Case(name="missing units", table=PAIRS, ask={"unit": ["u", "v"]}, expected=pkdp.InputCheckError),
    Case(name="several cells", table=SEVERAL, ask={"missing_unit": "drop"}, expected=pkdp.InputCheckError),
    Case(name="missing units and several cells", table=SEVERAL, expected=pkdp.InputCheckError),
    Case(
        name="more cells than declared",
        table=SEVERAL,
        ask={"cells_per_unit": 2, "missing_unit": "drop", "attacker": APART},
        expected=pkdp.InputCheckError,
    ),
    Case(
        name="several cells, one of them missing",
        table=table(u=[1, 1], c=pa.array(["a", None], TEXT)),
        expected=pkdp.InputCheckError,
    ),
    Case(
        name="an undeclared cell",
        table=table(u=[1, 2], c=["a", "b"]),
        ask={"domain": ["a"]},
        expected=pkdp.InputCheckError,
    ),
    Case(name="an unknown unit", table=table(u=[1], c=["a"]), ask={"unit": "U"}, expected=pkdp.ArgumentError),
    Case(name="an unknown cell", table=table(u=[1], c=["a"]), ask={"by": "C"}, expected=pkdp.ArgumentError),
    Case(
        name="an unknown order",
        table=table(u=[1], c=["a"]),
        ask={"one_cell": "first", "order_by": "O"},
        expected=pkdp.ArgumentError,
    ),
    Case(
        name="an instant compared with a text that has no offset",
        table=FILTERED,
        ask={"where": "zoned > '2020-01-01 02:00:00'"},
        expected=pkdp.ArgumentError,
    ),
    Case(
        name="the year of an instant",
        table=FILTERED,
        ask={"where": "zoned.dt.year == 2020"},
        expected=pkdp.ArgumentError,
    ),
    Case(name="the year of text", table=FILTERED, ask={"where": "t.dt.year == 2020"}, expected=pkdp.ArgumentError),
    Case(name="a year as text", table=FILTERED, ask={"where": "day.dt.year == '2020'"}, expected=pkdp.ArgumentError),
    Case(name="a pattern of numbers", table=FILTERED, ask={"where": "n.str.like('1%')"}, expected=pkdp.ArgumentError),
    Case(name="a cell of bytes", table=table(u=[1], c=pa.array([b"a"])), expected=pkdp.ArgumentError),
    Case(name="a cell of a list", table=table(u=[1], c=pa.array([["a"]])), expected=pkdp.ArgumentError),
    Case(name="a cell of a struct", table=table(u=[1], c=pa.array([{"a": 1}])), expected=pkdp.ArgumentError),
    Case(
        name="a cell of a duration", table=table(u=[1], c=pa.array([1], pa.duration("us"))), expected=pkdp.ArgumentError
    ),
    Case(name="a predicate of text", table=table(u=[1], c=["a"]), ask={"where": "c"}, expected=pkdp.ArgumentError),
    Case(name="no predicate", table=table(u=[1], c=["a"]), ask={"where": "c = 'a'"}, expected=pkdp.ArgumentError),
    Case(name="constants alone", table=table(u=[1], c=["a"]), ask={"where": "1 < 2"}, expected=pkdp.ArgumentError),
]
