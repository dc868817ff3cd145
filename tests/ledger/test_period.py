from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger import Period

calendar_days = st.dates(min_value=date(1950, 1, 1), max_value=date(2100, 12, 31))


def texts_around(day: date) -> list[str]:
    year, week, _ = day.isocalendar()
    return [
        day.isoformat(),
        f"{day:%Y-%m}",
        f"{day:%Y}",
        f"{year:04d}-W{week:02d}",
        f"{day.isoformat()}/{(day + timedelta(days=3)).isoformat()}",
    ]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2013-01-02", date(2013, 1, 2), date(2013, 1, 2)),
        ("2012-02", date(2012, 2, 1), date(2012, 2, 29)),
        ("2013", date(2013, 1, 1), date(2013, 12, 31)),
        ("2013-W01", date(2012, 12, 31), date(2013, 1, 6)),
        ("2013-01-30/2013-02", date(2013, 1, 30), date(2013, 2, 28)),
        ("2013-01-01 / 2013-01-07", date(2013, 1, 1), date(2013, 1, 7)),
    ],
)
def test_calendar_periods_are_read_with_both_ends(text, first, last):
    period = Period.parse(text)
    assert (period.first, period.last) == (first, last)


@pytest.mark.parametrize("text", ["wave 1", "2013-1", "2013-01-02T00:00", "a/b", "2013/wave 1", "1/2/3", "٢٠١٣"])
def test_everything_else_is_a_label(text):
    assert Period.parse(text).first is None


@pytest.mark.parametrize(
    "text",
    ["", "  ", "2013-02-30", "2013-13", "2013-00", "0000", "2013-W54", "2013-01-02/2013-01-01", None, 2013],
)
def test_impossible_periods_are_argument_errors(text):
    with pytest.raises(ArgumentError, match="period"):
        Period.parse(text)


@given(calendar_days, calendar_days)
def test_calendar_periods_overlap_exactly_when_they_share_a_day(one, other):
    for left in map(Period.parse, texts_around(one)):
        for right in map(Period.parse, texts_around(other)):
            days = {left.first + timedelta(days=n) for n in range((left.last - left.first).days + 1)}
            shares = any(right.first <= day <= right.last for day in days)
            assert left.overlaps(right) is shares
            assert right.overlaps(left) is shares


@given(calendar_days)
def test_every_way_to_write_a_stretch_around_a_day_overlaps_the_day(day):
    for text in texts_around(day):
        assert Period.parse(text).overlaps(Period.parse(day.isoformat()))


def test_a_label_overlaps_itself_and_every_calendar_period():
    wave = Period.parse("Wave  1")
    assert wave.overlaps(Period.parse("wave 1"))
    assert not wave.overlaps(Period.parse("wave 2"))
    assert wave.overlaps(Period.parse("2013-01-02"))
    assert Period.parse("1999/2000").overlaps(wave)
