"""``[output]`` and ``[records]``: where releases go, which are public, and records of the runs, which are not."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from pkdp_pipeline.jobs.environment import Address
from pkdp_pipeline.jobs.tables import Name, Table

__all__ = ["OutputTable", "RecordsTable"]


class OutputTable(Table):
    """``[output]``: where the releases go; files in one folder for each date."""

    directory: Name
    formats: tuple[Literal["parquet", "csv"], ...] = Field(default=("parquet",), min_length=1, strict=False)
    duckdb: Name | None = None
    postgres: Address | None = Field(default=None, repr=False)
    schema_: Name | None = Field(default=None, alias="schema")

    @property
    def address(self) -> str | None:
        """The whole address of the database, which may hold a password."""
        return self.postgres


class RecordsTable(Table):
    """``[records]``: what is written about every run, for the curator."""

    directory: Name | None = None
    lineage: Name | None = None
    namespace: Name = "pkdp"

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.directory is None and self.lineage is None:
            raise ValueError("needs directory, lineage or both.")
        return self
