"""The columns that a job needs: what it names, and what its predicates may name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.checks.expectations import read_expectations
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.sources.source import no_such_column
from pkdp_pipeline.model.predicate import from_query
from pkdp_pipeline.model.predicate.columns import twins

__all__ = ["check_named", "check_unique", "named_columns", "needed_columns", "two_columns"]


def check_named(job: Job, columns: Collection[str]) -> None:
    """Raise `ConfigError` where the job names a column outside of predicates that its source does not have.

    What ``[checks]`` names is left to the input check, by which it has been made a rule about the data.
    """
    missing: dict[str, str] = {}
    for key, column in _keys(job):
        if column not in columns and column not in job.checks.columns:
            missing.setdefault(column, key)
    if missing:
        raise no_such_column(missing, columns)


def _keys(job: Job) -> Iterator[tuple[str, str]]:
    """Yield each key of the job file that names columns, with one of these."""
    yield "period.column", job.period.column
    for column in job.unit:
        yield "unit", column
    for column in job.order_by or ():
        yield "order_by", column
    for release in job.release:
        for column in release.by or ():
            yield f"by of release {release.name!r}", column
        for column in release.order_by or ():
            yield f"order_by of release {release.name!r}", column


def named_columns(job: Job) -> tuple[str, ...]:
    """Return the columns that the job names outside of predicates."""
    names = [column for _, column in _keys(job)]
    if job.checks is not None:
        names += job.checks.columns
        names += [] if job.checks.fresh is None else [job.checks.fresh.column]
        names += [name for one in read_expectations(job.checks) for name in one.columns]
    return tuple(dict.fromkeys(names))


def needed_columns(job: Job, columns: Collection[str]) -> tuple[str, ...]:
    """Return those of a source's columns that the job names, its predicates included."""
    named = set(named_columns(job))
    predicates = [from_query(release.where) for release in job.release if release.where is not None]
    compared = frozenset().union(*(predicate.columns for predicate in predicates if predicate is not None))
    return tuple(column for column in columns if column in named or column in compared)


def check_unique(columns: Sequence[str]) -> None:
    """Raise `ConfigError` where a table or a query gives two columns one name, letter case aside."""
    if (found := twins(columns)) is not None:
        raise ConfigError(two_columns("the source", found))


def two_columns(source: str, found: tuple[str, str]) -> str:
    """Return what to say of two columns that have one name, letter case aside."""
    one, other = found
    if one == other:
        return f"{source} gives two columns the name {one!r}; rename one."
    return (
        f"{source} has columns {one!r} and {other!r}: capitals and small letters are not told apart everywhere; rename "
        "one."
    )
