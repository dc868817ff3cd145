"""Days of nanoseconds: cut from what a clock shows, before 1970 too, and never rounded to another day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_jobs import job_of
from thorough import thinned

from pkdp_pipeline.engines import Selection, engine_for
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.sources.relations import in_period
from pkdp_pipeline.jobs.sources.source import pandas_rows
from pkdp_pipeline.jobs.tables import PeriodTable

DAYS = [date(2026, 1, 31), date(1969, 12, 31), date(1905, 3, 1)]
needs_fine_instants = pytest.mark.skipif(
    duckdb.__version__.startswith("1."), reason="DuckDB 1 has no instants of nanoseconds"
)


def edges(day: date, zone: str | None = None) -> list[int]:
    """Return nanoseconds of a day's first and last moment, in between two, and of its neighbours."""
    starts = [pd.Timestamp(each, tz=zone).value for each in (day, day + timedelta(1))]
    return [starts[0] - 1, starts[0], starts[0] + 1, starts[1] - 501, starts[1] - 1, starts[1]]


def source_of(folder, day, zone=None, kind=None):
    column = pa.array(edges(day, zone), pa.timestamp("ns", zone and kind))
    pq.write_table(pa.table({"at": column, "n": range(6)}), folder / "rows.parquet")
    return open_source(job_of(str(folder / "rows.parquet"), period={"column": "at", "time_zone": zone}))


@thinned(3)
@pytest.mark.parametrize("day", DAYS)
@pytest.mark.parametrize(
    ("zone", "kind"),
    [
        (None, None),
        pytest.param("UTC", "UTC", marks=needs_fine_instants),
        pytest.param("Europe/Oslo", "America/New_York", marks=needs_fine_instants),
    ],
)
def test_each_row_is_of_the_day_that_its_clock_shows(tmp_path, day, zone, kind):
    source, period = source_of(tmp_path, day, zone, kind), PeriodTable(column="at", time_zone=zone)
    try:
        assert sorted(source.day(period, day).project("n").fetchall()) == [(1,), (2,), (3,), (4,)]
        assert source.counts(period, day - timedelta(1), ()) == (1, 0)
        assert source.newest(period, "at") == day + timedelta(1)
        assert source.outermost(period, "at", "min") == day - timedelta(1)
        days = [day - timedelta(1), day, day + timedelta(1)]
        source.together(period, days)
        rows = [source.day(period, each) for each in days]
        counted = [engine_for(each).tally(each, Selection(unit=("n",))).satisfying for each in rows]
        assert counted == [1, 4, 1]
    finally:
        source.close()


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Oslo", "America/New_York"])
def test_rows_for_checks_lose_nanoseconds_downwards(zone):
    table = pa.table({"at": pa.array([-1, 1_769_903_999_999_999_999, None], pa.timestamp("ns", zone))})
    last = [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2026, 1, 31, 23, 59, 59, 999_999)]
    wanted = [each.replace(tzinfo=zone and UTC) for each in last]
    read = pandas_rows(table)["at"]
    assert read.dropna().tolist() == [pd.Timestamp(each) for each in wanted]
    assert read.dtype == ("datetime64[us, UTC]" if zone else "datetime64[us]")


@thinned(3)
@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("Europe/Berlin", date(2026, 3, 29)),
        ("Europe/Berlin", date(2026, 10, 25)),
        ("Africa/Cairo", date(2026, 4, 24)),
        ("America/Havana", date(2026, 3, 8)),
        ("Pacific/Apia", date(2011, 12, 31)),
        ("Europe/Dublin", date(1916, 10, 1)),
        ("Africa/Monrovia", date(1972, 1, 7)),
        ("America/New_York", date(1883, 11, 18)),
    ],
)
def test_a_day_is_what_the_clocks_of_the_zone_showed(zone, day):
    clock = ZoneInfo(zone)
    first = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=2)
    moments = [first + timedelta(minutes=10 * i, seconds=7) for i in range(4 * 144)]
    rows = pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))})
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        condition = in_period('"at"', "instant", PeriodTable(column="at", time_zone=zone), day, day)
        read = connection.from_arrow(rows).filter(condition).project('epoch_us("at")').fetchall()
    wanted = [moment for moment in moments if moment.astimezone(clock).date() == day]
    assert sorted(row[0] for row in read) == [int(moment.timestamp()) * 10**6 for moment in wanted]
