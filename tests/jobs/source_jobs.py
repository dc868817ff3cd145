"""Jobs around a source, for tests that only read."""

from __future__ import annotations

from typing import Any

from pkdp_pipeline.jobs.job import Job


def job_of(source: Any, engine: str = "duckdb", **keys: Any) -> Job:
    """Return a job that reads from `source`: its period is the column "at", its unit "n"."""
    content = {
        "dataset": "d",
        "source": source,
        "engine": engine,
        "period": {"column": "at"},
        "unit": "n",
        "ledger": "ledger.sqlite",
        "release": [{"name": "people", "k": 5}],
        "output": {"directory": "out"},
    }
    return Job.model_validate(content | keys)
