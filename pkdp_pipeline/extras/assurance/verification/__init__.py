"""Verification: the claims of a published file, each recomputed or attacked, with its outcome in plain words."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.assurance.verification.attacking import Effort, attack_claims
from pkdp_pipeline.extras.assurance.verification.claims import BREAKS, Claim, Nested, Verification, certificate_claims
from pkdp_pipeline.extras.assurance.verification.files import Opened, file_claims, opened, release_table_claims
from pkdp_pipeline.extras.assurance.verification.ledgers import (
    held_claims,
    ledger_claims,
    without_ledger,
)
from pkdp_pipeline.ledger.parquet_sizes import MAX_ROWS
from pkdp_pipeline.model.arguments import whole_number
from pkdp_pipeline.plugins import view

__all__ = ["CONFIDENCE", "DRAWS", "Claim", "Verification", "verify"]

DRAWS = 20_000
CONFIDENCE = 0.999999


def verify(
    path: str | os.PathLike[str],
    *,
    ledger: str | os.PathLike[str] | None = None,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    rows: int = MAX_ROWS,
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
        Draws of every simulated attack; at least 100.
    confidence : float, default 0.999999
        The least probability with which a sound file passes all simulations; strictly between 0 and 1.
    seed : int, default 0
        Seed of the simulations: the same seed gives the same draws.
    rows : int, default 200,000
        A release with more rows, or more than a kilobyte for each of so many, is not read; nor a certificate or report
        of more than 128 bytes for each.

    Returns
    -------
    Verification
        Every claim with its outcome; ``passed`` says whether none failed.

    Raises
    ------
    ConfigError
        If the file cannot be read.
    ArgumentError
        If it is none of ours, or larger than allowed, or an argument is out of range.
    LedgerError, TemporaryError
        If there is no such ledger, or it cannot be used.

    Notes
    -----
    *Guarantee*: a claim passes only if what is stored is what is recomputed, or weaker, and no attack exceeds it by
    more than one part in 10⁹ (for the rounding of floats); a sound file fails with probability ``1 - confidence`` at
    most, by chance of the simulations. *Rounding*: what an attacker attains is rounded down.
    """
    for name, value in (("path", path), ("ledger", ledger)):
        if not (isinstance(value, str | os.PathLike) or (name == "ledger" and value is None)):
            raise ArgumentError(f"{name} must be a path, as text or a pathlib.Path, not {type(value).__name__}.")
    number = whole_number("draws", draws, least=100)
    whole_number("seed", seed, least=0)
    whole_number("rows", rows, least=1)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.0 < confidence < 1.0:
        raise ArgumentError("confidence must be strictly between 0 and 1.")
    file = opened(path, rows)
    effort = Effort(draws=number, error=1.0 - confidence, seed=seed)
    check = _report if file.kind == "report" else _single
    claims = check(file, None if ledger is None else os.fspath(ledger), effort)
    return Verification(kind=file.kind, file=file.name, claims=tuple(claims))


def _single(file: Opened, ledger: str | None, effort: Effort) -> Iterator[Claim]:
    """Yield the claims of a release or a certificate, and what the ledger says about it."""
    if file.kind == "release":
        yield from file_claims(file)
        if file.problem:
            yield Claim("certificate.structure", "fail", f"It cannot be read: {file.problem}")
            return
    claims, nested = _certified(file.document, "certificate", effort)
    if file.kind == "release":
        yield from release_table_claims(file.table, nested)
    yield from claims
    if ledger is None:
        yield from without_ledger(file.kind)
        return
    certificate = nested[-1].certificate if nested else None
    about = certificate.context if isinstance(certificate, ReleaseCertificate) else None
    further = functools.partial(held_claims, file=file, certificate=certificate)
    dataset, head = (None, None) if about is None else (about.dataset, about.head)
    yield from ledger_claims(ledger, dataset, head, further)


def _report(file: Opened, ledger: str | None, effort: Effort) -> Iterator[Claim]:
    """Yield the claims of a report, which the package that makes reports knows."""
    claims: Iterator[Claim] = view("report.claims")(
        file, ledger, lambda document, prefix, shares: _certified(document, prefix, effort.shared(shares))
    )
    yield from claims


def _certified(document: dict[str, Any], prefix: str, effort: Effort) -> tuple[list[Claim], list[Nested]]:
    """Return all claims of one certificate, and it with its parts where they could be made again."""
    claims, nested = certificate_claims(document, prefix)
    try:
        claims += list(attack_claims(nested, effort, prefix)) if nested else ()  # all of them, or none
    except BREAKS as error:
        why = f"The attackers of what it names cannot be written down ({type(error).__name__})."
        claims.append(Claim(f"{prefix}.enumerated", "not_checked", why))
    return claims, nested
