"""The one Spark session of a test run: two threads, no port, and a time zone that no test is about."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
import warnings
from typing import Any

__all__ = ["local_spark"]

SETTINGS = {
    "spark.master": "local[2]",
    "spark.app.name": "pkdp tests",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Short queries: no time for the compiler to become clever, nor for plans to be changed on the way.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "America/St_Johns",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@functools.cache
def local_spark() -> Any:
    """Return the session, started by the first test that asks; it ends with the process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession
    folder = tempfile.mkdtemp(prefix="pkdp-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = SETTINGS | {"spark.sql.warehouse.dir": folder, "spark.local.dir": folder}
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    # A Java machine outlives the capture of the test that starts it.
    SparkContext(
        gateway=launch_gateway(conf, popen_kwargs={"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL})
    )
    return SparkSession.builder.getOrCreate()
