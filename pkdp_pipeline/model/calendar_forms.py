"""The ways to write a calendar period, one pattern each, and how to recognise a date in any other form."""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pkdp_pipeline.errors import ArgumentError

__all__ = ["Span", "looks_like_a_date", "read_calendar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One calendar period: its canonical spelling, first and last day."""

    text: str
    first: date
    last: date


def _day(day: date) -> Span:
    return Span(text=day.isoformat(), first=day, last=day)


def _months(text: str, year: int, month: int, length: int) -> Span:
    final = month + length - 1
    return Span(text=text, first=date(year, month, 1), last=date(year, final, calendar.monthrange(year, final)[1]))


def _read_day(match: re.Match[str]) -> Span:
    return _day(date(int(match["year"]), int(match["month"]), int(match["day"])))


def _read_time(match: re.Match[str]) -> Span:
    datetime.fromisoformat(match[0].upper())  # a minute that does not exist is no point in time
    if int(match["hour"]) > 23:  # 24:00 is another day's midnight, which some Python versions read
        raise ValueError
    return _read_day(match)


def _read_ordinal(match: re.Match[str]) -> Span:
    year, number = int(match["year"]), int(match["number"])
    if not 1 <= number <= 365 + calendar.isleap(year):
        raise ValueError
    return _day(date(year, 1, 1) + timedelta(days=number - 1))


def _read_weekday(match: re.Match[str]) -> Span:
    return _day(date.fromisocalendar(int(match["year"]), int(match["week"]), int(match["day"])))


def _read_week(match: re.Match[str]) -> Span:
    monday = date.fromisocalendar(int(match["year"]), int(match["week"]), 1)
    return Span(text=f"{match['year']}-W{match['week']}", first=monday, last=monday + timedelta(days=6))


def _read_month(match: re.Match[str]) -> Span:
    return _months(match[0], int(match["year"]), int(match["month"]), 1)


def _read_quarter(match: re.Match[str]) -> Span:
    quarter = int(match["number"])
    return _months(f"{match['year']}-Q{quarter}", int(match["year"]), 3 * quarter - 2, 3)


def _read_half(match: re.Match[str]) -> Span:
    half = int(match["number"])
    return _months(f"{match['year']}-H{half}", int(match["year"]), 6 * half - 5, 6)


def _read_year(match: re.Match[str]) -> Span:
    return _months(match[0], int(match["year"]), 1, 12)


_FORMS: tuple[tuple[str, Callable[[re.Match[str]], Span]], ...] = (
    (r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})", _read_day),
    (r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})", _read_day),
    (
        r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})[T ](?P<hour>\d{2}):\d{2}(:\d{2}(\.\d{1,6})?)?"
        r"(Z|[+-]\d{2}(:?\d{2})?)?",
        _read_time,
    ),
    (r"(?P<year>\d{4})-(?P<number>\d{3})", _read_ordinal),
    (r"(?P<year>\d{4})-?W(?P<week>\d{2})", _read_week),
    (r"(?P<year>\d{4})-W(?P<week>\d{2})-(?P<day>\d)", _read_weekday),
    (r"(?P<year>\d{4})W(?P<week>\d{2})(?P<day>\d)", _read_weekday),
    (r"(?P<year>\d{4})-(?P<month>\d{2})", _read_month),
    (r"(?P<year>\d{4})-?Q(?P<number>\d)", _read_quarter),
    (r"(?P<year>\d{4})-?H(?P<number>\d)", _read_half),
    (r"(?P<year>\d{4})", _read_year),
)
_PATTERNS = tuple((re.compile(pattern, re.ASCII | re.IGNORECASE), read) for pattern, read in _FORMS)

_MONTH = (
    r"(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?"
    r"|dec(ember)?)"
)
_DATE_LIKE = (
    re.compile(r"(?<!\d)(19|20)\d{2}(?!\d)"),  # a year
    re.compile(r"(?<!\d)(19|20)\d{4,6}(?!\d)"),  # 201301, 2013002, 20130102
    re.compile(r"(?<!\d)(19|20)\d{10,15}(?!\d)"),  # 20130102T0900 and longer without separators
    re.compile(r"(?<![\d.])\d{1,2}([./-])\d{1,2}\1\d{2}(?![\d.])"),  # 2.1.13
    re.compile(rf"(?<![a-z]){_MONTH}(?![a-z])[\W_]*\d|\d(st|nd|rd|th)?[\W_]*{_MONTH}(?![a-z])"),
    re.compile(
        r"(?<![a-z])(fy|cy)\s*'?\d{2}(?!\d)|(?<!\w)[qh][1-4]\W*'?\d{2}(?!\d)|(?<!\w)'\d{2}(?!\d)"
    ),  # FY13, Q1 '13
)


def read_calendar(text: str) -> Span | None:
    """Return one calendar period, or None when `text` is not written like one.

    Raises
    ------
    ArgumentError
        If it is written like one, but the calendar has no such period.
    """
    for pattern, read in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        try:
            return read(match)
        except (ValueError, OverflowError):  # calendar.IllegalMonthError is a ValueError
            raise ArgumentError(
                f"period {text!r} is written like a calendar period, but the calendar has no such day, week, month, "
                "quarter, half or year."
            ) from None
    return None


def looks_like_a_date(text: str) -> bool:
    """Return whether a label seems to name a time: a year, a month with a number, 2.1.13 and the like."""
    plain = "".join(
        str(unicodedata.decimal(letter)) if letter.isdecimal() else letter
        for letter in unicodedata.normalize("NFKC", text).casefold()
    )
    return any(pattern.search(plain) for pattern in _DATE_LIKE)
