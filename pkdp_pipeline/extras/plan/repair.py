"""Repair: the smallest change by which a refused job is certifiable, tried before it is offered; and how it looks."""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pkdp_pipeline.certificates.release_certificate import Target
from pkdp_pipeline.cli.job_views import print_plan, total_words
from pkdp_pipeline.cli.screen import Screen, epsilon_of, plan_document
from pkdp_pipeline.errors import REFUSED, PkdpError, exit_code
from pkdp_pipeline.extras.plan.edits import Change, Edit, Edits, EditSearch
from pkdp_pipeline.jobs.dry_run import DELTA, Plan, plan_job
from pkdp_pipeline.jobs.job import Job, load_job
from pkdp_pipeline.ledger.history import amount, number_of
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.releases.derived import expected_error

EPSILONS = tuple(float(f"{digits}e{power - 2}") for power in range(-4, 4) for digits in range(100, 1000))
"""From 0.0001 to 9990, three digits each, so that people can read, argue and write them."""

_MAX_EPSILON_INDEX = bisect_right(EPSILONS, 10.0) - 1
"""No larger ε is tried where there is no noise: it would be no protection to speak of."""

_MAX_K = 1_000_000
_AMPLE_GAP = 800.0
"""In units of the noise's scale: a release threshold at which appearing tells nothing that a float can hold."""

Family = Callable[[EditSearch, tuple[int, ...]], Edits | None]


def changes(search: EditSearch, refused: int | None) -> Iterator[Edits]:
    """Yield changes of how the releases are published, each the least of its kind.

    `refused`: the position of the release that is refused; None where it is all of them together.
    """
    tables = search.content["release"]

    def numbers_of(suits: Callable[[Mapping[str, Any]], bool]) -> list[int]:
        return [number for number, table in enumerate(tables) if suits(table)]

    hiding = numbers_of(lambda table: _alone(table) is not None)
    without = numbers_of(
        lambda table: ("by" not in table or "domain" in table) and bool({"k", "k_complement"} & {*table})
    )
    families: tuple[tuple[Family, list[int], Sequence[int]], ...] = (
        (_larger("k"), fitting := numbers_of(lambda table: "noise" not in table or "k" in table), fitting),
        (_larger("k_complement"), fitting := numbers_of(lambda table: "k_complement" in table), fitting),
        (_higher_threshold, fitting := [number for number in hiding if "noise" in tables[number]], fitting),
        (_more_noise, fitting := numbers_of(lambda table: "noise" in table or "k" not in table), fitting),
        (_noise_and_threshold, hiding, range(len(tables))),  # noise for all of them, each in the way that suits it
        (_noise_without_k, without, without),
    )
    for family, fitting, together in families:
        candidates = [family(search, (number,)) for number in sorted(fitting, key=lambda number: number != refused)]
        if fitting and len(together) > 1 and not any(candidates):
            candidates.append(family(search, tuple(together)))
        yield from filter(None, candidates)


def _larger(key: str) -> Family:
    """Return the family of the smallest k, or k_complement, that releases can have in common."""

    def family(search: EditSearch, numbers: tuple[int, ...]) -> Edits | None:
        current = [int(search.content["release"][number].get(key, 0)) for number in numbers]

        def make(k: int) -> Edits:
            return tuple(
                Edit(("release", number, key), k) for number, old in zip(numbers, current, strict=True) if old < k
            )

        return search.least(make, min(current) + 1, _MAX_K)

    return family


def _higher_threshold(search: EditSearch, numbers: tuple[int, ...], more: Edits = ()) -> Edits | None:
    tables = [search.content["release"][number] for number in numbers]
    gaps = [_gap(table, numbers) for table in tables if _alone(table) is not None]
    return search.least(lambda gap: more + _thresholds(search, numbers, gap), min(gaps) + (not more), 100 * _MAX_K)


def _more_noise(search: EditSearch, numbers: tuple[int, ...]) -> Edits | None:
    """More noise, or some where there is none; thresholds stay as they are."""
    return _least_noise(search, numbers, lambda epsilon: _noises(search, numbers, epsilon))


def _noise_without_k(search: EditSearch, numbers: tuple[int, ...]) -> Edits | None:
    gone = tuple(Edit(("release", n, "k"), None) for n in numbers if "k" in search.content["release"][n])
    return _least_noise(search, numbers, lambda epsilon: gone + _noises(search, numbers, epsilon))


def _noise_and_threshold(search: EditSearch, numbers: tuple[int, ...]) -> Edits | None:
    """The largest ε there is with thresholds as high as one likes, and then the lowest thresholds for it.

    Small counts stay noised where they can: exact ones beside them have no worst case.
    """
    tables = search.content["release"]
    ample = _AMPLE_GAP * max(_size(tables[number]) // _step(tables[number], numbers) for number in numbers)
    below = tuple(Edit(("release", number, "below"), None) for number in numbers if "below" in tables[number])
    for gone in dict.fromkeys(((), below)):

        def with_ample_thresholds(epsilon: float, gone: Edits = gone) -> Edits:
            return gone + _noises(search, numbers, epsilon) + _thresholds(search, numbers, math.ceil(ample / epsilon))

        edits = _least_noise(search, numbers, with_ample_thresholds)
        if edits is not None:
            noised = tuple(edit for edit in edits if edit.path[2] != "release_threshold")
            return _higher_threshold(search, numbers, noised)
    return None


def _least_noise(search: EditSearch, numbers: tuple[int, ...], make: Callable[[float], Edits]) -> Edits | None:
    """Return the change for the largest ε of the grid, not above those that are written, that is good."""
    noises = [search.content["release"][number].get("noise") for number in numbers]
    top = bisect_left(EPSILONS, max(noise["epsilon"] for noise in noises)) if all(noises) else _MAX_EPSILON_INDEX
    top = min(top, len(EPSILONS) - 1)
    return search.least(lambda step: make(EPSILONS[top - step]), 0, top)


def _noises(search: EditSearch, numbers: tuple[int, ...], epsilon: float) -> Edits:
    edits: list[Edit] = []
    for number in numbers:
        table = search.content["release"][number]
        if "noise" not in table:
            edits.append(Edit(("release", number, "noise"), {"epsilon": epsilon}))
        elif table["noise"]["epsilon"] > epsilon:
            edits.append(Edit(("release", number, "noise", "epsilon"), epsilon))
        if "k_complement" in table:
            # It looks at the exact count, so that noise has no worst case beside it.
            edits.append(Edit(("release", number, "k_complement"), None))
    return tuple(edits)


def _thresholds(search: EditSearch, numbers: tuple[int, ...], gap: int) -> Edits:
    """Return release thresholds that are at least `gap` steps above what appears without noise."""
    tables = [(number, search.content["release"][number]) for number in numbers]
    return tuple(
        Edit(("release", number, "release_threshold"), alone + gap * _step(table, numbers))
        for number, table in tables
        if (alone := _alone(table)) is not None and _gap(table, numbers) < gap
    )


def _alone(table: Mapping[str, Any]) -> int | None:
    """Return what a number is that appears through one person alone: k, or 1, or the most that she adds to a sum.

    None where none does: the cells are declared, and there is no k.
    """
    from_data = "by" in table and "domain" not in table
    if "bounds" in table:
        return max(0, table["bounds"][1]) if from_data else None
    return int(table["k"]) if "k" in table else 1 if from_data else None


def _size(table: Mapping[str, Any]) -> int:
    """Return how much one person changes a number."""
    return int(max(map(abs, table.get("bounds", (1,)))))


def _step(table: Mapping[str, Any], numbers: Sequence[int]) -> int:
    """Return the step of a threshold: those of several releases go up by as much noise each."""
    return _size(table) if len(numbers) > 1 else 1


def _gap(table: Mapping[str, Any], numbers: Sequence[int]) -> int:
    """Return by how many steps a release threshold is above what appears; below every one where there is none."""
    over = int(table.get("release_threshold", 0)) - (_alone(table) or 0)
    return over // _step(table, numbers) if "release_threshold" in table else -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """A job's plan for some days and, where it is refused, the change that would help.

    Parameters
    ----------
    days : tuple of datetime.date
        Those that were asked about.
    plan : Plan or None
        The plan of the job as it is; None where its releases cannot stand together on any day.
    error : PkdpError or None
        Why it is refused; None where it is not.
    short : bool
        Whether it is not refused, but does not reach the target that was asked for.
    target : Target or None
        The target of changed releases besides the budgets.
    tried_days : tuple of datetime.date
        On which days changes were tried: those that are not published yet.
    change : Change or None
        The smallest; None where nothing is refused, or nothing was found.
    """

    job: Job
    days: tuple[date, ...]
    plan: Plan | None
    error: PkdpError | None = None
    short: bool = False
    target: Target | None = None
    tried_days: tuple[date, ...] = ()
    change: Change | None = None

    @property
    def day(self) -> date | None:
        """The day that is refused; None where none is, or every one."""
        return None if self.plan is None or self.plan.refused is None else self.plan.refused.day


def repair(path: str | os.PathLike[str], days: Sequence[date], *, target: Target | None = None) -> Repairs:
    """Say what a job file would do and, where it is refused for privacy, which change is the smallest.

    No data are read; the ledger, the file and the outputs stay as they are. Raises `ConfigError` if the file cannot be
    used, `LedgerError` or `TemporaryError` if the ledger cannot be read.

    Parameters
    ----------
    path : path-like
        The job file.
    days : sequence of datetime.date
        In the order in which they would be published.
    target : Target, optional
        The target of the releases of a day besides the budgets, each an equal share. Left out, those that are
        changed have to reach ε = 1 at δ = 1e-6 where there is no budget.

    Notes
    -----
    The change was tried: it was written into the file's text, which was read as strictly as any, and run dry on all
    days that are not published yet. It is the least of its kind: with a k one smaller, with noise one step less (three
    digits are offered) it is refused. Assumptions are never changes: they have to be argued.
    """
    job, given_days = load_job(path), tuple(days)
    plan, error = None, None
    try:
        plan = plan_job(job, given_days, ahead=True)
        error = None if plan.refused is None else plan.refused.refused
    except PkdpError as refusal:
        error = refusal
    if error is not None and exit_code(error) != REFUSED:
        raise error
    if error is None and target is None:
        return Repairs(job=job, days=given_days, plan=plan)
    search = EditSearch(Path(path), given_days, target)
    if error is None and plan is not None and all(search.reached(job, day) for day in plan.days[:1]):
        return Repairs(job=job, days=given_days, plan=plan, target=target)
    # A release that is refused comes after those of the day that are not.
    position = None if plan is None or plan.refused is None else len(plan.refused.releases)
    every_change = changes(search, position) if search.days else ()  # what is published stays
    tried = filter(None, map(search.tried, every_change))
    return Repairs(
        job=job,
        days=given_days,
        plan=plan,
        error=error,
        short=error is None,
        target=search.target,
        tried_days=search.days,
        change=min(tried, key=lambda change: (change.keys, change.factor), default=None),
    )


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
            "No change that was tried makes this job certifiable as it is declared, on every date that was asked "
            "about: k up to 1,000,000, noise down to ε = 0.0001, and release thresholds, alone and together."
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
