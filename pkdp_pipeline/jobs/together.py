"""Together: what several noised releases about the same people in the same period add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pkdp_pipeline.certificate import Certificate
from pkdp_pipeline.composition import basic_sum
from pkdp_pipeline.ledger import Entry
from pkdp_pipeline.sentences import rounded_up

__all__ = ["Together"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The basic sum of the worst-case guarantees of everything that stands about some people in one period.

    Parameters
    ----------
    releases : int
    guarantee : (float, float) or None
        The (ε, δ) they add up to; None when they protect different units, which do not add up.
    value : bool
        Whether the sum also protects which cell a person is in, because every part does.
    """

    releases: int
    guarantee: tuple[float, float] | None
    value: bool

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Together | None:
        """Add up ledger entries; None for a single one, whose own certificate says everything."""
        if len(entries) < 2:
            return None
        certificates = [Certificate.from_json(entry.certificate) for entry in entries]
        guarantee = None
        if len({entry.unit for entry in entries}) == 1:
            # A value guarantee is never smaller than the presence guarantee of the same release, so a mixed sum
            # holds for presence.
            parts = [certificate.worst_case.parameters for certificate in certificates]
            guarantee = basic_sum(part or (math.inf, 1.0) for part in parts)
        value = all(certificate.protects == "value" for certificate in certificates)
        return cls(releases=len(entries), guarantee=guarantee, value=value)

    def sentence(self, day: date) -> str:
        """Return the sum in words; numbers are rounded up."""
        held = f"The ledger holds {self.releases} releases about these people on {day.isoformat()}"
        if self.guarantee is None:
            return f"{held}; they protect different units, so their guarantees are not added up here."
        epsilon, delta = self.guarantee
        what = "which of two published cells a person is in" if self.value else "whether a person is there"
        return (
            f"{held}, all of them noised, and their worst-case guarantees add up: ε = {rounded_up(epsilon, 4)}, "
            f"δ = {rounded_up(delta, 4)} against anyone at all, whatever they know. Protects {what} on that day alone; "
            "what several days add up to is not stated here."
        )
