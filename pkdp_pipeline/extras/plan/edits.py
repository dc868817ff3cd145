"""Edits: keys of a job file that get another value, made in its text, in words and as a diff; and their trial."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from pkdp_pipeline.certificates.release_certificate import Target
from pkdp_pipeline.errors import REFUSED, ArgumentError, ConfigError, DifferencingError, PkdpError, exit_code
from pkdp_pipeline.jobs.dry_run import Plan, PlannedDay, PlannedRelease, check_together, plan_day, plan_job
from pkdp_pipeline.jobs.job import Job, job_text, read_job
from pkdp_pipeline.jobs.tables import toml_item, toml_text
from pkdp_pipeline.ledger.admission import covers_periods
from pkdp_pipeline.ledger.reading import copied
from pkdp_pipeline.theorems.numerics import least_whole


@dataclass(frozen=True, slots=True)
class Edit:
    """One value of a job file, set or removed.

    Parameters
    ----------
    path : tuple of str and int
        ``("release", 0, "k")`` is k of the first release.
    value : object
        The new value there; None where the key is removed.
    """

    path: tuple[str | int, ...]
    value: Any


Edits = tuple[Edit, ...]

_OF_OLD = "the smallest with"
"""``pkdp init`` says this of the number that stands there; of another it would be false."""


def value_at(content: Any, path: tuple[str | int, ...]) -> Any:
    """Return what stands at a place; None where nothing does."""
    for step in path:
        try:
            content = content[step]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return a TOML text with the edits made in it; comments and layout stay, but for one about an old number.

    Raises `ConfigError` if it is laid out in a way that cannot be edited.
    """
    try:
        document = tomlkit.parse(text)
        for edit in edits:
            table, last = value_at(document, edit.path[:-1]), edit.path[-1]
            if edit.value is None:
                table.pop(last)
                continue
            body = table.value.body if isinstance(table, Table) and last not in table else []
            below = []
            while body and body[-1][0] is None:  # what stands below the last key may be about the next table
                below.append(body.pop())
            table[last] = toml_item(edit.value)
            comment = getattr(table.item(str(last)), "trivia", None) if isinstance(table, Table) else None
            if comment is not None and _OF_OLD in comment.comment:
                comment.comment = comment.comment_ws = ""
            body.extend(reversed(below))
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigError(f"the job file cannot be edited as it is laid out: {type(error).__name__}.") from error


def words_of(content: Mapping[str, Any], edits: Sequence[Edit]) -> str:
    """Return in words what edits do, the releases by their names."""

    def release(edit: Edit) -> int:
        return int(edit.path[1]) if edit.path[0] == "release" else -1

    sentences = []
    for number, group in groupby(sorted(edits, key=release), key=release):
        inside = "" if number < 0 else f" in release {value_at(content, ('release', number, 'name'))!r}"
        sentences.append(" and ".join(_said(content, edit) for edit in group) + inside)
    return "; ".join(sentences)


def _said(content: Mapping[str, Any], edit: Edit) -> str:
    key = ".".join(map(str, edit.path[2:] if edit.path[0] == "release" else edit.path))
    if edit.value is None:
        return "no [attacker]" if edit.path == ("attacker",) else f"no {key}"
    before, after = value_at(content, edit.path), toml_text(edit.value)
    return f"{key} = {after}" if before is None else f"{key} = {after} instead of {toml_text(before)}"


def diff(old: str, new: str) -> str:
    """Return the changed lines below the names of their tables; other lines can hold passwords."""
    before, after = old.splitlines(), new.splitlines()
    lines: list[str] = []
    shown = None
    for tag, start, end, first, last in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        above = [number for number in range(start) if before[number].lstrip().startswith("[")]
        if above and above[-1] != shown and not "".join(before[start:end]).lstrip().startswith("["):
            shown = above[-1]
            names = (line for line in before[shown:start] if line.split("=")[0].strip() == "name")
            lines += [*([""] if lines else []), *(f"  {line}" for line in (before[shown], *names))]
        changed = (("-", before[start:end]), ("+", after[first:last]))
        lines += [f"{mark} {line}" for mark, listed in changed for line in listed if line.strip()]
    return "\n".join(lines) + "\n"


def keys_changed(before: Any, after: Any) -> int:
    """Return how many keys differ; those of a table count one by one."""
    if isinstance(before, Mapping) or isinstance(after, Mapping):
        old, new = ({} if content is None else content for content in (before, after))
        return sum(keys_changed(old.get(key), new.get(key)) for key in {*old, *new})
    return int(before != after)


def distance(old: Any, new: Any) -> float:
    """Return how far a number goes, as ``|ln(new / old)|``; infinite where a key comes or goes."""
    numbers = all(isinstance(number, int | float) and number > 0 for number in (old, new))
    return abs(math.log(new / old)) if numbers else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change with which a refused job is not refused.

    Parameters
    ----------
    words : str
        The change, in words.
    edits : tuple of Edit
    keys : int
        How many keys of the file get another value, come or go.
    factor : float
        How far the numbers go that change, as the sum of ``|ln(new / old)|``; infinite where a key comes or goes.
    text : str
        The whole file with the change in it.
    diff : str
        The changed lines, after ``-`` and ``+``.
    job : Job
        The changed job.
    plan : Plan
        The plan of the changed job.
    """

    words: str
    edits: Edits
    keys: int
    factor: float
    text: str
    diff: str
    job: Job
    plan: Plan


class EditSearch:
    """Tries changes of one job file; it reads the ledger, and touches nothing.

    `target`: see `repair`.

    Attributes
    ----------
    content : dict
        The content of the file.
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
                day: [
                    replace(publication, ledger=ledger).published() is not None
                    for publication in self.job.publications(day)
                ]
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
        for _, _, job in self._read(edits):
            budgets = job.budgets() or self.budgets
            try:
                check_together(job)
            except (DifferencingError, ConfigError):
                continue
            with self._copy(job, budget=()) as ledger:
                before = ledger.totals().account
                first = plan_day(job, ledger, self.days[0], ahead=True)
                if first.refused is not None or not self.reached(job, first):
                    continue
                foreseen = ledger.totals().extrapolated(before, job.unit, len(self.days), budgets)
                # Another day may need evidence.
                if len(self.days) > 1 and plan_day(job, ledger, self.days[1], ahead=True).refused is not None:
                    continue
            if foreseen is None:
                return self._try(edits) is not None
            if foreseen:
                return True
        return False

    def tried(self, edits: Edits) -> Change | None:
        """Return a change as it was tried; None where it is refused."""
        trial = self._try(edits)
        if trial is None:
            return None
        variant, text, job, plan = trial
        pairs = [(value_at(self.content, edit.path), edit.value) for edit in variant]
        return Change(
            words=words_of(self.content, variant),
            edits=variant,
            keys=sum(keys_changed(*pair) for pair in pairs),
            factor=sum(distance(*pair) for pair in pairs),
            text=text,
            diff=diff(self.text, text),
            job=job,
            plan=plan,
        )

    def reached(self, job: Job, day: PlannedDay) -> bool:
        """Return whether each release that is held to the target has its share of it."""
        if self.target is None:
            return True
        epsilon, share = (
            self.target.epsilon or math.inf,
            1 / max(sum(job.kind(release) != "total" for release in job.release), 1),
        )
        # Without evidence days add up by their noise alone.
        apart = self._one_day and self._new
        covered = apart or covers_periods(job.declared() or self.evidence)

        def reaches(release: PlannedRelease) -> bool:
            noised = release.certificate.worst_case_bound is not None and not covered
            promised = release.certificate.worst_case if noised else release.certificate
            return bool(promised.delta(epsilon * share) <= self.target.delta * share)  # type: ignore[union-attr]

        return all(
            reaches(release)
            for declared, release in zip(job.release, day.releases, strict=True)
            if self._all or declared not in self.job.release
        )

    def _try(self, edits: Edits) -> tuple[Edits, str, Job, Plan] | None:
        """Return the changed job with what it would do; None where it would be refused, or is short of the target."""
        key = repr(edits)
        if key not in self._tried:
            self._tried[key] = next(self._plans(edits), None)
        return self._tried[key]

    def _plans(self, edits: Edits) -> Iterator[tuple[Edits, str, Job, Plan]]:
        for variant, text, job in self._read(edits):
            try:
                plan = plan_job(job, self.days, ahead=True)
            except PkdpError as error:
                if exit_code(error) != REFUSED and not isinstance(error, ConfigError | ArgumentError):
                    raise
                continue
            if plan.refused is None and self.reached(job, plan.days[0]):
                yield variant, text, job, plan

    def _read(self, edits: Edits) -> Iterator[tuple[Edits, str, Job]]:
        """Yield the changed job in each way in which it can be read."""
        for variant in self._ways(edits) if edits else ():
            text = edited(self.text, variant)
            with suppress(ConfigError, ArgumentError):
                yield variant, text, read_job(text, self.file)

    def _ways(self, edits: Edits) -> Iterator[Edits]:
        """Yield the change, and the same without attackers that may say nothing any more beside noise."""
        yield edits
        noised = [edit.path[1] for edit in edits if edit.path[0] == "release" and "noise" in edit.path]
        own = tuple(edit for number in noised for edit in self._only_leakage(("release", number, "attacker")))
        common = self._only_leakage(("attacker",)) if noised else ()
        yield from (edits + way for way in dict.fromkeys((own, common, own + common)) if way)

    def _only_leakage(self, path: tuple[str | int, ...]) -> Edits:
        """Return what leaves an attacker with what is known besides, and removes one without."""
        attacker = value_at(self.content, path) or {}
        if "leakage" not in attacker:
            return (Edit(path, None),) if attacker else ()
        return tuple(Edit((*path, key), None) for key in attacker if key != "leakage")

    def _copy(self, job: Job, **budget: Any) -> Any:
        terms = {"budget": job.budgets() or None, **budget}
        return copied(job.ledger, dataset=job.dataset, evidence=job.declared() or None, **terms)
