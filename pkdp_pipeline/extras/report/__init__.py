"""Everything that people look at: figures, reports, and text on a terminal."""

from __future__ import annotations

__all__: list[str] = []
