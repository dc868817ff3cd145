"""The claim about the texts of a report: each that follows from its certificates does, and no other one promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.opening import BREAKS
from pkdp_pipeline.assurance.verification.reading_words import names_guarantee
from pkdp_pipeline.assurance.verification.reports import EVERYTHING, Promised
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.ledger.views.words import budget_words
from pkdp_pipeline.model.budget import Budget
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.model.plain_text import printable
from pkdp_pipeline.model.version import VERSION

__all__ = ["report_text_claim"]

_KEY = "report.texts"
_WORDS = "What the report says of the question, the unit, the evidence and the budgets fits its certificates."


def report_text_claim(document: dict[str, Any], promised: Sequence[Promised]) -> Claim:
    """Return whether texts that follow from the certificates do, and whether others promise anything."""
    for path, text in _copied(document):
        if names_guarantee(text):
            return failed(_KEY, _WORDS, f"{path} speaks of a guarantee, and nothing certifies it.", path=path)
    account = document["ledger"]
    if document["lead"] is not None and document["lead_reason"]:
        return failed(_KEY, _WORDS, "There is a lead, and lead_reason says why there is none.")
    if account["total"] is not None and account["reason"]:
        return failed(_KEY, _WORDS, "There is a total, and ledger.reason says why there is none.")
    fault = _other_unit(account, promised) or _other_dataset(document, promised)
    if fault:
        return failed(_KEY, _WORDS, fault)
    if document["provenance"]["version"] != VERSION:
        return not_checked(_KEY, _WORDS, "They are those of another version, whose wording this one cannot compare.")
    fault = _questions(document, promised) or _evidence(account, promised) or _budgets(account)
    if fault:
        return failed(_KEY, _WORDS, fault)
    return passed(_KEY, _WORDS, "They do; names, titles and remarks speak of no guarantee.")


def _copied(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts that are copied from the job or the ledger."""
    account = document["ledger"]
    yield "title", document["title"]
    yield "period", document["period"]
    yield "lead_reason", document["lead_reason"]
    yield "ledger.unit", account["unit"]
    yield "ledger.reason", account["reason"]
    yield "ledger.verify", account["verify"]
    yield from ((f"ledger.remarks[{place}]", text) for place, text in enumerate(account["remarks"]))
    yield from ((f"promises[{place}].name", one["name"]) for place, one in enumerate(document["promises"]))
    yield from ((f"checks[{place}].rule", one["rule"]) for place, one in enumerate(document["checks"]))
    yield "provenance.job", document["provenance"]["job"]
    for place, release in enumerate(document["releases"]):
        texts = [*release["table"]["columns"], *release["files"], release["name"], release["period"], release["asked"]]
        yield from ((f"releases[{place}]", text) for text in texts)
    for place, series in enumerate(document["series"]):
        yield from ((f"series[{place}]", text) for text in (series["name"], *series["periods"], *series["cells"]))


def _other_unit(account: dict[str, Any], promised: Sequence[Promised]) -> str:
    for one in promised:
        about = None if one.release is None else one.release.context
        if about is not None and ", ".join(map(printable, about.unit)) != account["unit"]:
            return f"ledger.unit is not the unit of promises[{one.place}]."
    return ""


def _other_dataset(document: dict[str, Any], promised: Sequence[Promised]) -> str:
    for one in promised:
        about = None if one.release is None else one.release.context
        if about is not None and about.dataset is not None and printable(about.dataset) != document["title"]:
            return f"The title is not the data set of promises[{one.place}]."
    return ""


def _questions(document: dict[str, Any], promised: Sequence[Promised]) -> str:
    """Return which question does not fit the mechanism and the columns of its table; empty where all do."""
    for place, release in enumerate(document["releases"]):
        its = promised[release["promise"]].release if release["promise"] < len(promised) else None
        if its is None:
            continue
        by = release["table"]["columns"]
        begins = f"Distinct {document['ledger']['unit']}" + (f" by {', '.join(by)}" if by else "")
        ends = _steps(its.mechanism, "a cell" if by else "the count")
        asked = release["asked"]
        middle = asked[len(begins) : len(asked) - len(ends)]
        if not (asked.startswith(begins) and asked.endswith(ends) and (not middle or middle.startswith(", where "))):
            return f"releases[{place}].asked is not the question of its table and its promise."
    return ""


def _steps(mechanism: Mechanism, subject: str) -> str:
    """Return how a question ends: with what the mechanism does."""
    steps = []
    complement = getattr(mechanism, "k_complement", None)
    if mechanism.k is not None:
        steps.append(f"{subject} is published only when it is at least k = {mechanism.k}")
    if complement is not None:
        steps.append(f"{subject} is published only when the rest is at least {complement}")
    if mechanism.noise is not None:
        steps.append(f"two-sided geometric noise with epsilon = {mechanism.noise.epsilon!r} is added")
    if mechanism.release_threshold is not None:
        steps.append(f"it is shown only when the noisy number is at least {mechanism.release_threshold}")
    return f": {'; '.join(steps)}." if steps else "."


def _evidence(account: dict[str, Any], promised: Sequence[Promised]) -> str:
    first = promised[0].certificate if promised[0].document["name"] == EVERYTHING else None
    if isinstance(first, ComposedCertificate) and account["declared"] != [one.declares for one in first.evidence]:
        return "ledger.declared is not the evidence by which the total adds up."
    return ""


def _budgets(account: dict[str, Any]) -> str:
    for place, one in enumerate(account["budgets"]):
        try:
            budget = Budget(one["epsilon"], one["delta"], part=one["part"], window_days=one["window_days"])
        except BREAKS:
            return f"ledger.budgets[{place}] is none."
        if one["words"] != budget_words(budget, (one["part"],)):
            return f"ledger.budgets[{place}].words are not those of its numbers."
    return ""
