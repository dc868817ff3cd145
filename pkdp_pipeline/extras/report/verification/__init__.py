"""Verification of reports: each is made again from its content, that from its certificates, and held to a ledger."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.extras.assurance.verification.claims import Claim, Nested
from pkdp_pipeline.extras.assurance.verification.files import Opened
from pkdp_pipeline.extras.assurance.verification.ledgers import ledger_claims, without_ledger
from pkdp_pipeline.extras.report.verification.ledgers import report_ledger_claims
from pkdp_pipeline.extras.report.verification.pages import content_claims, page_claims

__all__ = ["report_claims"]

Certified = Callable[[dict[str, Any], str, int], tuple[list[Claim], list[Nested]]]
"""Returns the claims of one certificate, and it with its parts: its document, the key it has, among so many."""


def report_claims(file: Opened, ledger: str | None, certified: Certified) -> Iterator[Claim]:
    """Yield the claims of a report, of all certificates in it, and of the ledger where one is given."""
    document, claims = file.document, list(page_claims(file))
    yield from claims
    if claims[0].outcome == "fail":  # its structure is not that of a report
        return
    promised: list[Certificate | None] = []
    carried = sum(promise["certificate"] is not None for promise in document["promises"])
    for place, promise in enumerate(document["promises"]):
        nested: list[Nested] = []
        if promise["certificate"] is not None:
            claims, nested = certified(promise["certificate"], f"promises.{place}", carried)
            yield from claims
        promised.append(nested[-1].certificate if nested else None)
    yield from content_claims(document, promised)
    if ledger is None:
        yield from without_ledger(file.kind)
    else:
        further = functools.partial(report_ledger_claims, document=document)
        yield from ledger_claims(ledger, document["title"], None, further)
