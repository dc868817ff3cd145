"""The theorems on exact and noised counts that the other people's uncertainty protects."""

from __future__ import annotations

from dataclasses import replace

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram
from pkdp_pipeline.model.wording import listed, percent
from pkdp_pipeline.theorems.bound import Applied
from pkdp_pipeline.theorems.counting import Counting, Options
from pkdp_pipeline.theorems.record import PAPER, Theorem, independent, others


def against_counting(attacker: AttackerModel) -> str:
    """Say whom a bound on an exact or noised count holds against."""
    return (
        f"{_uncertain(attacker)}: between {percent(attacker.p_min, up=True)} and {percent(attacker.p_max)} sure that "
        "each is in the group; they may know everybody else"
    )


def _options(attacker: AttackerModel) -> str:
    return (
        f"{_uncertain(attacker)}: each chooses every option with probability at least "
        f"{percent(attacker.p_min, up=True)}; they may know what everybody else chose"
    )


def _uncertain(attacker: AttackerModel) -> str:
    return f"{independent(attacker)}, and who is uncertain about at least {others(attacker.unknown or 0)}"


def _exact(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    """Section 3: the count without its threshold and noise, which only take away from it."""
    bound, suppressed = _box("counting", attacker), _suppresses(mechanism)
    if bound is None:
        return None if suppressed else _certain(attacker)
    # Beside noise it stands where the sum cannot be inverted.
    return Applied(bound=bound, attack=None if suppressed or mechanism.noise is not None else bound)


def _noised(mechanism: Count, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    bound = _box("noisy_counting", attacker)
    if mechanism.noise is None or _suppresses(mechanism) or bound is None:
        return None
    bound = replace(bound, noise=mechanism.noise.epsilon)
    return Applied(bound=bound, attack=bound if mechanism.release_threshold is None else None)


def _box(theorem: str, attacker: AttackerModel) -> Counting | None:
    """Return the bound for an attacker who is uncertain about everybody in a box of probabilities."""
    p_min, p_max, unknown = attacker.p_min, attacker.p_max, attacker.unknown
    if not p_min or p_max is None or p_max == 1.0 or not unknown:
        return None
    return Counting(theorem=theorem, unknown=unknown, p_min=p_min, p_max=p_max)


def _suppresses(mechanism: Count) -> bool:
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


def _which_option(mechanism: Histogram, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    p_min, unknown = attacker.p_min, attacker.unknown
    obstacle = "p_min = 0 or unknown = 0 lets the attacker know what everybody else chose"
    if p_min is None or unknown is None:
        obstacle = (
            "exact counts of several options hide which one a person chose when p_min > 0 (each unknown person "
            "chooses each option with at least this probability) and unknown are declared"
        )
    elif p_min > 0.5:
        raise ArgumentError(
            f"p_min = {p_min!r} cannot hold for a histogram: every one of at least two options would be chosen with "
            "more than probability 1/2. For histograms p_min bounds each option's probability from below."
        )
    if not p_min or not unknown:
        return None if mechanism.k is not None else obstacle
    bound = Options(theorem="options", unknown=unknown, p_min=p_min)
    free = attacker.p_max is None and attacker.p_max_between is None
    return Applied(bound=bound, attack=bound if mechanism.k is None and mechanism.noise is None and free else None)


UNCERTAINTY = (
    Theorem(
        key="noisy_counting",
        title="Lemmas 1 to 3 on the sum of the count and its noise",
        citation=f"docs/mathematics.md, sections 1 to 3 and 6; section 5.2 of {PAPER}",
        against=against_counting,
        rests_on=("unknown",),
        about=(Count, "presence"),
        rule=_noised,
    ),
    Theorem(
        key="counting",
        title="Lemmas 1 to 3: exact counts against an attacker in a box of probabilities",
        citation=f"docs/mathematics.md, sections 1 to 3; sharpens Theorem 3 of {PAPER}",
        against=against_counting,
        rests_on=("unknown",),
        beside_private=True,
        about=(Count, "presence"),
        rule=_exact,
    ),
    Theorem(
        key="options",
        title="Exact counts of several options hide which one a person chose",
        citation=f"docs/mathematics.md, section 5; Corollary 1 of {PAPER}",
        against=_options,
        rests_on=("unknown",),
        reveals_who=True,
        about=(Histogram, "value"),
        rule=_which_option,
    ),
)
"""The records of these theorems."""
