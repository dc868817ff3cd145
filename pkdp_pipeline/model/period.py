"""Period: the stretch of calendar a release is about, and whether two of them meet."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.calendar_forms import looks_like_a_date, read_calendar
from pkdp_pipeline.model.spelling import collapsed, folded, is_hidden

__all__ = ["Period"]

_FORMS = (
    "a day 2013-01-02, a week 2013-W01, a month 2013-01, a quarter 2013-Q1, a half 2013-H1, a year 2013, or an "
    "interval of those such as 2013-01-01/2013-01-07"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period as declared, with its first and last day when it is a calendar period.

    Parameters
    ----------
    text : str
        One spelling for each form: ``20130102`` and ``2013-002`` are both ``2013-01-02``. A label keeps its
        letter case.
    first, last : datetime.date or None
        Both inclusive; both None for a label that is no calendar period.

    Notes
    -----
    Read a period with `Period.parse`; the constructor trusts its arguments.
    """

    text: str
    first: datetime.date | None = None
    last: datetime.date | None = None

    @classmethod
    def parse(cls, text: object) -> Period:
        """Read a calendar period, an interval ``A/B`` of them, or any other label.

        Parameters
        ----------
        text : str, datetime.date or Period
            ISO 8601: a day (``2013-01-02``, ``20130102``, ``2013-002``, ``2013-W01-3``, or a point in time,
            which stands for its day as written), a week ``2013-W01``, a month ``2013-01``, a year ``2013``; a
            quarter ``2013-Q1`` and a half ``2013-H1``; an interval ``2013-01-01/2013-01-07``. Everything else
            is a label, unless it looks like a date.

        Returns
        -------
        Period

        Raises
        ------
        ArgumentError
            If the text is empty, holds a character that nobody sees, is written like a calendar period that does
            not exist, is an interval that ends before it starts, or a date in another form: such a label could
            not be compared with other periods, and a release could slip in beside one about the same days.
        """
        if isinstance(text, Period):
            return text
        if isinstance(text, datetime.date) and not isinstance(text, datetime.datetime):
            return cls(text=text.isoformat(), first=text, last=text)
        if not isinstance(text, str) or not text.strip():
            raise ArgumentError("period must be a non-empty text such as '2013-01-02' or 'wave 1'.")
        if any(map(is_hidden, text)):
            raise ArgumentError(
                "period must not hold control or invisible characters, such as a zero-width space: two labels that "
                "look the same would be two periods. Type it anew."
            )
        ends = [read_calendar(part.strip()) for part in text.split("/")]
        spans = [span for span in ends if span is not None]
        if len(spans) < len(ends) or len(ends) > 2:
            if spans or looks_like_a_date(text):
                raise ArgumentError(
                    f"period {text!r} looks like a date but is in no form that can be compared with other periods; "
                    f"write {_FORMS}."
                )
            return cls(text=collapsed(text))
        first, last = spans[0].first, spans[-1].last
        if first > last:
            raise ArgumentError(f"period {text!r} ends before it starts; write the earlier end first.")
        return cls(text="/".join(span.text for span in spans), first=first, last=last)

    def overlaps(self, other: Period) -> bool:
        """Return whether the two periods may be about the same time.

        Calendar periods overlap when they share a day. A label overlaps itself (letter case and spacing
        aside) and every calendar period, because nobody can tell when it was; two different labels do not
        overlap.
        """
        if self.first is None or self.last is None or other.first is None or other.last is None:
            both_labels = self.first is None and other.first is None
            return not both_labels or folded(self.text) == folded(other.text)
        return self.first <= other.last and other.first <= self.last

    def days(self) -> tuple[int, int] | None:
        """Return the first and last day as ordinals of the proleptic calendar, None for a label."""
        if self.first is None or self.last is None:
            return None
        return self.first.toordinal(), self.last.toordinal()
