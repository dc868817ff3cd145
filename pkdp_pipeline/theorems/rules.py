"""When each theorem on partial knowledge holds, and what it then proves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import flint

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram, Mechanism, Protects
from pkdp_pipeline.model.wording import Worded
from pkdp_pipeline.theorems import words
from pkdp_pipeline.theorems.bound import MAX_NOISE, PAPER, Applied, Theorem
from pkdp_pipeline.theorems.boxed_threshold import IN_A_BOX, behind_noise
from pkdp_pipeline.theorems.hull import told_apart
from pkdp_pipeline.theorems.noisy_between import MIN_ENUMERATED_NOISE, NoisyBetween, enough_people
from pkdp_pipeline.theorems.noisy_crowd import NoisyTwoCells, ReachedThroughAbsence
from pkdp_pipeline.theorems.noisy_threshold import MAX_KNOWN
from pkdp_pipeline.theorems.numerics import ball_above, ball_below
from pkdp_pipeline.theorems.reached import ReachedBetween
from pkdp_pipeline.theorems.sampled import SAMPLED
from pkdp_pipeline.theorems.thresholding import Threshold, Thresholding, ValueThroughAbsence
from pkdp_pipeline.theorems.without_suppression import TOLD_ABSENT, WITHOUT_A_THRESHOLD, noised_below_records


def _count(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    k, p, floor = mechanism.k, attacker.p_max, attacker.p_min or 0.0
    if k is None or p is None:
        needs = (
            "the threshold k protects when p_max < 1 is declared: how sure the attacker can be, at most, that another "
            "person is counted"
        )
        return None if k is None else needs
    least = (attacker.unknown or 0) if floor > 0.0 else 0
    bound = Thresholding(theorem="thresholding", k=k, p=p, **_facing(attacker), least_unknown=least)
    # With the other threshold in force an attack needs people who are surely not counted.
    attained = mechanism.noise is None and (mechanism.k_complement is None or floor == 0.0)
    return _hides_nothing("k", "p_max", bound) or Applied(bound=bound, attack=bound if attained else None)


def _complement(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    k, p_min, ceiling = mechanism.k_complement, attacker.p_min, 1.0 if attacker.p_max is None else attacker.p_max
    if k is None or p_min is None:
        needs = (
            "the threshold k_complement protects when p_min > 0 is declared: how sure the attacker is, at least, that "
            "another person is counted"
        )
        return None if k is None else needs
    share = 1 - flint.arb(p_min)
    p = min(1.0, ball_above(share)) if p_min > 0.0 else 1.0
    least = (attacker.unknown or 0) if ceiling < 1.0 else 0
    bound = Thresholding(theorem="thresholding_complement", k=k, p=p, **_facing(attacker), least_unknown=least)
    below = replace(bound, p=max(0.0, ball_below(share)))
    attained = mechanism.noise is None and (mechanism.k is None or ceiling == 1.0)
    obstacle = _hides_nothing("k_complement", "1 - p_min", bound)
    return obstacle or Applied(bound=bound, attack=below if attained else None)


def _behind_noise(theorem: str, mechanism: Mechanism, attacker: AttackerModel, left: frozenset[str]) -> Applied | None:
    """Theorem D; elsewhere theorem A says why not."""
    bound = behind_noise(theorem, mechanism, attacker)
    return None if bound is None else Applied(bound=bound, attack=None if attacker.p_min else bound)


def _presence(mechanism: Histogram, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    k, p = mechanism.k, attacker.p_max
    if k is None:
        return None
    if p is None:
        return (
            "k hides presence when p_max < 1 is declared: how sure the attacker can be, at most, of a cell when told "
            "that a person is either in it or absent"
        )
    if p == 1.0:
        absent = "p_max = 1 says that nobody is ever absent, and then presence is no secret"
        asks = "p_max_between asks whether the table hides which cell a person is in"
        return Worded(lambda say: f"{absent}; protects='value' with {asks}", absent)
    bound = Thresholding(theorem="histogram_presence", k=k, p=p, **_facing(attacker))
    attained = mechanism.noise is None and not attacker.p_min
    return _hides_nothing("k", "p_max", bound) or Applied(bound=bound, attack=bound if attained else None)


_NEEDS_BETWEEN = (
    "k hides the cell when p_max_between < 1 is declared (how sure the attacker can be, at most, which of two cells a "
    "person is in)"
)


def _value(mechanism: Histogram, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    k, p, between = mechanism.k, attacker.p_max, attacker.p_max_between
    if k is None or (between is not None and p in (None, 1.0)):
        return None
    if p is None:
        return f"{_NEEDS_BETWEEN}, or p_max < 1 where absence is a real possibility"
    if p == 1.0:
        return "p_max = 1 says that nobody is ever absent; declare p_max_between instead"
    bound = ValueThroughAbsence(theorem="histogram_value", k=k, p=p, **_facing(attacker))
    attained = mechanism.noise is None and between is None and not attacker.p_min
    return _hides_nothing("k", "p_max", bound) or Applied(bound=bound, attack=bound if attained else None)


def _value_behind_noise(mechanism: Histogram, attacker: AttackerModel, left: frozenset[str]) -> Applied | None:
    """Theorem D for both cells, in opposite orders; everybody known is taken for controlled, and for one in both."""
    presence = behind_noise("noisy_value", mechanism, replace(attacker, influence="active"))
    release, noise = mechanism.release_threshold, mechanism.noise
    # Without a release threshold theorem B's pair, which tells the orders apart, is closer than the hull.
    if presence is None or release is None or noise is None or noise.epsilon < _MIN_NOISE_IN_TWO_CELLS:
        return None
    assert mechanism.k is not None
    share = told_apart(noise.epsilon, release - mechanism.k)
    alone = attacker.known == 0 and attacker.p_max_between is None and not attacker.p_min
    attack = ReachedThroughAbsence(theorem="attack", presence=presence)
    bound = NoisyTwoCells(theorem="noisy_value", presence=presence, told_apart=share)
    return Applied(bound=bound, attack=attack if alone else None)


_MIN_NOISE_IN_TWO_CELLS = 1e-6
"""With noise of a smaller ε0 theorem D is not used for two cells: errors of `told_apart` would count."""


def _value_between(mechanism: Histogram, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    k, between, known = mechanism.k, attacker.p_max_between, attacker.known
    if k is None:
        return None
    if between is None:
        return None if "histogram_value" in left else _NEEDS_BETWEEN
    # It counts every known person against the threshold, whether controlled or merely known.
    if k - known <= 1:
        return f"k = {k} is not above known + 1 = {known + 1}: known people move the thresholds of both cells"
    if between == 1.0:
        return "p_max_between = 1 lets the attacker be certain which cell everybody else is in"
    free, active = attacker.p_max in (None, 1.0) and not attacker.p_min, attacker.influence == "active"
    bound = Thresholding(theorem="histogram_between", k=k - known, p=between, cap=attacker.unknown_max, active=active)
    if mechanism.noise is None or not free:
        return Applied(bound=bound, attack=bound if free and (known == 0 or active) else None)
    attack = ReachedBetween(
        theorem="attack",
        p=between,
        k=k,
        noise=mechanism.noise.epsilon,
        release_threshold=mechanism.release_threshold,
        cap=attacker.unknown_max,
        known=known if active else 0,
    )
    return Applied(bound=bound, attack=attack)


def _behind_both(mechanism: Histogram, attacker: AttackerModel, left: frozenset[str]) -> Applied | None:
    """Theorem G: few people have to be looked at and few are known; elsewhere theorem C says why not."""
    k, p, noise, release = mechanism.k, attacker.p_max_between, mechanism.noise, mechanism.release_threshold
    if k is None or k - attacker.known <= 1 or p is None or p == 1.0 or noise is None or release is None:
        return None
    if attacker.known > MAX_KNOWN:
        return None
    people = enough_people(k, p, attacker.unknown_max)
    if people is None or not MIN_ENUMERATED_NOISE <= noise.epsilon <= MAX_NOISE / 2.0:
        return None
    bound = NoisyBetween(
        theorem="noisy_between",
        p=p,
        k=k,
        noise=noise.epsilon,
        release_threshold=release,
        people=people,
        cap=attacker.unknown_max,
        known=attacker.known,
    )
    # An attacker who merely knows people may know none of those in either cell.
    attack = bound if attacker.influence == "active" else replace(bound, known=0)
    free = attacker.p_max in (None, 1.0) and not attacker.p_min
    return Applied(bound=bound, attack=attack if free else None)


def _each_cell(theorem: str, mechanism: Histogram, attacker: AttackerModel, left: frozenset[str]) -> Applied | str:
    """Return the bound on one of a person's cells, which is a thresholded count of its own."""
    if mechanism.noise is not None:
        return (
            "with noise a person with more than cells_per_unit cells is counted in some of them, which makes her cells "
            "depend on one another: only what the noise gives against anybody is left, and behind a k that needs a "
            "release_threshold"
        )
    if not attacker.independent_cells:
        return (
            f"a person may be in {mechanism.cells_per_unit} cells, and what they tell together is known only where her "
            "cells are independent of one another given her habits: declare independent_cells in the attacker, and "
            "p_max told all her other cells, where that can be argued; noise needs no such argument"
        )
    outcome = _presence(mechanism, attacker, left)
    if not isinstance(outcome, Applied):
        return outcome or f"no theorem is about histograms without k and cells_per_unit = {mechanism.cells_per_unit}"
    return replace(outcome, bound=replace(outcome.bound, theorem=theorem))


def _facing(attacker: AttackerModel) -> dict[str, Any]:
    """Return what a bound on a threshold takes from the attacker: as it is, or a number of known people above any k."""
    controls = attacker.influence == "active" or attacker.known > _ABOVE_ANY_K
    return {"cap": attacker.unknown_max, "known": attacker.known, "active": controls}


_ABOVE_ANY_K = 2**53
"""Of more people merely known it is not looked at how many of them may count: all."""


def _hides_nothing(name: str, source: str, bound: Threshold) -> str | None:
    """Return why a threshold gives nothing; None where it gives something."""
    controlled = bound.known if bound.active else 0
    if bound.k - controlled <= 1:
        return (
            f"{name} = {bound.k} is not above known + 1 = {controlled + 1}: an attacker who controls {controlled} "
            "people sees the target cross the threshold"
            if controlled
            else f"{name} = {bound.k} publishes the count of a single person; {name} must be at least 2"
        )
    if bound.p == 1.0 and (bound.cap is None or bound.cap + bound.known >= bound.k - 1):
        return f"{source} = 1 lets the attacker be certain about everybody else, and then the threshold hides nothing"
    return None


_SECTION_4 = f"docs/mathematics.md, section 4; sharpens Theorem 4 and Proposition 8 of {PAPER}"
_SECTION_5 = f"docs/mathematics.md, section 5; replaces Theorem 5 of {PAPER}"

_SECTION_6 = f"docs/mathematics.md, section 6; sharpens section 5.2 of {PAPER}"

_SEVERAL_CELLS: tuple[tuple[str, Protects], ...] = (("several_cells", "presence"), ("several_cells_value", "value"))

_PRESENCE = Theorem(
    key="histogram_presence",
    title="Theorem B, presence: a k-anonymous histogram hides whether a person is there",
    citation=_SECTION_5,
    formal=words.PRESENCE,
    against=words.through_absence,
    assumes=(TOLD_ABSENT,),
    rests_on=("known", "p_max"),
    averages=True,
    told_absent=True,
    about=(Histogram, "presence"),
    rule=_presence,
)
_BETWEEN = Theorem(
    key="histogram_between",
    title="Theorem C, value: a k-anonymous histogram hides the cell, nothing assumed about absence",
    citation=_SECTION_5,
    formal=words.BETWEEN,
    against=words.between,
    assumes=("Nothing is assumed about absence; totals may be published beside the table.",),
    rests_on=("known", "p_max_between"),
    reveals_who=True,
    about=(Histogram, "value"),
    rule=_value_between,
)
_THRESHOLD = Theorem(
    key="thresholding",
    title="Theorem A: thresholding is dominated by waiting times",
    citation=_SECTION_4,
    formal=words.THRESHOLD,
    against=words.thresholding,
    rests_on=("known", "p_max"),
    averages=True,
    about=(Count, "presence"),
    rule=_count,
)

_VALUE = replace(
    _PRESENCE,
    key="histogram_value",
    title="Theorem B, value: a k-anonymous histogram hides the cell where absence is possible",
    formal=words.VALUE,
    hides_presence_too=True,
    about=(Histogram, "value"),
    rule=_value,
)

RECORDS = (
    _THRESHOLD,
    replace(
        _THRESHOLD,
        key="thresholding_complement",
        title="Theorem A for the people who are not counted",
        formal=words.COMPLEMENT,
        against=words.thresholding_complement,
        rests_on=("known",),
        rule=_complement,
    ),
    _PRESENCE,
    replace(
        _THRESHOLD,
        key="noisy_thresholding",
        title="Theorem D: a threshold with noise after it",
        citation=_SECTION_6,
        formal=words.BEHIND_NOISE,
        needs=("noise",),
        rule=partial(_behind_noise, "noisy_thresholding"),
    ),
    replace(
        _PRESENCE,
        key="noisy_presence",
        title="Theorem D for a cell: a k-anonymous histogram with noise after its threshold",
        citation=_SECTION_6,
        formal=words.CELL_BEHIND_NOISE,
        needs=("noise",),
        rule=partial(_behind_noise, "noisy_presence"),
    ),
    _VALUE,
    replace(
        _VALUE,
        key="noisy_value",
        title="Theorem D for two cells: a k-anonymous histogram with noise after its threshold hides the cell",
        citation="docs/mathematics.md, section 6, value through absence",
        formal=None,
        averages=False,
        needs=("noise",),
        rule=_value_behind_noise,
    ),
    _BETWEEN,
    replace(
        _BETWEEN,
        key="noisy_between",
        title="Theorem G, value: two cells behind a threshold and noise, nothing assumed about absence",
        citation="docs/mathematics.md, section 6, theorem G",
        formal=None,
        rule=_behind_both,
    ),
    *noised_below_records(_THRESHOLD, _PRESENCE, _VALUE, _BETWEEN),
    *SAMPLED,
    *IN_A_BOX,
    *WITHOUT_A_THRESHOLD,
    *(
        Theorem(
            key=key,
            title=f"Rule 10, {aim}: a person in several cells, independent given her habits",
            citation="docs/composition.md, rule 10",
            against=words.in_several_cells,
            assumes=("Nobody is in more cells than declared: a table in which somebody is, is not published.",),
            rests_on=("known", "p_max"),
            averages=True,
            hides_presence_too=aim == "value",
            is_rule=True,
            about=(Histogram, aim),
            rule=partial(_each_cell, key),
        )
        for key, aim in _SEVERAL_CELLS
    ),
)
"""The records, in the order in which they are tried."""
