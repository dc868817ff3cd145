"""Releases inside DuckDB: macros on the curator's connection, and the gate, which is an analyst's connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pkdp_pipeline.duckdb.install import install

if TYPE_CHECKING:
    from pkdp_pipeline.duckdb.gate.gate import Gate

__all__ = ["Gate", "install"]


def __getattr__(name: str) -> Any:
    """Load the gate when it is first used."""
    if name == "Gate":
        from pkdp_pipeline.duckdb.gate.gate import Gate

        return Gate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
