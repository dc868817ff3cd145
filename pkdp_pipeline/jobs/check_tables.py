"""``[checks]`` and ``retention``: what the input must look like, and how long a copy of it is kept."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from pkdp_pipeline.releases.options.tables import ColumnKind, Name, PathName, Table

__all__ = ["ChecksTable", "FreshTable", "RetentionTable", "RowsTable"]


class RowsTable(Table):
    """``rows``: how many rows the day may have."""

    min: int | None = Field(default=None, ge=0, description="At least so many.", examples=[100])
    max: int | None = Field(default=None, ge=0, description="At most so many.", examples=[100000])

    @model_validator(mode="after")
    def _a_range(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("needs min, max or both: write rows = { min = 100, max = 100000 }.")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min is above max, and no day could pass: swap them.")
        return self


class FreshTable(Table):
    """``fresh``: the newest value of a column, over the whole source, shows that the day is complete."""

    column: Name = Field(description="A column that holds days or times.", examples=["date"])
    days: int = Field(default=1, ge=0, description="How many days after the day its newest value is, at least.")


class ChecksTable(Table):
    """``[checks]``: rules beyond those that are always checked; one that fails stops the job before any charge."""

    rows: RowsTable | None = Field(default=None, description="How many rows the day may have.")
    columns: dict[Name, ColumnKind] = Field(
        default_factory=dict,
        description="Columns that must exist, and what they hold.",
        examples=[{"tailnum": "text", "distance": "number"}],
    )
    fresh: FreshTable | None = Field(
        default=None, description="The day is complete: the source has rows of a later day already."
    )
    expectations: PathName | None = Field(
        default=None,
        description="A suite of Great Expectations 1.x in JSON, relative to the job file.",
        examples=["checks.json"],
    )
    expect: tuple[dict[str, Any], ...] = Field(
        default=(),
        strict=False,
        description="Expectations of Great Expectations: type, and its arguments.",
        examples=[[{"type": "expect_column_values_to_be_between", "column": "distance", "min_value": 0}]],
    )

    @property
    def look_at_rows(self) -> bool:
        """Whether a day's rows can fail them; what only names columns and kinds is no matter of a day."""
        stops = [expectation.get("severity", "critical") == "critical" for expectation in self.expect]
        return self.rows is not None or self.fresh is not None or self.expectations is not None or any(stops)


class RetentionTable(Table):
    """``retention``: a private copy of the day's rows, for so many days; without it no copy is kept."""

    directory: PathName = Field(
        description="Where the copy is kept, relative to the job file; only the curator may read it.",
        examples=["private"],
    )
    days: int = Field(ge=1, description="After so many days the copy is deleted.", examples=[7])
