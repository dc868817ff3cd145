"""Explaining: what a release would be, before anything is read, charged or published."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import (
    BudgetExceededError,
    DifferencingError,
    NoEvidenceError,
    NotCertifiableError,
    PkdpError,
)
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.mechanisms import Mechanism, Protects
from pkdp_pipeline.plugins import view
from pkdp_pipeline.releases.derived import ExpectedError, expected_error
from pkdp_pipeline.releases.publish import Publication

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.ledger.history import Spent

Outcome = Literal["publish", "replay", "refused"]
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
    """A release as it would be; made by `explain`. Printing it says it in words.

    Attributes
    ----------
    asked : str
        The publication, in the words of a ledger's entry.
    mechanism : Count or Histogram
    attacker : AttackerModel
    protects : {"presence", "value"}
    context : Context
        The facts of the publication: unit, rules for rows, period and data set.
    outcome : {"publish", "replay", "refused"}
    refused : PkdpError or None
        The error that publishing would raise.
    certificate : ReleaseCertificate or None
        The certificate that the release would carry. Of one that the ledger refuses for its budget or for want of
        evidence, the one that it refused; None where there is no honest one.
    statement : Statement or None
        The statement of that certificate, at δ = 1e-6.
    scenarios : tuple of Scenario
        The guarantees left where the attacker is stronger than declared; see `what_if`.
    error : ExpectedError
        The error that the noise would make, and when a count would be published at all; from public parameters alone.
    before : Certificate or None
        The total of the ledger's releases for this unit now.
    after : Certificate or None
        The total that they would have then; the same where nothing would be charged.
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
    statement: Any
    scenarios: tuple[Any, ...]
    error: ExpectedError
    before: Certificate | None = None
    after: Certificate | None = None
    budgets: tuple[BudgetUse, ...] = ()

    def plot(self, *, delta: float = DELTA, ax: Axes | None = None) -> Axes:
        """Draw what the release would guarantee; see `Certificate.plot`.

        Raises
        ------
        NotCertifiableError, DifferencingError, NoEvidenceError
            The error that publishing would raise, where there is no certificate.
        ConfigError
            If matplotlib is not installed.
        """
        if self.certificate is None:
            assert self.refused is not None
            raise self.refused
        return self.certificate.plot(delta=delta, ax=ax)

    def __repr__(self) -> str:
        return f"<Explanation: {view('explanation.heading')(self)}>"

    def __str__(self) -> str:
        return str(view("explanation.text")(self))

    def _repr_html_(self) -> str:
        return str(view("explanation.html")(self))


def explanation_of(publication: Publication) -> Explanation:
    """Return what publishing would do; the ledger stays as it is. See `pkdp_pipeline.explain`."""
    question, ledger = publication.question, publication.ledger
    sums: dict[str, Any] = {}
    if ledger is None:
        outcome, certificate, refused = _foreseen(publication)
        context = question.context()
    else:
        from pkdp_pipeline.ledger.reading import rehearsal

        with rehearsal(ledger) as trial:
            now = then = _sums(trial, question.unit)
            outcome, certificate, refused = _foreseen(replace(publication, ledger=trial))
            if refused is None:
                then = _sums(trial, question.unit)
            context = question.context(trial.dataset)
        budgets = tuple(_use(*both) for both in zip(now[1], then[1], strict=True))
        sums = {"before": now[0], "after": then[0], "budgets": budgets}
    return Explanation(
        asked=question.description,
        mechanism=question.mechanism,
        attacker=publication.attacker,
        protects=question.protects,
        context=(certificate and certificate.context) or context,
        outcome=outcome,
        refused=refused,
        certificate=certificate,
        statement=None if certificate is None else view("statement").of(certificate, DELTA),
        scenarios=() if certificate is None else view("what_if")(certificate.stated(DELTA), delta=DELTA),
        error=expected_error(question.mechanism),
        **sums,
    )


def _sums(ledger: Ledger, unit: tuple[str, ...]) -> tuple[Certificate | None, list[Spent]]:
    """Return what a unit's releases add up to, and what is used of the budgets."""
    from pkdp_pipeline.ledger.history import spent
    from pkdp_pipeline.ledger.rows import unit_text

    return ledger.known_total(unit), spent(ledger.totals(), unit_text(unit))


def _use(before: Spent, after: Spent) -> BudgetUse:
    return BudgetUse(
        budget=before.budget,
        part=before.measure,  # type: ignore[arg-type]  # a budget's measures are these parts
        before=before.epsilon,
        after=after.epsilon,
        complete=before.complete and after.complete,
    )


def _foreseen(publication: Publication) -> tuple[Outcome, ReleaseCertificate | None, PkdpError | None]:
    """Return what would become of a publication, and charge it: its ledger is a rehearsal."""
    from pkdp_pipeline.ledger import Entry

    offered: list[ReleaseCertificate] = []
    try:
        if publication.ledger is None:
            return "publish", publication.certified_alone(), None
        answer = publication.reserve(offered.append)
        if not isinstance(answer, Entry):
            return "publish", offered[-1], None
        return "replay", publication.replayed(answer).certificate, None
    except (BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError) as error:
        error.__cause__ = error.__context__ = None  # an explanation holds on to nothing that its error passed through
        return "refused", offered[-1] if offered else None, error.with_traceback(None)
