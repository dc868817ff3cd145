"""Registers ``pkdp init`` and ``pkdp demo``."""

from __future__ import annotations

from pkdp_pipeline.plugins import Plugin

_HERE = "pkdp_pipeline.extras.start"

plugin = Plugin(commands={"init": f"{_HERE}.commands:init", "demo": f"{_HERE}.commands:demo"})
