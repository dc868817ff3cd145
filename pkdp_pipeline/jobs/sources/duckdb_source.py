"""Parquet files read through an embedded DuckDB of their own."""

from __future__ import annotations

from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.files import files_of, shown
from pkdp_pipeline.jobs.sources.parquet_files import read_parquet
from pkdp_pipeline.jobs.sources.relation_source import RelationSource, connect
from pkdp_pipeline.jobs.sources.source import not_readable_to_its_end

__all__ = ["open_source"]


def open_source(job: Job) -> RelationSource:
    """Return the job's Parquet files, open for reading.

    Raises
    ------
    ConfigError
        If they do not exist, are no Parquet files, or disagree on what the job needs.
    """
    assert isinstance(job.source, FileSourceTable)
    name, files = shown(job.source.files), files_of(job.source.files)
    connection = connect()
    try:
        # A year of days is read from one connection: what the files say about themselves is read once.
        connection.execute("SET parquet_metadata_cache = true")
        relation = read_parquet(connection, files, job)
        return RelationSource(connection, relation, lambda: not_readable_to_its_end(name))
    except BaseException:
        connection.close()
        raise
