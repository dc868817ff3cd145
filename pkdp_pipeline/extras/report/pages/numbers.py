"""Numbers: what the first screen shows of each release: cells by periods, small pictures over time, and changes.

Everything here follows from published numbers, and from what is public about how they were made.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pkdp_pipeline.extras.report.content import ReleaseView, Report, Series
from pkdp_pipeline.extras.report.figures import drawn_cells
from pkdp_pipeline.extras.report.figures.style import breaks, in_figures, places_of
from pkdp_pipeline.extras.report.pages.plain_words import margin, over_time, withheld_in
from pkdp_pipeline.model.display import Bands
from pkdp_pipeline.model.mechanisms import Mechanism, noised_below
from pkdp_pipeline.model.period import joined
from pkdp_pipeline.model.wording import fitting
from pkdp_pipeline.releases.derived import ExpectedError

MAX_ROWS = 30
"""So many cells are on the first screen, the largest ones; a table below has the others."""

MAX_PERIODS = 6
"""So many periods are, the latest ones."""

UNSEEN = "not seen"
"""The word for a change that noise, or a rule of display, does not allow to be seen."""

PARTS = ("base", "none", "range", "line", "dashed", "dot", "ring", "hole")
"""The parts of a small picture, from below, by their class in the style sheet."""

_MAX_DOTS = 20  # of more periods only lines are drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One published number, and between which numbers the counted one is: in 95 % of cases where noise was added.

    `least` and `most` are the same before noise: two numbers only where a rule of display shows them alike.
    """

    value: int
    text: str
    noised: bool
    least: float
    most: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether it is the counted number."""
        return not self.noised and self.least == self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cell: its numbers by period, None where nothing is published; and the change from the last period but one.

    `words` stand in the place of the newest number, where its table says that it is suppressed; `outlines` are those
    of its small picture.
    """

    names: tuple[str, ...]
    numbers: tuple[Number | None, ...]
    words: str
    change: str
    outlines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The first screen of one release; `scale` are the ends of what is drawn, `series` is all that is known over time.

    `panels` are the rows that have a picture, with the numbers of all periods.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    scale: tuple[float, float]
    series: Series | None
    more_cells: int
    more_periods: int
    panels: tuple[Row, ...] = ()

    def share(self, value: float) -> float:
        """Return where a number is between the ends of the scale, from 0 to 100."""
        low, high = self.scale
        return round(100.0 * (min(max(value, low), high) - low) / (high - low), 2)


def numbers_of(release: ReleaseView, report: Report) -> Numbers:
    """Return what the first screen shows of one of a report's releases."""
    mechanism, table, words = report.mechanism(release), release.table, withheld_in(report, release)
    series = next((series for series in over_time(report) if series.name == release.name), None)
    columns, names = table.columns, table.keys
    shown = series or Series(
        name=release.name,
        cells=tuple(map(joined, table.keys)),
        periods=(release.period,),
        counts=(table.counts,),
        exact=None if table.exact is None else (table.exact,),
        more_cells=table.more,
    )
    if series is not None:
        by_name = dict(zip(map(joined, table.keys), words, strict=True))
        words = [by_name.get(name if table.columns else "", "") for name in series.cells]
        columns, names = (" / ".join(table.columns) or "published",), tuple((name,) for name in series.cells)
    exact, rows = shown.exact or ((None,) * len(names),) * len(shown.counts), []
    for cell, name in enumerate(names):
        pairs = [(counts[cell], marks[cell]) for counts, marks in zip(shown.counts, exact, strict=True)]
        numbers = tuple(_number(value, mark, mechanism, release) for value, mark in pairs)
        change = _change(numbers[-2:], mechanism, release.error)
        rows.append(Row(names=name, numbers=numbers, words=words[cell], change=change))
    largest = sorted(range(len(rows)), key=lambda row: -getattr(rows[row].numbers[-1], "value", -1))
    kept = sorted(largest[: fitting(len(rows), MAX_ROWS)])
    drawn = [rows[row] for row in (kept if series is None else drawn_cells(shown))]
    ends = [end for row in drawn for number in row.numbers if number for end in (number.low, number.high)]
    ends = [0.0, *(end for end in ends if end < math.inf)]
    screen = Numbers(
        columns=columns,
        rows=tuple(replace(rows[row], numbers=rows[row].numbers[-MAX_PERIODS:]) for row in kept),
        scale=(min(ends), max(ends) or 1.0),
        series=series,
        more_cells=len(rows) - len(kept) + shown.more_cells,
        more_periods=len(shown.periods[:-MAX_PERIODS]) + shown.more_periods,
    )
    if series is None:
        return screen
    panels = (replace(row, outlines=_outlines(row.numbers, series.periods, screen)) for row in drawn)
    return replace(screen, panels=tuple(panels))


def _number(value: int | None, mark: bool | None, mechanism: Mechanism, release: ReleaseView) -> Number | None:
    if value is None:
        return None
    marked, k = noised_below(mechanism), mechanism.k or 0
    shown = (value, value) if mechanism.display is None else mechanism.display.interval(value)
    least, most = float(shown[0]), math.inf if shown[1] is None else float(shown[1])
    noised = mechanism.noise is not None and not (marked and mark)
    low, high = (least - margin(release), most + margin(release)) if noised else (least, most)
    if marked:  # what is noised is below k, and what is exact is not
        smallest, largest = (0.0, k - 1.0) if noised else (float(k), math.inf)
        low, high = min(max(low, smallest), largest), max(min(high, largest), smallest)
    text = f"{'≈ ' if noised else ''}{in_figures(value, release.table.bands)}"
    return Number(value=value, text=text, noised=noised, least=least, most=most, low=low, high=high)


def _change(numbers: Sequence[Number | None], mechanism: Mechanism, error: ExpectedError | None) -> str:
    """Return the change between two numbers; `UNSEEN` where it may as well be none, empty where one is hidden."""
    former, latter = numbers if len(numbers) == 2 else (None, None)
    if former is None or latter is None:
        return ""
    least, most = latter.low - former.high, latter.high - former.low
    if former.noised and latter.noised:
        both = 0 if error is None else bound_of_two(error.standard_deviation)
        least, most = latter.least - former.most - both, latter.most - former.least + both
    if least < most and least <= 0.0 <= most:
        return UNSEEN
    if isinstance(mechanism.display, Bands):
        return "higher" if least > 0.0 else "lower"
    difference = latter.value - former.value
    is_exact = former.exact and latter.exact
    return f"{'' if is_exact else '≈ '}{'+' if difference > 0 else ''}{in_figures(difference)}"


def bound_of_two(deviation: float) -> int:
    """Return the smallest b with P[|Z - Z'| > b] <= 0.05, for two noises of a standard deviation.

    With P[Z = z] = (1 - α) / (1 + α) α^|z|, the deviation is √(2α) / (1 - α), and the probability
    2α^(b+1) (b + 1 + α / (1 - α) + (1 + α²) / (1 - α²)) (1 - α) / (1 + α)².
    """
    gap = 2.0 / (math.sqrt(2.0 * deviation**2 + 1.0) + 1.0)
    alpha = 1.0 - gap
    rest = alpha / gap + (1.0 + alpha**2) / (gap * (1.0 + alpha))

    def is_rare(bound: int) -> bool:
        power = math.exp((bound + 1) * math.log1p(-gap)) if alpha else 0.0
        return 2.0 * power * (bound + 1 + rest) * gap / (1.0 + alpha) ** 2 <= 0.05

    return bisect_left(range(2**62), True, key=is_rare)


def _outlines(numbers: Sequence[Number | None], periods: Sequence[str], screen: Numbers) -> Mapping[str, str]:
    """Draw a cell over time, 240 wide and 62 high: a line with gaps where nothing is published, dashed if not exact."""
    places, is_dated = places_of(periods)
    apart = breaks(places) if is_dated else []
    across = [f"{5 + 230 * (place - places[0]) / ((places[-1] - places[0]) or 1):.1f}" for place in places]

    def height(value: float) -> str:
        return f"{52 - 0.48 * screen.share(value):.1f}"

    outlines = defaultdict(str, base=f"M0 {height(0.0)}H240")
    for place, (x, number) in enumerate(zip(across, numbers, strict=True)):
        if number is None:
            outlines["none"] += f"M{x} 56v5"
            continue
        if number.low < number.high:
            outlines["range"] += f"M{x} {height(number.low)}V{height(number.high)}"
        former = numbers[place - 1] if place and place not in apart else None
        if former is not None:
            kind = "line" if number.exact and former.exact else "dashed"
            outlines[kind] += f"M{across[place - 1]} {height(former.value)}L{x} {height(number.value)}"
        is_last = place + 1 == len(numbers)
        alone = former is None and (is_last or numbers[place + 1] is None or place + 1 in apart)
        if alone or is_last or len(numbers) <= _MAX_DOTS:
            outlines["dot" if number.exact else "ring"] += f"M{x} {height(number.value)}h0"
    outlines["hole"] = outlines["ring"]  # in the colour of the paper
    return outlines
