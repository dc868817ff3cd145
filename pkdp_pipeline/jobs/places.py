"""Where a job's files lie: absolute paths, and what must not lie inside what."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pkdp_pipeline.jobs.environment import public_address
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.source_tables import PostgresSourceTable

__all__ = ["absolute", "misplaced"]


def absolute(job: Job, folder: Path) -> Job:
    """Return the same job with its paths made absolute from the job file's folder."""

    def place(name: str | None) -> str | None:
        return None if name is None else str(folder / name)

    update: dict[str, Any] = {
        "source": job.source.relative_to(folder),
        "ledger": job.ledger if "://" in job.ledger else place(job.ledger),
        "output": job.output.model_copy(
            update={"directory": place(job.output.directory), "duckdb": place(job.output.duckdb)}
        ),
        "checks": job.checks.model_copy(update={"expectations": place(job.checks.expectations)}),
    }
    if job.retention is not None:
        update["retention"] = job.retention.model_copy(update={"directory": place(job.retention.directory)})
    if job.records is not None:
        places = {"directory": place(job.records.directory), "lineage": place(job.records.lineage)}
        update["records"] = job.records.model_copy(update=places)
    return job.model_copy(update=update)


def misplaced(job: Job) -> list[str]:
    """Return what is wrong with where the files of a job lie, which has absolute paths; one line for each."""
    found = [*_private_in_public(job), *_overwritten(job)]
    if job.retention is not None and _inside(job.output.directory, job.retention.directory):
        found.append(
            "output.directory: lies inside retention.directory, which only the curator may read: put it elsewhere."
        )
    return found


def _private_in_public(job: Job) -> list[str]:
    private: dict[str, str | None] = {}
    if job.retention is not None:
        private["retention.directory"] = job.retention.directory
    if job.records is not None:
        private["records.directory"], private["records.lineage"] = job.records.directory, job.records.lineage
    return [
        f"{key}: lies inside output.directory, and what is private would be public: put it beside the output."
        for key, place in private.items()
        if place is not None and _inside(place, job.output.directory)
    ]


def _overwritten(job: Job) -> list[str]:
    found = []
    source, output = job.source, job.output
    read = {os.path.realpath(file) for file in source.own_files()}
    if output.duckdb is not None:
        file = os.path.realpath(output.duckdb)
        if file in read:
            found.append(
                "output.duckdb: is the source's file, and who reads the releases would read the data: write another."
            )
        if "://" not in job.ledger and file == os.path.realpath(job.ledger):
            found.append("output.duckdb: is the ledger's file: write another.")
        if job.retention is not None and _inside(output.duckdb, job.retention.directory):
            found.append("output.duckdb: lies inside retention.directory, which only the curator may read: move it.")
    if "://" not in job.ledger and os.path.realpath(job.ledger) in read:
        found.append("ledger: is the source's file: write another.")
    if isinstance(source, PostgresSourceTable) and output.postgres is not None and source.table is not None:
        schema, _, table = source.table.rpartition(".")
        together = public_address(source.address) == public_address(output.postgres)
        if together and (schema or "public") == (output.schema_ or "public"):
            found += [
                f"release[{number}].name: its table {release.name!r} would replace the source's: rename the release, "
                "or write another schema under [output]."
                for number, release in enumerate(job.release, 1)
                if release.name == table
            ]
    return found


def _inside(place: str, folder: str) -> bool:
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))
