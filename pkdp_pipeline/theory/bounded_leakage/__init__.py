"""Bounded leakage: what is still promised when something about the same people is known exactly, or leaks.

The theorems as certified numbers, and mechanisms with a leakage on a small universe, exactly. `docs/bounded_leakage.md`
defines, proves and shows them at work. Certificates are conditioned on a leakage elsewhere; nothing here sees data or
reads randomness.
"""

from __future__ import annotations

from pkdp_pipeline.theory.bounded_leakage.composing import (
    advanced_composition,
    along_path,
    basic_composition,
    beside_private_leakage,
    best_composition,
    big_world,
    chained,
    given_leakage,
)
from pkdp_pipeline.theory.bounded_leakage.exponential import ExponentialMechanism
from pkdp_pipeline.theory.bounded_leakage.leakage_pair import LeakagePair, one_record_apart
from pkdp_pipeline.theory.numbers import growth_above, growth_below

__all__ = [
    "ExponentialMechanism",
    "LeakagePair",
    "advanced_composition",
    "along_path",
    "basic_composition",
    "beside_private_leakage",
    "best_composition",
    "big_world",
    "chained",
    "given_leakage",
    "growth_above",
    "growth_below",
    "one_record_apart",
]
