"""``[output]`` and ``[records]``: where releases go, which are public, and records of the runs, which are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from pkdp_pipeline.jobs.environment import Address
from pkdp_pipeline.jobs.outputs.formats import FORMATS
from pkdp_pipeline.releases.options.tables import Name, PathName, Table

__all__ = ["OutputTable", "RecordsTable"]

if TYPE_CHECKING:
    FormatName = str
else:
    FormatName = Literal[tuple(FORMATS)]


class OutputTable(Table):
    """``[output]``: where the releases go. The certificate and summary.md are written beside every release."""

    directory: PathName = Field(
        description="A folder, relative to the job file; each date has a folder of its own in it.", examples=["out"]
    )
    formats: tuple[FormatName, ...] = Field(
        default=("parquet",), min_length=1, strict=False, description="The files of each release."
    )
    duckdb: PathName | None = Field(
        default=None,
        description="A DuckDB file for the public: a table for each release, named as it is.",
        examples=["public.duckdb"],
    )
    postgres: Address | None = Field(
        default=None, repr=False, description="A PostgreSQL database for the public: a table for each release."
    )
    schema_: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=63)] | None = Field(
        default=None,
        alias="schema",
        description="The schema of these tables; the database's own when left out.",
        examples=["public"],
    )
    report: bool = Field(
        default=False,
        description="Write report.html, for the public: beside each date's releases, and at the end of a backfill "
        "about all of them. Needs the extra report.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("formats names a format twice.")
        if self.schema_ is not None and self.duckdb is None and self.postgres is None:
            raise ValueError("schema is for the tables of a database: add duckdb or postgres, or remove schema.")
        return self

    @property
    def address(self) -> str | None:
        """The whole address of the database, which may hold a password."""
        return self.postgres


class RecordsTable(Table):
    """``[records]``: what is written about every run, for the curator."""

    directory: PathName | None = Field(
        default=None, description="A folder for one JSON file per run, relative to the job file.", examples=["runs"]
    )
    lineage: PathName | None = Field(
        default=None, description="A file to which OpenLineage events are appended.", examples=["lineage.jsonl"]
    )
    namespace: Name = Field(default="pkdp", description="The namespace of the events' jobs and data sets.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.directory is None and self.lineage is None:
            raise ValueError("needs directory, lineage or both.")
        return self
