"""Standing: what a release asks about whom and when, as far as other releases beside it matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import choice
from pkdp_pipeline.model.mechanisms import Count, Mechanism, mechanism_from_dict, mechanism_name, mechanism_to_dict
from pkdp_pipeline.model.period import Period

__all__ = ["NOISELESS", "Kind", "Standing", "kind_of"]

Kind = Literal["total", "exact count", "noiseless", "pure noise", "noised"]
NOISELESS: tuple[Kind, ...] = ("total", "exact count", "noiseless")
"""Kinds without noise that gives a finite worst case."""


def kind_of(mechanism: Mechanism, protects: str = "presence") -> Kind:
    """Return how what `mechanism` publishes stands beside other releases about the same people.

    "noised" has a finite worst case; "pure noise" is noised with δ = 0, because the noise acts on the exact count
    (a threshold after it looks at the noisy count only, which costs nothing). The other kinds are noiseless; an
    "exact count" has no threshold either. A "total" is the exact count of everybody who is there, published as what
    is known of them: it protects the value alone.
    """
    complement = mechanism.k_complement if isinstance(mechanism, Count) else None
    if mechanism.noise is None:
        if not isinstance(mechanism, Count) or mechanism.k is not None or complement is not None:
            return "noiseless"
        return "total" if protects == "value" else "exact count"
    if complement is not None or (mechanism.k is not None and mechanism.release_threshold is None):
        return "noiseless"
    return "pure noise" if mechanism.k is None else "noised"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the ledger compares releases by; it needs no data.

    Parameters
    ----------
    unit : tuple of str
        Columns of the privacy unit, empty where every row is a person. Two units of one data set may be the
        same people under two names.
    period : str
        Read by `Period.parse`.
    label : str
        What is published, in the words of the request.
    mechanism : Count or Histogram
    by : tuple of str, optional
        Columns of a histogram's cells.
    where : str, optional
        The predicate as written; None for everybody, and for one that is opaque.
    opaque : bool, default False
        Whether there is a predicate that cannot be written down.
    protects : {"presence", "value"}, default "presence"
    table : str, optional
        The table of the data set, where it has several; they are about the same people.
    time_zone : str, optional
        Where the days of the period begin and end, where they were cut out of instants.

    Raises
    ------
    ArgumentError
        If a field has another type or the period cannot be read.
    """

    unit: tuple[str, ...]
    period: str
    label: str
    mechanism: Mechanism
    by: tuple[str, ...] | None = None
    where: str | None = None
    opaque: bool = False
    protects: str = "presence"
    table: str | None = None
    time_zone: str | None = None

    def __post_init__(self) -> None:
        for name in ("unit", "by"):
            columns = getattr(self, name)
            if name == "by" and columns is None:
                continue
            if not isinstance(columns, tuple) or not all(isinstance(column, str) for column in columns):
                raise ArgumentError(f"{name} must be a tuple of column names.")
        if not isinstance(self.label, str):
            raise ArgumentError(f"label must be a text, not {type(self.label).__name__}.")
        for name in ("where", "table", "time_zone"):
            if not isinstance(getattr(self, name), str | None):
                raise ArgumentError(f"{name} must be a text or None, not {type(getattr(self, name)).__name__}.")
        for name in ("label", "period", "where", "table"):
            if any("\ud800" <= sign <= "\udfff" for sign in getattr(self, name) or ""):
                raise ArgumentError(f"{name} must be a text of whole Unicode characters: it holds half of a pair.")
        if not isinstance(self.opaque, bool):
            raise ArgumentError(f"opaque must be True or False, not {type(self.opaque).__name__}.")
        choice("protects", self.protects, ("presence", "value"))
        mechanism_name(self.mechanism)
        Period.parse(self.period)
        if self.kind == "total" and (self.where is not None or self.opaque):
            raise ArgumentError(
                "a total that protects the value counts everybody: a predicate may depend on the cell a person is in."
            )

    @property
    def kind(self) -> Kind:
        """How the release stands beside others; see `kind_of`."""
        return kind_of(self.mechanism, self.protects)

    @property
    def noiseless(self) -> bool:
        """Whether no noise is on what is published, or it gives no finite worst case."""
        return self.kind in NOISELESS

    @property
    def total(self) -> bool:
        """Whether it is the exact number of people, published as what is known of them."""
        return self.kind == "total"

    @property
    def pure_noise(self) -> bool:
        """Whether noise acts on the exact count, so that the worst case has δ = 0."""
        return self.kind == "pure noise"

    @property
    def exact_count(self) -> bool:
        """Whether a count is published as it is: the one noiseless release that may stand beside pure noise."""
        return self.kind == "exact count"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-ready dictionary; `table` and `time_zone` only where there is one."""
        fields: dict[str, Any] = {
            "unit": list(self.unit),
            "period": self.period,
            "label": self.label,
            "mechanism": mechanism_to_dict(self.mechanism),
            "by": None if self.by is None else list(self.by),
            "where": self.where,
            "opaque": self.opaque,
            "protects": self.protects,
        }
        rarely = {"table": self.table, "time_zone": self.time_zone}
        return {**fields, **{name: text for name, text in rarely.items() if text is not None}}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Standing:
        """Rebuild a standing from the `fields` of `to_dict`.

        Raises
        ------
        ArgumentError
            If a field is unknown, missing or malformed.
        """
        if not isinstance(fields, Mapping) or {*fields, "table", "time_zone"} != set(cls.__dataclass_fields__):
            raise ArgumentError(f"a standing must have the fields {', '.join(cls.__dataclass_fields__)}.")
        unit, by, mechanism = fields["unit"], fields["by"], fields["mechanism"]
        if not isinstance(unit, list) or not isinstance(by, list | None) or not isinstance(mechanism, Mapping):
            raise ArgumentError("a standing's unit and by must be lists of column names, its mechanism an object.")
        return cls(
            unit=tuple(unit),
            period=fields["period"],
            label=fields["label"],
            mechanism=mechanism_from_dict(mechanism),
            by=None if by is None else tuple(by),
            where=fields["where"],
            opaque=fields["opaque"],
            protects=fields["protects"],
            table=fields.get("table"),
            time_zone=fields.get("time_zone"),
        )
