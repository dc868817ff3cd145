"""Explanation: what a release would be, as values that print themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.statement import Scenario, Statement
from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.budget import Budget
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.releases.explaining.foreseeing import Outcome
from pkdp_pipeline.releases.noise import ExpectedError
from pkdp_pipeline.theorems import Protects

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DELTA", "BudgetUse", "Explanation"]

DELTA = 1e-6
"""Where ε is stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """One budget, and how much of it is used for one of the totals that it holds.

    Attributes
    ----------
    budget : Budget
    part : {"partial_knowledge", "worst_case"}
    before : float
        The ε that the releases add up to at the budget's δ; for a budget of some days, in the fullest window.
        `math.inf` where no ε reaches that δ, and where they do not add up.
    after : float
        The same, with the release.
    complete : bool
        Whether every window was looked at; if not, the fullest one may hold more.
    """

    budget: Budget
    part: Literal["partial_knowledge", "worst_case"]
    before: float
    after: float
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """What a release would be; made by `explain`. Printing it says it in words.

    Attributes
    ----------
    asked : str
        What is published, in the words of a ledger's entry.
    mechanism : Count or Histogram
    attacker : AttackerModel
    protects : {"presence", "value"}
    context : Context
        The facts of the publication: unit, rules for rows, period and data set.
    outcome : {"publish", "replay", "refused"}
    refused : PkdpError or None
        What publishing would raise.
    certificate : ReleaseCertificate or None
        The certificate that the release would carry. Of one that the ledger refuses for its budget or for want of
        evidence, the one that it refused; None where there is no honest one.
    statement : Statement or None
        What it says, at δ = 1e-6.
    scenarios : tuple of Scenario
        What is left of it where the attacker is stronger than declared; see `what_if`.
    error : ExpectedError
        What error the noise would make, and when a count would be published at all; from public parameters alone.
    before : Certificate or None
        What the ledger's releases for this unit add up to now.
    after : Certificate or None
        What they would add up to then; the same where nothing would be charged.
        None without a ledger, and where they do not add up.
    budgets : tuple of BudgetUse
        The budgets in force, and how much of each is used.

    Notes
    -----
    It is true of the ledger as it was. Where another release comes first, the certificate names another head of the
    chain, and it may be refused.
    """

    asked: str
    mechanism: Mechanism
    attacker: AttackerModel
    protects: Protects
    context: Context
    outcome: Outcome
    refused: PkdpError | None
    certificate: ReleaseCertificate | None
    statement: Statement | None
    scenarios: tuple[Scenario, ...]
    error: ExpectedError
    before: Certificate | None = None
    after: Certificate | None = None
    budgets: tuple[BudgetUse, ...] = ()

    def plot(self, *, delta: float = DELTA, axes: Axes | None = None) -> Axes:
        """Draw what the release would guarantee; see `Certificate.plot`.

        Raises
        ------
        NotCertifiableError, DifferencingError, NoEvidenceError
            What publishing would raise, where there is no certificate.
        ConfigError
            If matplotlib is not installed.
        """
        if self.certificate is None:
            assert self.refused is not None
            raise self.refused
        return self.certificate.plot(delta=delta, axes=axes)

    def __repr__(self) -> str:
        from pkdp_pipeline.releases.explaining.words import heading

        return f"<Explanation: {heading(self)}>"

    def __str__(self) -> str:
        from pkdp_pipeline.display.explanation import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        from pkdp_pipeline.display.explanation import html_of

        return html_of(self)
