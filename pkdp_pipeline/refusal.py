"""What to say when nothing can be certified: why, and the nearest choices that can be, with numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from pkdp_pipeline.attacker import AttackerModel
from pkdp_pipeline.mechanisms import Count, Mechanism
from pkdp_pipeline.profiles import Bound, Protects
from pkdp_pipeline.profiles.counting import Counting
from pkdp_pipeline.profiles.inversion import least_whole
from pkdp_pipeline.profiles.options import Options
from pkdp_pipeline.profiles.thresholding import Thresholding
from pkdp_pipeline.profiles.value_through_absence import ValueThroughAbsence
from pkdp_pipeline.profiles.worst_case import NoiseCurve
from pkdp_pipeline.sentences import rounded_up
from pkdp_pipeline.wording import Speech, Worded

__all__ = ["refusal"]

Choice = Callable[[Speech], str]

_EPSILON = 1.0
_DELTA = 1e-6
_MOST = 1_000_000
_MANY = 200


def refusal(mechanism: Mechanism, attacker: AttackerModel, protects: Protects, obstacles: tuple[str, ...]) -> Worded:
    """Return the message of a `NotCertifiableError`; every number in it comes from the certificates' engine."""
    found = [choice(mechanism, attacker, protects) for choice in (_by_threshold, _by_uncertainty)]
    choices: list[Choice] = [partial(_plain, text) for text in found if text is not None]
    noised = _by_noise(mechanism, protects)
    if noised is not None:
        choices.append(noised)
    aim = "which cell a person is in" if protects == "value" else "whether a person is there"
    subject = (
        "this count hides whether a person is counted"
        if isinstance(mechanism, Count)
        else f"this histogram hides {aim}"
    )
    start = (
        f"Not certifiable: no theorem shows that {subject}, because {'; and '.join(obstacles)}. "
        f"Each of these would give epsilon = {_EPSILON:g}, delta = {rounded_up(_DELTA)}: "
    )
    return Worded(lambda say: f"{start}{'; or '.join(choice(say) for choice in choices)}.")


def _plain(text: str, say: Speech) -> str:
    """Return what is the same in every speech."""
    return text


def _reaches(bound: Bound) -> bool:
    return bool(bound.bracket(np.array([_EPSILON]))[1][0] <= _DELTA)


def _by_threshold(mechanism: Mechanism, attacker: AttackerModel, protects: Protects) -> str | None:
    """Name the smallest k for the declared p_max, or for an example where none is declared."""
    declared = attacker.p_max if attacker.p_max is not None and attacker.p_max < 1.0 else None
    # Many known people are set aside as if they were controlled: k is then enough, if not the least.
    aside = attacker.known if attacker.known > _MANY else 0
    known, cap = attacker.known - aside, attacker.unknown_max
    if protects == "value" and (attacker.p_max_between is not None or declared is None):
        between = attacker.p_max_between
        given = between is not None and between < 1.0
        share, label = between if between is not None and given else 0.75, "p_max_between"
        least = _least_k_between(share, cap, known)
    else:
        share, label, given = declared if declared is not None else 0.1, "p_max", declared is not None
        kind = ValueThroughAbsence if protects == "value" else Thresholding
        least = _least_k(kind, share, cap, known, attacker.influence == "active")
    if least is None:
        return None
    k = least + aside
    condition = f"with the declared {label} = {share!r}" if given else f"if {label} = {share!r} can be argued"
    people = f" and known = {attacker.known}" if attacker.known else ""
    return f"k = {k} {condition}{people}"


def _by_uncertainty(mechanism: Mechanism, attacker: AttackerModel, protects: Protects) -> str | None:
    """Name how many unknown people an exact count needs; presence in a histogram has no such way."""
    if isinstance(mechanism, Count):
        open_box = bool(attacker.p_min) and attacker.p_max is not None and attacker.p_max < 1.0
        low, high = (attacker.p_min, attacker.p_max) if open_box else (0.1, 0.9)
        assert low is not None
        assert high is not None
        people = _least_counted(low, high)
        return (
            None
            if people is None
            else (f"no threshold but unknown = {people} people with p_min = {low!r} and p_max = {high!r}")
        )
    if protects == "presence":
        return None
    share = attacker.p_min if attacker.p_min and attacker.p_min <= 0.5 else 0.1
    people = _least_choosing(share)
    return None if people is None else f"unknown = {people} people who choose every option with p_min = {share!r}"


def _by_noise(mechanism: Mechanism, protects: Protects) -> Choice | None:
    """Name the noise that gives the target against any attacker."""
    cells = 2 if protects == "value" else 1
    noise = _EPSILON / cells
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        return lambda say: f"no thresholds but {say.noise(noise)}, whatever the attacker knows"
    if mechanism.k is None:
        return lambda say: f"{say.noise(noise)}, whatever the attacker knows"
    gap = _least_gap(noise, cells)
    if gap is None:
        return None
    reached = mechanism.k + gap
    return lambda say: (
        f"{say.noise(noise)} with {say.setting('release_threshold', reached)}, whatever the attacker knows"
    )


# Who looks for what can be certified is refused again and again with the same numbers: each is searched for once.


@lru_cache
def _least_k(
    kind: type[Thresholding | ValueThroughAbsence], share: float, cap: int | None, known: int, active: bool
) -> int | None:
    def enough(k: int) -> bool:
        return _reaches(kind(theorem="thresholding", k=k, p=share, cap=cap, known=known, active=active))

    return least_whole(enough, 2, _MOST)


@lru_cache
def _least_k_between(share: float, cap: int | None, known: int) -> int | None:
    def enough(k: int) -> bool:
        return _reaches(Thresholding(theorem="histogram_between", k=max(1, k - known), p=share, cap=cap))

    return least_whole(enough, 2, _MOST)


@lru_cache
def _least_counted(low: float, high: float) -> int | None:
    def enough(people: int) -> bool:
        return _reaches(Counting(theorem="counting", unknown=people, p_min=low, p_max=high))

    return least_whole(enough, 1, _MOST)


@lru_cache
def _least_choosing(share: float) -> int | None:
    def enough(people: int) -> bool:
        return _reaches(Options(theorem="options", unknown=people, p_min=share))

    return least_whole(enough, 1, _MOST)


@lru_cache
def _least_gap(noise: float, cells: int) -> int | None:
    def enough(gap: int) -> bool:
        return _reaches(NoiseCurve(theorem="noise", noise=noise, cells=cells, appears_at=gap))

    return least_whole(enough, 0, _MOST)
