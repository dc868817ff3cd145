"""What people read in a ledger: its releases, its total and how it comes about, its check, and its exports."""

from __future__ import annotations

__all__: list[str] = []
