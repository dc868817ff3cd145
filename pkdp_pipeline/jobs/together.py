"""Together: what several releases about the same people in the same period add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pkdp_pipeline.certificates.compose import compose
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import release_certificate
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger import Entry
from pkdp_pipeline.model.evidence import SamePeople

__all__ = ["Together"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The total of everything that stands about some people in one period.

    Parameters
    ----------
    releases : int
    total : ComposedCertificate or None
        What they add up to; None when they protect different units, or do not add up.
    reason : str
        Why there is no total; empty where there is one.
    """

    releases: int
    total: ComposedCertificate | None
    reason: str = ""

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Together | None:
        """Add up ledger entries; None for a single one, whose own certificate says everything."""
        if len(entries) < 2:
            return None
        if len({entry.unit for entry in entries}) > 1:
            reason = "they protect different units, so their guarantees are not added up here"
            return cls(releases=len(entries), total=None, reason=reason)
        parts = []
        # An exact total takes nothing from the one release that is certified given it.
        single = sum(not entry.standing.total for entry in entries) == 1
        for entry in entries:
            certificate = release_certificate(entry.certificate)
            noised = certificate.worst_case_bound is not None
            # Beside another release only the noise of a noised one stands.
            parts.append(certificate.worst_case_only() if noised and not single else certificate)
        try:
            return cls(releases=len(entries), total=compose(parts, SamePeople()))
        except NoEvidenceError:
            return cls(releases=len(entries), total=None, reason="nothing declared says what they add up to")

    def sentence(self, day: date) -> str:
        """Return the total in words; numbers are rounded up."""
        held = f"The ledger holds {self.releases} releases about these people on {day.isoformat()}"
        if self.total is None:
            return f"{held}; {self.reason}."
        return f"{held}. {self.total.sentence()} What several periods add up to is stated by the ledger's total."
