"""Attackers, one by one: who they are, and how much each of them learns from a mechanism as it is defined.

A certificate says that no declared attacker learns more than δ(ε). Here are declared attackers, and what each of them
learns, enumerated exactly, by tables of floats, or simulated with a confidence bound, by code that shares nothing with
`pkdp_pipeline.theorems`. `docs/verify.md` says what is tried and what a passed trial means.
"""

from __future__ import annotations

__all__: list[str] = []
