"""Which rows count: one small tree, read from query strings and from SQL, that every engine walks."""

from __future__ import annotations

from pkdp_pipeline.model.predicate.columns import check_families
from pkdp_pipeline.model.predicate.query import from_query
from pkdp_pipeline.model.predicate.tree import (
    FLIPPED,
    Column,
    Condition,
    Conjunction,
    Constant,
    Disjunction,
    Operator,
    Predicate,
    among,
    conjunction,
    disjunction,
)

__all__ = [
    "FLIPPED",
    "Column",
    "Condition",
    "Conjunction",
    "Constant",
    "Disjunction",
    "Operator",
    "Predicate",
    "among",
    "check_families",
    "conjunction",
    "disjunction",
    "from_query",
]
