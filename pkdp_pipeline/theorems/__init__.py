"""The theorems: certified upper bounds on δ(ε), each with the lower bound an attacker attains."""

from __future__ import annotations

from pkdp_pipeline.model.mechanisms import Protects
from pkdp_pipeline.theorems.bound import Applied, Bound, Knowledge, Theorem, WorstCase
from pkdp_pipeline.theorems.theorems import THEOREMS, Applicable, bounds_of

__all__ = [
    "THEOREMS",
    "Applicable",
    "Applied",
    "Bound",
    "Knowledge",
    "Protects",
    "Theorem",
    "WorstCase",
    "bounds_of",
]
