"""The declarations, as frozen values: the attacker, what is published, evidence, periods, budgets and predicates."""

from __future__ import annotations

__all__ = ["VERSION"]

#: The version of the library, as written into certificates.
VERSION = "0.3.0"
