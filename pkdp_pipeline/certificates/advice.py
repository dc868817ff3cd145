"""Advice: what to say of a release that promises nothing, or too little: why, and the nearest choices that do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from pkdp_pipeline.composition.several_cells import bounds_of
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import (
    Count,
    Histogram,
    Mechanism,
    Sum,
    cells_per_unit,
    mechanism_name,
    noised_below,
)
from pkdp_pipeline.model.wording import Speech, Worded, rounded_up, shortened
from pkdp_pipeline.theorems import Bound, Protects
from pkdp_pipeline.theorems.bound import least_whole
from pkdp_pipeline.theorems.counting import Counting
from pkdp_pipeline.theorems.options import Options
from pkdp_pipeline.theorems.sums import SumCurve
from pkdp_pipeline.theorems.theorems import Surviving, emptied_by
from pkdp_pipeline.theorems.thresholding import Thresholding, ValueThroughAbsence
from pkdp_pipeline.theorems.worst_case import NoiseCurve

Choice = Callable[[Speech], str]
#: The ε and the δ that choices have to reach.
Aim = tuple[float, float]

_BY_THRESHOLD: Mapping[Protects, frozenset[str]] = MappingProxyType(
    {
        "presence": frozenset({"thresholding", "histogram_presence"}),
        "value": frozenset({"histogram_value", "histogram_between"}),
    }
)
_AIM = (1.0, 1e-6)
_MAX_K = 1_000_000
_MAX_CELLS = 4000
"""Where a person is in more cells than this times 1 - p_max, no k is looked for: too many atoms would be composed."""

_MAX_AVERAGED = 200
_MIN_P = 0.01
"""A smaller p_max takes pairs of so many atoms that a k is named that is enough, if not the least."""


def refusal(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, obstacles: tuple[str, ...]) -> Worded:
    """Return the message of a `NotCertifiableError`; every number in it comes from the certificates' engine."""
    aim = "which cell a person is in" if protects == "value" else "whether a person is there"
    if isinstance(mechanism, Sum) and protects == "value":
        aim = "what a person adds"
    subject = (
        "this count hides whether a person is counted"
        if isinstance(mechanism, Count)
        else f"this {mechanism_name(mechanism)} hides {aim}"
    )
    why = f"Not certifiable: no theorem shows that {subject}, because {'; and '.join(obstacles)}."
    message = advised(why, mechanism, attacker, protects)
    message.obstacles = obstacles
    return message


def advised(
    why: str,
    mechanism: Mechanism,
    attacker: AttackerModel,
    protects: Protects,
    *,
    aim: Aim = _AIM,
    end: Choice = lambda say: "",
) -> Worded:
    """Return why something is refused, then the nearest choices; every number comes from the certificates' engine.

    No choice is offered that falls short of `aim`; none is looked for that reaches more than ε = 1 at δ = 1e-6 do.
    """
    aim, reason = (min(aim[0], _AIM[0]), min(aim[1], _AIM[1])), why
    below = noised_below(mechanism)
    if noised_below(mechanism):
        mechanism = replace(mechanism, below="suppress", noise=None, release_threshold=None)
    # Noise asks nothing of the attacker; nobody who uses it, or has said nothing yet, is advised to declare one.
    undeclared = not _by_k(mechanism) and attacker == attacker.against_anyone()
    ways = [_by_noise, _instead] if undeclared else [_by_threshold, _by_uncertainty, _by_noise, _instead]
    if isinstance(mechanism, Sum):
        ways = [_by_noise]
    tried = (way(mechanism, attacker, protects, aim) for way in ways)
    choices = [choice for choice in tried if choice is not None]
    if not choices and not attacker.leakage:
        why = f"{why} Nothing that was tried reaches epsilon = {aim[0]:g}, delta = {rounded_up(aim[1])}: ask for less."
        return Worded(lambda say: why + end(say), reason)
    if not choices:
        return Worded(lambda say: _otherwise(why, mechanism, attacker, protects, aim, say) + end(say), reason)
    given = "" if all(leak.is_private for leak in attacker.leakage) else ", given what leaks"
    given += " with below left out" if below else ""
    start = f"{why} Each of these would give epsilon = {aim[0]:g}, delta = {rounded_up(aim[1])}{given}: "
    return Worded(lambda say: f"{start}{'; or '.join(choice(say) for choice in choices)}.{end(say)}", reason)


def _by_k(mechanism: Mechanism) -> bool:
    """Return whether a threshold protects without noise: then examples may be given of what has to be argued."""
    bare = mechanism.k is None and getattr(mechanism, "k_complement", None) is None
    return mechanism.noise is None and not bare


def _otherwise(
    why: str, mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim, say: Speech
) -> str:
    """Say what noise gives where that is too little, and what to do about the leakage."""
    curve = _curve(mechanism, protects, aim[0])
    epsilon, delta = Surviving(attacker, noised=True).against_anyone(curve).parameters
    if emptied_by(attacker.leakage, protects) is not None or delta >= 1.0:
        return (
            f"{why} No parameter of the release changes that. Publish what leaks with noise of its own, and declare "
            "that by its epsilon and delta; or do not publish it."
        )
    bare = mechanism.k is None and getattr(mechanism, "k_complement", None) is None
    return (
        f"{why} Noise gives a guarantee against anyone, but none of epsilon = {aim[0]:g}, delta = "
        f"{rounded_up(aim[1])} beside what leaks: {say.noise(curve.noise)}{'' if bare else ' without thresholds'} "
        f"gives epsilon = {rounded_up(epsilon)}, delta = {rounded_up(delta)}. Publish what leaks with more noise of "
        "its own, or do not publish it."
    )


def _reaches(bound: Bound, aim: Aim) -> bool:
    return bool(bound.certified(np.array([aim[0]]))[0] <= aim[1])


def _by_threshold(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim) -> Choice | None:
    """Name the smallest k for the declared p_max, or for an example where none is declared."""
    left = Surviving(attacker, mechanism.noise is not None).theorems
    if left.isdisjoint(_BY_THRESHOLD[protects]):
        return None
    if isinstance(mechanism, Histogram) and mechanism.cells_per_unit > 1:
        return _by_threshold_of_cells(mechanism, attacker, protects, aim)
    # Beside what tells who is present, absence protects nobody.
    absent = "histogram_value" in left or protects == "presence"
    declared = attacker.p_max if absent and attacker.p_max is not None and attacker.p_max < 1.0 else None
    people = f" and known = {attacker.known}" if attacker.known else ""
    if protects == "value" and (attacker.p_max_between is not None or declared is None):
        threshold = _between(mechanism, attacker, aim)
        return None if threshold is None else lambda say: f"k = {threshold[0]} {threshold[1]}{people}"
    if declared is None and not _by_k(mechanism):
        return None
    low = attacker.p_min or 0.0
    # An example that does not contradict what is declared.
    share = declared if declared is not None else 0.1 if low <= 0.1 else 0.5 * (1.0 + low)
    # Many known people are set aside as if they were controlled: k is then enough, if not the least.
    aside = attacker.known if attacker.known > (0 if protects == "value" and share < _MIN_P else _MAX_AVERAGED) else 0
    least = _least(
        ValueThroughAbsence if protects == "value" else Thresholding,
        "k",
        2,
        aim,
        theorem="thresholding",
        p=share,
        cap=attacker.unknown_max,
        known=attacker.known - aside,
        active=attacker.influence == "active",
    )
    if least is None:
        return None
    return lambda say: f"k = {least + aside} {_where('p_max', share, declared is not None)}{people}"


def _by_threshold_of_cells(
    mechanism: Histogram, attacker: AttackerModel, protects: Protects, aim: Aim
) -> Choice | None:
    """Name the smallest k where a person may be in several cells, independent of one another."""
    declared = attacker.p_max is not None and attacker.p_max < 1.0
    if not declared and not _by_k(mechanism):
        return None
    share = attacker.p_max if attacker.p_max is not None and declared else 0.1
    if mechanism.cells_per_unit > _MAX_CELLS * (1.0 - share):
        return None
    rare = share < _MIN_P
    aside = attacker.known if rare else 0
    argued = replace(
        attacker, p_max=max(share, _MIN_P) if share else share, known=attacker.known - aside, independent_cells=True
    )

    def enough(k: int) -> bool:
        partial = bounds_of(Histogram(k=k, cells_per_unit=mechanism.cells_per_unit), argued, protects).partial
        return any(_reaches(applied.bound, aim) for applied in partial)

    least = least_whole(enough, 2, _MAX_K)
    if least is None:
        return None
    cells = "" if attacker.independent_cells else ", and independent_cells if that can be argued too"
    return lambda say: f"no noise but k = {least + aside} {_where('p_max', share, declared)}{cells}"


def _where(label: str, share: float, declared: bool) -> str:
    return f"with the declared {label} = {share!r}" if declared else f"if {label} = {share!r} can be argued"


def _between(mechanism: Mechanism, attacker: AttackerModel, aim: Aim) -> tuple[int, str] | None:
    """Return the smallest k for the declared p_max_between, or for an example, and for which of them it is."""
    between = attacker.p_max_between
    declared = between is not None and between < 1.0
    if not declared and not _by_k(mechanism):
        return None
    share = between if between is not None and declared else 0.75
    least = _least(Thresholding, "k", 2, aim, theorem="histogram_between", p=share, cap=attacker.unknown_max)
    # Every known person counts against the threshold.
    return None if least is None else (least + attacker.known, _where("p_max_between", share, declared))


def _by_uncertainty(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim) -> Choice | None:
    """Name how many unknown people an exact count needs, or an exact histogram."""
    surviving, presence = Surviving(attacker, mechanism.noise is not None), protects == "presence"
    key = "counting" if isinstance(mechanism, Count) else "cell_counting" if presence else "options"
    if key not in surviving.theorems:
        return None
    if isinstance(mechanism, Count):
        open_box = bool(attacker.p_min) and attacker.p_max is not None and attacker.p_max < 1.0
        low, high = (attacker.p_min, attacker.p_max) if open_box else (0.1, 0.9)
        assert low is not None
        assert high is not None
        if not open_box and mechanism.noise is not None:
            return None
        people = _least(Counting, "unknown", 1, aim, surviving, theorem="counting", p_min=low, p_max=high)
        if people is None:
            return None
        return lambda say: f"no threshold but unknown = {people} people with p_min = {low!r} and p_max = {high!r}"
    if presence:
        least, most = attacker.p_min, attacker.p_max
        if not least or most is None or most == 1.0:
            return None
        people = _least(Options, "unknown", 1, aim, theorem=key, p_min=least, p=most)
        return None if people is None else lambda say: f"unknown = {people} people with the declared p_min and p_max"
    share = attacker.p_min if attacker.p_min and attacker.p_min <= 0.5 else None
    if share is None and mechanism.noise is not None:
        return None
    share = 0.1 if share is None else share
    people = _least(Options, "unknown", 1, aim, theorem="options", p_min=share)
    if people is None:
        return None
    return lambda say: f"unknown = {people} people who choose every option with p_min = {share!r}"


def _by_noise(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim) -> Choice | None:
    """Name the noise that gives the target against any attacker, given what leaks."""
    if emptied_by(attacker.leakage, protects) is not None:
        return None
    surviving, curve = Surviving(attacker, noised=True), _curve(mechanism, protects, aim[0])
    noise = curve.noise if not attacker.leakage else _largest_noise(surviving, curve, aim)
    if not noise:
        return None
    noise = shortened(noise)
    whatever = "whatever the attacker knows" if not attacker.leakage else "whatever else the attacker knows"
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        return lambda say: f"no thresholds but {say.noise(noise)}, {whatever}"
    arguments: dict[str, Any] = {"noise": noise, "cells": curve.cells, "moves": curve.moves, "theorem": curve.theorem}
    least = mechanism.k
    if isinstance(mechanism, Sum) and mechanism.cells_found:
        least, arguments["bounds"] = mechanism.bounds[1], mechanism.bounds
    if least is None:
        return lambda say: f"{say.noise(noise)}, {whatever}"
    kind: Callable[..., Bound] = type(curve)
    gap = _least(kind, "appears_at", max(0, -least), aim, surviving, **arguments)
    if gap is None:
        return None
    reached = least + gap
    return lambda say: f"{say.noise(noise)} with {say.setting('release_threshold', reached)}, {whatever}"


def _instead(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim) -> Choice | None:
    """Name the histogram that hides the cell beside what tells who is present; it hides no presence."""
    left = Surviving(attacker, noised=False).theorems
    if not attacker.leakage or protects == "value" or "histogram_between" not in left:
        return None
    threshold = _between(mechanism, attacker, aim)
    way = None if threshold is not None else _by_noise(Histogram(), attacker, "value", aim)
    if threshold is not None:
        k, condition = threshold

        def way(say: Speech) -> str:
            return f"{say.setting('k', k)} {condition}"

    if way is None:
        return None
    hides = "it hides which cell a person is in, and not whether she is there"
    return lambda say: f"a histogram with {say.setting('protects', repr('value'))} and {way(say)}: {hides}"


# Who looks for what can be certified is refused again and again with the same numbers: each is searched for once.


@lru_cache(maxsize=1024)
def _least(
    kind: Callable[..., Bound], name: str, first: int, aim: Aim, surviving: Surviving | None = None, **fixed: Any
) -> int | None:
    """Return the smallest whole number in the field `name` of a bound that reaches `aim`; None where none does."""

    def enough(number: int) -> bool:
        bound = kind(**fixed, **{name: number})
        if surviving is not None:
            if isinstance(bound, NoiseCurve | SumCurve):
                return _reaches(surviving.against_anyone(bound), aim)
            bound = surviving.beside(bound)
        return _reaches(bound, aim)

    return least_whole(enough, first, _MAX_K)


@lru_cache
def _largest_noise(surviving: Surviving, whole: NoiseCurve | SumCurve, aim: Aim) -> float | None:
    """Return a simple ε of noise, as large as beside the leakages reaches the target; None where none does."""
    for share in (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01):
        curve = replace(whole, noise=share * whole.noise)
        if _reaches(surviving.against_anyone(curve), aim):
            return curve.noise
    return None


def _curve(mechanism: Mechanism, protects: Protects, epsilon: float) -> NoiseCurve | SumCurve:
    """Return what noise gives that all numbers that a person changes share `epsilon` for."""
    arguments: dict[str, Any] = {"noise": 1.0, "cells": cells_per_unit(mechanism), "moves": protects == "value"}
    if isinstance(mechanism, Sum):
        curve = SumCurve(theorem="sums", bounds=mechanism.bounds, **arguments)
        return replace(curve, noise=epsilon * curve.sensitivity / curve.units)
    counts = NoiseCurve(theorem="noise", **arguments)
    return replace(counts, noise=epsilon / counts.changes)
