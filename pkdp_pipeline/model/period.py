"""Period: the stretch of calendar a release is about, and whether two of them meet.

Spelling: which names of a data set or a label mean the same, and what text may be shown.
"""

from __future__ import annotations

import calendar
import datetime
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from pkdp_pipeline.errors import ArgumentError

# Letters and marks that are drawn as nothing, although their Unicode category does not say so: joiners of graphemes,
# fillers of Hangul, vowels and separators without a shape, an empty Braille cell, variation selectors.
_UNDRAWN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


def collapsed(text: str) -> str:
    """Return `text` with its white space collapsed to single spaces."""
    return " ".join(text.split())


def folded(text: str) -> str:
    """Return what two spellings of a name have in common: white space, letter case and Unicode form aside."""
    return collapsed(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))


def is_hidden(letter: str) -> bool:
    """Return whether a letter cannot be seen where it is written, white space aside.

    Control and format characters, zero-width ones among them, halves of surrogate pairs, and letters drawn as
    nothing: two names that look the same would be two names.
    """
    if letter.isspace():
        return False
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs") or _UNDRAWN.match(letter) is not None


def dataset_name(text: object) -> str:
    """Return a data set's name with its white space collapsed.

    Names whose `folded` forms are equal mean the same data set. Raises `ArgumentError` if it is not a text, says
    nothing, or holds a control character or one that nobody sees.
    """
    if not isinstance(text, str) or not folded(text):
        raise ArgumentError('dataset must be a non-empty name, such as "flights".')
    if any(is_hidden(letter) or unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in text):
        raise ArgumentError(
            "dataset must not hold control or invisible characters, such as a tab, a line break or a zero-width space: "
            "two names that look the same would be two data sets. Type the name anew."
        )
    return collapsed(text)


MISSING = "(missing)"
"""The text of a missing key."""

_EMPTY = "(empty)"

_REPEATED_BLANK = re.compile("(?<= ) ")
"""Which a page would show as one."""

_SHOWN_MARKS = re.compile(r"([\\`*_\[\]<>|~&!$@{}])|(?<=[A-Za-z])(:)(?=//)|(?<=[Ww]{3})(\.)")


def printable(value: object) -> str:
    """Return a value as one line of text that cannot steer a terminal."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def key_text(value: object, *, quoted: bool = False) -> str:
    r"""Return the value of a by-column as one line that is never empty, and is different for different texts.

    A backslash is doubled, since one may stand before an escape. Text is put in quotation marks where it could be
    taken for something else: one of the words for what is missing, a text in quotation marks, blanks at an end; and
    where `quoted` is asked for.
    """
    import pandas as pd

    if pd.isna(value):  # type: ignore[call-overload]  # a key is a scalar
        return MISSING
    text = str(value)
    if not text and not quoted:
        return _EMPTY
    shown = _REPEATED_BLANK.sub(r"\\x20", printable(text.replace("\\", "\\\\")))
    if quoted or shown in (MISSING, _EMPTY) or shown.startswith('"') or shown != shown.strip():
        return '"' + shown.replace('"', '\\"') + '"'
    return shown


def joined(keys: Sequence[str]) -> str:
    """Return the texts of a cell's keys as one, which is different for different cells; empty without keys."""
    if len(keys) == 1:
        return keys[0]
    return " / ".join('"' + key.replace('"', '\\"') + '"' if _is_parted(key) else key for key in keys)


def _is_parted(key: str) -> bool:
    """Return whether a key would look like several; one in quotation marks does not."""
    return not key.startswith('"') and " / " in f" {key} "


def in_markdown(text: str) -> str:
    """Return text that Markdown shows as it is: no emphasis, link, address or tag is made of it."""
    return _SHOWN_MARKS.sub(lambda match: f"\\{match[0]}", text)


def table_line(cells: Sequence[str]) -> str:
    """Return one line of a Markdown table; the cells are escaped already."""
    return f"| {' | '.join(cells)} |"


def exactly(value: float) -> str:
    """Return a number that somebody has chosen, as it was written."""
    mantissa, mark, exponent = repr(value).partition("e")
    return mantissa.removesuffix(".0") + (f"e{int(exponent)}" if mark else "")


Every = Literal["day", "week", "month", "quarter", "year"]
"""How often a calendar period begins; weeks are ISO weeks."""

_FORMS = (
    "a day 2013-01-02, a week 2013-W01, a month 2013-01, a quarter 2013-Q1, a half 2013-H1, a year 2013, or an "
    "interval of those such as 2013-01-01/2013-01-07"
)
_DAY = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}(:?\d{2})?)?)?"
    r"|\d{8}|\d{4}-W\d{2}-\d|\d{4}W\d{3}",
    re.ASCII | re.IGNORECASE,
)
_DAY_OF_YEAR = re.compile(r"(\d{4})-(\d{3})", re.ASCII)
_STRETCH = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{2})|-?Q(?P<quarter>\d)|-?H(?P<half>\d)|-?W(?P<week>\d{2}))?",
    re.ASCII | re.IGNORECASE,
)
_MARKS = {"month": "-", "quarter": "-Q", "half": "-H", "week": "-W"}
_MONTHS = {"year": 12, "month": 1, "quarter": 3, "half": 6}

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
    def around(cls, day: datetime.date, every: Every) -> Period:
        """Return the day, ISO week, month, quarter or year in which a day lies.

        Raises `ArgumentError` if its last day is beyond the year 9999.
        """
        year, week, _ = day.isocalendar()
        texts = {
            "day": day.isoformat(),
            "week": f"{year:04}-W{week:02}",
            "month": f"{day.year:04}-{day.month:02}",
            "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
            "year": f"{day.year:04}",
        }
        return cls.parse(texts[every])

    @classmethod
    def parse(cls, text: object) -> Period:
        """Read a calendar period, an interval ``A/B`` of them, or any other label.

        Raises `ArgumentError` if the text is empty, holds a character that nobody sees, is written like a calendar
        period that does not exist, is an interval that ends before it starts, or a date in another form: such a label
        could not be compared with other periods, and a release could slip in beside one about the same days.

        Parameters
        ----------
        text : str, datetime.date or Period
            ISO 8601: a day (``2013-01-02``, ``20130102``, ``2013-002``, ``2013-W01-3``, or a point in time,
            which stands for its day as written), a week ``2013-W01``, a month ``2013-01``, a year ``2013``; a
            quarter ``2013-Q1`` and a half ``2013-H1``; an interval ``2013-01-01/2013-01-07``. Everything else
            is a label, unless it looks like a date.
        """
        if isinstance(text, Period):
            return text
        if isinstance(text, datetime.date) and not isinstance(text, datetime.datetime):
            return cls(text=text.isoformat(), first=text, last=text)
        if not isinstance(text, str) or not text.strip():
            raise ArgumentError("period must be a non-empty text such as '2013-01-02' or 'wave 1'.")
        return _parsed(text)

    @property
    def value(self) -> datetime.date | str:
        """Its name in a column: the date of a day, the text of anything longer, or of a label."""
        return self.first if self.first is not None and self.first == self.last else self.text

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


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Period:
    """Read a text as `Period.parse` does; a backfill reads those of few days again and again."""
    if any(map(is_hidden, text)):
        raise ArgumentError(
            "period must not hold control or invisible characters, such as a zero-width space: two labels that "
            "look the same would be two periods. Type it anew."
        )
    ends = [_calendar_period(part.strip()) for part in text.split("/")]
    spans = [span for span in ends if span is not None]
    if len(spans) < len(ends) or len(ends) > 2:
        if spans or _looks_like_a_date(text):
            raise ArgumentError(
                f"period {text!r} looks like a date but is in no form that can be compared with other periods; "
                f"write {_FORMS}."
            )
        return Period(text=collapsed(text))
    first, last = spans[0].first, spans[-1].last
    if first is None or last is None or first > last:
        raise ArgumentError(f"period {text!r} ends before it starts; write the earlier end first.")
    return Period(text="/".join(span.text for span in spans), first=first, last=last)


def _calendar_period(text: str) -> Period | None:
    """Return one calendar period, or None when `text` is not written like one."""
    try:
        return _day(text) or _stretch(text)
    except (ValueError, OverflowError):
        raise ArgumentError(
            f"period {text!r} is written like a calendar period, but the calendar has no such day, week, month, "
            "quarter, half or year."
        ) from None


def _day(text: str) -> Period | None:
    if _DAY.fullmatch(text):
        if text[11:13] == "24":  # another day's midnight, which some Python versions read
            raise ValueError
        return Period.parse(datetime.datetime.fromisoformat(text.upper()).date())
    if match := _DAY_OF_YEAR.fullmatch(text):
        year, number = map(int, match.groups())
        day = datetime.date(year, 1, 1) + datetime.timedelta(days=number - 1)
        if day.year != year:
            raise ValueError
        return Period.parse(day)
    return None


def _stretch(text: str) -> Period | None:
    match = _STRETCH.fullmatch(text)
    if match is None:
        return None
    form = match.lastgroup or "year"
    year, number = int(match["year"]), 1 if form == "year" else int(match[form])
    if form == "week":
        first = datetime.date.fromisocalendar(year, number, 1)
        last = first + datetime.timedelta(days=6)
    else:
        months = _MONTHS[form]
        first = datetime.date(year, months * (number - 1) + 1, 1)
        last = datetime.date(year, months * number, calendar.monthrange(year, months * number)[1])
    spelled = match["year"] if form == "year" else match["year"] + _MARKS[form] + match[form]
    return Period(text=spelled, first=first, last=last)


def _looks_like_a_date(text: str) -> bool:
    """Return whether a label seems to name a time: a year, a month with a number, 2.1.13 and the like."""
    plain = "".join(
        str(unicodedata.decimal(letter)) if letter.isdecimal() else letter
        for letter in unicodedata.normalize("NFKC", text).casefold()
    )
    return any(pattern.search(plain) for pattern in _DATE_LIKE)


def of_pandas(period: Any) -> Any:
    """Return a `pandas.Period` as its dates, anything else as it is."""
    if type(period).__module__.split(".")[0] != "pandas" or not hasattr(period, "end_time"):
        return period
    first, last = period.start_time, period.end_time
    if first != first.normalize() or (last.ceil("D") - last).total_seconds() >= 1:
        raise ArgumentError("period must be a day or longer: pandas.Period of hours or less is not.")
    ends = first.date(), last.date()
    known = (Period.around(ends[0], every) for every in get_args(Every))
    return next(
        (candidate.text for candidate in known if (candidate.first, candidate.last) == ends), "/".join(map(str, ends))
    )
