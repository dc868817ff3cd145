from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger import Period

calendar_days = st.dates(min_value=date(1950, 1, 1), max_value=date(2100, 12, 31))


def texts_of(day: date) -> list[str]:
    year, week, weekday = day.isocalendar()
    return [
        day.isoformat(),
        f"{day:%Y%m%d}",
        f"{day:%Y-%j}",
        f"{year:04d}-W{week:02d}-{weekday}",
        f"{year:04d}W{week:02d}{weekday}",
        f"{day.isoformat()}T09:30",
        f"{day.isoformat()} 23:59:59.5+02:00",
        f"{day.isoformat()}t00:00:00z",
        f"  {day.isoformat()} ",
    ]


def texts_around(day: date) -> list[str]:
    year, week, _ = day.isocalendar()
    return [
        *texts_of(day),
        f"{day:%Y-%m}",
        f"{day:%Y}",
        f"{day:%Y}-Q{(day.month + 2) // 3}",
        f"{day:%Y}h{(day.month + 5) // 6}",
        f"{year:04d}-W{week:02d}",
        f"{year:04d}w{week:02d}",
        f"{day.isoformat()}/{(day + timedelta(days=3)).isoformat()}",
    ]


@pytest.mark.parametrize(
    ("text", "first", "last", "spelled"),
    [
        ("2013-01-02", date(2013, 1, 2), date(2013, 1, 2), "2013-01-02"),
        ("20130102", date(2013, 1, 2), date(2013, 1, 2), "2013-01-02"),
        ("2013-002", date(2013, 1, 2), date(2013, 1, 2), "2013-01-02"),
        ("2012-366", date(2012, 12, 31), date(2012, 12, 31), "2012-12-31"),
        ("2013-W01-3", date(2013, 1, 2), date(2013, 1, 2), "2013-01-02"),
        ("2013-01-02T23:00", date(2013, 1, 2), date(2013, 1, 2), "2013-01-02"),
        ("2012-02", date(2012, 2, 1), date(2012, 2, 29), "2012-02"),
        ("2013", date(2013, 1, 1), date(2013, 12, 31), "2013"),
        ("2013-W01", date(2012, 12, 31), date(2013, 1, 6), "2013-W01"),
        ("2013W01", date(2012, 12, 31), date(2013, 1, 6), "2013-W01"),
        ("2013-Q1", date(2013, 1, 1), date(2013, 3, 31), "2013-Q1"),
        ("2013q4", date(2013, 10, 1), date(2013, 12, 31), "2013-Q4"),
        ("2013-H2", date(2013, 7, 1), date(2013, 12, 31), "2013-H2"),
        ("2013H1", date(2013, 1, 1), date(2013, 6, 30), "2013-H1"),
        ("2013-01-30/2013-02", date(2013, 1, 30), date(2013, 2, 28), "2013-01-30/2013-02"),
        ("20130101 / 2013-007", date(2013, 1, 1), date(2013, 1, 7), "2013-01-01/2013-01-07"),
        ("2013-Q1/2013-Q3", date(2013, 1, 1), date(2013, 9, 30), "2013-Q1/2013-Q3"),
    ],
)
def test_calendar_periods_are_read_with_both_ends_and_one_spelling(text, first, last, spelled):
    period = Period.parse(text)
    assert (period.first, period.last, period.text) == (first, last, spelled)
    assert Period.parse(period.text) == period
    assert period.days() == (first.toordinal(), last.toordinal())


@pytest.mark.parametrize(
    "text", ["wave 1", "a/b", "1/2/3", "Q1", "week 3", "cohort 12", "may cohort", "summary", "top 19", "v1.2.3", "W01"]
)
def test_what_is_no_date_is_a_label(text):
    period = Period.parse(text)
    assert (period.first, period.days()) == (None, None)
    assert period.text == text


@pytest.mark.parametrize(
    "text",
    [
        "2013-1",
        "2013-1-2",
        "2013/wave 1",
        "wave 2013",
        "FY2013",
        "Q1 2013",
        "Q1 '13",
        "FY13",
        "201301",
        "2013002",
        "20130102T0900",
        "201301020900",
        "2.1.2013",
        "02/01/2013",
        "2.1.13",
        "01/02/03",
        "January 13",
        "2 January",
        "2nd jan",
        "Sept-13",
        "may 3",
        "2013-01-01–2013-01-07",
        "2013-01-01--2013-01-07",
        "2013-01-01/P7D",
        "2013-01-01/07",
        "2013-01-02 morning",
        "٢٠١٣",
        "２０１３-1",
        "2013-01-01/2013-01-02/2013-01-03",
    ],
)
def test_a_label_that_looks_like_a_date_is_refused_and_told_how_to_write_it(text):
    with pytest.raises(ArgumentError, match="2013-01-01/2013-01-07"):
        Period.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "2013-02-30",
        "20130230",
        "2013-13",
        "2013-00",
        "0000",
        "2013-W54",
        "2013-W01-8",
        "2013-W01-0",
        "2013-366",
        "2013-000",
        "2013-Q5",
        "2013-H0",
        "2013-01-02T25:00",
        "2013-01-02T24:00",
        "2013-01-02T24:30",
        "2013-01-02/2013-01-01",
        None,
        2013,
        datetime(2013, 1, 2),
    ],
)
def test_impossible_periods_are_argument_errors(text):
    with pytest.raises(ArgumentError, match="period"):
        Period.parse(text)


def test_dates_and_periods_are_periods():
    day = Period.parse(date(2013, 1, 2))
    assert day == Period.parse("2013-01-02")
    assert Period.parse(day) is day


@given(calendar_days, calendar_days)
def test_calendar_periods_overlap_exactly_when_they_share_a_day(first_day, second_day):
    for left in map(Period.parse, texts_around(first_day)):
        for right in map(Period.parse, texts_around(second_day)):
            shares = max(left.first, right.first) <= min(left.last, right.last)
            assert left.overlaps(right) is shares
            assert right.overlaps(left) is shares


@given(calendar_days)
def test_every_way_to_write_a_day_is_that_day(day):
    assert {Period.parse(text) for text in texts_of(day)} == {Period.parse(day)}


@given(calendar_days)
def test_every_way_to_write_a_stretch_around_a_day_overlaps_the_day(day):
    for text in texts_around(day):
        assert Period.parse(text).overlaps(Period.parse(day.isoformat()))


@given(st.text(max_size=24) | st.from_regex(r"(19|20)\d\d[-./ ]?[\dWQH]{0,4}[-./ ]?\d{0,2}", fullmatch=True))
def test_any_text_is_a_period_or_an_argument_error(text):
    try:
        period = Period.parse(text)
    except ArgumentError:
        return
    assert Period.parse(period.text) == period
    assert period.overlaps(period)


def test_a_label_overlaps_itself_and_every_calendar_period():
    wave = Period.parse("Wave  1")
    assert wave.overlaps(Period.parse("wave 1"))
    assert wave.overlaps(Period.parse("ＷＡＶＥ 1"))
    assert not wave.overlaps(Period.parse("wave 2"))
    assert wave.overlaps(Period.parse("2013-01-02"))
    assert Period.parse("1999/2000").overlaps(wave)


@pytest.mark.parametrize("text", ["wave\u200b1", "2013-01-02\u200e", "wave\x00", "wave\ud800", "\u2800", "wave\u20601"])
def test_a_period_has_no_characters_that_cannot_be_seen(text):
    with pytest.raises(ArgumentError, match="invisible characters"):
        Period.parse(text)


@pytest.mark.parametrize("text", ["wave\t1", "vague de chaleur n\u00ba 1", "第一波", "موجة"])
def test_white_space_and_all_scripts_may_stand_in_a_label(text):
    assert Period.parse(text).text == " ".join(text.split())
