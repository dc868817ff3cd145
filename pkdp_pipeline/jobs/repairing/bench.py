"""Bench: where a changed job is tried. It is read as strictly as any, and run dry against a copy of the ledger."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import REFUSED, ArgumentError, ConfigError, PkdpError, exit_code
from pkdp_pipeline.jobs.dry_run import Plan, plan_job
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.loading import job_text, read_job
from pkdp_pipeline.jobs.release_table import ReleaseTable
from pkdp_pipeline.jobs.repairing.edits import Edit, applied, at
from pkdp_pipeline.jobs.repairing.patching import patched
from pkdp_pipeline.jobs.requests import NamedRequest, check_together, requests_of
from pkdp_pipeline.jobs.toml_text import document
from pkdp_pipeline.ledger import Budget, Ledger
from pkdp_pipeline.ledger.copying import copied
from pkdp_pipeline.ledger.differencing import allows_overlap, covers_periods
from pkdp_pipeline.ledger.leap import Leap
from pkdp_pipeline.model.arguments import positive_real, probability
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.releases.publish import reserve
from pkdp_pipeline.theorems.inversion import least_whole

__all__ = ["Bench", "Edits", "Target", "Trial"]

Edits = tuple[Edit, ...]
Make = Callable[[int], Edits]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the releases of one day are to promise together.

    Parameters
    ----------
    epsilon : float, default 1.0
        Above 0.
    delta : float, default 1e-6
        Above 0, at most 1.

    Raises
    ------
    ArgumentError
        If a number is out of range.
    """

    epsilon: float = 1.0
    delta: float = 1e-6

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_real("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        if self.delta == 0.0:
            raise ArgumentError("delta must be above 0: a threshold always leaves some probability, ask for 1e-9.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A changed job that was tried and found good.

    Parameters
    ----------
    edits : tuple of Edit
    job : Job
    plan : Plan
    text : str or None
        The whole file with the change in it; None where it cannot be written without losing comments.
    """

    edits: Edits
    job: Job
    plan: Plan
    text: str | None


class Bench:
    """Tries changes of one job file; it reads the ledger, and touches nothing.

    Parameters
    ----------
    file : pathlib.Path
    days : sequence of datetime.date
        Those that are to be published.
    target : Target, optional
        What the releases have to reach besides the budgets, each its share. Left out, those that are changed have to
        reach ε = 1 at δ = 1e-6 where there is no budget.

    Attributes
    ----------
    days : tuple of datetime.date
        Those of the asked days that the job has not published before: what is published stays.
    """

    def __init__(self, file: Path, days: Sequence[date], target: Target | None = None) -> None:
        self.file, self.text = file, job_text(file)
        self.content, self.job = tomllib.loads(self.text), read_job(self.text, file)
        with self._copy(self.job) as ledger:
            self.budgets = ledger.terms.budgets
            self.evidence = ledger.terms.evidence
            self._one_day = len(days) == 1 and next(ledger.entries(), None) is None
            held = tuple(day for day in days if _holds(ledger, self.job, day))
            gone = {day for day in held if all(_published(ledger, requests_of(self.job, day)))}
        self.days = tuple(day for day in days if day not in gone)
        self._begun = tuple(day for day in held if day not in gone)
        self.target = target if target is not None or self.budgets else Target()
        self._all_reach = target is not None
        self._tried: dict[str, Trial | None] = {}
        self._admitted: set[object] = set()

    def reaches_target(self) -> bool:
        """Return whether the job as it is reaches the target."""
        return self._reaches_target((), self.job)

    def least(self, make: Make, start: int, most: int, *, final: bool = True) -> Edits | None:
        """Return the change for the smallest number from `start` to `most` that is good; None where none is.

        `make` returns the change for a number; the larger the number, the better the protection. What is not `final`
        is looked at further, and need not be tried.
        """
        if start > most or not self.fits(make(most)):
            return None
        number = least_whole(lambda n: self.fits(make(n)), start, most)
        if final and number is not None and self.tried(make(number)) is None:
            # What was foreseen did not come true: every number is run through from here on.
            number = least_whole(lambda n: self.tried(make(n)) is not None, number, most)
        return None if number is None else make(number)

    def fits(self, edits: Edits) -> bool:
        """Return whether a change seems good: foreseen from the first two days where days are alike, else tried."""
        found = self._read(edits)
        if found is None or not self._reaches_target(*found):
            return False
        foreseen = self._foreseen(found[1])
        return self.tried(edits) is not None if foreseen is None else foreseen

    def tried(self, edits: Edits) -> Trial | None:
        """Return the changed job with what it would do on all days; None where it would be refused on one."""
        key = document(applied(self.content, edits))
        if key not in self._tried:
            self._tried[key] = self._try(edits)
        return self._tried[key]

    def _try(self, edits: Edits) -> Trial | None:
        found = self._read(edits)
        if found is None or not self._reaches_target(*found):
            return None
        changes, job = found
        text = patched(self.text, changes)
        try:
            job = job if text is None else read_job(text, self.file)
            plan = plan_job(job, self.days)
        except PkdpError as error:
            if exit_code(error) == REFUSED or isinstance(error, ConfigError | ArgumentError):
                return None
            raise
        return None if plan.refused is not None else Trial(edits=changes, job=job, plan=plan, text=text)

    def _read(self, edits: Edits) -> tuple[Edits, Job] | None:
        """Return the changed job; without attackers that would say nothing in it, where only these are in the way."""
        for more in self._attackers_gone(edits):
            content = applied(self.content, (*edits, *more))
            try:
                return (*edits, *more), read_job(document(content), self.file)
            except (ConfigError, ArgumentError):
                continue
        return None

    def _attackers_gone(self, edits: Edits) -> list[Edits]:
        """Return which attackers may be removed, up to what is known besides: an assumption less, never one more."""
        noised = {edit.path[1] for edit in edits if edit.path[:1] == ("release",) and "noise" in edit.path}
        ways: list[Edits] = [()]
        common = _only_leakage(self.content, ("attacker",))
        if common and any(edit.path[0] == "release" and len(edit.path) == 2 for edit in edits):
            ways.append(common)  # it may be that of a release that is left out
        if noised:
            own = tuple(
                edit
                for number in range(len(self.content["release"]))
                if number in noised
                for edit in _only_leakage(self.content, ("release", number, "attacker"))
            )
            ways += [way for way in (own, common, (*own, *common)) if way]
        return ways

    def _reaches_target(self, edits: Edits, job: Job) -> bool:
        """Return whether each release that is held to the target has its share of it."""
        if self.target is None:
            return True
        share = 1 / max(len([release for release in job.release if release.kind != "total"]), 1)
        return all(
            self._reaches(job, release, share)
            for release in job.release
            if self._all_reach or self._is_changed(edits, release)
        )

    def _reaches(self, job: Job, release: ReleaseTable, share: float) -> bool:
        assert self.target is not None
        attacker = job.attacker_of(release)
        try:
            certificate = certify(
                release.mechanism(),
                attacker if self._claims(job, release) else attacker.against_anyone(),
                protects=release.protects,
            )
        except PkdpError:
            return False
        return bool(certificate.delta(self.target.epsilon * share) <= self.target.delta * share)

    def _claims(self, job: Job, release: ReleaseTable) -> bool:
        """Return whether what a release promises beside the others may rest on the attacker model."""
        kind, evidence = release.kind, job.declared() or self.evidence
        if kind == "total":
            return False
        if not job.alone and not allows_overlap(evidence):
            return kind == "exact count"
        # Without evidence the days add up by their noise alone.
        return kind in ("exact count", "noiseless") or covers_periods(evidence) or self._one_day

    def _is_changed(self, edits: Edits, release: ReleaseTable) -> bool:
        for edit in edits:
            whole = edit.path == ("release",)
            common = edit.path[0] == "attacker" and edit.value is not None and release.attacker is None
            if whole or common:
                return True
            if edit.path[0] == "release" and len(edit.path) > 2:
                table = self.content["release"][edit.path[1]]
                if table["name"] == release.name:
                    return True
        return False

    def _foreseen(self, job: Job) -> bool | None:
        """Return whether all days would fit, from the first two; None where that cannot be told."""
        if any(budget.window_days is not None for budget in self.budgets):
            return None
        budgets = job.budgets() or self.budgets
        kinds = (job.declared(), tuple((one.name, one.kind) for one in job.release))
        try:
            for release in job.release:
                certify(release.mechanism(), self._attacker(job, release), protects=release.protects)
            if not budgets and kinds in self._admitted:
                return True  # what may stand together does not depend on numbers
            check_together(requests_of(job, self.days[0]), dataset=job.dataset, evidence=job.declared())
            with self._copy(job, held=False) as ledger:
                if any(published for day in self._begun for published in _published(ledger, requests_of(job, day))):
                    return None
                leap = Leap(ledger, job.unit)
                _charge(job, self.days[0], ledger)
                fits = leap.fits(len(self.days), budgets)
                if len(self.days) > 1:
                    _charge(job, self.days[1], ledger)  # another day may need evidence
            if fits:
                self._admitted.add(kinds)
            return fits
        except PkdpError as error:
            if exit_code(error) == REFUSED or isinstance(error, ConfigError | ArgumentError):
                return False
            raise

    def _attacker(self, job: Job, release: ReleaseTable) -> AttackerModel:
        """Return against whom a release is certified when it is published."""
        alone = job.alone or allows_overlap(job.declared() or self.evidence)
        attacker = job.attacker_of(release)
        return attacker if alone or release.kind == "exact count" else attacker.against_anyone()

    def _copy(self, job: Job, *, held: bool = True) -> AbstractContextManager[Ledger]:
        budget: tuple[Budget, ...] | None = (job.budgets() or None) if held else ()
        return copied(job.ledger, dataset=job.dataset, budget=budget, evidence=job.declared() or None)


def _only_leakage(content: Mapping[str, Any], path: tuple[str | int, ...]) -> Edits:
    """Return what leaves an attacker with what is known besides, and removes one without."""
    attacker = at(content, path)
    if not attacker:
        return ()
    if "leakage" not in attacker:
        return (Edit(path=path, value=None),)
    return tuple(Edit(path=(*path, key), value=None) for key in attacker if key != "leakage")


def _charge(job: Job, day: date, ledger: Ledger) -> None:
    for release, one in zip(job.release, requests_of(job, day), strict=True):
        reserve(one.request, attacker=job.attacker_of(release), ledger=ledger, alone=job.alone)


def _holds(ledger: Ledger, job: Job, day: date) -> bool:
    """Return whether the ledger holds anything published whose period may be, or hold, this day."""
    standing = requests_of(job, day)[0].request.standing()
    return bool(ledger._entries.beside(ledger.dataset, standing))


def _published(ledger: Ledger, named: Sequence[NamedRequest]) -> list[bool]:
    return [ledger.find(one.request.key(ledger.dataset)) is not None for one in named]
