"""What ``pkdp plan`` prints: the choices, whom they hold against, what if the attacker differs, curves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pkdp_pipeline.certificates.statement import Scenario
from pkdp_pipeline.cli.plan_views.curves import Curve, evenly
from pkdp_pipeline.cli.plan_views.job_fragment import job_fragment
from pkdp_pipeline.cli.plan_views.planned import Inverse, Planned
from pkdp_pipeline.cli.plan_views.words import estimate, mechanism_phrase
from pkdp_pipeline.display.terminal.chart import Mark, columns_chart
from pkdp_pipeline.display.terminal.screen import Screen
from pkdp_pipeline.ledger.views.words import amount
from pkdp_pipeline.model.plain_text import exactly
from pkdp_pipeline.model.wording import percent, rounded_up
from pkdp_pipeline.planning import Choice

__all__ = [
    "print_again",
    "print_choices",
    "print_curves",
    "print_fragment",
    "print_limits",
    "print_scenarios",
    "print_sentence",
]

_WIDE = 96
_COLUMNS = 60
_BEYOND = 3.0


def print_choices(screen: Screen, made: Planned) -> None:
    """Print the table of choices and on what its numbers rest."""
    question = made.question
    what = "Histogram" if question.kind == "histogram" else "Count"
    hidden = "which group a person is in" if question.protects == "value" else "whether a person is there"
    times = "once" if question.days == 1 else f"{question.days} times"
    screen.title(f"{what} published {times}, hiding {hidden}: ε = {exactly(question.epsilon)}, δ = {_delta(made)}")
    screen.head("Choices")
    wide = screen.width >= _WIDE
    whom = ("holds against",) if wide else ()
    cells = ("cells", "people") if question.kind == "histogram" else ("hidden",)
    header = ("", "published", *whom, "ε", "δ", "error", *cells)
    rows = []
    for place, one in enumerate(made.choices, start=1):
        against = (_briefly(one),) if wide else ()
        rows.append((f"{place}", mechanism_phrase(one.mechanism), *against, *_numbers(made, one)))
    screen.table(header, rows, right=("", "ε", "δ", "error", *cells))
    of = "" if question.days == 1 else f" of all {question.days} releases together,"
    screen.say(f"ε is at δ = {_delta(made)}, δ at ε = {exactly(question.epsilon)};{of} as certified, rounded up.")
    screen.say(_estimates(made))
    for line in _remarks(made, wide=wide):
        screen.say(line)


def print_sentence(screen: Screen, made: Planned) -> None:
    """Print whom the chosen mechanism holds against."""
    screen.head(f"Choice {made.chosen + 1}: {mechanism_phrase(made.choice.mechanism)}")
    screen.say(made.choice.together.sentence(delta=made.question.delta))


def print_limits(screen: Screen, found: Sequence[Inverse]) -> None:
    """Print how far the declared numbers may be off."""
    for one in found:
        screen.say(one.words)


def print_scenarios(screen: Screen, made: Planned, scenarios: Sequence[Scenario]) -> None:
    """Print what is certified when the attacker differs from the declared one."""
    screen.head("If the attacker is stronger than declared")
    rows = [
        (f"… {one.words}", amount(one.epsilon), "1" if one.delta_at_one >= 1.0 else rounded_up(one.delta_at_one))
        for one in scenarios
    ]
    screen.table(("the attacker", "ε", "δ"), rows, right=("ε", "δ"))
    screen.say(f"ε is at δ = {_delta(made)}, δ at ε = 1. The last rows give up what was assumed.")


def print_curves(screen: Screen, made: Planned, found: Sequence[Curve]) -> None:
    """Draw the curves in characters."""
    question = made.question
    for curve in found:
        shown = evenly(curve, min(_COLUMNS, max(16, screen.width - 24)))
        screen.head(f"ε at δ = {_delta(made)} against {curve.words}")
        marks = [Mark(height=question.epsilon, name="target")] if question.epsilon > 0.0 else []
        heights = shown.heights
        top = _BEYOND * max(question.epsilon, heights[shown.declared] if heights[shown.declared] < math.inf else 0.0)
        screen.lines(
            columns_chart(
                heights,
                marks,
                width=screen.width - 2,
                first=_end(curve, shown.first, "↑ {}" if shown.declared == 0 else ""),
                last=_end(curve, shown.last, "{} ↑" if shown.declared == len(heights) - 1 else ""),
                middle=(shown.declared, f"{curve.field} = {_value(curve.field, curve.declared)}"),
                most=top or math.inf,
                rows=6,
                plain=screen.plain,
            )
        )
    legend = ["× no ε is certified"] if any(math.inf in curve.epsilons for curve in found) else []
    if found:
        screen.say("; ".join((*legend, "↑ the plan, or beyond the scale")) + ".")


def print_fragment(screen: Screen, made: Planned) -> None:
    """Print the piece of a job file."""
    screen.head(f"In a job file, for choice {made.chosen + 1}")
    screen.pasted(job_fragment(made.question, made.choice))
    above = "; the evidence stands above the first [table]" if made.question.evidence else ""
    screen.say(f"What is in capitals is yours to fill in{above}.")


def print_again(screen: Screen, made: Planned) -> None:
    """Print the command that asks the same."""
    screen.head("The same as a command")
    screen.command(made.question.command())


def _numbers(made: Planned, one: Choice) -> tuple[str, ...]:
    question = made.question
    shares = (_share(one.outcome.suppressed_cells), _share(one.outcome.suppressed_people))
    return (
        amount(one.together.epsilon(question.delta)),
        rounded_up(one.together.delta(question.epsilon)),
        _error(one),
        *(shares if question.kind == "histogram" else shares[:1]),
    )


def _delta(made: Planned) -> str:
    return exactly(made.question.delta)


def _error(one: Choice) -> str:
    if one.outcome.mean_absolute_error is None:
        return "-"
    return "none" if one.mechanism.noise is None else estimate(one.outcome.mean_absolute_error)


def _share(share: float | None) -> str:
    """Return an expected share in percent; an estimate, and no claim."""
    if share is None:
        return "?"
    if share == 0.0:
        return "none"
    if share < 1e-4:
        return "< 0.01 %"
    return "> 99.9 %" if 0.999 < share < 1.0 else f"{100.0 * share:.3g} %"


def _estimates(made: Planned) -> str:
    """Return what the columns of estimates are, and on what they rest."""
    histogram = made.question.kind == "histogram"
    parts = [
        "error: how far a published number is expected to be from the counted one",
        "cells, people: the expected shares that are suppressed"
        if histogram
        else "hidden: the expected share of counts that are suppressed",
    ]
    if made.counts is None:
        basis = "Suppressed shares are not estimated: give --public-counts or --assumed-cells and --assumed-people"
        basis = basis if histogram else "What is suppressed is not estimated: give --public-counts or --assumed-people"
        return f"{'; '.join(parts)}. {basis}."
    return f"{'; '.join(parts)}. Estimates, not guarantees. {made.choice.outcome.basis}"


def _briefly(choice: Choice) -> str:
    """Return against whom a choice holds, as it fits a column."""
    if not choice.against_anyone:
        return "declared attacker"
    return "given what is known" if "given" in choice.whom else choice.whom


def _remarks(made: Planned, *, wide: bool) -> list[str]:
    found = []
    places = [place for place, one in enumerate(made.choices, start=1) if one.against_anyone]
    whom = next((one.whom for one in made.choices if one.against_anyone), "")
    if not wide and places:
        others = len(places) < len(made.choices)
        names = " and ".join(map(str, places))
        found.append(
            f"Choice{'s' if len(places) > 1 else ''} {names} hold{'' if len(places) > 1 else 's'} against {whom}"
            f"{', the others against the declared attacker' if others else ''}."
        )
    if made.question.kind == "histogram" and any(_needs_cells(one) for one in made.choices):
        listed = [str(place) for place, one in enumerate(made.choices, start=1) if _needs_cells(one)]
        found.append(
            f"Choice{'s' if len(listed) > 1 else ''} {' and '.join(listed)}: every cell has to be declared in advance, "
            "and is published, empty ones too."
        )
    for place, one in enumerate(made.choices, start=1):
        threshold = one.mechanism.release_threshold
        if threshold is not None:
            found.append(
                f"Choice {place}: names of cells may come from the data; a cell is published when its noisy count "
                f"is at least {threshold}."
            )
    if made.without_noise is not None:
        found.append(f"Without noise: {made.without_noise}")
    return found


def _needs_cells(one: Choice) -> bool:
    return one.mechanism.k is None and one.mechanism.release_threshold is None


def _end(curve: Curve, value: float, arrow: str) -> str:
    """Return what is written at an end of the axis, with an arrow where the plan is there."""
    text = _value(curve.field, value)
    return arrow.format(f"{curve.field} = {text}") if arrow else text


def _value(field: str, value: float) -> str:
    return percent(value) if field.startswith("p_") else f"{value:.0f}"
