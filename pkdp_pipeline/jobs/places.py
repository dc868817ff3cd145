"""Places: which files of a job must not lie inside one another, or be the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.jobs.source_tables import DatabaseTable
from pkdp_pipeline.ledger.postgres import public_address

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.job import Job


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
    problems = [
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
    problems += [f"{key}: is the {other}'s file: write another." for key, other, is_same in same if is_same]
    if isinstance(source, DatabaseTable) and output.postgres is not None and source.table is not None:
        schema, _, table = source.table.rpartition(".")
        together = source.postgres_database == public_address(output.postgres)
        if together and (schema or "public") == (output.schema_ or "public"):
            problems += [
                f"release[{number}].name: its table {release.name!r} would replace the source's: rename the release, "
                "or write another schema under [output]."
                for number, release in enumerate(job.release, 1)
                if release.name == table
            ]
    return problems
