"""The engine over Narwhals: one group-count for Polars, PySpark and Ibis, and for whatever Narwhals wraps.

The frame becomes the same rows as in the DuckDB engine: ``u0, u1, …`` (the unit), ``b0, b1, …`` (the cell) and
what the one-cell rule needs. They are aggregated where they are: only counted cells leave the engine.
"""

from __future__ import annotations

__all__: list[str] = []
