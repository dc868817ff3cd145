"""What all tests share: the same property cases on every run, or fresh ones on request, and what marked tests need.

``PKDP_HYPOTHESIS=full`` tries all cases of a property, as ``make slow`` does, a tenth of them being tried otherwise;
``PKDP_HYPOTHESIS=search`` draws other cases each time. No case has a time limit: a busy machine is not a defect.

``PKDP_HOUR=11:30`` lets the clock show this hour of UTC, today, when the tests begin: with ``TZ`` they are run at
another hour in another zone. Programs that tests start have the zone, and the machine's hour.

In CI a quick case fails that takes more than a processor second twice: see ``case_seconds.py``.

A test marked ``spark``, ``ibis``, ``dbt``, ``dagster``, ``airflow`` or ``browser`` is skipped where what it needs is
not installed, and fails in CI (``CI=true``). Its module is imported all the same, so it imports PySpark or Ibis inside
tests and fixtures. All Spark tests of a run share one process, as they share one Java machine.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib.util
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

# NumPy's own threads wait for one another by counting: of matrices as small as these that takes four times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
import typer.testing
from case_seconds import watched
from hypothesis import HealthCheck, settings
from postgres_server import cluster, postgres_url
from thorough import few, is_spare

from pkdp_pipeline import clock
from pkdp_pipeline.certificates import certificate, release_certificate
from pkdp_pipeline.ledger.sqlite_database import SqliteDatabase

__all__ = ["cluster", "postgres_url"]

#: What tests publish is small and promises little. Those of the target itself, and of what users run, are marked.
release_certificate.DEFAULT_TARGET = None

# No test pulls the plug of the machine: nothing waits for a disk. What a killed process wrote, the system holds.
os.fsync = lambda descriptor: None
_prepare = SqliteDatabase._prepare


@functools.wraps(_prepare)
def _prepared(database: SqliteDatabase) -> None:
    _prepare(database)
    database._connection.execute("PRAGMA synchronous = OFF")


SqliteDatabase._prepare = _prepared

if hour := os.environ.get("PKDP_HOUR"):
    _began = datetime.now(UTC)
    _ahead = datetime.combine(_began, time.fromisoformat(hour), UTC) - _began
    clock._read = lambda zone: datetime.now(zone) + _ahead

# Typer reads the signatures of all commands anew for each call.
typer.testing._get_command = functools.cache(typer.testing._get_command)

house = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("full", house)
settings.register_profile("house", house, max_examples=few(100))
settings.register_profile("search", deadline=None, max_examples=1_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("PKDP_HYPOTHESIS", "house"))

#: Files whose tests take long and share nothing.
APART = {"test_airflow.py", "test_dagster.py", "test_dbt.py", "test_docs_run.py", "test_kill_campaign.py"}
#: Files that load Great Expectations, which takes seconds: in one process, that of the reports, which do so, too.
EXPECTING = {
    *("test_checks.py", "test_checks_expectations.py", "test_job_tables.py"),
    *("test_retention.py", "test_wrong_sources.py"),
}
#: Folders whose tests are about what certificates state, or read what other programs have written; modules elsewhere
#: are marked ``whole_curves``.
WHOLE_CURVES = {"tests", "certificates", "verification", "connect", "schedulers"}
#: The environment with DuckDB 1.5 and dbt, which `.ci/run` and `make duckdb1` set up.
DUCKDB1 = Path(__file__).resolve().parents[1] / ".venv-duckdb1"
#: The environment with Dagster and Airflow, which `.ci/run` and `make schedulers` set up.
SCHEDULERS = DUCKDB1.with_name(".venv-schedulers")


def _has(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None or (home is not None and Path(home, "bin", "java").is_file())


def _lacking(mark: str) -> str | None:
    """Return what tests with this mark lack here, None when they can run."""
    if mark == "spark" and not _has("pyspark"):
        return "PySpark is not installed; run: pip install 'pyspark>=4.0'."
    if mark == "spark" and not _has_java():
        return "Java is not installed; on Debian: apt-get install default-jre-headless."
    if mark == "ibis" and not _has("ibis", "sqlglot", "duckdb"):
        return "Ibis is not installed; run: pip install 'ibis-framework[duckdb]>=11'."
    if mark == "dbt" and not (DUCKDB1 / "bin" / "dbt").is_file():
        return "dbt is not installed in .venv-duckdb1; run: make duckdb1."
    if mark in ("dagster", "airflow") and not (SCHEDULERS / "bin" / mark).is_file():
        return f"{mark.title()} is not installed in .venv-schedulers; run: make schedulers."
    if mark == "browser" and shutil.which("chromium") is None:
        return "Chromium is not installed; on Debian: apt-get install chromium."
    return None


def pytest_configure(config: pytest.Config) -> None:
    """Let a worker say nothing of what was set up or torn down well: to say it takes as long as many a test."""
    config.addinivalue_line("markers", "thinned(few): of its cases one in `few` is quick (thorough.thinned)")
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.sendevent = functools.partial(_sent, plugin.sendevent)


def _sent(send: Callable[..., None], name: str, **values: Any) -> None:
    report = values["data"] if name == "testreport" else {}
    if report.get("when") not in ("setup", "teardown") or report["outcome"] != "passed":
        send(name, **values)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let Python's collector pass over what is there before the first test: seventeen thousand tests, all modules.

    None of it is garbage before the end, and each look at it takes half a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # Not before pytest's own looks for what nobody closed.
        atexit.register(gc.unfreeze)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one process: what a module makes once is made once.

    The largest groups are handed out first, single tests last, so that both processes end at about the same time.
    Spark takes a second where others take hundredths: of a file's cases of jobs nine in ten are slow.
    """
    cases: Counter[Path | tuple[object, ...]] = Counter()
    for item in items:
        if item.get_closest_marker("default_target") is not None:
            item.fixturenames.insert(0, "_default_target")
        thinned = item.get_closest_marker("thinned")
        if thinned is not None and item.get_closest_marker("slow") is None:
            test = item.parent, getattr(item, "originalname", item.name)
            if is_spare(cases[test], *thinned.args):
                item.add_marker(pytest.mark.slow)
            cases[test] += 1
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
            if item.path.parent.name == "jobs" and hasattr(item, "callspec"):
                if cases[item.path] % 10:
                    item.add_marker(pytest.mark.slow)
                cases[item.path] += 1
        elif item.get_closest_marker("xdist_group") is None and item.path.name not in APART:
            item.add_marker(pytest.mark.xdist_group("report" if item.path.name in EXPECTING else item.path.stem))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a test after a long value's parameter: a name is sent between processes, and printed."""
    return argname if isinstance(val, (str, bytes)) and len(val) > 300 else None


@pytest.fixture
def _default_target(monkeypatch):
    """Ask for what users are held to, in tests marked ``default_target``."""
    monkeypatch.setattr(release_certificate, "DEFAULT_TARGET", release_certificate.Target())


@pytest.fixture(scope="module", autouse=True)
def short_grid(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let certificates state few points of their curves, but in modules that look at them, or at other processes."""
    if request.node.get_closest_marker("whole_curves") is not None or request.node.path.parent.name in WHOLE_CURVES:
        yield
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(certificate, "_GRID", (0.0, 1.0))
        release_certificate._document_of.cache_clear()
        yield
    release_certificate._document_of.cache_clear()


@pytest.fixture(scope="session")
def great_expectations():
    """Import Great Expectations before a test that needs it: that takes seconds, once for a process."""
    from pkdp_pipeline.jobs import expectations

    return expectations._library()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    return (yield from watched(item))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in ("spark", "ibis", "dbt", "dagster", "airflow", "browser"):
        lacking = _lacking(mark) if item.get_closest_marker(mark) is not None else None
        if lacking is not None and os.environ.get("CI") == "true":
            pytest.fail(lacking, pytrace=False)
        if lacking is not None:
            pytest.skip(lacking)
