"""Output of ``pkdp plan``: the choices, whom they hold against, what if the attacker differs, curves; and as JSON.

Tables at several levels of a hierarchy are derived from the finest, or cost what a table of each costs.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.plan.answers import (
    Curve,
    Limit,
    Plan,
    curves,
    estimate,
    limits,
    mechanism_phrase,
    noised_instead,
    offer_of,
    takes_long,
)
from pkdp_pipeline.extras.plan.planning import Choice
from pkdp_pipeline.extras.plan.question import Question
from pkdp_pipeline.ledger.history import amount
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import evidence_to_dicts
from pkdp_pipeline.model.mechanisms import GeometricNoise, Histogram, mechanism_to_dict, noised_below
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import percent, positive_real, rounded_up
from pkdp_pipeline.plugins import view
from pkdp_pipeline.releases.derived import expected_error
from pkdp_pipeline.schemas import VERSION

SCHEMA = "pkdp-plan/1"

_WIDE_SCREEN, _MAX_ROWS, _MAX_TARGETS_SHOWN = 96, 8, 3.0


def print_choices(screen: Screen, plan: Plan) -> None:
    """Print the table of choices and on what its numbers rest."""
    question, delta = plan.question, exactly(plan.question.delta)
    histogram, wide = question.kind == "histogram", screen.width >= _WIDE_SCREEN
    heading = "Histogram" if histogram else "Count"
    hidden = "which group a person is in" if question.protects == "value" else "whether a person is there"
    times = "once" if question.days == 1 else f"{question.days} times"
    screen.title(f"{heading} published {times}, hiding {hidden}: ε = {exactly(question.epsilon)}, δ = {delta}")
    screen.head("Choices")
    shares = ("cells", "people") if histogram else ("hidden",)
    numbers = ("ε", "δ", "error", *shares)
    rows = [
        (
            f"{place}",
            mechanism_phrase(choice.mechanism),
            *([_briefly(choice)] if wide else []),
            *_numbers(question, choice),
        )
        for place, choice in enumerate(plan.choices, start=1)
    ]
    screen.table(("", "published", *(["holds against"] if wide else []), *numbers), rows, right=("", *numbers))
    of = "" if question.days == 1 else f" of all {question.days} releases together,"
    screen.say(f"ε is at δ = {delta}, δ at ε = {exactly(question.epsilon)};{of} as certified, rounded up.")
    lost = "cells, people: the expected shares" if histogram else "hidden: the expected share of counts"
    if plan.counts is not None:
        basis = f"Estimates, not guarantees. {plan.choice.outcome.basis}"
    elif histogram:
        basis = "Suppressed shares are not estimated: give --public-counts or --assumed-cells and --assumed-people."
    else:
        basis = "The hidden share is not estimated: give --public-counts or --assumed-people."
    off = "error: how far a published number is expected to be from the counted one"
    screen.say(f"{off}; {lost} that are suppressed. {basis}")
    for line in _remarks(plan, wide):
        screen.say(line)


def print_closely(screen: Screen, plan: Plan, drawn: bool | None = None) -> None:
    """Print what the chosen mechanism promises and, where that rests on what is declared, how it moves with it.

    Limits and curves that take long are left out, unless `drawn` is True; False leaves out the curves.
    """
    question = plan.question
    screen.head(f"Choice {plan.chosen + 1}: {mechanism_phrase(plan.choice.mechanism)}")
    screen.say(plan.choice.together.sentence(delta=question.delta))
    if plan.choice.against_anyone:
        return
    limits, shown = _details(plan, drawn)
    for limit in limits:
        screen.say(limit.words)
    screen.head("If the attacker is stronger than declared")
    rows = [
        (
            f"… {scenario.words}",
            amount(scenario.epsilon),
            "1" if scenario.delta_at_one >= 1.0 else rounded_up(scenario.delta_at_one),
        )
        for scenario in plan.scenarios
    ]
    screen.table(("the attacker", "ε", "δ"), rows, right=("ε", "δ"))
    screen.say(f"ε is at δ = {exactly(question.delta)}, δ at ε = 1. The last rows give up what was assumed.")
    if drawn is not True and takes_long(plan):
        screen.head("Limits and curves")
        screen.say("They take long for this attacker, and are left out; --curves draws them.")
    for curve in shown:
        _print_curve(screen, question, curve)


def print_offer(screen: Screen, plan: Plan) -> None:
    """Print how the chosen one is published."""
    offer = offer_of(plan.question, plan.choice)
    screen.head(f"In a job file, for choice {plan.chosen + 1}")
    screen.pasted(offer.job())
    screen.head("In Python")
    screen.pasted(offer.python())
    screen.head("In SQL, once this is installed on the connection")
    screen.pasted(f"{offer.install()}\n\n{offer.sql()}")
    screen.head("As commands: its certificate, and its publication")
    screen.command(offer.certify())
    screen.command(offer.command())
    above = "; evidence and target stand above the first [table]" if offer.above else ""
    screen.say(f"Words in capitals are yours to fill in{above}.")


def plan_document(plan: Plan, drawn: bool | None = None) -> str:
    """Return a plan as JSON, which `pkdp_pipeline/schemas/plan.v1.json` describes. Where there is no ε, it is null."""
    question, counts = plan.question, plan.counts
    limits, shown = _details(plan, drawn)
    same = ("kind", "protects", "epsilon", "delta", "days", "noise", "declared_cells", "cells_per_unit")
    document = {
        "schema": SCHEMA,
        "library": {"name": "pkdp_pipeline", "version": VERSION},
        "question": {name: getattr(question, name) for name in same}
        | {
            "attacker": question.attacker.to_dict(),
            "evidence": evidence_to_dicts(question.evidence),
            "counts": counts and {"source": counts.source, "cells": len(counts.counts), "people": counts.people},
        },
        "command": question.command(),
        "choices": [_choice(question, choice) for choice in plan.choices],
        "without_noise": plan.without_noise,
        "chosen": plan.chosen,
        "sentence": plan.choice.together.sentence(delta=question.delta),
        "limits": [limit._asdict() for limit in limits],
        "what_if": [
            {"attacker" if name == "words" else name: _finite(value) for name, value in asdict(scenario).items()}
            for scenario in plan.scenarios
        ],
        "curves": [
            {
                "field": curve.field,
                "words": curve.words,
                "declared": curve.declared,
                "points": [
                    {"value": x, "epsilon": _finite(y)} for x, y in zip(curve.values, curve.epsilons, strict=True)
                ],
            }
            for curve in shown
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def _details(plan: Plan, drawn: bool | None) -> tuple[Sequence[Limit], Sequence[Curve]]:
    """Return the limits and the curves that are shown."""
    if drawn is not True and takes_long(plan):
        return (), ()
    return limits(plan), () if drawn is False else curves(plan)


def _print_curve(screen: Screen, question: Question, curve: Curve) -> None:
    """Draw a curve as bars, at some of its points: the declared one, both ends, and the first without an ε."""
    points = list(zip(curve.values, curve.epsilons, strict=True))
    finite = [place for place, (_, epsilon) in enumerate(points) if epsilon < math.inf]
    first, last = max(0, finite[0] - 1), min(len(points) - 1, finite[-1] + 1)
    index, steps = curve.values.index(curve.declared), max(1, min(last - first, _MAX_ROWS - 1))
    shown = sorted({index, *(first + step * (last - first) // steps for step in range(steps + 1))})
    most = (
        min(max(points[place][1] for place in finite), _MAX_TARGETS_SHOWN * max(question.epsilon, points[index][1]))
        or 1.0
    )
    screen.head(f"ε at δ = {exactly(question.delta)} against {curve.words}")
    rows = [
        (_value(curve.field, x), screen.bar(min(1.0, y / most)), amount(y), "the plan" if x == curve.declared else "")
        for x, y in (points[place] for place in shown)
    ]
    screen.table((curve.field, "", "ε", ""), rows, right=(curve.field, "ε"))


def _value(field: str, value: float) -> str:
    return percent(value) if field.startswith("p_") else f"{value:.0f}"


def _numbers(question: Question, choice: Choice) -> tuple[str, ...]:
    outcome, off = choice.outcome, choice.outcome.mean_absolute_error
    error = "-" if off is None else "none" if choice.mechanism.noise is None else estimate(off)
    shares = (outcome.suppressed_cells, outcome.suppressed_people)[: 2 if question.kind == "histogram" else 1]
    epsilon, delta = choice.together.epsilon(question.delta), choice.together.delta(question.epsilon)
    return amount(epsilon), rounded_up(delta), error, *map(_share, shares)


def _share(share: float | None) -> str:
    """Return an expected share in percent; an estimate, and no claim."""
    if not share:
        return "?" if share is None else "none"
    if share < 1e-4:
        return "< 0.01 %"
    return "> 99.9 %" if 0.999 < share < 1.0 else f"{100.0 * share:.3g} %"


def _briefly(choice: Choice) -> str:
    """Return against whom a choice holds, as it fits a column."""
    if not choice.against_anyone:
        return "declared attacker"
    return "given what is known" if choice.given else choice.whom


def _remarks(plan: Plan, wide: bool) -> Iterator[str]:
    numbered = [(place, choice) for place, choice in enumerate(plan.choices, start=1)]
    anyone = [place for place, choice in numbered if choice.against_anyone]
    if anyone and not wide:
        rest = ", the others against the declared attacker" if len(anyone) < len(numbered) else ""
        whom = plan.choices[anyone[0] - 1].whom
        yield f"{_places(anyone)} hold{'s' if len(anyone) == 1 else ''} against {whom}{rest}."
    bare = [
        place
        for place, choice in numbered
        if choice.mechanism.release_threshold is None and (choice.mechanism.k is None or noised_below(choice.mechanism))
    ]
    if bare and plan.question.kind == "histogram":
        yield f"{_places(bare)}: every cell has to be declared in advance, and is published, empty ones too."
    for place, option in numbered:
        if (least := option.mechanism.release_threshold) is not None:
            cell = f"a cell below {option.mechanism.k}" if noised_below(option.mechanism) else "a cell"
            rule = f"{cell} is published when its noisy count is at least {least}"
            yield f"Choice {place}: names of cells may come from the data; {rule}."
    yield from _noised_below(plan)
    if (most := plan.question.cells_per_unit) > 1:
        yield f"A person may be in {most} cells: with noise {most} of hers are counted, without nobody may be in more."
    if plan.without_noise is not None:
        yield f"Without noise: {plan.without_noise}"


def _noised_below(plan: Plan) -> Iterator[str]:
    """Yield what it costs that smaller counts have noise instead of being hidden."""
    places = {choice.way: place for place, choice in enumerate(plan.choices, start=1)}
    if "noise_below_k" in places:
        noised, hidden = (plan.choices[places[way] - 1].mechanism for way in ("noise_below_k", "k"))
        costs = "it costs nothing" if noised.k == hidden.k else f"it costs a k of {noised.k} instead of {hidden.k}"
        yield (
            f"Choice {places['noise_below_k']} is choice {places['k']} with noise on smaller counts, which are marked, "
            f"instead of nothing: {costs}. Published once; over several releases noise adds up."
        )
    if (instead := noised_instead(plan)) is not None:
        mechanism, epsilon = instead
        assert mechanism.noise is not None
        yield (
            f"Choice {places['k']} with noise of ε = {exactly(mechanism.noise.epsilon)} on smaller counts, instead of "
            f"hiding them: all {plan.question.days} releases together have ε = {amount(epsilon)} instead of "
            f"{amount(plan.choices[places['k'] - 1].together.epsilon(plan.question.delta))}. A hidden cell costs "
            "nothing, and a noised one what noise costs."
        )


def _places(places: Sequence[int]) -> str:
    return f"Choice{'s' if len(places) > 1 else ''} {' and '.join(map(str, places))}"


def _choice(question: Question, choice: Choice) -> dict[str, object]:
    together, alone = (
        {
            "epsilon_at_delta": _finite(certificate.epsilon(question.delta)),
            "delta_at_epsilon": certificate.delta(question.epsilon),
        }
        for certificate in (choice.together, choice.certificate)
    )
    return {
        "way": choice.way,
        "mechanism": mechanism_to_dict(choice.mechanism),
        "against_anyone": choice.against_anyone,
        **together,
        "of_one_release": alone,
        **asdict(choice.outcome),
        "job": offer_of(question, choice).job(),
    }


def _finite(value: object) -> object:
    return None if value == math.inf else value


def levels_document(codes: Path, epsilon: float, delta: float) -> dict[str, Any]:
    """Return the levels of a code list, with noise of `epsilon` in all on the finest alone, or shared by all of them.

    Raises `ArgumentError` if the file is no hierarchy, or has one level only; `ConfigError` if it cannot be read.
    """
    hierarchy = view("tables.hierarchy").from_csv(codes)
    if hierarchy.levels == 1:
        raise ArgumentError("the code list has one level only: give each code its parent.")
    whole = Histogram(noise=GeometricNoise(positive_real("--noise", epsilon)))
    shared = Histogram(noise=GeometricNoise(epsilon / hierarchy.levels))
    each, of_level = (expected_error(mechanism).standard_deviation for mechanism in (whole, shared))
    below = Counter(node for leaf in hierarchy.leaves for node in (leaf, *hierarchy.ancestors(leaf)))
    promises = [certify(whole, AttackerModel())] * hierarchy.levels
    levels = []
    for level in range(hierarchy.levels):
        largest = max(below[code] for code in hierarchy.at(level))
        levels.append(
            {
                "level": level,
                "cells": len(hierarchy.at(level)),
                "codes_below": largest,
                "error_derived": each * math.sqrt(largest),
                "error_published": of_level,
            }
        )
    return {
        "schema": "pkdp-plan-levels/1",
        "library": {"name": "pkdp_pipeline", "version": VERSION},
        "levels": levels,
        "epsilon": promises[0].worst_case.epsilon(delta),
        "epsilon_each_level": compose(promises, None).worst_case.epsilon(delta),
        "delta": delta,
    }


def print_levels(screen: Screen, document: Mapping[str, Any]) -> None:
    """Print the levels, and what may be published of them."""
    number, epsilon = len(document["levels"]), rounded_up(document["epsilon"])
    screen.head("Levels")
    screen.table(
        ("level", "cells", "codes below", "error, derived", "error, published"),
        [
            (
                *(str(level[name]) for name in ("level", "cells", "codes_below")),
                *(rounded_up(level[name]) for name in ("error_derived", "error_published")),
            )
            for level in document["levels"]
        ],
    )
    screen.say(
        "codes below: of a cell, without children, at most; error: the standard deviation of the noise of a number."
    )
    for title, words in (
        (
            "Derived",
            "One table of the finest level, with noise or k; release.along sums it. Sums follow from what is public, "
            f"so that all levels together have the promise of that release: with this noise ε = {epsilon}. Where a k "
            "hides cells, the sums above them are intervals.",
        ),
        (
            "Published at each level",
            f"A person is in a cell of each of {number} tables, so that their ε add up: with ε = {epsilon} each to "
            f"{rounded_up(document['epsilon_each_level'])}. The last column has ε / {number} for each, which is "
            f"{epsilon} in all: better for a level where it is below the column before.",
        ),
        (
            "Without noise",
            "A second level about the same people is refused: what one table tells of others takes away what hides a "
            "person in the next. Exact totals of a coarser level can stand beside the finest where everybody knows "
            "them anyway: margins of a job's table. Hidden is then in which cell of her group a person is, not the "
            "group.",
        ),
    ):
        screen.head(title)
        screen.say(words)
