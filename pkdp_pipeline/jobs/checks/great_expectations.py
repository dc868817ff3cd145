"""Great Expectations as a judge: rows and expectations go in, yes or no comes out, and nothing else."""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Asked", "Verdict", "judge"]

Asked = tuple[str, Mapping[str, Any]]
"""An expectation: its type, such as ``expect_column_values_to_be_between``, and its arguments."""

Verdict = Literal["met", "not met", "not answered"]
"""What became of an expectation; "not answered" where it does not fit what the columns hold."""

_PLACE = "place"
"""The note on an expectation that says which one it is: results do not come back in the order asked."""

_DATA = "data"

_one_at_a_time = threading.Lock()


def judge(frame: pd.DataFrame, asked: Sequence[Asked]) -> list[Verdict]:
    """Return the verdict on every expectation, in the order asked.

    Whatever the library raises, warns of or logs meanwhile is dropped: it can quote the data. It would keep the
    last frame in memory, so it is told to forget it.
    """
    with _one_at_a_time, _quiet():
        verdicts: list[Verdict] = ["not answered"] * len(asked)
        library, context = _great_expectations()
        suite = library.ExpectationSuite(name="asked")
        for place, (kind, arguments) in enumerate(asked):
            # The arguments were checked when the job was read; the library has the last word.
            try:
                found = library.expectations.registry.get_expectation_impl(kind)
                suite.expectations.append(found(**arguments, meta={_PLACE: place}))
            except Exception:
                continue
        try:
            batch = _batches(context).get_batch(batch_parameters={"dataframe": frame})
            validated = batch.validate(suite, result_format="BOOLEAN_ONLY")
            for result in validated.results:
                # Where an expectation breaks this holds its traceback, under one key for each metric or under these.
                answered = result.exception_info.get("raised_exception") is False
                place = result.expectation_config.meta[_PLACE]
                verdicts[place] = ("met" if result.success else "not met") if answered else "not answered"
        except Exception:
            return ["not answered"] * len(asked)
        finally:
            context.data_sources.delete(_DATA)
    return verdicts


def _batches(context: Any) -> Any:
    """Return what makes batches of frames, until the context is told to forget them."""
    source = context.data_sources.add_pandas(_DATA)
    return source.add_dataframe_asset("frame").add_batch_definition_whole_dataframe("all")


@functools.cache
def _great_expectations() -> tuple[Any, Any]:
    """Return the library and its context.

    Set Great Expectations up once for the process: in memory, silent, and reporting to nobody.
    """
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
