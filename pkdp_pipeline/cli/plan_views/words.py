"""Words: a mechanism in a few of them, and advice as flags of ``pkdp plan``."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal

from pkdp_pipeline.cli.plan_views.question import EVIDENCE
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.model.wording import JOB_FILE, Speech, worded_for
from pkdp_pipeline.planning import Choice

__all__ = ["estimate", "in_flags", "mechanism_phrase", "offered", "typed"]


def mechanism_phrase(mechanism: Mechanism) -> str:
    """Return what is published, in few words."""
    if mechanism.noise is None:
        return "no noise, every count" if mechanism.k is None else f"no noise, k = {mechanism.k}"
    noise = f"noise of ε = {typed(mechanism.noise.epsilon)}"
    return noise if mechanism.release_threshold is None else f"{noise}, from {mechanism.release_threshold}"


def typed(epsilon: float) -> str:
    """Return the ε of a noise, rounded down: whoever types what is shown gets a little more noise, not less."""
    short = Context(prec=4, rounding=ROUND_FLOOR).create_decimal(Decimal(epsilon))
    return f"{float(short):g}"


def offered(choice: Choice) -> str:
    """Return a choice as it is offered to somebody who did not ask for it."""
    error = choice.outcome.mean_absolute_error
    off = "" if error is None else f" (a number is off by {estimate(error)} on average)"
    threshold = choice.mechanism.release_threshold
    noise = mechanism_phrase(choice.mechanism).partition(", from")[0]
    return f"{noise}{off}" if threshold is None else f"{noise} and release_threshold = {threshold}{off}"


def estimate(value: float) -> str:
    """Return an expected error; an estimate, and no claim."""
    return f"{value:.3g}" if value < 1000.0 else f"{value:,.0f}"


class _Flags(Speech):
    def setting(self, name: str, value: object) -> str:
        return f"{name} = {value}"

    def noise(self, epsilon: float) -> str:
        return f"noise of ε = {typed(epsilon)}"

    def evidence(self, kind: str) -> str:
        name = self.evidence_name(kind)
        numbers = ",".join(field.upper() for field in EVIDENCE.get(name, ()))
        return f"--evidence {name}:{numbers}" if numbers else f"--evidence {name}"

    def evidence_name(self, kind: str) -> str:
        return JOB_FILE.evidence_name(kind)

    def declare(self, kind: str) -> str:
        return self.evidence(kind)

    def budget_of_part(self, part: str) -> str:
        return JOB_FILE.budget_of_part(part)

    declaring = "when you plan"
    same_people = ""  # what is planned is one table
    budget = JOB_FILE.budget
    larger_budget = JOB_FILE.larger_budget
    revise = JOB_FILE.revise


_FLAGS = _Flags()


def in_flags(error: PkdpError) -> str:
    """Return an error's message, its advice as flags where it can be had so."""
    return worded_for(error, _FLAGS)
