"""Mending: what a job would do on some days and, where it is refused, the smallest changes with which it is not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pkdp_pipeline.errors import REFUSED, PkdpError, exit_code
from pkdp_pipeline.jobs.dry_run import Plan, plan_job
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.loading import load_job
from pkdp_pipeline.jobs.repairing.bench import Bench, Target
from pkdp_pipeline.jobs.repairing.changes import changes, fewer_releases
from pkdp_pipeline.jobs.repairing.offers import Offer, in_order, offer_of, until
from pkdp_pipeline.jobs.repairing.questions import questions

__all__ = ["Mending", "Target", "mend"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """What a job would do, and how it can be mended.

    Parameters
    ----------
    job : Job
    days : tuple of datetime.date
        Those that were asked about.
    plan : Plan or None
        What it would do as it is; None where its releases cannot stand together on any day.
    error : PkdpError or None
        Why it is refused; None where it is not.
    short : bool
        Whether it is not refused, but does not reach the target that was asked for.
    day : datetime.date or None
        On which day; None where it is refused on every one.
    target : Target or None
        What changed releases were held to besides the budgets.
    tried_days : tuple of datetime.date
        On which days the changed jobs were tried: those that are not published yet.
    offers : tuple of Offer
        The smallest first; empty where nothing is refused, or nothing was found.
    """

    job: Job
    days: tuple[date, ...]
    plan: Plan | None
    error: PkdpError | None = None
    short: bool = False
    day: date | None = None
    target: Target | None = None
    tried_days: tuple[date, ...] = ()
    offers: tuple[Offer, ...] = ()


def mend(path: str | os.PathLike[str], days: Sequence[date], *, target: Target | None = None) -> Mending:
    """Say what a job file would do and, where it is refused for privacy, what is the smallest change.

    No data are read; the ledger, the file and the outputs stay as they are.

    Parameters
    ----------
    path : path-like
        The job file.
    days : sequence of datetime.date
        In the order in which they would be published.
    target : Target, optional
        What the releases of a day have to reach together, besides the budgets. Left out, those that are changed have
        to reach ε = 1 at δ = 1e-6 where there is no budget.

    Returns
    -------
    Mending

    Raises
    ------
    ConfigError
        If the file cannot be used.
    LedgerError, TemporaryError
        If the ledger cannot be read.

    Notes
    -----
    Every change was tried: the changed file was read as strictly as any, and run dry on all days that are not
    published yet. A change is the least of its kind: with a k one smaller, with noise one step less (three digits are
    offered) it is refused. Assumptions are never changes. They come last, as questions.
    """
    file, asked = Path(path), tuple(days)
    job = load_job(file)
    try:
        plan = plan_job(job, asked)
    except PkdpError as error:
        if exit_code(error) != REFUSED:
            raise
        return _mended(file, asked, target, job, None, error)
    refused = plan.refused
    if refused is None or refused.refused is None:
        if target is not None:
            return _mended(file, asked, target, job, plan, None)
        return Mending(job=job, days=asked, plan=plan)
    if exit_code(refused.refused) != REFUSED:
        raise refused.refused
    return _mended(file, asked, target, job, plan, refused.refused)


def _mended(
    file: Path, days: tuple[date, ...], target: Target | None, job: Job, plan: Plan | None, error: PkdpError | None
) -> Mending:
    bench = Bench(file, days, target)
    if error is None and bench.reaches_target():
        return Mending(job=job, days=days, plan=plan, target=target)
    refused = None if plan is None or plan.refused is None else plan.refused
    number = None if refused is None else len(refused.releases)
    return Mending(
        job=job,
        days=days,
        plan=plan,
        error=error,
        short=error is None,
        day=None if refused is None else refused.day,
        target=bench.target,
        tried_days=bench.days,
        offers=in_order(_offers(bench, plan, number, error)),
    )


def _offers(bench: Bench, plan: Plan | None, refused: int | None, error: PkdpError | None) -> Iterator[Offer]:
    for edits in changes(bench, refused):
        if (offer := offer_of(bench, "change", edits)) is not None:
            yield offer
    allowed = [] if plan is None else [one for one in plan.days if one.refused is None]
    if error is not None and any(release.outcome == "publish" for one in allowed for release in one.releases):
        yield until(allowed[-1].day)
    for edits in fewer_releases(bench):
        if (offer := offer_of(bench, "less", edits)) is not None:
            yield offer
    for words, claim, edits in questions(bench, refused, error):
        if (offer := offer_of(bench, "question", edits, words, claim)) is not None:
            yield offer
