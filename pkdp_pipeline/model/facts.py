"""Facts: what a ledger stores of a question and compares releases by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import check_types, choice, written
from pkdp_pipeline.model.mechanisms import (
    NOISELESS,
    Kind,
    Mechanism,
    kind_of,
    mechanism_from_dict,
    mechanism_name,
    mechanism_to_dict,
)
from pkdp_pipeline.model.period import Period

_RARE = ("table", "time_zone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a ledger stores of a question and compares releases by; it needs no data.

    Parameters
    ----------
    unit : tuple of str
        Two units of one data set may be the same people under two names.
    period, mechanism, protects, table, time_zone
        As of `Question`.
    label : str
        What is published, in the words of the question.
    by : tuple of str, optional
        Columns of a histogram's cells.
    where : str, optional
        The predicate as written; None for everybody, and for one that is opaque.
    opaque : bool, default False
        Whether there is a predicate that cannot be written down.

    Raises
    ------
    ArgumentError
        If a field is malformed.
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
        check_types(self)
        choice("protects", self.protects, ("presence", "value"))
        mechanism_name(self.mechanism)
        Period.parse(self.period)
        for name in ("label", "period", "where", "table"):
            if any("\ud800" <= sign <= "\udfff" for sign in getattr(self, name) or ""):
                raise ArgumentError(f"{name} must be a text of whole Unicode characters: it holds half of a pair.")
        if self.total and (self.where is not None or self.opaque):
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
    def exact_count(self) -> bool:
        """Whether a count is published as it is: the one noiseless release that may stand beside pure noise."""
        return self.kind == "exact count"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-ready dictionary; `table` and `time_zone` only where there is one."""
        return written(self, dict.fromkeys(_RARE)) | {"mechanism": mechanism_to_dict(self.mechanism)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Facts:
        """Rebuild the facts from the `content` of `to_dict`.

        Raises
        ------
        ArgumentError
            If a field is unknown, missing or malformed.
        """
        if not isinstance(content, Mapping) or {*content, *_RARE} != set(cls.__dataclass_fields__):
            raise ArgumentError(f"a release's facts must have the fields {', '.join(cls.__dataclass_fields__)}.")
        unit, by, mechanism = content["unit"], content["by"], content["mechanism"]
        if not isinstance(unit, list) or not isinstance(by, list | None) or not isinstance(mechanism, Mapping):
            raise ArgumentError("the facts' unit and by must be lists of column names, their mechanism an object.")
        read = {"unit": tuple(unit), "by": None if by is None else tuple(by)}
        return cls(**{**content, **read, "mechanism": mechanism_from_dict(mechanism)})
