"""Reading a job file; every complaint names the file, the key, the rule and the fix.

It never names the value, which may be a password. Paths become absolute; some must not lie inside others.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.jobs.environment import public_address
from pkdp_pipeline.jobs.expectations import check_expectations
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.source_tables import PostgresSourceTable
from pkdp_pipeline.releases.complaints import complaints, text_of, toml_of


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
    content = toml_of(text, f"the job file {str(file)!r}")
    wrong: list[str] = []
    try:
        job = Job.model_validate(content, context=file.resolve().parent)
        wrong += misplaced(job)
        job.publications(date(2000, 1, 1))  # any date: a question is checked without data
        check_expectations(job.checks)
    except ValidationError as error:
        wrong += complaints(error, tuple(Job.model_fields))
    except (ArgumentError, ConfigError) as error:
        wrong.append(str(error))
    if wrong:
        raise ConfigError("\n  ".join([f"the job file {str(file)!r} cannot be used:", *wrong]))
    return job.read_from(file.absolute(), _digest(content, job))


def job_text(file: Path) -> str:
    """Return the text of a job file.

    Raises
    ------
    ConfigError
        If it cannot be read, or is no text.
    """
    return text_of(file, f"the job file {str(file)!r}")


def _digest(said: dict[str, Any], job: Job) -> str:
    """Return the hash of what a job says, its paths as written, and of its suite of expectations."""
    content = Job.model_validate(said).model_dump(mode="json", by_alias=True)
    if job.checks.expectations is not None:
        content["suite"] = hashlib.sha256(Path(job.checks.expectations).read_bytes()).hexdigest()
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def misplaced(job: Job) -> list[str]:
    """Return what is wrong with where the files of a job lie, which has absolute paths; one line for each."""
    source, output = job.source, job.output
    kept = None if job.retention is None else job.retention.directory
    beside = [
        ("retention.directory", kept, "output.directory", output.directory),
        ("output.directory", output.directory, "retention.directory", kept),
        ("output.duckdb", output.duckdb, "retention.directory", kept),
    ]
    if job.records is not None:
        places = (("records.directory", job.records.directory), ("records.lineage", job.records.lineage))
        beside += [(key, place, "output.directory", output.directory) for key, place in places]
    found = [
        f"{key}: lies inside {other}, and what is private must not lie where the public is: put one beside the other."
        for key, place, other, folder in beside
        if place and folder and Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))
    ]
    read = {os.path.realpath(file) for file in source.own_files()}
    ledger = "" if "://" in job.ledger else os.path.realpath(job.ledger)
    written = "" if output.duckdb is None else os.path.realpath(output.duckdb)
    same = [
        ("output.duckdb", "source", written in read),
        ("ledger", "source", ledger in read),
        ("output.duckdb", "ledger", bool(written) and written == ledger),
    ]
    found += [f"{key}: is the {other}'s file: write another." for key, other, is_same in same if is_same]
    if isinstance(source, PostgresSourceTable) and output.postgres is not None and source.table is not None:
        schema, _, table = source.table.rpartition(".")
        together = public_address(source.postgres) == public_address(output.postgres)
        if together and (schema or "public") == (output.schema_ or "public"):
            found += [
                f"release[{number}].name: its table {release.name!r} would replace the source's: rename the release, "
                "or write another schema under [output]."
                for number, release in enumerate(job.release, 1)
                if release.name == table
            ]
    return found
