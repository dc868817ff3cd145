"""Timeline: periods as places on an axis, as dates where all of them have some."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pkdp_pipeline.display.figures.frame import literal, width_in_points
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.period import Period

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
        most = max(2, int(width_in_points(axes) / _ROOM))
        places, names = self._days(most) if self.is_dated else self._labels(most)
        axes.xaxis.set_major_locator(FixedLocator(places))
        axes.xaxis.set_major_formatter(FixedFormatter(names))

    def _labels(self, most: int) -> tuple[list[float], list[str]]:
        step = -(-len(self.periods) // most)
        return list(self.places[::step]), [literal(period, 14) for period in self.periods[::step]]

    def _days(self, most: int) -> tuple[list[float], list[str]]:
        """Return first days of years or months where they are enough, else some of the periods' own days."""
        days = [datetime.date.fromordinal(int(place)) for place in self.places]
        starts = _month_starts(days[0], days[-1], most) if (days[-1] - days[0]).days > 60 else []
        named = starts if len(starts) > 1 else days[:: -(-len(days) // most)]
        names = []
        for before, day in zip([None, *named], named, strict=False):
            shown = [str(day.day)] if named is not starts else []
            if named is not starts or any(one.month > 1 for one in named):
                shown.append(_MONTHS[day.month - 1])
            # The year is said once.
            if before is None or before.year != day.year:
                shown.append(str(day.year))
            names.append(" ".join(shown))
        return [float(day.toordinal()) for day in named], names


def _month_starts(first: datetime.date, last: datetime.date, most: int) -> list[datetime.date]:
    """Return the first days of every so many months, at most `most` of them."""
    begin, end = 12 * first.year + first.month - 1 + (first.day > 1), 12 * last.year + last.month - 1
    step = next(one for one in _STEPS if (end - begin) // one < most)
    return [datetime.date(one // 12, one % 12 + 1, 1) for one in range(begin + -begin % step, end + 1, step)]


_STEPS = (1, 2, 3, 4, 6, *(12 * years for years in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000)))  # months
_ROOM = 72.0  # for one tick's name, in points
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _last_day(period: str) -> datetime.date | None:
    try:
        return Period.parse(period).last
    except PkdpError:
        return None
