"""Prefect 3: publishes each day of daily_flights.toml at six on the next morning.

PREFECT_LOGGING_EXTRA_LOGGERS=pkdp_pipeline python examples/recipes/prefect_flow.py
"""

from __future__ import annotations

import logging
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from prefect import flow, task

from pkdp_pipeline import TemporaryError
from pkdp_pipeline.jobs import load_job, run_job

logging.getLogger("pkdp_pipeline").setLevel(logging.INFO)  # charges and releases' ids, on the page of a run
JOB = Path(__file__).parents[1] / "daily_flights.toml"


def is_temporary(task: Any, run: Any, state: Any) -> bool:
    """Return whether the same task may succeed later; nothing else is tried again."""
    return isinstance(state.result(raise_on_failure=False), TemporaryError)


@task(retries=12, retry_delay_seconds=300, retry_condition_fn=is_temporary)
def publish(job: Path, day: date) -> dict[str, str]:
    """Publish a day, or replay it; return the releases' ids."""
    return {release.declared.name: release.release.id for release in run_job(load_job(job), day).releases}


@flow(name="daily flights")
def daily_flights(day: date | None = None) -> dict[str, str]:
    """Publish a day; without one, yesterday on the clocks of the job."""
    return publish(JOB, day or load_job(JOB).period.today() - timedelta(days=1))


if __name__ == "__main__":
    daily_flights.serve(name="publish", cron="0 6 * * *")
