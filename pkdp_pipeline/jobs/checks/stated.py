"""Stated: the rules that a job's days are held to, in words; no data are read for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.jobs.checks.built_in import rules_of_columns, rules_of_counts, rules_of_rows
from pkdp_pipeline.jobs.checks.expectations import read_expectations
from pkdp_pipeline.jobs.job import Job, PeriodTable
from pkdp_pipeline.jobs.requests import requests_of
from pkdp_pipeline.jobs.sources.source import Kind, Rows
from pkdp_pipeline.releases.publish import Counted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["stated_rules"]


def stated_rules(job: Job, day: date) -> list[str]:
    """Return the rules that stop a job where a day breaks them, in the order in which they are looked at."""
    import pandas as pd

    source, expectations = _Unread(job), read_expectations(job.checks)
    counted = {one.name: Counted(request=one.request, keys=pd.DataFrame(), counts=[]) for one in requests_of(job, day)}
    rules = [
        *rules_of_columns(source, job, expectations),
        *rules_of_rows(source, job, day)[1],
        *rules_of_counts(counted),
    ]
    return [*(rule.text for rule in rules), *(one.rule for one in expectations if one.stops)]


class _Unread:
    """Stands for a source that has every column that rules look at; its numbers are not looked at."""

    def __init__(self, job: Job) -> None:
        fresh = job.checks.fresh
        self.columns: Mapping[str, Kind] = {} if fresh is None else {fresh.column: "date"}

    def counts(self, period: PeriodTable, day: date, rows: Sequence[Rows]) -> list[int]:
        return [0] * len(rows)

    def newest(self, period: PeriodTable, column: str) -> date | None:
        return None

    def day(self, period: PeriodTable, day: date) -> Any:
        raise RuntimeError("these rules need no rows.")

    def pandas(self, period: PeriodTable, day: date, columns: Sequence[str]) -> pd.DataFrame:
        raise RuntimeError("these rules need no rows.")

    def interrupt(self) -> None:
        """Do nothing: nothing is under way."""

    def close(self) -> None:
        """Do nothing: nothing is open."""
