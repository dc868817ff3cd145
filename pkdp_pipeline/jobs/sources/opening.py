"""Opening files: with the reader of their format, or with the engine of the job, where a plugin reads files with it."""

from __future__ import annotations

from pkdp_pipeline.jobs.source_tables import FileSourceTable
from pkdp_pipeline.jobs.sources.source import Needs, Source
from pkdp_pipeline.plugins import hook


def open_files(table: FileSourceTable, needs: Needs) -> Source:
    """Return files, open for reading; what reads them is imported now."""
    if needs.engine != "duckdb":
        source: Source = hook("sources", f"files:{needs.engine}")(table, needs)
        return source
    if table.format != "parquet":
        from pkdp_pipeline.jobs.sources.csv_files import CsvSource

        return CsvSource(table, needs.of, needs.period)
    from pkdp_pipeline.jobs.sources.files import open_parquet

    return open_parquet(table, needs)
