"""When theorem I holds: counts from k on are exact, smaller ones noised, and nothing need be suppressed."""

from __future__ import annotations

from collections.abc import Callable
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

Rule = Callable[[Any, AttackerModel, frozenset[str]], Applied | str | None]


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
    theorem: str, suppressed: Rule, mechanism: Mechanism, attacker: AttackerModel, left: frozenset[str], *, looks: int
) -> Applied | str | None:
    """Take the place of the theorem on the same threshold without noise: `suppressed` says when that holds."""
    if not noised_below(mechanism):
        return None
    outcome = suppressed(mechanism, attacker, left)
    if not isinstance(outcome, Applied):
        return outcome
    assert isinstance(outcome.bound, Threshold)
    same = {name: getattr(outcome.bound, name) for name in ("k", "p", "cap", "known", "active")}
    bound = exact_from_k(theorem, mechanism, looks, **same)
    if isinstance(bound, str):
        return bound
    return Applied(bound=bound, attack=bound if looks == 1 and not attacker.p_min else None)


def _value(
    suppressed: Rule, mechanism: Mechanism, attacker: AttackerModel, left: frozenset[str]
) -> Applied | str | None:
    """Both cells' pairs in opposite orders; each known person is taken for controlled, and for one in both."""
    sure = replace(attacker, influence="active")
    outcome = _noised_below("noised_below_value", suppressed, mechanism, sure, left, looks=1)
    if not isinstance(outcome, Applied):
        return outcome
    assert isinstance(outcome.bound, NoisedBelow)
    bound = TwoCells(theorem="noised_below_value", presence=outcome.bound)
    alone = attacker.known == 0 and attacker.p_max_between is None and not attacker.p_min
    return Applied(bound=bound, attack=bound if alone else None)


def noised_below_records(count: Theorem, presence: Theorem, value: Theorem, between: Theorem) -> tuple[Theorem, ...]:
    """Return theorem I's records, given those of the same thresholds without noise."""

    def record(suppressed: Theorem, key: str, title: str, rule: Callable[[Rule], Rule]) -> Theorem:
        assert suppressed.rule is not None
        return replace(
            suppressed,
            key=key,
            title=title,
            citation="docs/mathematics.md, section 6, theorem I",
            formal=formal.NOISED_BELOW if suppressed.about and suppressed.about[1] == "presence" else None,
            noised_below=True,
            rule=rule(suppressed.rule),
        )

    def with_looks(key: str, looks: int) -> Callable[[Rule], Rule]:
        return lambda suppressed: partial(_noised_below, key, suppressed, looks=looks)

    exact = "exact from k on, noised below"
    return (
        record(count, "noised_below", f"Theorem I: a count, {exact}", with_looks("noised_below", 1)),
        record(
            presence,
            "noised_below_presence",
            f"Theorem I for a cell: a histogram, {exact}",
            with_looks("noised_below_presence", 1),
        ),
        record(
            between,
            "noised_below_between",
            f"Theorem I, value: {exact}, nothing assumed about absence",
            with_looks("noised_below_between", 2),
        ),
        record(
            replace(value, averages=False),
            "noised_below_value",
            f"Theorem I, value: {exact}, where absence is possible",
            lambda suppressed: partial(_value, suppressed),
        ),
    )
