"""Job: a job file as checked values, and its reading. A key that no table has is an error.

A complaint names the file, the key, the rule and the fix, never the value, which may be a password. Paths are absolute.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from pkdp_pipeline.certificates.release_certificate import Asked
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.jobs.expectations import check_expectations, read_expectations
from pkdp_pipeline.jobs.release_tables import ReleaseTable, made_of, with_margins
from pkdp_pipeline.jobs.source_tables import AnySource, misplaced
from pkdp_pipeline.jobs.sources.source import Needs, Source
from pkdp_pipeline.jobs.tables import (
    AboutTable,
    ChecksTable,
    LedgerName,
    OutputTable,
    PeriodTable,
    RecordsTable,
    RetentionTable,
)
from pkdp_pipeline.ledger.admission import allows_overlap
from pkdp_pipeline.ledger.sealed import PERIOD_COLUMN
from pkdp_pipeline.model.attacker import AttackerModel, asks_for_totals, beside_groups, read_attacker
from pkdp_pipeline.model.columns import OneCell, grouping
from pkdp_pipeline.model.mechanisms import Kind, cells_per_unit, kind_of
from pkdp_pipeline.model.predicate import from_query
from pkdp_pipeline.model.question import MissingUnit, Question, Spelling
from pkdp_pipeline.releases.options import (
    AttackerTable,
    Columns,
    Declarations,
    Name,
    TargetEntry,
    complaints,
    text_of,
    toml_of,
    unusable,
)
from pkdp_pipeline.releases.publish import Publication

_NOISED = (
    "several noised releases about the same people keep only their worst-case guarantees, which hold against every "
    "attacker"
)
_NOT_EXACT = ", without epsilon or shared_by (with them it is not the exact number)"
_TOTAL = "an exact total promises nothing about what an attacker is unsure of"


class Job(Declarations):
    """A job file; its paths are absolute once `load_job` has read it.

    Notes
    -----
    All jobs of one data set must cut days alike (the same column and time zone) and use the same ledger: it compares
    dates, not what they mean. A day stands for the period that it lies in wherever a job takes one.
    """

    model_config = ConfigDict(
        defer_build=True,  # until the first job is read, with the sources of all plugins
        json_schema_extra={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "urn:pkdp-pipeline:schemas:job.v1",
            "description": (
                "A job file, as the JSON of its TOML: what is read, what is published about each day, and where it "
                "goes. Paths are relative to the file."
            ),
        },
    )

    dataset: Name = Field(
        description="The people the data are about: releases of one data set are held against one another.",
        examples=["flights"],
    )
    about: AboutTable | None = Field(
        default=None, description="The publisher, and the person who argued the attacker; in reports."
    )
    source: AnySource = Field(
        description="The data: files, or a table of a DuckDB file, of a PostgreSQL database, or of one that Ibis "
        "connects to.",
        examples=["data/*.parquet", {"postgres": "${PKDP_SOURCE}", "table": "public.flights"}],
    )
    engine: Literal["duckdb", "spark"] = Field(
        default="duckdb", description="The program that reads and counts; the releases are the same."
    )
    period: PeriodTable = Field(description="One release for each day of a column, or for each week, month or more.")
    unit: Columns = Field(description="The people protected: the columns that name a person.", examples=["tailnum"])
    missing_unit: MissingUnit = Field(
        default="error", description="Rows without a unit: the job stops, or they are not counted."
    )
    units: Spelling = Field(
        default="checked",
        description="Whether names of people that differ only by spaces around them stop the job, or say exactly who "
        "they are.",
    )
    one_cell: OneCell = Field(
        default="error",
        description='In which of its cells a person with rows in several is counted; with "error" the job stops.',
    )
    order_by: Columns | None = Field(default=None, description='For one_cell = "first": which row comes first.')
    ledger: LedgerName = Field(
        repr=False,
        description="A SQLite file, relative to the job file and created when there is none; a postgresql:// address; "
        'or "${NAME}", an environment variable that holds one.',
        examples=["ledger.sqlite", "${PKDP_LEDGER}"],
    )
    attacker: AttackerTable | None = Field(
        default=None, description="The assumptions about the attacker; argued, and never estimated from these data."
    )
    target: TargetEntry | None = Field(
        default=None,
        description="The least that each release has to promise; without it a finite epsilon at delta = 1e-6. "
        '"none": nothing.',
        examples=[{"epsilon": 2.0, "delta": 1e-6}],
    )
    release: tuple[ReleaseTable, ...] = Field(
        min_length=1, strict=False, description="The releases about each day: one table [[release]] for each."
    )
    checks: ChecksTable = Field(
        default=ChecksTable(), description="Conditions on the input, beyond those always checked."
    )
    retention: RetentionTable | None = Field(
        default=None, description="Keep a private copy of the day's rows for some days; none is kept without it."
    )
    output: OutputTable = Field(description="Where the releases go.")
    records: RecordsTable | None = Field(default=None, description="Records of every run, for the curator.")

    _file: str = PrivateAttr(default="")
    _digest: str = PrivateAttr(default="")

    @property
    def file(self) -> str:
        """Absolute path of the job file; empty for a job that was not read from one."""
        return self._file

    def folder(self, day: date) -> Path:
        """Return the folder of the files about the period of a day."""
        return Path(self.output.directory, self.output.folder_name(self.period.text(day)))

    @property
    def name(self) -> str:
        """The job file's name without its suffix."""
        return Path(self._file).stem

    @property
    def digest(self) -> str:
        """SHA-256 of what the file says, in hex: not of comments, the order of keys, users and passwords."""
        return self._digest

    def attacker_of(self, release: ReleaseTable) -> AttackerModel:
        """Return the attacker one release is certified against: its own, or the job's."""
        return self.attacker_model() if release.attacker is None else release.attacker.value

    def kind(self, release: ReleaseTable) -> Kind:
        """Return how a release stands beside others about the same people; see `kind_of`."""
        arguments = (release.mechanism, grouping(release.cells_by), release.protects, self.attacker_of(release))
        return "total" if asks_for_totals(*arguments) else kind_of(release.mechanism, release.protects)

    def claims(self, release: ReleaseTable) -> bool:
        """Return whether what a release promises beside the others may rest on what its attacker does not know."""
        if self.kind(release) == "total":
            return False
        return self.alone or allows_overlap(self.declared()) or self.kind(release) in ("exact count", "noiseless")

    @cached_property
    def alone(self) -> bool:
        """Whether there is one release only, exact totals and coarser displays of it aside; it keeps its promise."""
        charged = [release for release in self.release if self.kind(release) != "total"]
        if len(charged) <= 1 or all(release.display is None for release in charged):
            return len(charged) <= 1
        questions = [self._question(release, date(2000, 1, 1)) for release in charged]
        return all(question.follows_from_any(questions[:place]) for place, question in enumerate(questions[1:], 1))

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        first: dict[str, str] = {}
        for name in (release.name for release in self.release):
            other = first.get(name.casefold())
            if other is not None:
                clash = f"{name!r}" if other == name else f"{other!r} and {name!r}, which differ in case alone"
                clash += ", one of them by margins" * any(made_of(table) == name for table in self.release)
                raise ValueError(f"two releases are named {clash}; their files would overwrite each other: rename one.")
            first[name.casefold()] = name
        return self

    @model_validator(mode="after")
    def _leakage_is_the_same(self) -> Self:
        known = [{*self.attacker_of(release).leakage} for release in self.release]
        for number, leakage in enumerate(known, 1):
            if leakage != known[0]:
                raise ValueError(
                    f"the attackers of release[1] and release[{number}] have different leakage: every attacker knows "
                    "the same of these people. Write the same leakage in each, or only in [attacker]."
                )
        return self

    @model_validator(mode="after")
    def _totals_are_told(self) -> Self:
        for number, release in enumerate(self.release, 1):
            if self.kind(release) == "total" and not self.attacker_of(release).total_is_known:
                raise ValueError(
                    f'release[{number}].protects: a count with protects = "value" is an exact total, and every '
                    "attacker knows what is published: declare it beside the attacker, [[attacker.leakage]] with "
                    'name = "the number of people present" and tells = "people_present"'
                    f"{_NOT_EXACT if self.attacker_of(release).leakage else ''}. To hide who is there, leave protects "
                    "out and add k or noise."
                )
        return self

    @model_validator(mode="after")
    def _attackers_are_used(self) -> Self:
        used = [
            (f"the attacker of release[{number}]", release.attacker, [release])
            for number, release in enumerate(self.release, 1)
        ]
        shared = [release for release in self.release if release.attacker is None]
        for whose, table, releases in [*used, ("[attacker]", self.attacker, shared)]:
            if table is None or any(map(self.claims, releases)):
                continue
            model, why = table.value, "every release has its own"
            if releases:
                why = _TOTAL if all(self.kind(release) == "total" for release in releases) else _NOISED
            if not releases or not model.leakage:
                raise ValueError(f"{whose} says nothing in this job: {why}. Remove {whose}.")
            if model != model.against_anyone():  # what is known besides matters to every release
                raise ValueError(
                    f"what {whose} says besides leakage says nothing in this job: {why}. Leave only leakage in it."
                )
        return self

    @model_validator(mode="after")
    def _the_engine_reads_the_source(self) -> Self:
        self.source.check_engine(self.engine)
        if "%d" not in (getattr(self.source, "date_format", None) or "%d") and self.period.every in ("day", "week"):
            raise ValueError(
                'source.date_format has no %d, so a value is a month: write every = "month", or longer, for the period.'
            )
        asks_for_rows = self.retention is not None or self.checks.expect or self.checks.expectations is not None
        if self.source.rows_stay and asks_for_rows:
            raise ValueError(self.source.rows_stay)
        return self

    def publications(self, day: date = date(2000, 1, 1), reading: str | None = None) -> tuple[Publication, ...]:
        """Return what is asked for about the period of a day, or of any, in the file's order; `reading`: its mark.

        A question's label is the release's name. Raises `ArgumentError` if a release cannot be asked for like this; the
        message starts with the release's name.
        """
        target: Asked = "default" if self.target is None else None if self.target == "none" else self.target.value
        return tuple(
            Publication(
                question=self._question(release, day),
                attacker=self.attacker_of(release),
                alone=self.alone,
                target=target,
                reading=reading,
            )
            for release in self.release
        )

    def _question(self, release: ReleaseTable, day: date) -> Question:
        cells: dict[str, Any] = {}
        if release.by is not None:
            named = ("one_cell", "order_by")
            cells = {name: getattr(release, name) or getattr(self, name) for name in named}
            if cells_per_unit(release.mechanism) > 1:
                # The job's rule is for releases that count a person in one cell.
                cells = {name: getattr(release, name) for name in named if getattr(release, name) is not None}
        try:
            return Question(
                mechanism=beside_groups(
                    release.mechanism, grouping(release.cells_by), release.protects, self.attacker_of(release)
                ),
                protects=release.protects,
                unit=self.unit,
                by=release.cells_by,
                summed=release.sum_of,
                domain=release.domain,
                where=release.where,
                missing_unit=self.missing_unit,
                units=self.units,
                undeclared=release.undeclared,
                period=self.period.text(day),
                label=release.name,
                time_zone=self.period.time_zone,
                checks=self.checks.look_at_rows,
                **cells,
            )
        except ArgumentError as error:
            of_margins = [f"{table.name!r}, margins" for table in self.release if made_of(table) == release.name]
            raise ArgumentError(f"release {(*of_margins, repr(release.name))[0]}: {error}") from error

    def needs(self) -> Needs:
        """Return what the job needs of its source."""
        named = [("period.column", (self.period.column,)), ("unit", self.unit), ("order_by", self.order_by)]
        for release in self.release:
            own = {"by": release.by, "sum": release.summed, "order_by": release.order_by}
            named += [(f"{key} of release {release.name!r}", columns) for key, columns in own.items()]
        declared = [(key, column) for key, columns in named for column in columns or ()]
        expects = self.checks.expectations is not None or self.checks.expect
        expectations = read_expectations(self.checks) if expects else ()
        compared = {column for expectation in expectations for column in expectation.columns}
        compared |= set() if self.checks.fresh is None else {self.checks.fresh.column}
        predicates = (from_query(release.where) for release in self.release if release.where is not None)
        compared |= {column for predicate in predicates if predicate is not None for column in predicate.columns}
        return Needs(
            engine=self.engine,
            period=self.period,
            unit=self.unit,
            declared=tuple(declared),
            checked=frozenset(self.checks.columns),
            compared=frozenset(compared),
        )

    def misplaced(self) -> list[str]:
        """Return what is wrong with where the files of the job lie; one line for each."""
        names = [release.name for release in self.release]
        return misplaced(self.source, self.output, self.retention, self.records, self.ledger, names)

    def attacker_model(self) -> AttackerModel:
        """Return the declared attacker; without ``[attacker]``, one about whom nothing is assumed."""
        return read_attacker(None) if self.attacker is None else self.attacker.value

    def read_from(self, file: Path, digest: str) -> Job:
        """Return the same job as read from `file`."""
        job = self.model_copy()
        job._file, job._digest = str(file), digest
        return job


def open_source(job: Job) -> Source:
    """Return what the job reads from, open for reading; it is one state of the data until it is closed.

    Raises `ConfigError` if the data cannot be read, or what reads them is not installed; `TemporaryError` if the
    database is locked or cannot be reached.
    """
    return job.source.open(job.needs())


def load_job(path: str | os.PathLike[str]) -> Job:
    """Read and check a job file, without looking at any data.

    Its paths are absolute. Raises `ConfigError` if the file cannot be read, is not TOML, or says something a job cannot
    mean.
    """
    file = Path(path)
    return read_job(job_text(file), file)


def read_job(text: str, file: Path) -> Job:
    """Read and check the text of a job file as if `file` held it; its paths are relative to that."""
    content = toml_of(text, f"the job file {str(file)!r}")
    wrong: list[str] = []
    try:
        job = Job.model_validate(content, context=file.resolve().parent)
        if any(release.margins for release in job.release):
            content = with_margins(content, job.release)
            job = Job.model_validate(content, context=file.resolve().parent)
        wrong += job.misplaced()
        wrong += [
            f"release[{number}].by: 'period' is a column of the files that are written: rename it in the source."
            for number, release in enumerate(job.release, 1)
            if any(column.casefold() == PERIOD_COLUMN for column in release.by or ())
        ]
        job.publications()  # a question is checked without data
        check_expectations(job.checks)
    except ValidationError as error:
        wrong += complaints(error, tuple(Job.model_fields))
    except (ArgumentError, ConfigError) as error:
        wrong.append(str(error))
    if wrong:
        raise unusable(f"the job file {str(file)!r}", wrong)
    return job.read_from(file.absolute(), _digest(content, job))


def job_text(file: Path) -> str:
    """Return the text of a job file. Raises `ConfigError` if it cannot be read, or is no text."""
    return text_of(file, f"the job file {str(file)!r}")


_NEWER = dict.fromkeys(("display", "sampled", "suppressed", "margins", "sum", "bounds", "checked_on"))
_NEWER |= {"below": "suppress"}
"""Keys that jobs of the first form had not: as they are where nobody writes them, they are no part of its hash."""


def _without_news(content: Any) -> Any:
    """Return what a job says without newer keys that say nothing."""
    if isinstance(content, dict):
        said = ((key, value) for key, value in content.items() if key not in _NEWER or value != _NEWER[key])
        return {key: _without_news(value) for key, value in said}
    return [_without_news(value) for value in content] if isinstance(content, list) else content


def _digest(said: dict[str, Any], job: Job) -> str:
    """Return the hash of what a job says, its paths as written, and of its suite and its perturbation tables."""
    written = [
        table if release.display is None else {**table, "display": release.display.value.to_dict()}
        for table, release in zip(said["release"], job.release, strict=True)
    ]
    content = _without_news(Job.model_validate({**said, "release": written}).model_dump(mode="json", by_alias=True))
    if job.checks.expectations is not None:
        content["suite"] = hashlib.sha256(Path(job.checks.expectations).read_bytes()).hexdigest()
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
