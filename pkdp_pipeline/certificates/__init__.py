"""Certificates of one release and of several together: their numbers, their sentences and their JSON."""

from __future__ import annotations

__all__: list[str] = []
