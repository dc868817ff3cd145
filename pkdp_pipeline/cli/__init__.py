"""The command line: commands only."""

from __future__ import annotations

__all__: list[str] = []
