"""Shapes: the fields of the values that are drawn, whoever made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = [
    "BudgetShape",
    "GuaranteeShape",
    "KnowledgeShape",
    "PointShape",
    "SeriesShape",
    "TableShape",
]


class GuaranteeShape(Protocol):
    """δ against ε: `pkdp_pipeline.certificates.statement.GuaranteeCurve`."""

    @property
    def epsilons(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def attained(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def certified(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def worst_case(self) -> Sequence[float] | None: ...  # noqa: D102
    @property
    def mark(self) -> tuple[float, float] | None: ...  # noqa: D102


class KnowledgeShape(Protocol):
    """ε against what the attacker knows: `pkdp_pipeline.certificates.statement.KnowledgeCurve`."""

    @property
    def field(self) -> str: ...  # noqa: D102
    @property
    def words(self) -> str: ...  # noqa: D102
    @property
    def declared(self) -> float: ...  # noqa: D102
    @property
    def values(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def epsilons(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def floor(self) -> float | None: ...  # noqa: D102
    @property
    def delta(self) -> float: ...  # noqa: D102


class PointShape(Protocol):
    """What everything up to the end of a period adds up to."""

    @property
    def period(self) -> str: ...  # noqa: D102
    @property
    def releases(self) -> int: ...  # noqa: D102
    @property
    def epsilon(self) -> float: ...  # noqa: D102
    @property
    def worst_case(self) -> float: ...  # noqa: D102


class BudgetShape(Protocol):
    """A declared budget."""

    @property
    def epsilon(self) -> float: ...  # noqa: D102
    @property
    def delta(self) -> float: ...  # noqa: D102
    @property
    def part(self) -> str: ...  # noqa: D102
    @property
    def window_days(self) -> int | None: ...  # noqa: D102
    @property
    def words(self) -> str: ...  # noqa: D102


class TableShape(Protocol):
    """A published table, as text."""

    @property
    def columns(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def keys(self) -> Sequence[Sequence[str]]: ...  # noqa: D102
    @property
    def counts(self) -> Sequence[int | None]: ...  # noqa: D102
    @property
    def more(self) -> int: ...  # noqa: D102


class SeriesShape(Protocol):
    """One release over many periods."""

    @property
    def cells(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def periods(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def counts(self) -> Sequence[Sequence[int | None]]: ...  # noqa: D102
    @property
    def more_cells(self) -> int: ...  # noqa: D102
