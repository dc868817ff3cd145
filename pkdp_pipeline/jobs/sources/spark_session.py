"""The Spark session of a job: the one there is, or one of its own that keeps quiet and is stopped again.

Spark's log quotes data: the values it cannot cast, plans with their constants. So what a JVM of ours writes
goes nowhere, and what PySpark itself would log is not logged while a job reads.
"""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ConfigError

if TYPE_CHECKING:
    import logging

    from pyspark.sql import SparkSession

__all__ = ["QuietSession"]

#: Settings of a session that a job starts; PYSPARK_SUBMIT_ARGS and a session of the caller's come before them.
_SETTINGS: Mapping[str, str] = {
    "spark.app.name": "pkdp",
    "spark.sql.session.timeZone": "UTC",
    # It shows queries to everybody who reaches its port.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
#: Loggers by which PySpark repeats an error's message, which can quote a value, on standard error.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
#: Variables by which PySpark is told to use a session elsewhere.
_CONNECT = {"SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"}


class QuietSession:
    """A Spark session, open until `close`, which stops it only if it was started here.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession

    Raises
    ------
    ConfigError
        If PySpark or Java is missing, or Spark does not start.
    """

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # PySpark says which versions of other packages it was not made for.
            warnings.simplefilter("ignore", FutureWarning)
            self.spark, self._started = _session()
        self._disabled: list[logging.Logger] = []
        self._silence()

    def close(self) -> None:
        """Stop the session if it was started here, and let PySpark log again."""
        for logger in self._disabled:
            logger.disabled = False
        self._disabled.clear()
        if self._started:
            self._started = False
            self.spark.stop()

    def _silence(self) -> None:
        from pyspark.logger import PySparkLogger

        for name in _LOGGERS:
            logger = PySparkLogger.getLogger(name)
            if not logger.disabled:
                logger.disabled = True
                self._disabled.append(logger)


def _session() -> tuple[SparkSession, bool]:
    """Return a session, and whether it was started for this."""
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError:
        raise ConfigError(
            'engine = "spark" needs PySpark: pip install "pkdp-pipeline[spark]", or choose another engine.'
        ) from None
    try:
        return SparkSession.active(), False
    except PySparkRuntimeError:
        return _started(), True


def _start_here() -> None:
    """Start a JVM that writes nowhere, unless one runs already: that one is not ours to set up."""
    from pyspark import SparkConf, SparkContext, java_gateway

    if SparkContext._gateway is None:
        settings = SparkConf(loadDefaults=False).setAll(list(_SETTINGS.items()))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        launch: Any = java_gateway.launch_gateway  # without types of its own
        SparkContext(gateway=launch(settings, popen_kwargs=quiet))


def _started() -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.util import is_remote_only

    problem: str | None = None
    try:
        # A session elsewhere (Spark Connect) needs no JVM here.
        if not is_remote_only() and not _CONNECT & os.environ.keys():
            _start_here()
        return SparkSession.builder.getOrCreate()
    except PySparkException as error:
        problem = error.getCondition()
    except Exception as error:  # the JVM, the cluster or the network: anything can be in the way
        problem = type(error).__name__
    if problem == "JAVA_GATEWAY_EXITED":
        raise ConfigError(
            'engine = "spark" needs Java 17 or newer, found by JAVA_HOME or on the PATH: install it (on Debian: '
            "openjdk-17-jre-headless), correct JAVA_HOME, or choose another engine."
        )
    raise ConfigError(
        f"Spark did not start ({problem}); start a session with SparkSession.builder to see why, or choose another "
        "engine."
    )
