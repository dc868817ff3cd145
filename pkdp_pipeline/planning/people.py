"""How many people must be unknown to the attacker: the smallest `unknown` at which a target holds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Count, Mechanism, mechanism_name
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.planning.guesses import guessed_unknown
from pkdp_pipeline.planning.searching import first_whole
from pkdp_pipeline.planning.target import Target, attacker_with, read_attacker, read_target

__all__ = ["smallest_unknown"]

_MOST = 100_000_000


def smallest_unknown(
    mechanism: Mechanism,
    attacker: AttackerModel,
    *,
    epsilon: float,
    delta: float,
    protects: str = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> int:
    """Return the smallest number of unknown people at which a release, or `days` of them together, reach the target.

    Parameters
    ----------
    mechanism : Count or Histogram
    attacker : AttackerModel
        The other fields; whatever it says about `unknown` is not used. For a `Count`, unknown people help where
        `p_min` and `p_max` are declared; for a `Histogram` that protects the value, where `p_min` is.
    epsilon : float
        At least 0 and finite.
    delta : float
        Above 0, at most 1.
    protects : {"presence", "value"}, default "presence"
    days : int, default 1
        How many equal releases are to reach the target together.
    evidence : Evidence or list of Evidence, optional
        What is declared so that they add up, see `compose`.

    Returns
    -------
    int
        ``certify(mechanism, attacker with this unknown, protects=protects).delta(epsilon) <= delta`` holds for it (with
        several days, for `compose` of them), and fails for one person less. 0 where a threshold or noise reaches the
        target by itself.

    Raises
    ------
    NotCertifiableError
        If no number up to a hundred million (or up to `unknown_max`) reaches the target; the message says what would.
    NoEvidenceError
        If several releases are asked about that do not add up with what is declared.
    ArgumentError
        If an argument is malformed.

    Notes
    -----
    *Guarantee*: the target holds at the answer, as certified. *Rounding*: up, to a whole number. The true δ never grows
    with the number of unknown people; the certified one follows it up to the search's slack of 1 % of δ. So a
    smaller number may reach the target too, within that slack, but none that the theorems place outside it.
    """
    goal = read_target(epsilon, delta, protects, days, evidence)
    mechanism_name(mechanism)
    others = attacker_with(read_attacker(attacker), unknown=None)
    most = _MOST if others.unknown_max is None else min(_MOST, others.unknown_max)

    @cache
    def loss(people: int) -> float:
        return goal.loss(mechanism, attacker_with(others, unknown=people))

    if loss(0) <= goal.delta:
        return 0
    # What is refused for the largest number is refused for all: the refusal says why.
    certify(mechanism, attacker_with(others, unknown=most), protects=goal.protects)
    people = first_whole(loss, goal.delta, 0, most, guessed_unknown(mechanism, others, goal))
    if people is None:
        raise NotCertifiableError(_unreachable(mechanism, others, goal, most))
    return people


def _unreachable(mechanism: Mechanism, others: AttackerModel, goal: Target, most: int) -> str:
    """Say why no number is enough, and what would help, with numbers."""
    largest = attacker_with(others, unknown=most)
    certificate = goal.together(certify(mechanism, largest, protects=goal.protects))
    start = (
        f"no number of unknown people up to {most} reaches {goal.words}: with {most} of them, "
        f"{goal.missed_by(certificate.delta(goal.epsilon))}"
    )
    reached = certificate.epsilon(goal.delta)
    nearest = "" if reached == math.inf else f", where epsilon = {rounded_up(reached)} can be had at this delta"
    fields = "p_min and p_max" if isinstance(mechanism, Count) else "p_min"
    return (
        f"{start}{nearest}. Declare {fields} (unknown people protect by them) where they can be argued, allow a larger "
        "epsilon or delta, choose a larger k, or add noise."
    )
