"""A report as JSON, for programs, and read back: every value of it, with the certificates as they are stored.

`pkdp_pipeline/schemas/report.v1.json` describes it. A page carries it, so that the page can be made again from it.
"""

from __future__ import annotations

import json
import math
from dataclasses import is_dataclass
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from pkdp_pipeline.certificates.sentences import anyone
from pkdp_pipeline.certificates.statement import Statement
from pkdp_pipeline.display.content import BudgetLine, Report
from pkdp_pipeline.ledger.views.history import Point

SCHEMA = "pkdp-report/1"
"""Name and version of the form."""

_BEGIN, _END = "<!-- pkdp-report ", " -->"
"""A comment, in HTML as in Markdown, holds the content of a page."""

_PAIRS = {(float, float): ("epsilon", "delta"), (str, str): ("title", "citation")}
"""What the two parts of a tuple are called, by their types."""


def to_json(report: Report) -> str:
    """Return the report as JSON; equal reports have equal bytes. An ε that does not exist is null."""
    return json.dumps(document_of(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def carrying(report: Report) -> str:
    """Return the comment in which a page carries its content; nothing in it can end the comment."""
    text = json.dumps(document_of(report), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for mark, written in (("<", "\\u003c"), (">", "\\u003e"), ("--", "-\\u002d")):
        text = text.replace(mark, written)
    return f"{_BEGIN}{text}{_END}"


def carried(page: str) -> str | None:
    """Return the content that a page carries, as JSON; None where it carries none."""
    _, begin, rest = page.rpartition(_BEGIN)
    text, end, _ = rest.partition(_END)
    return text if begin and end else None


def document_of(value: Any) -> Any:
    """Return a report, or a part of it that is a dataclass or None, as JSON-ready values."""
    return _written(type(value), value)


def report_of_document(document: dict[str, Any]) -> Report:
    """Return the report of which `document_of` made a document that follows the schema."""
    report: Report = _made(Report, document)
    return report


_hints: Any = cache(get_type_hints)


def _written(kind: Any, value: Any) -> Any:
    """Return a value of a field's type as JSON has it."""
    inner = get_args(kind)
    if value is None or value in (math.inf, {}):  # an ε that does not exist, a certificate that is withheld
        return None
    if NoneType in inner:
        return _written(next(one for one in inner if one is not NoneType), value)
    if is_dataclass(kind):
        document = {name: _written(hint, getattr(value, name)) for name, hint in _hints(kind).items()}
        if kind is Report:
            return {"schema": SCHEMA, **document}
        if kind is Point:
            del document["at_one"]
        if kind is Statement and not value.named[1] == 0.0 < value.delta:
            del document["named"]
        if kind is Statement and value.anyone == anyone(()):
            del document["anyone"]
        if kind is BudgetLine:
            state = "not known" if value.spent is None else "none" if value.spent == math.inf else "certified"
            document["spent_state"] = state
        return document
    if inner in _PAIRS:
        return dict(zip(_PAIRS[inner], value, strict=True))
    return [_written(inner[0], one) for one in value] if get_origin(kind) is tuple else value


def _made(kind: Any, value: Any) -> Any:
    """Return a JSON value as the type that a field of a report has: what `_written` does, undone."""
    inner = get_args(kind)
    if NoneType in inner:
        return None if value is None else _made(next(one for one in inner if one is not NoneType), value)
    if is_dataclass(kind):
        fields = {name: _made(hint, value[name]) for name, hint in _hints(kind).items() if name in value}
        if kind is Statement:
            fields.setdefault("named", (fields["epsilon"], fields["delta"]))
        if kind is BudgetLine and value["spent_state"] == "none":
            fields["spent"] = math.inf
        return kind(**fields)  # type: ignore[operator]
    if inner in _PAIRS:
        return tuple(value.values())
    if get_origin(kind) is tuple:
        return tuple(_made(inner[0], one) for one in value)
    if kind is float and value is None:
        return math.inf
    return {} if value is None else value
