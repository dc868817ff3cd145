"""Job: a job file as checked values. What it may say is what `interface` names, and nothing else."""

from __future__ import annotations

import hashlib
import json
import zoneinfo
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from pkdp_pipeline.attacker import AttackerModel
from pkdp_pipeline.composition.evidence import Evidence, read_evidence
from pkdp_pipeline.jobs.check_tables import ChecksTable, RetentionTable
from pkdp_pipeline.jobs.environment import LedgerName
from pkdp_pipeline.jobs.output_tables import OutputTable, RecordsTable
from pkdp_pipeline.jobs.source_tables import SourceTable
from pkdp_pipeline.jobs.tables import Cells, Columns, FileName, Name, Table
from pkdp_pipeline.jobs.terms import BudgetTable, Declared
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.mechanisms import Count, GeometricNoise, Histogram, Mechanism

__all__ = ["AttackerTable", "Job", "NoiseTable", "OutputTable", "PeriodTable", "ReleaseTable"]

OneCell = Literal["error", "most_frequent", "first", "hash"]


class PeriodTable(Table):
    """``period``: one release for each day of a column."""

    column: Name
    time_zone: Name | None = Field(
        default=None, description="Where the column holds instants: the zone in which a day begins and ends."
    )

    @field_validator("time_zone")
    @classmethod
    def _zone_exists(cls, zone: str | None) -> str | None:
        if zone is not None and zone not in zoneinfo.available_timezones():
            raise ValueError("must be the name of a time zone, such as 'Europe/Oslo' or 'UTC'.")
        return zone


class AttackerTable(Table):
    """``[attacker]``: the fields of `AttackerModel`, assumptions that are argued and published."""

    p_max: float | None = None
    p_min: float | None = None
    p_max_between: float | None = None
    unknown: int | None = None
    unknown_max: int | None = None
    known: int = 0
    influence: Literal["passive", "active"] = "passive"

    @model_validator(mode="after")
    def _is_an_attacker(self) -> Self:
        self.model()
        return self

    def model(self) -> AttackerModel:
        """Return the attacker model."""
        return AttackerModel(**self.model_dump())


class NoiseTable(Table):
    """``noise``: two-sided geometric noise."""

    epsilon: float


class ReleaseTable(Table):
    """``[[release]]``: a histogram when it has ``by``, a count otherwise."""

    name: FileName
    by: Columns | None = None
    where: Name | None = None
    domain: Cells | None = None
    undeclared: Literal["error", "absent"] = "error"
    one_cell: OneCell | None = Field(default=None, description="Overrides the job's one_cell.")
    order_by: Columns | None = Field(default=None, description="Overrides the job's order_by.")
    k: int | None = None
    k_complement: int | None = None
    noise: NoiseTable | None = None
    release_threshold: int | None = None
    protects: Literal["presence", "value"] = "presence"
    attacker: AttackerTable | None = Field(default=None, description="Instead of the job's [attacker].")

    @model_validator(mode="after")
    def _is_a_mechanism(self) -> Self:
        if self.by is None:
            for key in ("domain", "one_cell", "order_by"):
                if getattr(self, key) is not None:
                    raise ValueError(f"{key} is about the cells of a histogram: add by, or remove {key}.")
            if self.protects == "value":
                raise ValueError('protects = "value" is about the cells of a histogram: add by, or remove protects.')
        elif self.k_complement is not None:
            raise ValueError("k_complement is for counts: remove it, or remove by.")
        self.mechanism()
        return self

    def mechanism(self) -> Mechanism:
        """Return the mechanism this release runs."""
        noise = None if self.noise is None else GeometricNoise(self.noise.epsilon)
        if self.by is not None:
            return Histogram(k=self.k, noise=noise, release_threshold=self.release_threshold)
        return Count(k=self.k, k_complement=self.k_complement, noise=noise, release_threshold=self.release_threshold)


def _one_or_list(schema: dict[str, Any]) -> None:
    """Say in the JSON schema that a single table stands for a list of one."""
    items = schema.pop("items")
    schema["anyOf"] = [items, {"type": schema.pop("type"), "items": items}]


class Job(Table):
    """A job file; its paths are absolute once `load_job` has read it.

    Notes
    -----
    All jobs of one data set must cut the days in the same way (the same column, the same time zone) and
    use the same ledger: the ledger compares dates, not what a date means.
    """

    dataset: Name
    source: SourceTable = Field(description="What is read: files, a DuckDB file or a PostgreSQL database.")
    engine: Literal["duckdb", "polars", "spark"] = Field(
        default="duckdb", description="What reads and counts; the releases are the same."
    )
    period: PeriodTable
    unit: Columns
    missing_unit: Literal["error", "drop"] = "error"
    one_cell: OneCell = "error"
    order_by: Columns | None = None
    ledger: LedgerName = Field(
        repr=False, description="A SQLite file, relative to the job file; created when there is none."
    )
    attacker: AttackerTable | None = None
    evidence: tuple[Declared, ...] = Field(
        default=(),
        strict=False,
        description="How the releases of different days depend on one another; a table, or a list of them.",
        json_schema_extra=_one_or_list,
    )
    budget: tuple[BudgetTable, ...] = Field(
        default=(),
        strict=False,
        description="What all releases of the data set may add up to; a table, or a list.",
        json_schema_extra=_one_or_list,
    )
    release: tuple[ReleaseTable, ...] = Field(min_length=1, strict=False)
    checks: ChecksTable = ChecksTable()
    retention: RetentionTable | None = None
    output: OutputTable
    records: RecordsTable | None = None

    _file: str = PrivateAttr(default="")
    _digest: str = PrivateAttr(default="")

    @property
    def file(self) -> str:
        """Absolute path of the job file; empty for a job that was not read from one."""
        return self._file

    @property
    def name(self) -> str:
        """The job file's name without its suffix."""
        return Path(self._file).stem

    @property
    def digest(self) -> str:
        """SHA-256 of what the file says, without secrets; comments and the order of keys do not change it."""
        return self._digest

    def attacker_of(self, release: ReleaseTable) -> AttackerModel:
        """Return the attacker one release is certified against: its own, or the job's."""
        return self.attacker_model() if release.attacker is None else release.attacker.model()

    @field_validator("evidence", "budget", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _evidence_fits_together(self) -> Self:
        self.declared()
        return self

    @model_validator(mode="after")
    def _releases_fit_together(self) -> Self:
        names = [release.name.casefold() for release in self.release]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two releases are named {name!r}; their files would overwrite each other.")
        if self.attacker is not None and len(names) > 1 and all(release.noise for release in self.release):
            raise ValueError(
                "[attacker] says nothing in this job: several noised releases about the same people keep "
                "only their worst-case guarantees, which hold against every attacker. Remove [attacker]."
            )
        return self

    @model_validator(mode="after")
    def _the_engine_knows_the_rules(self) -> Self:
        rules = [release.one_cell or self.one_cell for release in self.release if release.by is not None]
        if self.engine == "spark" and "hash" in rules:
            raise ValueError(
                'one_cell = "hash" is for engine = "duckdb" and "polars": choose one of these, or one_cell = '
                '"most_frequent" or "first".'
            )
        return self

    def declared(self) -> tuple[Evidence, ...]:
        """Return the declared evidence."""
        return read_evidence([table.evidence() for table in self.evidence])

    def budgets(self) -> tuple[Budget, ...]:
        """Return the declared budgets."""
        return tuple(table.budget() for table in self.budget)

    def attacker_model(self) -> AttackerModel:
        """Return the declared attacker; without ``[attacker]``, one about whom nothing is assumed."""
        return AttackerModel() if self.attacker is None else self.attacker.model()

    def relative_to(self, file: Path) -> Job:
        """Return the same job as read from `file`, with its paths made absolute from there."""
        folder = file.parent
        output = {"directory": str(folder / self.output.directory)}
        if self.output.duckdb is not None:
            output["duckdb"] = str(folder / self.output.duckdb)
        update: dict[str, Any] = {
            "source": self.source.relative_to(folder),
            "ledger": self.ledger if "://" in self.ledger else str(folder / self.ledger),
            "output": self.output.model_copy(update=output),
        }
        if self.checks.expectations is not None:
            expectations = str(folder / self.checks.expectations)
            update["checks"] = self.checks.model_copy(update={"expectations": expectations})
        if self.retention is not None:
            directory = str(folder / self.retention.directory)
            update["retention"] = self.retention.model_copy(update={"directory": directory})
        if self.records is not None:
            places = {"directory": self.records.directory, "lineage": self.records.lineage}
            absolute = {key: str(folder / place) for key, place in places.items() if place is not None}
            update["records"] = self.records.model_copy(update=absolute)
        job = self.model_copy(update=update)
        job._file, job._digest = str(file), self._content_digest()
        return job

    def _content_digest(self) -> str:
        content = json.dumps(self.model_dump(mode="json", by_alias=True), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode()).hexdigest()
