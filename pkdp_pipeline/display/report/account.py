"""Account: what the ledger says about the job's privacy unit: the total, the budgets, and how it came to that."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.statement import Statement
from pkdp_pipeline.display.content import Audience, BudgetLine, LedgerAccount, SpentPoint
from pkdp_pipeline.display.ledger.words import number_of, verify_command
from pkdp_pipeline.display.report.subject import Subject
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger.account import unit_text
from pkdp_pipeline.ledger.totals import unit_named
from pkdp_pipeline.ledger.views.history import History, Line, spending
from pkdp_pipeline.ledger.views.reading import Reading, stated_total
from pkdp_pipeline.ledger.views.spent import Spent, spent
from pkdp_pipeline.model.plain_text import printable

__all__ = ["POINTS", "SECONDS", "account_of", "total_of"]

POINTS = 25
"""At so many periods the total is computed; the last one is among them."""

SECONDS = 60.0
"""After so long the view over time is coarser, and budgets of some days are left open."""


def total_of(reading: Reading, subject: Subject) -> tuple[Certificate | None, str]:
    """Return what everything charged adds up to for the job's unit, or None and the reason."""
    try:
        return stated_total(reading, unit_text(subject.unit)), ""
    except NoEvidenceError as error:
        return None, str(error)


def account_of(
    reading: Reading,
    history: History,
    subject: Subject,
    *,
    audience: Audience,
    delta: float,
    total: Certificate | None,
    reason: str,
    periods: Container[str] | None,
) -> LedgerAccount:
    """Return the account; `total` and `reason` are those of `total_of`, `periods` those that may be named."""
    unit = unit_text(subject.unit)
    own = [line for line in history.lines if line.holding.unit == unit]
    budgets = spent(history.totals, unit, seconds=SECONDS)
    points = spending(history, unit, delta, most=POINTS, periods=periods, seconds=SECONDS)
    location = None if audience == "auditor" else "LEDGER"
    return LedgerAccount(
        unit=", ".join(map(printable, subject.unit)),
        releases=len(own),
        waiting=sum(line.state == "reserved" for line in own),
        total=None if total is None else Statement.of(total, delta),
        reason=reason,
        declared=tuple(one.declares for one in history.evidence),
        budgets=tuple(_budget_line(one, adds_up=total is not None) for one in budgets),
        delta=delta,
        points=tuple(
            SpentPoint(
                period=printable(point.period),
                releases=point.releases,
                epsilon=point.epsilon,
                worst_case=point.worst_case,
            )
            for point in points
        ),
        head=history.head,
        verify=verify_command(reading, history.head, location),
        remarks=tuple(_remarks(history, own, subject, audience)),
    )


def _budget_line(one: Spent, *, adds_up: bool) -> BudgetLine:
    known = one.complete and (adds_up or one.epsilon < math.inf)
    return BudgetLine.of(one.budget, one.measure, one.epsilon if known else None)


def _remarks(history: History, own: Sequence[Line], subject: Subject, audience: Audience) -> list[str]:
    listed = []
    others = sum(line.state == "published" and line.holding.entry not in subject.held for line in own)
    if others:
        listed.append(
            f"{number_of(others, 'release')} of the ledger {_is(others)} not of this job as its file is now: the total "
            f"counts {'it' if others == 1 else 'them'}, the tables and dates are not shown here."
        )
    waiting = sum(line.state == "reserved" for line in own)
    if waiting:
        listed.append(
            f"{number_of(waiting, 'release')} {_is(waiting)} charged and not public: the total counts "
            f"{'it' if waiting == 1 else 'them'}."
            + (" A run is under way or was stopped; running it again finishes it." if audience == "auditor" else "")
        )
    units = sorted({line.holding.unit for line in history.lines} - {unit_text(subject.unit)})
    if units:
        named = "; ".join(printable(unit_named(unit)) for unit in units)
        listed.append(
            f"The ledger also holds releases for other privacy units ({named}), which are not in the total: what they "
            "tell about the same people comes on top."
        )
    return listed


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
