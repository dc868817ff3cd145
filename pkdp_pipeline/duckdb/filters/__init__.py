"""SQL filters: read by DuckDB's own parser, never spliced, into the predicate that query strings give as well."""

from pkdp_pipeline.duckdb.filters.reading import from_sql

__all__ = ["from_sql"]
