"""Checks: whether a day looks as declared, and a release as asked for."""

from __future__ import annotations

from pkdp_pipeline.jobs.checks.input import CheckedDay, check_input, stated_rules
from pkdp_pipeline.jobs.checks.output import check_output

__all__ = ["CheckedDay", "check_input", "check_output", "stated_rules"]
