"""What is declared, as frozen values: the attacker, what is published, evidence, periods, budgets and predicates."""

from __future__ import annotations

__all__: list[str] = []
