"""The command ``pkdp report``, which reads no data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from pkdp_pipeline.cli.job_commands import chosen_day
from pkdp_pipeline.cli.options import JobFile, of_share
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.wording import choice

if TYPE_CHECKING:
    from pkdp_pipeline.extras.report.content import Audience
    from pkdp_pipeline.extras.report.pages import Format, Reader
    from pkdp_pipeline.jobs.job import Job


def report(
    job_file: JobFile,
    *,
    date: Annotated[
        str | None,
        typer.Option(
            metavar="DATE", help="The report of one date: YYYY-MM-DD, today or yesterday; without it, of all."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it there; html is always written to a file.")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", metavar="html|md|json", help="Left out: by the suffix of FILE, else html.")
    ] = None,
    audience: Annotated[
        str, typer.Option(metavar="public|auditor", help="For an auditor: with the input checks.")
    ] = "public",
    reader: Annotated[
        str,
        typer.Option("--for", metavar="everybody|officer", help="For a data-protection officer: two pages, in words."),
    ] = "everybody",
    delta: Annotated[float | None, of_share("State epsilon at this delta; that of the job's target, or 1e-6.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, as the format json does.")] = False,
) -> None:
    """Report what a job has published and what that promises; no data are read, the ledger is."""
    from pkdp_pipeline.extras.report.figures import need_matplotlib
    from pkdp_pipeline.extras.report.job_report import report_of
    from pkdp_pipeline.extras.report.pages import FORMATS, READERS, render
    from pkdp_pipeline.jobs import load_job
    from pkdp_pipeline.ledger.reading import write_out

    if as_json and form not in (None, "json"):
        raise ArgumentError(f"--json and --format {form} exclude each other: leave one of them out.")
    suffix = "" if out is None else out.suffix.lower().removeprefix(".")
    form = choice("--format", "json" if as_json else form or (suffix if suffix in FORMATS else "html"), FORMATS)
    choice("--audience", audience, ("public", "auditor"))
    choice("--for", reader, READERS)
    if form == "html" and out is None:
        raise ArgumentError("--format html is written to a file: name one with --out, or ask for --format md.")
    job = load_job(job_file)
    if out is not None:
        _check_out(job, out)
    if form == "html" and reader == "everybody":
        need_matplotlib()
    day = None if date is None else chosen_day("--date", date, job)
    document = report_of(job, day, audience=cast("Audience", audience), delta=delta)
    text = render(document, cast("Format", form), cast("Reader", reader))
    if out is None:
        typer.echo(text, nl=False)
        return
    write_out([text], out, ledger=job.ledger)
    typer.echo(f"The report of {document.title}, {document.period}, is in {out}.")


def _check_out(job: Job, out: Path) -> None:
    """Refuse to write over what the job lives on."""
    for file in _own_files(job):
        same = out.resolve() == file.resolve()
        with suppress(OSError):
            same = same or out.samefile(file) or (file.is_dir() and out.resolve().is_relative_to(file.resolve()))
        if same:
            raise ArgumentError(f"--out is the job's own, {file.name}, and would be overwritten: name another file.")


def _own_files(job: Job) -> Iterator[Path]:
    """Yield what the job reads and writes, reports aside, which may lie among what is published."""
    yield Path(job.file)
    if "://" not in job.ledger:
        yield from (Path(f"{job.ledger}{suffix}") for suffix in ("", "-wal", "-shm", "-journal"))
    yield from job.source.own_files()
    for published in Path(job.output.directory).glob("*/*"):
        if published.name.endswith((".parquet", ".csv", ".certificate.json")) or published.name == "summary.md":
            yield published
    folders = [table.directory for table in (job.retention, job.records) if table is not None]
    yield from (Path(place) for place in (*folders, job.output.duckdb, job.checks.expectations) if place)
