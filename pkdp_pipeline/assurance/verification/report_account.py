"""The account of a report: the total, the points over time and the budgets, as far as the report itself tells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.reports import EVERYTHING, Promised
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.differences import SEARCHED, Difference, described, differences
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.sentences import rounded_up
from pkdp_pipeline.model.mechanisms import Mechanism
from pkdp_pipeline.model.version import VERSION

__all__ = ["account_claims", "lead_claim", "provenance_claims"]

_LEAD = "The guarantee that a reader meets first is that of the first promise."
_TOTAL = "The ledger's total is what its releases add up to."
_POINTS = "The points over time are what the releases add up to, and end at the total."
_BUDGETS = "What is spent of every budget is what the total gives."
_THEOREMS = "The theorems named at the end are those that the promises rest on."
_ORIGIN = (
    "Names, stretch of time, files, checks, remarks and budgets are those of the job and the ledger that it names."
)

_NUMBERS = ("protects", "delta", "epsilon", "numbers", "worst_case")
_LOOSE = 0.98
"""A total may be evaluated a little more closely than the promise of one release in it, by no more than this."""


def lead_claim(document: dict[str, Any]) -> Claim:
    """Return whether the lead is the statement of the first promise."""
    lead, first = document["lead"], document["promises"][0]["statement"]
    if lead is None:
        if document["lead_reason"]:
            return passed("report.lead", _LEAD, "There is none, and the report says why.")
        return failed("report.lead", _LEAD, "There is none, and the report does not say why.")
    found = differences("lead", lead, first, none_is_infinite=True)
    if found:
        return failed("report.lead", _LEAD, f"{described(found)}.")
    return passed("report.lead", _LEAD, "It is, number by number and word by word.")


def account_claims(document: dict[str, Any], promised: list[Promised]) -> Iterator[Claim]:
    """Yield whether total, points and budgets of the ledger's account are what the report's certificates give."""
    yield _total(document, promised)
    yield _points(document["ledger"])
    yield _budgets(document["ledger"], promised)


def _total(document: dict[str, Any], promised: list[Promised]) -> Claim:
    ledger = document["ledger"]
    total, key = ledger["total"], "report.total"
    if total is None:
        return not_checked(key, _TOTAL, "There is none; whether the releases really do not add up is in the ledger.")
    first = promised[0]
    if first.document["name"] == EVERYTHING:
        found = differences("ledger.total", total, first.document["statement"], none_is_infinite=True)
        if found:
            return failed(key, _TOTAL, f"{described(found)}.")
        if first.certificate is None:
            return not_checked(key, _TOTAL, "It is that of the first promise, whose certificate the report withholds.")
        missing = _missing(ledger, promised)
        if missing:
            return failed(key, _TOTAL, missing)
        return passed(key, _TOTAL, "It is that of the first promise, which is computed again from all of its parts.")
    if ledger["releases"] == len(document["releases"]) == len(promised) == 1 and not ledger["remarks"]:
        numbers = {name: first.document["statement"][name] for name in _NUMBERS}
        stored = {name: total[name] for name in _NUMBERS}
        found = differences("ledger.total", stored, numbers, none_is_infinite=True)
        if found:
            return failed(key, _TOTAL, f"One release is charged: {described(found)}.")
        return passed(key, _TOTAL, "One release is charged, and the total is what it promises.")
    for one in promised:
        below = _below(total, one.document["statement"])
        if below:
            return failed(key, _TOTAL, f"{below} that of promises[{one.place}], which is part of it.")
    return not_checked(
        key,
        _TOTAL,
        f"It is about {ledger['releases']} releases, whose certificates are not all in the report; it is not below any "
        "promise that is part of it. The ledger has them: give it with --ledger.",
    )


def _missing(ledger: dict[str, Any], promised: list[Promised]) -> str:
    """Return what the certificate of the total leaves out; empty where it leaves out nothing that is in the report."""
    total = promised[0].certificate
    number = total.releases if isinstance(total, ComposedCertificate) else 1
    if number != ledger["releases"]:
        return f"Its certificate adds up {number} releases, and {ledger['releases']} are charged."
    parts = set(_mechanisms(total))
    for one in promised:
        if one.release is not None and one.release.mechanism not in parts:
            return f"Its certificate has no part like promises[{one.place}]."
    return ""


def _mechanisms(certificate: Certificate | None) -> Iterator[Mechanism]:
    if isinstance(certificate, ReleaseCertificate):
        yield certificate.mechanism
    elif isinstance(certificate, ComposedCertificate):
        for part, _ in certificate.parts:
            yield from _mechanisms(part)


def _below(total: dict[str, Any], part: dict[str, Any]) -> str:
    """Return which number of a total is lower than that of one of its parts; empty where none is."""
    if total["protects"] != part["protects"] or total["delta"] != part["delta"]:
        return ""
    whole, own = _infinite(total["epsilon"]), _infinite(part["epsilon"])
    if whole < own * _LOOSE:
        return "ledger.total.epsilon is lower than"
    known = {pair["epsilon"]: pair["delta"] for pair in part["numbers"]}
    for pair in total["numbers"]:
        if pair["delta"] < known.get(pair["epsilon"], 0.0) * _LOOSE:
            return f"ledger.total's δ at ε = {pair['epsilon']:g} is lower than"
    return ""


def _points(ledger: dict[str, Any]) -> Claim:
    points, total, key = ledger["points"], ledger["total"], "report.points"
    numbers = [point["releases"] for point in points]
    if numbers != sorted(numbers) or (numbers and numbers[-1] != ledger["releases"]):
        return failed(key, _POINTS, "They do not count up to the releases that are charged.")
    if not points or total is None or total["delta"] != ledger["delta"]:
        return not_checked(key, _POINTS, "There is no total, or no point, to compare.")
    found: list[Difference] = list(
        differences("ledger.points[-1].epsilon", points[-1]["epsilon"], total["epsilon"], none_is_infinite=True)
    )
    worst, last = total["worst_case"], points[-1]["worst_case"]
    # Where δ = 0 is certified, the pair of a total has the ε that is shown.
    pure = worst is not None and worst["delta"] == 0.0 and ledger["releases"] > 1
    if worst is not None and (pure or worst["delta"] == ledger["delta"]):
        shown = float(rounded_up(last)) if pure and last is not None else last
        found += differences("ledger.points[-1].worst_case", shown, worst["epsilon"], none_is_infinite=True)
    if found:
        return failed(key, _POINTS, f"{described(found)}.")
    if len(points) == 1:
        return passed(key, _POINTS, "The one point is the total.")
    return not_checked(
        key,
        _POINTS,
        f"The last of {len(points)} points is the total. Earlier ones cannot be computed from the report; "
        "only the ledger has them.",
    )


def _budgets(ledger: dict[str, Any], promised: list[Promised]) -> Claim:
    key, checked, open_ = "report.budgets", 0, 0
    first = promised[0]
    certificate = first.certificate if first.document["name"] == EVERYTHING else None
    for place, budget in enumerate(ledger["budgets"]):
        state, spent = budget["spent_state"], budget["spent"]
        if (spent is None) == (state == "certified"):
            return failed(key, _BUDGETS, f"ledger.budgets[{place}] says two different things about what is spent.")
        total, delta = ledger["total"], budget["delta"]
        fresh: float | None = None
        if budget["window_days"] is None and state != "not known":
            if certificate is not None:
                guarantee = certificate if budget["part"] == "partial_knowledge" else certificate.worst_case
                fresh = guarantee.epsilon(float(delta))
            elif total is not None and budget["part"] == "partial_knowledge" and delta == total["delta"]:
                fresh = _infinite(total["epsilon"])
        if fresh is None:
            open_ += 1
            continue
        checked += 1
        given = _infinite(spent)
        if given != fresh and not (math.isfinite(given) and math.isfinite(fresh) and _near(given, fresh)):
            return failed(
                key, _BUDGETS, f"ledger.budgets[{place}].spent is {spent}, and the total gives {fresh!r}.", place=place
            )
    if open_:
        return not_checked(
            key,
            _BUDGETS,
            f"{open_} of {len(ledger['budgets'])} are about what the report's certificates do not give; "
            f"{checked} computed again, the same.",
        )
    return passed(key, _BUDGETS, f"{checked} computed again, the same." if checked else "None is declared.")


def _near(given: float, fresh: float) -> bool:
    """Return whether a spent ε is that of the total: as near as a search for it ends."""
    return abs(given - fresh) <= SEARCHED * fresh


def provenance_claims(document: dict[str, Any]) -> Iterator[Claim]:
    """Yield whether the theorems listed are those of the promises; the rest is about files that are not here."""
    provenance = document["provenance"]
    listed: list[dict[str, str]] = []
    for promise in document["promises"]:
        listed += [one for one in promise["statement"]["theorems"] if one not in listed]
    if provenance["theorems"] == listed:
        yield passed("report.theorems", _THEOREMS, f"{len(listed)} of them.")
    else:
        yield failed("report.theorems", _THEOREMS, "They are not.")
    yield not_checked(
        "report.origin",
        _ORIGIN,
        "Neither job nor ledger is in the report"
        + ("." if provenance["version"] == VERSION else f", and version {provenance['version']} wrote it."),
    )


def _infinite(value: float | None) -> float:
    return math.inf if value is None else float(value)
