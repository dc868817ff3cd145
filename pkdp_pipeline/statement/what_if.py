"""Scenario: what a certificate is worth when the attacker is stronger than declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Kind", "Scenario"]

Kind = Literal["declared", "knows_more", "surer", "no_evidence", "everything_known"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One way in which the attacker may differ from the declared one, and what is certified then.

    Attributes
    ----------
    kind : {"declared", "knows_more", "surer", "no_evidence", "everything_known"}
    words : str
        The attacker in plain English.
    epsilon : float
        Certified at `delta`; `math.inf` where there is none.
    delta : float
    delta_at_one : float
        Certified δ at ε = 1; 1.0 where there is nothing.
    verdict : str
        What is left, as a short phrase.
    """

    kind: Kind
    words: str
    epsilon: float
    delta: float
    delta_at_one: float
    verdict: str
