"""When theorem I holds: counts from k on are exact, smaller ones noised, and nothing need be suppressed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Mechanism, noised_below
from pkdp_pipeline.theorems import formal
from pkdp_pipeline.theorems.bound import MAX_NOISE, Applied
from pkdp_pipeline.theorems.hull import TwoCells
from pkdp_pipeline.theorems.noised_below import NoisedBelow
from pkdp_pipeline.theorems.record import Theorem
from pkdp_pipeline.theorems.thresholding import Threshold


def exact_from_k(theorem: str, mechanism: Mechanism, looks: int = 1, **people: Any) -> NoisedBelow | str:
    """Return theorem I's bound for a mechanism and the people of a threshold's, or why the noise is none."""
    noise = mechanism.noise
    assert noise is not None
    if noise.epsilon * looks > MAX_NOISE:
        return f"noise epsilon above {MAX_NOISE / looks:g} changes nothing: leave noise and below out"
    return NoisedBelow(
        theorem=theorem,
        **people,
        noise=noise.epsilon,
        release_threshold=mechanism.release_threshold,
        from_one=mechanism.below == "noise_from_1",
        looks=looks,
    )


def _noised_below(
    suppressed: Theorem, key: str, looks: int, mechanism: Mechanism, attacker: AttackerModel, left: frozenset[str]
) -> Applied | str | None:
    """Take the place of the theorem on the same threshold without noise, which says when that holds.

    For the value through absence both cells' pairs are taken in opposite orders; each known person is taken for
    controlled, and for one in both.
    """
    if not noised_below(mechanism) or suppressed.rule is None:
        return None
    both = suppressed.hides_presence_too
    outcome = suppressed.rule(mechanism, replace(attacker, influence="active") if both else attacker, left)
    if not isinstance(outcome, Applied):
        return outcome
    assert isinstance(outcome.bound, Threshold)
    same = {name: getattr(outcome.bound, name) for name in ("k", "p", "cap", "known", "active")}
    bound = exact_from_k(key, mechanism, looks, **same)
    if isinstance(bound, str):
        return bound
    if not both:
        return Applied(bound=bound, attack=bound if looks == 1 and not attacker.p_min else None)
    alone = attacker.known == 0 and attacker.p_max_between is None and not attacker.p_min
    cells = TwoCells(theorem=key, presence=bound)
    return Applied(bound=cells, attack=cells if alone else None)


def noised_below_records(count: Theorem, presence: Theorem, value: Theorem, between: Theorem) -> tuple[Theorem, ...]:
    """Return theorem I's records, given those of the same thresholds without noise."""
    exact = "exact from k on, noised below"
    rows = (
        (count, "noised_below", f"Theorem I: a count, {exact}", 1),
        (presence, "noised_below_presence", f"Theorem I for a cell: a histogram, {exact}", 1),
        (between, "noised_below_between", f"Theorem I, value: {exact}, nothing assumed about absence", 2),
        (value, "noised_below_value", f"Theorem I, value: {exact}, where absence is possible", 1),
    )
    return tuple(
        replace(
            suppressed,
            key=key,
            title=title,
            citation="docs/mathematics.md, section 6, theorem I",
            formal=formal.NOISED_BELOW if suppressed in (count, presence) else None,
            averages=suppressed.averages and suppressed is not value,
            noised_below=True,
            rule=partial(_noised_below, suppressed, key, looks),
        )
        for suppressed, key, title, looks in rows
    )
