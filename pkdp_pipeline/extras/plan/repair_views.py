"""The output of ``pkdp plan job``: what a job would do and promise, and the smallest change where it is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.certificates.target import Target
from pkdp_pipeline.cli.job_views import print_plan, total_words
from pkdp_pipeline.cli.screen import Screen, epsilon_of, plan_document
from pkdp_pipeline.jobs.dry_run import DELTA
from pkdp_pipeline.ledger.words import amount, number_of
from pkdp_pipeline.model.spelling import exactly
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.releases.derived import expected_error

if TYPE_CHECKING:
    from pkdp_pipeline.extras.plan.edits import Change
    from pkdp_pipeline.extras.plan.repair import Repairs

_TRIED = "The change was written into the file's text, read as strictly as any job, and run dry for each date."
_ORDER = (
    "It changes the fewest keys of all that were tried and, of several, its numbers go least far. No number nearer to "
    "what the file says will do; an ε has three digits. Assumptions are not changed: they have to be argued."
)


def print_repairs(repairs: Repairs) -> None:
    """Print what a job would do and promise and, where it is refused, the smallest change."""
    screen = Screen()
    if repairs.plan is None:
        screen.title(f"{Path(repairs.job.file).name}: nothing is read, charged or written")
        screen.head(f"It is refused on every {repairs.job.period.every}")
        screen.say(str(repairs.error))
    else:
        print_plan(repairs.job, repairs.plan)
        allowed = [planned_day for planned_day in repairs.plan.days if planned_day.refused is None]
        for place, release in enumerate(allowed[0].releases if allowed else ()):
            if place == 0:
                screen.head("Promises")
            screen.say(f"{release.name}: {release.certificate.sentence(DELTA)}")
    if repairs.error is None and not repairs.short:
        screen.head("Nothing has to change")
        aim = "" if repairs.target is None else f" and reaches {_aim(repairs.target)}"
        screen.say(f"The job is certifiable as it is, on {_days(repairs, repairs.days)}{aim}.")
        if why := repairs.job.period.not_open(repairs.days[-1]):  # it is planned ahead, and not run
            screen.head("But not now")
            screen.say(f"pkdp run publishes nothing of {_days(repairs, repairs.days[-1:])}: {why}")
        return
    if repairs.short and repairs.target is not None:
        screen.head("It is not refused, but promises less than you ask for")
        screen.say(f"The releases of a {repairs.job.period.every} are to reach {_aim(repairs.target)}, each its share.")
    _print_change(screen, repairs, repairs.change)


def repairs_document(repairs: Repairs) -> dict[str, Any]:
    """Return the same as a JSON-ready dictionary; `pkdp_pipeline/schemas/plan_job.v1.json` describes it."""
    target = repairs.target
    return plan_document(repairs.job, repairs.days, repairs.plan, repairs.error) | {
        "short": repairs.short,
        "target": target and {"epsilon": target.epsilon, "delta": target.delta},
        "tried_days": len(repairs.tried_days),
        "offers": [] if repairs.change is None else [_offer(repairs.change)],
    }


def _print_change(screen: Screen, repairs: Repairs, change: Change | None) -> None:
    screen.head("The smallest change" if change else "No change was found")
    if change is None:
        screen.say(
            "No k up to 1,000,000, no noise down to ε = 0.0001 and no release threshold makes this job certifiable as "
            "it is declared, on every date that was asked about."
        )
        return
    keys = "one key changes" if change.keys == 1 else f"{change.keys} keys change"
    screen.say(f"{change.words} ({keys}):")
    screen.pasted(f"\n{change.diff}\n")
    screen.say(" ".join(_trial_sentences(repairs, change)))
    screen.head("About this change")
    every = repairs.job.period.every
    reached = (
        "" if repairs.target is None else f"The changed releases of a {every} together reach {_aim(repairs.target)}. "
    )
    screen.say(f"{_TRIED} {reached}{_ORDER}")


def _trial_sentences(repairs: Repairs, change: Change) -> Iterator[str]:
    """Yield what the trial of a change has shown, and what the change costs."""
    days = number_of(len(repairs.tried_days), repairs.job.period.every)
    yield f"Tried on {days}: nothing is refused, and what is published {_total(change)}."
    for release in change.job.release:
        mechanism = release.mechanism
        if release not in repairs.job.release and mechanism.noise is not None:
            off = rounded_up(expected_error(mechanism).mean_absolute)
            yield f"A number of {release.name!r} is off by {off} on average."


def _aim(target: Target) -> str:
    return f"ε = {exactly(target.epsilon or 0.0)} at δ = {exactly(target.delta)}"


def _days(repairs: Repairs, days: Sequence[date]) -> str:
    every = repairs.job.period.every
    return f"that {every}" if len(days) == 1 else f"these {number_of(len(days), every)}"


def _total(change: Change) -> str:
    epsilon, at_delta = epsilon_of(change.plan), f"δ = {exactly(DELTA)}"
    if epsilon is not None:
        return f"adds up to ε = {amount(epsilon)} at {at_delta}"
    return f"has no ε at {at_delta}: {total_words(change.plan.period)}"


def _offer(change: Change) -> dict[str, Any]:
    return {
        "kind": "change",
        "words": change.words,
        "claim": None,
        "keys": change.keys,
        "edits": [
            {"path": list(edit.path), "value": json.loads(json.dumps(edit.value, default=str))} for edit in change.edits
        ],
        "fragment": change.diff,
        "last_day": None,
        "total": epsilon_of(change.plan),
    }
