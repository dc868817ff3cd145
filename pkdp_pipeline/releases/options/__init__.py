"""What files may say about attackers, evidence and budgets, read strictly."""

from __future__ import annotations

__all__: list[str] = []
