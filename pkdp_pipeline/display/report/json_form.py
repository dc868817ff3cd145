"""A report as JSON, for programs, and read back: every value of it, with the certificates as they are stored.

`pkdp_pipeline/schemas/report.v1.json` describes it. A page carries it, so that the page can be made again from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from pkdp_pipeline.certificates.sentences import anyone
from pkdp_pipeline.certificates.statement import Statement
from pkdp_pipeline.display.content import BudgetLine, LedgerAccount, Promise, Report

__all__ = [
    "SCHEMA",
    "carried",
    "carrying",
    "promise_document",
    "report_document",
    "report_of_document",
    "statement_document",
    "to_json",
]

SCHEMA = "pkdp-report/1"
"""Name and version of the form."""

_BEGIN, _END = "<!-- pkdp-report ", " -->"
"""A comment, in HTML as in Markdown, holds the content of a page."""


def to_json(report: Report) -> str:
    """Return the report as JSON; equal reports have equal bytes. An ε that does not exist is null."""
    return json.dumps(report_document(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def carrying(report: Report) -> str:
    """Return the comment in which a page carries its content; nothing in it can end the comment."""
    text = json.dumps(report_document(report), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for mark, written in (("<", "\\u003c"), (">", "\\u003e"), ("--", "-\\u002d")):
        text = text.replace(mark, written)
    return f"{_BEGIN}{text}{_END}"


def carried(page: str) -> str | None:
    """Return the content that a page carries, as JSON; None where it carries none."""
    _, begin, rest = page.rpartition(_BEGIN)
    text, end, _ = rest.partition(_END)
    return text if begin and end else None


def report_of_document(document: dict[str, Any]) -> Report:
    """Return the report of which `report_document` made a document that follows the schema."""
    report: Report = _made(Report, document)
    return report


def report_document(report: Report) -> dict[str, Any]:
    """Return the report as JSON-ready values."""
    return {
        "schema": SCHEMA,
        "title": report.title,
        "period": report.period,
        "audience": report.audience,
        "lead": statement_document(report.lead),
        "lead_reason": report.lead_reason,
        "promises": [promise_document(one) for one in report.promises],
        "releases": [asdict(one) for one in report.releases],
        "series": [asdict(one) for one in report.series],
        "ledger": _ledger(report.ledger),
        "checks": [asdict(one) for one in report.checks],
        "provenance": {**asdict(report.provenance), "theorems": _theorems(report.provenance.theorems)},
    }


def promise_document(promise: Promise) -> dict[str, Any]:
    """Return a promise as JSON-ready values."""
    curve = promise.curve
    return {
        "name": promise.name,
        "statement": statement_document(promise.statement),
        "curve": {**asdict(curve), "mark": _pair(curve.mark)},
        "knowledge": [
            {**asdict(one), "epsilons": [_finite(epsilon) for epsilon in one.epsilons], "floor": _finite(one.floor)}
            for one in promise.knowledge
        ],
        "scenarios": [{**asdict(one), "epsilon": _finite(one.epsilon)} for one in promise.scenarios],
        # As it is stored: its numbers are compared when it is verified.
        "certificate": promise.certificate or None,
    }


def statement_document(statement: Statement | None) -> dict[str, Any] | None:
    """Return a statement as JSON-ready values; None where there is none."""
    if statement is None:
        return None
    return {
        "sentence": statement.sentence,
        "protects": statement.protects,
        "delta": statement.delta,
        "epsilon": _finite(statement.epsilon),
        **({"named": _pair(statement.named)} if statement.named[1] == 0.0 < statement.delta else {}),
        "numbers": [_pair(one) for one in statement.numbers],
        "worst_case": _pair(statement.worst_case),
        **({"anyone": statement.anyone} if statement.anyone != anyone(()) else {}),
        "assumptions": statement.assumptions,
        "limits": statement.limits,
        "theorems": _theorems(statement.theorems),
    }


def _ledger(ledger: LedgerAccount) -> dict[str, Any]:
    return {
        **asdict(ledger),
        "total": statement_document(ledger.total),
        "budgets": [_budget(one) for one in ledger.budgets],
        "points": [
            {**asdict(one), "epsilon": _finite(one.epsilon), "worst_case": _finite(one.worst_case)}
            for one in ledger.points
        ],
    }


def _budget(budget: BudgetLine) -> dict[str, Any]:
    state = "not known" if budget.spent is None else "none" if budget.spent == math.inf else "certified"
    return {**asdict(budget), "spent": _finite(budget.spent), "spent_state": state}


def _theorems(listed: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"title": title, "citation": citation} for title, citation in listed]


def _pair(pair: tuple[float, float] | None) -> dict[str, float] | None:
    return None if pair is None else {"epsilon": pair[0], "delta": pair[1]}


def _finite(epsilon: float | None) -> float | None:
    return None if epsilon == math.inf else epsilon


_hints = cache(get_type_hints)


def _made(kind: Any, value: Any) -> Any:
    """Return a JSON value as the type that a field of a report has: what `report_document` does, undone."""
    inner = get_args(kind)
    if NoneType in inner:
        (kind,) = (one for one in inner if one is not NoneType)
        return None if value is None else _made(kind, value)
    if isinstance(kind, type) and is_dataclass(kind):
        fields = {name: _made(hint, value[name]) for name, hint in _hints(kind).items() if name in value}
        if kind is Statement:
            fields.setdefault("named", (fields["epsilon"], fields["delta"]))
        if kind is BudgetLine and value["spent_state"] == "none":
            fields["spent"] = math.inf
        return kind(**fields)
    if get_origin(kind) is tuple:
        if isinstance(value, dict):  # a pair of numbers, or a theorem
            return tuple(value.values())
        return tuple(_made(inner[0], one) for one in value)
    if kind is float and value is None:
        return math.inf
    return {} if value is None else value
