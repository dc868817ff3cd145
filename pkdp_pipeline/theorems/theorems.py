"""The registry of all theorems that certificates rest on, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pkdp_pipeline.theorems.record import LEAKAGE_PAPER, PAPER, Theorem
from pkdp_pipeline.theorems.thresholds import THRESHOLDS
from pkdp_pipeline.theorems.uncertainty import UNCERTAINTY, against_counting

_DWORK = 'C. Dwork, "Differential privacy", ICALP 2006'
_RULES = (
    ("disjoint_units", "Rule 1", "parts about different people", f"; Proposition 9 of {PAPER}"),
    ("independent_given_habits", "Rule 2", "independent given habits, losses convolved", ""),
    ("one_day_protected", "Rule 3", "one day protected", ""),
    ("bounded_dependence", "Rule 4", "bounded dependence on all earlier releases", f"; sharpens Theorem 6 of {PAPER}"),
    ("worst_case_parts", "Rules 5 and 6", "guarantees against any attacker add up", ""),
    ("same_people", "Rule 7", "an exact count beside noised releases about the same people", ""),
    ("once_per_unit", "Rule 8", "everybody appears once", ""),
    (
        "bounded_sensitivity",
        "Rule 9",
        "noised counts that one record changes little",
        f"; sharpens Theorems 4 and 5 of {_DWORK}",
    ),
)
"""Key, number, what is said, and where else it can be read."""

_REGISTRY: dict[str, Theorem] = {
    theorem.key: theorem
    for theorem in (
        *THRESHOLDS,
        *UNCERTAINTY,
        Theorem(
            key="noise",
            title="Two-sided geometric noise against any attacker",
            citation=f"docs/mathematics.md, section 6; Definition 19 of {PAPER}",
        ),
        Theorem(
            key="noise_beside_leakage",
            title="Noise beside what leaks: Lemma 7, Theorems 4, 9 and 12 of bounded-leakage privacy",
            citation=f"docs/leakage.md, section 3; sharpens Theorem 4 of {LEAKAGE_PAPER}",
        ),
        Theorem(
            key="counting_beside_leakage",
            title="Lemmas 1 to 3 beside a leakage that is itself differentially private",
            citation="docs/leakage.md, section 2",
            against=against_counting,
            rests_on=("unknown",),
        ),
        Theorem(
            key="leaked",
            title="What follows from who is present is the same in two lives that differ in the cell",
            citation=f"docs/leakage.md, section 4; Example 3 of {LEAKAGE_PAPER}",
            protection=(
                "This release is how many people are present, which may be known anyhow: it does not tell "
                "which cell a person is in, and it does not protect whether she is included."
            ),
        ),
        *(
            Theorem(
                key=key, title=f"{rule}: {said}", citation=f"docs/composition.md, {rule.lower()}{also}", is_rule=True
            )
            for key, rule, said, also in _RULES
        ),
    )
}
THEOREMS: Mapping[str, Theorem] = MappingProxyType(_REGISTRY)
