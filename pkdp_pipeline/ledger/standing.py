"""Standing: which people and which period a release is about, and whether noise protects it."""

from __future__ import annotations

from dataclasses import dataclass

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger.period import Period

__all__ = ["Standing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the differencing rule needs to know about a release; it needs no data.

    Parameters
    ----------
    unit : tuple of str
        Columns of the privacy unit. They are recorded, not compared: two units of one data set may be the
        same people under two names.
    period : str
        Read by `Period.parse`.
    label : str
        What is published, in the words of the request.
    noiseless : bool
        False only when noise gives the release a finite worst-case guarantee, one that stands against an
        attacker who knows everybody else.

    Raises
    ------
    ArgumentError
        If a field has another type or the period cannot be read.
    """

    unit: tuple[str, ...]
    period: str
    label: str
    noiseless: bool

    def __post_init__(self) -> None:
        if not isinstance(self.unit, tuple) or not all(isinstance(column, str) for column in self.unit):
            raise ArgumentError("unit must be a tuple of column names.")
        if not isinstance(self.label, str):
            raise ArgumentError(f"label must be a text, not {type(self.label).__name__}.")
        if not isinstance(self.noiseless, bool):
            raise ArgumentError(f"noiseless must be True or False, not {type(self.noiseless).__name__}.")
        Period.parse(self.period)
