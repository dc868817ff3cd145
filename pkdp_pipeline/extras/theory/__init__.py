"""The rest of the papers: bounded leakage, readings of a privacy loss, counting queries and printed bounds."""

from __future__ import annotations

__all__: list[str] = []
