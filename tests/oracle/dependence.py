"""How much a release depends on the earlier ones, measured on the joint law as Definition 18 has it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from oracle.laws import Law

__all__ = ["measured_dependence"]


def _pushed(law: Mapping[Any, Any], part: Callable[[Any], Any]) -> Law:
    law_of_parts: Law = {}
    for outputs, weight in law.items():
        law_of_parts[part(outputs)] = law_of_parts.get(part(outputs), 0.0) + weight
    return law_of_parts


def measured_dependence(first: Law, second: Law, place: int, spare: float = 0.0) -> float:
    """Return the least ε′ >= 0 that release number `place` exceeds with probability at most `spare`.

    The quantity is what the release adds to the loss given all earlier outputs, beyond what it loses on its own.
    Both laws are of one output per release; probabilities are those of `first`. Where an earlier output, or the
    release on its own, has already told the lives apart, nothing is added.
    """

    def upto(outputs: Any) -> Any:
        return outputs[: place + 1]

    def before(outputs: Any) -> Any:
        return outputs[:place]

    def alone(outputs: Any) -> Any:
        return outputs[place]

    sides = [[_pushed(law, part) for part in (upto, before, alone)] for law in (first, second)]
    (joint, past, own), (other_joint, other_past, other_own) = sides
    added: list[tuple[float, float]] = []
    for outputs, weight in joint.items():
        past_outputs, output = outputs[:place], outputs[place]
        if weight <= 0.0 or other_past.get(past_outputs, 0.0) <= 0.0 or other_own.get(output, 0.0) <= 0.0:
            continue
        if other_joint.get(outputs, 0.0) <= 0.0:
            added.append((math.inf, weight))
            continue
        given = math.log(weight / past[past_outputs]) - math.log(other_joint[outputs] / other_past[past_outputs])
        added.append((given - math.log(own[output]) + math.log(other_own[output]), weight))
    exceeding = 0.0
    least = 0.0
    for loss, weight in sorted(added, reverse=True):
        exceeding += weight
        if exceeding > spare:
            least = max(0.0, loss)
            break
    return least
