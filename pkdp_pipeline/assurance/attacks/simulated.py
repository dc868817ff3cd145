"""Simulated: what draws from one attacker's law show, with the confidence of it."""

from __future__ import annotations

from dataclasses import dataclass

from pkdp_pipeline.assurance.attacks.crowd import Crowd

__all__ = ["Simulated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What one crowd attains at `epsilon` by one event, chosen before the draws that judge it.

    Attributes
    ----------
    crowd : Crowd
    epsilon : float
    draws : int
    estimate : float
        Of ``P[E] - e^ε Q[E]`` for the event E.
    lower : float
        At or below it, hence at or below the divergence, with probability `confidence`.
    upper : float
        At or above ``P[E] - e^ε Q[E]`` with probability `confidence`; the divergence may be larger than that.
    confidence : float
    """

    crowd: Crowd
    epsilon: float
    draws: int
    estimate: float
    lower: float
    upper: float
    confidence: float
