"""Registers ``pkdp plan``."""

from __future__ import annotations

from pkdp_pipeline.plugins import Plugin

_HERE = "pkdp_pipeline.extras.plan"

plugin = Plugin(
    commands={"plan": f"{_HERE}.commands:plan_app"},
    views={"smallest_k": f"{_HERE}:smallest_k", "smallest_release_threshold": f"{_HERE}:smallest_release_threshold"},
)
