"""Asking: `explain`, which says what a release would be while nothing is read, charged or published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from pkdp_pipeline.certificates.statement import Statement, what_if
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram
from pkdp_pipeline.releases.explaining.explanation import DELTA, BudgetUse, Explanation
from pkdp_pipeline.releases.explaining.foreseeing import Foreseen, foresee, foresee_alone
from pkdp_pipeline.releases.keywords import ExplainOptions, shows
from pkdp_pipeline.releases.noise import expected_error
from pkdp_pipeline.releases.publish import request_of
from pkdp_pipeline.releases.request import Request
from pkdp_pipeline.releases.reserving import check_ledger
from pkdp_pipeline.theorems import Protects

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.ledger.views.spent import Spent

__all__ = ["explain"]


@shows(ExplainOptions)
def explain(by: str | Sequence[str] | None = None, where: Any = None, **options: Unpack[ExplainOptions]) -> Explanation:
    """Say what a release would be, before anything is read, charged or published.

    A ledger is asked what it would say, and stays as it is. While it is asked, no other release of the data set can be
    charged.

    Parameters
    ----------
    by : str or sequence of str, optional
        Columns that name a cell: what `histogram` would publish is explained. None: what `count` would.
    where : boolean Series, str or callable, optional
        The predicate. It is not looked at, beyond its text; see `count`.

    Returns
    -------
    Explanation
        A refusal is its outcome and not raised.

    Raises
    ------
    ArgumentError
        If an argument is malformed, as when publishing. What the frame does not have is found out when publishing.
    LedgerError, TemporaryError
        If the ledger cannot be used or is locked.

    Notes
    -----
    *Guarantee*: the certificate is the one that publishing makes, unless the ledger changes in between. Whether the
    data pass the rules for rows is not known: no data are touched.
    """
    asked: dict[str, Any] = {"where": where, **options}
    if by is not None:
        if asked.pop("k_complement", None) is not None:
            raise ArgumentError("k_complement is about a count; a histogram has none: leave it out, or leave by out.")
        asked["by"] = by
    request, publishing = request_of(Count if by is None else Histogram, asked)
    ledger, revise = publishing.get("ledger"), publishing.get("revise", False)
    from pkdp_pipeline.certificates.release_certificate import attacker_of

    check_ledger(ledger, revise=revise)
    attacker = attacker_of(request.mechanism, publishing.get("attacker"))
    if ledger is None:
        return _explanation(request, attacker, foresee_alone(request, attacker))
    return _asked_of(ledger, request, attacker, revise=revise)


def _asked_of(ledger: Ledger, request: Request, attacker: AttackerModel, *, revise: bool) -> Explanation:
    from pkdp_pipeline.ledger.rehearsal import rehearsal
    from pkdp_pipeline.ledger.stretch import total_of_unit

    with rehearsal(ledger) as trial:
        before, spent_before = total_of_unit(trial, request.unit), _spent(trial, request.unit)
        foreseen = foresee(request, attacker=attacker, ledger=trial, revise=revise)
        after, spent_after = before, spent_before
        if foreseen.refused is None:
            after, spent_after = total_of_unit(trial, request.unit), _spent(trial, request.unit)
        dataset = trial.dataset
    budgets = tuple(_use(one, other) for one, other in zip(spent_before, spent_after, strict=True))
    return _explanation(request, attacker, foreseen, dataset=dataset, before=before, after=after, budgets=budgets)


def _spent(ledger: Ledger, unit: tuple[str, ...]) -> list[Spent]:
    from pkdp_pipeline.ledger.account import unit_text
    from pkdp_pipeline.ledger.views.spent import spent

    return spent(ledger._database, ledger.dataset, unit_text(unit), ledger.terms)


def _use(before: Spent, after: Spent) -> BudgetUse:
    return BudgetUse(
        budget=before.budget,
        part=before.measure,  # type: ignore[arg-type]  # a budget's measures are these parts
        before=before.epsilon,
        after=after.epsilon,
        complete=before.complete and after.complete,
    )


def _explanation(
    request: Request,
    attacker: AttackerModel,
    foreseen: Foreseen,
    *,
    dataset: str | None = None,
    before: Certificate | None = None,
    after: Certificate | None = None,
    budgets: tuple[BudgetUse, ...] = (),
) -> Explanation:
    certificate = foreseen.certificate
    context = request.context(dataset) if certificate is None else certificate.context
    assert context is not None
    return Explanation(
        asked=request.description,
        mechanism=request.mechanism,
        attacker=attacker,
        protects=cast("Protects", request.protects),
        context=context,
        outcome=foreseen.outcome,
        refused=foreseen.refused,
        certificate=certificate,
        statement=None if certificate is None else Statement.of(certificate, DELTA),
        scenarios=() if certificate is None else what_if(certificate, delta=DELTA),
        error=expected_error(request.mechanism),
        before=before,
        after=after,
        budgets=budgets,
    )
