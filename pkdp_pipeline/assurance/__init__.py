"""What holds certificates and releases to the truth: attackers, verification and the audit."""

from __future__ import annotations

__all__: list[str] = []
