"""The embedded DuckDB engine, over pandas frames and over DuckDB relations.

Both kinds of frame become the same rows: unit columns ``u0, u1, …``, a whole number ``cell`` for the cell,
and what the one-cell rule needs. `statements` counts them in one aggregate query.
"""

from __future__ import annotations

__all__: list[str] = []
