"""Checks: whether a day looks as declared, before anything is charged, and a release as asked for.

A rule is a text, which names columns and what must hold, never what was found, and whether the day keeps it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError, InputCheckError
from pkdp_pipeline.jobs.expectations import Expectation, judge, read_expectations
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.release_tables import ReleaseTable
from pkdp_pipeline.jobs.sources.source import DAYS, HOLDS, Kind, Source
from pkdp_pipeline.model.attacker import beside_groups
from pkdp_pipeline.model.columns import Bins, grouping, is_ordered, with_groups
from pkdp_pipeline.model.display import least_shown
from pkdp_pipeline.model.keys import Domain
from pkdp_pipeline.model.mechanisms import noised_below, value_columns
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.publish import Counted, count_units
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.model.keys import Key

Rule = tuple[str, bool]
"""A rule, and whether the data keep it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckedDay:
    """A day that looks as declared. It holds numbers from the data and is never shown.

    `rows`: how many rows it has; None where others may have written to the source meanwhile. `counted`: the counts of
    each release, by name, so that `publish` need not count again.
    """

    rows: int | None
    counted: Mapping[str, Counted]


def check_input(
    source: Source,
    job: Job,
    day: date,
    questions: Sequence[Question] | None = None,
    *,
    verdicts: list[tuple[str, bool]] | None = None,
) -> CheckedDay:
    """Check one day of the source before anything is charged.

    `questions`: those of the releases to be published; None for all of the job's. `verdicts`: gets each rule that was
    looked at, and whether the day keeps it. Raises `InputCheckError`, naming columns and rules, never a value or a
    number from the data; `ArgumentError` or `ConfigError` if the source cannot be read, or does not have what a release
    asks for.
    """
    expectations = read_expectations(job.checks)
    kept = [] if verdicts is None else verdicts
    job.needs().check_named(source.columns)
    columns = _of_columns(source.columns, job, expectations)
    if problems := _broken(columns):
        kept += columns
        raise _failure(problems, job.period.text(day))
    number, without_unit = source.counts(job.period, day, job.unit)
    fresh = job.checks.fresh
    newest = None if fresh is None else source.newest(job.period, fresh.column)
    kept += [*columns, *_of_rows(job, day, number, without_unit, newest)]
    counted, uncounted = {}, None
    try:
        for question in _questions(job, day) if questions is None else questions:
            counted[str(question.label)] = _counted(source, job, day, question)
    except ArgumentError as error:
        uncounted = error
    if uncounted is not None:
        # What cannot be counted may be what a rule is about, such as a column without values.
        problems = _broken(kept)
        raise _failure(problems, job.period.text(day)) if problems else uncounted
    for position, answer in enumerate(counted.values()):
        if position == 0:
            kept += _of_units(answer.question, alike=answer.units.alike)
        kept += _of_cells(job, answer.question, answer)
    problems = _broken(kept) + _unmet(source, job, day, expectations, kept)
    if problems:
        raise _failure(problems, job.period.text(day))
    return CheckedDay(rows=number if source.is_one_state() else None, counted=counted)


def stated_rules(job: Job, day: date) -> list[str]:
    """Return the rules that stop a job where a day breaks them, in their order; no data are read for them."""
    expectations, questions = read_expectations(job.checks), _questions(job, day)
    days: dict[str, Kind] = {} if job.checks.fresh is None else {job.checks.fresh.column: "date"}
    rules = [*_of_columns(days, job, expectations), *_of_rows(job, day, 0, 0, None)]
    rules += _of_units(questions[0], alike=False)
    rules += [rule for question in questions for rule in _of_cells(job, question, None)]
    return [*(text for text, _ in rules), *(expectation.rule for expectation in expectations if expectation.stops)]


def _of_columns(kinds: Mapping[str, Kind], job: Job, expectations: Sequence[Expectation]) -> list[Rule]:
    """Return what must hold of the columns before any row is read."""
    checks, fresh = job.checks, job.checks.fresh
    named = [column for _, column in job.needs().declared] + list(checks.columns)
    named += [column for expectation in expectations for column in expectation.columns]
    named += [] if fresh is None else [fresh.column]
    rules = [(f"column {column!r} must exist", column in kinds) for column in dict.fromkeys(named)]
    for column, kind in checks.columns.items():
        fits = column not in kinds or kinds[column] == kind or (kind == "number" and kinds[column] == "real")
        rules.append((f"column {column!r} must hold {HOLDS[kind]}", fits))
    if fresh is not None and fresh.column in kinds:
        text = f"column {fresh.column!r} must hold dates or times to say how fresh the data are"
        rules.append((text, kinds[fresh.column] in DAYS))
    return rules


def _of_rows(job: Job, day: date, number: int, without_unit: int, newest: date | None) -> list[Rule]:
    """Return what must hold of the rows.

    No rule asks that there are any: a day that is published only where somebody was there would tell it.
    """
    rules, rows, fresh = [], job.checks.rows, job.checks.fresh
    if job.missing_unit == "error":
        text = f'unit {_listed(job.unit)} must be present in every row, or write missing_unit = "drop"'
        rules.append((text, without_unit == 0))
    if rows is not None:
        fits = (rows.min is None or number >= rows.min) and (rows.max is None or number <= rows.max)
        rules.append(("the number of rows must be in the range of [checks] rows", fits))
    if fresh is not None:
        days = f"{fresh.days} day{'' if fresh.days == 1 else 's'}"
        text = (
            f"the newest value of column {fresh.column!r} must be at least {days} after that date, for its rows to be "
            "complete"
        )
        rules.append((text, newest is not None and newest - job.period.span(day)[1] >= timedelta(days=fresh.days)))
    return rules


def _of_units(request: Question, *, alike: bool) -> list[Rule]:
    """Return what must hold of the names of the units."""
    text = (
        f"unit {_listed(request.unit)} must not have values that differ only by spaces around them; strip them, or "
        'write units = "exact" if they are different people'
    )
    return [(text, not alike)] if request.units == "checked" else []


def _of_cells(job: Job, request: Question, counted: Counted | None) -> list[Rule]:
    """Return what must hold of the cells that a release has counted."""
    rules, name, unit, by = [], request.label, _listed(request.unit), _listed(request.by)
    # A table and its totals count the same people, so that no rule chooses among their rows.
    counts_all = request.is_total or any(table.name == name and table.margins for table in job.release)
    if request.by and request.one_cell == "error":
        text = (
            f"release {name!r}: units {unit} must not have rows in several cells of {by}; one_cell says which one "
            'counts: "most_frequent", "first" (with order_by) or "hash"; cells_per_unit, how many count'
        )
        if (most := request.cells_per_unit) > 1:
            text = (
                f"release {name!r}: units {unit} must not have rows in more than {most} cells of {by}; write a larger "
                "cells_per_unit, or noise, with which a hash draws that many"
            )
        elif counts_all:
            text = (
                f"release {name!r}: units {unit} must not have rows in several cells of {by}; beside exact totals "
                "none of them is chosen: mend the rows in the source, or leave out the totals (margins)"
            )
        rules.append((text, counted is None or not counted.several_cells))
    if request.domain is not None and request.undeclared == "error":
        text = f"release {name!r}: {by} must not have values that domain does not list; add them" + (
            ", or mend the rows" if counts_all else ', or take such units as absent with undeclared = "absent"'
        )
        rules.append((text, counted is None or not counted.undeclared_cells))
    return rules


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(map(repr, columns))


def _broken(rules: Sequence[Rule]) -> list[str]:
    return [text for text, kept in rules if not kept]


def _questions(job: Job, day: date) -> list[Question]:
    return [publication.question for publication in job.publications(day)]


def _counted(source: Source, job: Job, day: date, question: Question) -> Counted:
    try:
        return count_units(source.day(job.period, day), question)
    except ArgumentError as error:
        problem = str(error)
    raise ArgumentError(f"release {question.label!r}: {problem}")


def _unmet(
    source: Source, job: Job, day: date, expectations: Sequence[Expectation], kept: list[tuple[str, bool]]
) -> list[str]:
    """Return the curator's own rules that stop the job; say which of the others are not met."""
    if not expectations:
        return []
    # Rows alone can be counted by any column.
    columns = dict.fromkeys(column for expectation in expectations for column in expectation.columns) or [
        job.period.column
    ]
    problems = []
    verdicts = judge(source.pandas(job.period, day, list(columns)), expectations)
    for expectation, verdict in zip(expectations, verdicts, strict=True):
        kept.append((expectation.rule, verdict == "met"))
        if verdict == "met":
            continue
        rule = f"{expectation.rule} {'is not met' if verdict == 'not met' else 'does not fit what the columns hold'}"
        if expectation.stops:
            problems.append(rule)
        else:
            print(f"warning: the input check for {job.period.text(day)}: {rule}; the job goes on.", file=sys.stderr)
    return problems


def _failure(rules: Sequence[str], period: str) -> InputCheckError:
    return InputCheckError(
        f"the input check for {period} failed, nothing was published or charged: {'; '.join(rules)}."
    )


_METADATA = {b"pandas", b"pkdp.certificate", b"pkdp.release"}


def check_output(release: Release, requested: ReleaseTable, *, rows: int | None = None) -> None:
    """Check that a release is what the job asks for and withholds what it must.

    `rows`: how many rows were read for it; None where it was published before. Raises `RuntimeError` if it is not: a
    defect of this library. The message holds no value and no count.
    """
    problems = [*_schema(release, requested), *_file(release)]
    if not problems:
        table = release.sealed.rows
        problems = [*_counts(table, requested, rows), *_cells(table, requested)]
    if problems:
        raise RuntimeError(
            f"the output check of release {requested.name!r} failed, which is a defect of pkdp; nothing was written: "
            f"{'; '.join(problems)}."
        )


def _schema(release: Release, requested: ReleaseTable) -> list[str]:
    table, problems = release.sealed.cells, []
    own = value_columns(requested.mechanism)
    if [name for name, _ in table.columns] != [*(requested.by or ()), *own]:
        problems.append(f"its columns must be the by-columns and {' and '.join(own)}")
    elif not table.counted:
        problems.append(f"{own[0]} must hold whole numbers")
    certificate = release.certificate
    if certificate.mechanism != beside_groups(
        requested.mechanism, grouping(requested.cells_by), requested.protects, certificate.attacker
    ):
        problems.append("its certificate must be about the mechanism that the job asks for")
    if requested.by is None and list(map(len, table.rows)) != [1]:
        problems.append("a count must be one number")
    return problems


def _file(release: Release) -> list[str]:
    """Look at the bytes that are going to be written: nothing but columns and certificate may be in them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.read_metadata(pa.BufferReader(release.to_bytes()))
    metadata, problems = file.metadata or {}, []
    stated = json.loads(metadata.get(b"pandas", b"{}"))
    if not set(metadata) <= _METADATA or stated.get("attributes"):
        problems.append("its file must hold no metadata but the certificate")
    if stated.get("index_columns"):
        problems.append("it must have no index")
    if file.schema.names != [name for name, _ in release.sealed.cells.columns]:
        problems.append("its file must hold no other columns")
    return problems


def _counts(table: Sequence[Sequence[Key]], requested: ReleaseTable, rows: int | None) -> list[str]:
    mechanism, place, problems = requested.mechanism, len(requested.by or ()), []
    marked, cells_found = noised_below(mechanism), requested.by is not None and requested.domain is None
    numbers = [(row[place], row[-1] if marked else mechanism.noise is None) for row in table]
    exact = [count for count, mark in numbers if count is not None and mark is True]
    noised = [count for count, mark in numbers if count is not None and mark is False]
    display, threshold = mechanism.display, mechanism.release_threshold
    least = int if display is None else partial(least_shown, display)
    # Without k, a cell that was found has somebody in it; one that was declared may be empty.
    if min(exact, default=math.inf) < least(mechanism.k or int(cells_found)):
        problems.append("no cell may be under k")
    if rows is not None and sum(exact if display is None else [display.interval(count)[0] for count in exact]) > rows:
        problems.append("its cells must not add up to more than the rows that were read")
    if threshold is not None and min(noised, default=math.inf) < least(threshold):
        problems.append("no cell may be under the release threshold")
    if cells_found and len(exact) + len(noised) < len(table):
        problems.append("a cell that is suppressed must be left out where no domain is declared")
    if marked and any(mark is not None if count is None else type(mark) is not bool for count, mark in numbers):
        problems.append("each count that is published, and no other, must be marked as exact or noised")
    return problems


def _cells(table: Sequence[Sequence[Key]], requested: ReleaseTable) -> list[str]:
    if requested.by is None:
        return []
    cells = [tuple(row[: len(requested.by)]) for row in table]
    if requested.domain is not None:
        groups = [entry for entry in requested.cells_by or () if isinstance(entry, Bins)]
        declared = Domain.parse(requested.by, with_groups(requested.domain, groups))
        return [] if cells == list(declared.cells) else ["its cells must be those of the domain, in its order"]
    if len(set(cells)) < len(cells):
        return ["no cell may be in it twice"]
    return [] if is_ordered(cells) else ["its rows must be sorted by the by-columns"]
