"""Random mechanisms with leakages on small universes, and what the theorems say about them, in rational numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from pkdp_pipeline.extras.theory.bounded_leakage import LeakagePair

__all__ = ["BITS_OF_TWO", "apart", "binary", "bit", "coin", "composed_delta", "growths", "line", "pairs", "step"]

#: e^ε for some ε, as rationals.
growths = st.sampled_from([Fraction(1), Fraction(9, 8), Fraction(3, 2), Fraction(2), Fraction(5)])
BITS_OF_TWO = [(a, b) for a in (0, 1) for b in (0, 1)]


def line(databases: Any) -> frozenset[tuple[Any, Any]]:
    """Return the neighbours of a chain: each database and the next."""
    listed = list(databases)
    return frozenset(pairwise(listed))


@st.composite
def laws(draw: st.DrawFn, outcomes: list[Any], most: int = 6) -> dict[Any, Fraction]:
    """Draw a law over `outcomes`, some of them impossible."""
    weights = draw(st.lists(st.integers(0, most), min_size=len(outcomes), max_size=len(outcomes)).filter(any))
    return {
        outcome: Fraction(weight, sum(weights)) for outcome, weight in zip(outcomes, weights, strict=True) if weight
    }


@st.composite
def pairs(draw: st.DrawFn, databases: int = 2, outputs: int = 3, leaked: int = 2) -> LeakagePair:
    """Draw a mechanism and a leakage whose neighbours share a leaked value at least once."""
    outcomes = [(y, o) for y in range(outputs) for o in range(leaked)]
    drawn_laws = {x: draw(laws(outcomes)) for x in range(databases)}
    pair = LeakagePair(laws=drawn_laws, neighbours=line(range(databases)))
    if pair.is_empty:
        # One outcome that every database may have makes it say something.
        mixed = {
            x: {
                s: (law.get(s, Fraction(0)) + (Fraction(1) if s == (0, 0) else Fraction(0))) / 2 for s in {*law, (0, 0)}
            }
            for x, law in drawn_laws.items()
        }
        pair = LeakagePair(laws=mixed, neighbours=line(range(databases)))
    return pair


def step(reached: Fraction, growth: Fraction, delta: Fraction) -> Fraction:
    """Return the most that an event can have, when it has `reached` one (growth, δ) step further."""
    return min(Fraction(1), growth * reached + delta, 1 - (1 - delta - reached) / growth)


def composed_delta(*deltas: Fraction) -> Fraction:
    """Return ``1 - Π (1 - δ)``."""
    kept = Fraction(1)
    for delta in deltas:
        kept *= 1 - delta
    return 1 - kept


def binary(chance: Fraction) -> dict[int, Fraction]:
    """Return the law of a coin: 1 with this chance."""
    return {y: p for y, p in ((1, chance), (0, 1 - chance)) if p}


def bit(truth: int, growth: Fraction, delta: Fraction) -> dict[Any, Fraction]:
    """Return the most telling (growth, δ)-private law about a bit: told with chance δ, else randomised."""
    right = growth / (1 + growth)
    law = {("told", truth): delta, ("says", truth): (1 - delta) * right, ("says", 1 - truth): (1 - delta) * (1 - right)}
    return {outcome: chance for outcome, chance in law.items() if chance}


def coin(outputs: dict[Any, Fraction], leaks: dict[Any, Fraction]) -> dict[tuple[Any, Any], Fraction]:
    """Return the law of an independent output and leakage."""
    return {(y, o): p * q for y, p in outputs.items() for o, q in leaks.items()}


def apart(first: dict[Any, Fraction], second: dict[Any, Fraction], growth: Fraction) -> Fraction:
    """Return how far two laws are apart: the maximum over all events, by trying every one of them."""
    outcomes = sorted({*first, *second}, key=repr)
    best = Fraction(0)
    for chosen in range(2 ** len(outcomes)):
        event = [outcome for number, outcome in enumerate(outcomes) if chosen >> number & 1]
        best = max(
            best, sum((first.get(s, Fraction(0)) - growth * second.get(s, Fraction(0)) for s in event), Fraction(0))
        )
    return best
