"""Jobs: a TOML file that says what to publish for each date, and how one date is run."""

from __future__ import annotations

from pkdp_pipeline.jobs.job import Job, load_job
from pkdp_pipeline.jobs.records import JobRelease, JobResult
from pkdp_pipeline.jobs.session import JobSession, run_job

__all__ = ["Job", "JobRelease", "JobResult", "JobSession", "load_job", "run_job"]
