"""Asking: `explain`, which says what a release would be while nothing is read, charged or published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from pkdp_pipeline.certificates.statement import Statement, what_if
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Mechanism
from pkdp_pipeline.releases.explaining.explanation import DELTA, BudgetUse, Explanation
from pkdp_pipeline.releases.explaining.foreseeing import Foreseen, foresee, foresee_alone
from pkdp_pipeline.releases.noise import expected_error
from pkdp_pipeline.releases.request import Request
from pkdp_pipeline.releases.reserving import check_ledger, context_of
from pkdp_pipeline.theorems import Protects

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.certificates.target import Asked
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.ledger.views.spent import Spent

__all__ = ["explain"]


def explain(
    by: str | Sequence[str] | None = None,
    where: Any = None,
    *,
    unit: Any,
    attacker: AttackerModel | None = None,
    k: int | None = None,
    k_complement: int | None = None,
    noise: GeometricNoise | None = None,
    release_threshold: int | None = None,
    domain: Any = None,
    protects: str = "presence",
    missing_unit: str = "error",
    units: str = "checked",
    one_cell: str = "error",
    order_by: str | Sequence[str] | None = None,
    undeclared: str = "error",
    ledger: Ledger | None = None,
    period: Any = None,
    label: str | None = None,
    revise: bool = False,
    target: Asked = "default",
) -> Explanation:
    """Say what a release would be, before anything is read, charged or published.

    Parameters
    ----------
    by : str or sequence of str, optional
        Columns that name a cell: what `histogram` would publish is explained. None: what `count` would.
    where : boolean Series, str or callable, optional
        The predicate. It is not looked at, beyond its text; see `count`.
    unit : str, sequence of str, or EACH_ROW
    attacker : AttackerModel
    k, k_complement, noise, release_threshold : optional
        See `Count` and `Histogram`.
    domain, protects, missing_unit, units, one_cell, order_by, undeclared : optional
        See `histogram`.
    ledger : Ledger, optional
        Asked what it would say; it stays as it is. While it is asked, no other release of the data set can be
        charged.
    period, label, revise, target : optional
        See `histogram`.

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
    request = Request(
        mechanism=_mechanism(by, k=k, k_complement=k_complement, noise=noise, release_threshold=release_threshold),
        unit=unit,
        protects=protects,
        by=by,
        domain=domain,
        where=where,
        missing_unit=missing_unit,
        units=units,
        one_cell=one_cell,
        order_by=order_by,
        undeclared=undeclared,
        period=period,
        label=label,
        target=target,
    )
    from pkdp_pipeline.certificates.release_certificate import attacker_of

    check_ledger(ledger, revise=revise)
    attacker = attacker_of(request.mechanism, attacker)
    if ledger is None:
        return _explanation(request, attacker, foresee_alone(request, attacker))
    return _asked_of(ledger, request, attacker, revise=revise)


def _mechanism(by: object, *, k_complement: int | None, **rules: Any) -> Mechanism:
    if by is None:
        return Count(k_complement=k_complement, **rules)
    if k_complement is not None:
        raise ArgumentError("k_complement is about a count; a histogram has none: leave it out, or leave by out.")
    return Histogram(**rules)


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
    context = context_of(request, dataset) if certificate is None else certificate.context
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
