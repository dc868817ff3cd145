"""The theorems certificates rest on, by key: their names, their proofs, whom they hold against, what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.wording import percent

__all__ = ["LEAKAGE_PAPER", "PAPER", "THEOREMS", "Knowledge", "Theorem"]

Knowledge = Literal["known", "p_max", "p_max_between", "unknown"]
"""The attacker's fields on which a theorem's number can rest."""

PAPER = 'D. Desfontaines, E. Mohammadi, E. Krahmer and D. Basin, "Differential privacy with partial knowledge"'
LEAKAGE_PAPER = 'K. Ligett, C. Peale and O. Reingold, "Bounded-leakage differential privacy", FORC 2020'


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """One result, and all that is said of it.

    Parameters
    ----------
    key, title : str
    citation : str
        Where statement and proof can be read.
    against : callable or None
        Whom it holds against, in words, for an attacker; None for a theorem that assumes nothing of the attacker.
    assumes : tuple of str
        What else it assumes, as plain sentences.
    protection : str
        What it protects and what not, where that is not what the mechanism says.
    rests_on : tuple of {"known", "p_max", "p_max_between", "unknown"}
        The fields that its number rests on. One that rests on ``unknown`` lets the attacker know everybody else.
    averages : bool
        Whether it averages over how many of the merely known people count.
    told_absent : bool
        Whether ``p_max`` is about somebody who is told that a person is absent or in a given cell.
    reveals_who : bool
        Whether its proof lets the attacker see who is present.
    hides_presence_too : bool
        Whether its dominating pair for the value dominates that for presence as well.
    is_rule : bool
        Whether it adds certificates up.
    """

    key: str
    title: str
    citation: str
    against: Callable[[AttackerModel], str] | None = None
    assumes: tuple[str, ...] = ()
    protection: str = ""
    rests_on: tuple[Knowledge, ...] = ()
    averages: bool = False
    told_absent: bool = False
    reveals_who: bool = False
    hides_presence_too: bool = False
    is_rule: bool = False


def _others(number: int) -> str:
    return "1 other" if number == 1 else f"{number} others"


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"


def _independent(attacker: AttackerModel) -> str:
    """Return the start of every description of an attacker about whom something is assumed."""
    if attacker.dependent is None:
        return "anyone for whom people's records are independent"
    return f"anyone for whom records are independent from one {attacker.dependent} to another"


def _knows(attacker: AttackerModel, where: str) -> str:
    """Say how many people the attacker knows or controls.

    Somebody who is merely known is there only with some probability before the attacker learns it: a bound that
    averages over that says nothing about an attacker who is sure of as many who are there.
    """
    if attacker.known == 0:
        return f"knows nobody {where}"
    number = _people(attacker.known)
    if attacker.influence == "active":
        return f"knows or controls at most {number} {where}"
    return (
        f"knows the records of at most {number}, chosen for reasons unrelated to these records (δ includes the chance "
        "of what they say),"
    )


def _beforehand(attacker: AttackerModel) -> str:
    """Say of those who are merely known what they were to the attacker before: else they may be there for certain."""
    if attacker.known == 0 or attacker.influence == "active":
        return ""
    them = "that person" if attacker.known == 1 else f"those {attacker.known}"
    return f", which held of {them} beforehand too"


def _another(attacker: AttackerModel) -> str:
    return "another person" if attacker.known == 0 else "somebody else"


def _bounded(attacker: AttackerModel) -> str:
    if attacker.unknown_max is None:
        return ""
    are = "is" if attacker.unknown_max == 1 else "are"
    return f" (and at most {_others(attacker.unknown_max)} {are} unknown to them)"


def _thresholding(attacker: AttackerModel) -> str:
    sure = f" and is never more than {percent(attacker.p_max)} sure that {_another(attacker)} is in the group"
    sure += _beforehand(attacker)
    # Whoever may be certain is bounded by the number of unknown people alone.
    return (
        f"{_independent(attacker)}, who {_knows(attacker, 'in the group')}{'' if attacker.p_max == 1.0 else sure}"
        f"{_bounded(attacker)}; they may know who is not in it"
    )


def _thresholding_complement(attacker: AttackerModel) -> str:
    sure = f" and is always at least {percent(attacker.p_min, up=True)} sure that {_another(attacker)} is in the group"
    sure += _beforehand(attacker)
    return (
        f"{_independent(attacker)}, who {_knows(attacker, 'outside the group')}{'' if attacker.p_min == 0.0 else sure}"
        f"{_bounded(attacker)}; they may know who is in it"
    )


def _counting(attacker: AttackerModel) -> str:
    return (
        f"{_independent(attacker)}, and who is uncertain about at least {_others(attacker.unknown or 0)}: between "
        f"{percent(attacker.p_min, up=True)} and {percent(attacker.p_max)} sure that each is in the group; they may "
        "know everybody else"
    )


def _through_absence(attacker: AttackerModel) -> str:
    return (
        f"{_independent(attacker)}, who {_knows(attacker, 'in the table')} and, told that {_another(attacker)} is "
        f"absent or in a given cell, is at most {percent(attacker.p_max)} sure that it is the cell"
        f"{_beforehand(attacker)}{_bounded(attacker)}; they may know who is absent, but no exact total of those "
        "present is published, nor anything from which it follows"
    )


def _between(attacker: AttackerModel) -> str:
    # Known people move the thresholds of both cells by as many, whether they are controlled or merely known.
    knows = f"knows the cells of at most {_people(attacker.known)}"
    if attacker.known == 0:
        knows = "knows the cell of nobody"
    elif attacker.influence == "active":
        knows = _knows(attacker, "in the table")
    return (
        f"{_independent(attacker)}, who {knows} and, told that {_another(attacker)} is in one of two cells, is at most "
        f"{percent(attacker.p_max_between)} sure which{_bounded(attacker)}; they may know who is present and how many "
        "people there are"
    )


def _options(attacker: AttackerModel) -> str:
    return (
        f"{_independent(attacker)}, and who is uncertain about at least {_others(attacker.unknown or 0)}: each chooses "
        f"every option with probability at least {percent(attacker.p_min, up=True)}; they may know what everybody "
        "else chose"
    )


_TOLD_ABSENT = (
    "p_max is a conditional probability about the published cells, after any binning: nobody's absence is so "
    "unlikely that being told 'this cell or absent' would settle it."
)

_RULES = (
    (
        "disjoint_units",
        "Rule 1: parts about different people",
        f"docs/composition.md, rule 1; Proposition 9 of {PAPER}",
    ),
    ("independent_given_habits", "Rule 2: independent given habits, losses convolved", "docs/composition.md, rule 2"),
    ("one_day_protected", "Rule 3: one day protected", "docs/composition.md, rule 3"),
    (
        "bounded_dependence",
        "Rule 4: bounded dependence on all earlier releases",
        f"docs/composition.md, rule 4; sharpens Theorem 6 of {PAPER}",
    ),
    ("worst_case_parts", "Rules 5 and 6: guarantees against any attacker add up", "docs/composition.md, rules 5 and 6"),
    (
        "same_people",
        "Rule 7: an exact count beside noised releases about the same people",
        "docs/composition.md, rule 7",
    ),
    ("once_per_unit", "Rule 8: everybody appears once", "docs/composition.md, rule 8"),
    (
        "bounded_sensitivity",
        "Rule 9: noised counts that one record changes little",
        ('docs/composition.md, rule 9; sharpens Theorems 4 and 5 of C. Dwork, "Differential privacy", ICALP 2006'),
    ),
)

THEOREMS: Mapping[str, Theorem] = MappingProxyType(
    {
        theorem.key: theorem
        for theorem in (
            Theorem(
                key="thresholding",
                title="Theorem A: thresholding is dominated by waiting times",
                citation=f"docs/mathematics.md, section 4; sharpens Theorem 4 and Proposition 8 of {PAPER}",
                against=_thresholding,
                rests_on=("known", "p_max"),
                averages=True,
            ),
            Theorem(
                key="thresholding_complement",
                title="Theorem A for the people who are not counted",
                citation=f"docs/mathematics.md, section 4; sharpens Theorem 4 and Proposition 8 of {PAPER}",
                against=_thresholding_complement,
                rests_on=("known",),
                averages=True,
            ),
            Theorem(
                key="counting",
                title="Lemmas 1 to 3: exact counts against an attacker in a box of probabilities",
                citation=f"docs/mathematics.md, sections 1 to 3; sharpens Theorem 3 of {PAPER}",
                against=_counting,
                rests_on=("unknown",),
            ),
            Theorem(
                key="noisy_counting",
                title="Lemmas 1 to 3 on the sum of the count and its noise",
                citation=f"docs/mathematics.md, sections 1 to 3 and 6; section 5.2 of {PAPER}",
                against=_counting,
                rests_on=("unknown",),
            ),
            Theorem(
                key="histogram_presence",
                title="Theorem B, presence: a k-anonymous histogram hides whether a person is there",
                citation=f"docs/mathematics.md, section 5; replaces Theorem 5 of {PAPER}",
                against=_through_absence,
                assumes=(_TOLD_ABSENT,),
                rests_on=("known", "p_max"),
                averages=True,
                told_absent=True,
            ),
            Theorem(
                key="histogram_value",
                title="Theorem B, value: a k-anonymous histogram hides the cell where absence is possible",
                citation=f"docs/mathematics.md, section 5; replaces Theorem 5 of {PAPER}",
                against=_through_absence,
                assumes=(_TOLD_ABSENT,),
                rests_on=("known", "p_max"),
                averages=True,
                told_absent=True,
                hides_presence_too=True,
            ),
            Theorem(
                key="histogram_between",
                title="Theorem C, value: a k-anonymous histogram hides the cell, nothing assumed about absence",
                citation=f"docs/mathematics.md, section 5; replaces Theorem 5 of {PAPER}",
                against=_between,
                assumes=("Nothing is assumed about absence; totals may be published beside the table.",),
                rests_on=("known", "p_max_between"),
                reveals_who=True,
            ),
            Theorem(
                key="options",
                title="Exact counts of several options hide which one a person chose",
                citation=f"docs/mathematics.md, section 5; Corollary 1 of {PAPER}",
                against=_options,
                rests_on=("unknown",),
                reveals_who=True,
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
                against=_counting,
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
            *(Theorem(key=key, title=title, citation=citation, is_rule=True) for key, title, citation in _RULES),
        )
    }
)
