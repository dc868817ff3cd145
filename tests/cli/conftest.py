"""Commands and extras read files as jobs do."""

from __future__ import annotations

from one_duckdb import one_duckdb

__all__ = ["one_duckdb"]
