"""Registers ``pkdp verify`` and ``pkdp audit``, and the check of a whole ledger."""

from __future__ import annotations

from pkdp_pipeline.plugins import Plugin

_HERE = "pkdp_pipeline.extras.assurance"

plugin = Plugin(
    commands={"verify": f"{_HERE}.commands:verify", "audit": f"{_HERE}.commands:audit_app"},
    views={"ledger.check": f"{_HERE}.verification:check"},
)
