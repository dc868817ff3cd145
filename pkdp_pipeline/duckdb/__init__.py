"""Releases inside DuckDB: macros on the curator's connection, and the gate for people who may not see the data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.duckdb.curator import install

if TYPE_CHECKING:
    from pkdp_pipeline.duckdb.gate.client import connect
    from pkdp_pipeline.duckdb.gate.gate import Gate

__all__ = ["Gate", "connect", "install"]

_LATER = {"Gate": "pkdp_pipeline.duckdb.gate.gate", "connect": "pkdp_pipeline.duckdb.gate.client"}


def __getattr__(name: str) -> Any:
    """Load the gate when it is first used."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
