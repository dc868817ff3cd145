"""Goal: the (ε, δ) to be reached, for one release or for several together, and whether something reaches it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.model.arguments import probability, whole_number
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, read_evidence
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.theorems.bound import epsilon_points


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to hold.

    Parameters
    ----------
    epsilon, delta : float
    protects : str
    days : int
        How many equal releases are to reach it together.
    evidence : tuple of Evidence
        What is declared so that they add up.
    """

    epsilon: float
    delta: float
    protects: str = "presence"
    days: int = 1
    evidence: tuple[Evidence, ...] = ()

    def together(self, certificate: Certificate) -> Certificate:
        """Return what `days` such releases promise together.

        Raises
        ------
        NoEvidenceError
            If they do not add up with what is declared.
        """
        if self.days == 1:
            return certificate  # nothing is added up, whatever is declared
        return compose([(certificate, self.days)], self.evidence)

    def loss(self, mechanism: Mechanism, attacker: AttackerModel) -> float:
        """Return the certified δ at `epsilon`; infinity where nothing can be certified."""
        try:
            one = certify(mechanism, attacker, protects=self.protects)
        except NotCertifiableError:
            return math.inf
        return self.together(one).delta(self.epsilon)

    @property
    def cells(self) -> int:
        """How many cells one person's other life changes."""
        return 2 if self.protects == "value" else 1

    @property
    def words(self) -> str:
        """The goal in words, for messages."""
        several = "" if self.days == 1 else f" for {self.days} releases together"
        return f"delta = {self.delta!r} at epsilon = {self.epsilon!r}{several}"

    def missed_by(self, loss: float) -> str:
        """Return in words what is certified instead."""
        if loss == math.inf:
            return "nothing is certified"
        return f"delta = {rounded_up(loss)} is certified"


def read_goal(
    epsilon: object,
    delta: object,
    protects: str,
    days: object = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> Goal:
    """Return the goal, or raise `ArgumentError`."""
    probable = probability("delta", delta)
    if probable == 0.0:
        raise ArgumentError("delta must be above 0: a threshold always leaves some probability, ask for delta = 1e-9.")
    points, scalar = epsilon_points(epsilon)  # type: ignore[arg-type]
    if not scalar:
        raise ArgumentError("epsilon must be one number, at least 0 and finite.")
    number = whole_number("days", days, least=1)
    return Goal(float(points[0]), probable, protects, number, read_evidence(evidence))


def read_attacker(attacker: object) -> AttackerModel:
    """Return the attacker; None is one about whom nothing is declared."""
    if attacker is None:
        return AttackerModel()
    if not isinstance(attacker, AttackerModel):
        raise ArgumentError(
            f"attacker must be an AttackerModel, not {type(attacker).__name__}: write pkdp.AttackerModel(p_max=0.1)."
        )
    return attacker
