"""Registers ``pkdp plan``."""

from __future__ import annotations

from pkdp_pipeline.plugins import Plugin

_HERE = "pkdp_pipeline.extras.plan"
_PLANNING = f"{_HERE}.planning"

plugin = Plugin(
    commands={"plan": f"{_HERE}.commands:plan_app"},
    views={
        "rule": f"{_HERE}.rules:print_rule",
        "rules": f"{_HERE}.rules:print_rules",
        "smallest_k": f"{_PLANNING}:smallest_k",
        "smallest_release_threshold": f"{_PLANNING}:smallest_release_threshold",
    },
)
