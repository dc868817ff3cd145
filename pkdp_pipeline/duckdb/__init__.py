"""Releases inside DuckDB: macros on the curator's connection, and the gate for people who may not see the data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pkdp_pipeline.extras.gate.client import connect
    from pkdp_pipeline.extras.gate.gate import Gate
    from pkdp_pipeline.sql.curator import install

__all__ = ["Gate", "connect", "install"]

_HOMES = {"Gate": "extras.gate.gate", "connect": "extras.gate.client", "install": "sql.curator"}


def __getattr__(name: str) -> Any:
    """Load what is used when it is first used: a gate's workers need little."""
    if name in _HOMES:
        return getattr(import_module(f"pkdp_pipeline.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
