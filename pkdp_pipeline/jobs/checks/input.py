"""The input check of one day: every rule that is broken is told at once, before anything is charged."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pkdp_pipeline.errors import ArgumentError, InputCheckError
from pkdp_pipeline.jobs.checks.built_in import rules_of_columns, rules_of_counts, rules_of_rows
from pkdp_pipeline.jobs.checks.expectations import Expectation, read_expectations
from pkdp_pipeline.jobs.checks.great_expectations import judge
from pkdp_pipeline.jobs.checks.rules import Rule, broken
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.requests import NamedRequest, requests_of
from pkdp_pipeline.jobs.sources.needed import check_named
from pkdp_pipeline.jobs.sources.source import Source
from pkdp_pipeline.releases.publish import Counted, count_units

__all__ = ["CheckedDay", "check_input"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckedDay:
    """A day that looks as declared. It holds numbers from the data and is never shown.

    Parameters
    ----------
    rows : int
        How many rows it has.
    counted : mapping of str to Counted
        What each release, by name, has counted, so that `publish` need not count again.
    """

    rows: int
    counted: Mapping[str, Counted]


def check_input(
    source: Source,
    job: Job,
    day: date,
    named: Sequence[NamedRequest] | None = None,
    *,
    verdicts: list[tuple[str, bool]] | None = None,
) -> CheckedDay:
    """Check one day of the source before anything is charged.

    Parameters
    ----------
    source : Source
    job : Job
    day : datetime.date
    named : sequence of NamedRequest, optional
        The releases to be published; None for all of the job's.
    verdicts : list, optional
        Gets each rule that was looked at, and whether the day keeps it.

    Returns
    -------
    CheckedDay

    Raises
    ------
    InputCheckError
        Naming columns and rules, never a value or a number from the data.
    ArgumentError, ConfigError
        If the source cannot be read, or does not have what a release asks for.
    """
    expectations = read_expectations(job.checks)
    told = [] if verdicts is None else verdicts
    check_named(job, source.columns)
    columns = rules_of_columns(source, job, expectations)
    if not all(rule.kept for rule in columns):
        raise _failure(_broken(columns, told), day)
    number, rows = rules_of_rows(source, job, day)
    wanted = requests_of(job, day) if named is None else named
    counted, uncounted = {}, None
    try:
        counted = {one.name: _counted(source, job, day, one) for one in wanted}
    except ArgumentError as error:
        uncounted = error
    if uncounted is not None:
        # What cannot be counted may be what a rule is about, such as a column without values.
        problems = _broken([*columns, *rows], told)
        raise _failure(problems, day) if problems else uncounted
    problems = _broken([*columns, *rows, *rules_of_counts(counted)], told)
    problems += _unmet(source, job, day, expectations, told)
    if problems:
        raise _failure(problems, day)
    return CheckedDay(rows=number, counted=counted)


def _broken(rules: Sequence[Rule], told: list[tuple[str, bool]]) -> list[str]:
    problems = broken(rules)
    told += [(rule.text, rule.text not in problems) for rule in rules]
    return problems


def _counted(source: Source, job: Job, day: date, one: NamedRequest) -> Counted:
    try:
        return count_units(source.day(job.period, day), one.request)
    except ArgumentError as error:
        problem = str(error)
    raise ArgumentError(f"release {one.name!r}: {problem}")


def _unmet(
    source: Source, job: Job, day: date, expectations: Sequence[Expectation], told: list[tuple[str, bool]]
) -> list[str]:
    """Return the user's own rules that stop the job; tell the curator of the others."""
    if not expectations:
        return []
    # Rows alone can be counted by any column.
    columns = dict.fromkeys(column for one in expectations for column in one.columns) or [job.period.column]
    frame = source.pandas(job.period, day, list(columns))
    problems = []
    verdicts = judge(frame, [(one.type, one.arguments) for one in expectations])
    for one, verdict in zip(expectations, verdicts, strict=True):
        told.append((one.rule, verdict == "met"))
        if verdict == "met":
            continue
        rule = f"{one.rule} {'is not met' if verdict == 'not met' else 'does not fit what the columns hold'}"
        if one.stops:
            problems.append(rule)
        else:
            print(f"warning: the input check for {day.isoformat()}: {rule}; the job goes on.", file=sys.stderr)
    return problems


def _failure(rules: Sequence[str], day: date) -> InputCheckError:
    return InputCheckError(
        f"the input check for {day.isoformat()} failed, nothing was published or charged: {'; '.join(rules)}."
    )
