"""verify: a file's claims, each checked; what it is, is found out from its content."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.assurance.verification.attacking import Effort, attack_claims
from pkdp_pipeline.assurance.verification.certificates import fault, made_again, number_claims, structure_claim
from pkdp_pipeline.assurance.verification.claims import Claim, Kind, Verification, failed, not_checked, passed
from pkdp_pipeline.assurance.verification.ledgers import HOLDS, chain_claims, held_claims, without_ledger
from pkdp_pipeline.assurance.verification.opening import BREAKS, Opened, opened
from pkdp_pipeline.assurance.verification.releases import file_claims, release_table_claims
from pkdp_pipeline.assurance.verification.report_ledger import report_ledger_claims
from pkdp_pipeline.assurance.verification.reports import content_claims, page_claim
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import whole_number

if TYPE_CHECKING:
    from pkdp_pipeline.assurance.verification.certificates import Nested
    from pkdp_pipeline.ledger.views.reading import Reading

__all__ = ["CONFIDENCE", "DRAWS", "verify"]

DRAWS = 20_000
CONFIDENCE = 0.999999


def verify(
    path: str | os.PathLike[str],
    *,
    ledger: str | os.PathLike[str] | None = None,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Verification:
    """Check every claim of a release, a certificate or a report.

    Parameters
    ----------
    path : path-like
        A release (Parquet), a certificate (JSON of `Certificate.to_json`) or a report (HTML, Markdown or JSON). Which
        of them it is, is found out from its content.
    ledger : path-like or str, optional
        The ledger it was published through: a file, or a ``postgresql://`` URL; it is only read. Without one, a
        certificate that is consistent for other assumptions cannot be told from the one that was published.
    draws : int, default 20000
        For every simulated attack; at least 100.
    confidence : float, default 0.999999
        With which a sound file passes all simulations together; strictly between 0 and 1.
    seed : int, default 0
        Of the simulations: the same seed, the same draws.

    Returns
    -------
    Verification
        Every claim with its outcome; ``passed`` says whether none failed.

    Raises
    ------
    ConfigError
        If the file cannot be read.
    ArgumentError
        If it is none of ours, or an argument is out of range.
    LedgerError, TemporaryError
        If there is no such ledger, or it cannot be used.

    Notes
    -----
    *Guarantee*: a claim passes only if what is stored is what is recomputed, or weaker, and no attack exceeds it by
    more than one part in 10⁹ (for the rounding of floats); a sound file fails with probability ``1 - confidence`` at
    most, by chance of the simulations. *Rounding*: what an attacker
    attains is rounded down.
    """
    number = whole_number("draws", draws, least=100)
    whole_number("seed", seed, least=0)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.0 < confidence < 1.0:
        raise ArgumentError("confidence must be strictly between 0 and 1.")
    file = opened(path)
    effort = Effort(draws=number, confidence=float(confidence), seed=seed)
    claims = _CLAIMS[file.kind](file, None if ledger is None else os.fspath(ledger), effort)
    return Verification(kind=file.kind, file=file.name, claims=tuple(claims))


def _release(file: Opened, ledger: str | None, effort: Effort) -> Iterator[Claim]:
    yield from file_claims(file)
    if file.problem:
        yield failed(
            "certificate.structure", "The release carries a certificate.", f"It cannot be read: {file.problem}"
        )
        return
    claims, nested = _checked(file.document, "certificate", effort)
    yield from release_table_claims(file, nested)
    yield from claims
    yield from _book(file, ledger, nested)


def _certificate(file: Opened, ledger: str | None, effort: Effort) -> Iterator[Claim]:
    claims, nested = _checked(file.document, "certificate", effort)
    yield from claims
    yield from _book(file, ledger, nested)


def _report(file: Opened, ledger: str | None, effort: Effort) -> Iterator[Claim]:
    document, words = file.document, "The report is built as its published schema says."
    found = fault(document, "report.v1.json")
    if found:
        yield failed("report.structure", words, f"{found}.", schema="report.v1.json")
        return
    yield passed("report.structure", words, "It follows report.v1.json.", schema="report.v1.json")
    yield page_claim(file)
    promised: list[Certificate | None] = []
    carried = sum(promise["certificate"] is not None for promise in document["promises"])
    for place, promise in enumerate(document["promises"]):
        nested = None
        if promise["certificate"] is not None:
            claims, nested = _checked(promise["certificate"], f"promises.{place}", effort.shared(carried))
            yield from claims
        promised.append(nested[-1].certificate if nested else None)
    yield from content_claims(document, promised)
    if ledger is None:
        yield from without_ledger(file.kind)
        return
    with _opened_ledger(ledger, document["title"]) as reading:
        if reading is None:
            yield failed("ledger.holds", HOLDS, "The ledger holds no data set of the report's name.")
            return
        yield from chain_claims(reading, None)
        yield from report_ledger_claims(reading, document)


def _checked(document: dict[str, Any], prefix: str, effort: Effort) -> tuple[list[Claim], list[Nested] | None]:
    """Return the claims of one certificate, and the certificate with its parts where they could be made again."""
    structure = structure_claim(document, f"{prefix}.structure")
    if structure.outcome == "fail":
        return [structure], None
    nested = made_again(document, f"{prefix}.numbers")
    if isinstance(nested, Claim):
        return [structure, nested], None
    return [structure, *number_claims(nested, prefix), *_attacked(nested, effort, prefix)], nested


def _attacked(nested: list[Nested], effort: Effort, prefix: str) -> list[Claim]:
    try:
        return list(attack_claims(nested, effort, prefix))
    except BREAKS as error:
        why = f"The attackers of what it names cannot be written down ({type(error).__name__})."
        return [not_checked(f"{prefix}.enumerated", "No declared attacker learns more than the file says.", why)]


def _book(file: Opened, ledger: str | None, nested: list[Nested] | None) -> Iterator[Claim]:
    """Yield what the ledger says about a release or a certificate; without one, what it would have to say."""
    if ledger is None:
        yield from without_ledger(file.kind)
        return
    certificate = None if nested is None else nested[-1].certificate
    about = certificate.context if isinstance(certificate, ReleaseCertificate) else None
    with _opened_ledger(ledger, None if about is None else about.dataset) as reading:
        if reading is None:
            yield failed("ledger.holds", HOLDS, "The ledger holds no data set of the name that the certificate gives.")
            return
        yield from chain_claims(reading, None if about is None else about.head)
        yield from held_claims(reading, file, certificate)


@contextmanager
def _opened_ledger(location: str, dataset: str | None) -> Iterator[Reading | None]:
    """Open a ledger at the data set that a file names; None where it has none of this name."""
    from pkdp_pipeline.ledger.views.reading import open_for_reading

    with ExitStack() as held:
        try:
            reading = held.enter_context(open_for_reading(location, dataset))
        except ArgumentError:
            if dataset is None:
                raise
            yield None
            return
        yield reading


_CLAIMS: Mapping[Kind, Callable[[Opened, str | None, Effort], Iterator[Claim]]] = MappingProxyType(
    {"release": _release, "certificate": _certificate, "report": _report}
)
