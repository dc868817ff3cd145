"""The claims of a report: everything in it that follows from the certificates it carries, computed again."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pkdp_pipeline.assurance.verification.claims import Claim, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.opening import BREAKS
from pkdp_pipeline.assurance.verification.recomputing import Nested
from pkdp_pipeline.assurance.verification.report_tables import series_fault, table_fault
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.differences import SEARCHED, Difference, described, differences, outcome_of
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.sentences import moved
from pkdp_pipeline.display.report.json_form import promise_document
from pkdp_pipeline.display.report.promises import promise_of
from pkdp_pipeline.model.version import VERSION
from pkdp_pipeline.releases.noise import expected_error

__all__ = ["EVERYTHING", "Promised", "promise_claims", "release_claims"]

EVERYTHING = "everything published"
"""Name of the promise about all releases of the ledger together."""

_READING = "Statement, curve, knowledge and scenarios of the promise are those of its certificate."
_RELEASES = "What is said of every release is what its promise gives."
_TABLES = "Every table and series keeps the rules of the mechanism that its certificate names."


_CURVE = re.compile(r"\bcurve\.(attained|certified)\[(\d+)\]$")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Promised:
    """One promise of a report.

    Parameters
    ----------
    place : int
    document : mapping
        As it is stored.
    certificate : Certificate or None
        Made again; None where the report does not carry it, or it cannot be certified.
    """

    place: int
    document: dict[str, Any]
    certificate: Certificate | None

    @classmethod
    def of(cls, place: int, document: dict[str, Any], made: list[Nested] | None) -> Promised:
        """Return the promise at a place, with its certificate."""
        return cls(place=place, document=document, certificate=made[-1].certificate if made else None)

    @property
    def release(self) -> ReleaseCertificate | None:
        """The certificate, where it is that of a release."""
        return self.certificate if isinstance(self.certificate, ReleaseCertificate) else None


def promise_claims(promised: Promised, version: object) -> Iterator[Claim]:
    """Yield whether all that is read off a certificate is what it gives; `version` is that of the report."""
    key = f"promises.{promised.place}.reading"
    if promised.certificate is None:
        yield not_checked(key, _READING, "The report does not carry its certificate, so nothing can be computed again.")
        return
    stored = promised.document
    certificate, delta = promised.certificate, float(stored["statement"]["delta"])

    def rewritten(share: float) -> Any:
        with moved(share):
            promise = promise_of(stored["name"], certificate, delta, documented=False)
            return json.loads(json.dumps(promise_document(promise)))

    try:
        fresh = rewritten(0.0)
    except BREAKS as error:
        yield failed(key, _READING, f"They cannot be computed again ({type(error).__name__}).")
        return
    found = differences(
        "",
        stored,
        fresh,
        skip={"certificate", "name"},
        none_is_infinite=True,
        rounding=_rounding(certificate, fresh),
        rewritten=rewritten,
    )
    yield _judged(key, _READING, found, version, _counted(fresh))


def release_claims(document: dict[str, Any], promised: list[Promised]) -> Iterator[Claim]:
    """Yield whether the releases of a report, and their tables, are as the promises they point to."""
    found: list[Difference] = []
    broken, open_ = [], []
    for place, release in enumerate(document["releases"]):
        path = f"releases[{place}]"
        if not release["promise"] < len(promised):
            broken.append(f"{path} points to a promise that is not there")
            continue
        its = promised[release["promise"]]
        if its.certificate is None:
            open_.append(path)
            continue
        if its.release is None:
            broken.append(f"{path} points to a promise that is about several releases together")
            continue
        release_of = functools.partial(_release, its.release, release, float(its.document["statement"]["delta"]))
        fresh = release_of()
        found += differences(path, {name: release[name] for name in fresh}, fresh, rewritten=release_of)
    version = document["provenance"]["version"]
    if broken:
        yield failed("releases.promises", _RELEASES, f"{broken[0]}.")
    elif open_ and not found:
        yield not_checked("releases.promises", _RELEASES, f"The certificate of {open_[0]} is not in the report.")
    else:
        yield _judged("releases.promises", _RELEASES, found, version, len(document["releases"]))
    yield _tables(document, promised)


def _tables(document: dict[str, Any], promised: list[Promised]) -> Claim:
    rows = 0
    for place, release in enumerate(document["releases"]):
        its = promised[release["promise"]].release if release["promise"] < len(promised) else None
        fault = table_fault(release["table"], its)
        if fault:
            return failed("releases.tables", _TABLES, f"releases[{place}].table: {fault}.")
        rows += len(release["table"]["counts"])
    certificates = [one.release for one in promised if one.release is not None]
    for place, series in enumerate(document["series"]):
        fault = series_fault(series, document["releases"], certificates)
        if fault:
            return failed("releases.tables", _TABLES, f"series[{place}]: {fault}.")
    older = ""
    if document["series"]:
        older = " Counts of older periods were held to the lowest threshold only: their own tables are not in the file."
    return passed(
        "releases.tables",
        _TABLES,
        f"{rows} counts, in the tables of {_number(document['releases'])}.{older}",
        rows=rows,
    )


def _rounding(certificate: Certificate, fresh: dict[str, Any]) -> Callable[[str], float]:
    """Return by what share a number of a promise may differ elsewhere: as ε does, or as the curve at its ε."""

    @functools.cache
    def shares() -> dict[str, Any]:
        curve = certificate.rounding(np.array(fresh["curve"]["epsilons"], dtype=np.float64))
        return dict(zip(("attained", "certified"), curve, strict=True))

    def rounding(path: str) -> float:
        found = _CURVE.search(path)
        return SEARCHED if found is None else max(SEARCHED, float(shares()[found[1]][int(found[2])]))

    return rounding


def _release(
    certificate: ReleaseCertificate, release: dict[str, Any], delta: float, share: float = 0.0
) -> dict[str, Any]:
    """Return what a report says of a release, computed from the certificate that stands for its promise."""
    mechanism = certificate.mechanism
    error = expected_error(mechanism)
    about = certificate.context
    if about is not None:
        certificate = certificate.in_context(replace(about, period=release["period"]))
    with moved(share):
        sentence = certificate.sentence(delta)
    return {
        "rule": error.suppression,
        "k": mechanism.k,
        "error": None
        if mechanism.noise is None
        else {
            "mean_absolute": error.mean_absolute,
            "standard_deviation": error.standard_deviation,
            "bound_95": error.bound_95,
            "suppression": error.suppression,
        },
        "sentence": sentence,
    }


def _number(releases: list[Any]) -> str:
    return "1 release" if len(releases) == 1 else f"{len(releases)} releases"


def _judged(key: str, words: str, found: list[Difference], version: object, compared: int) -> Claim:
    """Return the claim for these differences; words of another version are not compared."""
    other = version != VERSION
    weaker = [one for one in found if one.is_weaker]
    found = [one for one in found if not one.is_weaker]
    numbers = [one for one in found if one.direction != "words"]
    if numbers or (found and not other):
        return failed(key, words, f"{described(numbers or found)}.", different=[str(one.path) for one in found][:20])
    if found:
        return not_checked(
            key, words, f"Its numbers are the same; the wording is that of version {version}, which is not compared."
        )
    return passed(
        key, words, f"{compared} {'value' if compared == 1 else 'values'} computed again, {outcome_of(weaker)}."
    )


def _counted(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_counted, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_counted, value))
    return 1
