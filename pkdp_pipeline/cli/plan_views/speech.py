"""Speech: advice written as flags of ``pkdp plan``."""

from __future__ import annotations

from pkdp_pipeline.cli.plan_views.question import EVIDENCE
from pkdp_pipeline.cli.plan_views.words import typed
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.wording import JOB_FILE, Speech, worded_for

__all__ = ["in_flags"]


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
