"""When the theorems on a declared box hold: everybody else is counted with a probability between two numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import permutations

import flint

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Mechanism
from pkdp_pipeline.model.wording import listed
from pkdp_pipeline.theorems import words
from pkdp_pipeline.theorems.bound import MAX_NOISE, MIN_NOISE, PAPER, Applied, Theorem
from pkdp_pipeline.theorems.boxed_threshold import BoxedThreshold
from pkdp_pipeline.theorems.counting import Counting
from pkdp_pipeline.theorems.noisy_threshold import MAX_KNOWN, NoisyBesideKnown, NoisyThreshold
from pkdp_pipeline.theorems.rounding import ball_above, ball_below

_BOX = ("p_min", "p_max", "unknown")
"""The attacker's fields that declare a box."""

_SIDES = ("thresholding_in_box", "complement_in_box")
"""Theorem E for the people who are counted, and for those who are not."""

_BOTH = "two_thresholds_in_box"
"""The same with a threshold on either; where it is left, so are the others."""


def _exact(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    """Section 3: the count without its threshold and noise, which only take away from it."""
    bound, suppressed = _box("counting", attacker), _suppresses(mechanism)
    if bound is None:
        return None if suppressed else _certain(attacker)
    # Theorem E is this with more people.
    if suppressed and _BOTH in left:
        either = any(_thresholded(side, mechanism, attacker, left) for side in _SIDES)
        if either or _twice(mechanism, attacker, left):
            return None
    # Beside noise it stands where the sum cannot be inverted.
    return Applied(bound=bound, attack=None if suppressed or mechanism.noise is not None else bound)


def _noised(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    bound = _box("noisy_counting", attacker)
    if mechanism.noise is None or _suppresses(mechanism) or bound is None or mechanism.noise.epsilon > MAX_NOISE:
        return None
    # Theorem E is this with more people.
    if _BOTH in left and _thresholded(_SIDES[0], mechanism, attacker, left):
        return None
    bound = replace(bound, noise=mechanism.noise.epsilon)
    # A threshold of at most 1 forbids no cutoff that could be best.
    controlled = attacker.known if attacker.influence == "active" else 0
    return Applied(bound=bound, attack=bound if (mechanism.release_threshold or 0) - controlled <= 1 else None)


def _thresholded(side: str, mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | None:
    """Theorem E; where it says nothing, theorem A and section 3 say what holds, or why not."""
    box, thresholds, noise = _box(side, attacker), (mechanism.k, mechanism.k_complement), None
    # Where nothing is suppressed before the noise, the sum of count and noise is what has to reach a threshold.
    if mechanism.noise is not None and not _suppresses(mechanism):
        thresholds, noise = (mechanism.release_threshold, None), mechanism.noise.epsilon
        if noise > MAX_NOISE:
            return None
    k, other = thresholds if side == _SIDES[0] else thresholds[::-1]
    # An attacker who merely knows people sees them counted at the worst as often as one who controls them.
    if box is None or k is None or k - attacker.known <= 1:
        return None
    around = within = (box.p_min, box.p_max)
    if side != _SIDES[0]:
        ends = [1 - flint.arb(p) for p in (box.p_max, box.p_min)]
        around, within = (
            (round_low(ends[0]), round_high(ends[1]))
            for round_low, round_high in permutations((ball_below, ball_above))
        )
    if around[1] >= 1.0:
        return None
    # Both together are as good as the better one, unless so few people are unknown that one more matters.
    if other is not None and attacker.unknown_max is None and _twice(mechanism, attacker, left):
        return None
    bound = BoxedThreshold(
        theorem=side,
        unknown=box.unknown,
        p_min=around[0],
        p_max=around[1],
        noise=noise,
        k=k - attacker.known,
        cap=attacker.unknown_max,
    )
    # An attacker who merely knows people may know none of those who are counted.
    left_of_k = bound.k if attacker.influence == "active" else k
    attained = (mechanism.noise is None or noise is not None) and other is None and within[0] <= within[1]
    attack = replace(bound, p_min=within[0], p_max=within[1], k=left_of_k) if attained else None
    return Applied(bound=bound, attack=attack)


def _twice(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | None:
    """Theorem E with two thresholds; attackers are looked for from the worst one of its proof."""
    box = _box(_BOTH, attacker)
    if box is None or mechanism.k is None or mechanism.k_complement is None:
        return None
    k, other = mechanism.k - attacker.known, mechanism.k_complement - attacker.known
    if min(k, other) <= 1:
        return None
    bound = BoxedThreshold(
        theorem=_BOTH,
        # Of fewer people, the target included, than both thresholds need together nothing is published.
        unknown=max(box.unknown, k + other - 1),
        p_min=box.p_min,
        p_max=box.p_max,
        k=k,
        k_complement=other,
        cap=attacker.unknown_max,
    )
    return Applied(bound=bound, attack=None)


_MAX_EXPECTED_KNOWN = 5.0
"""With many people merely known theorem D is evaluated where so few are expected to count."""


def behind_noise(theorem: str, mechanism: Mechanism, attacker: AttackerModel) -> NoisyThreshold | None:
    """Theorem D: a threshold with noise after it, few people merely known."""
    k, p, noise, release = mechanism.k, attacker.p_max, mechanism.noise, mechanism.release_threshold
    controlled = attacker.known if attacker.influence == "active" else 0
    known = attacker.known - controlled
    if k is None or noise is None or p is None or p == 1.0 or k - controlled <= 1:
        return None
    # Of more people the most telling ones may be fewer than all.
    if known > k - 2 and known * p > (k - 1) * (1.0 - 1e-9):
        return None
    if known > max(MAX_KNOWN, _MAX_EXPECTED_KNOWN / p if p else 0.0):
        return None
    if not MIN_NOISE <= noise.epsilon <= MAX_NOISE or getattr(mechanism, "k_complement", None) is not None:
        return None
    return NoisyThreshold(
        theorem=theorem,
        k=k - controlled,
        p=p,
        cap=attacker.unknown_max,
        known=known,
        noise=noise.epsilon,
        release_threshold=None if release is None else release - controlled,
    )


_MAX_UNKNOWN = 3_000
"""With more unknown people theorem D is not evaluated in a box: a search takes too long."""


def _behind_noise(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | None:
    """Theorem D in a box; with a smaller threshold the unknown people may tell more, or less."""
    box, theorem = _box("", attacker), "noisy_thresholding_in_box"
    if box is None or max(attacker.known / MAX_KNOWN, box.unknown / _MAX_UNKNOWN) > 1:
        return None
    counted = (replace(attacker, known=known, influence="active") for known in range(attacker.known + 1))
    bounds = (behind_noise(theorem, mechanism, known) for known in counted)
    ways = tuple(replace(way, p_min=box.p_min, unknown=box.unknown) for way in bounds if way is not None)
    if len(ways) <= attacker.known:
        return None
    bound = NoisyBesideKnown(theorem=theorem, parts=ways) if attacker.known else ways[0]
    # An attacker who merely knows people may know nobody.
    return Applied(bound=bound, attack=bound if attacker.influence == "active" else ways[0])


def _box(theorem: str, attacker: AttackerModel) -> Counting | None:
    """Return the bound for an attacker who is uncertain about everybody in a box of probabilities."""
    p_min, p_max, unknown = attacker.p_min, attacker.p_max, attacker.unknown
    if not p_min or p_max is None or p_max == 1.0 or not unknown:
        return None
    return Counting(theorem=theorem, unknown=unknown, p_min=p_min, p_max=p_max)


def _suppresses(mechanism: Count) -> bool:
    """Return whether anything is suppressed before the noise."""
    return mechanism.k is not None or mechanism.k_complement is not None


def _certain(attacker: AttackerModel) -> str:
    """Return why nothing is uncertain about the other people."""
    missing = [name for name in ("p_min", "p_max", "unknown") if getattr(attacker, name) is None]
    if missing:
        return (
            "a count published without k is protected by the other people's uncertainty, which needs "
            f"{listed(missing)} declared"
        )
    if attacker.p_min == 0.0:
        return "p_min = 0 lets the attacker be certain that nobody else is counted"
    if attacker.p_max == 1.0:
        return "p_max = 1 lets the attacker be certain that everybody else is counted"
    return "unknown = 0 leaves the attacker nothing to be uncertain about"


_IN_A_BOX = Theorem(
    key="noisy_thresholding_in_box",
    title="Theorem D in a box: a threshold with noise after it",
    citation="docs/mathematics.md, section 6, theorem D in a box",
    formal=words.BEHIND_NOISE_IN_A_BOX,
    against=partial(words.thresholding_in_box, "in"),
    rests_on=("known", "p_max", "unknown"),
    needs=_BOX,
    about=(Count, "presence"),
    rule=_behind_noise,
)
_E = replace(_IN_A_BOX, citation="docs/mathematics.md, section 4, theorem E", formal=words.IN_A_BOX)
_COUNTING = Theorem(
    key="counting",
    noised_below=True,
    title="Lemmas 1 to 3: exact counts against an attacker in a box of probabilities",
    citation=f"docs/mathematics.md, sections 1 to 3; sharpens Theorem 3 of {PAPER}",
    formal=words.VERTICES,
    against=words.counting,
    rests_on=("unknown",),
    needs=_BOX,
    beside_private=True,
    about=(Count, "presence"),
    rule=_exact,
)

IN_A_BOX = (
    _IN_A_BOX,
    *(
        replace(
            _E,
            key=key,
            title=f"Theorem E{whose}: in a box, a threshold is as good as more unknown people",
            against=partial(words.thresholding_in_box, side),
            rule=partial(_thresholded, key),
        )
        for key, whose, side in zip(_SIDES, ("", " for the people who are not counted"), ("in", "outside"), strict=True)
    ),
    replace(
        _E,
        key=_BOTH,
        title="Theorem E for both thresholds: in a box, they are as good as more unknown people",
        against=words.two_thresholds_in_box,
        rule=_twice,
    ),
    replace(
        _COUNTING,
        key="noisy_counting",
        title="Lemmas 1 to 3 on the sum of the count and its noise",
        citation=f"docs/mathematics.md, sections 1 to 3 and 6; section 5.2 of {PAPER}",
        beside_private=False,
        noised_below=False,
        rule=_noised,
    ),
    _COUNTING,
)
"""Their records, in the order in which they are tried."""
