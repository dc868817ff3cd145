"""The curator's own rules, in the words of Great Expectations: read with the job file, asked of one day's rows.

The library checks the arguments of its expectations, and answers yes or no. All that it raises, warns of or logs
is dropped: it can quote the data.
"""

from __future__ import annotations

import difflib
import functools
import importlib.util
import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.jobs.tables import ChecksTable

_TYPES = """
    column_distinct_values_to_be_in_set column_distinct_values_to_contain_set column_distinct_values_to_equal_set
    column_max_to_be_between column_mean_to_be_between column_median_to_be_between column_min_to_be_between
    column_most_common_value_to_be_in_set column_pair_values_a_to_be_greater_than_b column_pair_values_to_be_equal
    column_pair_values_to_be_in_set column_proportion_of_non_null_values_to_be_between
    column_proportion_of_unique_values_to_be_between column_quantile_values_to_be_between column_stdev_to_be_between
    column_sum_to_be_between column_to_exist column_unique_value_count_to_be_between column_value_lengths_to_be_between
    column_value_lengths_to_equal column_value_z_scores_to_be_less_than column_values_to_be_between
    column_values_to_be_dateutil_parseable column_values_to_be_in_set column_values_to_be_json_parseable
    column_values_to_be_null column_values_to_be_unique column_values_to_match_regex column_values_to_match_regex_list
    column_values_to_match_strftime_format column_values_to_not_be_in_set column_values_to_not_be_null
    column_values_to_not_be_outliers column_values_to_not_match_regex column_values_to_not_match_regex_list
    compound_columns_to_be_unique multicolumn_sum_to_equal multicolumn_values_to_be_equal
    select_column_values_to_be_unique_within_record table_row_count_to_be_between table_row_count_to_equal
"""
ALLOWED = frozenset(f"expect_{name}" for name in _TYPES.split())
"""The types that look at one day's rows and at nothing else, whatever the order of rows and the engine."""

Verdict = Literal["met", "not met", "not answered"]
"""The outcome of an expectation; "not answered" where it does not fit what the columns hold."""

_CONDITION = (
    "must be a table, such as { type = 'comparison', column = { name = 'a' }, operator = '>', parameter = 0 }, or of "
    "type 'nullity', 'and' or 'or'; text would be run as code."
)
_DATA = "data"
_PLACE = "place"
"""The note on an expectation that says which one it is: results do not come back in the order asked."""

_library_lock = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One rule.

    Parameters
    ----------
    place : str
        Where it is written, such as ``checks.expect[1]``.
    type : str
        Such as ``expect_column_values_to_be_between``.
    stops : bool
        Whether the job stops where it is not met; otherwise the curator is warned.
    """

    place: str
    type: str
    arguments: Mapping[str, Any]
    stops: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at."""
        named = [self.arguments.get(key) for key in ("column", "column_A", "column_B")]
        named += [*self.arguments.get("column_list", ()), *_columns_of(self.arguments.get("row_condition"))]
        return tuple(dict.fromkeys(name for name in named if isinstance(name, str)))

    @property
    def rule(self) -> str:
        """The rule as the curator reads it: where it is written, its type and its columns."""
        named = f" of {', '.join(map(repr, self.columns))}" if self.columns else ""
        return f"{self.type}{named} ({self.place})"


def read_expectations(checks: ChecksTable) -> tuple[Expectation, ...]:
    """Return the expectations of a job's ``[checks]``, first those of the suite.

    Raises `ConfigError` if the suite cannot be read, or one is not about a day's rows alone; one line for each
    complaint.
    """
    entries = _of_suite(checks.expectations)
    for number, table in enumerate(checks.expect, 1):
        arguments = {key: value for key, value in table.items() if key != "type"}
        entries.append((f"checks.expect[{number}]", table.get("type"), arguments))
    wrong = [f"{place}{problem}" for place, kind, arguments in entries for problem in _problems(kind, arguments)]
    if wrong:
        raise ConfigError("\n  ".join(wrong))
    return tuple(
        Expectation(
            place=place,
            type=kind,
            arguments={key: _given(key, value) for key, value in arguments.items() if key != "condition_parser"},
            stops=arguments.get("severity") in (None, "critical"),
        )
        for place, kind, arguments in entries
    )


def check_expectations(checks: ChecksTable) -> None:
    """Refuse expectations whose arguments Great Expectations does not take.

    It is imported where there are any, which takes a few seconds. A `ConfigError` names
    each argument that is wrong.
    """
    wrong: list[str] = []
    for expectation in read_expectations(checks):
        try:
            with _library_lock, _quiet():
                built = _built(expectation)
            if (getattr(built, "min_value", 0), getattr(built, "max_value", 0)) == (None, None):
                wrong.append(f"{expectation.place}: {expectation.type} needs min_value, max_value or both.")
        except Exception as error:
            wrong += _of_library(expectation, error)
    if wrong:
        raise ConfigError("\n  ".join(wrong))


def judge(frame: pd.DataFrame, expectations: Sequence[Expectation]) -> list[Verdict]:
    """Return the verdict on every expectation, in their order.

    The library would keep the last frame in memory, so it is told to forget it.
    """
    with _library_lock, _quiet():
        verdicts: list[Verdict] = ["not answered"] * len(expectations)
        library, context = _library()
        suite = library.ExpectationSuite(name="asked")
        for place, expectation in enumerate(expectations):
            with suppress(Exception):
                suite.expectations.append(_built(expectation, meta={_PLACE: place}))
        try:
            asset = context.data_sources.add_pandas(_DATA).add_dataframe_asset("frame")
            batch = asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": frame})
            for result in batch.validate(suite, result_format="BOOLEAN_ONLY").results:
                # Where an expectation breaks this holds its traceback, under one key for each metric or under these.
                answered = result.exception_info.get("raised_exception") is False
                place = result.expectation_config.meta[_PLACE]
                verdicts[place] = ("met" if result.success else "not met") if answered else "not answered"
        except Exception:
            return ["not answered"] * len(expectations)
        finally:
            context.data_sources.delete(_DATA)
    return verdicts


def _of_suite(path: str | None) -> list[tuple[str, Any, dict[str, Any]]]:
    """Return place, type and arguments of each expectation of a suite."""
    if path is None:
        return []
    file, problem = Path(path), ""
    try:
        suite = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"cannot be read: {error.strerror}."
    except (ValueError, RecursionError):
        problem = "is not valid JSON."
    if problem:
        raise ConfigError(f"checks.expectations: {str(file)!r} {problem}")
    listed = suite.get("expectations") if isinstance(suite, dict) and not suite.get("suite_parameters") else None
    entries = listed if isinstance(listed, list) else [listed]
    if not all(
        isinstance(entry, dict) and "type" in entry and isinstance(entry.get("kwargs"), dict) for entry in entries
    ):
        raise ConfigError(
            f"checks.expectations: {str(file)!r} is no suite of Great Expectations 1.x, whose expectations have type "
            "and kwargs, or has suite_parameters for values; write it with json.dump(suite.to_json_dict(), file)."
        )
    read = []
    for number, entry in enumerate(entries, 1):
        given = {**entry["kwargs"], "severity": entry.get("severity")}
        arguments = {key: value for key, value in given.items() if value is not None}
        read.append((f"{file.name}[{number}]", entry["type"], arguments))
    return read


def _problems(kind: object, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield why an expectation is none of those that a job can use, or would run code."""
    if not isinstance(kind, str) or kind not in ALLOWED:
        close = difflib.get_close_matches(str(kind), ALLOWED, n=1, cutoff=0.9)
        hint = f"did you mean {close[0]!r}?" if close else "docs/checks.md lists them, and what to write instead."
        yield f".type: {kind!r} is not among the expectations that a job can use; {hint}"
    if not str(arguments.get("condition_parser", "great_expectations")).startswith("great_expectations"):
        yield f".row_condition: {_CONDITION}"
    for key, value in arguments.items():
        if key == "row_condition" and not _is_condition(value):
            yield f".{key}: {_CONDITION}"
        elif _is_computed(value):
            yield f".{key}: must be written out: a parameter would be run as code."


def _is_condition(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind in ("and", "or"):
        parts = value.get("conditions")
        return isinstance(parts, list) and all(map(_is_condition, parts))
    return kind in ("comparison", "nullity")


def _is_computed(value: Any) -> bool:
    if isinstance(value, dict):
        return any(str(key).startswith("$") for key in value) or _is_computed(list(value.values()))
    return isinstance(value, list) and any(map(_is_computed, value))


def _columns_of(condition: Any) -> Iterator[Any]:
    """Yield the columns that a condition names."""
    if isinstance(condition, dict):
        column = condition.get("column")
        yield column.get("name") if isinstance(column, dict) else None
        for part in condition.get("conditions", ()):
            yield from _columns_of(part)


def _given(key: str, value: Any) -> Any:
    """Return an argument as the library wants it: days are datetimes, and text in conditions."""
    if key in ("min_value", "max_value") and isinstance(value, str):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    if isinstance(value, dict):
        return {inner: _given("parameter" if key == "row_condition" else inner, part) for inner, part in value.items()}
    if isinstance(value, list):
        return [_given(key, part) for part in value]
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime.combine(value, time())
        return moment.isoformat() if key == "parameter" else moment
    return value


def _of_library(expectation: Expectation, error: Exception) -> list[str]:
    """Return what the library says of an expectation's arguments: one line for each."""
    errors = getattr(error, "errors", list)  # of pydantic; another error says nothing that helps
    problems: dict[str, str] = {}
    for detail in errors():
        key = str(detail["loc"][0])
        place = expectation.place if key == "__root__" else f"{expectation.place}.{key}"
        problems.setdefault(place, _CONDITION if key == "row_condition" else f"{detail['msg']}.")
    return [f"{place}: {words}" for place, words in problems.items()] or [
        f"{expectation.place}: has arguments of no use."
    ]


def _built(expectation: Expectation, **more: Any) -> Any:
    """Return an expectation of the library."""
    kind = _library()[0].expectations.registry.get_expectation_impl(expectation.type)
    return kind(**{**expectation.arguments, **more})


@functools.cache
def _library() -> tuple[Any, Any]:
    """Return Great Expectations and its context, set up once for the process: in memory, reporting to nobody."""
    # Versions that send usage statistics read this when they are imported.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    # It imports whatever engines are installed, and their warnings are not about this job.
    with _without_spark_connect():
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
    return gx, gx.get_context(mode="ephemeral", project_config=config)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let nothing of the library's warnings and log records out."""
    logger = logging.getLogger("great_expectations")
    handlers, propagate = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [logging.NullHandler()], False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.handlers, logger.propagate = handlers, propagate


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
