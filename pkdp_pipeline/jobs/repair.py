"""Repair: the smallest changes with which a refused job is certifiable, each tried before it is offered."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

from pkdp_pipeline.certificates.target import Target
from pkdp_pipeline.errors import REFUSED, ArgumentError, ConfigError, DifferencingError, PkdpError, exit_code
from pkdp_pipeline.jobs.dry_run import Plan, PlannedDay, PlannedRelease, check_together, plan_day, plan_job
from pkdp_pipeline.jobs.edits import Edit, Edits, at, diff, distance, edited, keys_changed, words_of
from pkdp_pipeline.jobs.job import Job, job_text, load_job, read_job
from pkdp_pipeline.ledger.admission import covers_periods
from pkdp_pipeline.ledger.reading import copied
from pkdp_pipeline.theorems.bound import least_whole

Kind = Literal["change", "less", "question"]
"""What is published otherwise; what is not published; what has to be argued first, and is nobody's to assume."""

_KINDS = ("change", "less", "question")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One change with which a refused job is not refused.

    Parameters
    ----------
    kind : {"change", "less", "question"}
    words : str
        What changes.
    claim : str
        Of a question: what has to be true, and has to be argued.
    edits : tuple of Edit
        Empty where nothing changes but the days.
    keys : int
        How many keys of the file get another value, come or go.
    factor : float
        How far the numbers go that change, as the sum of ``|ln(new / old)|``; infinite where a key comes or goes.
    text : str
        The whole file with the change in it.
    diff : str
        The changed lines, after ``-`` and ``+``; of a question empty: what is not argued is not to be pasted.
    job : Job or None
        The changed job.
    plan : Plan or None
        What it would do.
    last_day : datetime.date or None
        The last day that can be published as the job is, where that is the offer.
    """

    kind: Kind
    words: str
    claim: str = ""
    edits: Edits = ()
    keys: int = 0
    factor: float = 0.0
    text: str = ""
    diff: str = ""
    job: Job | None = None
    plan: Plan | None = None
    last_day: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What a job would do on some days and, where it is refused, what can be done about it.

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
    target : Target or None
        What changed releases were held to besides the budgets.
    tried_days : tuple of datetime.date
        On which days changes were tried: those that are not published yet.
    offers : tuple of Offer
        The smallest first; empty where nothing is refused, or nothing was found.
    """

    job: Job
    days: tuple[date, ...]
    plan: Plan | None
    error: PkdpError | None = None
    short: bool = False
    target: Target | None = None
    tried_days: tuple[date, ...] = ()
    offers: tuple[Offer, ...] = ()

    @property
    def day(self) -> date | None:
        """The day that is refused; None where none is, or every one."""
        return None if self.plan is None or self.plan.refused is None else self.plan.refused.day


def repair(path: str | os.PathLike[str], days: Sequence[date], *, target: Target | None = None) -> Repairs:
    """Say what a job file would do and, where it is refused for privacy, which changes are the smallest.

    No data are read; the ledger, the file and the outputs stay as they are.

    Parameters
    ----------
    path : path-like
        The job file.
    days : sequence of datetime.date
        In the order in which they would be published.
    target : Target, optional
        What the releases of a day have to reach besides the budgets, each an equal share. Left out, those that are
        changed have to reach ε = 1 at δ = 1e-6 where there is no budget.

    Raises
    ------
    ConfigError
        If the file cannot be used.
    LedgerError, TemporaryError
        If the ledger cannot be read.

    Notes
    -----
    Every offer was tried: the change was written into the file's text, which was read as strictly as any, and run dry
    on all days that are not published yet. A change is the least of its kind: with a k one smaller, with noise one
    step less (three digits are offered) it is refused. Assumptions are never changes: they come last, as questions.
    """
    job, asked = load_job(path), tuple(days)
    plan, error = None, None
    try:
        plan = plan_job(job, asked)
        error = None if plan.refused is None else plan.refused.refused
    except PkdpError as refusal:
        error = refusal
    if error is not None and exit_code(error) != REFUSED:
        raise error
    if error is None and target is None:
        return Repairs(job=job, days=asked, plan=plan)
    search = Search(Path(path), asked, target)
    if error is None and plan is not None and all(search.reached((), job, day) for day in plan.days[:1]):
        return Repairs(job=job, days=asked, plan=plan, target=target)
    offers = _offers(search, plan, error) if search.days else ()  # what is published stays
    return Repairs(
        job=job,
        days=asked,
        plan=plan,
        error=error,
        short=error is None,
        target=search.target,
        tried_days=search.days,
        offers=_in_order(offers),
    )


def _offers(search: Search, plan: Plan | None, error: PkdpError | None) -> Iterator[Offer]:
    from pkdp_pipeline.jobs.changes import changes, fewer_releases, questions

    allowed = [] if plan is None else [one for one in plan.days if one.refused is None]
    # A release that is refused comes after those of the day that are not.
    position = None if plan is None or plan.refused is None else len(plan.refused.releases)
    yield from filter(None, (search.offer("change", edits) for edits in changes(search, position)))
    if error is not None and any(release.outcome == "publish" for one in allowed for release in one.releases):
        last = allowed[-1].day
        yield Offer(kind="less", words=f"the job as it is, up to {last.isoformat()}", last_day=last)
    yield from filter(None, (search.offer("less", edits) for edits in fewer_releases(search)))
    asked = questions(search, position, error)
    yield from filter(None, (search.offer("question", *question) for question in asked))


class Search:
    """Tries changes of one job file; it reads the ledger, and touches nothing.

    Parameters
    ----------
    file : pathlib.Path
    days : sequence of datetime.date
    target : Target, optional
        See `repair`.

    Attributes
    ----------
    content : dict
        What the file says.
    days : tuple of datetime.date
        Those of the asked days that are not published yet: what is published stays.
    """

    def __init__(self, file: Path, days: Sequence[date], target: Target | None = None) -> None:
        self.file, self.text = file, job_text(file)
        self.content, self.job = tomllib.loads(self.text), read_job(self.text, file)
        with self._copy(self.job) as ledger:
            self.budgets, self.evidence = ledger.terms.budgets, ledger.terms.evidence
            self._new = next(ledger.entries(), None) is None
            there = {
                day: [replace(one, ledger=ledger).published() is not None for one in self.job.publications(day)]
                for day in days
            }
        self.days = tuple(day for day in days if not all(there[day]))
        self._alike = bool(self.days) and not any(map(any, (there[day] for day in self.days)))
        self._all, self._one_day = target is not None, len(days) == 1
        self.target = target if target is not None or self.budgets else Target(1.0)
        self._tried: dict[str, tuple[Edits, str, Job, Plan] | None] = {}

    def least(self, make: Callable[[int], Edits], start: int, most: int) -> Edits | None:
        """Return the change for the smallest number from `start` to `most` that will do; None where none does.

        `make` returns the change for a number; the larger the number, the better it protects.
        """
        if start > most or not self.fits(make(most)):
            return None
        number = least_whole(lambda n: self.fits(make(n)), start, most)
        if number is not None and self._try(make(number)) is None:
            number = least_whole(lambda n: self._try(make(n)) is not None, number, most)
        return None if number is None else make(number)

    def fits(self, edits: Edits) -> bool:
        """Return whether a change would do: foreseen from the first two days where all are alike, else tried."""
        if not self._alike:
            return self._try(edits) is not None
        for made, _, job in self._read(edits):
            budgets = job.budgets() or self.budgets
            try:
                check_together(job)
            except (DifferencingError, ConfigError):
                continue
            with self._copy(job, budget=()) as ledger:
                before = ledger.totals().account
                first = plan_day(job, ledger, self.days[0])
                if first.refused is not None or not self.reached(made, job, first):
                    continue
                foreseen = ledger.totals().extrapolated(before, job.unit, len(self.days), budgets)
                # Another day may need evidence.
                if len(self.days) > 1 and plan_day(job, ledger, self.days[1]).refused is not None:
                    continue
            if foreseen is None:
                return self._try(edits) is not None
            if foreseen:
                return True
        return False

    def offer(self, kind: Kind, edits: Edits, words: str = "", claim: str = "") -> Offer | None:
        """Return a change as an offer; None where it is refused when it is tried."""
        tried = self._try(edits)
        if tried is None:
            return None
        made, text, job, plan = tried
        pairs = [(at(self.content, edit.path), edit.value) for edit in made]
        return Offer(
            kind=kind,
            words=words or words_of(self.content, made),
            claim=claim,
            edits=made,
            keys=sum(keys_changed(*pair) for pair in pairs),
            factor=sum(distance(*pair) for pair in pairs),
            text=text,
            diff="" if kind == "question" else diff(self.text, text),
            job=job,
            plan=plan,
        )

    def reached(self, edits: Edits, job: Job, day: PlannedDay) -> bool:
        """Return whether each release that is held to the target has its share of it."""
        if self.target is None:
            return True
        epsilon, share = self.target.epsilon or math.inf, 1 / max(sum(one.kind != "total" for one in job.release), 1)
        argued = any(edit.path[0] == "attacker" and edit.value is not None for edit in edits)
        # Without evidence days add up by their noise alone.
        apart = self._one_day and self._new
        covered = apart or covers_periods(job.declared() or self.evidence)

        def reaches(release: PlannedRelease) -> bool:
            noised = release.certificate.worst_case_bound is not None and not covered
            promised = release.certificate.worst_case if noised else release.certificate
            return bool(promised.delta(epsilon * share) <= self.target.delta * share)  # type: ignore[union-attr]

        return all(
            reaches(release)
            for asked, release in zip(job.release, day.releases, strict=True)
            if self._all or asked not in self.job.release or (argued and asked.attacker is None)
        )

    def _try(self, edits: Edits) -> tuple[Edits, str, Job, Plan] | None:
        """Return the changed job with what it would do; None where it would be refused, or is short of the target."""
        key = repr(edits)
        if key not in self._tried:
            self._tried[key] = next(self._found(edits), None)
        return self._tried[key]

    def _found(self, edits: Edits) -> Iterator[tuple[Edits, str, Job, Plan]]:
        for made, text, job in self._read(edits):
            try:
                plan = plan_job(job, self.days)
            except PkdpError as error:
                if exit_code(error) != REFUSED and not isinstance(error, ConfigError | ArgumentError):
                    raise
                continue
            if plan.refused is None and self.reached(made, job, plan.days[0]):
                yield made, text, job, plan

    def _read(self, edits: Edits) -> Iterator[tuple[Edits, str, Job]]:
        """Yield the changed job in each way in which it can be read."""
        for made in self._ways(edits) if edits else ():
            text = edited(self.text, made)
            with suppress(ConfigError, ArgumentError):
                yield made, text, read_job(text, self.file)

    def _ways(self, edits: Edits) -> Iterator[Edits]:
        """Yield the change, and the same without attackers that may say nothing any more beside noise."""
        yield edits
        noised = [edit.path[1] for edit in edits if edit.path[0] == "release" and "noise" in edit.path]
        gone = any(edit.path[0] == "release" and len(edit.path) == 2 for edit in edits)
        own = tuple(edit for number in noised for edit in self._only_leakage(("release", number, "attacker")))
        common = self._only_leakage(("attacker",)) if noised or gone else ()
        yield from (edits + way for way in dict.fromkeys((own, common, own + common)) if way)

    def _only_leakage(self, path: tuple[str | int, ...]) -> Edits:
        """Return what leaves an attacker with what is known besides, and removes one without."""
        attacker = at(self.content, path) or {}
        if "leakage" not in attacker:
            return (Edit(path, None),) if attacker else ()
        return tuple(Edit((*path, key), None) for key in attacker if key != "leakage")

    def _copy(self, job: Job, **budget: Any) -> Any:
        terms = {"budget": job.budgets() or None, **budget}
        return copied(job.ledger, dataset=job.dataset, evidence=job.declared() or None, **terms)


def _in_order(offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """Return the offers, the smallest first; without those that hold a smaller one."""
    found = list({(one.words, one.diff): one for one in offers}.values())
    places = [{edit.path for edit in one.edits} for one in found]
    rank = [_KINDS.index(one.kind) for one in found]
    kept = [
        number
        for number in range(len(found))
        if not any(
            places[other] and places[other] < places[number] and rank[other] <= rank[number]
            for other in range(len(found))
        )
    ]
    return tuple(found[number] for number in sorted(kept, key=lambda n: (rank[n], found[n].keys, found[n].factor)))
