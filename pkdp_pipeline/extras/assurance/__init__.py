"""Checks of certificates and releases against the truth: attackers, verification and the audit."""

from __future__ import annotations

__all__: list[str] = []
