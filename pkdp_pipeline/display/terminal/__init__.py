"""What commands print with: text, tables and charts for a terminal of any width and any encoding."""

from __future__ import annotations

__all__: list[str] = []
