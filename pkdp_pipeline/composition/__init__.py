"""How guarantees add up: one file per rule."""

from __future__ import annotations

__all__: list[str] = []
