"""The registry of all theorems that certificates rest on, and which apply: mechanism × attacker × aim → bounds."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import flint

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel, Leakage, Lives
from pkdp_pipeline.model.evidence import OncePerUnit
from pkdp_pipeline.model.mechanisms import (
    Count,
    Histogram,
    Mechanism,
    Protects,
    Sum,
    cells_per_unit,
    mechanism_name,
    noised_below,
    within_table,
    without_display,
)
from pkdp_pipeline.model.wording import Worded
from pkdp_pipeline.theorems.bound import LEAKAGE_PAPER, PAPER, Applied, Bound, Theorem, WorstCase
from pkdp_pipeline.theorems.numerics import ball_above, float_below
from pkdp_pipeline.theorems.reached import Reached
from pkdp_pipeline.theorems.rules import RECORDS
from pkdp_pipeline.theorems.thresholding import Threshold, Thresholding
from pkdp_pipeline.theorems.words import NOISE, RULES, counting
from pkdp_pipeline.theorems.worst_case import (
    BesidePrivate,
    GivenDependent,
    Leaked,
    NoiseCurve,
    SumCurve,
    WorstBesidePrivate,
)

_DWORK = '; sharpens Theorems 4 and 5 of C. Dwork, "Differential privacy", ICALP 2006'
_RULES = (
    ("disjoint_units", "Rule 1", "parts about different people", f"; Proposition 9 of {PAPER}"),
    ("independent_given_habits", "Rule 2", "independent given habits, losses convolved", ""),
    ("independent_draws", "Rule 12", "secret samples drawn anew, losses convolved", ""),
    ("one_day_protected", "Rule 3", "one day protected", ""),
    ("bounded_dependence", "Rule 4", "bounded dependence on all earlier releases", f"; sharpens Theorem 6 of {PAPER}"),
    ("worst_case_parts", "Rules 5 and 6", "guarantees against any attacker add up", ""),
    ("same_people", "Rule 7", "an exact count beside noised releases about the same people", ""),
    (OncePerUnit.key, "Rule 8", "everybody appears once", ""),
    ("bounded_sensitivity", "Rule 9", "noised counts that one record changes little", _DWORK),
    ("same_table", "Rule 11", "one table, certified for several attackers", ""),
)
"""Key, number, what is said, and where else it can be read."""

_REGISTRY: dict[str, Theorem] = {
    theorem.key: theorem
    for theorem in (
        *RECORDS,
        Theorem(
            key="noise",
            title="Two-sided geometric noise against any attacker",
            citation=f"docs/mathematics.md, section 6; Definition 19 of {PAPER}",
            formal=NOISE,
        ),
        Theorem(
            key="sums",
            title="Two-sided geometric noise on sums of clamped contributions, against any attacker",
            citation="docs/mathematics.md, section 6, sums",
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
            against=counting,
            rests_on=("unknown",),
        ),
        Theorem(
            key="leaked",
            title="A number that depends only on who is present is the same in two lives that differ in the cell",
            citation=f"docs/leakage.md, section 4; Example 3 of {LEAKAGE_PAPER}",
            protection=(
                "This release is the number of people present, which may be known anyhow: it does not tell "
                "which cell a person is in, and it does not protect whether she is included."
            ),
        ),
        *(
            Theorem(
                key=key,
                title=f"{rule}: {said}",
                citation=f"docs/composition.md, {rule.lower()}{also}",
                formal=RULES.get(key),
                is_rule=True,
            )
            for key, rule, said, also in _RULES
        ),
    )
}
THEOREMS: Mapping[str, Theorem] = MappingProxyType(_REGISTRY)


@dataclass(frozen=True, slots=True)
class Surviving:
    """Which theorems are left for an attacker, and what becomes of their numbers.

    `noised`: whether the release has noise, on which a leakage can depend.
    """

    attacker: AttackerModel
    noised: bool

    @property
    def theorems(self) -> frozenset[str]:
        """The keys of the theorems on partial knowledge that are left."""
        leaks, dependent = self.attacker.leakage, self.attacker.dependent is not None
        on_noise = self.noised and any(leak.is_dependent for leak in leaks)
        present = not on_noise and all(leak.tells == "people_present" for leak in leaks)
        private = not on_noise and all(leak.is_private for leak in leaks)
        conditional = self.attacker.secret == "conditional"
        sampled = self.attacker.sampled is not None

        return frozenset(
            key
            for key in _partial(sampled)
            if (not leaks or (present and THEOREMS[key].reveals_who) or (private and THEOREMS[key].beside_private))
            and (not dependent or (conditional and _allows_known(THEOREMS[key])))
        )

    def beside(self, bound: Bound) -> Bound:
        """Return a bound on the release and all leakages together, for one whose theorem is left."""
        if bound.theorem != "counting":
            return bound
        for leak in self.attacker.leakage:
            # The others' records given the count can be coupled to differ in one; the target's is another.
            assert leak.epsilon is not None
            # Two steps of (ε, δ) have (1 + e^ε) δ.
            delta = ball_above((1 + flint.arb(leak.epsilon).exp()) * leak.delta) if leak.delta > 0.0 else 0.0
            bound = BesidePrivate(
                theorem="counting_beside_leakage", base=bound, epsilon=2.0 * leak.epsilon, delta=min(1.0, delta)
            )
        return bound

    def against_anyone(self, curve: NoiseCurve | SumCurve) -> WorstCase:
        """Return what noise gives beside all leakages, given those that are not private."""
        leaks = self.attacker.leakage
        if not leaks:
            return curve
        worst: WorstCase = replace(curve, theorem="noise_beside_leakage")
        for leak in leaks:
            if leak.is_dependent:
                worst = GivenDependent(
                    theorem=worst.theorem, base=worst, epsilon=leak.dependence_epsilon, delta=leak.dependence_delta
                )
        for leak in leaks:
            if leak.epsilon is not None:
                worst = WorstBesidePrivate(theorem=worst.theorem, base=worst, epsilon=leak.epsilon, delta=leak.delta)
        return worst

    @property
    def obstacle(self) -> str | None:
        """Why theorems on partial knowledge fell away, in words; None where none did."""
        attacker = self.attacker
        if self.theorems == _partial(attacker.sampled is not None):
            return None
        if attacker.dependent is not None:
            return _dependent(attacker)
        names = " and ".join(leak.name for leak in attacker.leakage)
        start = f"{names} may tell about the other people, whose uncertainty would hide a person"
        if "histogram_between" in self.theorems:
            return (
                f"{start}: only proofs that reveal who is present keep their numbers, those of a histogram with "
                "protects='value' and p_max_between, or of several options with p_min and unknown"
            )
        if "counting" in self.theorems:
            return f"{start}: only an exact count with p_min, p_max and unknown keeps a guarantee beside it"
        return start


def _allows_known(theorem: Theorem) -> bool:
    """Return whether the attacker may know everybody else."""
    return "unknown" in theorem.rests_on and "known" not in theorem.rests_on


def _partial(sampled: bool) -> frozenset[str]:
    """Return the keys of the theorems that rest on what the attacker does not know, or on who was drawn alone."""
    return frozenset(
        key
        for key, theorem in THEOREMS.items()
        if theorem.against is not None and ("sampled" in theorem.rests_on) is sampled
    )


def _is_silent(theorem: Theorem, mechanism: Mechanism, attacker: AttackerModel) -> bool:
    """Return whether there is a threshold k, and something that the theorem needs beside one is not declared."""
    return getattr(mechanism, "k", None) is not None and any(
        getattr(mechanism, name, None) is None and getattr(attacker, name, None) is None for name in theorem.needs
    )


def emptied_by(leakages: Iterable[Leakage], protects: Lives) -> Leakage | None:
    """Return a leakage that no two lives share which differ in what is protected, so that "given it" is empty."""
    return next((leak for leak in leakages if not leak.is_private and not leak.is_shared(protects)), None)


def _dependent(attacker: AttackerModel) -> str:
    if attacker.secret == "conditional":
        return (
            f"the records of all others of a {attacker.dependent} are given, so these are known people, and they move "
            "thresholds: only exact or noised counts of unknown people are left, with p_min, p_max and unknown, and "
            f"exact counts of several options, with p_min and unknown; of each {attacker.dependent} one unknown person "
            "counts"
        )
    return (
        f"records of people of one {attacker.dependent} depend on one another, so that what is published about one "
        f"tells about another. Either make the {attacker.dependent} the privacy unit, and leave dependent out; or ask "
        "for secret='conditional', a person's record given the records of those who share her fate, where p_min, p_max "
        "and unknown hold given all of these"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Applicable:
    """All bounds that hold for one release.

    Parameters
    ----------
    partial : tuple of Applied
        Bounds that rest on what the attacker does not know; the pointwise smallest of them holds.
    worst : WorstCase or None
        The guarantee against any attacker, given what leaks.
    obstacles : tuple of str
        Why theorems that could have applied do not, in words.
    cells : int or None
        How many cells are declared, where a bound depends on it.
    """

    partial: tuple[Applied, ...]
    worst: WorstCase | None
    obstacles: tuple[str, ...]
    cells: int | None = None


@functools.lru_cache(maxsize=1024)
def bounds_of(
    mechanism: Mechanism, attacker: AttackerModel, protects: Protects, cells: int | None = None
) -> Applicable:
    """Return every bound that holds for `mechanism` against `attacker`; once for a release and all made of it.

    `cells`: how many cells were declared, where that is known.
    """
    mechanism_name(mechanism)
    if mechanism.display is not None:
        return _displayed(mechanism, attacker, protects, cells)
    whole, mechanism = mechanism, within_table(mechanism, cells)
    if protects == "value" and (isinstance(mechanism, Count) or mechanism.totals):
        return _total(mechanism, attacker)
    surviving = Surviving(attacker, mechanism.noise is not None)
    left = surviving.theorems
    partial: list[Applied] = []
    obstacles: list[str] = []
    depends = mechanism != whole
    about = (type(mechanism), protects)
    if noised_below(mechanism):
        left = frozenset(key for key in left if THEOREMS[key].noised_below)
    # What a person in several cells tells, rule 10 makes of bounds on each of them.
    several = cells_per_unit(mechanism) > 1
    about_it = (candidate for key, candidate in THEOREMS.items() if key in left and candidate.about == about)
    for theorem in about_it:
        if several or theorem.is_rule or theorem.rule is None or _is_silent(theorem, mechanism, attacker):
            continue
        outcome = theorem.rule(mechanism, attacker, left)
        if isinstance(outcome, Applied):
            if cells is not None and theorem.declared is not None:
                outcome, of_any = theorem.declared(outcome, cells), outcome
                depends |= outcome != of_any
            if cells is not None:
                outcome, of_any = _attacked_in(cells, outcome, attacker, protects), outcome
                depends |= outcome != of_any
            # An attacker who leaves the leakage aside attacks as before.
            partial.append(replace(outcome, bound=surviving.beside(outcome.bound)))
        elif outcome is not None:
            obstacles.append(outcome)
    named = noised_below(mechanism) or any(applied.attack is not None for applied in partial)
    if isinstance(mechanism, Count) and not attacker.leakage and not named:
        partial[:1] = [replace(applied, attack=_reached(mechanism, attacker)) for applied in partial[:1]]
    if not partial and surviving.obstacle is not None:
        obstacles.append(surviving.obstacle)
    worst = _worst(mechanism, surviving, protects, cells)
    depends |= worst != _worst(whole, surviving, protects, None)
    if worst is not None and attacker.leakage and worst.parameters[1] >= 1.0:
        obstacles.append("beside what leaks nothing of the noise's guarantee is left")
        worst = None
    empty = emptied_by(attacker.leakage, protects)
    if empty is not None:
        differ = "whether a person is there" if protects == "presence" else "which cell a person is in"
        obstacles.append(
            f"{empty.name} may be known exactly and always tells {differ} to somebody who knows everybody else: a "
            "guarantee given it would say nothing"
        )
        worst = None
    if not partial and worst is None and not obstacles and not several:
        obstacles.append(f"no theorem is about protects={protects!r} of a {type(mechanism).__name__} like this")
    depended = cells if depends else None
    return Applicable(partial=tuple(partial), worst=worst, obstacles=tuple(obstacles), cells=depended)


def _attacked_in(cells: int, applied: Applied, attacker: AttackerModel, protects: Protects) -> Applied:
    """Return a bound with an attack that is declared in a table of so many cells.

    Told any two cells, the attacker is at most `p_max_between` sure: where there are further cells, nobody is in one or
    two of them alone. All may be in one with the largest chance that this leaves, and the others are not looked at.
    """
    attack, between = applied.attack, attacker.p_max_between
    if attack is None or (cells == 1 and protects == "value"):
        return replace(applied, attack=None)  # there are no two cells to tell apart
    alone, kind = (1, Threshold) if protects == "presence" else (2, Thresholding)
    if between in (None, 1.0) or cells <= alone:
        return applied
    if not isinstance(attack, kind):
        return replace(applied, attack=None)
    absent = Fraction(0) if attacker.p_max is None else 1 / Fraction(attacker.p_max) - 1
    share = 1 / (1 + absent + (cells - 1) * (1 / Fraction(between) - 1))
    return replace(applied, attack=replace(attack, p=float_below(share)))


def _displayed(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, cells: int | None) -> Applicable:
    """Theorem R: what is shown is a function of the table suppressed below the first boundary, or behind the noise.

    Theorem A's worst attacker looks at the first cutoff only, which is shown; others may need more of the table.
    """
    plain = without_display(mechanism)
    applicable = bounds_of(plain, attacker, protects, cells)
    kept = ("thresholding", "histogram_presence") if plain.noise is None else ()
    partial = tuple(
        applied if applied.bound.theorem in kept and not attacker.p_min else replace(applied, attack=None)
        for applied in applicable.partial
    )
    obstacles = applicable.obstacles
    if plain.k == 1 and mechanism.k is None and mechanism.display is not None:
        obstacles = (
            f"counts shown {mechanism.display.words} tell a zero from small counts, so that whoever is alone in a cell "
            "is told apart: give k, so that zero and small counts look alike",
        )
    return replace(applicable, partial=partial, obstacles=obstacles)


def _reached(mechanism: Count, attacker: AttackerModel) -> Reached:
    """Return attackers to try where no theorem names the worst one."""
    return Reached(
        theorem="attack",
        p_min=attacker.p_min or 0.0,
        p_max=1.0 if attacker.p_max is None else attacker.p_max,
        unknown=attacker.unknown or 0,
        cap=attacker.unknown_max,
        k=mechanism.k,
        k_complement=mechanism.k_complement,
        noise=None if mechanism.noise is None else mechanism.noise.epsilon,
        release_threshold=mechanism.release_threshold,
    )


def _worst(mechanism: Mechanism, surviving: Surviving, protects: Protects, declared: int | None) -> WorstCase | None:
    """Return what holds against anyone; a hard threshold before the noise needs one after it, else δ0 = 1."""
    noise, k, threshold = mechanism.noise, mechanism.k, mechanism.release_threshold
    if noise is None or getattr(mechanism, "k_complement", None) is not None or noised_below(mechanism):
        return None
    if k is not None and threshold is None:
        return None
    appears_at = None if k is None or threshold is None else threshold - k
    several, moves = cells_per_unit(mechanism), protects == "value"
    table = declared if moves and declared is not None and declared < 2 * several else None
    given: dict[str, Any] = {"noise": noise.epsilon, "cells": several, "moves": moves, "table": table}
    if isinstance(mechanism, Sum):
        if mechanism.cells_found and threshold is not None:
            appears_at = threshold - mechanism.bounds[1]
        return surviving.against_anyone(
            SumCurve(theorem="sums", bounds=mechanism.bounds, appears_at=appears_at, **given)
        )
    return surviving.against_anyone(NoiseCurve(theorem="noise", appears_at=appears_at, **given))


def _total(mechanism: Mechanism, attacker: AttackerModel) -> Applicable:
    """Return what an exact count of everybody, or of every group, promises: it is the same in two lives."""
    if isinstance(mechanism, Histogram):
        if attacker.groups:
            return Applicable(partial=(), worst=Leaked(theorem="leaked"), obstacles=())
        raise ArgumentError(_AS_TOTALS)
    bare = mechanism.noise is None and mechanism.k is None and mechanism.k_complement is None
    if bare and attacker.total_is_known:
        return Applicable(partial=(), worst=Leaked(theorem="leaked"), obstacles=())
    raise ArgumentError(_NO_CELLS if not bare else Worded(lambda say: f"{_NO_CELLS} {_AS_TOTAL}{say.known_total()}."))


_NO_CELLS = (
    "protects='value' means hiding which of two published cells a person is in, and a Count has one number only: a "
    "person is counted or not. Use protects='presence' (it hides exactly that), or a Histogram."
)


_AS_TOTALS = (
    "totals of groups are published as what everybody is declared to know: declare leakage=pkdp.Leakage.totals(by=…) "
    "in the attacker, or leave totals out."
)


_AS_TOTAL = (
    "The exact number of everybody can be published as what is known anyhow, which protects nobody's presence: declare "
)
