"""What ``pkdp plan`` asks, computes and prints."""

from __future__ import annotations

__all__: list[str] = []
