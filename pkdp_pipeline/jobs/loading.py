"""Reading a job file; every complaint names the file, the key and the fix."""

from __future__ import annotations

import os
import tomllib
from datetime import date
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.requests import requests_of
from pkdp_pipeline.jobs.source_tables import FileSourceTable

__all__ = ["load_job"]

_WRITTEN = {
    ("release", "tuple_type"): "must be a list of tables: write [[release]], with two brackets.",
    ("budget", "tuple_type"): "must be a table or a list of tables: write [[budget]], with two brackets.",
    ("evidence", "tuple_type"): 'must be a table or a list of tables: write evidence = { kind = "one_day_protected" }.',
}
"""What to write where the shape of a whole key is wrong."""

_FIELDS = {
    "k": "write k = 50, without a decimal point.",
    "k_complement": "write k_complement = 50, without a decimal point.",
    "release_threshold": "write release_threshold = 50, without a decimal point.",
    "noise": "write noise = { epsilon = 0.5 }.",
}
"""What to write where one value has the wrong type."""


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
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the job file {str(file)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the job file {str(file)!r} is not UTF-8 text.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the job file {str(file)!r} is not valid TOML: {error}.") from error
    try:
        job = Job.model_validate(content).relative_to(file.resolve())
    except ValidationError as error:
        complaints = [_complaint(detail) for detail in error.errors(include_url=False)]
        raise ConfigError("\n".join([f"the job file {str(file)!r} cannot be used:", *complaints])) from None
    if isinstance(job.source, FileSourceTable):
        addresses = any("://" in path for path in job.source.files)
        known = all(path.lower().endswith((".parquet", ".pq", ".csv", ".csv.gz")) for path in job.source.files)
        if not known and job.engine != "spark":
            raise ConfigError(f"the job file {str(file)!r} cannot be used:\n  source: must be a .parquet or .csv file.")
        if addresses and job.engine != "spark":
            raise ConfigError(
                f"the job file {str(file)!r} cannot be used:\n  source: must be a file; addresses are for engine = "
                '"spark".'
            )
    try:
        requests_of(job, date(2000, 1, 1))  # any date: a request is checked without data
    except ArgumentError as error:
        raise ConfigError(f"the job file {str(file)!r} cannot be used:\n  {error}") from error
    return job


def _complaint(detail: ErrorDetails) -> str:
    """Return one line: where in the file, and what is wrong."""
    place = ""
    for step in detail["loc"]:
        place += f"[{step + 1}]" if isinstance(step, int) else f".{step}"
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        message = "is required."
    elif detail["type"] == "union_tag_invalid":
        message = f"kind must be one of {detail['ctx']['expected_tags']}."
    elif detail["type"] == "union_tag_not_found":
        message = 'kind is required: write which evidence it is, such as { kind = "one_day_protected" }.'
    elif hint := _WRITTEN.get((str(detail["loc"][0]) if detail["loc"] else "", detail["type"])):
        message = hint
    elif detail["loc"] and (hint := _FIELDS.get(str(detail["loc"][-1]))):
        message = f"{message.removesuffix('.')}: {hint}"
    return f"  {place.lstrip('.')}: {message}" if place else f"  {message}"
