"""Query strings: parsed and checked once into a small tree, from which each engine makes its own condition."""

from __future__ import annotations

from pkdp_pipeline.model.predicate.instants import has_offset, no_offset
from pkdp_pipeline.model.predicate.parsing import parse_query
from pkdp_pipeline.model.predicate.tree import (
    Column,
    Comparison,
    Conjunction,
    Disjunction,
    Flag,
    Membership,
    Missing,
    Negation,
    Node,
    Value,
)

__all__ = [
    "Column",
    "Comparison",
    "Conjunction",
    "Disjunction",
    "Flag",
    "Membership",
    "Missing",
    "Negation",
    "Node",
    "Value",
    "has_offset",
    "no_offset",
    "parse_query",
]
