"""``[checks]`` and ``retention``: what the input must look like, and how long a copy of it is kept."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from pkdp_pipeline.jobs.tables import ColumnKind, Name, Table

__all__ = ["ChecksTable", "FreshTable", "RetentionTable", "RowsTable"]


class RowsTable(Table):
    """``rows``: how many rows the day may have."""

    min: int | None = Field(default=None, ge=0)
    max: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _a_range(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("needs min, max or both.")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min is above max: no day could pass; swap them.")
        return self


class FreshTable(Table):
    """``fresh``: the newest value of a column, over the whole source, shows that the day is complete."""

    column: Name
    days: int = Field(default=1, ge=0)


class ChecksTable(Table):
    """``[checks]``: rules beyond those that are always checked."""

    rows: RowsTable | None = None
    columns: dict[Name, ColumnKind] = Field(default_factory=dict)
    fresh: FreshTable | None = None
    expectations: Name | None = None
    expect: tuple[dict[str, Any], ...] = Field(default=(), strict=False)


class RetentionTable(Table):
    """``retention``: a private copy of the day's rows."""

    directory: Name
    days: int = Field(ge=1)
