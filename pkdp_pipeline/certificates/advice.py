"""Advice: what to say of a release that promises nothing, or too little: why, and the nearest choices that do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from pkdp_pipeline.composition.rules import bounds_of
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import (
    Count,
    GeometricNoise,
    Histogram,
    Mechanism,
    Protects,
    Sum,
    cells_per_unit,
    mechanism_name,
    noised_below,
)
from pkdp_pipeline.model.wording import Speech, Worded, rounded_up, shortened
from pkdp_pipeline.theorems.numerics import least_whole
from pkdp_pipeline.theorems.theorems import Surviving
from pkdp_pipeline.theorems.worst_case import NoiseCurve, SumCurve

Choice = Callable[[Speech], str]
#: The ε and the δ that choices have to reach.
Aim = tuple[float, float]
Way = Callable[[Mechanism, AttackerModel, Protects, Aim], Choice | None]

_AIM = (1.0, 1e-6)
_MAX_NUMBER = 1_000_000
_MAX_KEPT = 10**9
"""No larger threshold is made larger: there are hardly more people."""

_MAX_NOISED = 200
"""No larger k is looked at where small counts are noised: each look would take seconds."""

_MAX_CELLS = 4000
"""Where a person is in more cells than this times 1 - p_max, no k is looked for: too many atoms would be composed."""

_MAX_AVERAGED = 200
_MIN_P = 0.01
"""A smaller p_max takes pairs of so many atoms that a k is named that is enough, if not the least."""

_NOISE_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Beside what leaks, the largest of these shares of the noise that would do alone."""


def refusal(
    mechanism: Mechanism, attacker: AttackerModel, protects: Protects, obstacles: tuple[str, ...], *, declared: bool
) -> Worded:
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
    message = advised(why, mechanism, attacker, protects, declared=declared)
    message.obstacles = obstacles
    return message


def advised(
    why: str,
    mechanism: Mechanism,
    attacker: AttackerModel,
    protects: Protects,
    *,
    declared: bool,
    aim: Aim = _AIM,
    end: Choice = lambda say: "",
) -> Worded:
    """Return why something is refused, then the nearest choices; every number comes from the certificates' engine.

    No choice is offered that falls short of `aim`; none is looked for that reaches more than ε = 1 at δ = 1e-6 do.
    `declared`: whether the cells are known to be declared, so that noise without k needs no release threshold.
    """
    aim, reason = (min(aim[0], _AIM[0]), min(aim[1], _AIM[1])), why
    kept, below = _kept(mechanism, attacker, protects, aim), noised_below(mechanism)
    if noised_below(mechanism):
        mechanism = replace(mechanism, below="suppress", noise=None, release_threshold=None)
    # Noise asks nothing of the attacker; nobody who uses it, or has said nothing yet, is advised to declare one.
    undeclared = not _by_k(mechanism) and attacker == attacker.against_anyone()
    by_noise: Way = partial(_by_noise, declared=declared)
    ways: list[Way] = [by_noise, _instead] if undeclared else [_by_threshold, _by_uncertainty, by_noise, _instead]
    if kept is not None or isinstance(mechanism, Sum):
        ways = [by_noise] if kept is None or below else []
    tried = (way(mechanism, attacker, protects, aim) for way in ways)
    choices = [choice for choice in tried if choice is not None]
    if kept is not None:
        choices, below = [kept, *map(_without_below, choices)], False
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
    return (mechanism.noise is None or noised_below(mechanism)) and _has_threshold(mechanism)


def _has_threshold(mechanism: Mechanism) -> bool:
    return mechanism.k is not None or getattr(mechanism, "k_complement", None) is not None


def _otherwise(
    why: str, mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim, say: Speech
) -> str:
    """Say what noise gives where that is too little, and what to do about the leakage."""
    noise = _noise(mechanism, protects, aim[0])
    noised = _of_kind(mechanism, noise=GeometricNoise(noise)) if noise else None
    worst = None if noised is None else bounds_of(noised, attacker.against_anyone(), protects).worst
    if worst is None:
        return (
            f"{why} No parameter of the release changes that. Publish what leaks with noise of its own, and declare "
            "that by its epsilon and delta; or do not publish it."
        )
    epsilon, delta = worst.parameters
    return (
        f"{why} Noise gives a guarantee against anyone, but none of epsilon = {aim[0]:g}, delta = "
        f"{rounded_up(aim[1])} beside what leaks: {say.noise(noise)}"
        f"{' without thresholds' if _has_threshold(mechanism) else ''} gives epsilon = {rounded_up(epsilon)}, delta = "
        f"{rounded_up(delta)}. Publish what leaks with more noise of its own, or do not publish it."
    )


def _kept(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim) -> Choice | None:
    """Name the least release threshold; where small counts are noised, also a k that is enough; all else is kept."""
    below, k, threshold = noised_below(mechanism), mechanism.k, mechanism.release_threshold
    argued = _argued(mechanism, attacker, protects) if below else (attacker.against_anyone(), 0, _whatever(attacker))
    if mechanism.noise is None or argued is None or argued[1] or max(k or 0, threshold or 0) > _MAX_KEPT:
        return None
    whom, _, where = argued
    first = (threshold or 0) if below else max(k or 0, threshold or 0)
    ample: dict[str, Any] = {} if below and threshold is None else {"release_threshold": first + _MAX_NUMBER}
    changed: dict[str, Any] = {}
    if below:
        # From the noise's ε on small counts tell as much as if they were hidden; a search among them would take long.
        enough = _least(_of_kind(mechanism, k=2), whom, protects, aim, "k", 2)
        changed["k"] = None if enough is None or enough > _MAX_NOISED else max(k or 1, enough)
    elif (worst := bounds_of(replace(mechanism, **ample), whom, protects).worst) is not None:
        aim = (min(aim[0], worst.parameters[0]), aim[1])  # noise that is stronger than is needed stays so
    if None in changed.values() or not _reaches(replace(mechanism, **ample, **changed), whom, protects, aim):
        return None
    if ample:
        changed["release_threshold"] = _least(
            replace(mechanism, **changed), whom, protects, aim, "release_threshold", first
        )
    settings = [setting for setting in changed.items() if setting[1] != getattr(mechanism, setting[0])]
    comma = "" if below else ","
    return lambda say: (
        f"{' and '.join(say.setting(*setting) for setting in settings) or 'all of it as it is'}{comma} {where}"
    )


def _without_below(choice: Choice) -> Choice:
    return lambda say: f"with below left out, {choice(say)}"


def _whatever(attacker: AttackerModel) -> str:
    return "whatever the attacker knows" if not attacker.leakage else "whatever else the attacker knows"


def _by_threshold(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim) -> Choice | None:
    """Name the smallest k for what is declared about the attacker, or for an example where nothing is."""
    threshold = _threshold(mechanism, attacker, protects, aim)
    if threshold is None:
        return None
    k, condition = threshold
    if cells_per_unit(mechanism) > 1:
        cells = "" if attacker.independent_cells else ", and independent_cells if that can be argued too"
        return lambda say: f"no noise but k = {k} {condition}{cells}"
    people = f" and known = {attacker.known}" if attacker.known else ""
    return lambda say: f"k = {k} {condition}{people}"


def _threshold(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim) -> tuple[int, str] | None:
    """Return the smallest k, and for which probability it is; None where none is enough, or nothing can be argued."""
    argued = _argued(mechanism, attacker, protects)
    if argued is None:
        return None
    whom, aside, where = argued
    k = _least(_of_kind(mechanism, k=2), whom, protects, aim, "k", 2)
    return None if k is None else (k + aside, where)


def _argued(mechanism: Mechanism, attacker: AttackerModel, protects: Protects) -> tuple[AttackerModel, int, str] | None:
    """Return the attacker against whom k is looked for, how many known people are set aside, and what is argued."""
    several, known = cells_per_unit(mechanism) > 1, attacker.known
    left = Surviving(attacker, noised=False).theorems
    # Beside what tells who is present, absence protects nobody.
    absent = attacker.p_max if protects == "presence" or "histogram_value" in left else None
    between = protects == "value" and not several and (attacker.p_max_between is not None or absent in (None, 1.0))
    name, share = ("p_max_between", attacker.p_max_between) if between else ("p_max", absent)
    declared = share is not None and share < 1.0
    if share is None or not declared:
        if not _by_k(mechanism):
            return None
        # An example that does not contradict what is declared.
        low = attacker.p_min or 0.0
        share = 0.75 if between else 0.1 if low <= 0.1 else 0.5 * (1.0 + low)
    if attacker.sampled is not None or (several and cells_per_unit(mechanism) > _MAX_CELLS * (1.0 - share)):
        return None
    # Many known people are set aside as if they were controlled: k is then enough, if not the least.
    rare = share < _MIN_P and (several or protects == "value")
    aside = 0 if between or known <= (0 if rare else _MAX_AVERAGED) or (several and not rare) else known
    certified = max(share, _MIN_P) if rare and several and share else share
    argued = replace(
        attacker,
        **dict.fromkeys(("p_max", "p_min", "p_max_between", "unknown"), None) | {name: certified},  # type: ignore[arg-type]
        known=known - aside,
        independent_cells=several or attacker.independent_cells,
    )
    where = f"with the declared {name} = {share!r}" if declared else f"if {name} = {share!r} can be argued"
    return argued, aside, where


def _by_uncertainty(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim) -> Choice | None:
    """Name how many unknown people an exact count needs, or an exact histogram."""
    low, high, examples = attacker.p_min, attacker.p_max, mechanism.noise is None
    if attacker.sampled is not None:
        return None
    if isinstance(mechanism, Count) or protects == "presence":
        open_box = bool(low) and high is not None and high < 1.0
        if not open_box and not (examples and isinstance(mechanism, Count)):
            return None
        low, high = (low, high) if open_box else (0.1, 0.9)
        argued = "with the declared p_min and p_max"
        if isinstance(mechanism, Count):
            argued = f"with p_min = {low!r} and p_max = {high!r}"
    else:
        is_declared = bool(low) and low <= 0.5  # type: ignore[operator]
        if not is_declared and not examples:
            return None
        low, high = low if is_declared else 0.1, None
        argued = f"who choose every option with p_min = {low!r}"
    unsure = replace(attacker, p_min=low, p_max=high, p_max_between=None, unknown_max=None)
    people = _least(_of_kind(mechanism), unsure, protects, aim, "unknown", 1)
    if people is None:
        return None
    exact = "no threshold but " if isinstance(mechanism, Count) else ""
    return lambda say: f"{exact}unknown = {people} people {argued}"


def _by_noise(
    mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim, *, declared: bool = True
) -> Choice | None:
    """Name the noise that gives the target against any attacker, given what leaks, in the place of thresholds."""
    anyone = attacker.against_anyone()
    noises = (_noise(mechanism, protects, share * aim[0]) for share in _NOISE_SHARES)
    enough = (
        noise
        for noise in noises
        if noise and _reaches(_of_kind(mechanism, noise=GeometricNoise(noise)), anyone, protects, aim)
    )
    noise = next(enough, None)
    if noise is None:
        return None
    whatever, instead = _whatever(attacker), ""
    # A cell that exists through one person alone appears by the threshold.
    first: int | None = None
    alone: dict[str, Any] = {"k": 1}
    if isinstance(mechanism, Sum):
        alone = {"cells_found": mechanism.cells_found}
        first = max(0, mechanism.bounds[1]) if mechanism.cells_found else None
    elif _has_threshold(mechanism):
        instead = "no threshold but " if isinstance(mechanism, Count) else "no k but " if mechanism.k != 1 else ""
        first = None if declared or isinstance(mechanism, Count) else 1
    if first is None:
        return lambda say: f"{instead}{say.noise(noise)}, {whatever}"
    noised = _of_kind(mechanism, noise=GeometricNoise(noise), release_threshold=first, **alone)
    reached = _least(noised, anyone, protects, aim, "release_threshold", first)
    if reached is None:
        return None
    return lambda say: f"{instead}{say.noise(noise)} with {say.setting('release_threshold', reached)}, {whatever}"


def _instead(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim) -> Choice | None:
    """Name the histogram that hides the cell beside what tells who is present; it hides no presence."""
    left = Surviving(attacker, noised=False).theorems
    if not attacker.leakage or protects == "value" or "histogram_between" not in left:
        return None
    histogram = Histogram(k=2 if _has_threshold(mechanism) else None, noise=mechanism.noise)
    threshold = _threshold(histogram, attacker, "value", aim)
    way = _by_noise(Histogram(), attacker, "value", aim)
    if threshold is not None:
        k, condition = threshold

        def way(say: Speech) -> str:
            return f"{say.setting('k', k)} {condition}"

    if way is None:
        return None
    hides = "it hides which cell a person is in, and not whether she is there"
    return lambda say: f"a histogram with {say.setting('protects', repr('value'))} and {way(say)}: {hides}"


def _noise(mechanism: Mechanism, protects: Protects, epsilon: float) -> float:
    """Return the ε of noise in each number, for which all that a person changes share `epsilon`; in few digits."""
    cells, moves = cells_per_unit(mechanism), protects == "value"
    if isinstance(mechanism, Sum):
        sums = SumCurve(theorem="sums", noise=1.0, bounds=mechanism.bounds, cells=cells, moves=moves)
        return shortened(epsilon * sums.sensitivity / sums.units)
    return shortened(epsilon / NoiseCurve(theorem="noise", noise=1.0, cells=cells, moves=moves).units)


def _of_kind(mechanism: Mechanism, **steps: Any) -> Mechanism:
    """Return a mechanism of the same kind, and for as many cells of a person, with these steps alone."""
    if isinstance(mechanism, Sum):
        return Sum(mechanism.bounds, cells_per_unit=mechanism.cells_per_unit, **steps)
    if isinstance(mechanism, Histogram):
        return Histogram(cells_per_unit=mechanism.cells_per_unit, **steps)
    return Count(**steps)


# Who looks for what can be certified is refused again and again with the same numbers: each is searched for once.


@lru_cache(maxsize=1024)
def _least(
    mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim, field: str, first: int
) -> int | None:
    """Return the smallest whole number in a field of either that is certified at `aim`; None where none is."""

    def enough(number: int) -> bool:
        if field == "unknown":
            return _reaches(mechanism, replace(attacker, unknown=number), protects, aim)
        changes: dict[str, Any] = {field: number}
        return _reaches(replace(mechanism, **changes), attacker, protects, aim)

    return least_whole(enough, first, first + _MAX_NUMBER)


def _reaches(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, aim: Aim) -> bool:
    applicable = bounds_of(mechanism, attacker, protects)
    bounds = [*(applied.bound for applied in applicable.partial), *filter(None, [applicable.worst])]
    return any(bool(bound.certified(np.array([aim[0]]))[0] <= aim[1]) for bound in bounds)
