"""Tables of databases as a job file names them: SQL for a name, or for a query as it stands."""

from __future__ import annotations

from pkdp_pipeline.engines.duckdb.statements import quoted
from pkdp_pipeline.jobs.source_tables import DuckDBSourceTable, PostgresSourceTable

__all__ = ["rows_sql"]


def rows_sql(table: DuckDBSourceTable | PostgresSourceTable) -> str:
    """Return SQL that stands for the rows after FROM; a name is taken as it is written, capitals and all."""
    if table.query is not None:
        # A comment at its end must not take the bracket with it.
        return f"({table.query}\n)"
    return ".".join(map(quoted, str(table.table).split(".")))
