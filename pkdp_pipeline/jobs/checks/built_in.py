"""The rules that every day is checked against, and those of ``[checks]`` that count rows and look at columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from pkdp_pipeline.jobs.checks.expectations import Expectation
from pkdp_pipeline.jobs.checks.rules import Rule
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.sources.source import Rows, Source
from pkdp_pipeline.releases.publish import Counted

__all__ = ["rules_of_columns", "rules_of_counts", "rules_of_rows"]

_HOLDS = {
    "text": "text",
    "number": "numbers",
    "real": "floating-point numbers",
    "boolean": "booleans",
    "date": "dates",
    "timestamp": "timestamps without a time zone",
    "instant": "timestamps in a time zone",
}

_DAYS = ("date", "timestamp", "instant")


def rules_of_columns(source: Source, job: Job, expectations: Sequence[Expectation]) -> list[Rule]:
    """Return what must hold of the columns before any row is read."""
    checks, found = job.checks, source.columns
    named = [*_declared_columns(job), *checks.columns, *(name for one in expectations for name in one.columns)]
    named += [] if checks.fresh is None else [checks.fresh.column]
    rules = [
        Rule(text=f"column {column!r} must exist", number=int(column in found), least=1)
        for column in dict.fromkeys(named)
    ]
    for column, kind in checks.columns.items():
        fits = column not in found or found[column] == kind or (kind == "number" and found[column] == "real")
        rules.append(Rule(text=f"column {column!r} must hold {_HOLDS[kind]}", number=int(fits), least=1))
    if checks.fresh is not None and checks.fresh.column in found:
        text = f"column {checks.fresh.column!r} must hold dates or times to say how fresh the data are"
        rules.append(Rule(text=text, number=int(found[checks.fresh.column] in _DAYS), least=1))
    return rules


def rules_of_rows(source: Source, job: Job, day: date) -> tuple[int, list[Rule]]:
    """Return how many rows the day has, and what must hold of them; they are counted in one aggregate query.

    No rule asks that there are any: a day that is published only where somebody was there would tell it.
    """
    rows, without_unit = source.counts(job.period, day, [Rows(), Rows(present=job.unit, negated=True)])
    checks, rules = job.checks, []
    if job.missing_unit == "error":
        text = f'unit {_listed(job.unit)} must be present in every row, or write missing_unit = "drop"'
        rules.append(Rule(text=text, number=without_unit, most=0))
    if checks.rows is not None:
        text = "the number of rows must be in the range of [checks] rows"
        rules.append(Rule(text=text, number=rows, least=checks.rows.min, most=checks.rows.max))
    if checks.fresh is not None:
        newest = source.newest(job.period, checks.fresh.column)
        fresh = newest is not None and (newest - day).days >= checks.fresh.days
        days = f"{checks.fresh.days} day{'' if checks.fresh.days == 1 else 's'}"
        text = (
            f"the newest value of column {checks.fresh.column!r} must be at least {days} after that date, for its rows "
            "to be complete"
        )
        rules.append(Rule(text=text, number=int(fresh), least=1))
    return rows, rules


def rules_of_counts(counts: Mapping[str, Counted]) -> list[Rule]:
    """Return what must hold of the units and cells that each release, by name, has counted."""
    rules = []
    for counted in list(counts.values())[:1]:
        text = (
            f"unit {_listed(counted.request.unit)} must not have values that differ only by spaces around them; strip "
            'them, or write units = "exact" if they are different people'
        )
        if counted.request.units == "checked":
            rules.append(Rule(text=text, number=int(counted.alike_units), most=0))
    for name, counted in counts.items():
        request = counted.request
        unit, by = _listed(request.unit), _listed(request.by or ())
        if request.by is not None:
            text = (
                f"release {name!r}: units {unit} must not have rows in several cells of {by}; one_cell says which one "
                'counts: "most_frequent", "first" (with order_by) or "hash"'
            )
            rules.append(Rule(text=text, number=int(counted.several_cells), most=0))
        if request.domain is not None and request.undeclared == "error":
            text = (
                f"release {name!r}: {by} must not have values that domain does not list; add them, or take such units "
                'as absent with undeclared = "absent"'
            )
            rules.append(Rule(text=text, number=int(counted.undeclared_cells), most=0))
    return rules


def _declared_columns(job: Job) -> list[str]:
    named = [*(release.by for release in job.release), job.order_by, *(release.order_by for release in job.release)]
    return [job.period.column, *job.unit, *(column for columns in named for column in columns or ())]


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(map(repr, columns))
