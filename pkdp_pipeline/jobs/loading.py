"""Reading a job file; every complaint names the file, the key and the fix."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.jobs.complaints import complaints
from pkdp_pipeline.jobs.expectations import check_expectations
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.places import absolute, misplaced
from pkdp_pipeline.jobs.requests import requests_of

__all__ = ["job_text", "load_job", "read_job"]


def load_job(path: str | os.PathLike[str]) -> Job:
    """Read and check a job file, without looking at any data.

    Parameters
    ----------
    path : path-like
        A TOML file.

    Returns
    -------
    Job
        With absolute paths.

    Raises
    ------
    ConfigError
        If the file cannot be read, is not TOML, or says something a job cannot mean.
    """
    file = Path(path)
    return read_job(job_text(file), file)


def read_job(text: str, file: Path) -> Job:
    """Read and check the text of a job file as if `file` held it; its paths are relative to that.

    Raises
    ------
    ConfigError
        See `load_job`.
    """
    job, wrong = _read(file, _content(text, file))
    if job is None or wrong:
        raise ConfigError("\n  ".join([f"the job file {str(file)!r} cannot be used:", *wrong]))
    return job


def job_text(file: Path) -> str:
    """Return the text of a job file.

    Raises
    ------
    ConfigError
        If it cannot be read, or is no text.
    """
    problem = ""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = f"cannot be read: {error.strerror}."
    except UnicodeDecodeError:
        problem = "is not UTF-8 text."
    raise ConfigError(f"the job file {str(file)!r} {problem}")


def _content(text: str, file: Path) -> dict[str, Any]:
    """Return what the text says; an error keeps nothing of it, because it can hold passwords."""
    problem = ""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = f"is not valid TOML: {error}."
    except (ValueError, RecursionError):
        problem = "is not valid TOML: it has a number that is too long, or is nested too deeply."
    raise ConfigError(f"the job file {str(file)!r} {problem}")


def _read(file: Path, content: dict[str, Any]) -> tuple[Job | None, list[str]]:
    """Return the job and what is wrong with it."""
    try:
        said = Job.model_validate(content)
    except ValidationError as error:
        return None, complaints(error)
    job = absolute(said, file.resolve().parent)
    wrong = misplaced(job)
    try:
        requests_of(job, date(2000, 1, 1))  # any date: a request is checked without data
        check_expectations(job.checks)
    except (ArgumentError, ConfigError) as error:
        wrong.append(str(error))
    if not wrong:
        job = job.read_from(file.absolute(), _digest(said, job))
    return job, wrong


def _digest(said: Job, job: Job) -> str:
    """Return the hash of what a job says, its paths as written, and of its suite of expectations."""
    content = said.model_dump(mode="json", by_alias=True)
    if job.checks.expectations is not None:
        content["suite"] = hashlib.sha256(Path(job.checks.expectations).read_bytes()).hexdigest()
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
