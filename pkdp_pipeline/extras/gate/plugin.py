"""Registers ``pkdp gate``."""

from __future__ import annotations

from pkdp_pipeline.plugins import Plugin

plugin = Plugin(commands={"gate": "pkdp_pipeline.extras.gate.commands:gate_app"})
