"""SQL filters: parsed, never spliced, and written as the one query string that all equal spellings share."""

from pkdp_pipeline.duckdb.filters.where import to_where

__all__ = ["to_where"]
