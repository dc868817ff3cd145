"""The theorems certificates rest on, by key: what they are called and where they are proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["LEAKAGE_PAPER", "PAPER", "THEOREMS", "Theorem"]

PAPER = 'D. Desfontaines, E. Mohammadi, E. Krahmer and D. Basin, "Differential privacy with partial knowledge"'
LEAKAGE_PAPER = 'K. Ligett, C. Peale and O. Reingold, "Bounded-leakage differential privacy", FORC 2020'


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """One result: its key, its name, and where statement and proof can be read."""

    key: str
    title: str
    citation: str


THEOREMS: Mapping[str, Theorem] = MappingProxyType(
    {
        theorem.key: theorem
        for theorem in (
            Theorem(
                key="thresholding",
                title="Theorem A: thresholding is dominated by waiting times",
                citation=f"docs/mathematics.md, section 4; sharpens Theorem 4 and Proposition 8 of {PAPER}",
            ),
            Theorem(
                key="thresholding_complement",
                title="Theorem A for the people who are not counted",
                citation=f"docs/mathematics.md, section 4; sharpens Theorem 4 and Proposition 8 of {PAPER}",
            ),
            Theorem(
                key="counting",
                title="Lemmas 1 to 3: exact counts against an attacker in a box of probabilities",
                citation=f"docs/mathematics.md, sections 1 to 3; sharpens Theorem 3 of {PAPER}",
            ),
            Theorem(
                key="noisy_counting",
                title="Lemmas 1 to 3 on the sum of the count and its noise",
                citation=f"docs/mathematics.md, sections 1 to 3 and 6; section 5.2 of {PAPER}",
            ),
            Theorem(
                key="histogram_presence",
                title="Theorem B, presence: a k-anonymous histogram hides whether a person is there",
                citation=f"docs/mathematics.md, section 5; replaces Theorem 5 of {PAPER}",
            ),
            Theorem(
                key="histogram_value",
                title="Theorem B, value: a k-anonymous histogram hides the cell where absence is possible",
                citation=f"docs/mathematics.md, section 5; replaces Theorem 5 of {PAPER}",
            ),
            Theorem(
                key="histogram_between",
                title="Theorem C, value: a k-anonymous histogram hides the cell, nothing assumed about absence",
                citation=f"docs/mathematics.md, section 5; replaces Theorem 5 of {PAPER}",
            ),
            Theorem(
                key="options",
                title="Exact counts of several options hide which one a person chose",
                citation=f"docs/mathematics.md, section 5; Corollary 1 of {PAPER}",
            ),
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
            ),
            Theorem(
                key="leaked",
                title="What follows from who is present is the same in two lives that differ in the cell",
                citation=f"docs/leakage.md, section 4; Example 3 of {LEAKAGE_PAPER}",
            ),
            Theorem(
                key="disjoint_units",
                title="Rule 1: parts about different people",
                citation=f"docs/composition.md, rule 1; Proposition 9 of {PAPER}",
            ),
            Theorem(
                key="independent_given_habits",
                title="Rule 2: independent given habits, losses convolved",
                citation="docs/composition.md, rule 2",
            ),
            Theorem(
                key="one_day_protected",
                title="Rule 3: one day protected",
                citation="docs/composition.md, rule 3",
            ),
            Theorem(
                key="bounded_dependence",
                title="Rule 4: bounded dependence on all earlier releases",
                citation=f"docs/composition.md, rule 4; sharpens Theorem 6 of {PAPER}",
            ),
            Theorem(
                key="worst_case_parts",
                title="Rules 5 and 6: guarantees against any attacker add up",
                citation="docs/composition.md, rules 5 and 6",
            ),
            Theorem(
                key="same_people",
                title="Rule 7: an exact count beside noised releases about the same people",
                citation="docs/composition.md, rule 7",
            ),
            Theorem(
                key="once_per_unit",
                title="Rule 8: everybody appears once",
                citation="docs/composition.md, rule 8",
            ),
            Theorem(
                key="bounded_sensitivity",
                title="Rule 9: noised counts that one record changes little",
                citation=(
                    'docs/composition.md, rule 9; sharpens Theorems 4 and 5 of C. Dwork, "Differential privacy", '
                    "ICALP 2006"
                ),
            ),
        )
    }
)
