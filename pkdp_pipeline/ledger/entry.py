"""Entry: one published release as the ledger keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pkdp_pipeline.ledger.standing import Standing

__all__ = ["Entry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One published release, frozen.

    Parameters
    ----------
    sequence : int
        Position in the ledger, increasing.
    key : str
        What was asked; the same key replays `content`.
    dataset : str
    unit : tuple of str
    period : str
    label : str
    noiseless : bool
        See `Standing`.
    state : "published"
        Charging and publishing are one transaction, so there is no other state.
    release_id : str
    certificate : str
        The certificate's JSON text.
    content : bytes
        The released bytes.
    created_at : str
        UTC, ISO 8601.
    """

    sequence: int
    key: str
    dataset: str
    unit: tuple[str, ...]
    period: str
    label: str
    noiseless: bool
    state: Literal["published"]
    release_id: str
    certificate: str
    content: bytes
    created_at: str

    def standing(self) -> Standing:
        """Return what the differencing rule compares."""
        return Standing(unit=self.unit, period=self.period, label=self.label, noiseless=self.noiseless)
