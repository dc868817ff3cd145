"""Every engine counts values in the same groups, at the edges, too, and days by the weeks of ISO 8601."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections import Counter
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest
from adapters import adapters
from thorough import spread, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.keys import canonical_key

FRAMES = [pytest.param(adapter, marks=adapter.marks, id=adapter.name) for adapter in adapters() if not adapter.other]
DAYS = [dt.date(year, month, day) for year in range(1995, 2032) for month, day in [(1, 1), (1, 4), (12, 28), (12, 31)]]
DAYS += [dt.date(2000, 2, 29), dt.date(1900, 12, 31), dt.date(1600, 1, 3), None]
TIMES = [None if day is None else dt.datetime.combine(day, dt.time(23, 59, 59)) for day in DAYS]
#: Values, their types, and edges that are values, lie between them, or beyond what the type holds.
NUMBERS = {
    "small": ([-128, -1, 0, 17, 18, 127, None], pa.int8(), [0, 18, 64.5, 1000]),
    "whole": ([-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1], pa.int64(), [-0.5, 2**53 + 1]),
    "unsigned": ([0, 17, 2**64 - 1], pa.uint64(), [-3, 17, 2**63]),
    "reals": (
        [-0.0, 0.1, 0.3, 17.999, 18.0, float("nan"), float("inf"), -float("inf"), None],
        pa.float64(),
        [0, 0.1, 18],
    ),
    "half": ([0.0, 0.5, 2.5, None], pa.float32(), [0.5, 2.5]),
    "decimals": (
        [Decimal("-1.00"), Decimal("0.09"), Decimal("0.10"), Decimal("7.25"), None],
        pa.decimal128(9, 2),
        [0, 0.1, 7.255],
    ),
}


def counted(adapter, values, kind, edges):
    table = pa.table({"unit": pa.array(range(len(values)), pa.int64()), "value": pa.array(values, kind)})
    selection = Selection(unit=("unit",), by=("value",), bins={"value": pkdp.bins("value", edges)})
    with adapter.frame(table) as frame:
        answer = engine_for(frame).cells(frame, selection)
        return dict(zip(map(canonical_key, answer.keys["value"]), answer.counts.tolist(), strict=True))


@pytest.mark.parametrize(("adapter", "case"), spread(3, FRAMES, NUMBERS))
def test_numbers(adapter, case):
    values, kind, edges = NUMBERS[case]
    if adapter.name == "spark" and case == "unsigned":
        pytest.skip("Spark has no unsigned numbers")
    groups, exact = pkdp.bins("value", edges), [Decimal(repr(edge)) for edge in edges]

    def name(value):
        if value is None or value != value:
            return None
        # A real is compared with the real that is written, anything else with the number that is.
        limits = list(map(float, edges)) if isinstance(value, float) else exact
        return groups.names[bisect_right(limits, value)]

    assert counted(adapter, values, kind, edges) == Counter(map(name, values))


@thinned(2)
@pytest.mark.parametrize(("adapter", "part"), spread(4, FRAMES, ["week", "month", "quarter", "year"]))
@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("ns")], ids=str)
def test_days(adapter, part, kind):
    values = DAYS if kind == pa.date32() else TIMES
    if kind == pa.timestamp("ns"):
        values = [value for value in values if value is None or value.year > 1700]
    if adapter.unheld and kind == pa.timestamp("ns"):
        pytest.skip("no nanoseconds")

    def name(day):
        if day is None:
            return None
        year, week, _ = day.isocalendar()
        quarter = f"{day.year:04}-Q{(day.month - 1) // 3 + 1}"
        return {"week": f"{year:04}-W{week:02}", "month": f"{day:%Y-%m}", "quarter": quarter, "year": f"{day:%Y}"}[part]

    assert counted(adapter, values, kind, part) == Counter(map(name, values))


@pytest.mark.parametrize("adapter", FRAMES)
def test_a_day_without_a_name_in_python_is_missing(adapter):
    days = pa.array([-2 * 10**9, 9 * 10**8, 0, None], pa.int32()).cast(pa.date32())
    if adapter.name in ("spark", "pandas"):
        pytest.skip("it holds no such days")
    assert counted(adapter, days, pa.date32(), "year") == {"1970": 1, None: 3}


@pytest.mark.parametrize("adapter", FRAMES)
def test_nanoseconds_are_cut_off(adapter):
    if adapter.unheld or adapter.name == "spark":
        pytest.skip("no nanoseconds")
    moments = pa.array([-1, 1_609_459_199_999_999_999], pa.int64()).cast(pa.timestamp("ns"))
    assert counted(adapter, moments, pa.timestamp("ns"), "month") == {"1969-12": 1, "2020-12": 1}


@pytest.mark.parametrize("adapter", FRAMES)
def test_the_last_day_of_a_week_is_its_seventh(adapter):
    days = [dt.date(2024, 1, day) for day in range(1, 15)]
    table = pa.table({"unit": range(14), "value": pa.array(days, pa.date32())})
    with adapter.frame(table) as frame:
        for day in range(7):
            selection = Selection(unit=("unit",), where=f"value.dt.weekday == {day}")
            assert engine_for(frame).tally(frame, selection).satisfying == 2


@pytest.mark.parametrize("adapter", FRAMES)
def test_other_columns_are_refused(adapter):
    for values, kind, edges in (
        (["17"], pa.string(), [0, 18]),
        ([True], pa.bool_(), [0, 1]),
        ([17], pa.int64(), "week"),
        ([dt.date(2020, 1, 1)], pa.date32(), [0, 18]),
        ([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"), "month"),
    ):
        with pytest.raises(ArgumentError, match=r"'value' must hold"):
            counted(adapter, values, kind, edges)


def test_a_value_may_be_counted_in_groups_and_chosen_by():
    table = pa.table({"unit": [1, 1, 2, 3], "value": [10, 70, 30, 70]})
    selection = partial(Selection, unit=("unit",), by=("value",), bins={"value": pkdp.bins("value", [0, 50])})
    for frame in (table, table.to_pandas()):
        first = engine_for(frame).cells(frame, selection(one_cell="first", order_by=("value",)))
        assert dict(zip(first.keys["value"], first.counts.tolist(), strict=True)) == {"0–49": 2, "50 or more": 1}
        where = engine_for(frame).cells(frame, selection(where="value > 20 and value < 50"))
        assert dict(zip(where.keys["value"], where.counts.tolist(), strict=True)) == {"0–49": 1}
