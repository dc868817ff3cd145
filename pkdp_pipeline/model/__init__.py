"""The declarations, as frozen values: the attacker, what is published, evidence, periods, budgets and predicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["VERSION", "VIEWS"]

#: The version of the library, as written into certificates.
VERSION = "0.3.0"

#: How values draw and print themselves. The package enters it when it is imported: nothing here knows `display`.
VIEWS: dict[str, Callable[..., Any]] = {}
