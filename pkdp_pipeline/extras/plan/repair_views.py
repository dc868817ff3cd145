"""The output of ``pkdp plan job``: what a job would do and promise, and the changes where it is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.certificates.target import Target
from pkdp_pipeline.cli.documents import epsilon_of, plan_document
from pkdp_pipeline.cli.job_views import print_plan, total_words
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.jobs.dry_run import DELTA
from pkdp_pipeline.ledger.words import amount, number_of
from pkdp_pipeline.model.spelling import exactly
from pkdp_pipeline.model.wording import listed, rounded_up
from pkdp_pipeline.releases.derived import expected_error

if TYPE_CHECKING:
    from pkdp_pipeline.extras.plan.edits import Offer
    from pkdp_pipeline.extras.plan.repair import Repairs

_OTHERS = (
    ("less", "Or publish less", ""),
    (
        "question",
        "Or argue one of these, if it is true",
        "Nobody but you can say whether these are true, and no data can. Each was tried as if it were; what is not "
        "argued is not to be written.",
    ),
)
_TRIED = "Every change was written into the file's text, read as strictly as any job, and run dry for each date."
_ORDER = (
    "The smallest is the one that changes the fewest keys; of several, the one whose numbers go least far. No number "
    "nearer to what the file says will do; an ε has three digits."
)


def print_repairs(repairs: Repairs) -> None:
    """Print what a job would do and promise and, where it is refused, the changes that were tried."""
    from pkdp_pipeline.extras.plan.changes import CLAIMS

    screen = Screen()
    if repairs.plan is None:
        screen.title(f"{Path(repairs.job.file).name}: nothing is read, charged or written")
        screen.head(f"It is refused on every {repairs.job.period.every}")
        screen.say(str(repairs.error).partition("\n\n")[0])
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
        try:
            repairs.job.period.check_open(repairs.days[-1])
        except ArgumentError as error:  # which is planned ahead, and not run
            screen.head("But not now")
            of = _days(repairs, repairs.days[-1:])
            screen.say(f"pkdp run publishes nothing of {of}: {str(error).partition(': ')[2]}")
        return
    if repairs.short and repairs.target is not None:
        screen.head("It is not refused, but promises less than you ask for")
        screen.say(f"The releases of a {repairs.job.period.every} are to reach {_aim(repairs.target)}, each its share.")
    _print_changes(screen, repairs, [offer for offer in repairs.offers if offer.kind == "change"])
    for kind, title, note in _OTHERS:
        offers = [offer for offer in repairs.offers if offer.kind == kind]
        if offers:
            screen.head(title)
        if offers and note:
            screen.say(note)
        for offer in offers:
            screen.item(f"{offer.words}. {offer.claim}" if offer.claim else _less(repairs, offer))
    claimed = {edit.value["kind"] for offer in repairs.offers for edit in offer.edits if edit.path == ("evidence",)}
    short = [claim.key for claim in CLAIMS if claim.key not in claimed]
    if claimed and short:
        screen.say(
            f"{listed(short)} {'is' if len(short) == 1 else 'are'} not enough here: even if true, what is published "
            "would add up to more than is allowed."
        )


def repairs_document(repairs: Repairs) -> dict[str, Any]:
    """Return the same as a JSON-ready dictionary; `pkdp_pipeline/schemas/plan_job.v1.json` describes it."""
    target = repairs.target
    return plan_document(repairs.job, repairs.days, repairs.plan, repairs.error) | {
        "short": repairs.short,
        "target": target and {"epsilon": target.epsilon, "delta": target.delta},
        "tried_days": len(repairs.tried_days),
        "offers": [_offer(offer) for offer in repairs.offers],
    }


def _print_changes(screen: Screen, repairs: Repairs, offers: list[Offer]) -> None:
    screen.head("The smallest change" if offers else "No change was found")
    if not offers:
        screen.say(
            "No k up to 1,000,000, no noise down to ε = 0.0001, no release threshold and no cross-tabulation makes "
            "this job certifiable as it is declared, on every date that was asked about."
        )
        return
    for number, offer in enumerate(offers):
        if number == 1:
            screen.head("Other changes, in order")
        keys = "one key changes" if offer.keys == 1 else f"{offer.keys} keys change"
        screen.say(f"{offer.words} ({keys}):")
        screen.pasted(f"\n{offer.diff}\n")
        screen.say(" ".join(_trial_sentences(repairs, offer)))
        if number + 1 < len(offers) and number:
            screen.lines([""])
    screen.head("About these changes")
    every = repairs.job.period.every
    reached = (
        "" if repairs.target is None else f"The changed releases of a {every} together reach {_aim(repairs.target)}. "
    )
    screen.say(f"{_TRIED} {reached}{_ORDER}")


def _trial_sentences(repairs: Repairs, offer: Offer) -> Iterator[str]:
    """Yield what the trial of a change has shown, and what the change costs."""
    days = number_of(len(repairs.tried_days), repairs.job.period.every)
    yield f"Tried on {days}: nothing is refused, and what is published {_total(offer)}."
    for release in () if offer.job is None else offer.job.release:
        mechanism = release.mechanism
        if release not in repairs.job.release and mechanism.noise is not None:
            off = rounded_up(expected_error(mechanism).mean_absolute)
            yield f"A number of {release.name!r} is off by {off} on average."


def _aim(target: Target) -> str:
    return f"ε = {exactly(target.epsilon or 0.0)} at δ = {exactly(target.delta)}"


def _less(repairs: Repairs, offer: Offer) -> str:
    if offer.last_day is not None:
        return f"{offer.words}: that {repairs.job.period.every} is the last that is not refused."
    return f"{offer.words}: what is left {_total(offer)} on {_days(repairs, repairs.tried_days)}."


def _days(repairs: Repairs, days: Sequence[date]) -> str:
    every = repairs.job.period.every
    return f"that {every}" if len(days) == 1 else f"these {number_of(len(days), every)}"


def _total(offer: Offer) -> str:
    epsilon, at_delta = epsilon_of(offer.plan), f"δ = {exactly(DELTA)}"
    if epsilon is not None:
        return f"adds up to ε = {amount(epsilon)} at {at_delta}"
    return f"has no ε at {at_delta}: {total_words(None if offer.plan is None else offer.plan.period)}"


def _offer(offer: Offer) -> dict[str, Any]:
    return {
        "kind": offer.kind,
        "words": offer.words,
        "claim": offer.claim or None,
        "keys": offer.keys,
        "edits": [
            {"path": list(edit.path), "value": json.loads(json.dumps(edit.value, default=str))} for edit in offer.edits
        ],
        "fragment": offer.diff or None,
        "last_day": offer.last_day and offer.last_day.isoformat(),
        "total": epsilon_of(offer.plan),
    }
