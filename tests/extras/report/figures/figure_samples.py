"""Values to draw, made by hand: their fields are what the figures look at."""

from __future__ import annotations

import datetime
import math
from types import SimpleNamespace

from matplotlib.figure import Figure

from pkdp_pipeline.extras.report.content import Series
from pkdp_pipeline.releases.printed import PublishedTable

FIRST = datetime.date(2013, 1, 1)


def axes(width=8.0, height=4.5):
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def drawn(panel, label):
    """Return the one line with this label."""
    (line,) = [line for line in panel.get_lines() if line.get_label() == label]
    return line


def labels(panel):
    return {line.get_label() for line in panel.get_lines()}


def texts(panel):
    legend = panel.get_legend()
    return [text.get_text() for text in (*panel.texts, *(legend.get_texts() if legend else ()))]


def days(number):
    return tuple((FIRST + datetime.timedelta(days=day)).isoformat() for day in range(number))


def knowledge(epsilons, *, field="known", declared=0, values=None, floor=None):
    return SimpleNamespace(
        field=field,
        words="people whose records the attacker knows",
        declared=declared,
        values=tuple(range(len(epsilons))) if values is None else values,
        epsilons=epsilons,
        floor=floor,
        delta=1e-6,
    )


def points(epsilons, worst=None, periods=None):
    return [
        SimpleNamespace(period=period, releases=number, epsilon=epsilon, worst_case=anyone)
        for number, (period, epsilon, anyone) in enumerate(
            zip(periods or days(len(epsilons)), epsilons, worst or [math.inf] * len(epsilons), strict=True), start=1
        )
    ]


def budget(epsilon, part="partial_knowledge", *, delta=1e-6, window_days=None):
    words = f"ε = {epsilon:g} at δ = 1e-6 for the total"
    return SimpleNamespace(epsilon=epsilon, delta=delta, part=part, window_days=window_days, words=words)


def table(counts, *, keys=None, columns=("carrier",), more=0):
    names = tuple((f"cell {row}",) for row in range(len(counts)))
    return PublishedTable(columns=columns, keys=names if keys is None else keys, counts=tuple(counts), more=more)


def series(rows, *, cells=None, periods=None, more_cells=0):
    return Series(
        name="by_carrier",
        cells=cells or tuple(f"cell {number}" for number in range(len(rows[0]))),
        periods=periods or days(len(rows)),
        counts=tuple(rows),
        more_cells=more_cells,
        more_periods=0,
    )
