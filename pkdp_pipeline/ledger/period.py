"""Period: the stretch of calendar a release is about, and whether two of them meet."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, timedelta

from pkdp_pipeline.errors import ArgumentError

__all__ = ["Period"]

_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_YEAR = re.compile(r"\d{4}", re.ASCII)
_WEEK = re.compile(r"(\d{4})-W(\d{2})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period as declared, with its first and last day when it is a calendar period.

    Parameters
    ----------
    text : str
        As declared.
    first, last : datetime.date or None
        Both inclusive; both None for a label that is no calendar period.

    Notes
    -----
    Read a period with `Period.parse`; the constructor trusts its arguments.
    """

    text: str
    first: date | None = None
    last: date | None = None

    @classmethod
    def parse(cls, text: object) -> Period:
        """Read an ISO day, month, year, week, an interval ``A/B`` of those, or any other label.

        Parameters
        ----------
        text : str
            ``2013-01-02``, ``2013-01``, ``2013``, ``2013-W01``, ``2013-01-01/2013-01-07``; everything else is
            a label.

        Returns
        -------
        Period

        Raises
        ------
        ArgumentError
            If the text is empty, written like a calendar period that does not exist, or an interval that
            ends before it starts.
        """
        if not isinstance(text, str) or not text.strip():
            raise ArgumentError("period must be a non-empty text such as '2013-01-02' or 'wave 1'.")
        ends = [_calendar_days(part.strip()) for part in text.split("/")]
        if len(ends) > 2 or None in ends:
            return cls(text=text)
        days = [bounds for bounds in ends if bounds is not None]
        first, last = days[0][0], days[-1][1]
        if first > last:
            raise ArgumentError(f"period {text!r} ends before it starts; write the earlier end first.")
        return cls(text=text, first=first, last=last)

    def overlaps(self, other: Period) -> bool:
        """Return whether the two periods may be about the same time.

        Calendar periods overlap when they share a day. A label overlaps itself (letter case and spacing
        aside) and every calendar period, because nobody can tell when it was; two different labels do not
        overlap.
        """
        if self.first is None or self.last is None or other.first is None or other.last is None:
            both_labels = self.first is None and other.first is None
            return not both_labels or _folded(self.text) == _folded(other.text)
        return self.first <= other.last and other.first <= self.last


def _folded(label: str) -> str:
    return " ".join(label.split()).casefold()


def _calendar_days(text: str) -> tuple[date, date] | None:
    """Return the first and last day of one calendar period, or None when it is not written like one."""
    try:
        if match := _DAY.fullmatch(text):
            day = date(*map(int, match.groups()))
            return day, day
        if match := _MONTH.fullmatch(text):
            year, month = map(int, match.groups())
            return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])
        if _YEAR.fullmatch(text):
            return date(int(text), 1, 1), date(int(text), 12, 31)
        if match := _WEEK.fullmatch(text):
            monday = date.fromisocalendar(int(match[1]), int(match[2]), 1)
            return monday, monday + timedelta(days=6)
    except (ValueError, OverflowError):  # calendar.IllegalMonthError is a ValueError
        raise ArgumentError(
            f"period {text!r} is written like a calendar period, but the calendar has no such day, month, year or week."
        ) from None
    return None
