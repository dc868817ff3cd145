"""Input checks: does the day look as declared? Great Expectations answers yes or no, never with data."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

from pkdp_pipeline.errors import InputCheckError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.sources import Rows, Source

__all__ = ["Check", "check_input", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rule about one number of the profile: at least `least`, at most `most`."""

    column: str
    rule: str
    least: int | None = None
    most: int | None = None


def check_input(source: Source, job: Job, day: date) -> None:
    """Check one day of the source before anything is counted or charged.

    Raises
    ------
    InputCheckError
        Naming columns and rules, never a value or a number from the data.
    """
    columns = _declared_columns(job)
    present = {_has(column): int(column in source.columns) for column in columns}
    missing = failed(
        present,
        [Check(column=_has(column), rule=f"column {column!r} must exist", least=1) for column in columns],
    )
    _raise(missing, day)
    rows = Check(column="rows", rule=f"column {job.period.column!r} must have rows on that date", least=1)
    units = Check(column="with unit", rule=f"unit {_listed(job.unit)} must be present in some row", least=1)
    checks = [rows, units]
    if job.missing_unit == "error":
        rule = f'unit {_listed(job.unit)} must be present in every row, or write missing_unit = "drop"'
        checks.append(Check(column="without unit", rule=rule, most=0))
    checks += [
        Check(column=_filled(column), rule=f"column {column!r} must not be empty", least=1)
        for column in _cell_columns(job)
    ]
    broken = failed(_profile(source, job, day), checks)
    # On a day without rows every other rule is beside the point.
    _raise([rows.rule] if rows.rule in broken else broken, day)


def failed(profile: Mapping[str, int], checks: Sequence[Check]) -> list[str]:
    """Return the rules that a one-row profile breaks, in the order of `checks`."""
    import pandas as pd

    gx, batch_definition = _great_expectations()
    expectations = [
        gx.expectations.ExpectColumnValuesToBeBetween(column=check.column, min_value=check.least, max_value=check.most)
        for check in checks
    ]
    batch = batch_definition.get_batch(batch_parameters={"dataframe": pd.DataFrame([dict(profile)])})
    outcome = batch.validate(gx.ExpectationSuite(name="input", expectations=expectations), result_format="BOOLEAN_ONLY")
    # When an expectation breaks, this says True, or holds one traceback for each metric instead.
    if any(result.exception_info.get("raised_exception") is not False for result in outcome.results):
        raise RuntimeError("an input check could not be evaluated.")
    passed = {result.expectation_config.kwargs["column"]: result.success for result in outcome.results}
    return [check.rule for check in checks if not passed[check.column]]


@functools.cache
def _great_expectations() -> tuple[Any, Any]:
    """Return the library and a batch definition for one-row frames.

    Set Great Expectations up once for the process: in memory, silent, and reporting to nobody.
    """
    # Versions that send usage statistics read this when they are imported.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    # It imports whatever engines are installed, and their warnings are not about this job.
    with warnings.catch_warnings(), _without_spark_connect():
        warnings.simplefilter("ignore")
        import great_expectations as gx
        from great_expectations.data_context.types.base import (
            DataContextConfig,
            InMemoryStoreBackendDefaults,
            ProgressBarsConfig,
        )

    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
    )
    context = gx.get_context(mode="ephemeral", project_config=config)
    asset = context.data_sources.add_pandas("profile").add_dataframe_asset("row")
    return gx, asset.add_batch_definition_whole_dataframe("whole")


@contextmanager
def _without_spark_connect() -> Iterator[None]:
    """Keep PySpark's remote client from being imported where it cannot work.

    Without gRPC its import ends a process whose program is no file (``python -c``), with exit code 0.
    """
    remote = ("pyspark.sql.connect.dataframe", "pyspark.sql.connect.session")
    hidden = [] if importlib.util.find_spec("grpc") else [name for name in remote if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # the import system's own sign for "not there"
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def _profile(source: Source, job: Job, day: date) -> dict[str, int]:
    """Return counts of rows that the checks look at, in one aggregate query."""
    sorts = {"rows": Rows(), "with unit": Rows(present=job.unit), "without unit": Rows(present=job.unit, negated=True)}
    sorts |= {_filled(column): Rows(present=(column,)) for column in _cell_columns(job)}
    counts = source.counts(job.period, day, list(sorts.values()))
    return dict(zip(sorts, counts, strict=True))


def _declared_columns(job: Job) -> list[str]:
    orders = [job.order_by, *(release.order_by for release in job.release)]
    named = [job.period.column, *job.unit, *_cell_columns(job), *(column for order in orders for column in order or ())]
    return list(dict.fromkeys(named))


def _cell_columns(job: Job) -> list[str]:
    return list(dict.fromkeys(column for release in job.release for column in release.by or ()))


def _has(column: str) -> str:
    return f"has {column}"


def _filled(column: str) -> str:
    return f"filled {column}"


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(repr(column) for column in columns)


def _raise(rules: list[str], day: date) -> None:
    if rules:
        raise InputCheckError(
            f"the input check for {day.isoformat()} failed, nothing was published or charged: {'; '.join(rules)}."
        )
