"""Jobs: a TOML file that says what to publish for each date, and how one date is run."""

from __future__ import annotations

from pkdp_pipeline.jobs.job import Job, load_job
from pkdp_pipeline.jobs.session import JobSession, run_job
from pkdp_pipeline.jobs.steps import JobRelease, JobResult

__all__ = ["Job", "JobRelease", "JobResult", "JobSession", "load_job", "run_job"]
