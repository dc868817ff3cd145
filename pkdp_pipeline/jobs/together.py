"""Together: the total of everything that stands about some people in one period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pkdp_pipeline.certificates.composed import ComposedCertificate, compose, promised_by
from pkdp_pipeline.certificates.release_certificate import release_certificate
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger import Entry
from pkdp_pipeline.ledger.rows import counted
from pkdp_pipeline.model.evidence import SamePeople

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The total of everything that stands about some people in one period.

    `total`: their sum; None when they protect different units, or do not add up. `reason`: why there is no
    total; empty where there is one.
    """

    releases: int
    total: ComposedCertificate | None
    reason: str = ""

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Together | None:
        """Add up ledger entries; None for a single one, whose own certificate says everything."""
        if len(entries) < 2:
            return None
        total, reason = None, ""
        if len({entry.unit for entry in entries}) > 1:
            reason = "they protect different units, so their guarantees are not added up here"
        else:
            # An exact total takes nothing from the one release that is certified given it. Beside another release
            # only the noise of a noised one stands.
            single = sum(not entry.standing.total for entry in entries) == 1
            try:
                total = compose([_promised(entry, alone=single) for entry in entries], SamePeople())
            except NoEvidenceError:
                reason = "nothing declared says what they add up to"
        return cls(releases=len(entries), total=total, reason=reason)

    def sentence(self, period: str) -> str:
        """Return the total of a period in words; numbers are rounded up."""
        when = f"{'on' if period.count('-') == 2 else 'in'} {period}"
        start = f"The ledger holds {self.releases} releases about these people {when}"
        if self.total is None:
            return f"{start}; {self.reason}."
        return f"{start}. {self.total.sentence()} The ledger's total states what several periods add up to."


def _promised(entry: Entry, *, alone: bool) -> Certificate:
    """Return the largest promise that a release ever made; only that of its noise, where others stand beside it."""
    counting = [release_certificate(text) for text in counted(entry.certificates)]
    if alone or any(certificate.worst_case_bound is None for certificate in counting):
        return promised_by(counting)
    return promised_by([certificate.worst_case_only() for certificate in counting])
