"""Places: which files of a job must not lie inside one another, or be the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.jobs.source_tables import DatabaseTable
from pkdp_pipeline.ledger.postgres import public_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pkdp_pipeline.jobs.source_tables import SourceTable
    from pkdp_pipeline.jobs.tables import OutputTable, RecordsTable, RetentionTable


def misplaced(
    source: SourceTable,
    output: OutputTable,
    retention: RetentionTable | None,
    records: RecordsTable | None,
    ledger: str,
    releases: Sequence[str],
) -> list[str]:
    """Return what is wrong with where the files of a job lie, which has absolute paths; one line for each.

    `releases`: their names.
    """
    kept = None if retention is None else retention.directory
    beside = [
        ("retention.directory", kept, "output.directory", output.directory),
        ("output.directory", output.directory, "retention.directory", kept),
        ("output.duckdb", output.duckdb, "retention.directory", kept),
    ]
    if records is not None:
        places = (("records.directory", records.directory), ("records.lineage", records.lineage))
        beside += [(key, place, "output.directory", output.directory) for key, place in places]
    problems = [
        f"{key}: lies inside {other}, and what is private must not lie where the public is: put one beside the other."
        for key, place, other, folder in beside
        if place and folder and Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))
    ]
    read = {os.path.realpath(file) for file in source.own_files()}
    ledger_file = "" if "://" in ledger else os.path.realpath(ledger)
    written = "" if output.duckdb is None else os.path.realpath(output.duckdb)
    same = [
        ("output.duckdb", "source", written in read),
        ("ledger", "source", ledger_file in read),
        ("output.duckdb", "ledger", bool(written) and written == ledger_file),
    ]
    problems += [f"{key}: is the {other}'s file: write another." for key, other, is_same in same if is_same]
    if isinstance(source, DatabaseTable) and output.postgres is not None and source.table is not None:
        schema, _, table = source.table.rpartition(".")
        together = source.postgres_database == public_address(output.postgres)
        if together and (schema or "public") == (output.schema_ or "public"):
            problems += [
                f"release[{number}].name: its table {name!r} would replace the source's: rename the release, "
                "or write another schema under [output]."
                for number, name in enumerate(releases, 1)
                if name == table
            ]
    return problems
