"""Repair: the smallest change with which a refused job is certifiable, tried before it is offered."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pkdp_pipeline.certificates.target import Target
from pkdp_pipeline.errors import REFUSED, PkdpError, exit_code
from pkdp_pipeline.extras.plan.changes import changes
from pkdp_pipeline.extras.plan.edits import Change, EditSearch
from pkdp_pipeline.jobs.dry_run import Plan, plan_job
from pkdp_pipeline.jobs.job import Job, load_job


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
