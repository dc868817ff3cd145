"""Timeline: periods as places on an axis, as dates where all of them have some."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.figures.frame import is_narrow
from pkdp_pipeline.ledger.period import Period

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Timeline"]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Where periods lie: at the ordinals of their last days, or at 0, 1, 2 … where some have no dates.

    Parameters
    ----------
    periods : tuple of str
    places : tuple of float
    is_dated : bool
    """

    periods: tuple[str, ...]
    places: tuple[float, ...]
    is_dated: bool

    @classmethod
    def of(cls, periods: Sequence[str]) -> Timeline:
        """Place periods; where two of them end on the same day they are taken as labels."""
        days = [_last_day(period) for period in periods]
        dated = [day for day in days if day is not None]
        if len(dated) == len(days) and all(one < after for one, after in pairwise(dated)):
            return cls(tuple(periods), tuple(float(day.toordinal()) for day in dated), True)
        return cls(tuple(periods), tuple(map(float, range(len(periods)))), False)

    def breaks(self) -> list[int]:
        """Return the positions before which a period is missing, seen from how far apart the others are."""
        steps = [after - one for one, after in pairwise(self.places)]
        if not self.is_dated or len(steps) < 2:
            return []
        usual = sorted(steps)[len(steps) // 2]
        return [position for position, step in enumerate(steps, start=1) if step > 1.5 * usual]

    def put_on(self, axes: Axes) -> None:
        """Give the axis of x few, whole ticks and a little room at both ends."""
        from matplotlib.ticker import FixedFormatter, FixedLocator

        first, last = self.places[0], self.places[-1]
        room = 0.02 * (last - first) or 1.0
        axes.set_xlim(first - room, last + room)
        most = 4 if is_narrow(axes) else 7
        places, names = self._days(most) if self.is_dated else self._labels(most)
        axes.xaxis.set_major_locator(FixedLocator(places))
        axes.xaxis.set_major_formatter(FixedFormatter(names))

    def _labels(self, most: int) -> tuple[list[float], list[str]]:
        step = -(-len(self.periods) // most)
        return list(self.places[::step]), [_shortened(period) for period in self.periods[::step]]

    def _days(self, most: int) -> tuple[list[float], list[str]]:
        """Return first days of years or months where they are enough, else some of the periods' own days."""
        first, last = (datetime.date.fromordinal(int(self.places[end])) for end in (0, -1))
        if (last - first).days > 60:
            months = (last.year - first.year) * 12 + last.month - first.month
            step = next(one for one in (1, 2, 3, 4, 6, 12, 24, 60, 120, 240, 600, 1200, 10**6) if months / one < most)
            starts = [
                datetime.date(year, month + 1, 1)
                for year, month in (divmod(one, 12) for one in range(12 * first.year, 12 * last.year + 12))
                if (12 * year + month) % step == 0 and year > 0
            ]
            starts = [day for day in starts if first <= day <= last]
            if len(starts) > 1:
                written = "%Y" if step >= 12 else "%b %Y"
                return [float(day.toordinal()) for day in starts], [_date(day, written) for day in starts]
        step = -(-len(self.places) // most)
        days = [datetime.date.fromordinal(int(place)) for place in self.places[::step]]
        return [float(day.toordinal()) for day in days], [
            f"{day.day} {_MONTHS[day.month - 1]} {day.year}" for day in days
        ]


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _date(day: datetime.date, written: str) -> str:
    """Write a date in English, whatever the locale."""
    return f"{day.year}" if written == "%Y" else f"{_MONTHS[day.month - 1]} {day.year}"


def _last_day(period: str) -> datetime.date | None:
    try:
        return Period.parse(period).last
    except PkdpError:
        return None


def _shortened(name: str) -> str:
    return name if len(name) <= 14 else name[:13].rstrip() + "…"
