"""Bundle: what one component holds for one privacy unit, in a form that equal components share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from pkdp_pipeline.errors import LedgerError

__all__ = ["Bundle", "Company", "company_for"]

Company = Literal["alone", "same unit", "other units"]
"""Whether a component's releases stand alone, beside others about the same unit, or beside other units'."""

_COMPANIES = ("alone", "same unit", "other units")


def company_for(*, releases: int, units: int) -> Company:
    """Return the company of a component's releases."""
    return "alone" if releases == 1 else "same unit" if units == 1 else "other units"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What a component's releases for one unit add up from.

    Parameters
    ----------
    company : {"alone", "same unit", "other units"}
    parts : tuple of (str, int)
        The sha256 of every different part and how often it occurs, sorted.
    """

    company: Company
    parts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, company: Company, parts: Mapping[str, int] | Iterable[tuple[str, int]]) -> Bundle:
        """Return the bundle of these parts, sorted."""
        return cls(company=company, parts=tuple(sorted(dict(parts).items())))

    @property
    def releases(self) -> int:
        """How many releases it holds."""
        return sum(times for _, times in self.parts)

    def to_json(self) -> str:
        """Return it as canonical JSON."""
        return json.dumps([self.company, [list(part) for part in self.parts]], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Bundle:
        """Read it back from `to_json`."""
        try:
            company, parts = json.loads(text)
            bundle = cls.of(cast("Company", company), [(str(key), int(times)) for key, times in parts])
        except (TypeError, ValueError):
            raise LedgerError("the ledger's running state cannot be read: it was altered.") from None
        if company not in _COMPANIES:
            raise LedgerError("the ledger's running state cannot be read: it was altered.")
        return bundle
