"""A source and an output more: one file and one line each, here a toy of both."""

from __future__ import annotations

import io
from datetime import date
from pathlib import Path
from typing import ClassVar

import pandas as pd
import polars as pl
import pytest

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.outputs import files as writing
from pkdp_pipeline.jobs.source_tables import SourceTable, one_of, sources
from pkdp_pipeline.jobs.sources.relations import RelationSource, connect
from pkdp_pipeline.jobs.sources.source import Source

DAY = date(2020, 1, 1)


class ToySource(SourceTable):
    """People by number: so many of them in Ås, every day."""

    people: int

    @property
    def public_name(self) -> str:
        return "a toy"

    def open(self, job):
        connection = connect()
        rows = f"SELECT DATE '{DAY}' AS day, i AS person, 'Ås' AS town FROM range({self.people}) AS r(i)"
        return RelationSource(connection, connection.sql(rows), ConfigError("broken"))


class Lists(Source):
    """People by number, as frames that DuckDB does not count: columns, and one method."""

    columns: ClassVar = {"day": "date", "person": "number", "town": "text"}

    def __init__(self, people: int) -> None:
        everybody = {"day": [DAY] * people, "person": range(people), "town": ["Ås"] * people}
        self._frame = pl.DataFrame(everybody, schema_overrides={"person": pl.Int64})

    def rows(self, period, first, last, columns=()):
        return self._frame.filter(pl.col(period.column).is_between(first, last))


class ToyLists(ToySource):
    """The same people, from another source."""

    def open(self, job):
        return Lists(self.people)


@pytest.mark.parametrize("toy", [ToySource, ToyLists])
def test_a_source_of_ones_own_is_a_table_and_a_line(job_file, basic, toy):
    class WithToy(Job):
        source: one_of({**sources(), "people": toy})

    written = load_job(job_file(f"{basic}\n[checks]\nrows = {{ min = 7, max = 7 }}\n"))
    said = {key: getattr(written, key) for key in written.model_fields_set}
    job = WithToy.model_validate(said | {"source": {"people": 7}})
    assert run_job(job, DAY).releases[0].release.table.to_dict("list") == {"town": ["Ås"], "count": [7]}
    source = job.source.open(job.needs())
    assert source.counts(job.period, DAY, ("person", "town")) == (7, 0)
    assert source.pandas(job.period, DAY, ["town", "person"]).to_dict("list") == {
        "town": ["Ås"] * 7,
        "person": [*range(7)],
    }


def test_a_format_of_ones_own_is_a_function_and_a_line(job_file, monkeypatch):
    def tabbed(release, period_column):
        assert period_column
        return release.table.to_csv(sep="\t", index=False).encode()

    monkeypatch.setattr(writing, "FORMATS", {**writing.FORMATS, "tsv": tabbed})
    job = load_job(job_file())
    job = job.model_copy(update={"output": job.output.model_copy(update={"formats": ("tsv",)})})
    files = {Path(file).name: Path(file) for file in run_job(job, DAY).releases[0].files}
    assert sorted(files) == ["people_by_town.certificate.json", "people_by_town.tsv"]
    read = pd.read_csv(io.BytesIO(files["people_by_town.tsv"].read_bytes()), sep="\t")
    assert sorted(read["count"]) == [5, 7]
