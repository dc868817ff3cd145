"""What a terminal shows of a ledger."""

from __future__ import annotations

__all__: list[str] = []
